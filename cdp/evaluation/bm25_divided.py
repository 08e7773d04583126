"""BM25 by the workers of a crew, with the scores and the order of one machine, bit for bit.

What a term weighs depends on all documents, so there are two passes. In the first a worker splits a range of documents
into terms and leaves their postings in a file. Then the job's own process adds up what the whole collection says of
each term: the size of its vocabulary. In the second a worker weighs the postings of a range by that, as one machine
would, and finds the best of its documents for every query; the best of all ranges are merged by score, then number.

A file of postings that is there is not made again, so a job that is resumed goes on with those that are missing.
"""

from __future__ import annotations

import io
import json
import shutil
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cdp.base.crew import Crew, kept
from cdp.base.workspace import sha256_text, write_bytes
from cdp.evaluation import bm25, postings
from cdp.evaluation.bm25 import Ranker, Watch
from cdp.evaluation.postings import Statistics
from cdp.retrievers.exact_search.divided import merged

if TYPE_CHECKING:
    from bm25s import BM25

DOCUMENTS, FEWEST = 16_384, 500
"""Most and fewest documents in a range."""

RANGES = 4
"""Ranges for each worker: a node that dies loses a quarter of what one has to do."""

ALONE = 20_000_000
"""Characters whose words this process has counted before a worker has heard of them."""


@dataclass(frozen=True)
class Texts:
    """A range of documents, and the file for their postings."""

    path: str
    language: str
    texts: Sequence[str] = field(repr=False)


@dataclass(frozen=True)
class Shard:
    """Postings from document ``first`` on, and what they need to be weighed: the file with the number of documents that
    each term stands in. ``excluded`` are (query, document) pairs within the range, counted from ``first``."""

    path: str
    frequencies: str
    whole: Statistics
    first: int
    queries: str
    top_k: int
    excluded: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Team:
    """A crew, and the folder of the job for what it leaves on the way."""

    crew: Crew
    folder: Path

    def indexed(self, documents: Sequence[str], language: str, watch: Watch | None = None) -> Ranker:
        """As ``bm25.whole``, which is what a small collection gets."""
        if sum(map(len, documents)) < ALONE:
            return bm25.whole(documents, language, watch)
        n = len(documents)
        step = max(FEWEST, min(DOCUMENTS, -(-n // (RANGES * self.crew.size))))
        ranges = [(begin, min(begin + step, n)) for begin in range(0, n, step)]
        paths = [self._path(documents[begin:end], language, begin) for begin, end in ranges]
        self._count(documents, ranges, paths, language, watch)
        whole, frequencies = self._added_up(paths)
        shards = list(zip(paths, frequencies, ranges, strict=True))

        def ranked(
            queries: Sequence[str], top_k: int, *, exclude: Sequence[Sequence[int]] | None = None,
            watch: Watch | None = None,
        ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
            return self._ranked(shards, whole, language, queries, top_k, exclude, watch)

        return ranked

    def forget(self) -> None:
        """Delete what was left on the way, which is not needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, texts: Sequence[str], language: str, begin: int) -> Path:
        """Named by what is counted, so that no file of other documents is taken for it."""
        return self.folder / f"{begin:012d}-{sha256_text(bm25.VERSION, language, *texts)[:24]}.npz"

    def _count(
        self, documents: Sequence[str], ranges: Sequence[tuple[int, int]], paths: Sequence[Path], language: str,
        watch: Watch | None,
    ) -> None:  # fmt: skip
        """The first pass, for the ranges whose files are missing."""
        left = [(path, range_) for path, range_ in zip(paths, ranges, strict=True) if not path.exists()]
        done = len(documents) - sum(end - begin for _, (begin, end) in left)

        def tell(_: int = 0) -> None:
            if watch is not None:
                watch("indexing", done, len(documents))

        tell()
        parts = (Texts(str(path), language, documents[begin:end]) for path, (begin, end) in left)
        for _, n in self.crew.each(count, parts, on_done=tell):
            done += n
            tell()

    def _added_up(self, paths: Sequence[Path]) -> tuple[Statistics, list[Path]]:
        """What the whole collection says, and for each range a file of what it says of the terms there."""
        everywhere: Counter[str] = Counter()
        n_documents = n_terms = 0
        for path in paths:
            terms, frequencies, of = postings.frequencies_of(path)
            everywhere.update(dict(zip(terms, frequencies.tolist(), strict=True)))
            n_documents, n_terms = n_documents + of.n_documents, n_terms + of.n_terms
        whole = Statistics(n_documents, n_terms)
        bm25.check_words(whole)
        files = []
        for path in paths:
            terms, _, _ = postings.frequencies_of(path)
            content = io.BytesIO()
            np.save(content, np.array([everywhere[term] for term in terms], np.int64), allow_pickle=False)
            files.append(path.with_suffix(".frequencies.npy"))
            write_bytes(files[-1], content.getvalue())
        return whole, files

    def _ranked(
        self, shards: Sequence[tuple[Path, Path, tuple[int, int]]], whole: Statistics, language: str,
        queries: Sequence[str], top_k: int, exclude: Sequence[Sequence[int]] | None, watch: Watch | None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The second pass."""
        asked = self.folder / f"queries-{sha256_text(language, *queries)[:24]}.json"
        write_bytes(asked, json.dumps(list(bm25.terms_of(queries, language))).encode("ascii"))
        best = np.full((len(queries), top_k), -np.inf, np.float32), np.full((len(queries), top_k), -1, np.int64)
        seen = 0

        def tell(_: int = 0) -> None:
            if watch is not None:
                watch("searching", seen, whole.n_documents)

        def parts() -> Iterator[Shard]:
            pairs = sorted((d, q) for q, listed in enumerate(exclude or ()) for d in listed)
            for path, frequencies, (begin, end) in shards:
                of_range = pairs[bisect_left(pairs, (begin, 0)) : bisect_left(pairs, (end, 0))]
                excluded = tuple((q, d - begin) for d, q in of_range)
                yield Shard(str(path), str(frequencies), whole, begin, str(asked), top_k, excluded)

        tell()
        for number, found in self.crew.each(rank, parts(), on_done=tell):
            best = merged(best, found, top_k)
            begin, end = shards[number][2]
            seen += end - begin
            tell()
        return best


def count(part: Texts) -> int:
    """Leave the postings of a range, unless they are there; how many documents it has."""
    path = Path(part.path)
    if not path.exists():
        postings.save(postings.count(bm25.terms_of(part.texts, part.language)), path)
    return len(part.texts)


def rank(part: Shard) -> tuple[np.ndarray, np.ndarray]:
    """The best of a range, (n_queries, ``top_k`` or its documents if those are fewer), by the numbers of the whole
    collection."""
    index = kept("bm25", (part.path, part.whole), lambda: _weighed(part))
    queries = kept("bm25 queries", part.queries, lambda: json.loads(Path(part.queries).read_bytes()))
    exclude: list[list[int]] | None = [[] for _ in queries] if part.excluded else None
    for query, document in part.excluded:
        exclude[query].append(document)  # type: ignore[index]
    top_k = min(part.top_k, int(index.scores["num_docs"]))
    scores, numbers = bm25.rank_terms(index, queries, len(queries), top_k, exclude=exclude)
    return scores, np.where(numbers < 0, numbers, numbers + part.first)


def _weighed(part: Shard) -> BM25:
    frequencies = np.load(part.frequencies, allow_pickle=False)
    return postings.weighed(postings.load(Path(part.path)), frequencies, part.whole, k1=bm25.K1, b=bm25.B)
