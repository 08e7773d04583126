"""What a metrics job writes down: values at each M, per-document columns, and the pairs behind the numbers."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.workspace import read_json_or_none, sha256_text, write_bytes, write_json
from cdp.metrics.measures.paraphrase_ratio import Pair, document_ratios
from cdp.metrics.query_set import CORPUS, ONE_QUERY, MetricValue, aggregate, depths_of
from cdp.metrics.scorers import PairScorer

# So many of the highest- and of the lowest-scoring pairs are kept as examples.
EXAMPLES = 20


@dataclass(frozen=True)
class Selection:
    """The documents that are measured, each with at least one query.

    ``human`` maps document ids to human queries; ``sampled_from`` is the number of documents in the whole set where
    these are a sample of it.
    """

    ids: list[str]
    queries: list[list[str]]
    human: dict[str, list[str]] | None
    language: str
    sampled_from: int | None

    def only(self, ids: Sequence[str]) -> Selection:
        """Without the documents that are not among ``ids``, which stand in the same order."""
        if len(ids) == len(self.ids):
            return self
        wanted = set(ids)
        rows = [row for row, name in enumerate(self.ids) if name in wanted]
        return replace(self, ids=[self.ids[row] for row in rows], queries=[self.queries[row] for row in rows])


def paraphrase_values(
    table: PairTable, scores: NDArray[np.float64], scorer: PairScorer, selection: Selection, seed: int
) -> list[MetricValue]:
    """CE (or its stand-in) at each M, and over pairs of queries of different documents."""
    name = scorer.measure.name
    facts: dict[str, Any] = {"model": scorer.model, "threshold": scorer.threshold, "seed": seed}
    depths = depths_of(selection.queries)
    ratios = (table.ratios(scores, scorer.threshold, depth) for depth in depths)
    drawn = scores[table.corpus]
    drawn = drawn[~np.isnan(drawn)]
    across = aggregate(
        name,
        (drawn > scorer.threshold).astype(np.float64),
        n_queries=2 * len(drawn),
        n_pairs=len(drawn),
        per_doc=depths[-1],
        scope=CORPUS,
        reason="There are not two documents with queries.",
        sampled_from=selection.sampled_from,
        **facts,
    )
    within = _at_each_depth(name, ratios, selection, table.n_pairs, reason=ONE_QUERY, **facts)
    return [*within, replace(across, n_documents=2 * len(drawn))]


def dist_sim_values(
    similarities: NDArray[np.float64], selection: Selection, encoder: str, seed: int
) -> list[MetricValue]:
    """Dist-Sim at each M from the documents' values, (n_documents, n_depths)."""
    human = [len((selection.human or {}).get(name, ())) for name in selection.ids]

    def n_pairs(depth: int) -> int:
        return sum(len(queries[:depth]) * n for queries, n in zip(selection.queries, human, strict=True))

    reason = "No document has human queries."
    return _at_each_depth("dist_sim", similarities.T, selection, n_pairs, reason=reason, model=encoder, seed=seed)


def diversity_values(
    diversities: NDArray[np.float64], selection: Selection, encoder: str, seed: int
) -> list[MetricValue]:
    """Embedding diversity at each M from the documents' values, (n_documents, n_depths)."""
    return _at_each_depth(
        "embedding_diversity",
        diversities.T,
        selection,
        lambda depth: sum(math.comb(len(queries[:depth]), 2) for queries in selection.queries),
        reason=ONE_QUERY,
        model=encoder,
        seed=seed,
    )


def _at_each_depth(
    name: str, columns: Iterable[NDArray[np.float64]], selection: Selection, n_pairs: Callable[[int], int], **facts: Any
) -> list[MetricValue]:
    """The values of a measure from its column of documents, (n_documents,), at each M."""
    return [
        aggregate(
            name,
            column,
            n_queries=sum(min(len(queries), depth) for queries in selection.queries),
            n_pairs=n_pairs(depth),
            per_doc=depth,
            sampled_from=selection.sampled_from,
            **facts,
        )
        for depth, column in zip(depths_of(selection.queries), columns, strict=True)
    ]


def per_document_columns(ids: Sequence[str], columns: Mapping[str, NDArray[np.float64]]) -> dict[str, list[Any]]:
    """Columns of equal length for JSON: document_id and one per measure, null where a measure is not defined."""
    return {
        "document_id": list(ids),
        **{name: [None if np.isnan(v) else round(float(v), 6) for v in values] for name, values in columns.items()},
    }


def examples(selection: Selection, table: PairTable, scores: NDArray[np.float64]) -> dict[str, list[dict[str, Any]]]:
    """The distinct pairs of the sets' documents that score highest and lowest, each with one document it is from."""
    rows, first = np.unique(table.distinct, return_index=True)
    scored = ~np.isnan(scores[rows])
    rows, first = rows[scored], first[scored]
    order = np.argsort(scores[rows], kind="stable")

    def shown(positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        return [
            {
                "score": round(float(scores[rows[p]]), 4),
                "queries": list(table.pairs(int(rows[p]), int(rows[p]) + 1)[0]),
                "document_id": selection.ids[int(table.document[first[p]])],
            }
            for p in positions
        ]

    return {"highest": shown(order[::-1][:EXAMPLES]), "lowest": shown(order[:EXAMPLES])}


def write_pair_scores(path: Path, ids: Sequence[str], table: PairTable, scores: NDArray[np.float64]) -> None:
    """One line per document that has pairs: its scores in the order of ``itertools.combinations``, null for none."""

    def lines() -> Iterator[str]:
        starts = np.flatnonzero(np.diff(table.document, prepend=-1))
        for rows, number in zip(np.split(table.distinct, starts[1:]), table.document[starts], strict=True):
            rounded = [None if np.isnan(score) else score for score in scores[rows].round(4).tolist()]
            yield json.dumps({"document_id": ids[number], "scores": rounded}, ensure_ascii=False)

    content = "".join(f"{line}\n" for line in lines()) if len(table.document) else ""
    write_bytes(path, content.encode("utf-8", "surrogatepass"))


# Corpus scope: so many pairs of queries of different documents are scored at most, no query in two of them.
CORPUS_PAIRS = 1000


@dataclass(frozen=True)
class PairTable:
    """Distinct pairs to be scored, and which of them each document's pairs are.

    ``left`` and ``right`` (n_distinct,) index ``texts``. The arrays of length n_pairs have one entry per pair of a
    document, in the order of ``itertools.combinations``: ``distinct`` is its row among the distinct pairs,
    ``document`` the document's number, ``later`` the position of its later query, so that the pair belongs to the
    set at Q/Doc = M if ``later`` < M. ``corpus`` (n_corpus_pairs,) are rows of pairs across documents.
    """

    texts: list[str]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distinct: NDArray[np.int64]
    document: NDArray[np.int64]
    later: NDArray[np.int64]
    corpus: NDArray[np.int64]
    n_documents: int

    @classmethod
    def of(cls, documents: Sequence[Sequence[str]], pool: Sequence[str] = (), *, by_length: bool) -> PairTable:
        """The pairs within each document and, from ``pool``, of queries of different documents.

        ``by_length`` puts long pairs first and equally long ones together, across documents; otherwise pairs stay in
        the order of the documents.
        """
        rows: dict[str, int] = {}

        def index(queries: Sequence[str]) -> NDArray[np.int64]:
            return np.array([rows.setdefault(query, len(rows)) for query in queries], dtype=np.int64)

        parts: list[tuple[NDArray[np.int64], ...]] = []
        for number, queries in enumerate(documents):
            if len(queries) > 1:
                first, second = _combinations(len(queries))
                ids = index(queries)
                parts.append((ids[first], ids[second], np.full(len(first), number), second))
        drawn = index(pool[: 2 * min(CORPUS_PAIRS, len(pool) // 2)])
        parts.append((drawn[::2], drawn[1::2], np.full(len(drawn) // 2, -1), np.zeros(len(drawn) // 2, np.int64)))
        left, right, document, later = (np.concatenate(column) for column in zip(*parts, strict=True))
        texts = list(rows)
        n = max(1, len(texts))
        _, first_seen, inverse = np.unique(
            np.minimum(left, right) * n + np.maximum(left, right), return_index=True, return_inverse=True
        )
        order = _by_length(texts, left[first_seen], right[first_seen]) if by_length else np.argsort(first_seen)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        row, within = rank[inverse], document >= 0
        return cls(
            texts=texts,
            left=left[first_seen][order],
            right=right[first_seen][order],
            distinct=row[within],
            document=document[within],
            later=later[within],
            corpus=row[~within],
            n_documents=len(documents),
        )

    def __len__(self) -> int:
        return len(self.left)

    def pairs(self, start: int, stop: int) -> list[Pair]:
        """The distinct pairs from ``start`` to ``stop``, as texts."""
        window = slice(start, stop)
        return [(self.texts[a], self.texts[b]) for a, b in zip(self.left[window], self.right[window], strict=True)]

    def fingerprint(self) -> str:
        """Equal for equal pairs in equal order: scores made for one table fit the other."""
        return sha256_text(*self.texts, self.left.tobytes().hex(), self.right.tobytes().hex())

    def ratios(self, scores: NDArray[np.float64], threshold: float, per_doc: int | None = None) -> NDArray[np.float64]:
        """Share of pairs above the threshold among each document's first ``per_doc`` queries (None: all).

        Shape (n_documents,), NaN for a document without pairs; ``scores`` has one entry per distinct pair, NaN for one
        that could not be scored, which does not count.
        """
        counted = ~np.isnan(scores[self.distinct])
        if per_doc is not None:
            counted &= self.later < per_doc
        above = scores[self.distinct[counted]] > threshold
        return document_ratios(above, self.document[counted], self.n_documents)

    def n_pairs(self, per_doc: int) -> int:
        """Pairs within documents at Q/Doc = ``per_doc``."""
        return int((self.later < per_doc).sum())


@lru_cache(maxsize=64)
def _combinations(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = np.triu_indices(n, 1)
    return first.astype(np.int64), second.astype(np.int64)


def _by_length(texts: list[str], left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Longest first, so that a batch too large for the memory fails at once and not at the end."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return np.argsort(-(lengths[left] + lengths[right]), kind="stable")


class Ledger:
    """Rows of ``width`` float32 numbers in an append-only file, tied to what they are results of.

    ``fingerprint`` names the work: the items in their order and the model. A file made for other work is begun again;
    a row torn by a crash is dropped.
    """

    def __init__(self, path: Path, fingerprint: str, width: int = 1) -> None:
        self._path = path
        self.width = width
        header = path.with_suffix(".json")
        identity = {"fingerprint": fingerprint, "width": width}
        if read_json_or_none(header) != identity:
            path.unlink(missing_ok=True)
            write_json(header, identity)
        row = 4 * width
        size = path.stat().st_size if path.exists() else 0
        if size % row:
            os.truncate(path, size - size % row)
        self.done = size // row

    def append(self, rows: ArrayLike) -> None:
        """Add rows of shape (n, width), or (n,) if the width is 1; they are on disk when this returns."""
        values = np.asarray(rows, dtype="<f4").reshape(-1, self.width)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            file.write(values.tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.done += len(values)

    def read(self) -> NDArray[np.float64]:
        """All rows so far: shape (done, width)."""
        if not self.done:
            return np.zeros((0, self.width))
        return np.fromfile(self._path, dtype="<f4").astype(np.float64).reshape(-1, self.width)[: self.done]
