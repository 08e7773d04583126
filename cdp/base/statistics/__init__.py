"""Statistics that several rooms share: intervals, lines through few datasets, correlations, paired tests.

Numbers in, numbers out: this room knows nothing of queries, trainings or files. ``docs/METHODS.md`` says which
statistic is used where, from which source, and how well its interval covers. Importing it loads NumPy alone.
"""

from __future__ import annotations

from cdp.base.statistics.lines import (
    LineFit,
    WithinSlope,
    crossing_of_lines,
    fit_line,
    leave_one_out,
    mean_interval,
    pearson,
    power_of_slope,
    prediction_interval,
    ranks,
    spearman,
    within_slope,
)
from cdp.base.statistics.paired import (
    SeedTest,
    bootstrap_interval,
    has_spread,
    holm,
    paired_test,
    randomisation_test,
    seed_spread,
    t_test,
    two_level_test,
)
from cdp.base.statistics.regression import Coefficient, cluster_regression

__all__ = [
    "Coefficient",
    "LineFit",
    "SeedTest",
    "WithinSlope",
    "bootstrap_interval",
    "cluster_regression",
    "crossing_of_lines",
    "fit_line",
    "has_spread",
    "holm",
    "leave_one_out",
    "mean_interval",
    "paired_test",
    "pearson",
    "power_of_slope",
    "prediction_interval",
    "randomisation_test",
    "ranks",
    "seed_spread",
    "spearman",
    "t_test",
    "two_level_test",
    "within_slope",
]
