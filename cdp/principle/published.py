"""The paper's figures, as shipped in ``data/published``, and the 56 differences that the principle rests on."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cdp.workspace import SHIPPED_DATA

FOLDER = SHIPPED_DATA / "published"

PARAPHRASE = "diverse_minus_paraphrase"
SCALING = "qdoc_minus_one"

COMPARISONS = {
    PARAPHRASE: "diverse minus paraphrase, at the same Q/Doc",
    SCALING: "diverse at this Q/Doc minus one query per document",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more NDCG@10 (in points, 0 to 100) one condition reached than its control, on one dataset."""

    retriever: str
    comparison: str
    per_doc: int
    dataset: str
    cw: float
    points: float


@lru_cache(maxsize=1)
def results() -> tuple[dict[str, Any], ...]:
    """Every row of ``results.csv``; ``value`` is a float, ``queries_per_doc`` and ``n_docs`` int or None."""
    with open(FOLDER / "results.csv", encoding="utf-8", newline="") as file:
        return tuple(
            {
                **row,
                "value": float(row["value"]),
                "queries_per_doc": int(row["queries_per_doc"]) if row["queries_per_doc"] else None,
                "n_docs": int(row["n_docs"]) if row["n_docs"] else None,
                "is_average": row["is_average"] == "true",
            }
            for row in csv.DictReader(file)
        )


@lru_cache(maxsize=1)
def datasets() -> tuple[dict[str, Any], ...]:
    """Every row of ``datasets.csv``: group, dataset, cw (mean content words per query), n_queries, n_docs."""
    with open(FOLDER / "datasets.csv", encoding="utf-8", newline="") as file:
        return tuple(
            {**row, "cw": float(row["cw"]), "n_queries": int(row["n_queries"]), "n_docs": int(row["n_docs"])}
            for row in csv.DictReader(file)
        )


@lru_cache(maxsize=1)
def differences() -> tuple[Difference, ...]:
    """The 14 conditions of the multi-hop tables on their 4 datasets, from the two-decimal NDCG@10 values."""
    cw = {row["dataset"]: row["cw"] for row in datasets() if row["group"] == "Multi-hop"}
    scores: dict[tuple[str, str, str, int, str], float] = {}
    for row in results():
        if row["table"] in ("tab:multihop_diversity", "tab:multihop_scaling") and not row["is_average"]:
            key = (row["table"], row["retriever"], row["method"], row["queries_per_doc"], row["dataset"])
            scores[key] = row["value"]
    found = []
    for (table, retriever, method, per_doc, dataset), value in scores.items():
        if method != "Ours-diverse":
            continue
        if table == "tab:multihop_diversity":
            comparison, control = PARAPHRASE, (table, retriever, "Ours-paraphrase", per_doc, dataset)
        elif per_doc > 1:
            comparison, control = SCALING, (table, retriever, method, 1, dataset)
        else:
            continue
        found.append(Difference(retriever, comparison, per_doc, dataset, cw[dataset], value - scores[control]))
    return tuple(sorted(found, key=lambda d: (d.retriever, d.comparison, d.per_doc, d.cw)))
