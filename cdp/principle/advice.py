"""What the published results suggest at one mean CW: gains to expect, how to spend a budget, whether to weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.principle.correlation import line
from cdp.principle.differences import SCALING, Difference, differences, split_costs, split_differences
from cdp.principle.published import read, results

CLOSE_POINTS = 1.0
"""Of two choices that differ by less than a point, the one that asks for fewer queries per document is suggested."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The difference in NDCG@10 points that the published multi-hop results suggest at this CW.

    ``points`` lies on the least-squares line through the dataset means (both retrievers averaged); ``low`` and ``high``
    bound the line's value with 95% confidence, from as few observations as there are datasets.
    """

    comparison: str
    per_doc: int
    points: float
    low: float
    high: float
    n_datasets: int


@dataclass(frozen=True, slots=True)
class Split:
    """One way to spend a budget: ``per_doc`` queries on each of ``documents`` (None without a budget).

    ``points`` is the expected difference to one query on each of as many documents as the budget has queries, with its
    95% interval; ``llm_cost`` the share of LLM requests (one per document) that remain.
    """

    per_doc: int
    documents: int | None
    documents_share: float
    llm_cost: float
    points: float
    low: float
    high: float
    n_datasets: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to do, in figures and in a sentence: queries per document, on how many documents (None: on all)."""

    per_doc: int
    documents: int | None
    text: str


@dataclass(frozen=True, slots=True)
class WeightingAdvice:
    """Whether to weight the loss by CW. ``use`` is "compare" or "no"; ``narrow`` warns of too little spread of CW."""

    use: str
    narrow: bool
    text: str


def evidence_range() -> tuple[float, float]:
    """The smallest and the largest mean CW among the datasets of the published evidence."""
    cw = [d.cw for d in differences()]
    return min(cw), max(cw)


def expected_differences(mean_cw: float) -> tuple[Expected, ...]:
    """For each comparison and Q/Doc of the published results: the fitted difference at this CW, with its interval.

    Outside the range of CW that the evidence covers there is no estimate: the line is not extended.
    """
    low, high = evidence_range()
    if not low <= mean_cw <= high:
        return ()
    conditions = sorted({(d.comparison, d.per_doc) for d in differences()}, key=lambda c: (c[0] != SCALING, c[1]))
    return tuple(
        Expected(comparison, per_doc, *_at(mean_cw, _of(differences(), comparison, per_doc)))
        for comparison, per_doc in conditions
    )


def expected_splits(mean_cw: float, budget: int | None = None) -> tuple[Split, ...]:
    """For each published split of one budget of queries: what it gains or loses at this CW. Empty outside the evidence.

    ``budget`` in queries gives the number of documents. One query per document is the reference, with no difference.
    """
    low, high = evidence_range()
    if not low <= mean_cw <= high:
        return ()
    found = []
    for per_doc, cost in sorted(split_costs().items()):
        points = [d for d in split_differences() if d.per_doc == per_doc]
        at = _at(mean_cw, points) if points else (0.0, 0.0, 0.0, 0)
        documents = None if budget is None else max(1, budget // per_doc)
        found.append(Split(per_doc, documents, cost.documents_share, cost.llm_cost, *at))
    return tuple(found)


def _of(data: Sequence[Difference], comparison: str, per_doc: int) -> list[Difference]:
    return [d for d in data if (d.comparison, d.per_doc) == (comparison, per_doc)]


def _at(cw: float, points: Sequence[Difference]) -> tuple[float, float, float, int]:
    found = line(points, [cw])
    return float(found.points[0]), float(found.low[0]), float(found.high[0]), found.n_datasets


def suggest(level: str, mean_cw: float, domain: str, budget: int | None, n_documents: int | None) -> Suggestion:
    """Q/Doc, and with a ``budget`` of queries or a corpus of ``n_documents`` on how many documents."""
    if domain == "in-domain" or level == "avoid":
        why = "it serves queries like the training queries best" if domain == "in-domain" else "more tend to hurt here"
        return _spent(1, budget, n_documents, f"Write one query per document: {why}.")
    low, high = evidence_range()
    at = min(max(mean_cw, low), high)
    scarce = budget is not None and (n_documents is None or n_documents >= budget)
    if scarce:
        gains = {split.per_doc: split.points for split in expected_splits(at)}
        basis = "for a fixed number of queries the published splits"
    else:
        gains = {1: 0.0, **{e.per_doc: e.points for e in expected_differences(at) if e.comparison == SCALING}}
        basis = "the published gains from more queries per document"
    best = max(gains.values())
    per_doc = min(m for m, points in gains.items() if points > best - CLOSE_POINTS)
    place = f"at CW {mean_cw:.2f}" if at == mean_cw else f"at CW {at:.2f}, the nearest with evidence"
    if per_doc == 1:
        text = f"Start with one query per document: {basis} show no gain worth having {place}."
        if level == "test":
            text += " If you can afford a second training, try 2 and compare."
    else:
        text = (
            f"Write {per_doc} diverse queries per document: {basis} put that within a point of the best {place} "
            f"({_signed(gains[per_doc])} points over one each)."
        )
        if level == "test":
            text += f" Train once with 1 and once with {per_doc}, and compare."
    return _spent(per_doc, budget, n_documents, text)


def _signed(points: float) -> str:
    """A difference as pages show it: ``+3.28``, ``−0.61``."""
    return f"{points:+.2f}".replace("-", "−")


def _spent(per_doc: int, budget: int | None, n_documents: int | None, text: str) -> Suggestion:
    if budget is None:
        return Suggestion(per_doc, None, text)
    documents = max(1, budget // per_doc)
    if n_documents is not None and n_documents < documents:
        left = budget - n_documents * per_doc
        text += f" That covers all {n_documents:,} documents and leaves {left:,} of {budget:,} queries unspent."
        return Suggestion(per_doc, n_documents, text)
    noun = "document" if documents == 1 else "documents"
    return Suggestion(per_doc, documents, f"{text} {budget:,} queries cover {documents:,} {noun}.")


def narrow_width() -> int:
    """The widest range of CW, largest minus smallest, with which CW weighting clearly lost on MIRACL (more than 5%)."""
    change = {
        row["train_data"].removeprefix("MIRACL-"): row["value"]
        for row in results()
        if row["table"] == "tab:miracl_results" and row["metric"] == "relative_change"
    }
    return max(row["cw_max"] - row["cw_min"] for row in read("multilingual") if change[row["code"]] < -5)


def weighting_gains() -> dict[str, dict[str, float]]:
    """{group: {retriever: CW-weighted minus equal weights, NDCG@10 points}}, from the printed averages."""
    scores = {
        (row["group"], row["retriever"], row["weighting"]): row["value"]
        for row in results()
        if row["table"] == "tab:cw_weighting"
    }
    gains: dict[str, dict[str, float]] = {}
    for (group, retriever, weighting), value in scores.items():
        if weighting == "CW":
            gains.setdefault(group, {})[retriever] = value - scores[group, retriever, "none"]
    return gains


def weighting_advice(cw: NDArray[np.float64], domain: str) -> WeightingAdvice:
    """Whether to weight by CW, for queries with these CW. The spread that counts is that of the training queries;
    these stand for it where nothing else is known."""
    gains = weighting_gains()
    if domain == "in-domain":
        lost = list(gains["TREC-DL"].values())
        return WeightingAdvice(
            "no",
            False,
            f"Do not weight by CW: in-domain it cost {-max(lost):.1f} to {-min(lost):.1f} points with every published "
            "retriever.",
        )
    smallest, largest = np.percentile(cw, [1, 99], method="nearest")
    width = float(largest - smallest)
    narrow = width <= narrow_width()
    if narrow:
        return WeightingAdvice(
            "no",
            True,
            f"Do not weight by CW if your training queries look like these: their CW only spans {smallest:.0f} to "
            f"{largest:.0f}. With spans of {narrow_width()} or less weighting lost 9% (Chinese) and 59% (French) on "
            "MIRACL.",
        )
    up = [value for group in ("BEIR", "BRIGHT") for value in gains[group].values()]
    hop = sorted(gains["Multi-hop"].values())
    return WeightingAdvice(
        "compare",
        False,
        f"CW weighting may be worth a second training: with three retrievers it gained {min(up):.2f} to {max(up):.2f} "
        f"points on BEIR and BRIGHT averages, and from {_signed(hop[0])} to {_signed(hop[-1])} on multi-hop. Compare "
        "with and without.",
    )
