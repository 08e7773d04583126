"""Avoid, test or recommend diverse queries, by the content words (CW) of a task: sentences, caveats.

The published rule (tab:cw_threshold): a mean CW below 7 avoids, 7 to 10 tests, above 10 recommends several different
queries per document. The interval and the caveats say how much that is worth for the queries at hand.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.condition import EQUAL_DOCUMENTS, INFONCE
from cdp.base.errors import ConfigError, InputError
from cdp.base.statistics import stdtrit
from cdp.base.workspace import SHIPPED_DATA
from cdp.complexity import cw_interval
from cdp.complexity.content_words import HIGH, LOW
from cdp.principle.correlation import SCALING, differences
from cdp.principle.evidence import Basis, Evidence, Expectation
from cdp.principle.tables import read

AVOID_BELOW = float(LOW)
RECOMMEND_ABOVE = float(HIGH)
FEW_QUERIES = 50
LEVELS = ("avoid", "test", "recommend")

ADVICE = {
    "avoid": "Several different queries per document are likely to hurt this task: write one good query per document.",
    "test": "This task may gain or lose: train with one and with several different queries per document, and compare.",
    "recommend": "This task is likely to gain from several different queries per document.",
    "in-domain": "The target queries resemble the training queries: in the paper one query per document served such "
    "tasks best. Trainings made with this program found the opposite (docs/REPRODUCTION.md), so test it.",
}

# Begins the rule's advice while the type of task is not known.
IF_MULTI_HOP = "If these are multi-hop questions:"

# What each answer of the rule has behind it: the dataset means lie at 6.34, 8.60, 8.64 and 11.64.
RESTS_ON = {
    "recommend": "Above 10 the published rule rests on NovelHopQA alone.",
    "avoid": "Below 7 the published rule rests on 2WikiMultihopQA alone.",
    "test": "",
}


@dataclass(frozen=True)
class Recommendation:
    """What the published evidence says for one set of target queries.

    ``level`` is the published rule's at this mean CW (avoid, test or recommend); ``possible`` are the levels that the
    interval of the mean CW touches, and ``certain`` is whether that is only one. One query leaves every level possible.
    ``advice`` is the rule's, or that ``scope`` leaves it without evidence for such a task. ``prior`` is what a new
    dataset predicts, for every CW, empty outside of English and out-of-domain tasks.
    """

    level: str
    advice: str
    mean_cw: float
    interval: tuple[float, float]
    n_queries: int
    possible: tuple[str, ...]
    scope: Scope
    prior: tuple[Expectation, ...] = ()
    caveats: tuple[str, ...] = field(default_factory=tuple)

    @property
    def by_rule(self) -> bool:
        """Return whether the advice is the published rule's: it has evidence for such a task."""
        return not self.scope.outside or self.advice == ADVICE["in-domain"]

    @property
    def certain(self) -> bool:
        return len(self.possible) == 1

    @property
    def missing(self) -> str:
        """Why the published results say nothing of this task; empty where they say something."""
        if self.n_queries < FEW_QUERIES:
            number = "query is" if self.n_queries == 1 else "queries are"
            return f"{self.n_queries} target {number} too few to tell: give {FEW_QUERIES} or more."
        return "" if self.evidence() is not None else self.scope.text

    def evidence(self) -> Evidence | None:
        """The prior in the form of own results. None where there are too few target queries, or no prior."""
        if not self.prior or self.n_queries < FEW_QUERIES:
            return None
        name, limits = measured()
        return Evidence(Basis(name=name), expected=self.prior, limits=limits)


def level_of(cw: float) -> str:
    """The published rule for one mean CW."""
    if cw < AVOID_BELOW:
        return "avoid"
    return "test" if cw <= RECOMMEND_ABOVE else "recommend"


def recommend(
    cw_values: ArrayLike,
    *,
    language: str = "en",
    domain: str = "ood",
    task: str = "",
) -> Recommendation:
    """What to do for queries with these content-word counts.

    ``cw_values``: shape (n_queries,), counts of at least 0. ``domain``: "ood" if the target queries differ from the
    training queries (other task, other style), "in-domain" if they do not. ``task`` is a kind of task (``KINDS``),
    empty if not known. The interval is a 95% bootstrap interval of the mean. Raises InputError for no queries or values
    that are not counts, ConfigError for an unknown domain or kind of task.
    """
    if domain not in ("ood", "in-domain"):
        raise ConfigError(f"The domain must be ood or in-domain, not {domain!r}.")

    if task and task not in KINDS:
        raise ConfigError(f"There is no kind of task called {task!r}.", hint=f"Choose one of: {', '.join(KINDS)}.")

    cw = _counts(cw_values)
    mean = float(cw.mean())
    low, high = cw_interval(cw)
    level = level_of(mean)
    possible: tuple[str, ...] = LEVELS
    if cw.size > 1:
        possible = LEVELS[LEVELS.index(level_of(low)) : LEVELS.index(level_of(high)) + 1]

    scope = scope_of(mean, language=language, domain=domain, task=task)
    rule, covered = ADVICE[level], not scope.outside

    if scope.unknown:
        rule = f"{IF_MULTI_HOP} {rule[0].lower()}{rule[1:]}"
    if domain == "in-domain":
        rule, covered = ADVICE["in-domain"], language == "en"

    return Recommendation(
        level=level,
        advice=rule if covered else scope.text,
        mean_cw=mean,
        interval=(low, high),
        n_queries=int(cw.size),
        possible=possible,
        scope=scope,
        prior=expected() if language == "en" and domain == "ood" else (),
        caveats=tuple(_caveats(cw, possible, level, scope)),
    )


def _counts(cw_values: ArrayLike) -> NDArray[np.float64]:
    """Content-word counts as numbers; InputError in a sentence for texts, none, or what is no count."""
    values = np.asarray(cw_values)
    if values.dtype.kind in "USO" and any(isinstance(value, str | bytes) for value in values.ravel()):
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


def _caveats(cw: NDArray[np.float64], possible: tuple[str, ...], level: str, scope: Scope) -> list[str]:
    caveats = list(scope.unknown)

    if len(possible) > 1 and cw.size > 1:
        caveats.append(
            f"The interval of the mean reaches into {' and '.join(possible)}: more target queries would narrow it."
        )

    if cw.size < FEW_QUERIES:
        queries = "query, which cannot stand for others" if cw.size == 1 else "queries"
        caveats.append(f"Only {cw.size} target {queries}; {FEW_QUERIES} or more are wanted.")

    if RESTS_ON[level]:
        caveats.append(RESTS_ON[level])

    caveats.append(
        "The evidence is 14 conditions on only four multi-hop datasets, with two retrievers and queries written by "
        "GPT-4o-mini; on queries of a weaker generator (Mistral-7B) the relation was reversed."
    )

    caveats.append(
        "Over all 31 published datasets, most of them not multi-hop, CW explains far less of the gain: see the "
        "evidence page."
    )
    return caveats


# What to expect on a new dataset before anything is measured on it.
#
# Estimated by ``reproduction/prior.py`` from the published differences and those of the stored studies; docs/METHODS.md
# says how, and how often it held for a dataset that was left out.

FILE = SHIPPED_DATA / "evidence" / "prior.csv"


@dataclass(frozen=True, slots=True)
class Prior:
    """The difference that a new dataset predicts, in NDCG@10 points: Student's t about ``points`` with scale ``sd``.

    ``design`` is what the trainings have equal, ``loss`` as studies name it. ``published`` of the ``datasets`` are the
    paper's; ``setups`` counts ways of training. ``covered`` is how often the 95% interval held for a dataset that was
    left out (a share), ``covered_setups`` the same for a way of training, ``error`` how far off its prediction was
    (root mean square), ``error_with_cw`` with a slope on content words.
    """

    comparison: str
    design: str
    loss: str
    per_doc: int
    points: float
    sd: float
    degrees: float
    datasets: int
    published: int
    setups: int
    covered: float
    covered_setups: float
    error: float
    error_with_cw: float

    @property
    def low(self) -> float:
        return self.points - float(stdtrit(self.degrees, 0.975)) * self.sd

    @property
    def high(self) -> float:
        return self.points + float(stdtrit(self.degrees, 0.975)) * self.sd


@lru_cache(maxsize=1)
def priors() -> tuple[Prior, ...]:
    """All rows of the table."""
    kinds: dict[str, Any] = {"str": str, "int": int, "float": float}
    read_as = {field.name: kinds[str(field.type)] for field in fields(Prior)}

    found = []
    with open(FILE, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.append(Prior(**{name: read_as[name](text) for name, text in row.items()}))

    return tuple(found)


def _usual() -> list[Prior]:
    """The rows that an answer rests on: several different queries over one, at equal documents, by InfoNCE."""
    return [p for p in priors() if (p.comparison, p.design, p.loss) == (SCALING, EQUAL_DOCUMENTS, INFONCE)]


def expected() -> tuple[Expectation, ...]:
    """What a new dataset predicts at each Q/Doc; empty where too few datasets were measured."""
    return tuple(Expectation(p.per_doc, p.points, p.low, p.high) for p in _usual())


def measured() -> tuple[str, tuple[str, ...]]:
    """(what ``expected()`` rests on, its limits in sentences)."""
    rows = _usual()
    held = np.average([p.covered for p in rows], weights=[p.datasets for p in rows])
    known = [p for p in rows if not np.isnan(p.covered_setups)]
    ways = np.average([p.covered_setups for p in known], weights=[p.setups for p in known])

    most = max(rows, key=lambda p: p.datasets)
    name = f"{most.datasets} datasets of the paper"
    if most.published < most.datasets:
        name = f"{most.datasets} datasets, {most.published} of them the paper's"

    return name, (
        f"Such intervals held for {held:.0%} of the datasets and {ways:.0%} of the ways of training left out.",
        "In the paper's trainings (up to 100 epochs) more queries also meant more steps.",
    )


LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Scope:
    """``outside`` are the reasons why the line says nothing of a task, ``unknown`` what was not said about it.

    A task is inside if neither holds: multi-hop questions in English, CW within the four datasets'. Where only the kind
    is unknown, what the line says is conditional on it.
    """

    outside: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In a sentence; empty for a task inside the evidence."""
        if self.outside:
            return f"The published rule has no evidence for such a task: {'; '.join(self.outside)}."
        return " ".join(self.unknown)


def scope_of(mean_cw: float, *, language: str, domain: str, task: str) -> Scope:
    """How a task relates to the evidence behind the line."""
    published = [d.cw for d in differences()]
    low, high = min(published), max(published)
    outside, unknown = [], []

    if domain == "in-domain":
        # What the published in-domain sets say is another matter, and CW or the kind of task play no part in it.
        task, mean_cw = MULTI_HOP_QA, low
        outside.append("the line is about queries unlike the training queries, and these resemble them")

    if language != LANGUAGE:
        outside.append("the line was fitted on English queries, and counts in other languages are not comparable")
    if task and task != MULTI_HOP_QA:
        outside.append(f"the line was fitted on multi-hop question answering, not on {KINDS[task].lower()}")
    if not low <= mean_cw <= high:
        outside.append(f"the line covers mean CW from {low:.2f} to {high:.2f}, and {mean_cw:.2f} lies outside")
    if not task and not outside:  # what is outside by language or CW needs none
        unknown.append("The published rule covers multi-hop questions only: choose your task type.")

    return Scope(tuple(outside), tuple(unknown))


# The only kind that the published line was fitted on.
MULTI_HOP_QA = "multi-hop"

# Kind → title. Those of BEIR are its own task categories (Thakur et al. 2021, table 1); BRIGHT's is its subject.
KINDS: Mapping[str, str] = {
    MULTI_HOP_QA: "Multi-hop question answering",
    "question-answering": "Question answering",
    "web-search": "Web search",
    "fact-checking": "Fact checking",
    "biomedical": "Biomedical search",
    "citation": "Citation prediction",
    "argument": "Argument retrieval",
    "duplicate": "Duplicate questions",
    "entity": "Entity search",
    "reasoning": "Reasoning-intensive search",
}

_BEIR = {
    "arguana": "argument",
    "climate-fever": "fact-checking",
    "cqadupstack": "duplicate",
    "dbpedia-entity": "entity",
    "fever": "fact-checking",
    "fiqa": "question-answering",
    "nfcorpus": "biomedical",
    "nq": "question-answering",
    "quora": "duplicate",
    "scidocs": "citation",
    "scifact": "fact-checking",
    "trec-covid": "biomedical",
    "webis-touche2020": "argument",
}
_GROUPS = {"Multi-hop": MULTI_HOP_QA, "BRIGHT": "reasoning", "TREC-DL": "web-search"}


def kinds_of_datasets() -> dict[str, str]:
    """{published dataset: its kind}; HotpotQA, printed in two groups, is multi-hop."""
    rows = sorted(read("datasets"), key=lambda row: row["group"] == "Multi-hop")
    return {row["dataset"]: _GROUPS.get(row["group"]) or _BEIR.get(row["dataset"], MULTI_HOP_QA) for row in rows}
