"""Two query sets for the same documents: whether a measure differs, document by document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdp.base.errors import InputError
from cdp.base.statistics import bootstrap_interval


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """second − first over the documents that have a value in both.

    ``interval`` is the 95% bootstrap interval of the mean difference; ``higher`` the share of documents where the
    second is higher. Documents differ far more from each other than two sets do on one document, so this can tell
    sets apart whose own intervals overlap.
    """

    mean: float
    interval: tuple[float, float]
    higher: float
    n_documents: int


def paired_difference(
    first_ids: Sequence[str],
    first: ArrayLike,
    second_ids: Sequence[str],
    second: ArrayLike,
    *,
    seed: int = 0,
) -> PairedDifference:
    """Compare a measure's per-document values of two sets, NaN or None where it is not defined.

    InputError if no document has a value in both.
    """
    a = dict(zip(first_ids, np.asarray(first, dtype=np.float64).tolist(), strict=True))
    b = dict(zip(second_ids, np.asarray(second, dtype=np.float64).tolist(), strict=True))
    differences = np.array([b[name] - a[name] for name in a if name in b], dtype=np.float64)
    differences = differences[~np.isnan(differences)]
    if len(differences) == 0:
        raise InputError("The two query sets have no document in common that has a value in both.")
    return PairedDifference(
        mean=float(differences.mean()),
        interval=bootstrap_interval(differences, seed=seed),
        higher=float((differences > 0).mean()),
        n_documents=len(differences),
    )
