"""The gradients of one training step: embed a batch, the loss, back; GradCache; the step of static models.

``TransformerEngine`` embeds each distinct document of a batch once and cuts the batch into groups of similar length,
so that hardly any padding is computed; with GradCache the same groups bound the memory. ``StaticEngine``
does the step of a table of token vectors without autograd over the table. Both leave gradients in ``.grad`` and return
the loss; the result is that of embedding the whole batch at once.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast, reduce
from numpy.typing import NDArray
from torch import Tensor, nn

from cdp.retrievers.load import kind_of
from cdp.retrievers.static import is_static
from cdp.training.forward import FastDropout, forward
from cdp.training.infonce import WeightedInfoNCE
from cdp.training.lower_layers import StateStore
from cdp.training.tokens import TokenStore, groups, overhead_on

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


Autocast = Callable[[], AbstractContextManager[Any]]
Backward = Callable[[Tensor], None]


@dataclass(frozen=True)
class Batches:
    """What the rows of a pair set are made of: token stores, the document of each query, the raw weights; with
    ``reasoned``, the reasoned form of each query, for RI (where ``swapped`` is True, the query is the reasoned form,
    and ``reasoned`` what it was made from); with ``negatives`` (n, h), the hard negatives of each query as documents,
    -1 where there is none."""

    queries: TokenStore | StateStore
    documents: TokenStore | StateStore
    document_of: NDArray[np.int64]
    weights: NDArray[np.float64]
    reasoned: TokenStore | StateStore | None = None
    negatives: NDArray[np.int64] | None = None
    swapped: NDArray[np.bool_] | None = None
    teacher: NDArray[np.float64] | None = None
    """Soft labels (n, 1 + h), see ``PairSet``."""
    excluded_indices: NDArray[np.int64] | None = None
    """Documents that are no negatives of a query (n, k), see ``PairSet``."""

    @cached_property
    def content_hash(self) -> str:
        """16 hex digits of the SHA-256 of all of it: what a run may only be resumed with."""
        digest = sha256()
        for store in (self.queries, self.documents, self.reasoned):
            for part in () if store is None else store.content():
                digest.update(part)

        arrays = (self.document_of, self.weights, self.negatives, self.swapped, self.teacher, self.excluded_indices)
        for array in arrays:
            digest.update(b"" if array is None else np.ascontiguousarray(array).data)

        return digest.hexdigest()[:16]

    def given(
        self, rows: NDArray[np.int64], device: torch.device, reasoned: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """What the loss takes beside embeddings: labels, ``reasoned`` as it is, soft labels, excluded documents.

        Labels are float64 (B, 2 + h): weight, document index, the indices of the hard negatives; with RI of swapped
        pairs, 1 in a last column where the query is q′. Soft labels are float64 (B, 1 + h). Excluded documents are
        int64 (B, k), -2 where there are fewer: -1 is a hard negative that is missing.
        """
        columns = [self.weights[rows], self.document_of[rows]]
        if self.negatives is not None:
            columns += list(self.negatives[rows].T)
        if self.reasoned is not None and self.swapped is not None:
            columns.append(self.swapped[rows].astype(np.int64))
        labels = torch.from_numpy(np.stack(columns, 1, dtype=np.float64)).to(device)

        soft = excluded = None
        if self.teacher is not None:
            soft = torch.from_numpy(self.teacher[rows]).to(device)
        if self.excluded_indices is not None:
            indices = self.excluded_indices[rows]
            excluded = torch.from_numpy(np.where(indices < 0, -2, indices)).to(device)

        return labels, reasoned, soft, excluded

    def distinct_documents(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Tensor]:
        """The documents of these rows without repeats, and where each row's are among them: (1 + h, B), the positives
        first. A hard negative that is missing stands at the positive; its label hides it from the loss."""
        own = self.document_of[rows]
        columns = [own]
        if self.negatives is not None:
            columns += [np.where(column < 0, own, column) for column in self.negatives[rows].T]
        distinct, inverse = np.unique(np.stack(columns), return_inverse=True)
        return distinct, torch.from_numpy(inverse.reshape(len(columns), -1).astype(np.int64))


class Engine(Protocol):
    """One step up to the gradients."""

    def backward(self, rows: NDArray[np.int64]) -> Tensor:
        """Leave the gradients of the loss of these pairs in ``.grad``; return the loss, detached."""


class TransformerEngine:
    """The step of any sentence-transformers model."""

    def __init__(
        self,
        model: SentenceTransformer,
        batches: Batches,
        loss: WeightedInfoNCE,
        *,
        mini_batch: int | None = None,
        autocast: Autocast = nullcontext,
        propagate: Backward = Tensor.backward,
    ) -> None:
        self.model = model
        self.kind = kind_of(model)
        self.batches = batches
        self.loss = loss
        self.mini_batch = mini_batch
        self.autocast, self.propagate = autocast, propagate
        self.device = model.device
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._overhead = overhead_on(self.device)

        # Gradient checkpointing repeats a pass within autograd, where no mode is entered: the masks would differ.
        repeated = getattr(model.transformers_model, "is_gradient_checkpointing", False)
        self._dropout: Autocast = FastDropout if self.device.type == "cpu" and not repeated else nullcontext

    def backward(self, rows: NDArray[np.int64]) -> Tensor:
        for parameter in self.parameters:
            parameter.grad = None

        documents, position = self.batches.distinct_documents(rows)
        columns = [(self.batches.queries, rows), (self.batches.documents, documents)]
        position = position.to(self.device)
        reasoned = None if self.batches.reasoned is None else self._embed_detached(self.batches.reasoned, rows)
        given = self.batches.given(rows, self.device, reasoned)

        if self.mini_batch is None:
            queries, embedded = (self._embed(store, which) for store, which in columns)
            loss = self.loss.compute_loss_from_embeddings([queries, *embedded[position]], *given)
            self.propagate(loss)
            return loss.detach()

        return self._backward_cached(columns, position, given)

    def _groups(self, store: TokenStore | StateStore, which: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return groups(store.lengths[which], self._overhead, self.mini_batch)

    def _forward(self, store: TokenStore | StateStore, which: NDArray[np.int64]) -> Tensor:
        features = {
            key: value.to(self.device, non_blocking=True) if isinstance(value, Tensor) else value
            for key, value in store.features(which).items()
        }

        with self.autocast(), self._dropout():
            if isinstance(store, StateStore):
                return store.lower.forward(features, store.role)
            return forward(self.model, self.kind, features, store.role)

    def _embed(self, store: TokenStore | StateStore, which: NDArray[np.int64]) -> Tensor:
        """(n, dim) in the order of ``which``, computed group by group with gradients; (n, tokens, dim) for late
        interaction, zero where a text has no more tokens."""
        members = self._groups(store, which)
        parts = _joined([self._forward(store, which[group]) for group in members])
        return parts[_inverse(members).to(self.device)]

    def _embed_detached(self, store: TokenStore | StateStore, which: NDArray[np.int64]) -> Tensor:
        """(n, dim) without gradients and without dropout."""
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                return self._embed(store, which)
        finally:
            self.model.train(was_training)

    def _backward_cached(
        self,
        columns: list[tuple[TokenStore | StateStore, NDArray[np.int64]]],
        position: Tensor,
        given: tuple[Tensor | None, ...],
    ) -> Tensor:
        """GradCache: embed without gradients, get the embeddings' gradients, then embed each group again with them.

        The second pass of a group replays the random state of its first, so that dropout draws the same masks.
        """
        from sentence_transformers.base.losses.gradcache import RandContext

        cached = []
        leaves = []
        for store, which in columns:
            members = self._groups(store, which)
            states, parts = [], []
            with torch.no_grad():
                for group in members:
                    states.append(RandContext(self.parameters[0]))
                    parts.append(self._forward(store, which[group]))

            leaf = _joined(parts)[_inverse(members).to(self.device)].detach().requires_grad_()
            leaves.append(leaf)
            cached.append((store, which, members, states))

        loss = self.loss.compute_loss_from_embeddings([leaves[0], *leaves[1][position]], *given)
        self.propagate(loss)

        for leaf, (store, which, members, states) in zip(leaves, cached, strict=True):
            assert leaf.grad is not None
            for group, state in zip(members, states, strict=True):
                gradient = leaf.grad[torch.from_numpy(group).to(self.device)]
                with state:
                    again = self._forward(store, which[group])
                again.backward(gradient[:, : again.shape[1]].to(again.dtype))

        return loss.detach()


def _joined(parts: list[Tensor]) -> Tensor:
    """Groups of texts one after the other; of token vectors all are padded with zeros to the longest text."""
    if parts[0].ndim == 2:
        return torch.cat(parts)
    longest = max(part.shape[1] for part in parts)
    return torch.cat([nn.functional.pad(part, (0, 0, 0, longest - part.shape[1])) for part in parts])


def _inverse(members: list[NDArray[np.int64]]) -> Tensor:
    """Where each position ended up when the groups were laid one after the other."""
    order = np.concatenate(members)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return torch.from_numpy(inverse)


class SparseRows:
    """Texts as sparse rows over the vocabulary: ``ids[offsets[i]:offsets[i + 1]]`` are the distinct tokens of text i,
    ``shares`` how much of the text each is, summing to 1."""

    def __init__(self, store: TokenStore | StateStore, vocabulary: int) -> None:
        assert isinstance(store, TokenStore)  # a table has no layers
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
        self, model: SentenceTransformer, batches: Batches, loss: WeightedInfoNCE, propagate: Backward = Tensor.backward
    ) -> None:
        self.model = model
        self.propagate = propagate
        self.batches = batches
        self.loss = loss

        table = model[0].embedding.weight
        assert isinstance(table, nn.Parameter)
        self.table = table
        self.device = self.table.device

        vocabulary = self.table.shape[0]
        self.queries = SparseRows(batches.queries, vocabulary)
        self.documents = SparseRows(batches.documents, vocabulary)
        self.reasoned = None if batches.reasoned is None else SparseRows(batches.reasoned, vocabulary)
        self.table.grad = torch.zeros_like(self.table)
        self._written: Tensor | None = None
        self._rows = torch.zeros(0)

    @staticmethod
    def fits(model: SentenceTransformer) -> bool:
        """Whether this engine can train the model."""
        return is_static(model) and not any(True for module in list(model)[1:] for _ in module.parameters())

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
        given = self.batches.given(rows, self.device, reasoned)
        vectors = [output[: len(rows)], *output[len(rows) :][position.to(self.device)]]
        loss = self.loss.compute_loss_from_embeddings(vectors, *given)
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
        self._written, self._rows = tokens, rows_of_gradient

        return loss.detach()

    def clip(self, limit: float) -> Tensor:
        """Scale the gradient to a norm of at most ``limit``; return its norm before. For a single process.

        As ``clip_grad_norm_``, which reads and writes the whole table: most of its rows are zero.
        """
        assert self.table.grad is not None
        assert self._written is not None
        norm = torch.linalg.vector_norm(self._rows)
        share = torch.clamp(limit / (norm + 1e-6), max=1.0)
        self.table.grad.index_copy_(0, self._written, self._rows * share)
        return norm

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


BETAS = (0.9, 0.98)
EPSILON = 1e-8


class _AdamW(torch.optim.AdamW):
    """torch's own, without the wrappers for a compiler that is not used here. The first call of any of them loads that
    compiler: 2 of the 5.5 CPU seconds of a short training. Between them the wrappers do no more than ``no_grad``."""

    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)

    def step(self, closure: Any = None) -> Any:
        with torch.no_grad():
            return _step(self, closure)


_step = inspect.unwrap(torch.optim.AdamW.step)


def adamw(model: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW, β 0.9/0.98, ε 1e-8. Biases and normalisation weights are not decayed, as is usual for transformers."""
    decayed: list[Tensor] = []
    plain: list[Tensor] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            (decayed if parameter.ndim > 1 else plain).append(parameter)
    parts = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in (*decayed, *plain))
    return _AdamW([part for part in parts if part["params"]], lr=learning_rate, betas=BETAS, eps=EPSILON, fused=fused)


def cosine_rate(peak: float, step: int, steps: int) -> float:
    """The learning rate of step ``step`` (from 0) of ``steps``: cosine decay from the peak to 0, no warm-up."""
    return peak * 0.5 * (1.0 + math.cos(math.pi * step / max(1, steps)))


def accelerator_for(device: torch.device, precision: str) -> Accelerator:
    """Return accelerate's mixed precision and synchronisation for one training; ``precision`` is fp32, fp16 or bf16."""
    # accelerate keeps the first precision of a process, and a study trains in several.
    AcceleratorState._reset_state()
    return Accelerator(mixed_precision="no" if precision == "fp32" else precision, cpu=device.type == "cpu")


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Average ``.grad`` over all processes. A parameter without a gradient on this process counts as zero.

    Done here and not by DDP, which does not synchronise a model with unused parameters (a BERT's pooler) unless told to
    look for them, and which takes one forward pass per step where we have several.
    """
    if PartialState().use_distributed:
        for parameter in parameters:
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = reduce(gradient, "mean")


def broadcast_parameters(model: nn.Module) -> None:
    """Give every process the first process's weights, so that all start equal: new layers are random."""
    broadcast([tensor.data for tensor in (*model.parameters(), *model.buffers())])


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """On a CPU: the same data, seed and number of threads give the same weights, bit for bit.

    Without this torch adds up the gradients of a document that stands in several pairs in the order of its threads. On
    a GPU it is left alone: there several libraries' sums would have to be ordered, at a price in speed.
    """
    if device.type != "cpu":
        yield
        return
    mode = torch.get_deterministic_debug_mode()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")  # an operation without such a form goes on, and says so in the log
    torch.utils.deterministic.fill_uninitialized_memory = False  # it only helps to find reads of unwritten memory
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = filled
