"""The training step of a static embedding model: a table of token vectors, averaged over each text.

Autograd through an embedding bag would allocate, zero and add up a gradient as large as the table in each step. Here
each text is a sparse row (its distinct tokens and their shares, found once), the batch's embeddings are that sparse
matrix times the table, and the table's gradient is its transpose times the embeddings' gradients: only rows of tokens
in the batch are ever written. The optimiser still sees the whole table, so its steps are plain AdamW's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from cdp.retrievers.static import is_static
from cdp.training.engine import Backward, Batches
from cdp.training.infonce import WeightedInfoNCE
from cdp.training.tokens import Store, TokenStore

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SparseRows:
    """Texts as sparse rows over the vocabulary: ``ids[offsets[i]:offsets[i + 1]]`` are the distinct tokens of text i,
    ``shares`` how much of the text each is, summing to 1."""

    def __init__(self, store: TokenStore, vocabulary: int) -> None:
        text = np.repeat(np.arange(len(store.lengths), dtype=np.int64), store.lengths)
        keys, counts = np.unique(text * vocabulary + store.ids, return_counts=True)
        text, self.ids = np.divmod(keys, vocabulary)
        self.shares = (counts / store.lengths[text]).astype(np.float32)
        self.offsets = np.searchsorted(text, np.arange(len(store.lengths) + 1))

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """(ids, shares, sizes) of these texts, one after the other."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        ends = np.cumsum(sizes)
        source = np.arange(int(ends[-1])) + np.repeat(self.offsets[rows] - (ends - sizes), sizes)
        return self.ids[source], self.shares[source], sizes


class StaticEngine:
    """The step of a model whose first module is a ``StaticEmbedding`` and whose others have no weights."""

    def __init__(
        self,
        model: SentenceTransformer,
        batches: Batches,
        loss: WeightedInfoNCE,
        propagate: Backward = Tensor.backward,
    ) -> None:
        self.model = model
        self.propagate = propagate
        self.batches = batches
        self.loss = loss
        table = model[0].embedding.weight
        assert isinstance(table, nn.Parameter)
        self.table = table
        self.parameters = [self.table]
        self.device = self.table.device
        vocabulary = self.table.shape[0]
        self.queries, self.documents = (
            SparseRows(store, vocabulary)
            for store in (batches.queries, batches.documents)
            if isinstance(store, TokenStore)
        )
        self.reasoned = SparseRows(batches.reasoned, vocabulary) if isinstance(batches.reasoned, TokenStore) else None
        self.table.grad = torch.zeros_like(self.table)
        self._written: Tensor | None = None

    @staticmethod
    def fits(model: SentenceTransformer, queries: Store, documents: Store) -> bool:
        """Whether this engine can train the model."""
        return (
            is_static(model)
            and isinstance(queries, TokenStore)
            and isinstance(documents, TokenStore)
            and not any(True for module in list(model)[1:] for _ in module.parameters())
        )

    def backward(self, rows: NDArray[np.int64]) -> Tensor:
        gradient = self.table.grad
        assert gradient is not None
        if dist.is_available() and dist.is_initialized():
            gradient.zero_()  # averaging has written the other processes' rows as well
        elif self._written is not None:
            gradient.index_fill_(0, self._written, 0.0)
        documents, position = self.batches.distinct_documents(rows)
        ids, shares, sizes = self._join([self.queries.take(rows), self.documents.take(documents)])
        embedded = self._average(ids, shares, sizes).requires_grad_()
        output = self._rest(embedded)
        reasoned = None if self.reasoned is None else self._detached(self.reasoned, rows)
        loss = self.loss.compute_loss_from_embeddings(
            [output[: len(rows)], *output[len(rows) :][position.to(self.device)]],
            self.batches.labels(rows, self.device),
            reasoned,
            self.batches.soft_labels(rows, self.device),
        )
        self.propagate(loss)

        # The transpose: one bag per distinct token, over the texts that hold it.
        order = torch.argsort(ids, stable=True)
        tokens, uses = torch.unique_consecutive(ids[order], return_counts=True)
        texts = torch.repeat_interleave(sizes)
        assert embedded.grad is not None
        rows_of_gradient = nn.functional.embedding_bag(
            texts[order], embedded.grad, torch.cumsum(uses, 0) - uses, mode="sum", per_sample_weights=shares[order]
        )
        gradient.index_copy_(0, tokens, rows_of_gradient)
        self._written = tokens
        return loss.detach()

    def reasoning_intensity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        assert self.reasoned is not None
        queries, reasoned = (self._detached(texts, rows) for texts in (self.queries, self.reasoned))
        distinct, position = self.batches.distinct_documents(rows)
        documents = self._detached(self.documents, distinct)[position.to(self.device)]
        return self.loss.intensities([queries, *documents], self.batches.labels(rows, self.device), reasoned)

    def _join(self, parts: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]]) -> list[Tensor]:
        """(ids, shares, sizes) of several lots of texts as one, on the device."""
        return [torch.from_numpy(np.concatenate(columns)).to(self.device) for columns in zip(*parts, strict=True)]

    def _average(self, ids: Tensor, shares: Tensor, sizes: Tensor) -> Tensor:
        """(texts, dim): each text's tokens' vectors, averaged by their shares."""
        starts = torch.cumsum(sizes, 0) - sizes
        return nn.functional.embedding_bag(ids, self.table.detach(), starts, mode="sum", per_sample_weights=shares)

    def _rest(self, embedded: Tensor) -> Tensor:
        """The modules after the table, such as a normalisation."""
        features = {"sentence_embedding": embedded}
        for module in list(self.model)[1:]:
            features = module(features)
        return features["sentence_embedding"]

    def _detached(self, texts: SparseRows, rows: NDArray[np.int64]) -> Tensor:
        with torch.no_grad():
            return self._rest(self._average(*self._join([texts.take(rows)])))
