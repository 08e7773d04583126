"""Avoid, test or recommend: what the content words of a task's queries say about diverse training queries.

The published rule: a mean CW below 7 avoids, 7 to 10 tests, above 10 recommends several different queries per document.
The interval and the caveats say how much that is worth for the queries at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.complexity import cw_interval
from cdp.complexity.profile import HIGH, LOW
from cdp.errors import ConfigError, InputError
from cdp.principle.advice import (
    Expected,
    Split,
    Suggestion,
    WeightingAdvice,
    evidence_range,
    expected_differences,
    expected_splits,
    suggest,
    weighting_advice,
)

AVOID_BELOW = float(LOW)
RECOMMEND_ABOVE = float(HIGH)
FEW_QUERIES = 50
SPLIT_PLAN = "document-quantity"
LEVELS = ("avoid", "test", "recommend")

ADVICE = {
    "avoid": "Several different queries per document are likely to hurt this task: write one good query per document.",
    "test": "This task may gain or lose: train with one and with several different queries per document, and compare.",
    "recommend": "This task is likely to gain from several different queries per document.",
    "in-domain": "The target queries resemble the training queries: one good query per document serves them best.",
}


@dataclass(frozen=True)
class Recommendation:
    """The answer for one set of target queries.

    ``level`` is avoid, test or recommend; ``possible`` are the levels that the interval of the mean CW touches, and
    ``certain`` is whether that is only one. ``expected`` are the published gains at this CW, ``splits`` what the same
    number of queries is worth on fewer documents, ``suggestion`` the Q/Doc that follows, ``weighting`` whether to
    weight the loss by CW. ``plan`` is the ready-made study that would settle it on the user's own data, empty where the
    answer is not to try. One query leaves every level possible: its interval has no width. ``summary`` says all of it
    in three sentences that can be read aloud.
    """

    level: str
    advice: str
    mean_cw: float
    interval: tuple[float, float]
    n_queries: int
    possible: tuple[str, ...]
    shares: dict[str, float]
    suggestion: Suggestion
    weighting: WeightingAdvice
    expected: tuple[Expected, ...] = ()
    splits: tuple[Split, ...] = ()
    caveats: tuple[str, ...] = field(default_factory=tuple)
    plan: str = ""

    @property
    def certain(self) -> bool:
        return len(self.possible) == 1

    @property
    def summary(self) -> str:
        """What to do next and how sure that is."""
        sure = (
            f"The mean of {self.mean_cw:.1f} content words is clear of the published lines at {LOW} and {HIGH}."
            if self.certain
            else "One query cannot tell what the mean CW is."
            if self.n_queries == 1
            else f"The mean CW lies between {self.interval[0]:.1f} and {self.interval[1]:.1f}, so the answer could "
            f"also be {' or '.join(level for level in self.possible if level != self.level)}."
        )
        return f"{self.advice} {self.suggestion.text} {sure} All of this rests on four published datasets."


def level_of(cw: float) -> str:
    """The published rule for one mean CW."""
    return "avoid" if cw < AVOID_BELOW else "test" if cw <= RECOMMEND_ABOVE else "recommend"


def recommend(
    cw_values: ArrayLike,
    *,
    language: str = "en",
    domain: str = "ood",
    budget: int | None = None,
    n_documents: int | None = None,
    seed: int = 0,
) -> Recommendation:
    """What to do for queries with these content-word counts.

    ``cw_values``: shape (n_queries,), counts of at least 0. ``domain``: "ood" if the target queries differ from the
    training queries (other task, other style), "in-domain" if they do not. ``budget`` is how many queries may be
    written in all and ``n_documents`` how many documents there are; with them the suggestion says how many documents
    to take. The interval is a 95% bootstrap interval of the mean. Raises InputError for no queries or values that are
    not counts, ConfigError for an unknown domain or an empty budget.
    """
    if domain not in ("ood", "in-domain"):
        raise ConfigError(f"The domain must be ood or in-domain, not {domain!r}.")
    for name, value in (("budget", budget), ("number of documents", n_documents)):
        if value is not None and value < 1:
            raise ConfigError(f"The {name} must be at least 1, not {value}.")
    cw = np.asarray(cw_values, dtype=np.float64).ravel()
    if cw.size == 0:
        raise InputError("There are no target queries.", hint="Paste or upload some, one per line.")
    if not np.isfinite(cw).all() or (cw < 0).any():
        raise InputError("Content words must be counts of at least 0.")
    mean = float(cw.mean())
    low, high = cw_interval(cw, seed=seed)
    level = level_of(mean)
    possible = LEVELS[LEVELS.index(level_of(low)) : LEVELS.index(level_of(high)) + 1] if cw.size > 1 else LEVELS
    return Recommendation(
        level=level,
        advice=ADVICE["in-domain"] if domain == "in-domain" else ADVICE[level],
        mean_cw=mean,
        interval=(low, high),
        n_queries=int(cw.size),
        possible=possible,
        shares={
            "avoid": float((cw < AVOID_BELOW).mean()),
            "test": float(((cw >= AVOID_BELOW) & (cw <= RECOMMEND_ABOVE)).mean()),
            "recommend": float((cw > RECOMMEND_ABOVE).mean()),
        },
        suggestion=suggest(level, mean, domain, budget, n_documents),
        weighting=weighting_advice(cw, domain),
        expected=expected_differences(mean),
        splits=expected_splits(mean, budget),
        caveats=tuple(_caveats(cw, mean, possible, language, domain)),
        plan="" if domain == "in-domain" or level == "avoid" else "qdoc-scaling" if budget is None else SPLIT_PLAN,
    )


def _caveats(cw: NDArray[np.float64], mean: float, possible: tuple[str, ...], language: str, domain: str) -> list[str]:
    found = []
    if len(possible) > 1 and cw.size > 1:
        found.append(
            f"The interval of the mean reaches into {' and '.join(possible)}: more target queries would narrow it."
        )
    if cw.size < FEW_QUERIES:
        found.append(
            f"Only {cw.size} target {'query, which cannot stand for others' if cw.size == 1 else 'queries'}; "
            f"{FEW_QUERIES} or more are wanted."
        )
    low, high = evidence_range()
    if not low <= mean <= high:
        found.append(
            f"The published evidence covers mean CW from {low:.2f} to {high:.2f}; {mean:.2f} lies outside it, so no "
            "difference is estimated."
        )
    if language != "en":
        found.append(
            "The lines at 7 and 10 were drawn from English queries; counts in other languages are not comparable with "
            "them, so treat this as a hint and test."
        )
    if domain == "in-domain":
        found.append("The rule is about queries unlike the training queries; in-domain, more diversity did not help.")
    found.append(
        "The evidence is 14 conditions on only four multi-hop datasets, with two retrievers and queries written by "
        "GPT-4o-mini; on queries of a weaker generator (Mistral-7B) the relation was reversed."
    )
    found.append(
        "Over all 31 published datasets, most of them not multi-hop, CW explains far less of the gain: see the "
        "evidence page."
    )
    return found
