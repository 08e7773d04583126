"""Exact search: the k documents with the highest dot product, for any corpus that fits on disk.

Documents are multiplied a block at a time in float32. The rounding error of such a product has a proven bound, so a
document is dropped only if it cannot be among the best k for any error; the few that are left are scored again in
float64. The result is that of a float64 computation at the speed of float32 products, in memory that does not grow
with the corpus.

The score of a document is its exact dot product rounded to float32. Documents of equal score stand in ascending order
of their index.
"""

from __future__ import annotations

import functools
import itertools
import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from cdp.base.errors import ConfigError, InputError

# Queries per product. A candidate's query is sorted as 16 bits.
QUERY_BLOCK = 1024

# Documents per product on the CPU, from many queries to few: the product (1 to 4 MB) is looked at in the cache.
FEWEST_ROWS, MOST_ROWS, SCORES_AT_ONCE = 1024, 4096, 1 << 18

# Documents per product on a GPU, and per copy; 25 MB of float32 at 768 dimensions.
DEVICE_ROWS = 8192

# Multiplications that take less time than starting threads for them: a few milliseconds.
SINGLE_THREADED = 50_000_000

# Numbers scored again at once: 2 MB of float32.
GATHERED = 1 << 19

# Candidates held beside 4·k per query before those that are out are dropped.
SPARE = 1 << 20

# A candidate is one integer, query << DOCUMENT_BITS | document: it sorts several times as fast as two.
DOCUMENT_BITS = 40
DOCUMENT_MASK = (1 << DOCUMENT_BITS) - 1

# Highest square of a query's norm. Times a document's norm, whose square is a finite float32, every product stays below
# 2¹²⁶, a quarter of the largest float32: no rounding on the way reaches infinity.
LARGEST_SQUARE = 2.0**124
LOWEST = float(np.finfo(np.float32).min)

# Packed pairs (int64) and their scores (float32).
Candidates = tuple[np.ndarray, np.ndarray]

# Document, query and score of the entries of a product that reach their query's floor.
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
Product = Callable[[Any, Any, tuple[np.ndarray, ...], np.ndarray], Entries]

# ``map``, in one thread or in several.
Run = Callable[..., Iterator[Any]]


class Prepared:
    """Documents that are searched again and again: in memory as float32, with their norms. ``nbytes`` is their size.

    Raises InputError as ``search`` does.
    """

    def __init__(self, documents: Any) -> None:
        source = Rows(documents)
        held = np.empty((len(source), source.dim), np.float32)
        self.norms = np.empty(len(source), np.float32)
        for start in range(0, len(source), DEVICE_ROWS):
            held[start : start + DEVICE_ROWS] = source.slice(start, start + DEVICE_ROWS)
            self.norms[start : start + DEVICE_ROWS] = _norms(held[start : start + DEVICE_ROWS], start)
        self.rows = Rows(held)
        self.nbytes = held.nbytes + self.norms.nbytes


def search(
    queries: Any,
    documents: Any,
    k: int,
    *,
    exclude: Sequence[Sequence[int]] | None = None,
    device: str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best documents of each query by dot product, best first: (scores, indices).

    Both have the shape (n_queries, k), float32 and int64. Where a query has fewer than k documents, the last places
    hold -inf and -1. Raises InputError for shapes that do not fit and for values that are not finite.

    ``queries`` (n_queries, dim) and ``documents`` (n_documents, dim) are float32 or float16 arrays. Documents may be
    memory maps, a sequence of arrays whose rows follow each other, or ``Prepared`` (on the CPU). ``exclude[i]`` lists
    the documents that query i must not retrieve. ``device`` is a name that torch knows. ``progress`` is called with the
    number of documents searched so far, and may raise to end the search.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    questions = np.ascontiguousarray(queries, dtype=np.float32)
    prepared = documents if isinstance(documents, Prepared) else None
    rows = prepared.rows if prepared is not None else Rows(documents)
    if questions.ndim != 2 or (len(rows) and questions.shape[1] != rows.dim):
        raise InputError(f"Queries of shape {questions.shape} do not fit documents of {rows.dim} dimensions.")
    if not (_squares(questions) < LARGEST_SQUARE).all():
        raise InputError("A query's embedding holds a value that is not finite, or too large.")
    n = len(questions)
    scores, indices = np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64)
    if n == 0 or len(rows) == 0:
        return scores, indices
    excluded = _excluded_pairs(exclude, n, len(rows))
    product = _on_cpu if device == "cpu" else _on_device
    blocks = [
        _Block(questions[start : start + QUERY_BLOCK], start, k, rows, excluded, device)
        for start in range(0, n, QUERY_BLOCK)
    ]

    def look(step: range) -> int:
        values = rows.slice(step.start, step.stop)
        values = np.ascontiguousarray(values, np.float32) if device == "cpu" else _moved(values, device)
        norms = _norms(values, step.start) if prepared is None else prepared.norms[step.start : step.stop]
        # Squares below the normal range of float32 are lost: they add less than sqrt(dim) · 2⁻⁷⁴ to a norm.
        longest = float(norms.max()) + rows.dim**0.5 * 2.0**-74
        for block in blocks:
            block.look(values, step.start, longest, product)
        return len(step)

    threads = _blas_threads() if device == "cpu" and n * len(rows) * rows.dim > SINGLE_THREADED else 1
    first, *others = _steps(len(rows), n, threads, device)
    seen = 0
    with _one_blas_thread() if device == "cpu" else _full_float32(), _pool(threads) as run:
        # The first block is looked at alone: it sets the floors that spare the others most of their work.
        for done in itertools.chain([look(first)], run(look, others)):
            seen += done
            if progress is not None:
                progress(seen)
        for block in blocks:
            block.write(run, scores, indices)
    return scores, indices


class _Block:
    """Up to ``QUERY_BLOCK`` queries and the documents that may be among the best k of each. Filled by several threads.

    A float32 score is off by at most ``error``, so a document can be among the best k only where its score is not below
    the k-th highest seen minus twice the error. Such documents are kept as candidates.
    """

    def __init__(self, queries: np.ndarray, first: int, k: int, rows: Rows, excluded: np.ndarray, device: str) -> None:
        self.queries, self.first, self.k, self.rows = queries, first, k, rows
        self.n = len(queries)
        inside = (excluded[:, 1] >= first) & (excluded[:, 1] < first + self.n)
        self._excluded = excluded[inside] - np.array([0, first])
        self._operand = np.ascontiguousarray(queries.T) if device == "cpu" else _moved(queries, device).T
        self._norms = np.linalg.norm(queries.astype(np.float64), axis=1)
        self._longest = 0.0
        self._best = np.full((self.n, k), -np.inf, np.float32)
        self._pool: list[Candidates] = [(np.empty(0, np.int64), np.empty(0, np.float32))]
        self._pooled = 0
        self._lock = threading.Lock()

    def look(self, values: Any, start: int, longest: float, product: Product) -> None:
        """Take in those of the documents ``start`` … that may be among the best; ``longest`` is their highest norm."""
        low, high = np.searchsorted(self._excluded[:, 0], [start, start + len(values)])
        hidden = self._excluded[low:high, 0] - start, self._excluded[low:high, 1]
        with self._lock:
            self._longest = max(self._longest, longest)
            floor = self._floor()
        document, query, score = product(values, self._operand, hidden, floor)
        if not len(query):
            return
        # A radix sort, for the integers are that short: the scores of each query now follow each other.
        order = query.astype(np.uint16).argsort(kind="stable")
        document, query, score = document[order] + start, query[order], score[order]
        counts = np.bincount(query, minlength=self.n)
        asked = np.flatnonzero(counts)
        counts = counts[asked]
        row = np.repeat(np.arange(len(asked)), counts)
        slot = self.k + np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        with self._lock:
            table = np.full((len(asked), self.k + int(counts.max())), -np.inf, np.float32)
            table[:, : self.k] = self._best[asked]
            table[row, slot] = score
            self._best[asked] = np.partition(table, -self.k, axis=1)[:, -self.k :]  # the k-th highest comes first
            self._pool.append((query << DOCUMENT_BITS | document, score))
            self._pooled += len(query)
            limit = 4 * self.k * self.n + SPARE
            if self._pooled > limit:
                pairs, scores = self._pruned()
                if len(pairs) > limit // 2:  # so many documents score alike that only exact scores tell them apart
                    pairs, scores = self._exact_best(pairs, map)
                self._pool, self._pooled = [(pairs, scores)], len(pairs)

    def write(self, run: Run, scores: np.ndarray, indices: np.ndarray) -> None:
        """Write the best k of each query into the rows of ``scores`` and ``indices`` that belong to this block."""
        pairs, exact = self._exact_best(self._pruned()[0], run)
        query = pairs >> DOCUMENT_BITS
        slot = np.arange(len(pairs)) - np.searchsorted(query, query)
        scores[self.first + query, slot], indices[self.first + query, slot] = exact, pairs & DOCUMENT_MASK

    def _floor(self) -> np.ndarray:
        """The scores below which no document can be among the best k, (n,) float32."""
        # Adding up n products in float32, in any order, is off by at most (n + 2)·u·|q||d| with u = 2⁻²⁴, to first
        # order (Higham 2002, section 3.1). Twice that is allowed, and a little for subnormal numbers.
        dim = self.queries.shape[1]
        error = self._norms * (self._longest * 2 * (dim + 2) * 2.0**-24) + (dim + 1) * 2.0**-100
        floor = np.maximum(self._best[:, 0] - 2 * error, LOWEST)  # -inf marks excluded documents
        return np.nextafter(floor.astype(np.float32), np.float32(LOWEST))

    def _pruned(self) -> Candidates:
        """The candidates that still reach the floor."""
        pairs, scores = (np.concatenate(column) for column in zip(*self._pool, strict=True))
        keep = scores >= self._floor()[pairs >> DOCUMENT_BITS]
        return pairs[keep], scores[keep]

    def _exact_best(self, pairs: np.ndarray, run: Run) -> Candidates:
        """The best k of each query by their exact scores, query by query, the best first."""
        pairs = np.sort(pairs)
        step = max(1, GATHERED // max(1, self.queries.shape[1]))
        pieces = [pairs[at : at + step] for at in range(0, len(pairs), step)]
        exact = np.concatenate([np.empty(0, np.float32), *run(self._score, pieces)])
        order = np.argsort(-exact, kind="stable")  # equal scores stay in the order of their documents
        order = order[(pairs[order] >> DOCUMENT_BITS).astype(np.uint16).argsort(kind="stable")]
        pairs, exact = pairs[order], exact[order]
        query = pairs >> DOCUMENT_BITS
        keep = np.arange(len(pairs)) - np.searchsorted(query, query) < self.k
        return pairs[keep], exact[keep]

    def _score(self, pairs: np.ndarray) -> np.ndarray:
        """The exact scores of sorted pairs: dot products in float64, rounded to float32."""
        gathered = self.rows.take(pairs & DOCUMENT_MASK)
        asked, begins = np.unique(pairs >> DOCUMENT_BITS, return_index=True)
        scores = np.empty(len(pairs), np.float32)
        for query, begin, end in zip(asked, begins, [*begins[1:], len(pairs)], strict=True):
            # einsum sums each row in one fixed order, so that equal documents score equally.
            documents, asked_for = gathered[begin:end].astype(np.float64), self.queries[query].astype(np.float64)
            scores[begin:end] = np.einsum("ij,j->i", documents, asked_for)
        return scores


def _on_cpu(values: np.ndarray, operand: np.ndarray, hidden: tuple[np.ndarray, ...], floor: np.ndarray) -> Entries:
    scores = values @ operand
    scores[hidden] = -np.inf
    entries = np.flatnonzero(scores >= floor)  # skips stretches without any at the speed of memory
    document, query = np.divmod(entries, len(floor))
    return document, query, scores.ravel()[entries]


def _on_device(values: Any, operand: Any, hidden: tuple[np.ndarray, ...], floor: np.ndarray) -> Entries:
    import torch

    with torch.inference_mode():
        scores = values @ operand
        if len(hidden[0]):
            scores[torch.from_numpy(hidden[0]), torch.from_numpy(hidden[1])] = -torch.inf
        document, query = (scores >= torch.from_numpy(floor).to(scores.device)).nonzero(as_tuple=True)
        score = scores[document, query]
        return document.cpu().numpy(), query.cpu().numpy(), score.cpu().numpy()


def _moved(values: np.ndarray, device: str) -> Any:
    """A float32 tensor on the device. Half precision is widened there: the way to it is the slowest part."""
    import torch

    return torch.from_numpy(values).to(device).float()


def _squares(values: np.ndarray) -> np.ndarray:
    """The squares of the norms, perhaps not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares: np.ndarray = np.vecdot(values, values)
        return squares


def _norms(values: Any, start: int) -> np.ndarray:
    """Euclidean norms (n,). Raises InputError for a row that is not finite, numbered from ``start``."""
    if isinstance(values, np.ndarray):
        norms = np.sqrt(_squares(values))
    else:
        import torch

        norms = torch.linalg.vector_norm(values, dim=1).cpu().numpy()
    if not np.isfinite(norms).all():
        row = start + int(np.flatnonzero(~np.isfinite(norms))[0])
        raise InputError(f"The embedding of document {row} holds a value that is not finite, or too large.")
    return norms


def _excluded_pairs(exclude: Sequence[Sequence[int]] | None, n_queries: int, n_documents: int) -> np.ndarray:
    """The (document, query) pairs that must not be found, sorted, (n, 2)."""
    if exclude is not None and len(exclude) != n_queries:
        raise InputError(f"There are {len(exclude)} lists of excluded documents for {n_queries} queries.")
    pairs = [(d, q) for q, listed in enumerate(exclude or ()) for d in listed]
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    if len(table) and (table[0, 0] < 0 or table[-1, 0] >= n_documents):
        raise InputError(f"An excluded document is not among the {n_documents} documents.")
    return table


def _steps(n_documents: int, n_queries: int, threads: int, device: str) -> list[range]:
    """The blocks in which the documents are looked at."""
    step = DEVICE_ROWS
    if device == "cpu":
        step = max(FEWEST_ROWS, min(MOST_ROWS, SCORES_AT_ONCE // n_queries))
        # A few blocks for each processor, so that none waits long for the last one.
        step = min(step, max(256, n_documents // (8 * threads)))
    first = min(step, FEWEST_ROWS, n_documents)
    rest = (range(start, min(start + step, n_documents)) for start in range(first, n_documents, step))
    return [range(first), *rest]


@contextmanager
def _pool(threads: int) -> Iterator[Run]:
    """``map`` by so many threads. Nothing new is begun after an error, and no thread is left."""
    if threads < 2:
        yield map
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


@functools.cache
def _blas() -> Any:
    """threadpoolctl's control of NumPy's BLAS, and how many threads it had; without a library that it knows, one."""
    from threadpoolctl import ThreadpoolController

    control = ThreadpoolController().select(user_api="blas")
    return control, max((library.num_threads for library in control.lib_controllers), default=1)


def _blas_threads() -> int:
    return int(_blas()[1])


_searches = 0
_searches_lock = threading.Lock()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep NumPy's products in the thread that asks for them, until the last of the searches at work has ended."""
    # A product spread over all processors brings them together at its end; what follows then runs on one of them, on
    # data that has left the cache. The setting is the whole process's, so searches share it.
    global _searches
    control, threads = _blas()

    def limit(number: int) -> None:
        for library in control.lib_controllers:
            library.set_num_threads(number)

    with _searches_lock:
        _searches += 1
        limit(1)
    try:
        yield
    finally:
        with _searches_lock:
            _searches -= 1
            if not _searches:
                limit(threads)


@contextmanager
def _full_float32() -> Iterator[None]:
    """Multiply float32 in float32, without the TF32 shortcut."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Rows:
    """The rows of one array, or of several that follow each other. Nothing is copied before it is asked for.

    Accepts (n, dim) arrays of float32 or float16; other floats become float32. InputError for other shapes.
    """

    def __init__(self, source: Any) -> None:
        parts = list(source) if isinstance(source, Sequence) else [source]
        self.parts = [_floats(part) for part in parts]
        widths = {part.shape[1] for part in self.parts}
        if len(widths) > 1:
            raise InputError(f"Embeddings of different dimensions cannot be searched together: {sorted(widths)}.")
        self.dim = widths.pop() if widths else 0
        self.starts = np.cumsum([0, *(len(part) for part in self.parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def slice(self, start: int, stop: int) -> np.ndarray:
        """Rows start … stop-1 as one writable array in memory, in their own precision."""
        stop = min(stop, len(self))
        pieces = []
        for part, first in zip(self.parts, self.starts, strict=False):
            low, high = max(start - first, 0), min(stop - first, len(part))
            if low < high:
                pieces.append(part[low:high])
        if len(pieces) == 1 and pieces[0].flags.writeable and pieces[0].flags.c_contiguous:
            return pieces[0]
        copied = np.concatenate(pieces) if pieces else np.empty((0, self.dim), np.float32)
        self._forget(pieces)
        return copied

    def take(self, indices: np.ndarray) -> np.ndarray:
        """The rows of ``indices``, in their order, as a float32 array in memory."""
        if len(self.parts) == 1:
            copied = self.parts[0][indices].astype(np.float32, copy=False)
            self._forget(self.parts)
            return copied
        copied = np.empty((len(indices), self.dim), np.float32)
        order = np.argsort(indices, kind="stable")
        ascending = indices[order]
        for part, first in zip(self.parts, self.starts, strict=False):
            low, high = np.searchsorted(ascending, [first, first + len(part)])
            if low < high:
                copied[order[low:high]] = part[ascending[low:high] - first]
                self._forget([part])  # a page read brings its neighbours: a few rows here and there map a whole file
        return copied

    @staticmethod
    def _forget(pieces: list[np.ndarray]) -> None:
        """Let go of the mapped pages of memory maps once they are copied: resident memory then stays bounded."""
        for piece in pieces:
            mapped = getattr(piece, "_mmap", None)
            if mapped is not None and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def _floats(part: Any) -> np.ndarray:
    array = part if isinstance(part, np.ndarray) else np.asarray(part)
    if array.ndim != 2:
        raise InputError(f"Embeddings must have two dimensions, not the shape {array.shape}.")
    if array.dtype in (np.float32, np.float16):
        return array
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"Embeddings must be numbers, not {array.dtype}.")
    return array.astype(np.float32)
