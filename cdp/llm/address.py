"""Which endpoint is asked, and with which key: one decision for command line, pages, jobs, resumes, clones and studies.

An explicit ``base_url`` comes first, then ``CDP_BASE_URL``, then ``OPENAI_BASE_URL``, then OpenAI itself. A key of the
environment is for one address: ``CDP_API_KEY`` for that of ``CDP_BASE_URL`` (else ``OPENAI_BASE_URL``, else OpenAI),
``OPENAI_API_KEY`` for that of ``OPENAI_BASE_URL`` (else OpenAI). It is sent nowhere else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cdp.base.errors import ConfigError, RefusedError

OPENAI_URL = "https://api.openai.com/v1"
URL_VARIABLES = ("CDP_BASE_URL", "OPENAI_BASE_URL")
OWN = "CDP_API_KEY"
# Each key with the variables that may name its address: the first one that is set.
KEYS = {OWN: URL_VARIABLES, "OPENAI_API_KEY": ("OPENAI_BASE_URL",)}

# Sent to endpoints that want no key: the client insists on some text.
NO_KEY = "none"
MAX_URL = 2000

# Characters that libraries read in different ways within an address.
_ODD = re.compile(r"[\s\\\x00-\x20\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Endpoint:
    """An address with the key that is sent to it; ``url`` is empty where no endpoint is asked."""

    url: str = ""
    key: str = field(default="", repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables under which a job's worker resolves to this endpoint. An empty value unsets one."""
        # A worker inherits the submitter's environment, so keys for other addresses are taken out of it.
        key = "" if self.key == NO_KEY else self.key
        if not self.url:
            return {OWN: key} if key else {}
        return {"CDP_BASE_URL": self.url, **dict.fromkeys(KEYS, ""), OWN: key}


def resolve(
    base_url: str = "", key: str = "", *, keyless: bool = False, environment: Mapping[str, str] | None = None
) -> Endpoint:
    """Return the endpoint for these settings: its address and the key given for that address.

    ``key`` is one that was given for ``base_url`` itself (typed into a form, passed by a caller). Without it, the
    environment's key for that address is used. Raises ConfigError for a text that is no address, and where the
    environment only has a key for another address; with ``keyless`` (the person saw a field for the key and left it
    empty) the request then goes without a key. RefusedError where OpenAI has no key, or the key is malformed.
    """
    environment = os.environ if environment is None else environment
    url = address(base_url, environment)
    key = key.strip()
    if not key:
        name = key_name(url, environment)
        key = _get(environment, name)
        other = next((n for n in KEYS if _get(environment, n)), "")
        if not key and other and not keyless:
            raise ConfigError(
                f"The key in {other} was given for {_home(other, environment)} and is not sent to {url}.",
                hint=f"Set CDP_BASE_URL={url} and {OWN} to the key for that address ({OWN}={NO_KEY} if it needs none).",
            )
    if not key and same(url, OPENAI_URL):
        raise RefusedError(
            "OpenAI needs an API key and none is set.", hint=f"Set {' or '.join(KEYS)}, or enter the key."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise RefusedError(
            "The API key holds characters that no key has.", hint="Copy it again, without quotes and line breaks."
        )
    return Endpoint(url, key or NO_KEY)


def address(base_url: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Return the address that is asked, without a slash at its end; ConfigError for a text that is none."""
    environment = os.environ if environment is None else environment
    named = (_get(environment, name) for name in URL_VARIABLES)
    url = base_url.strip().rstrip("/") or next((value.rstrip("/") for value in named if value), OPENAI_URL)
    parse(url)
    return url


def key_name(url: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the name of the environment's key for this address; empty if there is none."""
    environment = os.environ if environment is None else environment
    return next((n for n in KEYS if _get(environment, n) and same(url, _home(n, environment))), "")


def same(url: str, other: str) -> bool:
    """Return True if two addresses lead to the same endpoint, however they are spelt."""
    return parse(url) == parse(other)


def parse(url: str) -> tuple[str, str, int, str]:
    """Return scheme, host, port and path; ConfigError for what is not the address of one endpoint."""
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").rstrip("."), parts.port
        secret = any((parts.username, parts.password, parts.query, parts.fragment))
        usable = parts.scheme in ("http", "https") and bool(host) and port != 0 and len(text) <= MAX_URL
        host.encode("idna")
    except ValueError:  # a port that is no number, half of a bracket, a label of 64 characters
        raise _no_address(text, secret="@" in text) from None
    if not usable or secret or "://" in parts.path or _ODD.search(text):
        raise _no_address(text, secret=secret)
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80), parts.path


def _no_address(text: str, *, secret: bool) -> ConfigError:
    if secret:
        return ConfigError(
            "The endpoint's address must not hold a user, a password or a key: it is stored with the results.",
            hint=f"Set {OWN} instead.",
        )
    hint = "For example http://localhost:8000/v1."
    if text.count("://") > 1:
        hint = (
            "Give one address. Several servers of a model share the work behind a router: see docs/how-to/endpoint.md."
        )
    return ConfigError(f"{text[:80]!r}{'…' if len(text) > 80 else ''} is not the address of an endpoint.", hint=hint)


def _home(name: str, environment: Mapping[str, str]) -> str:
    """Return the address that the key in this variable was given for."""
    return next((url for variable in KEYS[name] if (url := _get(environment, variable))), OPENAI_URL)


def _get(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip() if name else ""
