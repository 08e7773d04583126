"""The proxies of the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, in either case; none for loopback.

httpx2 builds every proxy that is set, also one that no address needs: a value that it cannot use is an error of any
client. It sends loopback addresses through a proxy like others; here they never are.
"""

from __future__ import annotations

import importlib.util
import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from cdp.base.errors import ConfigError
from cdp.base.hosts import loopback

SCHEMES = ("http", "https", "socks5", "socks5h")


def check() -> dict[str, str]:
    """Return {scheme: variable and value, without a password}. ConfigError names a proxy that cannot be used."""
    import httpx2

    found: dict[str, str] = {}
    for scheme, value in getproxies().items():
        if scheme not in ("http", "https", "all"):
            continue
        name = next((n for n in os.environ if n.lower() == f"{scheme}_proxy" and os.environ[n] == value), scheme)
        kind, mark, rest = value.rpartition("://")
        found[scheme] = f"{name}={kind}{mark}{rest.rpartition('@')[2]}"
        try:
            usable = bool(httpx2.Proxy(value if mark else f"http://{value}").url.host)  # as httpx2 reads it
        except (ValueError, httpx2.InvalidURL):
            usable = False
        trouble = "" if usable else f"it needs a host, and one of the schemes {', '.join(SCHEMES)}"
        if usable and kind.startswith("socks") and importlib.util.find_spec("socksio") is None:
            trouble = "SOCKS needs the package socksio"
        if trouble:
            hint = "Correct the variable or unset it, also in lower case."
            raise ConfigError(f"The proxy {found[scheme]} cannot be used: {trouble}.", hint=hint)
    return found


def proxy_for(url: str) -> str:
    """Return the variable and value of the proxy that requests to this address go through; empty for none."""
    if loopback(url):
        return ""
    found, parts = check(), urlsplit(url)
    return "" if proxy_bypass(parts.netloc) else found.get(parts.scheme) or found.get("all", "")
