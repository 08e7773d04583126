"""What a study says, in sentences: what was found, how sure it is, and what cannot be concluded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cdp.base.text import counted, signed
from cdp.principle import PARAPHRASE, SCALING, WEIGHTING
from cdp.studies.estimate import CONFOUNDS
from cdp.studies.gains import TITLES, TRAINING, Gain
from cdp.studies.plan import UNTRAINED
from cdp.studies.report import StudyReport, StudyRow
from cdp.studies.verdict import power_text, sentence

FEW_DATASETS = 6
"""With fewer datasets a correlation over them rests on very little, whatever its p."""


def findings(report: StudyReport) -> list[str]:
    """The answer, most important first. Nothing is said that a comparison of the study does not show."""
    sentences = [*_best(report)]
    for comparison in (SCALING, PARAPHRASE, WEIGHTING):
        by_condition: dict[tuple[str, str, str, str], list[Gain]] = defaultdict(list)
        for gain in report.of(comparison):
            by_condition[gain.retriever, gain.source, gain.weighting, gain.held].append(gain)
        sentences += [_compared(comparison, group) for group in by_condition.values()]
    sentences += _relation(report)
    return sentences


def _best(report: StudyReport) -> list[str]:
    complete = [row for row in report.rows if row.average is not None and row.source != UNTRAINED]
    sentences = []
    for retriever in dict.fromkeys(row.retriever for row in complete):
        rows = [row for row in complete if row.retriever == retriever]
        best = max(rows, key=lambda row: row.average or 0.0)
        before = next(
            (row.average for row in report.rows if row.retriever == retriever and row.source == UNTRAINED), None
        )
        against = "" if before is None else f", {signed((best.average or 0.0) - before)} against the untrained one"
        sentences.append(
            f"Best on average over {counted(len(report.benchmarks), 'benchmark')}: {best.name}, NDCG@10 "
            f"{best.average:.2f}{against}."
        )
    return sentences


def _compared(comparison: str, group: Sequence[Gain]) -> str:
    """One comparison in a sentence: how many gain and lose, and the values at its highest Q/Doc."""
    up = [g for g in group if g.significant and g.points > 0]
    down = [g for g in group if g.significant and g.points < 0]
    most = max(g.per_doc for g in group)
    listed = ", ".join(
        f"{signed(g.points)}{'*' if g.significant else ''} (95% {signed(g.low)} to {signed(g.high)}) on {g.benchmark} "
        f"(CW {g.cw:.1f})"
        for g in sorted((g for g in group if g.per_doc == most), key=lambda g: g.cw)
    )
    first = group[0]
    who = first.condition
    if comparison == PARAPHRASE:
        who = f"{first.retriever}, {first.held}" if first.held else first.retriever
    return (
        f"{TITLES[comparison]} ({who}): of {counted(len(group), 'difference')} {len(up)} gain and {len(down)} lose "
        f"significantly. At Q/Doc {most}: {listed}."
    )


def _relation(report: StudyReport) -> list[str]:
    """The verdict on the principle."""
    if not report.of(SCALING) and not report.of(PARAPHRASE):
        return []
    return [sentence(report.verdict)]


def limits(report: StudyReport) -> list[str]:
    """What cannot be concluded, and why."""
    sentences: list[str] = []
    missing = report.planned - report.finished
    if missing:
        failed = [f for f in report.failures if not f[0].startswith(UNTRAINED)]
        why = f", {len(failed)} of them because they failed" if failed else ""
        sentences.append(
            f"{missing} of {counted(report.planned, 'training')} are missing{why}: comparisons with them are left out, "
            "and means are over the seeds that are there."
        )
    for condition, reason in report.failures:
        sentences.append(f"Failed: {condition}. {reason}")
    n = report.verdict.n
    sentences += [f"{name} is in no line through CW: {why}." for name, why in report.left_out.items()]
    for family, group in _families(report).items():
        sentences.append(f"{', '.join(group)} are of one source ({family}) and count as one dataset.")
    if report.no_threshold:
        sentences.append(f"No threshold and no correlation of its own: {report.no_threshold}")
    elif n < FEW_DATASETS:
        sentences.append(
            f"A correlation over {n} datasets rests on {n} independent observations, however many conditions there "
            f"are: it can suggest a relation, not establish one. {power_text(report.verdict.power)}"
        )
    if len(report.config.numbers("seeds", minimum=0)) == 1:
        sentences.append(
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
        sentences.append(
            f"No spread over the seeds of {_listed(row.name for row in still)}: {why}. These are repetitions of one "
            "training, not a spread of 0; a smaller batch gives one."
        )
    if report.of(SCALING):
        sentences += _confounds(report)
    for source in report.sources:
        most = max(report.config.numbers("per_doc", minimum=1))
        reached = source.n_with(most)
        if reached < source.n_documents:
            sentences.append(
                f"{source.label}: only {reached:,} of {source.n_documents:,} documents have {most} queries, so Q/Doc "
                f"{most} stands for {source.pairs(most) / max(1, source.n_documents):.1f} per document on average."
            )
        if source.kind == "human":
            sentences.append(
                f"{source.label}: human queries were not written to differ by format; the published rule is about "
                "queries that were."
            )
    if not report.of(TRAINING) and report.rows:
        sentences.append("The untrained retriever was not evaluated, so gains from training are unknown.")
    return sentences


def _families(report: StudyReport) -> dict[str, list[str]]:
    """Families with several benchmarks that are in the line."""
    members: dict[str, list[str]] = defaultdict(list)
    for b in report.benchmarks:
        if b.name not in report.left_out:
            members[b.family or b.name].append(b.name)
    return {family: group for family, group in members.items() if len(group) > 1}


def _confounds(report: StudyReport) -> list[str]:
    """What differs between Q/Doc besides the queries per document, with its figures."""
    by_source: dict[tuple[str, str, str], list[StudyRow]] = defaultdict(list)
    for row in report.rows:
        if row.pairs and not row.held:
            by_source[row.retriever, row.source, row.weighting].append(row)
    differing_figures = []
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
            differing_figures.append(f"{low.source} at Q/Doc {low.per_doc} and {high.per_doc}: {', '.join(figures)}")
    differing = f" Different here: {'; '.join(dict.fromkeys(differing_figures))}." if differing_figures else ""
    return [CONFOUNDS[report.config.held_equal] + differing]


def _listed(names: Iterable[str]) -> str:
    all_names = list(names)
    return f"{', '.join(all_names[:3])}{f' and {len(all_names) - 3} more' if len(all_names) > 3 else ''}"
