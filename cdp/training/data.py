"""Everything a training reads before it loads a model: settings, pairs, what belongs to them, weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cdp.base.config import TrainingConfig
from cdp.base.failures import Failures
from cdp.base.workspace import Workspace
from cdp.retrievers import ResolvedRetriever, resolve
from cdp.training.hard_negatives import with_negatives, with_teacher
from cdp.training.pairs import UNTOKENISED, PairSet, load_pairs
from cdp.training.reasoning import check_reasoned, uses_reasoned, with_reasoned
from cdp.training.settings import complete
from cdp.training.weightings import WEIGHTINGS
from cdp.training.weights import pair_weights


@dataclass(frozen=True)
class TrainingData:
    """``settings`` with every default filled in; ``weights`` (n_pairs,) before the loss normalises them."""

    settings: TrainingConfig
    retriever: ResolvedRetriever
    pairs: PairSet
    weights: NDArray[np.float64]

    def part(self, rows: NDArray[np.int64]) -> TrainingData:
        """Only these pairs, with their documents and hard negatives."""
        return replace(self, pairs=self.pairs.part(rows), weights=self.weights[rows])


def prepare(config: TrainingConfig, workspace: Workspace, failures: Failures | None = None) -> TrainingData:
    """Read it all. Raises what its parts raise: everything that can be wrong without a model is found here.

    A document or pair that cannot be used goes to ``failures`` and is counted among what is left out.
    """
    failures = failures or Failures()
    retriever = resolve(config.retriever, workspace)
    settings = complete(config, retriever)
    pairs = load_pairs(
        workspace,
        settings.query_set,
        per_doc=settings.per_doc,
        max_documents=settings.max_documents,
        failures=failures,
    )
    pairs = with_negatives(pairs, workspace, settings.hard_negatives)
    if settings.distil:
        pairs = with_teacher(pairs, workspace)
    if uses_reasoned(settings):
        check_reasoned(settings, pairs.query_set.method)
        ri = WEIGHTINGS.named(settings.weighting).needs == "reasoning"
        pairs = with_reasoned(pairs, workspace, settings.reasoning, settings.query_source, ri=ri)
    weights = pair_weights(pairs, settings.weighting, kappa=settings.kappa, file=settings.weights, failures=failures)
    usable = ~np.isnan(weights)
    return TrainingData(settings, retriever, pairs.without(usable, UNTOKENISED), weights[usable])
