"""The published gains that the principle rests on: comparisons with a control in NDCG@10, dataset choices.

Published ones are taken from the two-decimal scores; a study's own have the same form, and the same functions of
``correlation`` read both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cdp.base.errors import NotFoundError
from cdp.principle.tables import read

PARAPHRASE = "diverse_minus_paraphrase"
SCALING = "qdoc_minus_one"
WEIGHTING = "cw_weighted_minus_equal"

COMPARISONS = {
    PARAPHRASE: "diverse minus paraphrase, at the same Q/Doc",
    SCALING: "diverse at this Q/Doc minus one query per document",
    WEIGHTING: "CW-weighted minus equal weights",
}

MULTI_HOP, ALL = "multi-hop", "all"
DATASET_CHOICES = {MULTI_HOP: "The four multi-hop datasets", ALL: "All 31 datasets with a CW"}


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more NDCG@10 (in points, 0 to 100) one condition reached than its control, on one dataset.

    ``per_doc`` is the condition's Q/Doc and ``cw`` the mean content words of the dataset's queries. For own results
    ``retriever`` names all else that tells the condition apart.
    """

    retriever: str
    comparison: str
    per_doc: int
    dataset: str
    cw: float
    points: float


@lru_cache(maxsize=8)
def differences(choice: str = MULTI_HOP) -> tuple[Difference, ...]:
    """The published differences: 14 conditions on the 4 multi-hop datasets, or Q/Doc scaling on all 31 with a CW.

    From tab:multihop_diversity and tab:multihop_scaling, or tab:scaling_full with the latter.

    The comparison with paraphrases was published for the multi-hop
    datasets only. NotFoundError for another ``choice``.
    """
    if choice not in DATASET_CHOICES:
        raise NotFoundError("choice of datasets", choice, known=list(DATASET_CHOICES))
    cw = {row["dataset"]: row["cw"] for row in read("datasets")}
    tables = ["tab:multihop_diversity", "tab:multihop_scaling"] if choice == MULTI_HOP else [
        "tab:scaling_full", "tab:multihop_scaling"
    ]  # fmt: skip
    scores: dict[tuple[str, str, str, int, str], float] = {}
    for row in read("results"):
        if row["table"] in tables and not row["is_average"]:
            key = (row["retriever"], row["method"], row["queries_per_doc"], row["dataset"])
            scores[(row["table"], *key)] = row["value"]
    published = []
    for (table, retriever, method, per_doc, dataset), value in scores.items():
        if method != "Ours-diverse":
            continue
        if table == "tab:multihop_diversity":
            comparison, control = PARAPHRASE, (table, retriever, "Ours-paraphrase", per_doc, dataset)
        elif per_doc > 1:
            comparison, control = SCALING, (table, retriever, method, 1, dataset)
        else:
            continue
        published.append(Difference(retriever, comparison, per_doc, dataset, cw[dataset], value - scores[control]))
    return tuple(sorted(published, key=lambda d: (d.retriever, d.comparison, d.per_doc, d.cw)))
