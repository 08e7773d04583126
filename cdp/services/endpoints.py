"""Which endpoints may be asked from here, and with which key.

Address and key are decided by ``cdp.llm.address`` for every face; this adds what a visitor may do. On a shared
dashboard no address is asked unless the operator set it up with a key or ``CDP_ALLOWED_ENDPOINTS`` (separated by
commas) names it, so that the server's network stays closed to visitors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cdp.llm import address
from cdp.llm.address import Endpoint
from cdp.services.modes import Action, Mode, NotAllowedError, may, mode
from cdp.synthesis.generators import GENERATORS

ALLOWED = "CDP_ALLOWED_ENDPOINTS"
OWN = address.OWN


def configured() -> str:
    """Return the endpoint that the operator set up, as a form's first value; empty for OpenAI itself."""
    return next((url for name in address.URL_VARIABLES if (url := os.environ.get(name, "").strip())), "")


def endpoint_for(settings: Mapping[str, Any], typed: str = "") -> Endpoint:
    """Return the endpoint of a job or a preview with these settings, and the key ``typed`` for it or the server's own.

    NotAllowedError for an endpoint that may not be asked; ConfigError for an address that is none, and on the command
    line for a key that was given for another address (a dashboard has a field for the key: empty means none).
    """
    if not _asks(settings):
        return Endpoint(key=typed.strip())
    base_url = str(settings.get("base_url") or "")
    check(base_url)
    own = os.environ if may(Action.KEY) else {}
    url = address.address(base_url)
    return address.resolve(url, typed, keyless=mode() is not Mode.OPERATOR, environment=own)


def needs_key(settings: Mapping[str, Any]) -> bool:
    """Return True if a job that ran with a key cannot go on with a key of this process's environment."""
    return _asks(settings) and not server_key(str(settings.get("base_url") or ""))


def server_key(base_url: str) -> str:
    """Return the name of the server's key that is for this endpoint and may be used; empty for none."""
    return address.key_name(address.address(base_url)) if may(Action.KEY) else ""


def check(base_url: str) -> None:
    """Raise unless this endpoint may be asked from here."""
    url = address.address(base_url)
    if may(Action.ANY_ENDPOINT) or server_key(url):
        return
    if not (may(Action.ASK) and any(address.same(url, other) for other in allowed())):
        raise NotAllowedError(
            f"The endpoint {url} may not be asked from this dashboard.",
            hint=f"Have the operator add it to {ALLOWED}.",
        )


def allowed() -> list[str]:
    """Return the addresses that the operator set up."""
    listed = [part.strip() for part in os.environ.get(ALLOWED, "").split(",")]
    named = [os.environ.get(name, "").strip() for name in address.URL_VARIABLES]
    return [url for url in (*listed, *named) if url]


def _asks(settings: Mapping[str, Any]) -> bool:
    """Return True if an endpoint writes the queries."""
    generator = GENERATORS.get(str(settings.get("generator")))
    return generator is not None and generator.endpoint
