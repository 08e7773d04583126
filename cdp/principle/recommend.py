"""Avoid, test or recommend diverse queries, by the content words (CW) of a task: sentences, caveats.

The published rule (tab:cw_threshold): a mean CW below 7 avoids, 7 to 10 tests, above 10 recommends several different
queries per document. The interval and the caveats say how much that is worth for the queries at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import ConfigError, InputError
from cdp.complexity import cw_interval
from cdp.complexity.profile import HIGH, LOW
from cdp.principle.evidence import Basis, Evidence, Expectation
from cdp.principle.prior import expected, measured
from cdp.principle.scope import Scope, check_kind, scope_of

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
    """What the published evidence says for one set of target queries.

    ``level`` is the published rule's at this mean CW (avoid, test or recommend); ``possible`` are the levels that the
    interval of the mean CW touches, and ``certain`` is whether that is only one. One query leaves every level possible.
    ``advice`` is the rule's, or that ``scope`` leaves it without evidence for such a task. ``prior`` is what a new
    dataset lets expect, whatever its CW, empty outside of English and out-of-domain tasks.
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
        return self.advice in ADVICE.values()

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
    return "avoid" if cw < AVOID_BELOW else "test" if cw <= RECOMMEND_ABOVE else "recommend"


def recommend(
    cw_values: ArrayLike,
    *,
    language: str = "en",
    domain: str = "ood",
    task: str = "",
    seed: int = 0,
) -> Recommendation:
    """What to do for queries with these content-word counts.

    ``cw_values``: shape (n_queries,), counts of at least 0. ``domain``: "ood" if the target queries differ from the
    training queries (other task, other style), "in-domain" if they do not. ``task`` is a kind of task (``KINDS``),
    empty if not known. The interval is a 95% bootstrap interval of the mean. Raises InputError for no queries or values
    that are not counts, ConfigError for an unknown domain or kind of task.
    """
    if domain not in ("ood", "in-domain"):
        raise ConfigError(f"The domain must be ood or in-domain, not {domain!r}.")
    check_kind(task)
    cw = _counts(cw_values)
    mean = float(cw.mean())
    low, high = cw_interval(cw, seed=seed)
    level = level_of(mean)
    possible = LEVELS[LEVELS.index(level_of(low)) : LEVELS.index(level_of(high)) + 1] if cw.size > 1 else LEVELS
    scope = scope_of(mean, language=language, domain=domain, task=task)
    rule, covered = ADVICE[level], not scope.outside
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
        caveats.append(
            f"Only {cw.size} target {'query, which cannot stand for others' if cw.size == 1 else 'queries'}; "
            f"{FEW_QUERIES} or more are wanted."
        )
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
