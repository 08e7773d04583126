"""The host that a request names in its Host header, and which hosts are this machine alone (loopback)."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

# RFC 9110, section 7.2, with fewer characters than RFC 3986 allows: names of letters, digits, dots, dashes and
# underscores, IPv4, or IPv6 in brackets without a zone. Nothing in it can be read in two ways.
_HOST = re.compile(r"(?:([a-z0-9_][a-z0-9_.-]{0,252})|\[([0-9a-f:.]{2,45})\])(?::([0-9]{1,5}))?", re.ASCII)


def host_of(header: str) -> str:
    """Return the name or address in a ``Host`` header in small letters; an empty text where it is none."""
    match = _HOST.fullmatch(header.lower()) if header.isascii() else None
    if match is None or int(match[3] or 0) > 65535:
        return ""
    return match[1] or match[2]


def loopback(host: str) -> bool:
    """Return True for a name, an address or a URL that is this machine's alone; an empty one listens everywhere."""
    if "://" in host:
        host = (urlsplit(host).hostname or "").removesuffix(".")
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
