"""Everything a training reads before it loads a model: settings, pairs, what belongs to them, weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cdp.config import TrainingConfig
from cdp.training.hard_negatives import with_negatives
from cdp.training.pairs import PairSet, load_pairs
from cdp.training.reasoning import with_reasoned
from cdp.training.retrievers import ResolvedRetriever, resolve
from cdp.training.settings import complete
from cdp.training.weights import pair_weights, weighting_named
from cdp.workspace import Workspace


@dataclass(frozen=True)
class TrainingData:
    """``settings`` with every default filled in; ``weights`` (n_pairs,) before the loss normalises them."""

    settings: TrainingConfig
    retriever: ResolvedRetriever
    pairs: PairSet
    weights: NDArray[np.float64]

    def part(self, rows: NDArray[np.int64]) -> TrainingData:
        """Only these pairs, with their documents and hard negatives."""
        pairs = self.pairs
        used = [pairs.document_of[rows]]
        if pairs.negatives is not None:
            used.append(pairs.negatives[rows].ravel())
        kept = np.unique(np.concatenate(used))
        kept = kept[kept >= 0]
        place = np.full(len(pairs.documents) + 1, -1, dtype=np.int64)  # the last entry is where -1 leads
        place[kept] = np.arange(len(kept))
        part = replace(
            pairs,
            queries=[pairs.queries[row] for row in rows],
            documents=[pairs.documents[document] for document in kept],
            document_of=place[pairs.document_of[rows]],
            query_ids=[pairs.query_ids[row] for row in rows],
            reasoned=None if pairs.reasoned is None else [pairs.reasoned[row] for row in rows],
            negatives=None if pairs.negatives is None else place[pairs.negatives[rows]],
        )
        return replace(self, pairs=part, weights=self.weights[rows])


def prepare(config: TrainingConfig, workspace: Workspace) -> TrainingData:
    """Read it all. Raises what its parts raise: everything that can be wrong without a model is found here."""
    retriever = resolve(config.retriever, workspace)
    settings = complete(config, retriever)
    pairs = load_pairs(workspace, settings.query_set, per_doc=settings.per_doc, max_documents=settings.max_documents)
    if weighting_named(settings.weighting).needs == "reasoning":
        pairs = with_reasoned(pairs, workspace, settings.reasoning)
    pairs = with_negatives(pairs, workspace, settings.hard_negatives)
    weights = pair_weights(pairs, settings.weighting, kappa=settings.kappa, file=settings.weights)
    return TrainingData(settings, retriever, pairs, weights)
