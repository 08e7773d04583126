"""Exact search: the k documents with the highest dot product, for any corpus that fits on disk.

Documents are read in chunks through one fast product per chunk (float32, or bfloat16 where the processor multiplies
that faster). The rounding error of such a product has a proven bound, so a document is dropped only if it cannot be
among the best k whatever its error; the few that are left are scored again in float64. What comes back is therefore the
result of a float64 computation, at the speed of the fast product, in memory that does not grow with the corpus.

The score of a document is its exact dot product rounded to float32; documents of equal score stand in ascending order
of their index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.base.errors import ConfigError, InputError
from cdp.retrievers.rows import Rows

if TYPE_CHECKING:
    import torch

CHUNK_ROWS = 8192
"""Documents per product; 25 MB of float32 at 768 dimensions."""

QUERY_BLOCK = 1024
"""Queries per product; with CHUNK_ROWS its result takes 32 MB."""

BFLOAT16_FROM = 16
"""With fewer queries the conversion to bfloat16 costs more than the faster product saves."""

RESIDUAL_FROM = 256
"""From so many queries on, a closer bound is worth measuring what the conversion lost."""

_SPAN = 16
"""Neighbouring documents that are first looked at through their highest score alone."""

_GATHERED = 1 << 22
"""Numbers gathered at once for scoring again: 16 MB of float32."""

_U32, _U16 = 2.0**-24, 2.0**-8
"""Unit roundoff of float32 and bfloat16: how far, relatively, rounding to nearest can move a number."""


class Prepared:
    """Documents that are searched again and again, a query or a few at a time: in memory as float32, their norms taken
    once. ``nbytes`` is what they take. InputError as ``search`` raises it."""

    def __init__(self, documents: Any) -> None:
        import torch

        self.rows = Rows(documents)
        starts = range(0, len(self.rows), CHUNK_ROWS)
        self.chunks = [_Chunk(torch.from_numpy(self.rows.slice(i, i + CHUNK_ROWS)), i) for i in starts]
        self.rows = Rows([chunk.float32.numpy() for chunk in self.chunks])  # what the chunks were read from can go
        self.nbytes = sum(part.nbytes for part in self.rows.parts)


def search(
    queries: Any,
    documents: Any,
    k: int,
    *,
    exclude: Sequence[Sequence[int]] | None = None,
    device: str = "cpu",
    first_pass: str = "auto",
    chunk_rows: int = CHUNK_ROWS,
    progress: Callable[[int], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best documents of each query by dot product, best first.

    ``queries`` (n_queries, dim) and ``documents`` (n_documents, dim) are float32 or float16 arrays; documents may be
    memory maps, may come as a sequence of arrays whose rows follow each other, or be ``Prepared`` (on the CPU).
    ``exclude[i]`` lists the documents that query i must not retrieve. ``device`` as torch names it. ``first_pass`` is
    float32, bfloat16 or auto. ``progress`` is called with the documents looked at so far, and may raise to end the
    search.

    Returns (scores float32, indices int64), both (n_queries, k). Where a query has fewer than k documents, the last
    places hold -inf and -1. InputError for shapes that do not fit and for values that are not finite.
    """
    import torch

    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    questions = np.ascontiguousarray(queries, dtype=np.float32)
    prepared = documents if isinstance(documents, Prepared) else None
    rows = prepared.rows if prepared is not None else Rows(documents)
    if questions.ndim != 2 or (len(rows) and questions.shape[1] != rows.dim):
        raise InputError(f"Queries of shape {questions.shape} do not fit documents of {rows.dim} dimensions.")
    if not np.isfinite(questions).all():
        raise InputError("A query's embedding holds a value that is not finite.")
    n = len(questions)
    scores = np.full((n, k), -np.inf, np.float32)
    indices = np.full((n, k), -1, np.int64)
    if n == 0 or len(rows) == 0:
        return scores, indices
    with torch.inference_mode(), _full_float32():
        blocks = [
            _Block(torch.from_numpy(questions[i : i + QUERY_BLOCK]).to(device), k, first_pass)
            for i in range(0, n, QUERY_BLOCK)
        ]
        hidden = _Exclusions(exclude, n, len(rows))
        for chunk in _chunks(rows, max(chunk_rows, k), device, prepared):
            start, step = chunk.start, len(chunk.float32)
            for i, block in enumerate(blocks):
                block.add(chunk, hidden.within(start, start + step, i * QUERY_BLOCK, (i + 1) * QUERY_BLOCK))
            if progress is not None:
                progress(min(start + step, len(rows)))
        for i, block in enumerate(blocks):
            block_rows = slice(i * QUERY_BLOCK, (i + 1) * QUERY_BLOCK)
            block.finish(rows, scores[block_rows], indices[block_rows])
    return scores, indices


def _chunks(rows: Rows, step: int, device: str, prepared: Prepared | None) -> Iterator[_Chunk]:
    """The documents in order: as they were prepared, or read ``step`` at a time."""
    import torch

    if prepared is not None:
        yield from prepared.chunks
        return
    for start in range(0, len(rows), step):
        yield _Chunk(torch.from_numpy(rows.slice(start, start + step)).to(device), start)


class _Exclusions:
    """Forbidden (query, document) pairs, ordered by document so that a chunk finds its own at once."""

    def __init__(self, exclude: Sequence[Sequence[int]] | None, n_queries: int, n_documents: int) -> None:
        if exclude is not None and len(exclude) != n_queries:
            raise InputError(f"There are {len(exclude)} lists of excluded documents for {n_queries} queries.")
        pairs = [(d, q) for q, listed in enumerate(exclude or ()) for d in listed]
        table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        if len(table) and (table[0, 0] < 0 or table[-1, 0] >= n_documents):
            raise InputError(f"An excluded document is not among the {n_documents} documents.")
        self.documents, self.queries = table[:, 0], table[:, 1]

    def within(self, start: int, stop: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """(document - start, query - first) of the pairs inside a chunk and a block of queries."""
        low, high = np.searchsorted(self.documents, [start, stop])
        queries = self.queries[low:high]
        inside = (queries >= first) & (queries < last)
        return self.documents[low:high][inside] - start, queries[inside] - first


class _Chunk:
    """Some documents on the device, with what bounds the error of a product with them."""

    def __init__(self, values: torch.Tensor, start: int) -> None:
        import torch

        self.start = start
        self.float32 = values.float()
        norms = torch.linalg.vector_norm(self.float32, dim=1)
        if not bool(torch.isfinite(norms).all()):
            row = start + int((~torch.isfinite(norms)).nonzero()[0])
            raise InputError(f"The embedding of document {row} holds a value that is not finite, or too large.")
        self.norm = float(norms.max())

    @cached_property
    def bfloat16(self) -> torch.Tensor:
        return self.float32.bfloat16()

    @cached_property
    def residual(self) -> float:
        """The largest distance between a document and its bfloat16 form."""
        return _largest_residual(self.float32, self.bfloat16)


class _Block:
    """A block of queries and the documents that may still be among the best k of each."""

    def __init__(self, queries: torch.Tensor, k: int, first_pass: str) -> None:
        import torch

        self.queries = queries
        self.k = k
        self.rough = _use_bfloat16(queries, first_pass)
        self.operand = queries.bfloat16() if self.rough else queries
        self.norms = torch.linalg.vector_norm(queries, dim=1)
        # The k highest lower bounds of true scores seen so far: a document below the last of them is out.
        self.bounds = torch.full((len(queries), k), -torch.inf, device=queries.device)
        self.pool: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self.pooled = 0
        self.seen = 0

    def add(self, chunk: _Chunk, hidden: tuple[np.ndarray, np.ndarray]) -> None:
        """Take in the documents of a chunk that may be among the best k."""
        import torch

        product = _product(chunk.bfloat16 if self.rough else chunk.float32, self.operand)  # (documents, queries)
        if len(hidden[0]):
            product[torch.from_numpy(hidden[0]), torch.from_numpy(hidden[1])] = -torch.inf
        error = self._error(chunk)
        relative = _U16 * 1.01 if self.rough else 0.0
        first = self.seen == 0
        self.seen += len(product)
        if first:
            best = product.float().topk(min(self.k, len(product)), dim=0).values.T
            lowest = best - best.abs() * relative - error[:, None]
            self.bounds[:, : best.shape[1]] = torch.where(best > -torch.inf, lowest, -torch.inf)
        # A score s can be as high as s + relative·|s| + error: below this floor that is less than the k-th bound.
        floor = self.bounds[:, -1] - error
        floor = floor / torch.where(floor > 0, 1 + relative, 1 - relative)
        document, query, score = _above(product, floor)
        slack = score.abs() * relative + error[query]
        if not first:
            self._raise_bounds(query, score - slack)
        self.pool.append((query, document + chunk.start, score + slack))
        self.pooled += len(query)
        if self.pooled > 4 * self.k * len(self.queries) + (1 << 20):
            self._prune()

    def _error(self, chunk: _Chunk) -> torch.Tensor:
        """A bound, per query, on how far a fast product with any document of the chunk is from the exact one.

        Accumulating n products in float32, in any order, is off by at most (n+2)·u |q||d| with u = 2⁻²⁴, to first
        order; twice that is allowed. With bfloat16 operands q̂ and d̂, |q·d - q̂·d̂| ≤ |q-q̂||d| + |q̂||d-d̂|; each
        distance is measured, or at most 2⁻⁸ of the vector. (That bfloat16 results are rounded once more is relative to
        the score and allowed for by the caller.) The last summand covers numbers below the normal range.
        """
        import torch

        dim = self.queries.shape[1]
        error = self.norms * (chunk.norm * 2 * (dim + 2) * _U32)
        if self.rough:
            lost = torch.linalg.vector_norm(self.queries - self.operand.float(), dim=1)
            measured = len(self.queries) >= RESIDUAL_FROM
            residual = chunk.residual if measured else chunk.norm * _U16
            error = error * 1.02 + (lost * chunk.norm + self.norms * (1 + _U16) * residual) * 1.001
        return error + (dim + 1) * 2.0**-100

    def _raise_bounds(self, query: torch.Tensor, lower: torch.Tensor) -> None:
        import torch

        if not len(query):
            return
        order = query.argsort(stable=True)
        query, lower = query[order], lower[order]
        counts = torch.bincount(query, minlength=len(self.queries))
        slot = torch.arange(len(query), device=query.device) - (counts.cumsum(0) - counts)[query]
        fresh = torch.full((len(self.queries), int(counts.max())), -torch.inf, device=query.device)
        fresh[query, slot] = lower
        self.bounds = torch.cat([self.bounds, fresh], dim=1).topk(self.k, dim=1).values

    def _prune(self) -> None:
        """Forget documents whose score is below the k-th best even in the best case."""
        import torch

        query, document, upper = (torch.cat(column) for column in zip(*self.pool, strict=True))
        keep = upper >= self.bounds[:, -1][query]
        self.pool = [(query[keep], document[keep], upper[keep])]
        self.pooled = int(keep.sum())

    def finish(self, rows: Rows, scores: np.ndarray, indices: np.ndarray) -> None:
        """Score the remaining documents exactly and write the best k of each query."""
        self._prune()
        query, document, _ = (column.cpu().numpy() for column in self.pool[0])
        order = np.lexsort((document, query))
        query, document = query[order], document[order]
        exact = _exact(self.queries.cpu().numpy(), rows, query, document)
        order = np.lexsort((document, -exact, query))
        query, document, exact = query[order], document[order], exact[order]
        slot = np.arange(len(query)) - np.searchsorted(query, np.arange(len(scores)))[query]
        keep = slot < self.k
        scores[query[keep], slot[keep]] = exact[keep]
        indices[query[keep], slot[keep]] = document[keep]


@contextmanager
def _full_float32() -> Iterator[None]:
    """float32 products in float32, whatever shortcut (TF32, bfloat16) the process has allowed elsewhere."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _use_bfloat16(queries: torch.Tensor, first_pass: str) -> bool:
    """Whether to begin in bfloat16: on processors that multiply it natively and add up in float32, as x86 ones do.

    A GPU may add up in bfloat16, for which no useful bound holds, and is fast enough in float32.
    """
    import torch

    if first_pass not in ("auto", "float32", "bfloat16"):
        raise ConfigError(f"first_pass must be auto, float32 or bfloat16, not {first_pass!r}.")
    if first_pass != "auto" or queries.is_cuda:
        return first_pass == "bfloat16" and not queries.is_cuda
    return len(queries) >= BFLOAT16_FROM and bool(torch.cpu._is_avx512_bf16_supported())


def _largest_residual(exact: torch.Tensor, rounded: torch.Tensor) -> float:
    """The largest |exact - rounded| of any row; in blocks that stay in the processor's cache."""
    import torch

    largest = 0.0
    for start in range(0, len(exact), 256):
        lost = rounded[start : start + 256].float().sub_(exact[start : start + 256])
        largest = max(largest, float(torch.linalg.vector_norm(lost, dim=1).max()))
    return largest


def _product(documents: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    """documents @ queries.T, (documents, queries). NumPy's BLAS is the faster one for float32 on a CPU."""
    import torch

    if documents.is_cuda or documents.dtype != torch.float32:
        return documents @ queries.T
    return torch.from_numpy(documents.numpy() @ queries.numpy().T)


def _above(product: torch.Tensor, floor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(document, query, score) of every entry of ``product`` (documents, queries) that reaches its query's floor.

    Almost none does once some chunks have been seen: whole spans of documents are passed over by their maximum.
    """
    import torch

    whole = len(product) // _SPAN * _SPAN
    spans = product[:whole].view(-1, _SPAN, product.shape[1])
    span, query = (spans.amax(dim=1).float() >= floor).nonzero(as_tuple=True)
    values = spans[span, :, query].float()  # (hits, _SPAN)
    hit, inside = ((values >= floor[query][:, None]) & (values > -torch.inf)).nonzero(as_tuple=True)
    rest = product[whole:].float()
    late, late_query = ((rest >= floor) & (rest > -torch.inf)).nonzero(as_tuple=True)
    return (
        torch.cat([span[hit] * _SPAN + inside, late + whole]),
        torch.cat([query[hit], late_query]),
        torch.cat([values[hit, inside], rest[late, late_query]]),
    )


def _exact(queries: np.ndarray, rows: Rows, query: np.ndarray, document: np.ndarray) -> np.ndarray:
    """Dot products in float64, rounded to float32, of (query, document) pairs that are grouped by query.

    Each is summed in one fixed order, so equal documents score equally.
    """
    scores = np.empty(len(query), np.float32)
    starts = np.searchsorted(query, np.arange(len(queries) + 1))
    step = max(1, _GATHERED // max(1, queries.shape[1]))
    first = 0
    while first < len(queries):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + step, side="right")) - 1)
        gathered = rows.take(document[starts[first] : starts[last]])
        for row in range(first, last):
            low, high = starts[row], starts[row + 1]
            part = gathered[low - starts[first] : high - starts[first]].astype(np.float64)
            scores[low:high] = np.einsum("ij,j->i", part, queries[row].astype(np.float64))
        first = last
    return scores
