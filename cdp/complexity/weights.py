"""CW as a weight in the loss (Eq. 2 of the paper, eq:cw_weight_method)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError


def cw_weights(cw: ArrayLike, kappa: float = 100.0) -> NDArray[np.float64]:
    """w = min(CW, κ) / Σ min(CW, κ) · n over one batch: float64, shape (n,), mean 1.

    A batch without any content word gets equal weights. InputError for negative or non-finite CW, κ not
    above 0, or a sum too large for a number.
    """
    values = np.asarray(cw, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"CW must be one number per query, not an array of shape {values.shape}.")
    if not kappa > 0:
        raise InputError(f"κ must be above 0, not {kappa}.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("CW must be finite and not negative.")
    capped = np.minimum(values, kappa)
    with np.errstate(over="ignore"):
        total = capped.sum()
    if not np.isfinite(total):
        raise InputError("CW add up to more than a number can hold.", hint="Choose a smaller κ.")
    return capped / total * len(capped) if total > 0 else np.ones_like(capped)
