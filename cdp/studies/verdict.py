"""What a study concludes on the principle: it supports it, contradicts it, or cannot tell.

From the slope over independent datasets, its p and its interval; the sign of a slope alone concludes nothing: with the
CW of its benchmarks shuffled at most one report in twenty says more than "cannot tell".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cdp.base.statistics import fit_line, power_of_slope
from cdp.base.text import signed
from cdp.principle import AVOID_BELOW, RECOMMEND_ABOVE, Difference, level_of

SUPPORTS, CONTRADICTS, UNCLEAR = "supports", "contradicts", "cannot tell"

SIGNIFICANT = 0.05

# The effect that a design's power is stated for: points per content word, and points between datasets.
SLOPE, SCATTER = 1.0, 1.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """``outcome`` is one of the three; ``slope`` with its 95% interval and ``p`` are over ``n`` independent datasets,
    None with fewer than three. ``crossing`` is Fieller's interval, None without bounds. ``power``: how often such a
    design finds a slope of 1 where datasets scatter by 1.5 points. ``cw`` is the range of the datasets' CW."""

    outcome: str
    n: int
    slope: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    crossing: tuple[float, float] | None = None
    power: float | None = None
    cw: tuple[float, float] | None = None


def verdict(cw: Sequence[float], gain: Sequence[float]) -> Verdict:
    """The verdict from one mean gain per independent dataset; both (n,)."""
    if len(cw) < 3 or np.ptp(cw) == 0:
        return Verdict(UNCLEAR, len(cw))
    fit = fit_line(cw, gain)
    outcome = UNCLEAR if fit.p >= SIGNIFICANT else SUPPORTS if fit.slope > 0 else CONTRADICTS
    return Verdict(
        outcome, fit.n, fit.slope, fit.slope_interval(), fit.p, fit.crossing_interval(), design_power(cw),
        (min(cw), max(cw)),
    )  # fmt: skip


def design_power(cw: Sequence[float]) -> float | None:
    """How often datasets at these CW find a slope of 1 where they scatter by 1.5; None where no line can be drawn."""
    return power_of_slope(cw, SLOPE, SCATTER) if len(cw) >= 3 and np.ptp(cw) > 0 else None


def sentence(result: Verdict) -> str:
    """The verdict in words, with what it rests on."""
    if result.slope is None or result.interval is None or result.p is None:
        return (
            f"This study cannot tell whether the gain grows with CW: {result.n} independent "
            f"{'dataset is' if result.n == 1 else 'datasets are'} too few (three of different CW at least)."
        )
    figures = (
        f"{signed(result.slope)} points per content word, 95% {signed(result.interval[0])} to "
        f"{signed(result.interval[1])}, p {result.p:.3f}, over {result.n} independent datasets"
    )
    if result.outcome == UNCLEAR:
        return f"This study cannot tell whether the gain grows with CW ({figures}). {power_text(result.power)}"
    if result.outcome == CONTRADICTS:
        return (
            f"This study contradicts the principle: the gain falls with CW ({figures}). Go by the gains measured, for "
            "data and models like these."
        )
    return f"This study supports the principle: the gain grows with CW ({figures}). {_where(result)}"


def power_text(power: float | None) -> str:
    """What a design can find, in a sentence; empty where it can find nothing at all."""
    if power is None:
        return ""
    return (
        f"A design with these datasets finds a slope of {SLOPE:g} point per content word (datasets scattering by "
        f"{SCATTER:g}) in {power:.0%} of runs."
    )


def _where(result: Verdict) -> str:
    """Where the line crosses zero, and what that does to the published rule: only where the interval says so."""
    if result.crossing is None:
        return "Where it crosses zero has no bounds."
    low, high = result.crossing
    text = f"It crosses zero between CW {low:.1f} and {high:.1f} (95%)"
    if result.cw is not None and (high < result.cw[0] or low > result.cw[1]):
        side = "below" if high < result.cw[0] else "above"
        text += (
            f", {side} every dataset here ({result.cw[0]:.1f} to {result.cw[1]:.1f}), so it is an extension of the line"
        )
    if high < AVOID_BELOW:
        return f"{text}, which lies below the published line at {AVOID_BELOW:.0f}."
    if low > RECOMMEND_ABOVE:
        return f"{text}, which lies above the published line at {RECOMMEND_ABOVE:.0f}."
    return f"{text}, which does not exclude the published lines, so the recommendation stays as it is."


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """A benchmark of a study: the content words of its queries, and what it shares with other benchmarks (``family``)
    and with the training documents. ``in_domain_of`` are the sources that are of its own documents, ``in_domain``
    whether all are; ``facts`` are means over its queries: ``words``, and ``overlap`` with the relevant documents."""

    name: str
    cw: float
    split: str = ""
    n_queries: int = 0
    n_documents: int = 0
    cw_interval: tuple[float, float] = (0.0, 0.0)
    language: str = ""
    family: str = ""
    in_domain: bool = False
    in_domain_of: tuple[str, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """The published advice for its mean CW."""
        return level_of(self.cw)


def left_out(benchmarks: Sequence[BenchmarkFacts]) -> dict[str, str]:
    """{benchmark: why it is left out of the line through CW}."""
    spoken = Counter(b.language or "en" for b in benchmarks if not b.in_domain)
    main = spoken.most_common(1)[0][0] if spoken else ""
    reasons = {}
    for b in benchmarks:
        if b.in_domain:
            reasons[b.name] = "its source is that of the training documents (in-domain)"
        elif (b.language or "en") != main:
            reasons[b.name] = f"its language is {b.language or 'en'}, that of the others {main}"
    return reasons


def families_in_line(benchmarks: Sequence[BenchmarkFacts]) -> dict[str, list[BenchmarkFacts]]:
    """{family: its benchmarks} of those that are in the line through CW."""
    excluded = left_out(benchmarks)
    members: dict[str, list[BenchmarkFacts]] = defaultdict(list)
    for b in benchmarks:
        if b.name not in excluded:
            members[b.family or b.name].append(b)
    return members


def as_independent(data: Sequence[Difference], benchmarks: Sequence[BenchmarkFacts]) -> tuple[Difference, ...]:
    """The differences with one observation per family: the mean of its members, at their mean CW."""
    members = families_in_line(benchmarks)
    family_of = {b.name: family for family, group in members.items() for b in group}
    groups: dict[tuple[str, str, int, str], list[Difference]] = defaultdict(list)
    for d in data:
        if d.dataset in family_of:
            groups[d.retriever, d.comparison, d.per_doc, family_of[d.dataset]].append(d)
    independent = []
    for (*_, family), points in groups.items():
        group = members[family]
        if len(group) == 1:
            independent += points
        else:
            name, cw = f"{family} ({len(group)} benchmarks)", sum(b.cw for b in group) / len(group)
            mean = sum(p.points for p in points) / len(points)
            independent.append(replace(points[0], dataset=name, cw=cw, points=mean))
    return tuple(independent)
