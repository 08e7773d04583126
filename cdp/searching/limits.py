"""How much memory the search process may hold, how long it waits for the next query, and how long an index may take."""

from __future__ import annotations

import os

from cdp.base.errors import ConfigError

MEMORY = "CDP_SEARCH_MEMORY_GB"
IDLE = "CDP_SEARCH_IDLE_MINUTES"
PATIENCE = "CDP_SEARCH_INDEX_SECONDS"

IDLE_MINUTES = 10.0
"""Long enough to read a document and come back, short enough that the memory is free over lunch."""

PATIENCE_S = 15.0
"""An index that takes longer to make is made by a job: nobody should watch a page for longer without a figure."""

SHARE, AT_MOST_GB = 0.25, 8.0
"""A quarter of the machine's memory, for a training may run beside it, and never more than this."""


def memory_limit() -> int:
    """Bytes. ConfigError where the setting is no number above 0."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (OSError, ValueError):
        machine = AT_MOST_GB
    return int(_number(MEMORY, min(AT_MOST_GB, SHARE * machine)) * 2**30)


def idle_seconds() -> float:
    """Seconds. ConfigError where the setting is no number above 0."""
    return 60 * _number(IDLE, IDLE_MINUTES)


def patience_seconds() -> float:
    """Seconds that an index may take to make while somebody waits. ConfigError where the setting is no number."""
    return _number(PATIENCE, PATIENCE_S)


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"{variable} must be a number above 0, not {text[:40]!r}.")
    return value
