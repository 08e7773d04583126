"""The Complexity-Diversity Principle: published figures, correlation with CW, threshold, recommendation."""

from __future__ import annotations

from cdp.principle.advice import Expected, Split, Suggestion, WeightingAdvice
from cdp.principle.correlation import (
    Correlation,
    Line,
    PositiveRate,
    Threshold,
    by_condition,
    correlation_table,
    dataset_means,
    line,
    positive_rates,
    threshold,
    why_no_threshold,
)
from cdp.principle.differences import (
    ALL,
    COMPARISONS,
    DATASET_CHOICES,
    MULTI_HOP,
    PARAPHRASE,
    SCALING,
    WEIGHTING,
    Difference,
    differences,
    other_differences,
    weighting_differences,
)
from cdp.principle.recommend import AVOID_BELOW, RECOMMEND_ABOVE, Recommendation, level_of, recommend

__all__ = [
    "ALL",
    "AVOID_BELOW",
    "COMPARISONS",
    "DATASET_CHOICES",
    "MULTI_HOP",
    "PARAPHRASE",
    "RECOMMEND_ABOVE",
    "SCALING",
    "WEIGHTING",
    "Correlation",
    "Difference",
    "Expected",
    "Line",
    "PositiveRate",
    "Recommendation",
    "Split",
    "Suggestion",
    "Threshold",
    "WeightingAdvice",
    "by_condition",
    "correlation_table",
    "dataset_means",
    "differences",
    "level_of",
    "line",
    "other_differences",
    "positive_rates",
    "recommend",
    "threshold",
    "weighting_differences",
    "why_no_threshold",
]
