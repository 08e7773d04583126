"""Verdicts, and the steps that the rules share: one coefficient of one model, its words, the spread over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cdp.base.statistics import Coefficient
from cdp.base.text import interval, p_value, signed
from cdp.studies.gains import Gain
from cdp.studies.pooling import MEAN, Pooled
from reproduction.evidence import Evidence

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "not decided"

# For a criterion that says what supports a claim and not what contradicts it.
NOT_SUPPORTED = "not supported"

UNTESTABLE, NOT_RUN = "not testable here", "not run yet"


@dataclass(frozen=True)
class Finding:
    """What a rule finds: ``why`` in a sentence, ``numbers`` it rests on, ``differences`` with a spread over seeds."""

    verdict: str
    why: str
    numbers: tuple[str, ...] = ()
    differences: tuple[Gain, ...] = ()


@dataclass(frozen=True)
class Term:
    """A coefficient of a pooled model, or why there is none."""

    words: str
    coefficient: Coefficient | None

    @property
    def above(self) -> bool:
        """Whether its whole 95% interval is above 0."""
        return self.coefficient is not None and self.coefficient.low > 0

    @property
    def below(self) -> bool:
        return self.coefficient is not None and self.coefficient.high < 0


def term(evidence: Evidence, pool: str, title: str, name: str = MEAN) -> Term:
    """The coefficient ``name`` of the model with that title."""
    model = evidence.model(pool, title)
    if model is None:
        return Term(f"{title}: no such comparison", None)
    coefficient = model.term(name)
    if coefficient is None:
        return Term(f"{title}: {model.problem or 'its sets do not differ in it'}", None)
    return Term(coefficient_words(model, coefficient), coefficient)


def told(found: Term) -> str:
    """``+0.62 (+0.10 to +1.14)``; a dash where there is none."""
    c = found.coefficient
    return "–" if c is None else f"{signed(c.value)} ({interval((c.low, c.high), sign=True)})"


def coefficient_words(model: Pooled, c: Coefficient) -> str:
    per = "" if c.name == MEAN else " per content word"
    sets = "1 judged set" if model.n_datasets == 1 else f"{model.n_datasets} judged sets"
    families = "1 family" if model.n_families == 1 else f"{model.n_families} families"
    return (
        f"{model.title}: {signed(c.value)} points{per} (95% {interval((c.low, c.high), sign=True)}, p {p_value(c.p)}, "
        f"df {c.degrees:.1f}; {sets} of {families})"
    )


def gain_words(gain: Gain) -> str:
    """A single difference with its interval."""
    return f"{gain.benchmark} {signed(gain.points)} (95% {interval((gain.low, gain.high), sign=True)})"


def spread_over_seeds(differences: Sequence[Gain]) -> str:
    """How far the seeds of one difference are apart; empty where nothing was repeated."""
    deviations = [g.seed_sd for g in differences if g.seed_sd is not None]
    if not deviations:
        return ""
    seeds = sorted({g.n_seeds for g in differences})
    of = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return (
        f"standard deviation over {of} seeds of a difference on one judged set: median "
        f"{statistics.median(deviations):.2f} points, largest {max(deviations):.2f} ({len(deviations)} differences)"
    )
