"""``WeightedInfoNCELoss`` for sentence-transformers' trainer, from texts' features, exact under gradient caching.

A file of its own: our loop trains without that library, whose import takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.gradcache import CachedLossMixin, has_static_embedding_input
from sentence_transformers.base.losses.merged_forward import embed_columns
from torch import Tensor

from cdp.base.errors import ConfigError
from cdp.training.infonce import WeightedInfoNCE


class WeightedInfoNCELoss(CachedLossMixin, WeightedInfoNCE):
    """Weighted InfoNCE with in-batch negatives, for the sentence-transformers trainer.

    A dataset gives it the columns query, document and any number of hard negatives, and a column named ``label`` that
    holds ``[weight, document index]`` for each row, no weight below 0 (the trainer passes on only one label column, so
    both travel in it). The index identifies the document's content: another row's document with the same index is the
    query's own document and is never used as its negative, on whichever process that row lives. Further label columns,
    one per hard negative, may hold the indices of those, which are then masked by the same rule; -1 says that the row
    has no such hard negative, and the filler in its place is no negative of any query.

    Args:
        model: the model to train.
        scale: what cosines are multiplied by before the softmax: 1 / temperature.
        gather_across_devices: use the documents of all processes as negatives. Batches must then be equally large.
        mini_batch: with GradCache, texts embedded at once; None embeds the whole batch. It changes memory and time,
            not the gradients.

    ``masked`` is the number of (query, document) cells masked in the last call on this process, ``masked_total`` the
    sum over all calls.
    """

    def __init__(
        self,
        model: SentenceTransformer | None,
        scale: float = 20.0,
        gather_across_devices: bool = False,
        mini_batch: int | None = None,
    ) -> None:
        super().__init__(scale, gather_across_devices)
        if mini_batch is not None and mini_batch < 1:
            raise ConfigError(f"mini_batch must be at least 1, not {mini_batch!r}.")

        if mini_batch is not None and model is not None and has_static_embedding_input(model):
            raise ConfigError(
                "GradCache does not apply to a static embedding model.",
                hint="Leave mini_batch empty: such a model needs hardly any memory per text.",
            )

        self.model = model
        self.mini_batch = mini_batch
        self.mini_batch_size = mini_batch or 1
        self.uses_gradient_cache = mini_batch is not None

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """The loss of a batch: one dict of features per column, labels (B, 2) = weight, document index."""
        assert self.model is not None, "a loss without a model takes embeddings"
        columns = list(sentence_features)
        if self.mini_batch is not None:
            return self.forward_cached(columns, labels)
        return self.compute_loss_from_embeddings(embed_columns(self.model, columns), labels)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """GradCache's second step: the loss of all mini-batches' embeddings, back-propagated up to them."""
        loss = self.compute_loss_from_embeddings([torch.cat(column) for column in reps], labels)
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss

    def get_config_dict(self) -> dict[str, Any]:
        """What the trainer writes into a model card."""
        return {
            "scale": self.scale,
            "gather_across_devices": self.gather_across_devices,
            "mini_batch": self.mini_batch,
        }
