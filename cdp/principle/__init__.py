"""The Complexity-Diversity Principle: published figures, correlation with CW, threshold, recommendation."""

from __future__ import annotations

from cdp.principle.correlation import Correlation, PositiveRate, Threshold, correlation_table, positive_rates, threshold
from cdp.principle.published import COMPARISONS, Difference, differences
from cdp.principle.recommend import AVOID_BELOW, RECOMMEND_ABOVE, Expected, Recommendation, level_of, recommend

__all__ = [
    "AVOID_BELOW",
    "COMPARISONS",
    "RECOMMEND_ABOVE",
    "Correlation",
    "Difference",
    "Expected",
    "PositiveRate",
    "Recommendation",
    "Threshold",
    "correlation_table",
    "differences",
    "level_of",
    "positive_rates",
    "recommend",
    "threshold",
]
