"""Numbers as sentences and tables show them."""

from __future__ import annotations


def signed(value: float, digits: int = 2) -> str:
    """A difference with its sign and a true minus: ``+3.28``, ``−0.61``."""
    return f"{value:+.{digits}f}".replace("-", "−")


def counted(n: int, noun: str) -> str:
    """``1 benchmark``, ``3,141 benchmarks``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
