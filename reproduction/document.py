"""docs/REPRODUCTION.md and what stands behind it, from the kept studies and the criteria: no figure in it is typed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent

from cdp.base.condition import EQUAL_DOCUMENTS, HYBRID, UNTRAINED, Condition
from cdp.base.text import duration, escaped, interval, signed
from cdp.base.workspace import write_bytes
from cdp.retrievers import bm25
from cdp.studies.config import read_plan
from cdp.studies.text import POOLED_NOTE, table
from reproduction import criteria, upper_layers, verdicts
from reproduction.criteria import FREE, METHOD, Claim, wanted
from reproduction.kept import ENDING, PARTS, Kept
from reproduction.relation import extended, to_markdown
from reproduction.stages import PLANNED, STAGES, Stage
from reproduction.verdicts import Decided, Judged

NAME = "REPRODUCTION.md"
FOLDER = "reproduction"
DETAILS = "claims.md"

# The claim whose figure is computed once more, by code that shares nothing with the package.
RECOMPUTED = "F"
# Claims whose figures mislead without their controls: these stand on the first page, the others claim by claim.
WITH_CONTROLS = ("F", "H", "U", "V")
RUN_BY = "tests/reproduction/test_kept.py::test_the_lines_in_the_document_print_its_table"

SMALL = "**The form for tests: it checks the pipeline. None of its numbers means anything.**"

# What the words and names mean, as Markdown.
WORDS = Path(__file__).with_name("words.md")

LIMITS = (
    "The retrievers are small and the judged sets are samples, not whole collections: what fails here may hold for the "
    "paper's retrievers, and the other way round.",
    "Each verdict is at its own level; the advice follows one only where it survives Holm's correction over all "
    "claims.",
)


def write(studies: Mapping[str, Kept], chosen: Sequence[Stage], out: Path, *, small: bool = False) -> Path:
    """The document in ``out``; claim by claim, and each study's report, in ``out/reproduction``."""
    judged = [verdicts.judge(claim, studies) for claim in criteria.read()]
    for plan, kept in studies.items():
        write_bytes(out / FOLDER / f"{plan}.md", to_markdown(kept.report).encode())
    warning = [SMALL, ""] if small else []
    write_bytes(out / FOLDER / DETAILS, _text(_details(judged, studies, chosen, warning)))
    write_bytes(out / NAME, _text(_pages(judged, studies, chosen, warning)))
    return out / NAME


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines).rstrip("\n") + "\n").encode()


def _pages(
    judged: Sequence[Judged], studies: Mapping[str, Kept], chosen: Sequence[Stage], warning: Sequence[str]
) -> list[str]:
    """What to do, the claims with their verdicts, the figures that carry them, and how to compute one again."""
    rows = [[f"{j.claim.id}. {j.claim.sentence}", f"**{j.verdict}**", _in_short(j)] for j in judged]
    figures = [
        [
            f"{j.claim.id} {d.criterion.name}".strip(),
            _figure(d),
            _margin(d),
            d.basis,
            "" if number or j.claim.id not in WITH_CONTROLS else _beside(j),
        ]
        for j in judged
        for number, d in enumerate(j.criteria)
        if d.figure.coefficient is not None
    ]

    trainings = sum(kept.report.finished for kept in studies.values())
    return [
        "# Does it hold? The paper's experiment, run by the product",
        "",
        *warning,
        "## What to do on Monday",
        "",
        *_sizes(judged, studies),
        *_advice(judged, studies),
        *_lexical(studies),
        *(f"- {text}" for text in LIMITS),
        "",
        "## The claims",
        "",
        "A claim is decided by its criterion in `data/plans/claims.yaml`, which was committed before its studies ran "
        f"({len(studies)} of {len(chosen)} studies, {trainings:,} trainings). Words, criteria, controls and limits: "
        f"[claim by claim]({FOLDER}/{DETAILS}).",
        "",
        table(["Claim", "Verdict", "Of the published effect"], rows),
        "",
        "## The figures behind the verdicts",
        "",
        "Points of NDCG@10 with the 95% interval; of a slope, points per content word. The 90% interval stands against "
        "the margin of equivalence.",
        "",
        table(["Claim", "Figure", "90%, margin", "Rests on", "Beside it"], figures) if figures else "None yet.",
        "",
        *(upper_layers.section(upper_layers.KEPT_IN) if studies and not warning else []),
        *_again(judged, studies),
    ]


def _sizes(judged: Sequence[Judged], studies: Mapping[str, Kept]) -> list[str]:
    """How small the trainings were that the advice rests on."""
    advising = {name for j in judged if j.claim.question for name in j.claim.studies}
    there = [kept for name, kept in studies.items() if name in advising]

    documents, steps = (verdicts.sizes(there, what) for what in ("documents", "steps"))
    if not documents or not steps:
        return []

    names = " and ".join(dict.fromkeys(str(t["retriever"]) for kept in there for t in kept.trained))
    return [
        f"All of it was seen with {names}, trained on {_range(documents)} documents for {_range(steps)} steps. What "
        "was not seen there may hold elsewhere.",
        "",
    ]


def _range(values: Sequence[int]) -> str:
    """``24 to 800 (median 250)`` of ascending values."""
    low, high = values[0], values[-1]
    return f"{low:,}" if low == high else f"{low:,} to {high:,} (median {values[len(values) // 2]:,})"


def _advice(judged: Sequence[Judged], studies: Mapping[str, Kept]) -> list[str]:
    """An answer for each question of a reader, by the verdicts of the claims that answer it."""
    said = {question: verdicts.advice(judged, question, studies) for question in criteria.QUESTIONS}
    return [line for q, text in said.items() if text for line in (f"**{q.capitalize()}.** {text}", "")]


def _lexical(studies: Mapping[str, Kept]) -> list[str]:
    """BM25 beside the best trained retriever of each study that has both on all judged sets: words cost no training."""
    found = []
    for name, kept in studies.items():
        rows = {row.name: row for row in kept.report.rows if row.average is not None}
        trained = [row for row in rows.values() if row.condition.per_doc]
        if bm25.TITLE not in rows or not trained:
            continue

        best = max(trained, key=lambda row: row.average or 0.0)
        fused = next((row for row in rows.values() if row.condition.source == HYBRID), None)
        beside = "" if fused is None else f", fused with the untrained retriever {fused.average:.1f}"
        found.append(
            f"{name}: BM25 {rows[bm25.TITLE].average:.1f}{beside}, the best trained retriever {best.average:.1f} "
            f"({best.name})"
        )

    means = f"Mean NDCG@10 over the judged sets out of domain: {'; '.join(found)}."
    return [f"**Before you train.** Measure BM25 first. {means}", ""] if found else []


def _in_short(judged: Judged) -> str:
    """What is left of the published effect; why there is no verdict where there is no figure either."""
    measured = any(d.figure.coefficient is not None for d in judged.criteria)
    return judged.published or ("–" if measured else judged.why)


def _figure(d: Decided) -> str:
    c = d.figure.coefficient
    return "–" if c is None else f"{signed(c.value)} ({interval((c.low, c.high), sign=True)})"


def _beside(judged: Judged) -> str:
    """The controls of a claim, as far as they were measured."""
    there = [f"{d.criterion.name} {_figure(d)}" for d in judged.controls if d.figure.coefficient is not None]
    return "; ".join(there) or "–"


def _margin(d: Decided) -> str:
    ninety = "–" if d.figure.coefficient is None else interval(d.figure.ninety, sign=True)
    return f"{ninety}, ±{d.criterion.margin:g}"


def _again(judged: Sequence[Judged], studies: Mapping[str, Kept]) -> list[str]:
    """Code that computes the figures of one claim on each judged set from the kept files, and what it must print."""
    found = next((j for j in judged if j.claim.id == RECOMPUTED and j.criteria and j.criteria[0].figure.sets), None)
    if found is None:
        return []

    first = found.criteria[0].criterion
    names = [name for name in first.studies if name in studies]
    compared = {c for name in names for c in studies[name].scores.scores if c.source not in (UNTRAINED, HYBRID)}
    arm = {name: [value] for name, value in Condition._field_defaults.items() if name not in (*FREE, "source", "held")}
    arm |= {
        name: list(wanted(value)) for name, value in first.of.items() if name in Condition._fields and name != "held"
    }
    # Only what differs within the studies needs to be asked for.
    asked = [
        f'c["{n}"] in {json.dumps(values)}'
        for n, values in arm.items()
        if any(getattr(c, n) not in values for c in compared)
    ]

    methods = [first.of[METHOD], first.against[METHOD]]
    if {c.method for c in compared} - {*methods}:
        asked.append(f'c["source"].split()[0] in {json.dumps(methods)}')

    if any(c.held for c in compared):
        held = first.of.get("held", "")
        asked.append(f'c["held"] == {json.dumps("" if held == EQUAL_DOCUMENTS else held)}')

    sign = f'(-1) ** c["source"].startswith("{methods[1]}")'
    code = f"""\
        import gzip, json, statistics

        gains = {{}}
        for study in {json.dumps(names)}:
            kept = json.load(gzip.open(f"docs/{FOLDER}/{{study}}{ENDING}"))
            for judged, own in zip(kept["about"]["benchmarks"], kept["scores"]):
                for number, column in zip(own["trainings"], zip(*own["rows"])):  # a row is a query, a column a training
                    c = kept["trainings"][number]["condition"]
                    if {" and ".join(['c and c["source"] not in judged["in_domain_of"]', *asked])}:
                        points = {sign} * statistics.fmean(column) / {PARTS // 200}
                        gains.setdefault(judged["name"], []).append(points)
        print("\\n".join(f"| {{name}} | {{statistics.fmean(gains[name]):+.2f}} |" for name in sorted(gains)))"""

    rows = sorted((name, f"{points:+.2f}") for name, _, points in found.criteria[0].figure.sets)
    return [
        f"## Claim {RECOMPUTED} once more, without the package",
        "",
        f"The scores of every query are in `docs/{FOLDER}`. This prints the mean difference on each judged set:",
        "",
        f"<!-- run by {RUN_BY} -->",
        "```python",
        *dedent(code).splitlines(),
        "```",
        "",
        table(["Judged set", "Points"], [list(row) for row in rows]),
        "",
    ]


def _details(
    judged: Sequence[Judged], studies: Mapping[str, Kept], chosen: Sequence[Stage], warning: Sequence[str]
) -> list[str]:
    """Words, studies, and each claim with its criteria, figures and controls."""
    lines = ["# Claim by claim", "", *warning, *WORDS.read_text(encoding="utf-8").splitlines(), ""]
    for j in judged:
        lines += _claim(j)

    rows, limits = [], defaultdict(list)
    for stage in chosen:
        kept = studies.get(stage.plan)
        rows.append([stage.plan, "not run", "–", "–", "–"] if kept is None else _study(stage, kept))
        for text in extended(kept.report).limits if kept is not None else ():
            limits[escaped(text)].append(stage.plan)

    if chosen == STAGES:
        rows += [[plan, "planned, not run", "–", "–", "–"] for plan in PLANNED]

    lines += ["## The studies", "", table(["Study", "State", "Trainings", "Time", "Plan"], rows), "", POOLED_NOTE, ""]
    lines += ["## What limits them, in the words of their reports", ""]

    return [*lines, *(f"- {text} ({', '.join(plans)})" for text, plans in limits.items())]


def _study(stage: Stage, kept: Kept) -> list[str]:
    report = kept.report
    spent = duration(sum(row.seconds * row.n_seeds for row in report.rows))
    same = report.config.to_dict() == read_plan(stage.plan, {**stage.changes, "name": stage.plan}).to_dict()
    name = f"[{stage.plan}]({stage.plan}.md)"
    plan = kept.frozen.get("plan", "")[:7] or "not kept"
    trainings = f"{report.finished} of {report.planned}"
    return [name, report.state, trainings, spent, plan if same else f"{plan}, another than `data/plans` has now"]


def _claim(judged: Judged) -> list[str]:
    """A claim: its verdict, its criteria and controls with their figures, and these on each judged set."""
    claim: Claim = judged.claim
    lines = [f"## {claim.id}. {claim.sentence}", "", f"**{judged.verdict.capitalize()}.** {judged.why}", ""]
    lines += [f"- {judged.published}"] if judged.published else []
    columns: dict[str, dict[tuple[str, float], float]] = {}
    for kind, own in (("Criterion", judged.criteria), ("Control", judged.controls)):
        for d in own:
            spread = "" if d.figure.seed_sd is None else f"; median SD over seeds {d.figure.seed_sd:.2f}"
            name = f" ({escaped(d.criterion.name)})" if d.criterion.name else ""
            basis = f" {d.basis}{spread}." if d.basis else ""
            lines.append(f"- {kind}{name}: {_asked(d)}. {d.told[0].upper()}{d.told[1:]}: {d.verdict}.{basis}")
            if d.figure.sets:
                columns[f"{kind}{name}"] = {(judged_set, cw): points for judged_set, cw, points in d.figure.sets}

    lines += [f"- What would settle it: {claim.settles}", ""]
    sets = sorted({key for column in columns.values() for key in column}, key=lambda key: (key[1], key[0]))
    rows = [
        [name, f"{cw:.1f}", *(signed(column[name, cw]) if (name, cw) in column else "–" for column in columns.values())]
        for name, cw in sets
    ]

    return [*lines, table(["Judged set", "CW", *columns], rows), ""] if rows else lines


def _asked(d: Decided) -> str:
    """A criterion in words: which arms, of which studies, on which judged sets, and what counts."""
    c = d.criterion

    def arm(facts: Mapping[str, object]) -> str:
        return ", ".join(f"{name} {'/'.join(map(str, wanted(value)))}" for name, value in facts.items())

    parts = [f"{arm(c.of)} minus {arm(c.against)}"]
    parts += [f"less the same with {arm(c.interaction)}"] if c.interaction else []
    parts += [{"out": "out of domain", "in": "in-domain", "any": "in and out of domain"}[c.domain]]
    parts += [f"CW {c.cw[0]:g} to {c.cw[1]:g}"] if c.cw else []
    parts += [", ".join((*c.languages, *c.judged))] if c.languages or c.judged else []
    what = c.figure if c.over == criteria.SETS else f"{c.figure} over queries"
    held = f", {' and '.join(c.beside)} held fixed" if c.beside else ""
    return f"{'; '.join(parts)} ({', '.join(c.studies)}); {what}{held}, claimed: {c.direction}, margin ±{c.margin:g}"
