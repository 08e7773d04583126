"""What a study says, in sentences: what was found, how sure it is, and what cannot be concluded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cdp.principle import AVOID_BELOW, PARAPHRASE, RECOMMEND_ABOVE, SCALING, WEIGHTING, threshold
from cdp.studies.estimate import CONFOUNDS
from cdp.studies.gains import TITLES, TRAINING, Gain
from cdp.studies.plan import UNTRAINED

if TYPE_CHECKING:
    from cdp.studies.report import Row, StudyReport

FEW_DATASETS = 6
"""With fewer datasets a correlation over them rests on very little, whatever its p."""


def findings(report: StudyReport) -> list[str]:
    """The answer, most important first. Nothing is said that a comparison of the study does not show."""
    found = [*_best(report)]
    for comparison in (SCALING, PARAPHRASE, WEIGHTING):
        by_condition: dict[tuple[str, str, str], list[Gain]] = defaultdict(list)
        for gain in report.of(comparison):
            by_condition[gain.retriever, gain.source, gain.weighting].append(gain)
        found += [_compared(comparison, group) for group in by_condition.values()]
    found += _relation(report)
    return found


def _best(report: StudyReport) -> list[str]:
    complete = [row for row in report.rows if row.average is not None and row.source != UNTRAINED]
    found = []
    for retriever in dict.fromkeys(row.retriever for row in complete):
        rows = [row for row in complete if row.retriever == retriever]
        best = max(rows, key=lambda row: row.average or 0.0)
        before = next(
            (row.average for row in report.rows if row.retriever == retriever and row.source == UNTRAINED), None
        )
        against = "" if before is None else f", {signed((best.average or 0.0) - before)} against the untrained one"
        found.append(
            f"Best on average over {_count(len(report.benchmarks), 'benchmark')}: {best.name}, NDCG@10 "
            f"{best.average:.2f}{against}."
        )
    return found


def _compared(comparison: str, group: Sequence[Gain]) -> str:
    """One comparison in a sentence: how many gain and lose, and the values at its highest Q/Doc."""
    up = [g for g in group if g.significant and g.points > 0]
    down = [g for g in group if g.significant and g.points < 0]
    most = max(g.per_doc for g in group)
    listed = ", ".join(
        f"{signed(g.points)}{'*' if g.significant else ''} on {g.benchmark} (CW {g.cw:.1f})"
        for g in sorted((g for g in group if g.per_doc == most), key=lambda g: g.cw)
    )
    first = group[0]
    who = f"{first.condition}" if comparison != PARAPHRASE else first.retriever
    return (
        f"{TITLES[comparison]} ({who}): of {_count(len(group), 'difference')} {len(up)} gain and {len(down)} lose "
        f"significantly. At Q/Doc {most}: {listed}."
    )


def _relation(report: StudyReport) -> list[str]:
    """Whether the gain grows with CW here, where it crosses zero, and what that does to the published rule."""
    own = report.threshold
    if own is None:
        return []
    published = threshold()
    by_dataset = "has no bounds" if own.by_dataset is None else f"{own.by_dataset[0]:.1f} to {own.by_dataset[1]:.1f}"
    datasets = _count(own.n_datasets, "benchmark")
    strength = (
        f"Over {datasets} the mean gain and CW correlate with r {signed(own.r_of_dataset_means)} "
        f"(p {own.p_of_dataset_means:.2f})"
    )
    if own.slope <= 0:
        return [
            f"{strength}: here the gain does not grow with CW, unlike in the published results (r "
            f"{signed(published.r_of_dataset_means)} over {published.n_datasets} datasets). The published lines at "
            f"{AVOID_BELOW:.0f} and {RECOMMEND_ABOVE:.0f} find no support in this study; go by the gains measured."
        ]
    cw = [b.cw for b in report.benchmarks]
    inside = min(cw) <= own.crossing <= max(cw)
    place = (
        f"The fitted gain crosses zero at CW {own.crossing:.1f} (95% over benchmarks {by_dataset}); published "
        f"{published.crossing:.1f}."
    )
    if not inside:
        side = "below" if own.crossing < min(cw) else "above"
        sign = "positive" if side == "below" else "negative"
        place += (
            f" That lies {side} every benchmark here ({min(cw):.1f} to {max(cw):.1f}), so it is an extension of the "
            f"line: all that was seen is a mostly {sign} gain at these CW."
        )
        moved = (
            "It says that several queries per document pay at lower CW than the published rule has it, for data and "
            "models like these."
            if side == "below"
            else "It says that they pay later than the published rule has it, for data and models like these."
        )
    elif own.crossing < AVOID_BELOW:
        moved = (
            f"Tasks between {own.crossing:.1f} and {AVOID_BELOW:.0f}, which the published rule tells to avoid, would "
            "be worth a test."
        )
    elif own.crossing > RECOMMEND_ABOVE:
        moved = (
            f"Tasks between {RECOMMEND_ABOVE:.0f} and {own.crossing:.1f}, which the published rule recommends for, "
            "should be tested first."
        )
    else:
        moved = "That lies between the published lines, so the recommendation stays as it is."
    return [f"{strength}.", f"{place} {moved}"]


def limits(report: StudyReport) -> list[str]:
    """What cannot be concluded, and why."""
    found: list[str] = []
    missing = report.planned - report.finished
    if missing:
        failed = [f for f in report.failures if not f[0].startswith(UNTRAINED)]
        why = f", {len(failed)} of them because they failed" if failed else ""
        found.append(
            f"{missing} of {_count(report.planned, 'training')} are missing{why}: comparisons with them are left out, "
            "and means are over the seeds that are there."
        )
    for condition, reason in report.failures:
        found.append(f"Failed: {condition}. {reason}")
    n = len(report.benchmarks)
    if report.no_threshold:
        found.append(f"No threshold and no correlation of its own: {report.no_threshold}")
    elif n < FEW_DATASETS:
        found.append(
            f"A correlation over {n} benchmarks rests on {n} independent observations, however many conditions there "
            "are: it can suggest a relation, not establish one."
        )
    if len(report.config.numbers("seeds", minimum=0)) == 1:
        found.append(
            "With one seed the spread between trainings is unknown: a significant difference over the queries may "
            "still be luck of one training."
        )
    still = [row for row in report.rows if row.n_seeds > 1 and not row.spread]
    if still:
        one_batch = all(row.steps_per_epoch == 1 for row in still)
        why = (
            "each step saw all pairs in one batch, so the seed only changes their order"
            if one_batch
            else "nothing that the seed decides changed the result"
        )
        found.append(
            f"No spread over the seeds of {_listed(row.name for row in still)}: {why}. These are repetitions of one "
            "training, not a spread of 0; a smaller batch gives one."
        )
    if report.of(SCALING):
        found += _confounds(report)
    for source in report.sources:
        most = max(report.config.numbers("per_doc", minimum=1))
        reached = source.counts[most - 1] if most <= len(source.counts) else 0
        if reached < source.n_documents:
            found.append(
                f"{source.label}: only {reached:,} of {source.n_documents:,} documents have {most} queries, so Q/Doc "
                f"{most} stands for {source.pairs(most) / max(1, source.n_documents):.1f} per document on average."
            )
        if source.kind == "human":
            found.append(
                f"{source.label}: human queries were not written to differ by format; the published rule is about "
                "queries that were."
            )
    if not report.of(TRAINING) and report.rows:
        found.append("The untrained retriever was not evaluated, so gains from training are unknown.")
    return found


def _confounds(report: StudyReport) -> list[str]:
    """What differs between Q/Doc besides the queries per document, with its figures."""
    by_source: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in report.rows:
        if row.pairs:
            by_source[row.retriever, row.source, row.weighting].append(row)
    found = []
    for rows in by_source.values():
        low, high = (chosen(rows, key=lambda row: row.per_doc) for chosen in (min, max))
        figures = [
            f"{noun} {a:,} and {b:,}"
            for noun, a, b in (
                ("documents", low.documents, high.documents),
                ("pairs", low.pairs, high.pairs),
                ("steps", low.steps, high.steps),
            )
            if a != b and a and b
        ]
        if figures:
            found.append(f"{low.source} at Q/Doc {low.per_doc} and {high.per_doc}: {', '.join(figures)}")
    differing = f" Different here: {'; '.join(dict.fromkeys(found))}." if found else ""
    return [CONFOUNDS[report.config.held_equal] + differing]


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    return f"{', '.join(known[:3])}{f' and {len(known) - 3} more' if len(known) > 3 else ''}"


def signed(value: float) -> str:
    """A number with its sign, two digits."""
    return f"{value:+.2f}".replace("-", "−")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
