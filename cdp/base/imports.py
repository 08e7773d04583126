"""Importing a library without the parts that it would load along and that are not used here, or not yet."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

WITH_NLTK = ("sklearn", "scipy.stats")
"""What nltk loads with its first module, where it is installed, for parts that are not used here. To import the stemmer
takes 2.1 CPU seconds with both and 0.55 without."""


SECOND_TRANSPORT = "aiohttp"
"""What openai loads with its first module, where it is installed, to send requests another way than is done here: a
quarter of the processor time of ``import openai`` (1.2 CPU seconds with it, 0.9 without)."""

UNUSED_METRICS = "sklearn.metrics"
"""What sentence-transformers loads with its first module for evaluators and distances that are not used here: a
quarter of the processor time of ``import sentence_transformers`` (10.0 CPU seconds with it, 7.6 without)."""


class _Absent(MetaPathFinder, threading.local):
    """For a thread, the modules in ``names`` are not installed. Others may be loading them at the same moment.

    It stays among the finders: a thread that goes through them while another one takes one out misses the next, and
    does not find a module that is there.
    """

    names: frozenset[str] = frozenset()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if fullname in self.names:
            raise ModuleNotFoundError(f"{fullname} is not needed here", name=fullname)
        return None


_absent = _Absent()


@contextmanager
def without(*names: str) -> Iterator[None]:
    """What this thread imports meanwhile finds none of these modules, unless they were loaded before."""
    if _absent not in sys.meta_path:
        sys.meta_path.insert(0, _absent)
    before = _absent.names
    _absent.names = before.union(names)
    try:
        yield
    finally:
        _absent.names = before


def arrow_without_pandas() -> None:
    """pyarrow's ``array`` asks once per process whether pandas is there, which loads it: 0.4 CPU seconds for each
    command and job. Here it is not asked again. For processes of our own alone: ``to_pandas`` does not work in them.
    """
    with without("pandas"):
        import pyarrow

        pyarrow.array([0])


class _WhenCalled(MetaPathFinder, Loader):
    """A module, and its parents, whose functions load the real one when they are called."""

    def __init__(self, name: str) -> None:
        parts = name.split(".")
        self._name = name
        self._names = {".".join(parts[: n + 1]) for n in range(len(parts))}
        self._root = parts[0]
        self._lock = threading.RLock()
        self._loaded = False

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if self._loaded:  # and stays among the finders, as ``_Absent`` does
            return None
        if fullname in self._names:
            return ModuleSpec(fullname, self, is_package=True)
        if fullname.startswith(f"{self._root}."):  # a part of it that nobody put off: then all of it
            self._load()
            return find_spec(fullname)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)

        def later(attribute: str) -> object:
            if attribute.startswith("__") and attribute != "__version__":  # what Python asks of every module
                raise AttributeError(attribute)
            if spec.name != self._name:
                self._load()
                return getattr(import_module(spec.name), attribute)

            def call(*args: object, **kwargs: object) -> object:
                self._load()
                return getattr(import_module(spec.name), attribute)(*args, **kwargs)

            return call

        module.__getattr__ = later  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""

    def _load(self) -> None:
        with self._lock:
            if not self._loaded:
                self._loaded = True
                for name in self._names:
                    sys.modules.pop(name, None)
        import_module(self._root)


def load_when_called(name: str) -> None:
    """From now on ``from <name> import f`` costs nothing; the first call of any such function loads the module.

    For modules of which others import functions alone. Nothing changes where it is loaded already or is not installed.
    """
    put_off = any(isinstance(finder, _WhenCalled) and name in finder for finder in sys.meta_path)
    if not put_off and name not in sys.modules and find_spec(name.partition(".")[0]) is not None:
        sys.meta_path.insert(0, _WhenCalled(name))
