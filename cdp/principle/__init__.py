"""The Complexity-Diversity Principle: published figures, correlation with CW, threshold, recommendation."""

from __future__ import annotations

from cdp.principle.correlation import (
    ALL,
    COMPARISONS,
    DATASET_CHOICES,
    MULTI_HOP,
    PARAPHRASE,
    SCALING,
    WEIGHTING,
    Correlation,
    Difference,
    PositiveRate,
    Threshold,
    correlation_table,
    dataset_means,
    differences,
    fit_of_means,
    positive_rates,
    threshold,
)
from cdp.principle.decide import Decision, decide
from cdp.principle.recommend import (
    AVOID_BELOW,
    KINDS,
    RECOMMEND_ABOVE,
    Recommendation,
    kinds_of_datasets,
    level_of,
    recommend,
)

__all__ = [
    "ALL", "AVOID_BELOW", "COMPARISONS", "DATASET_CHOICES", "KINDS", "MULTI_HOP", "PARAPHRASE", "RECOMMEND_ABOVE",
    "SCALING", "WEIGHTING", "Correlation", "Decision", "Difference", "PositiveRate", "Recommendation", "Threshold",
    "correlation_table", "dataset_means", "decide", "differences", "fit_of_means", "kinds_of_datasets", "level_of",
    "positive_rates", "recommend", "threshold",
]  # fmt: skip
