"""Exact top k by dot product, for any corpus that fits on disk: blocks, rounding bound, threads, excluded documents.

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from cdp.base.errors import ConfigError, InputError
from cdp.base.text import PhaseProgress, silent

# Queries per product. A candidate's query is sorted as 16 bits.
QUERY_BLOCK = 1024

# Documents per product on the CPU, from many queries to few: the product (1 to 4 MB) is looked at in the cache.
FEWEST_ROWS, MAX_ROWS, SCORES_AT_ONCE = 1024, 4096, 1 << 18

# Documents per product on a GPU, and per copy; 25 MB of float32 at 768 dimensions.
DEVICE_ROWS = 8192

# Multiplications that take less time than starting threads for them: a few milliseconds.
SINGLE_THREADED = 50_000_000

# Numbers scored again at once: 2 MB of float32.
GATHERED = 1 << 19

# Candidates held beside 4·k per query before exact scores choose among them.
SPARE = 1 << 20

# Highest square of a query's norm. Times a document's norm, whose square is a finite float32, every product stays below
# 2¹²⁶, a quarter of the largest float32: no rounding on the way reaches infinity.
LARGEST_SQUARE = 2.0**124
LOWEST = float(np.finfo(np.float32).min)

# Document, query and score of each entry of a product that reaches its query's floor.
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
Product = Callable[[Any, Any, np.ndarray], Entries]

# ``map``, in one thread or in several.
Mapper = Callable[..., Iterator[Any]]


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
    progress: PhaseProgress = silent,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best documents of each query by dot product, best first: (scores, indices).

    Both have the shape (n_queries, k), float32 and int64. Where a query has fewer than k documents, the last places
    hold -inf and -1. Raises InputError for shapes that do not fit and for values that are not finite.

    ``queries`` (n_queries, dim) and ``documents`` (n_documents, dim) are float32 or float16 arrays. Documents may be
    memory maps, a sequence of arrays whose rows follow each other, or ``Prepared`` (on the CPU). ``exclude[i]`` lists
    the documents that query i must not retrieve. ``device`` is a name that torch knows. ``progress`` is called with the
    documents searched so far and their number, and may raise to end the search.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")

    questions = np.ascontiguousarray(queries, dtype=np.float32)
    prepared = documents if isinstance(documents, Prepared) else None

    rows = prepared.rows if prepared is not None else Rows(documents)
    if questions.ndim != 2 or (len(rows) and questions.shape[1] != rows.dim):
        raise InputError(f"Queries of shape {questions.shape} do not fit documents of {rows.dim} dimensions.")
    if not (squares(questions) < LARGEST_SQUARE).all():
        raise InputError("A query's embedding holds a value that is not finite, or too large.")

    n = len(questions)
    scores, indices = np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64)

    if n == 0 or len(rows) == 0:
        return scores, indices
    if exclude is not None and len(exclude) != n:
        raise InputError(f"There are {len(exclude)} lists of excluded documents for {n} queries.")

    hidden = exclude or [()] * n
    if not all(0 <= document < len(rows) for listed in hidden for document in listed):
        raise InputError(f"An excluded document is not among the {len(rows)} documents.")

    wanted = k + max(map(len, hidden))  # the excluded ones are taken out at the end
    product = _on_cpu if device == "cpu" else _on_device
    starts = range(0, n, QUERY_BLOCK)
    blocks = [_Block(questions[start : start + QUERY_BLOCK], wanted, rows, device) for start in starts]

    def look(step: range) -> int:
        values = rows.slice(step.start, step.stop)
        values = np.ascontiguousarray(values, np.float32) if device == "cpu" else _moved(values, device)
        norms = _norms(values, step.start) if prepared is None else prepared.norms[step.start : step.stop]
        # Squares below the normal range of float32 are lost: they add less than sqrt(dim) · 2⁻⁷⁴ to a norm.
        longest = float(norms.max()) + rows.dim**0.5 * 2.0**-74
        for block in blocks:
            block.look(values, step.start, longest, product)
        return len(step)

    threads = blas_threads() if device == "cpu" and n * len(rows) * rows.dim > SINGLE_THREADED else 1
    first, *others = _steps(len(rows), n, threads, device)
    seen = 0
    with one_blas_thread() if device == "cpu" else _full_float32(), thread_pool(threads) as run:
        # The first block is looked at alone: it sets the floors that spare the others most of their work.
        for done in itertools.chain([look(first)], run(look, others)):
            seen += done
            progress(seen, len(rows))

        for start, block in zip(starts, blocks, strict=True):
            block.prune()
            for row, (found, exact) in enumerate(run(block.best, range(len(block.queries))), start):
                left = ~np.isin(found, hidden[row]) if hidden[row] else slice(None)
                found, exact = found[left][:k], exact[left][:k]
                scores[row, : len(found)], indices[row, : len(found)] = exact, found

    return scores, indices


class Best(ABC):
    """The documents that may be among the ``wanted`` best of each of n queries. Filled by several threads.

    A float32 score is off by at most ``error``, so a document can be among the best only where its score is not below
    the last of the best seen minus twice the error. Such documents are kept as candidates, and scored again at the end.
    """

    def __init__(self, n: int, wanted: int) -> None:
        self.n, self.wanted = n, wanted
        self._last = np.full(n, -np.inf, np.float32)  # of the best seen at the last look
        self._found: list[Entries] = []
        self._held, self._enough, self._limit = 0, 0, 4 * wanted * n + SPARE
        self._lock = threading.Lock()

    @abstractmethod
    def error(self) -> np.ndarray:
        """By how much a float32 score may be off, per query: (n,) float64."""

    @abstractmethod
    def exact(self, query: int, documents: np.ndarray) -> np.ndarray:
        """The scores of these documents, computed in float64 and rounded to float32."""

    def floor(self) -> np.ndarray:
        """The scores below which no document can be among the best, (n,) float32."""
        floor = np.maximum(self._last - 2 * self.error(), LOWEST)
        return np.nextafter(floor.astype(np.float32), np.float32(LOWEST))

    def take(self, found: Entries) -> None:
        """Keep these entries."""
        with self._lock:
            self._found.append(found)
            self._held += len(found[1])

            # Each time that the candidates have doubled: as often as the documents do, if their order is random.
            if self._held > self._enough:
                self.prune()
                self._enough = min(2 * self._held, self._limit)

    def best(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pruned candidates with the ``wanted`` highest exact scores, best first, and these scores."""
        document, own, _ = self._found[0]
        low, high = np.searchsorted(own, [query, query + 1])
        candidates = np.sort(document[low:high])
        exact = self.exact(query, candidates)

        order = np.argsort(-exact, kind="stable")[: self.wanted]  # equal scores stay in the order of their documents
        return candidates[order], exact[order]

    def prune(self) -> None:
        """Keep the candidates that still reach the floor, sorted by query."""
        document, query, score = (np.concatenate(column) for column in zip(*self._found, strict=True))
        order = query.astype(np.uint16).argsort(kind="stable")  # a radix sort
        document, query, score = document[order], query[order], score[order]

        bounds = np.searchsorted(query, np.arange(self.n + 1)).tolist()
        for number, (low, high) in enumerate(itertools.pairwise(bounds)):
            if high - low >= self.wanted:
                self._last[number] = np.partition(score[low:high], -self.wanted)[-self.wanted]

        keep = score >= self.floor()[query]
        self._found = [(document[keep], query[keep], score[keep])]
        self._held = int(keep.sum())

        if self._held > self._limit // 2:  # so many documents score alike that only exact scores tell them apart
            chosen = [self.best(number) for number in range(self.n)]
            document, score = (np.concatenate(column) for column in zip(*chosen, strict=True))
            self._found = [(document, np.repeat(np.arange(len(chosen)), [len(best) for best, _ in chosen]), score)]
            self._held = len(document)


class _Block(Best):
    """The best of up to ``QUERY_BLOCK`` queries by dot product."""

    def __init__(self, queries: np.ndarray, wanted: int, rows: Rows, device: str) -> None:
        super().__init__(len(queries), wanted)
        self.queries, self.rows = queries, rows
        self._operand = np.ascontiguousarray(queries.T) if device == "cpu" else _moved(queries, device).T
        self._norms = np.linalg.norm(queries.astype(np.float64), axis=1)
        self._longest = 0.0

    def look(self, values: Any, start: int, longest: float, product: Product) -> None:
        """Take in those of the documents ``start`` … that may be among the best; ``longest`` is their highest norm."""
        with self._lock:
            self._longest = max(self._longest, longest)
            floor = self.floor()

        document, query, score = product(values, self._operand, floor)
        self.take((document + start, query, score))

    def error(self) -> np.ndarray:
        # Adding up n products in float32, in any order, is off by at most (n + 2)·u·|q||d| with u = 2⁻²⁴, to first
        # order (Higham 2002, section 3.1). Twice that is allowed, and a little for subnormal numbers.
        dim = self.queries.shape[1]
        return self._norms * (self._longest * 2 * (dim + 2) * 2.0**-24) + (dim + 1) * 2.0**-100

    def exact(self, query: int, documents: np.ndarray) -> np.ndarray:
        question = self.queries[query].astype(np.float64)
        step = max(1, GATHERED // max(1, len(question)))

        # einsum sums each row in one fixed order, so that equal documents score equally.
        exact = np.empty(len(documents), np.float32)
        for at in range(0, len(documents), step):
            part = slice(at, at + step)
            exact[part] = np.einsum("ij,j->i", self.rows.take(documents[part]).astype(np.float64), question)
            self.rows.forget()

        return exact


def _on_cpu(values: np.ndarray, operand: np.ndarray, floor: np.ndarray) -> Entries:
    scores = values @ operand
    entries = np.flatnonzero(scores >= floor)  # skips stretches without any at the speed of memory
    document, query = np.divmod(entries, len(floor))
    return document, query, scores.ravel()[entries]


def _on_device(values: Any, operand: Any, floor: np.ndarray) -> Entries:
    import torch

    with torch.inference_mode():
        scores = values @ operand
        document, query = (scores >= torch.from_numpy(floor).to(scores.device)).nonzero(as_tuple=True)
        return document.cpu().numpy(), query.cpu().numpy(), scores[document, query].cpu().numpy()


def _moved(values: np.ndarray, device: str) -> Any:
    """A float32 tensor on the device. Half precision is widened there: the way to it is the slowest part."""
    import torch

    return torch.from_numpy(values).to(device).float()


def squares(values: np.ndarray) -> np.ndarray:
    """The squares of the norms, perhaps not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares: np.ndarray = np.vecdot(values, values)
        return squares


def _norms(values: Any, start: int) -> np.ndarray:
    """Euclidean norms (n,). Raises InputError for a row that is not finite, numbered from ``start``."""
    if isinstance(values, np.ndarray):
        norms = np.sqrt(squares(values))
    else:
        import torch

        norms = torch.linalg.vector_norm(values, dim=1).cpu().numpy()
    if not np.isfinite(norms).all():
        row = start + int(np.flatnonzero(~np.isfinite(norms))[0])
        raise InputError(f"The embedding of document {row} holds a value that is not finite, or too large.")
    return norms


def _steps(n_documents: int, n_queries: int, threads: int, device: str) -> list[range]:
    """The blocks in which the documents are looked at."""
    step = DEVICE_ROWS
    if device == "cpu":
        step = max(FEWEST_ROWS, min(MAX_ROWS, SCORES_AT_ONCE // n_queries))
        # A few blocks for each processor, so that none waits long for the last one.
        step = min(step, max(256, n_documents // (8 * threads)))
    first = min(step, FEWEST_ROWS, n_documents)
    rest = (range(start, min(start + step, n_documents)) for start in range(first, n_documents, step))
    return [range(first), *rest]


@contextmanager
def thread_pool(threads: int) -> Iterator[Mapper]:
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


def blas_threads() -> int:
    return int(_blas()[1])


_searches = 0
_searches_lock = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
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


@functools.cache
def _openmp() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="openmp").lib_controllers)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keep torch's work in the thread that asks for it; other threads have as many as before."""
    # Threads that wait for each other on busy processors took 8 ms for a product of 0.05 ms.
    import torch

    torch.get_num_threads()  # sets the number of a thread that has not used torch yet: it would be set later
    before = [(library, library.num_threads) for library in _openmp()]
    try:
        for library, _ in before:
            library.set_num_threads(1)
        yield
    finally:
        for library, threads in before:
            library.set_num_threads(threads)


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

    Accepts (n, dim) arrays of float32 or float16; other floats become float32, and so does float16 beside it.
    InputError for other shapes.
    """

    def __init__(self, source: Any) -> None:
        parts = list(source) if isinstance(source, Sequence) else [source]
        floats = [_floats(part) for part in parts]
        self.dtype = np.result_type(*floats) if floats else np.dtype(np.float32)
        self.parts = [part.astype(self.dtype, copy=False) for part in floats]
        widths = {part.shape[1] for part in self.parts}
        if len(widths) > 1:
            raise InputError(f"Embeddings of different dimensions cannot be searched together: {sorted(widths)}.")
        self.dim = widths.pop() if widths else 0
        self.starts = np.cumsum([0, *(len(part) for part in self.parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def slice(self, start: int, stop: int) -> np.ndarray:
        """Rows start … stop-1 as one writable array in memory, in their own precision."""
        inside = zip(self.parts, self.starts, strict=False)
        pieces = [part[max(start - first, 0) : max(stop - first, 0)] for part, first in inside]
        pieces = [piece for piece in pieces if len(piece)]
        if len(pieces) == 1 and pieces[0].flags.writeable and pieces[0].flags.c_contiguous:
            return pieces[0]
        copied = np.concatenate(pieces) if pieces else np.empty((0, self.dim), np.float32)
        self.forget(pieces)
        return copied

    def take(self, indices: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The rows of ``indices``, in any order, as an array in memory: ``out`` if given. ``forget`` them once used."""
        taken = np.empty((len(indices), self.dim), self.dtype) if out is None else out
        if len(self.parts) == 1:
            return self.parts[0].take(indices, axis=0, out=taken, mode="clip")

        numbers = np.searchsorted(self.starts, indices, "right") - 1
        for number in np.unique(numbers):
            inside = numbers == number
            taken[inside] = self.parts[number].take(indices[inside] - self.starts[number], axis=0, mode="clip")

        return taken

    def forget(self, parts: Sequence[np.ndarray] | None = None) -> None:
        """Let go of the mapped pages of memory maps, of all parts by default: resident memory then stays bounded."""
        # A page read brings its neighbours: a few rows here and there map a whole file.
        for part in self.parts if parts is None else parts:
            mapped = getattr(part, "_mmap", None)
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
