"""Registries of everything that users extend: adding an item is adding one file that declares one constant.

A registry holds the items of one kind by name: those of its package's modules, then those of plug-ins. An item is a
frozen dataclass with its facts and its function. Forms, options, the reference and validation read the registry.

Plug-ins are modules that installed packages name as entry points of the group ``GROUP``. Pages, settings and the
workspace cannot name any: a plug-in is code with all the rights of the process.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
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
        self._origins: dict[str, str] = {}
        self._loaded = False
        self._collected = 0  # modules of plug-ins

    def register(self, item: Item, origin: str = "") -> Item:
        """Add one item and return it. ConfigError for an invalid or duplicate name."""
        if self._items.get(item.name) is item:
            return item
        if not _NAME.fullmatch(item.name) or not item.title:
            raise ConfigError(
                f"A {self.kind} is called {item.name!r}{f' in {origin}' if origin else ''}.",
                hint="It needs a name of small letters, digits, dots, dashes and underscores, and a title.",
            )
        if item.name in self._items:
            raise ConfigError(
                f"Two {self.kind}s are called {item.name}: in {self._origins[item.name]} and in {origin}.",
                hint="Give one of them another name.",
            )
        self._origins[item.name] = origin
        self._items = dict(sorted({**self._items, item.name: item}.items(), key=lambda pair: (pair[1].order, pair[0])))
        return item

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
        if not self._loaded or _plugins is None or self._collected < len(_plugins):
            with _LOCK:  # reentrant: a module may read the registry while it is imported
                if not self._loaded:
                    self._loaded = True
                    package = importlib.import_module(self._package)
                    for info in pkgutil.iter_modules(package.__path__):
                        self._collect(importlib.import_module(f"{self._package}.{info.name}"))
                for plugin in _load_plugins()[self._collected :]:
                    self._collect(plugin)
                    self._collected += 1
        return self._items

    def _collect(self, module: ModuleType) -> None:
        for value in vars(module).values():
            if isinstance(value, self._item):
                self.register(value, module.__file__ or module.__name__)


def _load_plugins() -> list[ModuleType]:
    """Return the modules of all plug-ins, each loaded once; ConfigError names the first that cannot be loaded."""
    global _plugins
    if _plugins is None:
        _plugins = []  # a plug-in may read the registry while it is imported: it then sees those before it
        for entry in installed_plugins():
            try:
                _plugins.append(importlib.import_module(entry.module))
            except Exception as error:
                _plugins = None
                remedy = f"{sys.executable} -m pip uninstall {entry.dist.name if entry.dist else entry.name}"
                raise ConfigError(
                    f"The plug-in {entry.name} of {package_of(entry)} cannot be loaded: "
                    f"{type(error).__name__}: {error}.",
                    hint=f"Correct it, or run: {remedy}",
                ) from error
    return _plugins


def installed_plugins() -> list[importlib.metadata.EntryPoint]:
    """Return the plug-ins of installed packages, sorted."""
    entries = importlib.metadata.entry_points(group=GROUP)
    return sorted(entries, key=lambda entry: (package_of(entry), entry.name, entry.value))


def package_of(entry: importlib.metadata.EntryPoint) -> str:
    """Return an entry point's package with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


_LOCK = threading.RLock()
_plugins: list[ModuleType] | None = None  # those that are loaded


def registry(kind: str) -> Registry[Any]:
    """Return the registry of a kind (see ``HOMES``)."""
    module, _, name = HOMES[kind].partition(":")
    requested: Registry[Any] = getattr(importlib.import_module(module), name)
    return requested


class Names(Sequence[str]):
    """A setting's choices, read at each use: ``first``, then the names of a registry's offered items."""

    def __init__(self, kind: str, *, first: Sequence[str] = (), leave_out: Sequence[str] = ()) -> None:
        self._kind, self._first, self._leave_out = kind, tuple(first), frozenset(leave_out)

    def _names(self) -> list[str]:
        return [*self._first, *(name for name in registry(self._kind).offered if name not in self._leave_out)]

    def __getitem__(self, index: Any) -> Any:
        return self._names()[index]

    def __len__(self) -> int:
        return len(self._names())

    def __bool__(self) -> bool:
        return True  # without loading the registry
