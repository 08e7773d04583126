"""A plan's figures in words, as the page and the command line show them."""

from __future__ import annotations

from cdp.planning.quantities import long_time
from cdp.planning.rates import Span


def interval(span: Span | None) -> str:
    """``12 h (9 h to 14 h)``; unknown where nobody knows."""
    if span is None:
        return "unknown"
    if max(span.seconds, span.high or 0.0) < 1.0:
        return "under 1 s"
    if span.low is None or span.high is None:
        return long_time(span.seconds)
    return f"{long_time(span.seconds)} ({long_time(span.low)} to {long_time(span.high)})"


def money(known: float, whole: bool) -> str:
    """A price in US dollars; ``over $3`` where a part of it is not known, ``none`` where nothing is counted."""
    if whole and not known:
        return "none"
    shown = f"${known:,.2f}" if known >= 0.1 else f"${known:.2g}"
    return shown if whole else f"over {shown}" if known else "unknown"
