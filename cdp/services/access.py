"""Who may do what: one table of actions and modes, marks that enforce it, and checks of the names in settings.

The command line and the workers of jobs run as the operator and are not confined. A dashboard declares itself once
(``in_dashboard``, by its router); from then on every caller in this process is a visitor, in every thread, callback and
fragment. The mode belongs to the process and not to a call, so that a call that forgets it is not let through.

``writes`` and ``runs`` mark services that change the workspace and that move jobs, ``searches`` those that ask the
search process; ``reads`` marks services that only look at the settings given to them. Each checks every configuration
among the arguments: a setting that holds a path, a model, a benchmark or an endpoint (``option(…, holds=…)``) is
refused where the mode does not allow it, and a path is handed on resolved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.settings import Config
from cdp.base.text import typed_path
from cdp.base.workspace import SHIPPED_DATA, Workspace, is_name
from cdp.benchmarks import library
from cdp.llm import address
from cdp.llm.address import Endpoint
from cdp.retrievers import PRESETS, api, bm25, in_cache
from cdp.services import naming
from cdp.synthesis.generators import GENERATORS

READ_ONLY = "CDP_READ_ONLY"
SHARED = "CDP_SHARED"
# What the operator allows visitors, in lists separated by commas, folders as in PATH.
MODELS = "CDP_ALLOWED_MODELS"
ENDPOINTS = "CDP_ALLOWED_ENDPOINTS"
FOLDERS = "CDP_ALLOWED_FOLDERS"


class Mode(StrEnum):
    """How this process is used."""

    OPERATOR = "operator"
    LOCAL = "local"
    SHARED = "shared"
    READ_ONLY = "read-only"


ABOUT = {
    Mode.OPERATOR: "the command line, and jobs at work",
    Mode.LOCAL: "a dashboard on the loopback address, without sign-in",
    Mode.SHARED: "a dashboard with an `[auth]` section, or one that others can reach: another address, behind a "
    f"proxy, or `{SHARED}=1`",
    Mode.READ_ONLY: f"any dashboard with `{READ_ONLY}=1`",
}


class Action(StrEnum):
    """A row of the table: an action, in words."""

    LOOK = "see pages, documents, queries, results and logs (keys cut out); download what a page shows"
    SEARCH = "search a corpus or benchmark with BM25 or a retriever that is on this machine (its index is kept)"
    CHANGE = "import, upload, rename, delete"
    RUN = "start, stop, resume and delete jobs"
    ASK = "have a model write: previews by an endpoint or a local model"
    KEY = "use the server's own key, at the endpoints that it is for"
    ANY_ENDPOINT = "ask any other endpoint, with a key of one's own or none"
    ANY_CLUSTER = "choose the Ray cluster that the workspace's jobs go to"
    FOLDERS = "name a path in the workspace or in `CDP_ALLOWED_FOLDERS`"
    HOME = "name a path in the home of the server's user, hidden files excepted"
    ANY_PATH = "name any path"
    ANY_MODEL = "have any model downloaded from the hub"


_EVERYBODY = frozenset(Mode)
_CHANGING = _EVERYBODY - {Mode.READ_ONLY}
_ALONE = frozenset({Mode.OPERATOR, Mode.LOCAL})

TABLE: dict[Action, frozenset[Mode]] = {
    Action.LOOK: _EVERYBODY,
    Action.SEARCH: _EVERYBODY,
    Action.CHANGE: _CHANGING,
    Action.RUN: _CHANGING,
    Action.ASK: _CHANGING,
    Action.KEY: _CHANGING,
    Action.ANY_ENDPOINT: _ALONE,
    Action.ANY_CLUSTER: _ALONE,
    Action.FOLDERS: _CHANGING,
    Action.HOME: _ALONE,
    Action.ANY_PATH: frozenset({Mode.OPERATOR}),
    Action.ANY_MODEL: _ALONE,
}

REASON = "This dashboard is read-only: it shows results and changes nothing."

# The mode that this dashboard declared; None in every other process.
_declared: Mode | None = None


class NotAllowedError(ConfigError):
    """The mode does not allow it; another dashboard, or the command line, may do it."""


class ReadOnlyError(CdpError):
    """A change of the workspace was asked of a read-only dashboard."""

    kind = "configuration"


def in_dashboard(*, shared: bool = False) -> None:
    """From now on this process is a dashboard. Once shared it stays so: the rule is never loosened while it runs."""
    global _declared
    _declared = Mode.SHARED if shared or _declared is Mode.SHARED else Mode.LOCAL


def mode() -> Mode:
    """Return the mode of this process."""
    if _declared is None:
        return Mode.OPERATOR
    if _set(READ_ONLY):
        return Mode.READ_ONLY
    return Mode.SHARED if _set(SHARED) else _declared


def _set(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")


def may(action: Action) -> bool:
    """Return True if this process may do it."""
    return mode() in TABLE[action]


def require(action: Action) -> None:
    """Raise unless this process may do it: ReadOnlyError on a read-only dashboard, NotAllowedError elsewhere."""
    if may(action):
        return
    if mode() is Mode.READ_ONLY:
        raise ReadOnlyError(REASON, hint=f"Start one without {READ_ONLY}, or use the command line.")
    raise NotAllowedError(f"This dashboard may not do that: {action}.", hint="Use the command line on the server.")


def read_only() -> bool:
    """Return True if this process is a dashboard that may change nothing."""
    return mode() is Mode.READ_ONLY


# marks of services, and the checks of settings that they make

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Config)


def _mark(action: Action) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    def mark(service: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(service)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            require(action)
            workspace = next((a for a in (*args, *kwargs.values()) if isinstance(a, Workspace)), Workspace.default())

            def known(argument: Any) -> Any:
                return checked(workspace, argument) if isinstance(argument, Config) else argument

            # mypy cannot know that each value keeps its type.
            values: Any = [known(a) for a in args]
            named: Any = {name: known(a) for name, a in kwargs.items()}
            return service(*values, **named)

        guarded.__dict__["action"] = action
        return guarded

    return mark


writes = _mark(Action.CHANGE)
runs = _mark(Action.RUN)
reads = _mark(Action.LOOK)
searches = _mark(Action.SEARCH)


def checked(workspace: Workspace, config: _C) -> _C:
    """Return the configuration with each training called by its id, and for visitors with its paths resolved.

    NotAllowedError names the setting's value that this mode may not use.
    """
    free = mode() is Mode.OPERATOR
    given: dict[str, list[str]] = {}
    allowed: dict[str, list[str]] = {}
    for setting, holds, value in names_in(config):
        if free and (setting in ASKED or holds not in ("model", "retriever")):
            continue
        if holds == "endpoint":
            check_endpoint(value)
        else:
            check = {"model": model, "retriever": retriever, "benchmark": benchmark, "path": _path}[holds]
            given.setdefault(setting, []).append(value)
            allowed.setdefault(setting, []).append(check(workspace, value))
    changed = {name: ", ".join(allowed[name]) for name in given if allowed[name] != given[name]}
    return config.replace(**changed) if changed else config


def names_in(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, kind, name) for each model, benchmark, path and endpoint that the settings name."""
    values = config.to_dict()
    generator = GENERATORS.get(values.get("generator", ""))
    for setting in config.settings().values():
        holds, value = setting.holds, values[setting.name]
        if holds and setting.name in ASKED:  # only what a local generator loads; an empty one is large, and loads too
            value = (value or generator.model) if generator and generator.local else ""
        elif not holds or value == setting.default:
            continue
        if holds == "endpoint" and not (generator and generator.endpoint):
            continue
        items = value.split(",") if holds in ("models", "retrievers", "benchmarks") else [value]
        yield from ((setting.name, holds.removesuffix("s"), item.strip()) for item in items if item.strip())


# models and benchmarks

# Settings that name a language model at an endpoint, or a local one.
ASKED = ("model", "writer")
# Values that stand for a model without naming one.
CHOICES = ("auto", "bi-encoder")


def retriever(workspace: Workspace, name: str) -> str:
    """Return an untrained or trained retriever's name as it may be used: as ``model``, or one behind an API.

    That one with its address, which is checked as any endpoint is.
    """
    named = api.parse(name)
    if named is None:
        return model(workspace, name)
    check_endpoint(named.url)
    return named.name


def model(workspace: Workspace, name: str) -> str:
    """Return a model's name as it may be used: a training's id, a resolved folder, or an allowed model of the hub.

    ConfigError for a retriever behind an API, which no program here can load.
    """
    if api.parse(name) is not None:
        raise api.refused(name)
    name = naming.retriever(workspace, name)
    if may(Action.ANY_PATH):
        return name
    if name in PRESETS or name in CHOICES or bm25.language_in(name) is not None:
        return name
    if not is_path(name):
        if is_name(name) and workspace.job(name).is_dir():
            return name
        if not _is_folder(name):
            listed = _listed(MODELS)
            if may(Action.ANY_MODEL) or name in listed or "*" in listed or in_cache(name):
                return name
            raise NotAllowedError(
                f"The model {name} is not on this machine, and this dashboard may not have it downloaded.",
                hint=f"Name a preset or a training job, or have the operator add it to {MODELS}.",
            )
    return _path(workspace, name)


def benchmark(workspace: Workspace, name: str) -> str:
    """Return a benchmark's name in the workspace as it is; a folder only where it may be read. Plans add ``:split``."""
    if may(Action.ANY_PATH) or name in library.list_names(workspace):
        return name
    folder, colon, split = name.rpartition(":")
    if colon:
        return f"{benchmark(workspace, folder)}:{split}"
    return _path(workspace, name) if is_path(name) or _is_folder(name) else name


def _path(workspace: Workspace, name: str) -> str:
    return str(to_read(workspace, name))


def _listed(variable: str) -> list[str]:
    return [part.strip() for part in os.environ.get(variable, "").split(",") if part.strip()]


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):
        return True  # no plain name in any case


# endpoints: ``cdp.llm.address`` decides on address and key; a shared dashboard asks only what the operator set up


def endpoint_for(settings: Mapping[str, Any], typed: str = "") -> Endpoint:
    """Return the endpoint of a job or a preview with these settings, and the key ``typed`` for it or the server's own.

    NotAllowedError for an endpoint that may not be asked; ConfigError for a malformed address, and on the command
    line for a key that was given for another address (a dashboard has a field for the key: empty means none).
    """
    return _endpoint(str(settings.get("base_url") or ""), typed) if _asks(settings) else Endpoint(key=typed.strip())


def _endpoint(url: str, typed: str) -> Endpoint:
    check_endpoint(url)
    own = os.environ if may(Action.KEY) else {}
    return address.resolve(address.address(url), typed, keyless=mode() is not Mode.OPERATOR, environment=own)


def environment_for(settings: Mapping[str, Any], typed: str = "") -> dict[str, str]:
    """Return a worker's environment: address and key of ``endpoint_for``, and of each retriever behind an API.

    ``typed`` is the key of the first of them. Raises as ``endpoint_for``.
    """
    endpoints = [endpoint_for(settings, typed)]
    for url in _api_urls(settings):
        endpoints = [endpoint for endpoint in endpoints if endpoint.url]
        if not any(address.same(url, other.url) for other in endpoints):
            endpoints.append(_endpoint(url, "" if endpoints else typed))
    return address.environment(endpoints)


def _api_urls(settings: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the retrievers behind an API that a job's settings name."""
    values = (str(settings.get(name) or "") for name in ("retriever", "retrievers", "teacher"))
    named = (api.parse(item) for value in values for item in value.split(","))
    return [found.url for found in named if found is not None]


def needs_key(settings: Mapping[str, Any]) -> bool:
    """Return True if a job that ran with a key cannot be resumed with a key of this process's environment."""
    urls = [*([str(settings.get("base_url") or "")] if _asks(settings) else []), *_api_urls(settings)]
    return any(not server_key(url) for url in urls)


def server_key(base_url: str) -> str:
    """Return the name of the server's key that is for this endpoint and may be used; empty for none."""
    return address.key_name(address.address(base_url)) if may(Action.KEY) else ""


def check_endpoint(base_url: str) -> None:
    """Raise NotAllowedError unless this endpoint may be asked from here."""
    # The server's network stays closed to visitors, but for what the operator named or has a key for.
    url = address.address(base_url)
    if may(Action.ANY_ENDPOINT) or server_key(url):
        return
    if not (may(Action.ASK) and any(address.same(url, other) for other in endpoints())):
        raise NotAllowedError(
            f"The endpoint {url} may not be asked from this dashboard.",
            hint=f"Have the operator add it to {ENDPOINTS}.",
        )


def configured_endpoint() -> str:
    """Return the endpoint that the operator set up, as a form's first value; empty for OpenAI itself."""
    return next((url for name in address.URL_VARIABLES if (url := os.environ.get(name, "").strip())), "")


def endpoints() -> list[str]:
    """Return the addresses that the operator set up."""
    named = [os.environ.get(name, "").strip() for name in address.URL_VARIABLES]
    return [*_listed(ENDPOINTS), *(url for url in named if url)]


def _asks(settings: Mapping[str, Any]) -> bool:
    """Return True if an endpoint writes the queries."""
    generator = GENERATORS.get(str(settings.get("generator")))
    return generator is not None and generator.endpoint


# Paths: any for the operator; a visitor reads the workspace, the folders of ``CDP_ALLOWED_FOLDERS``, the shipped data,
# and on a local dashboard the user's home without its hidden files. A path is resolved first, links included, and
# compared then; the resolved path is handed on. Visitors name no path to write: what they export is a download.

# Files and folders looked at below a folder that a visitor names.
MOST_ENTRIES = 200_000

# The system's own views hold no user's files: never allowed.
_NEVER = tuple(Path(name) for name in ("/proc", "/sys", "/dev", "/run"))


def to_read(workspace: Workspace, text: str | Path) -> Path:
    """Return the file or folder to read. InputError for a malformed path, NotAllowedError outside allowed folders."""
    if may(Action.ANY_PATH):
        return typed_path(text)
    require(Action.FOLDERS)
    path = _resolved(text)
    allowed = roots(workspace)
    _check_inside(path, text, allowed)
    _check_regular(path)
    if path.is_dir():
        _check_below(path, allowed)
    return path


def to_write(text: str | Path) -> Path:
    """Return the file or folder to write. NotAllowedError for visitors, InputError for a malformed path."""
    require(Action.ANY_PATH)
    return typed_path(text)


def is_path(text: str) -> bool:
    """Return True if a text that may also be a name can only be a path."""
    return text.startswith(("/", "~", ".", "\\")) or ".." in Path(text).parts or text.count("/") > 1


def roots(workspace: Workspace) -> list[Path]:
    """Return the workspace, the shipped data and the operator's folders, resolved."""
    folders = [workspace.root, SHIPPED_DATA]
    for part in os.environ.get(FOLDERS, "").split(os.pathsep):
        if part.strip() and not os.path.isabs(os.path.expanduser(part)):
            raise ConfigError(f"{FOLDERS} names {part!r}: each folder must be an absolute path.")
        folders += [Path(part).expanduser()] if part.strip() else []
    return [folder.resolve() for folder in folders]


def within(path: Path, folders: list[Path]) -> bool:
    """Return True if a resolved path lies in one of the folders, and in none of the system's own views."""
    return not any(map(path.is_relative_to, _NEVER)) and any(map(path.is_relative_to, folders))


def _resolved(text: str | Path) -> Path:
    """Return the path without links and dots."""
    if not str(text).strip() or "\0" in str(text):
        raise InputError("That is no path.", hint="Give the path of a file or folder on this server.")
    try:
        return typed_path(text).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, links in a circle, half a surrogate pair
        raise InputError("That path leads nowhere.", hint="Check it; it is read on the server.") from error


def _inside(path: Path, folders: list[Path]) -> bool:
    """Return True if a resolved path lies in one of the folders or, where allowed, below no hidden folder at home."""
    if within(path, folders):
        return True
    if not may(Action.HOME) or not within(path, [Path("/")]):
        return False
    try:
        below = path.relative_to(Path.home().resolve())
    except (ValueError, RuntimeError):
        return False
    return not any(part.startswith(".") for part in below.parts)


def _check_inside(path: Path, text: str | Path, folders: list[Path]) -> None:
    # The same sentence whether the path exists or not: visitors learn nothing of what lies outside.
    if not _inside(path, folders):
        raise NotAllowedError(
            f"{text} is not in a folder that this dashboard may use.",
            hint=f"Upload the file, or have the operator add its folder to {FOLDERS}.",
        )


def _check_regular(path: Path) -> None:
    """Refuse a device, a pipe or a socket; a missing path is for the reader to name."""
    try:
        special = path.exists() and not (path.is_file() or path.is_dir())
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if special:
        raise InputError(f"{path.name} is neither a file nor a folder.", hint="Name a regular file.")


def _check_below(folder: Path, folders: list[Path]) -> None:
    """Check that all below a folder are files and folders; a link may lead to a file of the allowed folders."""
    for number, path in enumerate(folder.rglob("*")):
        if number > MOST_ENTRIES:
            raise InputError(f"{folder.name} holds over {MOST_ENTRIES:,} files.", hint="Name the folder itself.")
        if path.is_symlink():
            target = _resolved(path)
            # A linked folder could hold links that lead out.
            if not _inside(target, folders) or target.is_dir():
                raise NotAllowedError(
                    f"{path.relative_to(folder)} is a linked folder, or leads out of those this dashboard may use.",
                    hint="Copy the file itself.",
                )
            path = target
        _check_regular(path)
