"""A library is imported without its optional parts, and only for the thread that asks for that."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from cdp.base.imports import without


def test_the_stemmer_comes_without_the_libraries_it_does_not_need() -> None:
    code = (
        "import sys; from cdp.evaluation.bm25 import english_terms; print(*english_terms(['Generously running']));"
        "print([name for name in ('sklearn', 'scipy.stats', 'pandas') if name in sys.modules]);"
        "import scipy.stats"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['generous', 'run']", "[]"]


def test_other_threads_and_what_is_loaded_already_are_left_alone() -> None:
    found: list[str] = []

    def elsewhere() -> None:
        sys.modules.pop("this", None)
        import this  # noqa: F401

        found.append("this")

    with without("this", "json"):
        import json  # noqa: F401

        sys.modules.pop("this", None)
        with pytest.raises(ModuleNotFoundError, match="this"):
            import this  # noqa: F401
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert found == ["this"]
