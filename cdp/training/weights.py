"""The raw weight of each pair, before the loss normalises over a batch. ``weightings`` has one file for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import ConfigError
from cdp.base.failures import Failures
from cdp.training.pairs import PairSet
from cdp.training.weightings import WEIGHTINGS, Weighting
from cdp.training.weightings.column import read_weights


def raw_weights(
    queries: Sequence[str], weighting: str, *, language: str = "en", kappa: float = 100.0
) -> NDArray[np.float64]:
    """float64, shape (n,): what the loss normalises to mean 1 over each global batch (Eq. 2 for ``cw``, κ=100).

    For weightings that the queries alone determine; ConfigError for an unknown one or one that needs more.
    """
    chosen = WEIGHTINGS.named(weighting)
    if chosen.needs:
        raise ConfigError(f"The weighting {weighting!r} needs more than the queries themselves.")
    return chosen.raw(queries, language, kappa)


def pair_weights(
    pairs: PairSet, weighting: str, *, kappa: float = 100.0, file: str = "", failures: Failures | None = None
) -> NDArray[np.float64]:
    """The raw weights of a pair set, shape (n,), without RI, which the loss multiplies in while training.

    The queries of a mixed set are counted each in its own language. ``file`` holds the weights for the weighting
    ``column``, see ``cdp.training.weightings.column``. A query that cannot be weighted goes to ``failures`` and
    has NaN.
    """
    chosen = WEIGHTINGS.named(weighting)
    if chosen.needs == "column":
        return read_weights(file, pairs.query_ids)
    failures = failures or Failures()
    weights = np.full(len(pairs), np.nan)
    of_pair = np.array(pairs.languages)
    for language in dict.fromkeys(of_pair.tolist()):
        weights[of_pair == language] = _of_language(chosen, pairs, of_pair == language, language, kappa, failures)
    return weights


def _of_language(
    weighting: Weighting, pairs: PairSet, chosen: NDArray[np.bool_], language: str, kappa: float, failures: Failures
) -> NDArray[np.float64]:
    """The raw weights of the chosen pairs, NaN where a query could not be weighted."""
    rows = np.flatnonzero(chosen)
    weights = failures.batch(
        lambda queries: weighting.raw(queries, language, kappa),
        [pairs.queries[row] for row in rows],
        lambda i: pairs.query_ids[rows[i]],
        str,
    )
    return np.array([np.nan if weight is None else weight for weight in weights], dtype=np.float64)
