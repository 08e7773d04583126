"""Marks that hold services to the mode of this process; allowed models, endpoints; which key a job gets; refusals.

``writes`` and ``runs`` mark services that change the workspace and that move jobs, ``searches`` those that ask the
search process; ``reads`` marks services that only look at the settings given to them. Each checks every configuration
among the arguments: a setting that holds a path, a model, a benchmark or an endpoint (``option(…, holds=…)``) is
refused where the mode does not allow it, and a path is handed on resolved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from cdp.base.permission import Action, Mode, NotAllowedError, is_path, may, mode, names_folder, require, to_read
from cdp.base.settings import Config
from cdp.base.text import comma_list
from cdp.base.workspace import Workspace, is_name
from cdp.benchmarks import library
from cdp.llm import address
from cdp.llm.address import Endpoint
from cdp.results import naming
from cdp.retrievers import PRESETS, api, bm25, in_cache
from cdp.synthesis.generators import GENERATORS

# What the operator allows visitors, in lists separated by commas.
MODELS = "CDP_ALLOWED_MODELS"
ENDPOINTS = "CDP_ALLOWED_ENDPOINTS"


# marks of services, and the checks of settings that they make

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Config)


def _mark(action: Action) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    def mark(service: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(service)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            require(action)
            given: list[Any] = [*args, *kwargs.values()]
            workspace = Workspace.default()
            for value in given:
                if isinstance(value, Workspace):
                    workspace = value
                    break

            for place, value in enumerate(given):
                if isinstance(value, Config):
                    given[place] = checked(workspace, value)

            return service(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))

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
        elif holds == "tracker":
            # It writes outside of the workspace, or sends with the key of the server's account.
            require(Action.ANY_ENDPOINT)
        else:
            check = {"model": model, "retriever": retriever, "benchmark": library.readable, "path": _path}[holds]
            given.setdefault(setting, []).append(value)
            allowed.setdefault(setting, []).append(check(workspace, value))

    changed = {name: ", ".join(names) for name, names in allowed.items() if names != given[name]}
    if not changed:
        return config

    return config.replace(**changed)


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
        for item in comma_list(value) if setting.entries else filter(None, [value.strip()]):
            yield setting.name, holds, item


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

        if not names_folder(name):
            listed = _listed(MODELS)
            if may(Action.ANY_MODEL) or name in listed or "*" in listed or in_cache(name):
                return name
            raise NotAllowedError(
                f"The model {name} is not on this machine, and this dashboard may not have it downloaded.",
                hint=f"Name a preset or a training job, or have the operator add it to {MODELS}.",
            )

    return _path(workspace, name)


def _path(workspace: Workspace, name: str) -> str:
    return str(to_read(workspace, name))


def _listed(variable: str) -> list[str]:
    return comma_list(os.environ.get(variable, ""))


# endpoints: ``cdp.llm.address`` decides on address and key; a shared dashboard asks only what the operator set up


def endpoint_for(settings: Mapping[str, Any], typed: str = "") -> Endpoint:
    """Return the endpoint of a job or a preview with these settings, and the key ``typed`` for it or the server's own.

    NotAllowedError for an endpoint that may not be asked; ConfigError for a malformed address, and on the command
    line for a key that was given for another address (a dashboard has a field for the key: empty means none).
    """
    if not _asks(settings):
        return Endpoint(key=typed.strip())

    return _endpoint(str(settings.get("base_url") or ""), typed)


def _endpoint(url: str, typed: str) -> Endpoint:
    check_endpoint(url)
    own = os.environ if may(Action.KEY) else {}
    typed = typed.strip() or typed_key(url)
    return address.resolve(address.address(url), typed, keyless=mode() is not Mode.OPERATOR, environment=own)


def environment_for(settings: Mapping[str, Any], typed: str = "") -> dict[str, str]:
    """Return a worker's environment: address and key of ``endpoint_for``, and of each retriever behind an API.

    ``typed`` is the key of the first of them. Raises as ``endpoint_for``.
    """
    endpoints = [endpoint_for(settings, typed)]
    for url in api_urls(settings):
        endpoints = [endpoint for endpoint in endpoints if endpoint.url]
        if not any(address.same(url, other.url) for other in endpoints):
            endpoints.append(_endpoint(url, "" if endpoints else typed))
    return address.environment(endpoints)


def api_urls(settings: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the retrievers behind an API that a job's settings name."""
    urls = []
    for setting in ("retriever", "retrievers", "teacher", "untrained"):
        for name in comma_list(str(settings.get(setting) or "")):
            if (named := api.parse(name)) is not None:
                urls.append(named.url)

    return urls


def needs_key(settings: Mapping[str, Any]) -> bool:
    """Return True if a job that ran with a key cannot be resumed with a key of this process's environment."""
    return not all(map(server_key, _urls(settings)))


def holds_key(settings: Mapping[str, Any]) -> bool:
    """Return True if the keys of a job with these settings were typed here before; see ``hold_key``."""
    urls = _urls(settings)
    return bool(urls) and all(map(typed_key, urls))


def _urls(settings: Mapping[str, Any]) -> list[str]:
    """Return every address that a job with these settings asks."""
    urls = api_urls(settings)
    if _asks(settings):
        urls.insert(0, str(settings.get("base_url") or ""))

    return urls


# Keys that were typed on a dashboard of one's own, by address: held by this process and written nowhere.
_typed_keys: dict[Any, str] = {}


def hold_key(base_url: str, key: str) -> None:
    """Hold a typed key for its address while this process lives, so that a reload or a resume need not ask again.

    Where visitors share the dashboard nothing is held: a key is its session's. ConfigError for a malformed address.
    """
    if key.strip() and mode() is Mode.LOCAL:
        _typed_keys[address.parse(address.address(base_url))] = key.strip()


def typed_key(base_url: str) -> str:
    """Return the key that was typed for this address on a dashboard of one's own; empty for none."""
    if mode() is not Mode.LOCAL:
        return ""

    return _typed_keys.get(address.parse(address.address(base_url)), "")


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


def configured() -> list[str]:
    """Return the addresses that the operator set up for this process, the first of which forms begin with."""
    named = (os.environ.get(name, "").strip() for name in address.URL_VARIABLES)
    return list(filter(None, named))


def endpoints() -> list[str]:
    """Return the addresses that the operator set up."""
    return [*_listed(ENDPOINTS), *configured()]


def _asks(settings: Mapping[str, Any]) -> bool:
    """Return True if an endpoint writes the queries."""
    generator = GENERATORS.get(str(settings.get("generator")))
    return generator is not None and generator.endpoint
