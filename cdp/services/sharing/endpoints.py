"""Which endpoints may be asked, and which key goes where.

The server's own keys, from its environment, are for the endpoints that the operator set up with them: ``CDP_API_KEY``
for ``CDP_BASE_URL``, ``OPENAI_API_KEY`` for ``OPENAI_BASE_URL``; without such an address, for OpenAI itself. Another
address gets the key that was typed for it, or none. On a shared dashboard no other address is asked at all unless
``CDP_ALLOWED_ENDPOINTS`` (separated by commas) names it, so that nobody can look around behind the server.

An endpoint may have several addresses, separated by commas, and one key goes to all of them. So each has to be allowed,
and a key of the server's is sent only where every one of them is what that key is for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from cdp.base.errors import ConfigError
from cdp.services.sharing.modes import Action, Mode, NotAllowedError, may, mode
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.generators.addresses import OPENAI_URL, split
from cdp.synthesis.generators.openai_chat import NO_KEY

ALLOWED = "CDP_ALLOWED_ENDPOINTS"
OWN = "CDP_API_KEY"
KEYS = {OWN: ("CDP_BASE_URL", "OPENAI_BASE_URL"), "OPENAI_API_KEY": ("OPENAI_BASE_URL",)}
"""The server's keys, each with the variables that may name its endpoint, the first that is set."""

_ODD = re.compile(r"[\s\\\x00-\x1f\x7f]")
"""What libraries read in different ways within an address."""


@dataclass(frozen=True)
class Key:
    """What a request is sent with: ``value`` for a generator in this process, ``environment`` for a job's worker.

    An empty value in ``environment`` keeps the server's own key of that name from the worker.
    """

    value: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def configured() -> str:
    """The endpoint that the operator set up, as a form's first value; empty for OpenAI itself."""
    return next((url for name in ("CDP_BASE_URL", "OPENAI_BASE_URL") if (url := _environment(name))), "")


def key_for(settings: Mapping[str, Any], typed: str = "") -> Key:
    """The key for a job or a preview with these settings. The operator's own processes decide for themselves.

    NotAllowedError for an endpoint that may not be asked, ConfigError for an address that is none.
    """
    typed = typed.strip()
    if not _asks(settings) or mode() is Mode.OPERATOR:
        return Key(typed, {OWN: typed} if typed else {})
    url = str(settings.get("base_url") or "")
    check(url)
    if typed:
        return Key(typed, {OWN: typed})
    own = server_key(url)
    if own:
        return Key(_environment(own), {name: "" for name in KEYS if name != own and _environment(name)})
    withheld = {name: "" for name in KEYS if _environment(name)}
    if address(OPENAI_URL) in addresses(url):
        raise ConfigError("OpenAI needs an API key and the server has none for it.", hint="Enter a key of yours.")
    return Key(NO_KEY, withheld)


def withheld(settings: Mapping[str, Any]) -> bool:
    """Whether the server has a key that a job with these settings does not get: one has to be typed for it."""
    if not _asks(settings) or mode() is Mode.OPERATOR:
        return False
    return any(map(_environment, KEYS)) and not server_key(str(settings.get("base_url") or ""))


def server_key(url: str) -> str:
    """The name of the server's key that is for this endpoint and may be used; empty for none."""
    if not may(Action.KEY):
        return ""
    for name, urls in KEYS.items():
        own = next((value for variable in urls if (value := _environment(variable))), OPENAI_URL)
        if _environment(name) and addresses(url) <= addresses(own):
            return name
    return ""


def check(url: str) -> None:
    """Raise unless this endpoint may be asked from here, at each of its addresses."""
    addresses(url)
    if may(Action.ANY_ENDPOINT):
        return
    for each in split(url):
        if not server_key(each) and not (may(Action.ASK) and address(each) in _allowed()):
            raise NotAllowedError(
                f"The endpoint {each} may not be asked from this dashboard.",
                hint=f"Have the operator add it to {ALLOWED}.",
            )


def _allowed() -> set[tuple[str, str, int, str]]:
    named = (_environment(variable) for variable in (ALLOWED, "CDP_BASE_URL", "OPENAI_BASE_URL"))
    return {each for value in named if value.strip(", ") for each in addresses(value)}


def addresses(url: str) -> set[tuple[str, str, int, str]]:
    """What ``address`` makes of each address of an endpoint."""
    return {address(each) for each in split(url)}


def address(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and path of one address, as two are compared; ConfigError if it is none."""
    text = url.strip().rstrip("/") or OPENAI_URL
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{url!r} is not the address of an endpoint: {error}.") from error
    plain = parts.hostname and not parts.username and not parts.password and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not plain or _ODD.search(text):
        raise ConfigError(
            f"{url!r} is not the address of an endpoint.",
            hint="For example http://localhost:8000/v1; several are separated by commas.",
        )
    assert parts.hostname
    return parts.scheme, parts.hostname.rstrip("."), port or (443 if parts.scheme == "https" else 80), parts.path


def _asks(settings: Mapping[str, Any]) -> bool:
    """Whether what writes the queries is an endpoint."""
    generator = GENERATORS.get(str(settings.get("generator")))
    return generator is not None and generator.endpoint


def _environment(name: str) -> str:
    return os.environ.get(name, "").strip()
