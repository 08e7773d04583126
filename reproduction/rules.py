"""A rule for each claim: the criterion of its plan as a function of the evidence, pure and with nothing added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from cdp.base.text import interval, signed
from cdp.principle.recommend import miracl_changes
from cdp.studies.gains import PARAPHRASE, SCALING, TITLES, WEIGHTING, Gain
from cdp.studies.plan import PARAPHRASED, method_of
from cdp.studies.report import BY_CW
from reproduction import evidence as ev
from reproduction.evidence import Evidence, in_domain
from reproduction.outcomes import (
    CONTRADICTED,
    NOT_SUPPORTED,
    SUPPORTED,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    gain_words,
    term,
    told,
)
from reproduction.pooling import HELD, HELD_OVER_QUERIES

Rule = Callable[[Evidence], Finding]
Differences = Callable[[Evidence], Sequence[Gain]]

DOCUMENTS_OUT = f"{TITLES[SCALING]}, equal documents, out of domain"
PAIRS_OUT = f"{TITLES[SCALING]}, equal pairs, out of domain"
CONTRAST_OUT = f"{TITLES[PARAPHRASE]}, equal documents, out of domain"

# Content words below which claim B speaks.
SIMPLE = 7.0

# Claim H: wider "by more than half" is wider than this many times.
WIDER = 1.5

# The Q/Doc at which single differences are compared across retrievers.
MOST = 5


# The weightings that differ in κ; the last one is never capped here.
CAPS = ("cw@4", "cw@8", "cw")


def weighting_out(weighting: str) -> str:
    return f"{TITLES[WEIGHTING]}, {weighting}, out of domain"


# the rules that several claims share


def mean(pool: str, title: str, differences: Differences) -> Rule:
    """Supported above 0 with the whole interval, contradicted below it, else not decided."""

    def rule(evidence: Evidence) -> Finding:
        found = term(evidence, pool, title)
        shown = ((found.words,), tuple(differences(evidence)))
        if found.coefficient is None:
            return Finding(UNTESTABLE, "No model could be fitted.", *shown)
        if found.above or found.below:
            side = "above" if found.above else "below"
            verdict = SUPPORTED if found.above else CONTRADICTED
            return Finding(verdict, f"The whole interval of the pooled mean is {side} 0: {told(found)}.", *shown)
        return Finding(UNDECIDED, f"The interval of the pooled mean holds 0: {told(found)}.", *shown)

    return rule


def slopes(models: Sequence[tuple[str, str]], differences: Differences) -> Rule:
    """Supported where the slope on CW is above 0 with its whole interval in each of ``models`` (pool, title), and stays
    above 0 beside length and overlap; contradicted where it is below 0 in each."""

    def rule(evidence: Evidence) -> Finding:
        plain = [term(evidence, pool, f"{title}{BY_CW}", "cw") for pool, title in models]
        held = [term(evidence, pool, f"{title}{HELD_OVER_QUERIES}", "cw") for pool, title in models]
        held += [
            term(evidence, pool, f"{title}{HELD}", "cw") for pool, title in models if evidence.model(pool, title + HELD)
        ]
        shown = (tuple(t.words for t in (*plain, *held)), tuple(differences(evidence)))
        if any(t.coefficient is None for t in plain):
            return Finding(UNTESTABLE, "The model of the slope could not be fitted in both comparisons.", *shown)
        slopes_are = " and ".join(told(t) for t in plain)
        if all(t.below for t in plain):
            return Finding(CONTRADICTED, f"Both slopes are below 0 with their whole interval: {slopes_are}.", *shown)
        if not all(t.above for t in plain):
            why = f"The two slopes are not clear of 0 on the same side: {slopes_are}."
        elif not all(t.above for t in held):
            why = f"Both slopes are above 0 ({slopes_are}), but do not stay so beside length and overlap."
        else:
            return Finding(SUPPORTED, f"Every slope is above 0 with its whole interval: {slopes_are}.", *shown)
        return Finding(UNDECIDED, why, *shown)

    return rule


def untestable(why: str, numbers: Callable[[Evidence], Sequence[str]] = lambda _: ()) -> Rule:
    """Never judged; what was measured is reported all the same."""
    return lambda evidence: Finding(UNTESTABLE, why, tuple(numbers(evidence)))


# the rules of single claims


def simple_tasks_lose(evidence: Evidence) -> Finding:
    """B: below CW 7 the mean of the differences is below 0 in most conditions, and no difference is surely above 0."""
    simple = [g for g in out_of_domain(SCALING, ev.DOCUMENTS)(evidence) if g.cw < SIMPLE]
    if not simple:
        return Finding(UNTESTABLE, f"No judged set out of domain has fewer than {SIMPLE:g} content words per query.")
    conditions: dict[tuple[str, str, int], list[Gain]] = defaultdict(list)
    for g in simple:
        conditions[g.retriever, g.source, g.per_doc].append(g)
    lose = [fmean(g.points for g in gains) < 0 for gains in conditions.values()]
    gaining = [g for g in simple if g.low > 0]
    numbers = tuple(_condition_words(gains) for gains in conditions.values())
    why = (
        f"The mean is below 0 in {sum(lose)} of {len(lose)} conditions, and {len(gaining)} of {len(simple)} "
        "differences are above 0 with their whole interval."
    )
    supported = 2 * sum(lose) > len(lose) and not gaining
    return Finding(SUPPORTED if supported else NOT_SUPPORTED, why, numbers, tuple(simple))


def _condition_words(gains: Sequence[Gain]) -> str:
    by_seed = [fmean(points) for points in zip(*(g.by_seed for g in gains), strict=False)]
    seeds = f" (single seeds {interval((min(by_seed), max(by_seed)), sign=True)})" if len(by_seed) > 1 else ""
    mean_points = signed(fmean(g.points for g in gains))
    sets = ", ".join(gain_words(g) for g in gains)
    return f"{gains[0].retriever}, Q/Doc {gains[0].per_doc}: mean {mean_points} points{seeds}: {sets}"


def no_difference_at_one(evidence: Evidence) -> Finding:
    """H: the interval at Q/Doc 1 holds 0 and is no wider than one and a half times that at Q/Doc 5."""
    one, five = (term(evidence, f"contrast at {m}", CONTRAST_OUT) for m in (1, 5))
    numbers = (f"At Q/Doc 1: {one.words}", f"At Q/Doc 5: {five.words}")
    differences = tuple(g for g in out_of_domain(PARAPHRASE, ev.RECORDED)(evidence) if g.per_doc == 1)
    if one.coefficient is None or five.coefficient is None:
        return Finding(UNTESTABLE, "No model could be fitted at one of the two.", numbers, differences)
    ratio = (one.coefficient.high - one.coefficient.low) / (five.coefficient.high - five.coefficient.low)
    holds = one.coefficient.low < 0 < one.coefficient.high
    why = (
        f"The interval at Q/Doc 1, {told(one)}, {'holds' if holds else 'does not hold'} 0 and is {ratio:.2f} times "
        f"as wide as that at Q/Doc 5 (at most {WIDER:g} is asked for)."
    )
    return Finding(SUPPORTED if holds and ratio <= WIDER else NOT_SUPPORTED, why, numbers, differences)


def diverse_beat_paraphrases(evidence: Evidence) -> Finding:
    """F: the mean of recorded-contrast; templates as the control beside it."""
    found = mean("contrast", CONTRAST_OUT, out_of_domain(PARAPHRASE, ev.RECORDED))(evidence)
    if lacking := evidence.lacking([ev.TEMPLATE]):
        return _with(found, f"The control is missing: {lacking[0]}.", ())
    control = term(evidence, "template", CONTRAST_OUT)
    same = (found.verdict == SUPPORTED and control.above) or (found.verdict == CONTRADICTED and control.below)
    note = "Templates show the same difference: form explains it." if same else ""
    return _with(found, note, (f"Control, queries by template: {control.words}",))


def _with(found: Finding, note: str, numbers: tuple[str, ...]) -> Finding:
    return Finding(found.verdict, f"{found.why} {note}".strip(), (*found.numbers, *numbers), found.differences)


def cap_matters(evidence: Evidence) -> Finding:
    """κ: the intervals of cw@4, cw@8 and cw do not overlap."""
    found = [term(evidence, "weighting", weighting_out(name)) for name in CAPS]
    differences = tuple(out_of_domain(WEIGHTING, ev.GRID)(evidence))
    numbers = tuple(t.words for t in found)
    intervals = sorted((t.coefficient.low, t.coefficient.high) for t in found if t.coefficient is not None)
    if len(intervals) < len(found):
        return Finding(UNTESTABLE, "One of the three was not measured.", numbers, differences)
    apart = all(before[1] < after[0] for before, after in pairwise(intervals))
    overlap = "No two of the intervals overlap" if apart else "At least two of the intervals overlap"
    why = f"{overlap}: {', '.join(f'{name} {told(t)}' for name, t in zip(CAPS, found, strict=True))}."
    return Finding(SUPPORTED if apart else NOT_SUPPORTED, why, numbers, differences)


def question_words_explain(evidence: Evidence) -> Finding:
    """French loses by CW weighting, and counting question words takes at least half of the loss away, each surely."""
    report = evidence.reports[ev.FRENCH]
    loss, half = ev.french(report, "cw"), evidence.half
    numbers = [f"{g.weighting}: {gain_words(g)}" for g in report.of(WEIGHTING)]
    if loss is None or half is None:
        return Finding(UNTESTABLE, "French was not measured with and without question words.", tuple(numbers))
    numbers.append(
        f"French, what counting question words gives back beyond half of the loss: {signed(half.mean)} points "
        f"(95% {interval((half.low, half.high), sign=True)})"
    )
    numbers += _published_signs(report.of(WEIGHTING), {b.name: b.language for b in report.benchmarks})
    loses, gives_back = loss.high < 0 and loss.significant, half.low > 0
    why = (
        f"French {'loses' if loses else 'does not surely lose'} by CW weighting, and counting question words "
        f"{'takes' if gives_back else 'does not surely take'} at least half of that away."
    )
    verdict = SUPPORTED if loses and gives_back else NOT_SUPPORTED
    return Finding(verdict, why, tuple(numbers), tuple(report.of(WEIGHTING)))


def _published_signs(gains: Sequence[Gain], language_of: dict[str, str]) -> list[str]:
    """Where the sign of CW weighting is another than the published one."""
    published = miracl_changes()
    lines = []
    for g in gains:
        change = published.get(language_of[g.benchmark])
        if g.weighting == "cw" and change is not None:
            sign = "the same sign" if g.points * change > 0 else "another sign"
            lines.append(f"CW weighting on {gain_words(g)}: {sign} as published for MIRACL ({signed(change)}%)")
    return lines


# numbers of what is not judged


def by_language(evidence: Evidence) -> list[str]:
    """E: the gain in each language."""
    report = evidence.reports.get(ev.LANGUAGES)
    if report is None:
        return [f"{ev.LANGUAGES} was not run"]
    language_of = {b.name: b.language for b in report.benchmarks}
    return [
        f"{language_of[g.benchmark]}, Q/Doc {g.per_doc}: {gain_words(g)}, "
        f"{'in-domain' if in_domain(report, g) else 'out of domain'}"
        for g in report.of(SCALING)
        if g.weighting == "none"
    ]


def reasoned(evidence: Evidence) -> list[str]:
    """J: the weightings of reasoned queries."""
    if lacking := evidence.lacking([ev.REASONING]):
        return lacking
    return [term(evidence, "reasoning", weighting_out(name)).words for name in ("cw", "ri", "ri-cw")]


def transformer_beside_static(evidence: Evidence) -> list[str]:
    """K: where minilm's sign differs from static-minilm's, at five queries per document."""
    if lacking := evidence.lacking([ev.MINILM, ev.DOCUMENTS, ev.PAIRS]):
        return lacking
    lines = []
    for plan, held in ((ev.DOCUMENTS, ""), (ev.PAIRS, "equal pairs")):
        static = {g.benchmark: g for g in evidence.gains(plan, SCALING) if g.per_doc == MOST}
        own = [g for g in evidence.gains(ev.MINILM, SCALING) if g.per_doc == MOST and g.held == held]
        pairs = [(g, static[g.benchmark]) for g in own if g.benchmark in static]
        other = [(g, s) for g, s in pairs if g.points * s.points < 0]
        design = held or "equal documents"
        lines.append(f"minilm, {design}: another sign than static-minilm on {len(other)} of {len(pairs)} judged sets")
        lines += [f"minilm, {design}: {gain_words(g)}, static-minilm {gain_words(s)}" for g, s in other]
    return lines


def weighted(weighting: str, plan: str) -> Differences:
    """The differences that one weighting makes, out of domain."""
    return lambda evidence: [g for g in out_of_domain(WEIGHTING, plan)(evidence) if g.weighting == weighting]


def out_of_domain(comparison: str, *plans: str) -> Callable[[Evidence], list[Gain]]:
    """The differences of studies that a criterion speaks of: out of domain, of diverse queries or people's."""

    def chosen(evidence: Evidence) -> list[Gain]:
        return [
            g
            for plan in plans
            for g in evidence.gains(plan, comparison)
            if method_of(g.source) != PARAPHRASED
            and (g.weighting == "none" or comparison == WEIGHTING)
            and not in_domain(evidence.reports[plan], g)
        ]

    return chosen
