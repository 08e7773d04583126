"""A weighting: a number of at least 0 for each query; only ratios count. See cdp.training.weightings."""

import numpy as np

from cdp.training.weightings import Weighting

WEIGHTING = Weighting(
    "length",
    "Length",
    "A pair counts by the length of its query.",
    lambda queries, language, kappa: np.array([float(len(query)) for query in queries]),
)
