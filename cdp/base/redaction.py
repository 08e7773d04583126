"""Cutting keys out of text: out of answers before they are stored, and out of logs before they are shown.

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


def is_secret(name: str) -> bool:
    """Return True if an environment variable of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))


def without_secrets(text: str, *keys: str) -> str:
    """Return ``text`` without ``keys`` and without the values of this process's secret variables."""
    # Shorter ones are placeholders ("none", "EMPTY") and words of any text.
    known = {key for key in keys if len(key) >= SHORTEST} | set(_own())
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, CUT)
    return text


def redact(text: str) -> str:
    """Return ``text`` without this process's secrets and without what looks like a key."""
    text = without_secrets(text)
    for pattern in _PATTERNS:
        text = pattern.sub(CUT, text)
    return _NAMED.sub(rf"\1{CUT}", text)


def _own() -> set[str]:
    return {value for name, value in os.environ.items() if is_secret(name) and len(value) >= SHORTEST}
