"""Avoid, test or recommend: what the content words of a task's queries say about diverse training queries.

The published rule (tab:cw_threshold): a mean CW below 7 avoids, 7 to 10 tests, above 10 recommends several different
queries per document. The interval and the caveats say how much that is worth for the queries at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import ConfigError, InputError
from cdp.base.text import counted, signed
from cdp.complexity import cw_interval
from cdp.complexity.profile import HIGH, LOW
from cdp.principle.correlation import fit_of_means
from cdp.principle.differences import SCALING, SPLIT, Difference, differences, split_costs, split_differences
from cdp.principle.scope import (
    PRINTED_GROUP,
    Outlook,
    Scope,
    Similar,
    check_kind,
    evidence_range,
    most_similar,
    outlook,
    scope_of,
)
from cdp.principle.tables import read, results

# Of two choices that differ by less than a point, the one that asks for fewer queries per document is suggested.
CLOSE_POINTS = 1.0

# A probability of at least so much, in words.
WORDS = (
    (0.95, "very likely"),
    (0.8, "likely"),
    (0.6, "more likely than not"),
    (0.4, "as likely as not"),
    (0.2, "unlikely"),
    (0.0, "very unlikely"),
)


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


AVOID_BELOW = float(LOW)
RECOMMEND_ABOVE = float(HIGH)
FEW_QUERIES = 50
LEVELS = ("avoid", "test", "recommend")

ADVICE = {
    "avoid": "Several different queries per document are likely to hurt this task: write one good query per document.",
    "test": "This task may gain or lose: train with one and with several different queries per document, and compare.",
    "recommend": "This task is likely to gain from several different queries per document.",
    "in-domain": "The target queries resemble the training queries: one good query per document serves them best.",
}


# What each answer of the rule has behind it: the dataset means lie at 6.34, 8.60, 8.64 and 11.64.
RESTS_ON = {
    "recommend": "Above 10 the published rule rests on NovelHopQA alone.",
    "avoid": "Below 7 the published rule rests on 2WikiMultihopQA alone.",
    "test": "",
}


@dataclass(frozen=True)
class Recommendation:
    """The answer for one set of target queries.

    ``level`` is what the published rule says at this mean CW (avoid, test or recommend); ``possible`` are the levels
    that the interval of the mean CW touches, and ``certain`` is whether that is only one. ``scope`` says whether the
    task lies inside the evidence behind that rule; ``advice`` is the rule's answer, or that there is no evidence for
    such a task. ``expected`` are the line's gains at
    this CW, empty outside the evidence (conditional on the kind of task where that is not known); ``similar`` the
    published datasets most like the task with their printed gains, ``outlook`` what these say of a further dataset.
    ``splits`` is what the same number of queries is worth on fewer documents, ``suggestion`` the Q/Doc that follows and
    how sure that is, ``weighting`` whether to weight the loss by CW, ``experiment`` the cheapest study that would
    settle it. One query leaves every level possible: its interval has no width.
    """

    level: str
    advice: str
    mean_cw: float
    interval: tuple[float, float]
    n_queries: int
    possible: tuple[str, ...]
    shares: dict[str, float]
    scope: Scope
    suggestion: Suggestion
    weighting: WeightingAdvice
    experiment: Experiment
    expected: tuple[Expected, ...] = ()
    similar: tuple[Similar, ...] = ()
    outlook: tuple[Outlook, ...] = ()
    splits: tuple[BudgetSplit, ...] = ()
    caveats: tuple[str, ...] = field(default_factory=tuple)

    @property
    def by_rule(self) -> bool:
        """Return whether the advice is the published rule's: it has evidence for such a task."""
        return self.advice in ADVICE.values()

    @property
    def certain(self) -> bool:
        return len(self.possible) == 1

    @property
    def plan(self) -> str:
        """The ready-made study that ``experiment`` changes."""
        return self.experiment.plan

    @property
    def sentence(self) -> str:
        """What to act on: which queries, how many per document, how sure, and what would settle it."""
        return f"{self.suggestion.text} {self.suggestion.sure} To settle it: {self.experiment.text}"

    @property
    def summary(self) -> str:
        """What to do next and how sure that is."""
        sure = (
            "One query cannot tell what the mean CW is."
            if self.n_queries == 1
            else ""
            if self.scope.outside
            else f"The mean of {self.mean_cw:.1f} content words is clear of the published lines at {LOW} and {HIGH}."
            if self.certain
            else f"The mean CW lies between {self.interval[0]:.1f} and {self.interval[1]:.1f}, so the answer could "
            f"also be {' or '.join(level for level in self.possible if level != self.level)}."
        )
        parts = (self.advice, self.sentence, sure, "The published rule rests on four published datasets.")
        return " ".join(part for part in parts if part)


def level_of(cw: float) -> str:
    """The published rule for one mean CW."""
    return "avoid" if cw < AVOID_BELOW else "test" if cw <= RECOMMEND_ABOVE else "recommend"


def recommend(
    cw_values: ArrayLike,
    *,
    language: str = "en",
    domain: str = "ood",
    task: str = "",
    generator: str = "",
    dataset: str = "",
    budget: int | None = None,
    n_documents: int | None = None,
    seed: int = 0,
) -> Recommendation:
    """What to do for queries with these content-word counts.

    ``cw_values``: shape (n_queries,), counts of at least 0. ``domain``: "ood" if the target queries differ from the
    training queries (other task, other style), "in-domain" if they do not. ``task`` is a kind of task (``KINDS``),
    empty if not known; ``generator`` the model that is to write the training queries, empty for the evidence's own;
    ``dataset`` the published dataset that the queries are from, if they are from one. ``budget`` is how many queries
    may be written in all and ``n_documents`` how many documents there are; with them the suggestion says how many
    documents to take. The interval is a 95% bootstrap interval of the mean. Raises InputError for no
    queries or values that are not counts, ConfigError for an unknown domain or kind of task, or an empty budget.
    """
    if domain not in ("ood", "in-domain"):
        raise ConfigError(f"The domain must be ood or in-domain, not {domain!r}.")
    check_kind(task)
    for name, value in (("budget", budget), ("number of documents", n_documents)):
        if value is not None and value < 1:
            raise ConfigError(f"The {name} must be at least 1, not {value}.")
    cw = _counts(cw_values)
    mean = float(cw.mean())
    low, high = cw_interval(cw, seed=seed)
    level = level_of(mean)
    possible = LEVELS[LEVELS.index(level_of(low)) : LEVELS.index(level_of(high)) + 1] if cw.size > 1 else LEVELS
    scope = scope_of(mean, language=language, domain=domain, task=task, generator=generator)
    if domain == "in-domain":
        similar = tuple(s for s in most_similar(mean, "web-search", dataset=dataset) if s.kind == "web-search")
    else:
        similar = most_similar(mean, task, dataset=dataset)
    group = printed_group(task, similar, domain)
    splits = expected_splits(mean, group, inside=scope.inside, budget=budget) if language == "en" else ()
    rule = ADVICE["in-domain"] if domain == "in-domain" else ADVICE[level]
    covered = not scope.outside or (domain == "in-domain" and language == "en")
    suggestion = suggest(mean, scope, domain, language, similar, budget, n_documents, splits)
    return Recommendation(
        level=level,
        advice=rule if covered else scope.text,
        mean_cw=mean,
        interval=(low, high),
        n_queries=int(cw.size),
        possible=possible,
        shares={
            "avoid": float((cw < AVOID_BELOW).mean()),
            "test": float(((cw >= AVOID_BELOW) & (cw <= RECOMMEND_ABOVE)).mean()),
            "recommend": float((cw > RECOMMEND_ABOVE).mean()),
        },
        scope=scope,
        suggestion=suggestion,
        weighting=weighting_advice(cw, domain, language),
        experiment=experiment(suggestion.per_doc, budget),
        expected=() if scope.outside else expected_differences(mean),
        similar=similar,
        outlook=outlook([s for s in similar if not s.same_dataset]) if language == "en" and domain == "ood" else (),
        splits=splits,
        caveats=tuple(_caveats(cw, mean, possible, language, scope)),
    )


def _counts(cw_values: ArrayLike) -> NDArray[np.float64]:
    """Content-word counts as numbers; InputError in a sentence for texts, none, or what is no count."""
    values = np.asarray(cw_values)
    if values.dtype.kind in "USO" and any(isinstance(value, (str, bytes)) for value in values.ravel()):
        raise InputError(
            "These are texts, and the recommendation needs their numbers of content words.",
            hint="Count them first: recommend(count_content_words(texts, language)).",
        )
    try:
        cw = values.astype(np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError("Content words must be counts of at least 0.") from None
    if cw.size == 0:
        raise InputError("There are no target queries.", hint="Paste or upload some, one per line.")
    if not np.isfinite(cw).all() or (cw < 0).any():
        raise InputError("Content words must be counts of at least 0.")
    return cw


def _caveats(cw: NDArray[np.float64], mean: float, possible: tuple[str, ...], language: str, scope: Scope) -> list[str]:
    caveats = []
    if not cw.any():
        caveats.append("No query has a content word: probably they are in another language or script than was said.")
    caveats += scope.unknown
    if len(possible) > 1 and cw.size > 1:
        caveats.append(
            f"The interval of the mean reaches into {' and '.join(possible)}: more target queries would narrow it."
        )
    if cw.size < FEW_QUERIES:
        caveats.append(
            f"Only {cw.size} target {'query, which cannot stand for others' if cw.size == 1 else 'queries'}; "
            f"{FEW_QUERIES} or more are wanted."
        )
    if RESTS_ON[level_of(mean)]:
        caveats.append(RESTS_ON[level_of(mean)])
    low, high = evidence_range()
    if not low <= mean <= high:
        caveats.append(
            f"The published evidence covers mean CW from {low:.2f} to {high:.2f}; {mean:.2f} lies outside it, so no "
            "difference is estimated."
        )
    if language != "en":
        caveats.append(
            "The lines at 7 and 10 were drawn from English queries; counts in other languages are not comparable with "
            "them, so treat this as a hint and test."
        )
    caveats.append(
        "The evidence is 14 conditions on only four multi-hop datasets, with two retrievers and queries written by "
        "GPT-4o-mini; on queries of a weaker generator (Mistral-7B) the relation was reversed."
    )
    caveats.append(
        "Over all 31 published datasets, most of them not multi-hop, CW explains far less of the gain: see the "
        "evidence page."
    )
    return caveats


@dataclass(frozen=True, slots=True)
class WeightingAdvice:
    """Whether to weight the loss by CW. ``use`` is "compare" or "no"."""

    use: str
    text: str


@dataclass(frozen=True, slots=True)
class TrainedLanguage:
    """One training of MIRACL: ``width`` is its queries' largest CW minus their smallest, as printed; ``change`` that
    of the OOD average when weighted, in percent of it."""

    language: str
    code: str
    width: int
    change: float


@lru_cache(maxsize=1)
def trained_languages() -> tuple[TrainedLanguage, ...]:
    """The six languages of tab:miracl_results, the narrowest first: all the evidence there is on the spread of CW."""
    change = {
        row["train_data"].removeprefix("MIRACL-"): row["value"]
        for row in results()
        if row["table"] == "tab:miracl_results" and row["metric"] == "relative_change"
    }
    languages = [
        TrainedLanguage(row["language"], row["code"], row["cw_max"] - row["cw_min"], change[row["code"]])
        for row in read("multilingual")
    ]
    return tuple(sorted(languages, key=lambda t: t.width))


def narrow_width() -> int:
    """The widest range of CW, largest minus smallest, with which CW weighting clearly lost on MIRACL (more than 5%)."""
    return max(t.width for t in trained_languages() if t.change < -5)


def weighting_gains() -> dict[str, dict[str, float]]:
    """{group: {retriever: CW-weighted minus equal weights, NDCG@10 points}}, as printed in tab:cw_weighting."""
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


def weighting_advice(cw: NDArray[np.float64], domain: str, language: str = "en") -> WeightingAdvice:
    """Whether to weight by CW, for queries with these CW. The spread that counts is that of the training queries;
    these stand for it where nothing else is known.

    Decided by the statistic of the evidence, the largest CW minus the smallest: MIRACL prints no other. It grows with
    the number of queries, and the evidence is one training in each of six languages; the text says so.
    """
    gains = weighting_gains()
    if domain == "in-domain":
        lost = list(gains["TREC-DL"].values())
        return WeightingAdvice(
            "no",
            f"Do not weight by CW: in-domain it cost {-max(lost):.1f} to {-min(lost):.1f} points with every published "
            "retriever.",
        )
    width = int(cw.max() - cw.min())
    span = f"their CW spans {cw.min():.0f} to {cw.max():.0f}"
    thin = "one training per language, so this is a hint."
    # The narrowest language that did not lose marks where "no" ends: between the two there is no evidence.
    if width <= narrow_width():
        losses = ", ".join(
            f"{t.language} {signed(t.change, 1)}%" for t in trained_languages() if t.width <= narrow_width()
        )
        return WeightingAdvice(
            "no",
            f"Do not weight by CW if your training queries look like these: {span}. With ranges of "
            f"{narrow_width()} or less weighting lost on MIRACL ({losses}); {thin}",
        )
    wide = [t for t in trained_languages() if t.width > narrow_width()]
    own = next((t for t in wide if t.code == language), None)
    if language != "en":
        own_text = f"trained on {own.language} it changed the OOD average by {signed(own.change, 1)}%; " if own else ""
        listed = ", ".join(f"{t.language} {signed(t.change, 1)}%" for t in wide if t is not own)
        return WeightingAdvice(
            "compare",
            f"CW weighting may be worth a second training: {span}, and on MIRACL {own_text}languages with such ranges "
            f"got {listed}; {thin} Compare with and without.",
        )
    up = [value for group in ("BEIR", "BRIGHT") for value in gains[group].values()]
    hop = sorted(gains["Multi-hop"].values())
    return WeightingAdvice(
        "compare",
        f"CW weighting may be worth a second training: with three retrievers it gained {min(up):.2f} to {max(up):.2f} "
        f"points on BEIR and BRIGHT averages, and from {signed(hop[0])} to {signed(hop[-1])} on multi-hop (one "
        "training each). Compare with and without.",
    )
