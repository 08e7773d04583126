"""The endpoint in use, its parameters, which key belongs to it: one decision for every caller; invalid addresses.

The address is ``base_url``, else ``CDP_BASE_URL``, else ``OPENAI_BASE_URL``, else OpenAI. Each key of the environment
belongs to one address and is sent nowhere else: ``CDP_API_KEY`` to that of ``CDP_BASE_URL`` (else ``OPENAI_BASE_URL``,
else OpenAI), ``OPENAI_API_KEY`` to that of ``OPENAI_BASE_URL`` (else OpenAI).

Parameters of an address are kept and belong to it (Azure's ``?api-version=``), except keys: an address is stored with
the results. The end of a whole path (``/chat/completions``) is left out, since requests add their own.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from cdp.base.errors import ConfigError, RefusedError
from cdp.base.hosts import loopback

OPENAI_URL = "https://api.openai.com/v1"
URL_VARIABLES = ("CDP_BASE_URL", "OPENAI_BASE_URL")
OWN = "CDP_API_KEY"
# The variables of each key's address; the first one that is set counts.
KEYS = {OWN: URL_VARIABLES, "OPENAI_API_KEY": ("OPENAI_BASE_URL",)}

NO_KEY = "none"  # sent to endpoints without keys: the client requires some text
MAX_URL = 2000

# What requests add to an address, or a person copies with it.
_PATHS = ("/chat/completions", "/completions", "/embeddings")
# Parameters that hold a key by their name or their length; a version ("2025-04-01-preview") is shorter.
_KEY = re.compile(r"key|token|secret|passw|pwd|credential|auth|sig|(?:^|[-_])(?:k|code|sas|access)(?:[-_]|$)", re.I)
_LONGEST_VALUE = 24

# Characters that libraries parse differently within an address.
_ODD = re.compile(r"[\s\\\x00-\x20\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Endpoint:
    """An address with its key; ``url`` is empty if no endpoint is used."""

    url: str = ""
    key: str = field(default="", repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment with which a job's worker resolves to this endpoint. Empty values unset variables."""
        key = "" if self.key == NO_KEY else self.key
        if self.url:
            # A worker inherits the submitter's environment: keys of other addresses are removed.
            return {"CDP_BASE_URL": self.url, **dict.fromkeys(KEYS, ""), OWN: key}
        return {OWN: key} if key else {}


def resolve(
    base_url: str = "", key: str = "", *, keyless: bool = False, environment: Mapping[str, str] | None = None
) -> Endpoint:
    """Return the endpoint for these settings.

    ``key`` was given for ``base_url`` itself (typed, or passed by a caller); without it the environment's key for that
    address is used. If the environment only has a key for another address, ConfigError, or no key with ``keyless`` (a
    field for the key was left empty). Also ConfigError for an invalid address; RefusedError if OpenAI has no key, or
    the key is malformed.
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
                f"The key in {other} was given for {_first_set(KEYS[other], environment)} and is not sent to {url}.",
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
    """Return the address that requests add their path to; ConfigError for an invalid one."""
    url = base_url.strip() or _first_set(URL_VARIABLES, environment)
    parse(url)
    return _base(url)


def split_query(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without its parameters, and these."""
    path, _, query = url.partition("?")
    return path, dict(parse_qsl(query, keep_blank_values=True))


def _base(url: str) -> str:
    path, _, query = url.strip().partition("?")
    path = path.rstrip("/")
    for end in _PATHS:
        if path.endswith(end):
            path = path.removesuffix(end).rstrip("/")
            break

    return f"{path}?{query}" if query else path


def key_name(url: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the name of the environment's key for this address; empty if there is none."""
    environment = os.environ if environment is None else environment
    return next((n for n in KEYS if _get(environment, n) and same(url, _first_set(KEYS[n], environment))), "")


def same(url: str, other: str) -> bool:
    """Return True if two addresses are the same endpoint."""
    return parse(url) == parse(other)


def parse(url: str) -> tuple[str, str, int, str, tuple[tuple[str, str], ...]]:
    """Return scheme, host, port, path and sorted parameters; ConfigError for an invalid address."""
    text = _base(url)

    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").rstrip("."), parts.port
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        keyed = any(_KEY.search(name) or len(value) > _LONGEST_VALUE for name, value in query)
        secret = keyed or any((parts.username, parts.password, parts.fragment))
        usable = parts.scheme in ("http", "https") and bool(host) and port != 0 and len(text) <= MAX_URL
        host.encode("idna")
    except ValueError:  # a port that is no number, half of a bracket, a label of 64 characters, a parameter without "="
        raise _no_address(text, secret="@" in text or "?" in text) from None

    if not usable or secret or "://" in parts.path or _ODD.search(text):
        raise _no_address(text, secret=secret)

    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80), parts.path, tuple(sorted(query))


def environment(endpoints: Sequence[Endpoint]) -> dict[str, str]:
    """Return the environment with which a job's worker resolves to each of these endpoints; ConfigError for three."""
    first, *more = endpoints
    if not more:
        return first.environment
    if len(more) > 1:
        named = ", ".join(endpoint.url for endpoint in endpoints)
        raise ConfigError(f"A job asks at most two addresses, not {named}.", hint="Start a job for each retriever.")
    return {"CDP_BASE_URL": first.url, OWN: first.key, "OPENAI_BASE_URL": more[0].url, "OPENAI_API_KEY": more[0].key}


def _no_address(text: str, *, secret: bool) -> ConfigError:
    if secret:
        return ConfigError(
            "The endpoint's address must not hold a user, a password or a key: it is stored with the results.",
            hint=f"Set {OWN} instead.",
        )
    shown = repr(text[:80])
    if len(text) > 80:
        shown += "…"
    return ConfigError(f"{shown} is not the address of an endpoint.", hint="Give one, as http://localhost:8000/v1.")


def _first_set(variables: Sequence[str], environment: Mapping[str, str] | None) -> str:
    """Return the address in the first of these variables that is set, else OpenAI's."""
    environment = os.environ if environment is None else environment
    return next(filter(None, (_get(environment, name) for name in variables)), OPENAI_URL)


def _get(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip() if name else ""


# The proxies of the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, in either case.
#
# httpx2 builds every proxy that is set, also one that no address needs: a value that it cannot use is an error of any
# client. It sends loopback addresses through a proxy like others; here they never are.

SCHEMES = ("http", "https", "socks5", "socks5h")


def check_proxies() -> dict[str, str]:
    """Return {scheme: variable and value, without a password}. ConfigError names a proxy that cannot be used."""
    from urllib.request import getproxies  # 7 ms, where a command starts that asks no address

    found: dict[str, str] = {}
    for scheme, value in getproxies().items():
        if scheme not in ("http", "https", "all"):
            continue

        named = [n for n in os.environ if n.lower() == f"{scheme}_proxy" and os.environ[n] == value]
        kind, mark, rest = value.rpartition("://")
        found[scheme] = f"{named[0] if named else scheme}={kind}{mark}{rest.rpartition('@')[2]}"
        if trouble := _proxy_trouble(value):
            hint = "Correct the variable or unset it, also in lower case."
            raise ConfigError(f"The proxy {found[scheme]} cannot be used: {trouble}.", hint=hint)

    return found


def _proxy_trouble(value: str) -> str:
    """Return why a proxy cannot be used; empty for one that can."""
    import httpx2

    kind, mark, _ = value.rpartition("://")
    try:
        usable = bool(httpx2.Proxy(value if mark else f"http://{value}").url.host)  # as httpx2 reads it
    except (ValueError, httpx2.InvalidURL):
        usable = False

    if not usable:
        return f"it needs a host, and one of the schemes {', '.join(SCHEMES)}"
    if kind.startswith("socks") and importlib.util.find_spec("socksio") is None:
        return "SOCKS needs the package socksio"
    return ""


def proxy_for(url: str) -> str:
    """Return the variable and value of the proxy that requests to this address go through; empty for none."""
    from urllib.request import proxy_bypass

    if loopback(url):
        return ""
    found, parts = check_proxies(), urlsplit(url)
    return "" if proxy_bypass(parts.netloc) else found.get(parts.scheme) or found.get("all", "")
