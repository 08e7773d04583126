"""Making a retriever: the one path from a base model and pairs to a trained model, for training jobs and for studies.

Whatever is scored after a training must be scored alike wherever it was trained, so the similarity of the result is set
here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from cdp.base.config import TrainingConfig
from cdp.retrievers import TRAINED_SIMILARITY, ResolvedRetriever, load
from cdp.training.engine import Batches
from cdp.training.loop import Training
from cdp.training.lora import add_lora, merge_lora
from cdp.training.outcome import Hooks, Outcome
from cdp.training.pairs import BatchOrder, PairSet
from cdp.training.settings import order_of
from cdp.training.stores import Stores

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from cdp.retrievers.token_memo import TokenMemo


@dataclass(frozen=True)
class TrainedModel:
    """What became of the model: the order in which it saw its pairs, what the run did, in which precision."""

    order: BatchOrder
    outcome: Outcome
    precision: str


def base_model(
    retriever: ResolvedRetriever, config: TrainingConfig, device: str, memo: TokenMemo | None = None
) -> SentenceTransformer:
    """The untrained model, with the random state that the training's seed gives. ``memo`` as for ``load``."""
    torch.manual_seed(config.seed)
    return load(retriever, device, config.max_length, memo=memo)


def make_retriever(
    model: SentenceTransformer,
    config: TrainingConfig,
    pairs: PairSet,
    stores: Stores,
    weights: NDArray[np.float64],
    hooks: Hooks,
    checkpoints: Path,
    *,
    processes: int = 1,
    evaluate: Callable[[SentenceTransformer], float | None] | None = None,
    steps: int | None = None,
) -> TrainedModel:
    """Train ``model`` in place on tokenised pairs; ``weights`` (n_pairs,) raw. It ends as it is to be scored and saved.

    ``config`` must be complete (``settings.complete``); ``steps`` takes the place of its epochs. ConfigError where a
    batch has no negatives.
    """
    if config.lora_rank is not None:
        add_lora(model, config.lora_rank)
    order = replace(order_of(config, len(pairs), processes), total=steps)
    queries, documents, reasoned = stores
    training = Training(
        model,
        Batches(
            queries, documents, pairs.document_of, weights, reasoned, pairs.negatives, pairs.swapped, pairs.teacher
        ),
        order,
        config,
        hooks,
        checkpoints,
        evaluate=evaluate,
    )
    outcome = training.run()
    if config.lora_rank is not None:
        merge_lora(model)
    # The loss compares by cosine, whatever the base was published with: dot products of these vectors mean nothing.
    model.similarity_fn_name = TRAINED_SIMILARITY
    return TrainedModel(training.order, outcome, training.precision)
