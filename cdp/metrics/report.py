"""What a metrics job writes down: values at each M, per-document columns, and the pairs behind the numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.workspace import read_jsonl, write_bytes
from cdp.metrics.pairs import PairTable
from cdp.metrics.query_set import ONE_QUERY, depths_of
from cdp.metrics.scorers import PairScorer
from cdp.metrics.values import CORPUS, MetricValue, aggregate

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
    facts: dict[str, Any] = {
        "model": scorer.model,
        "threshold": scorer.threshold,
        "seed": seed,
        "sampled_from": selection.sampled_from,
    }
    depths = depths_of(selection.queries)
    values = [
        aggregate(
            scorer.measure.name,
            table.ratios(scores, scorer.threshold, depth),
            n_queries=_n_queries(selection, depth),
            n_pairs=table.n_pairs(depth),
            per_doc=depth,
            reason=ONE_QUERY,
            **facts,
        )
        for depth in depths
    ]
    drawn = scores[table.corpus]
    drawn = drawn[~np.isnan(drawn)]
    across = aggregate(
        scorer.measure.name,
        (drawn > scorer.threshold).astype(np.float64),
        n_queries=2 * len(drawn),
        n_pairs=len(drawn),
        per_doc=depths[-1],
        scope=CORPUS,
        reason="There are not two documents with queries.",
        **facts,
    )
    return [*values, replace(across, n_documents=2 * len(drawn))]


def dist_sim_values(
    similarities: NDArray[np.float64], selection: Selection, encoder: str, seed: int
) -> list[MetricValue]:
    """Dist-Sim at each M from the documents' values, (n_documents, n_depths)."""
    human = selection.human or {}
    return [
        aggregate(
            "dist_sim",
            similarities[:, column],
            n_queries=_n_queries(selection, depth),
            n_pairs=sum(
                len(queries[:depth]) * len(human.get(name, ()))
                for name, queries in zip(selection.ids, selection.queries, strict=True)
            ),
            per_doc=depth,
            model=encoder,
            reason="No document has human queries.",
            seed=seed,
            sampled_from=selection.sampled_from,
        )
        for column, depth in enumerate(depths_of(selection.queries))
    ]


def diversity_values(
    diversities: NDArray[np.float64], selection: Selection, encoder: str, seed: int
) -> list[MetricValue]:
    """Embedding diversity at each M from the documents' values, (n_documents, n_depths)."""
    sizes = np.array([len(queries) for queries in selection.queries])
    return [
        aggregate(
            "embedding_diversity",
            diversities[:, column],
            n_queries=_n_queries(selection, depth),
            n_pairs=int((np.minimum(sizes, depth) * (np.minimum(sizes, depth) - 1) // 2).sum()),
            per_doc=depth,
            model=encoder,
            reason=ONE_QUERY,
            seed=seed,
            sampled_from=selection.sampled_from,
        )
        for column, depth in enumerate(depths_of(selection.queries))
    ]


def _n_queries(selection: Selection, depth: int) -> int:
    return sum(min(len(queries), depth) for queries in selection.queries)


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


def document_pairs(results: Path, document_id: str, queries: Sequence[str]) -> list[tuple[float, str, str]]:
    """The scored pairs of one document, highest first: what stands behind its CE.

    ``results`` is the job's results folder and ``queries`` the document's queries in the set; empty if the document
    was not measured or has no pair.
    """
    for record in read_jsonl(results / "pair_scores.jsonl"):
        if record["document_id"] == document_id:
            scored = zip(record["scores"], combinations(queries, 2), strict=False)
            return sorted(((score, a, b) for score, (a, b) in scored if score is not None), reverse=True)
    return []
