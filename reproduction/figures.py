"""The figures of the document: one for each study and comparison, with the rows behind it as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from cdp.studies.gains import PARAPHRASE, SCALING, TITLES, WEIGHTING, Gain
from cdp.studies.plan import PARAPHRASED, method_of
from cdp.studies.report import StudyReport
from cdp.studies.tables import difference_rows
from reproduction import svg
from reproduction.evidence import in_domain

COMPARISONS = (SCALING, PARAPHRASE, WEIGHTING)

FACTS = ("retriever", "source", "weighting", "per_doc", "held")
"""What a condition is, by the names of its fields."""


def files(reports: Mapping[str, StudyReport]) -> dict[str, str]:
    """{file: content}: a figure and its rows for each comparison that a study makes."""
    shown = {(plan, c): _gains(report, c) for plan, report in reports.items() for c in COMPARISONS}
    shown = {key: gains for key, gains in shown.items() if gains}
    looks = _looks([gain for gains in shown.values() for gain in gains])
    made = {}
    for (plan, comparison), gains in shown.items():
        domain = [in_domain(reports[plan], gain) for gain in gains]
        made[f"{comparison}-{plan}.svg"] = _figure(plan, gains, domain, looks)
        made[f"{comparison}-{plan}.csv"] = _rows(gains, domain)
    return made


def lines(reports: Mapping[str, StudyReport], made: Mapping[str, str], folder: str) -> list[str]:
    """The figures as Markdown, by comparison."""
    if not made:
        return []
    found = [
        "## The differences, one by one",
        "",
        "Each row is a judged set, from few content words to many; each marker a difference, the mean over seeds, with "
        "its 95% interval over queries and seeds. The scale differs from figure to figure. With so many intervals some "
        "miss 0 by chance: the tables of each study correct for that, a single marker does not.",
        "",
    ]
    for comparison in COMPARISONS:
        own = [plan for plan in reports if f"{comparison}-{plan}.svg" in made]
        found += [f"### {TITLES[comparison]}", ""] if own else []
        for plan in own:
            file = f"{folder}/{comparison}-{plan}"
            found += [f"![{plan}: {TITLES[comparison]}]({file}.svg)", ""]
            found += [f"Its rows: [{comparison}-{plan}.csv]({file}.csv).", ""]
    return found


def _gains(report: StudyReport, comparison: str) -> list[Gain]:
    return [gain for gain in report.of(comparison) if method_of(gain.source) != PARAPHRASED]


def _looks(gains: Sequence[Gain]) -> dict[str, svg.Look]:
    """How every number of queries per document and every weighting looks, the same in all figures."""
    looks = {}
    for fact, key in (("per_doc", int), ("weighting", lambda name: (name != "none", name))):
        for number, value in enumerate(sorted({getattr(gain, fact) for gain in gains}, key=key)):
            looks[_word(fact, value)] = svg.Look.number(number)
    return looks


def _figure(plan: str, gains: Sequence[Gain], domain: Sequence[bool], looks: Mapping[str, svg.Look]) -> str:
    """What the conditions have in common stands below the title; of what differs, the weighting or Q/Doc is a colour,
    what a judged set has two of is panels, and the rest stands with the judged set."""
    values = {fact: {getattr(gain, fact) for gain in gains} for fact in FACTS}
    series = "weighting" if len(values["weighting"]) > len(values["per_doc"]) else "per_doc"
    differing = [fact for fact in FACTS if fact != series and len(values[fact]) > 1]
    by_set: dict[str, list[Gain]] = {}
    for gain in sorted(gains, key=lambda gain: (gain.cw, gain.benchmark)):
        by_set.setdefault(gain.benchmark, []).append(gain)
    panels = [f for f in differing if any(len({getattr(g, f) for g in own}) > 1 for own in by_set.values())]
    beside = [fact for fact in differing if fact not in panels]
    common = [fact for fact in FACTS if len(values[fact]) == 1]
    ordered = sorted(zip(gains, domain, strict=True), key=lambda pair: [getattr(pair[0], fact) for fact in panels])
    marks = [
        svg.Mark(_words(g, panels), g.benchmark, _words(g, [series]), g.points, g.low, g.high, hollow)
        for g, hollow in ordered
    ]
    return svg.forest(
        marks,
        title=f"{plan}: {TITLES[gains[0].comparison]}",
        subtitle=_words(gains[0], common),
        rows={name: f"CW {own[0].cw:.2f}" + ", ".join(["", *_named(own[0], beside)]) for name, own in by_set.items()},
        looks=looks,
        axis="Points of NDCG@10, with 95% intervals",
    )


def _words(gain: Gain, facts: Sequence[str]) -> str:
    return ", ".join(_named(gain, facts))


def _named(gain: Gain, facts: Sequence[str]) -> list[str]:
    return [word for fact in facts if (word := _word(fact, getattr(gain, fact)))]


def _word(fact: str, value: object) -> str:
    return f"Q/Doc {value}" if fact == "per_doc" else f"weighting {value}" if fact == "weighting" else str(value)


def _rows(gains: Sequence[Gain], domain: Sequence[bool]) -> str:
    head, rows = difference_rows(gains)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Domain", *head])
    writer.writerows(["in-domain" if own else "out of domain", *row] for own, row in zip(domain, rows, strict=True))
    return out.getvalue()
