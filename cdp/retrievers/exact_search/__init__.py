"""Exact search: the k documents with the highest dot product, for any corpus that fits on disk.

Documents are read a block at a time through one fast product per block (float32, or bfloat16 where the processor
multiplies that faster). The rounding error of such a product has a proven bound, so a document is dropped only if it
cannot be among the best k whatever its error; the few that are left are scored again in float64. What comes back is
therefore the result of a float64 computation, at the speed of the fast product, in memory that does not grow with the
corpus.

The score of a document is its exact dot product rounded to float32; documents of equal score stand in ascending order
of their index.

``products`` multiplies, ``candidates`` remembers who may still be among the best, ``rescoring`` scores those again,
``threads`` spreads blocks over processors and ``measured`` knows which product this machine does fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from cdp.base.errors import ConfigError, InputError
from cdp.retrievers.exact_search import products
from cdp.retrievers.exact_search.blocks import Documents, Exclusions, row_norms, row_squares
from cdp.retrievers.exact_search.candidates import Candidates
from cdp.retrievers.exact_search.measured import fastest
from cdp.retrievers.exact_search.rescoring import Rescoring, scored_by_number
from cdp.retrievers.exact_search.threads import each, processors
from cdp.retrievers.rows import Rows

CHUNK_ROWS = 8192
"""Documents per product on a GPU, and at most anywhere; 25 MB of float32 at 768 dimensions."""

QUERY_BLOCK = 1024
"""Queries per product; with CHUNK_ROWS its result takes 32 MB."""

BLOCK_ROWS, FEW_QUERIES_ROWS = 1024, 4096
"""Documents per product of one processor: at least and at most. A block's product is looked at while it is in its
cache; in larger blocks there are fewer steps between products, which take as long for few queries as for many."""

SCORES_AT_ONCE = 1 << 18
"""Scores of such a product between the two: 1 MB. With half of that 64 queries took 1.2 times as long."""

ALONE = 50_000_000
"""Multiplications that take less time than starting threads for them is worth: a few milliseconds."""

LARGEST_SQUARE = 2.0**124
"""Of a query's norm. Times a document's norm, whose square is a float32, it stays below 2¹²⁶: a quarter of the largest
float32, so that no rounding on the way reaches infinity."""


class Prepared:
    """Documents that are searched again and again, a query or a few at a time: in memory as float32, their norms taken
    once. ``nbytes`` is what they take. InputError as ``search`` raises it."""

    def __init__(self, documents: Any) -> None:
        source = Rows(documents)
        held = np.empty((len(source), source.dim), np.float32)
        self.norms = np.empty(len(source), np.float32)
        for start in range(0, len(source), CHUNK_ROWS):
            held[start : start + CHUNK_ROWS] = source.slice(start, start + CHUNK_ROWS)
            self.norms[start : start + CHUNK_ROWS] = row_norms(held[start : start + CHUNK_ROWS], start)
        self.rows = Rows(held)
        self.nbytes = held.nbytes + self.norms.nbytes


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
    float32, bfloat16 or auto. ``chunk_rows`` is the most documents in one product. ``progress`` is called with the
    documents looked at so far, and may raise to end the search.

    Returns (scores float32, indices int64), both (n_queries, k). Where a query has fewer than k documents, the last
    places hold -inf and -1. InputError for shapes that do not fit and for values that are not finite.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    questions = np.ascontiguousarray(queries, dtype=np.float32)
    prepared = documents if isinstance(documents, Prepared) else None
    rows = prepared.rows if prepared is not None else Rows(documents)
    if questions.ndim != 2 or (len(rows) and questions.shape[1] != rows.dim):
        raise InputError(f"Queries of shape {questions.shape} do not fit documents of {rows.dim} dimensions.")
    # Documents are checked alike: no product of the two is then beyond float32, whose infinities are all one score.
    if not (row_squares(questions) < LARGEST_SQUARE).all():
        raise InputError("A query's embedding holds a value that is not finite, or too large.")
    n = len(questions)
    scores = np.full((n, k), -np.inf, np.float32)
    indices = np.full((n, k), -1, np.int64)
    if n == 0 or len(rows) == 0:
        return scores, indices
    work = n * len(rows) * rows.dim
    threads = processors() if device == "cpu" and work > ALONE else 1
    hidden = Exclusions(exclude, n, len(rows))
    with ExitStack() as held:
        held.enter_context(products.full_float32())
        kind = fastest(min(n, QUERY_BLOCK), work, first_pass, device)
        if kind == "numpy":
            held.enter_context(products.one_blas_thread())
        buffers = products.Buffers()
        blocks = []
        for start in range(0, n, QUERY_BLOCK):
            part = questions[start : start + QUERY_BLOCK]
            blocks.append(_Block(part, start, k, products.make(kind, part, device, buffers), hidden, rows))

        def read(step: range) -> Documents:
            norms = None if prepared is None else prepared.norms[step.start : step.stop]
            return Documents(rows.slice(step.start, step.stop), step.start, device=device, norms=norms)

        _look_at_all(read, blocks, _steps(len(rows), n, k, chunk_rows, threads, device), threads, progress)
        rescoring = [
            Rescoring(block.queries, block.candidates.remaining(), rows, scores[block.part], indices[block.part])
            for block in blocks
        ]
        each(lambda task: task(), [task for one in rescoring for task in one.tasks()], threads)
    return scores, indices


class _Block:
    """A block of queries, how they are multiplied, and the documents that may be among the best k of each."""

    def __init__(
        self, queries: np.ndarray, first: int, k: int, product: products.Product, hidden: Exclusions, rows: Rows
    ) -> None:
        self.queries = queries
        self.part = slice(first, first + len(queries))
        self.product = product
        self.candidates = Candidates(len(queries), k, lambda i, numbers: scored_by_number(queries[i], numbers, rows))
        self.hidden = hidden

    def look(self, documents: Documents) -> None:
        """Take in those of some documents that may be among the best."""
        stop = documents.start + len(documents.values)
        hidden = self.hidden.within(documents.start, stop, self.part.start, self.part.stop)
        product = self.product.of(documents, hidden)
        relative, error = self.product.relative, self.product.error(documents)
        first = not self.candidates.complete
        if first:
            best = product.best(self.candidates.k).astype(np.float64)
            with np.errstate(invalid="ignore"):  # 0 · inf, of what is hidden
                lowest = best - np.abs(best) * relative - error[:, None]
            self.candidates.raise_by(np.where(best > -np.inf, lowest, -np.inf))
        # A score s can be as high as s + relative·|s| + error: below this floor that is less than the k-th bound.
        floor = self.candidates.kth - error
        floor /= np.where(floor > 0, 1 + relative, 1 - relative)
        with np.errstate(over="ignore"):  # a floor below all float32 numbers is -inf
            reached = np.nextafter(floor.astype(np.float32), np.float32(-np.inf))
        document, query, score = product.above(reached)
        score = score.astype(np.float64)
        slack = np.abs(score) * relative + error[query]
        self.candidates.add(query, document + documents.start, score - slack, score + slack, counted=first)


def _steps(n_documents: int, n_queries: int, k: int, chunk_rows: int, threads: int, device: str) -> list[range]:
    """The blocks in which the documents are looked at; the first has k documents or more, so that it sets a floor."""
    step = chunk_rows
    if device == "cpu":
        step = min(step, max(BLOCK_ROWS, min(FEW_QUERIES_ROWS, SCORES_AT_ONCE // n_queries)))
        # A few blocks for each processor, so that none waits long for the last one.
        step = min(step, max(256, n_documents // (8 * threads)))
    first = min(n_documents, max(min(step, BLOCK_ROWS), min(k, CHUNK_ROWS)))  # small, for one processor does it alone
    rest = (range(start, min(start + step, n_documents)) for start in range(first, n_documents, step))
    return [range(first), *rest]


def _look_at_all(
    read: Callable[[range], Documents],
    blocks: list[_Block],
    steps: list[range],
    threads: int,
    progress: Callable[[int], None] | None,
) -> None:
    seen = 0

    def look(step: range) -> None:
        documents = read(step)
        for block in blocks:
            block.look(documents)

    def done(step: range) -> None:
        nonlocal seen
        seen += len(step)
        if progress is not None:
            progress(seen)

    each(look, steps[:1], 1, done)  # sets the floors that spare all others most of the work
    each(look, steps[1:], threads, done)
