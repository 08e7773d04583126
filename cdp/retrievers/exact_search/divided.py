"""Exact search by the workers of a crew: each looks at a range of shards, and the best of all are merged.

The best k of a collection are among the best k of its ranges. A score is a float64 dot product of two vectors, rounded
to float32: it does not depend on what else is searched. So merging by score, then document number, gives what one
search of everything gives, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdp.base.crew import Crew, kept
from cdp.base.errors import InputError
from cdp.retrievers.exact_search import search

RANGES = 2
"""Ranges for each of several workers: a node that dies loses half of what one has to do at most. Each range has to find
and score its own best k, so one worker alone has one."""

LARGEST = 64
"""Shards in one range; a million documents."""

ALONE = 1_000_000_000
"""Multiplications that this process has done before a worker has heard of them."""

Located = tuple[str, int]
"""A shard's file and its rows."""


@dataclass(frozen=True)
class Range:
    """Shards that follow each other, the first row of which is document ``first``, and what is asked of them.

    ``queries`` are shards too. ``excluded`` are (query, document) pairs within the range, counted from ``first``.
    """

    queries: tuple[Located, ...]
    documents: tuple[Located, ...]
    first: int
    k: int
    excluded: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.documents)


def search_by(
    crew: Crew | None,
    queries: Sequence[np.ndarray],
    documents: Sequence[np.ndarray],
    k: int,
    *,
    exclude: Sequence[Sequence[int]] | None = None,
    device: str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What ``search`` returns, found by a crew; by this process on ``device`` where there is none, or where embeddings
    lie in memory alone. ``queries`` and ``documents`` are shards that follow each other."""
    asked, located = _located(queries), _located(documents)
    n, work = sum(map(len, queries)), sum(map(np.size, documents))
    if crew is None or not asked or not located or n * work < ALONE:
        return search(np.concatenate(queries), documents, k, exclude=exclude, device=device, progress=progress)
    ranges = list(_ranges(asked, located, k, exclude, crew.size))
    best = np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64)
    seen = 0

    def tell(_: int) -> None:
        if progress is not None:
            progress(seen)

    for number, found in crew.each(search_range, ranges, on_done=tell):
        best = merged(best, found, k)
        seen += ranges[number].rows
        tell(number)
    return best


def search_range(part: Range) -> tuple[np.ndarray, np.ndarray]:
    """The best of a range, (n_queries, k or its rows if those are fewer), by the numbers of the whole collection."""
    import torch

    queries = kept("queries", part.queries, lambda: np.concatenate([_mapped(one) for one in part.queries]))
    excluded: list[list[int]] = [[] for _ in range(len(queries))] if part.excluded else []
    for query, document in part.excluded:
        excluded[query].append(document)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    documents = [_mapped(one) for one in part.documents]
    try:
        scores, numbers = search(queries, documents, min(part.k, part.rows), exclude=excluded or None, device=device)
    except InputError as error:
        raise InputError(f"From document {part.first} on: {error.message}", hint=error.hint) from error
    return scores, np.where(numbers < 0, numbers, numbers + part.first)


def merged(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best ``k`` of two results (scores, numbers): the higher score first, of equal ones the lower number."""
    scores = np.concatenate([one[0], other[0]], axis=1)
    numbers = np.concatenate([one[1], other[1]], axis=1)
    order = np.lexsort((numbers, -scores), axis=1)[:, :k]  # what is not there has the score -inf, and stands last
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(numbers, order, axis=1)


def _ranges(
    queries: tuple[Located, ...],
    documents: tuple[Located, ...],
    k: int,
    exclude: Sequence[Sequence[int]] | None,
    workers: int,
) -> Iterator[Range]:
    starts = np.cumsum([0, *(rows for _, rows in documents)])
    if exclude is not None and any(not 0 <= d < starts[-1] for listed in exclude for d in listed):
        raise InputError(f"An excluded document is not among the {starts[-1]} documents.")
    pairs = np.array(sorted((d, q) for q, listed in enumerate(exclude or ()) for d in listed), dtype=np.int64).reshape(
        -1, 2
    )
    wanted = RANGES * workers if workers > 1 else 1
    step = min(LARGEST, max(1, -(-len(documents) // wanted)))
    for begin in range(0, len(documents), step):
        first, last = starts[begin], starts[min(begin + step, len(documents))]
        low, high = np.searchsorted(pairs[:, 0], [first, last])
        excluded = tuple((int(q), int(d - first)) for d, q in pairs[low:high])
        yield Range(queries, documents[begin : begin + step], int(first), k, excluded)


def _located(shards: Sequence[np.ndarray]) -> tuple[Located, ...]:
    """Where shards lie; empty if one of them is not the whole of a file."""
    files = [getattr(shard, "filename", None) for shard in shards]
    if not all(files):
        return ()
    return tuple((str(Path(str(file)).resolve()), len(shard)) for file, shard in zip(files, shards, strict=True))


def _mapped(located: Located) -> np.ndarray:
    path, rows = located
    shard: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    if len(shard) != rows:
        raise InputError(f"{path} has {len(shard)} rows, and {rows} were written.", hint="Delete it and run it again.")
    return shard
