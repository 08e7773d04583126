"""The relation of a study's gains to content words, as the kept reports show it: correlations, threshold, verdict.

From the slope over independent datasets, its p and its interval; the sign of a slope alone concludes nothing: with the
CW of its benchmarks shuffled at most one report in twenty says more than "cannot tell". The product's own report has
one model over all conditions in its place (``cdp.studies.gains``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cdp.base.condition import PARAPHRASED
from cdp.base.errors import InputError
from cdp.base.statistics import fit_line, stdtrit
from cdp.base.text import escaped, interval, signed
from cdp.principle import (
    AVOID_BELOW,
    PARAPHRASE,
    RECOMMEND_ABOVE,
    SCALING,
    Correlation,
    Difference,
    PositiveRate,
    Threshold,
    correlation_table,
    dataset_means,
    level_of,
    positive_rates,
    threshold,
)
from cdp.studies.gains import TITLES, Gain
from cdp.studies.report import PRINCIPLE, BenchmarkFacts, StudyReport, missing
from cdp.studies.text import table
from cdp.studies.text import to_markdown as product_markdown


def power_of_slope(x: ArrayLike, slope: float, sd: float) -> float:
    """How often a line through points at these x finds a true ``slope``, points scattering about it by ``sd``.

    The two-sided test at 5% with n − 2 degrees of freedom, from the noncentral t distribution. InputError as
    ``fit_line``.
    """
    xs = np.asarray(x, np.float64)
    if len(xs) < 3 or np.ptp(xs) == 0:
        raise InputError("Power needs at least three points at different x.")
    if sd <= 0:
        return 1.0 if slope else 0.05
    from scipy.special import nctdtr

    shift = abs(slope) * float(np.sqrt(((xs - xs.mean()) ** 2).sum())) / sd
    bound = float(stdtrit(len(xs) - 2, 0.975))
    power = float(1 - nctdtr(len(xs) - 2, shift, bound) + nctdtr(len(xs) - 2, shift, -bound))
    return power if power == power else 1.0  # the distribution function gives nan far out, where nothing is missed


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


def own_differences(all_gains: Sequence[Gain]) -> tuple[Difference, ...]:
    """The gains that the published threshold is drawn from: more different queries per document, equal weights where
    there are such trainings, and equal documents as in the paper where a study holds pairs equal besides. Paraphrases
    are the control and do not count as more different queries."""
    compared = [g for g in all_gains if g.comparison in (SCALING, PARAPHRASE)]
    about = [g for g in compared if g.condition.method != PARAPHRASED and not g.condition.held]
    return _as_differences([g for g in about if g.condition.usual] or about, (SCALING, PARAPHRASE))


def _as_differences(all_gains: Sequence[Gain], comparisons: Sequence[str]) -> tuple[Difference, ...]:
    return tuple(
        Difference(g.way, g.comparison, g.condition.per_doc, g.benchmark, g.cw, g.points)
        for g in all_gains
        if g.comparison in comparisons
    )


def why_no_threshold(data: Sequence[Difference]) -> str:
    """Why no line can be drawn through these differences, in a sentence; empty where one can."""
    by_name = {d.dataset: d.cw for d in data}
    if len(by_name) < 3 or len(set(by_name.values())) < 2:
        n = len(by_name)
        same = " of the same CW" if n > 1 and len(set(by_name.values())) == 1 else ""
        return (
            f"A threshold needs at least three datasets with different CW; there {'is' if n == 1 else 'are'} {n}{same}."
        )
    if np.ptp([d.points for d in data]) == 0:
        return "All differences are equal, so they do not depend on CW and there is no threshold."
    return ""


# With fewer datasets a correlation over them rests on very little, even with a small p.
FEW_DATASETS = 6


@dataclass(frozen=True)
class Relation:
    """What a study's gains say of content words. ``differences`` are the gains that the principle is about, one per
    independent dataset and condition; the rest comes from these. ``left_out`` names the benchmarks that are in none."""

    differences: tuple[Difference, ...]
    verdict: Verdict
    threshold: Threshold | None
    no_threshold: str
    correlations: tuple[Correlation, ...]
    rates: tuple[PositiveRate, ...]
    left_out: Mapping[str, str]


def relation(report: StudyReport) -> Relation:
    """The relation of a report's gains to content words."""
    benchmarks = report.benchmarks
    own_of = {b.name: b.in_domain_of for b in benchmarks}
    foreign = [g for g in report.gains if g.condition.source not in own_of[g.benchmark]]
    all_own = own_differences(report.gains)
    own = as_independent(own_differences(foreign), benchmarks)
    reason = why_no_threshold(own) if all_own else "There is no comparison of more queries per document with one."

    return Relation(
        differences=own,
        verdict=verdict(*(values.tolist() for values in dataset_means(own))),
        threshold=None if reason else threshold(own),
        no_threshold=reason,
        correlations=tuple(correlation_table(as_independent(_as_differences(foreign, PRINCIPLE), benchmarks))),
        rates=tuple(positive_rates(all_own)) if all_own else (),
        left_out=left_out(benchmarks),
    )


def extended(report: StudyReport) -> StudyReport:
    """The report with the verdict among its findings, and what limits it among its limits."""
    found = relation(report)
    told = report.of(SCALING) or report.of(PARAPHRASE)
    first = len(report.leaks) + len(list(missing(report)))
    return replace(
        report,
        findings=(*report.findings, *([sentence(found.verdict)] if told else [])),
        limits=(*report.limits[:first], *_limits(report, found), *report.limits[first:]),
    )


def _limits(report: StudyReport, found: Relation) -> Iterator[str]:
    yield from (f"Left out of the line through CW: {name}, because {why}." for name, why in found.left_out.items())
    for family, group in families_in_line(report.benchmarks).items():
        if len(group) > 1:
            yield f"{', '.join(b.name for b in group)} are of one source ({family}) and count as one dataset."
    n = found.verdict.n
    if found.no_threshold:
        yield f"No threshold and no correlation of its own. {found.no_threshold}"
    elif n < FEW_DATASETS:
        yield (
            f"A correlation over {n} datasets rests on {n} independent observations, however many conditions there "
            f"are: it can suggest a relation, not establish one. {power_text(found.verdict.power)}"
        )


def to_markdown(report: StudyReport) -> str:
    """The whole report, with its relation to content words before the settings."""
    before, mark, settings = product_markdown(extended(report)).rpartition("## Settings\n")
    lines = relation_lines(relation(report))
    return "\n".join([f"{before}## Relation to content words", "", *lines, "", f"{mark}{settings}"])


def relation_lines(report: Relation) -> list[str]:
    """Correlations, positive rates and the threshold, with the published values beside."""
    lines = []

    if report.correlations:
        rows = [
            [escaped(c.retriever), TITLES[c.comparison], str(c.per_doc), signed(c.r), f"{c.p:.3f}", signed(c.rho),
             interval(c.interval), interval(c.without_one), str(c.n_datasets)]
            for c in report.correlations
        ]  # fmt: skip
        head = ["Condition", "Comparison", "Q/Doc", "r", "p", "Spearman", "95% of r", "Without one", "Benchmarks"]
        lines += [table(head, rows), ""]

    if report.rates:
        head = ["Benchmark", "CW", "Published advice", "Conditions with a gain"]
        rates = report.rates
        rows = [[escaped(r.dataset), f"{r.cw:.2f}", level_of(r.cw), f"{r.positive} of {r.conditions}"] for r in rates]
        lines += [table(head, rows), ""]

    if report.threshold is None:
        return [*lines, f"No threshold: {report.no_threshold}"]

    lines.append(table(["", "This study", "Published"], threshold_rows(report)))
    return lines


def threshold_rows(report: Relation) -> list[list[str]]:
    """Own threshold and the published one, side by side."""
    own, published = report.threshold, threshold()
    if own is None:
        return []

    falling = " (falling: gains below it)" if own.slope < 0 else ""
    return [
        ["gain crosses zero at CW", f"{own.crossing:.2f}{falling}", f"{published.crossing:.2f}"],
        ["95% over datasets", interval(own.by_dataset), interval(published.by_dataset)],
        ["leaving one dataset out", interval(own.without_one_dataset), interval(published.without_one_dataset)],
        ["points per content word", signed(own.slope), signed(published.slope)],
        ["95% of the slope", interval(own.slope_interval), interval(published.slope_interval)],
        ["r of dataset means (p)", f"{signed(own.r_of_dataset_means)} ({own.p_of_dataset_means:.3f})",
         f"{signed(published.r_of_dataset_means)} ({published.p_of_dataset_means:.3f})"],
        ["datasets, points", f"{own.n_datasets}, {own.n_points}", f"{published.n_datasets}, {published.n_points}"],
    ]  # fmt: skip
