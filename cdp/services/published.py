"""The published evidence, for pages and the command line."""

from __future__ import annotations

from cdp.principle import (
    COMPARISONS,
    Correlation,
    Difference,
    PositiveRate,
    Threshold,
    correlation_table,
    differences,
    positive_rates,
    threshold,
)

__all__ = [
    "COMPARISONS",
    "Correlation",
    "Difference",
    "PositiveRate",
    "Threshold",
    "correlation_table",
    "differences",
    "positive_rates",
    "threshold",
]
