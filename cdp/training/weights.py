"""The raw weight of each pair, before the loss normalises over a batch. One function per weighting, one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.complexity import count_content_words
from cdp.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Weighting:
    """How pairs are weighted. ``raw`` maps (queries, language, κ) to non-negative weights, shape (n,)."""

    name: str
    title: str
    help: str
    raw: Callable[[Sequence[str], str, float], NDArray[np.float64]]


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
    )
}


def raw_weights(
    queries: Sequence[str], weighting: str, *, language: str = "en", kappa: float = 100.0
) -> NDArray[np.float64]:
    """float64, shape (n,): what the loss normalises to mean 1 over each global batch (Eq. 2 for ``cw``, κ=100)."""
    if weighting not in WEIGHTINGS:
        raise ConfigError(f"No weighting is called {weighting!r}.", hint=f"There is: {', '.join(WEIGHTINGS)}.")
    return WEIGHTINGS[weighting].raw(queries, language, kappa)
