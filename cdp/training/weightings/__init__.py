"""How pairs are weighted: the raw weight of each query, before the loss normalises over a batch.

One module each. Adding a weighting is adding a file that declares a ``Weighting``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.base.registry import Registered, Registry


@dataclass(frozen=True)
class Weighting(Registered):
    """One weighting. ``raw`` maps (queries, language, κ) to non-negative weights, shape (n,); one with the setting
    ``stopwords`` takes a list by that name besides.

    ``needs`` names what there must be besides the queries: "" nothing, "reasoning" a query set with the reasoned form
    of each query (``raw`` is then multiplied by RI), "column" a file with a weight per query. ``settings`` are the
    fields of TrainingConfig that only some weightings read: a form shows them where the chosen one does. ``paper`` is
    what the published tables call it; empty if they do not have it.
    """

    raw: Callable[..., NDArray[np.float64]]
    needs: str = ""
    settings: tuple[str, ...] = ()
    paper: str = ""


def equal(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    """1 for each query."""
    return np.ones(len(queries), dtype=np.float64)


WEIGHTINGS: Registry[Weighting] = Registry("weighting", Weighting, __name__)
