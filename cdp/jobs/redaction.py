"""Keys are cut out of what a job wrote before anybody reads it: logs, and the ends of logs in failures.

Workers do not print keys; libraries, endpoints and users' own code may.
"""

from __future__ import annotations

import os
import re

CUT = "[key cut out]"
SHORTEST = 8

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_PATTERNS = (
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}"),
    re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/=\-]{12,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|secret|password|passwd|(?:access|auth)[_-]?token)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{6,}"
)


def redact(text: str) -> str:
    """``text`` without this process's secrets and without what looks like a key."""
    for value in _own():
        text = text.replace(value, CUT)
    for pattern in _PATTERNS:
        text = pattern.sub(CUT, text)
    return _NAMED.sub(rf"\1{CUT}", text)


def _own() -> list[str]:
    """The values of this process's secret variables, the longest first."""
    named = {value for name, value in os.environ.items() if _SECRET_NAME.search(name) and len(value) >= SHORTEST}
    return sorted(named, key=len, reverse=True)
