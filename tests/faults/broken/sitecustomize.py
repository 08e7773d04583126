"""Found first on ``PYTHONPATH`` by a child process: every fiftieth document raises in the stage ``CDP_TEST_BREAKS``.

The stages are patched here, in the child of a test, so that the product itself holds no switch for it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import re
import sys
from types import ModuleType
from typing import Any

# Thing0, Thing50, Thing100 … are the fiftieth documents of the corpus that the test makes.
BAD = re.compile(r"\bThing\d*[05]0\b|\bThing0\b")


def broken(text: object) -> bool:
    return BAD.search(str(text)) is not None


def in_generation(module: ModuleType) -> None:
    plain = module.TemplateGenerator.generate

    def generate(self: Any, prompt: str, document: Any, *more: Any, **named: Any) -> Any:
        if broken(document.title):
            return ["no opening"][len(document.text)]  # IndexError, as where a sentence began with a comma
        return plain(self, prompt, document, *more, **named)

    module.TemplateGenerator.generate = generate


def in_measures(module: ModuleType) -> None:
    plain = module.tokens

    def tokens(query: str) -> Any:
        return {}[query] if broken(query) else plain(query)

    module.tokens = tokens


STAGES = {
    "generation": ("cdp.synthesis.generators.template", in_generation),
    "measures": ("cdp.metrics.query_set", in_measures),
}


class Broken(importlib.abc.MetaPathFinder):
    """Patches one module right after it has been loaded."""

    def __init__(self, name: str, patch: Any) -> None:
        self.name, self.patch = name, patch

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.loader is not None
        plain = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            plain(module)
            self.patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if os.environ.get("CDP_TEST_BREAKS"):
    sys.meta_path.insert(0, Broken(*STAGES[os.environ["CDP_TEST_BREAKS"]]))
