"""What the published results suggest for one task: gains to expect, how to spend a budget, what to do, how sure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cdp.base.text import counted, signed
from cdp.principle.correlation import fit_of_means
from cdp.principle.differences import SCALING, SPLIT, Difference, differences, split_costs, split_differences
from cdp.principle.scope import PRINTED_GROUP, Scope, Similar, outlook
from cdp.principle.tables import results

CLOSE_POINTS = 1.0
"""Of two choices that differ by less than a point, the one that asks for fewer queries per document is suggested."""

WORDS = (
    (0.95, "very likely"),
    (0.8, "likely"),
    (0.6, "more likely than not"),
    (0.4, "as likely as not"),
    (0.2, "unlikely"),
    (0.0, "very unlikely"),
)
"""A probability of at least so much, in words."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The difference in NDCG@10 points that the published multi-hop results suggest at this CW.

    ``points`` lies on the least-squares line through the dataset means (both retrievers averaged); ``low`` and ``high``
    bound what one new dataset would show with 95% confidence (a prediction interval: the scatter between datasets is in
    it), ``mean_low`` and ``mean_high`` the line itself. ``probability`` is that a new dataset gains at all.
    """

    comparison: str
    per_doc: int
    points: float
    low: float
    high: float
    mean_low: float
    mean_high: float
    probability: float
    n_datasets: int


@dataclass(frozen=True, slots=True)
class BudgetSplit:
    """One way to spend a budget: ``per_doc`` queries on each of ``documents`` (None without a budget).

    ``printed`` are the differences to one query on each of as many documents as the budget has queries, per retriever,
    from the printed averages of ``group`` (``n_datasets`` of them); ``points`` is their mean. Inside the evidence
    ``points`` is the line's through the four multi-hop datasets' printed splits, with its 95% prediction interval;
    elsewhere ``low`` and ``high`` are None. ``llm_cost`` is the share of LLM requests (one per document) that remain.
    """

    per_doc: int
    documents: int | None
    documents_share: float
    llm_cost: float
    points: float
    low: float | None
    high: float | None
    group: str
    printed: Mapping[str, float]
    n_datasets: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to do, in figures and in a sentence: queries per document, on how many documents (None: on all).

    ``probability`` is that a task like this does not lose by it against the other choice (one query per document, or
    several), None where nothing published allows one; ``sure`` says it in words with what it rests on.
    """

    per_doc: int
    documents: int | None
    text: str
    probability: float | None = None
    sure: str = ""

    @property
    def probability_of_a_gain(self) -> float | None:
        """That several queries per document beat one: where one is suggested, the rest of ``probability``."""
        return 1 - self.probability if self.probability is not None and self.per_doc == 1 else self.probability


@dataclass(frozen=True, slots=True)
class Experiment:
    """The cheapest study that would settle the question: a ready-made plan with some settings changed."""

    plan: str
    changes: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


def in_words(probability: float) -> str:
    """``likely`` for 0.85, ``unlikely`` for 0.3."""
    return next(word for least, word in WORDS if probability >= least)


def expected_differences(mean_cw: float) -> tuple[Expected, ...]:
    """For each comparison and Q/Doc of the published results: the line's difference at this CW, for a new dataset.

    Whether the line may be asked at all is ``scope_of``'s to say.
    """
    conditions = sorted({(d.comparison, d.per_doc) for d in differences()}, key=lambda c: (c[0] != SCALING, c[1]))
    expected = []
    for comparison, per_doc in conditions:
        fit = fit_of_means([d for d in differences() if (d.comparison, d.per_doc) == (comparison, per_doc)])
        low, high = fit.prediction_interval(mean_cw)
        mean_low, mean_high = fit.mean_interval(mean_cw)
        expected.append(
            Expected(
                comparison,
                per_doc,
                points=float(fit.at(mean_cw)),
                low=float(low),
                high=float(high),
                mean_low=float(mean_low),
                mean_high=float(mean_high),
                probability=fit.probability_above(mean_cw),
                n_datasets=fit.n,
            )
        )
    return tuple(expected)


def printed_group(task: str, similar: Sequence[Similar], domain: str) -> str:
    """The group whose printed averages stand for a task: its kind's, or that of most of the datasets most like it."""
    if domain == "in-domain":
        return "TREC-DL"
    if task:
        return PRINTED_GROUP.get(task, "BEIR")
    return Counter(PRINTED_GROUP.get(s.kind, "BEIR") for s in similar).most_common(1)[0][0]


def expected_splits(mean_cw: float, group: str, *, inside: bool, budget: int | None = None) -> tuple[BudgetSplit, ...]:
    """For each published split of one budget of queries: what it gained or lost.

    ``budget`` in queries gives the number of documents. One query per document is the reference, with no difference.
    """
    printed = printed_splits(group)
    splits = []
    for per_doc, cost in sorted(split_costs().items()):
        by_retriever = printed[per_doc]
        points, low, high = float(np.mean(list(by_retriever.values()))), None, None
        n = _datasets_of(group)
        own = [d for d in split_differences() if d.per_doc == per_doc]
        if inside and own:
            fit = fit_of_means(own)
            points, (low, high), n = float(fit.at(mean_cw)), map(float, fit.prediction_interval(mean_cw)), fit.n
        splits.append(
            BudgetSplit(
                per_doc,
                None if budget is None else max(1, budget // per_doc),
                cost.documents_share,
                cost.llm_cost,
                points=points,
                low=low,
                high=high,
                group=group,
                printed=by_retriever,
                n_datasets=n,
            )
        )
    return tuple(splits)


def printed_splits(group: str) -> dict[int, dict[str, float]]:
    """{Q/Doc: {retriever: printed average at equal budget minus that of one query per document}} of a group."""
    scores = {
        (row["queries_per_doc"], row["retriever"]): row["value"]
        for row in results()
        if row["table"] == "tab:cost_efficiency_full" and row["group"] == group
    }
    gains: dict[int, dict[str, float]] = {}
    for (per_doc, retriever), value in scores.items():
        gains.setdefault(per_doc, {})[retriever] = value - scores[1, retriever]
    return gains


def _datasets_of(group: str) -> int:
    return {"TREC-DL": 2, "BEIR": 14, "BRIGHT": 12, "Multi-hop": 4}[group]


def suggest(
    mean_cw: float,
    scope: Scope,
    domain: str,
    language: str,
    similar: Sequence[Similar],
    budget: int | None,
    n_documents: int | None,
    splits: Sequence[BudgetSplit],
) -> Suggestion:
    """Q/Doc, and with a ``budget`` of queries or a corpus of ``n_documents`` on how many documents; and how sure."""
    if language != "en":
        text = (
            "Train once with one query per document and once with 2, and compare: nothing published says which is "
            "better for queries in this language."
        )
        return _spent(1, budget, n_documents, text, None, "Nothing published allows a probability here.")
    if domain == "in-domain":
        text = "Write one query per document: it serves queries like the training queries best."
        sure = "On the two published in-domain sets (TREC-DL) more than two per document lost with both retrievers."
        return _spent(1, budget, n_documents, text, None, sure)
    scarce = budget is not None and (n_documents is None or n_documents >= budget)
    gains, chances, basis = _basis(mean_cw, scope, similar)
    if scarce:
        gains = {split.per_doc: split.points for split in splits}
        basis = _split_basis(splits, scope)
        chances = _split_chances(mean_cw, scope)
    best = max(gains.values())
    per_doc = min(m for m, points in gains.items() if points > best - CLOSE_POINTS)
    other = per_doc if per_doc > 1 else max((m for m in gains if m > 1), key=lambda m: gains[m])
    chance = chances.get(other)
    if chance is not None and per_doc == 1:
        chance = 1 - chance
    if per_doc == 1:
        text = f"Start with one query per document: {basis} show no gain worth having from more."
    else:
        text = (
            f"Write {per_doc} diverse queries per document: {basis} put that within a point of the best "
            f"({signed(gains[per_doc])} points over one each)."
        )
    return _spent(per_doc, budget, n_documents, text, chance, _sure(chance, per_doc, other, scope, similar, scarce))


def _basis(mean_cw: float, scope: Scope, similar: Sequence[Similar]) -> tuple[dict[int, float], dict[int, float], str]:
    """Gains by Q/Doc, the chance of a gain by Q/Doc, and what both are from: the dataset itself, the line, or the
    datasets most like the task."""
    own = next((s for s in similar if s.same_dataset), None)
    if own is not None:
        printed = {m: own.mean(m) for m in next(iter(own.gains.values()))}
        return {1: 0.0, **printed}, {}, f"the gains printed for {own.dataset} itself"
    if scope.inside:
        line = [e for e in expected_differences(mean_cw) if e.comparison == SCALING]
        return (
            {1: 0.0, **{e.per_doc: e.points for e in line}},
            {e.per_doc: e.probability for e in line},
            f"the published line at CW {mean_cw:.2f}",
        )
    outlooks = outlook(similar)
    return (
        {1: 0.0, **{o.per_doc: o.points for o in outlooks}},
        {o.per_doc: o.probability for o in outlooks},
        f"the {len(similar)} published datasets most like yours",
    )


def _split_basis(splits: Sequence[BudgetSplit], scope: Scope) -> str:
    if scope.inside:
        return "for a fixed number of queries the splits printed for the four multi-hop datasets"
    group, n = splits[0].group, splits[0].n_datasets
    return f"for a fixed number of queries the splits printed for {group} (average of {n} datasets)"


def _split_chances(mean_cw: float, scope: Scope) -> dict[int, float]:
    """The chance that a new multi-hop dataset gains by each split; none outside, where only averages are printed."""
    if not scope.inside:
        return {}
    by_per_doc: dict[int, list[Difference]] = {}
    for d in split_differences():
        if d.comparison == SPLIT:
            by_per_doc.setdefault(d.per_doc, []).append(d)
    return {m: fit_of_means(points).probability_above(mean_cw) for m, points in by_per_doc.items()}


def _sure(
    chance: float | None, per_doc: int, other: int, scope: Scope, similar: Sequence[Similar], scarce: bool
) -> str:
    if chance is None:
        own = next((s for s in similar if s.same_dataset), None)
        if own is not None and not scarce:
            each = ", ".join(f"{name} {signed(gains[other])}" for name, gains in own.gains.items())
            return f"Printed for this very dataset at Q/Doc {other}: {each}; yours may be a sample of it."
        return "Only averages are printed for this, so nothing allows a probability."
    what = f"{per_doc} per document beat one" if per_doc > 1 else f"one per document is at least as good as {other}"
    basis = "the line through four datasets" if scope.inside else f"{len(similar)} published datasets"
    return f"It is {in_words(chance)} that {what} (probability {chance:.0%}, from {basis})."


def experiment(per_doc: int, budget: int | None) -> Experiment:
    """One against several per document with three seeds: the cheapest plan that answers the question at hand."""
    most = per_doc if per_doc > 1 else 2
    changes = {"per_doc": f"1, {most}", "seeds": "0, 1, 2", "weightings": "none"}
    if budget is not None:
        return Experiment(
            "document-quantity",
            {**changes, "budget": str(budget)},
            f"Train on {budget:,} queries twice, with 1 and with {most} per document, three seeds each.",
        )
    return Experiment("qdoc-scaling", changes, f"Train with 1 and with {most} per document, three seeds each.")


def _spent(
    per_doc: int, budget: int | None, n_documents: int | None, text: str, chance: float | None, sure: str
) -> Suggestion:
    if budget is None:
        return Suggestion(per_doc, None, text, chance, sure)
    documents = max(1, budget // per_doc)
    if n_documents is not None and n_documents < documents:
        left = budget - n_documents * per_doc
        text += f" That covers all {n_documents:,} documents and leaves {left:,} of {budget:,} queries unspent."
        return Suggestion(per_doc, n_documents, text, chance, sure)
    text += f" {budget:,} queries cover {counted(documents, 'document')}."
    return Suggestion(per_doc, documents, text, chance, sure)
