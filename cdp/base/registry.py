"""Registries of all that users extend, one file with one constant per item; loading plug-ins; ``Names`` as choices.

A registry holds the items of one kind by name: those of its package's modules, then those of plug-ins. An item is a
frozen dataclass with its facts and its function. Forms, options, the reference and validation read the registry.

Plug-ins are modules that installed packages name as entry points of the group ``GROUP``. Pages, settings and the
workspace cannot name any: a plug-in is code with all the rights of the process.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import pkgutil
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Generic, TypeVar

from cdp.base.errors import ConfigError, NotFoundError

GROUP = "cdp.plugins"  # of entry points

# Imported at use: settings are declared below all other packages.
HOMES = {
    "method": "cdp.synthesis.methods:METHODS",
    "generator": "cdp.synthesis.generators:GENERATORS",
    "measure": "cdp.metrics.measures:MEASURES",
    "weighting": "cdp.training.weightings:WEIGHTINGS",
    "corpus format": "cdp.corpus.readers:READERS",
    "export format": "cdp.query_sets.exports:EXPORTS",
    "preset": "cdp.retrievers.presets:PRESETS",
    "benchmark schema": "cdp.benchmarks.schemas:SCHEMAS",
    "job kind": "cdp.workers:KINDS",
}

# Names are parts of commands, addresses and file names.
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@dataclass(frozen=True)
class Registered:
    """Base of all items. ``help`` is a sentence or two for a form; items are sorted by ``order``, then by name.

    Items that are not ``offered`` only serve other items.
    """

    name: str
    title: str
    help: str
    order: int = field(default=100, kw_only=True)
    offered: bool = field(default=True, kw_only=True)


Item = TypeVar("Item", bound=Registered)


class Registry(Mapping[str, Item], Generic[Item]):
    """The items of one kind by name, in order. Modules are imported when it is first read.

    ``kind`` is the word for an item in messages, ``item`` its class, ``package`` that of the built-in items.
    """

    def __init__(self, kind: str, item: type[Item] | tuple[type[Item], ...], package: str) -> None:
        self.kind, self._item, self._package = kind, item, package
        self._items: dict[str, Item] = {}
        self._loaded = False

    def named(self, name: str) -> Item:
        """Return the item of that name; NotFoundError offers the nearest."""
        items = self._all()
        if name not in items:
            raise NotFoundError(self.kind, name, known=self.offered)
        return items[name]

    @property
    def offered(self) -> list[str]:
        """The names that people choose from."""
        return [name for name, item in self._all().items() if item.offered]

    def __getitem__(self, name: str) -> Item:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"Registry({self.kind}: {', '.join(self._items)})"

    def _all(self) -> dict[str, Item]:
        """Return the items of all modules; to a module that is being imported, those of the modules before it."""
        if self._loaded:
            return self._items

        found, complete = [], False
        with _one_at_a_time(), suppress(_ImportingError):
            for module in self._modules():
                declared = [value for value in vars(module).values() if isinstance(value, self._item)]
                found += [(item, module.__file__ or module.__name__) for item in declared]
            complete = True

        items = _in_order(self.kind, found)
        if complete:
            self._items, self._loaded = items, True
        return items

    def _modules(self) -> Iterator[ModuleType]:
        """Import the package's modules, then the plug-ins. ConfigError names a plug-in that cannot be loaded."""
        package = _imported(self._package)
        for info in pkgutil.iter_modules(package.__path__):
            yield _imported(f"{self._package}.{info.name}")

        for entry in installed_plugins():
            try:
                module = _imported(entry.module)
            except _ImportingError:
                raise
            except Exception as error:
                remedy = f"{sys.executable} -m pip uninstall {entry.dist.name if entry.dist else entry.name}"
                raise ConfigError(
                    f"The plug-in {entry.name} of {package_of(entry)} cannot be loaded: "
                    f"{type(error).__name__}: {error}.",
                    hint=f"Correct it, or run: {remedy}",
                ) from error
            yield module


def _in_order(kind: str, found: Iterable[tuple[Item, str]]) -> dict[str, Item]:
    """Return items, found in the files beside them, by name. ConfigError for an invalid or duplicate name."""
    items: dict[str, Item] = {}
    origins: dict[str, str] = {}
    for item, origin in found:
        if items.get(item.name) is item:
            continue
        if not _NAME.fullmatch(item.name) or not item.title:
            raise ConfigError(
                f"A {kind} is called {item.name!r} in {origin}.",
                hint="It needs a name of small letters, digits, dots, dashes and underscores, and a title.",
            )
        if item.name in items:
            raise ConfigError(
                f"Two {kind}s are called {item.name}: in {origins[item.name]} and in {origin}.",
                hint="Give one of them another name.",
            )
        items[item.name], origins[item.name] = item, origin

    return dict(sorted(items.items(), key=lambda pair: (pair[1].order, pair[0])))


class _ImportingError(Exception):
    """The module's import waits for its own caller. Modules behind it may need it: none of them is imported now."""


def _imported(name: str) -> ModuleType:
    """Return a module once its import has ended, in whichever thread."""
    while True:
        try:
            module = importlib.import_module(name)
            break
        except RuntimeError as error:
            if type(error).__name__ != "_DeadlockError":
                raise
            # Another thread's import waits for one of this thread: it goes on now, unless that is further up.
            if _is_importing():
                raise _ImportingError(name) from None
    if getattr(module.__spec__, "_initializing", False):
        raise _ImportingError(name)
    return module


def _is_importing() -> bool:
    """Return True if what runs in this thread is the import of a module."""
    frame = sys._getframe()
    while frame and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


_LOADING = threading.RLock()


def _one_at_a_time() -> AbstractContextManager[object]:
    """Return what threads load registries within, one after the other: first imports by several may end with an error.

    A module that is being imported does not wait: the thread whose turn it is may want that module.
    """
    return nullcontext() if _is_importing() else _LOADING


@functools.cache
def installed_plugins() -> list[importlib.metadata.EntryPoint]:
    """Return the plug-ins of installed packages, sorted."""
    entries = importlib.metadata.entry_points(group=GROUP)
    return sorted(entries, key=lambda entry: (package_of(entry), entry.name, entry.value))


def package_of(entry: importlib.metadata.EntryPoint) -> str:
    """Return an entry point's package with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


@functools.cache
def registry(kind: str) -> Registry[Any]:
    """Return the registry of a kind (see ``HOMES``)."""
    module, _, name = HOMES[kind].partition(":")
    with _one_at_a_time():
        requested: Registry[Any] = getattr(importlib.import_module(module), name)
    return requested


class Names(Sequence[str]):
    """A setting's choices, read at each use: ``first``, then the names of a registry's offered items."""

    def __init__(self, kind: str, *, first: Sequence[str] = (), leave_out: Sequence[str] = ()) -> None:
        self._kind, self._first, self._leave_out = kind, tuple(first), frozenset(leave_out)

    def _names(self) -> list[str]:
        return [*self._first, *(name for name in registry(self._kind).offered if name not in self._leave_out)]

    def __contains__(self, name: object) -> bool:
        return name in self._first or (name not in self._leave_out and name in registry(self._kind).offered)

    def __getitem__(self, index: Any) -> Any:
        return self._names()[index]

    def __len__(self) -> int:
        return len(self._names())

    def __bool__(self) -> bool:
        return True  # without loading the registry
