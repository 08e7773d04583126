"""The raw weight of each pair, before the loss normalises over a batch. One function per weighting, one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import ConfigError
from cdp.base.failures import Failures
from cdp.complexity import count_content_words
from cdp.training.pairs import PairSet
from cdp.training.weights_file import read_weights


@dataclass(frozen=True, slots=True)
class Weighting:
    """How pairs are weighted. ``raw`` maps (queries, language, κ) to non-negative weights, shape (n,).

    ``needs`` names what there must be besides the queries: "" nothing, "reasoning" a query set with the reasoned form
    of each query (``raw`` is then multiplied by RI), "column" a file with a weight per query.
    """

    name: str
    title: str
    help: str
    raw: Callable[[Sequence[str], str, float], NDArray[np.float64]]
    needs: str = ""


def _equal(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    return np.ones(len(queries), dtype=np.float64)


def _content_words(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    return np.minimum(count_content_words(queries, language).astype(np.float64), kappa)


WEIGHTINGS: Mapping[str, Weighting] = {
    weighting.name: weighting
    for weighting in (
        Weighting("none", "None", "Every pair counts the same: plain InfoNCE.", _equal),
        Weighting(
            "cw",
            "Content words (CW)",
            "A pair counts in proportion to its query's content words, capped at κ (Eq. 2).",
            _content_words,
        ),
        Weighting(
            "ri",
            "Reasoning intensity (RI)",
            "A pair counts by how much easier its query gets for the model once it is thought through: the loss of q "
            "over the loss of its reasoned form q′, at most 5.",
            _equal,
            needs="reasoning",
        ),
        Weighting("ri-cw", "RI × CW", "The product of both.", _content_words, needs="reasoning"),
        Weighting(
            "column", "A column of your own", "The weight that a file of yours gives each query.", _equal, "column"
        ),
    )
}


def raw_weights(
    queries: Sequence[str], weighting: str, *, language: str = "en", kappa: float = 100.0
) -> NDArray[np.float64]:
    """float64, shape (n,): what the loss normalises to mean 1 over each global batch (Eq. 2 for ``cw``, κ=100).

    For weightings that the queries alone determine; ConfigError for an unknown one or one that needs more.
    """
    found = weighting_named(weighting)
    if found.needs:
        raise ConfigError(f"The weighting {weighting!r} needs more than the queries themselves.")
    return found.raw(queries, language, kappa)


def weighting_named(name: str) -> Weighting:
    """The weighting of that name; ConfigError names those there are."""
    if name not in WEIGHTINGS:
        raise ConfigError(f"No weighting is called {name!r}.", hint=f"There is: {', '.join(WEIGHTINGS)}.")
    return WEIGHTINGS[name]


def pair_weights(
    pairs: PairSet, weighting: str, *, kappa: float = 100.0, file: str = "", failures: Failures | None = None
) -> NDArray[np.float64]:
    """The raw weights of a pair set, shape (n,), without RI, which the loss multiplies in while training.

    The queries of a mixed set are counted each in its own language. ``file`` holds the weights for the weighting
    ``column``, see ``cdp.training.weights_file``. A query that cannot be weighted goes to ``failures`` and has NaN.
    """
    found = weighting_named(weighting)
    if found.needs == "column":
        return read_weights(file, pairs.query_ids)
    failures = failures or Failures()
    weights = np.full(len(pairs), np.nan)
    of_pair = np.array(pairs.languages)
    for language in dict.fromkeys(of_pair.tolist()):
        weights[of_pair == language] = _of_language(found, pairs, of_pair == language, language, kappa, failures)
    return weights


def _of_language(
    weighting: Weighting, pairs: PairSet, chosen: NDArray[np.bool_], language: str, kappa: float, failures: Failures
) -> NDArray[np.float64]:
    """The raw weights of the chosen pairs, NaN where a query could not be weighted."""
    rows = np.flatnonzero(chosen)
    weights = failures.batch(
        lambda queries: weighting.raw(queries, language, kappa),
        [pairs.queries[row] for row in rows],
        lambda place: pairs.query_ids[rows[place]],
        str,
    )
    return np.array([np.nan if weight is None else weight for weight in weights], dtype=np.float64)
