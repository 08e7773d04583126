"""Enforcing the table of ``modes``: a mark for every service that needs an action, and a check of what settings name.

``writes`` and ``runs`` mark what changes the workspace and what moves jobs, ``searches`` what asks the search process;
``reads`` marks what only looks at the settings given to it. Each looks into every configuration among the arguments: a
setting that holds a path, a model, a benchmark or an endpoint (``option(…, holds=…)``) is refused where the mode does
not allow it, and a path is handed on resolved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cdp.base.errors import CdpError
from cdp.base.settings import Config
from cdp.base.workspace import Workspace
from cdp.benchmarks import library
from cdp.evaluation import bm25
from cdp.retrievers import PRESETS, in_cache
from cdp.services import endpoints, naming, paths
from cdp.services.modes import REASON as REASON
from cdp.services.modes import Action, Mode, NotAllowedError, may, mode, require
from cdp.services.modes import ReadOnlyError as ReadOnlyError
from cdp.services.modes import in_dashboard as in_dashboard
from cdp.services.modes import read_only as read_only
from cdp.synthesis.generators import GENERATORS

MODELS = "CDP_ALLOWED_MODELS"

# Values that stand for a model without naming one.
CHOICES = ("auto", "bi-encoder")

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Config)


def _mark(action: Action) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    def mark(service: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(service)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            require(action)
            workspace = next((a for a in (*args, *kwargs.values()) if isinstance(a, Workspace)), None)
            # mypy cannot know that each value keeps its type.
            values: Any = [_known(workspace, a) for a in args]
            named: Any = {n: _known(workspace, a) for n, a in kwargs.items()}
            return service(*values, **named)

        guarded.__dict__["action"] = action
        return guarded

    return mark


writes = _mark(Action.CHANGE)
runs = _mark(Action.RUN)
reads = _mark(Action.LOOK)
searches = _mark(Action.SEARCH)


def _known(workspace: Workspace | None, argument: Any) -> Any:
    return checked(workspace or Workspace.default(), argument) if isinstance(argument, Config) else argument


def checked(workspace: Workspace, config: _C) -> _C:
    """The configuration with each training called by its id, and with its paths resolved where visitors are watched.
    NotAllowedError names what this mode may not use."""
    free = mode() is Mode.OPERATOR
    given: dict[str, list[str]] = {}
    allowed: dict[str, list[str]] = {}
    for setting, holds, value in names_in(config):
        if free and (setting == "model" or holds != "model"):
            continue
        if holds == "endpoint":
            endpoints.check(value)
        else:
            given.setdefault(setting, []).append(value)
            allowed.setdefault(setting, []).append(_CHECKS[holds](workspace, value))
    changed = {name: ", ".join(allowed[name]) for name in given if allowed[name] != given[name]}
    return config.replace(**changed) if changed else config


def names_in(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield what the settings name outside themselves: the setting, what the name is of, and each single name.

    The name is that of a model, benchmark, path or endpoint; lists come as their items.
    """
    generator = GENERATORS.get(getattr(config, "generator", ""))
    for setting in config.settings().values():
        holds, value = setting.holds, getattr(config, setting.name)
        if holds and setting.name == "model":  # only what a local generator loads; an empty one is large, and loads too
            value = (value or generator.model) if generator and generator.local else ""
        elif not holds or value == setting.default:
            continue
        if holds == "endpoint" and not (generator and generator.endpoint):
            continue
        items = value.split(",") if holds in ("models", "benchmarks") else [value]
        yield from ((setting.name, holds.removesuffix("s"), item.strip()) for item in items if item.strip())


def model(workspace: Workspace, name: str) -> str:
    """A retriever's or another model's name, as it may be used: a training is called by its id, a folder is resolved, a
    model of the hub is allowed."""
    name = naming.retriever(workspace, name)
    if may(Action.ANY_PATH):
        return name
    if name in PRESETS or name in CHOICES or bm25.language_in(name) is not None:
        return name
    if not paths.is_path(name):
        if _is_job(workspace, name):
            return name
        if not _is_folder(name):
            if may(Action.ANY_MODEL) or name in _models() or "*" in _models() or in_cache(name):
                return name
            raise NotAllowedError(
                f"The model {name} is not on this machine, and this dashboard may not have it downloaded.",
                hint=f"Name a preset or a training job, or have the operator add it to {MODELS}.",
            )
    return str(paths.to_read(workspace, name))


def benchmark(workspace: Workspace, name: str) -> str:
    """A benchmark's name in the workspace as it is; a folder only where it may be read. Plans add ``:split``."""
    if may(Action.ANY_PATH) or name in library.list_names(workspace):
        return name
    folder, colon, split = name.rpartition(":")
    if colon:
        return f"{benchmark(workspace, folder)}:{split}"
    return str(paths.to_read(workspace, name)) if paths.is_path(name) or _is_folder(name) else name


def _path(workspace: Workspace, name: str) -> str:
    return str(paths.to_read(workspace, name))


_CHECKS: dict[str, Callable[[Workspace, str], str]] = {
    "model": model,
    "benchmark": benchmark,
    "path": _path,
}


def _models() -> set[str]:
    return {part.strip() for part in os.environ.get(MODELS, "").split(",") if part.strip()}


def _is_job(workspace: Workspace, name: str) -> bool:
    try:
        return workspace.job(name).is_dir()
    except CdpError:
        return False


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):
        return True  # whatever it is, it is no plain name
