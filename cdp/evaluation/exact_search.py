"""Exact search: the k documents with the highest dot product, for any corpus that fits on disk.

Documents are read in chunks through one fast product per chunk (float32, or bfloat16 where the processor multiplies
that faster). The rounding error of such a product has a proven bound, so a document is dropped only if it cannot be
among the best k whatever its error; the few that are left are scored again in float64. What comes back is therefore the
result of a float64 computation, at the speed of the fast product, in memory that does not grow with the corpus.

The score of a document is its exact dot product rounded to float32; documents of equal score stand in ascending order
of their index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.errors import ConfigError, InputError
from cdp.evaluation.rows import Rows

if TYPE_CHECKING:
    import torch

CHUNK_ROWS = 8192
"""Documents per product; 25 MB of float32 at 768 dimensions."""

QUERY_BLOCK = 1024
"""Queries per product; with CHUNK_ROWS its result takes 32 MB."""

BFLOAT16_FROM = 256
"""With fewer queries the conversion to bfloat16 costs more than the faster product saves."""

_SPAN = 64
"""Neighbouring documents that are first looked at through their highest score alone."""

_RESCORED = 1 << 24
"""Numbers gathered at once for scoring again: 128 MB of float64."""


def search(
    queries: Any,
    documents: Any,
    k: int,
    *,
    exclude: Sequence[Sequence[int]] | None = None,
    device: str = "cpu",
    first_pass: str = "auto",
    chunk_rows: int = CHUNK_ROWS,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best documents of each query by dot product, best first.

    ``queries`` (n_queries, dim) and ``documents`` (n_documents, dim) are float32 or float16 arrays; documents may be
    memory maps and may come as a sequence of arrays whose rows follow each other. ``exclude[i]`` lists the documents
    that query i must not retrieve. ``device`` as torch names it. ``first_pass`` is float32, bfloat16 or auto.

    Returns (scores float32, indices int64), both (n_queries, k). Where a query has fewer than k documents, the last
    places hold -inf and -1. InputError for shapes that do not fit and for values that are not finite.
    """
    import torch

    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    questions = np.ascontiguousarray(queries, dtype=np.float32)
    rows = Rows(documents)
    if questions.ndim != 2 or (len(rows) and questions.shape[1] != rows.dim):
        raise InputError(f"Queries of shape {questions.shape} do not fit documents of {rows.dim} dimensions.")
    if not np.isfinite(questions).all():
        raise InputError("A query's embedding holds a value that is not finite.")
    n = len(questions)
    scores = np.full((n, k), -np.inf, np.float32)
    indices = np.full((n, k), -1, np.int64)
    if n == 0 or len(rows) == 0:
        return scores, indices
    with torch.inference_mode():
        blocks = [
            _Block(torch.from_numpy(questions[i : i + QUERY_BLOCK]).to(device), k, first_pass)
            for i in range(0, n, QUERY_BLOCK)
        ]
        hidden = _Exclusions(exclude, n, len(rows))
        step = max(chunk_rows, k)
        for start in range(0, len(rows), step):
            chunk = _Chunk(torch.from_numpy(rows.slice(start, start + step)).to(device), start)
            for i, block in enumerate(blocks):
                block.add(chunk, hidden.within(start, start + step, i * QUERY_BLOCK, (i + 1) * QUERY_BLOCK))
        for i, block in enumerate(blocks):
            found = slice(i * QUERY_BLOCK, (i + 1) * QUERY_BLOCK)
            block.finish(rows, scores[found], indices[found])
    return scores, indices


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
        self._bfloat16: torch.Tensor | None = None

    @property
    def bfloat16(self) -> torch.Tensor:
        if self._bfloat16 is None:
            self._bfloat16 = self.float32.bfloat16()
        return self._bfloat16


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
        first = self.seen == 0
        self.seen += len(product)
        if first:
            best = product.float().topk(min(self.k, len(product)), dim=0).values.T
            self.bounds[:, : best.shape[1]] = best - error[:, None]
        document, query, score = _above(product, self.bounds[:, -1] - error)
        if not first:
            self._raise_bounds(query, score - error[query])
        self.pool.append((query, document + chunk.start, score + error[query]))
        self.pooled += len(query)
        if self.pooled > 4 * self.k * len(self.queries) + (1 << 20):
            self._prune()

    def _error(self, chunk: _Chunk) -> torch.Tensor:
        """A bound, per query, on how far a fast product with any document of the chunk is from the exact one.

        Accumulating n terms in float32 is off by at most n·2⁻²⁴ (1 + small) times |q||d|. Rounding to bfloat16 moves
        each operand by at most 2⁻⁹ of itself, and the result, which is rounded too, by 2⁻⁹ again: together below
        3·2⁻⁹ (1 + 2⁻⁷). Numbers below the normal range add at most 2⁻¹²⁶ per term, covered by the last summand.
        """
        dim = self.queries.shape[1]
        relative = (dim + 2) * 2.0**-24 * 1.01
        if self.rough:
            relative = relative * 1.02 + 3 * 2.0**-9 * 1.01
        return self.norms * (chunk.norm * relative) + (dim + 1) * 2.0**-100

    def _raise_bounds(self, query: torch.Tensor, lower: torch.Tensor) -> None:
        import torch

        if not len(query):
            return
        order = query.argsort(stable=True)
        query, lower = query[order], lower[order]
        counts = torch.bincount(query, minlength=len(self.queries))
        place = torch.arange(len(query), device=query.device) - (counts.cumsum(0) - counts)[query]
        fresh = torch.full((len(self.queries), int(counts.max())), -torch.inf, device=query.device)
        fresh[query, place] = lower
        self.bounds = torch.cat([self.bounds, fresh], dim=1).topk(self.k, dim=1).values

    def _prune(self) -> None:
        """Forget documents whose score is below the k-th best even in the best case."""
        import torch

        query, document, upper = (torch.cat(column) for column in zip(*self.pool, strict=True))
        kept = upper >= self.bounds[:, -1][query]
        self.pool = [(query[kept], document[kept], upper[kept])]
        self.pooled = int(kept.sum())

    def finish(self, rows: Rows, scores: np.ndarray, indices: np.ndarray) -> None:
        """Score the remaining documents exactly and write the best k of each query."""
        self._prune()
        query, document, _ = (column.cpu().numpy() for column in self.pool[0])
        exact = _exact(self.queries.cpu().numpy(), rows, query, document)
        order = np.lexsort((document, -exact, query))
        query, document, exact = query[order], document[order], exact[order]
        place = np.arange(len(query)) - np.searchsorted(query, np.arange(len(scores)))[query]
        kept = place < self.k
        scores[query[kept], place[kept]] = exact[kept]
        indices[query[kept], place[kept]] = document[kept]


def _use_bfloat16(queries: torch.Tensor, first_pass: str) -> bool:
    import torch

    if first_pass not in ("auto", "float32", "bfloat16"):
        raise ConfigError(f"first_pass must be auto, float32 or bfloat16, not {first_pass!r}.")
    if first_pass != "auto":
        return first_pass == "bfloat16"
    if len(queries) < BFLOAT16_FROM:
        return False
    if queries.is_cuda:
        return True
    return bool(torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.ops.mkldnn._is_mkldnn_bf16_supported())


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
    """Dot products of (query, document) pairs, in float64, rounded to float32. Documents are read in order."""
    import torch

    scores = np.empty(len(query), np.float32)
    order = np.argsort(document, kind="stable")
    step = max(1, _RESCORED // max(1, queries.shape[1]))
    for start in range(0, len(order), step):
        part = order[start : start + step]
        left = torch.from_numpy(rows.take(document[part])).double()
        right = torch.from_numpy(queries[query[part]]).double()
        scores[part] = (left * right).sum(dim=1).float().numpy()
    return scores
