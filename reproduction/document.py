"""docs/REPRODUCTION.md and the tables behind it, from the studies' reports: nothing in it is typed."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from cdp.base.statistics import Coefficient
from cdp.base.text import duration, escaped, interval, signed
from cdp.base.workspace import write_bytes
from cdp.studies import StudyReport, read_plan, to_markdown
from cdp.studies.gains import PARAPHRASE, SCALING, TITLES, WEIGHTING
from cdp.studies.plan import PARAPHRASED, method_of
from cdp.studies.pooling import MEAN, Pooled
from cdp.studies.report import BY_CW
from cdp.studies.text import (
    POOLED_NOTE,
    difference_rows,
    pooled_rows,
    table,
)
from reproduction import claims, preface
from reproduction.evidence import POOLS, Evidence, in_domain
from reproduction.runs import Runs, keep
from reproduction.stages import Stage

NAME = "REPRODUCTION.md"
FOLDER = "reproduction"
CLAIMS = "claims.md"


def write(runs: Runs, chosen: Sequence[Stage], out: Path, *, small: bool = False) -> Path:
    """The document in ``out``, its tables and what it can be made from again in ``out/reproduction``."""
    files = _differences(runs.evidence.reports)
    for name, content in files.items():
        write_bytes(out / FOLDER / name, content.encode())
    for plan, report in runs.evidence.reports.items():
        write_bytes(out / FOLDER / f"{plan}.md", to_markdown(report).encode())
    keep(runs, out / FOLDER)
    write_bytes(out / FOLDER / CLAIMS, _details(runs, chosen, small=small, files=tuple(files)).encode())
    write_bytes(out / NAME, _text(runs, chosen, small=small).encode())
    return out / NAME


def _differences(reports: Mapping[str, StudyReport]) -> dict[str, str]:
    """{file: CSV}: every difference of a study, a file for each comparison that it makes."""
    made = {}
    for comparison in (SCALING, PARAPHRASE, WEIGHTING):
        for plan, report in reports.items():
            gains = [gain for gain in report.of(comparison) if method_of(gain.source) != PARAPHRASED]
            if gains:
                head, rows = difference_rows(gains)
                domains = ["in-domain" if in_domain(report, gain) else "out of domain" for gain in gains]
                out = io.StringIO()
                writer = csv.writer(out, lineterminator="\n")
                writer.writerow(["Domain", *head])
                writer.writerows([domain, *row] for domain, row in zip(domains, rows, strict=True))
                made[f"{comparison}-{plan}.csv"] = out.getvalue()
    return made


def _links(files: Sequence[str]) -> list[str]:
    """The files of differences, by comparison."""
    if not files:
        return []
    lines = [
        "## The differences, one by one",
        "",
        "Each row of a file is a difference on a judged set, the mean over seeds, with its 95% interval over queries "
        "and seeds. With so many intervals some miss 0 by chance: the tables of each study correct for that, a single "
        "row does not.",
        "",
    ]
    for comparison in (SCALING, PARAPHRASE, WEIGHTING):
        own = [name for name in files if name.startswith(f"{comparison}-")]
        lines += [f"- {TITLES[comparison]}: " + ", ".join(f"[{name}]({name})" for name in own)] if own else []
    return [*lines, ""]


def _stages(runs: Runs, chosen: Sequence[Stage]) -> tuple[list[str], list[str]]:
    """(what was run beside what was planned, and all that is missing or failed; what limits the studies)."""
    rows, failures = [], []
    limits: dict[str, list[str]] = defaultdict(list)
    for run, stage in zip(runs.studies, chosen, strict=True):
        report, done = run.report, ["–", "–"]
        if report is None:
            why = f"has no report: {escaped(run.problem)}" if run.problem else "was not run"
            failures.append(f"{run.plan} {why}; no claim that needs it is judged.")
        else:
            spent = sum(row.seconds * row.n_seeds for row in report.rows)
            done = [f"{report.finished} of {report.planned}", duration(spent)]
            if report.finished < report.planned:
                failures.append(
                    f"{run.plan}: {report.planned - report.finished} of {report.planned} trainings missing."
                )
            failures += [f"{run.plan}: {escaped(name)} failed. {escaped(reason)}" for name, reason in report.failures]
            if report.config != read_plan(run.plan, {**stage.changes, "name": run.plan}):
                failures.append(f"{run.plan} was run with another plan than the one in `data/plans`.")
            for text in report.limits:
                limits[escaped(text)].append(run.plan)
        name = run.plan if report is None else f"[{run.plan}]({FOLDER}/{run.plan}.md)"
        rows.append([name, run.state, *done, str(stage.minutes)])
    head = ["Study", "State", "Trainings", "Time in trainings", "Planned minutes"]
    return (
        [table(head, rows), "", "Missing or failed:", "", *([f"- {text}" for text in failures] or ["- Nothing."]), ""],
        [f"- {text} ({', '.join(plans)})" for text, plans in limits.items()] or ["- Nothing was run."],
    )


SMALL = "**The form for tests: it checks the pipeline. None of its numbers means anything.**"


def _text(runs: Runs, chosen: Sequence[Stage], *, small: bool) -> str:
    """The document: the claims with their verdicts, and the pooled figures behind them."""
    ran, _ = _stages(runs, chosen)
    rows = [[judged.claim.name, judged.verdict, judged.finding.why] for judged in claims.judged(runs.evidence)]
    models = [(whose, own) for whose, own in _models(runs.evidence, pooled=True) if own]
    return "\n".join(
        [
            "# Does it hold? The paper's experiment, run by the product",
            "",
            *([SMALL, ""] if small else []),
            "Made by `make reproduction` from the reports of the studies below, which any user can run: their plans "
            "are in `data/plans`, and state what would count as support before the run.",
            "",
            *preface.lines(),
            "## What was run",
            "",
            *ran,
            "## The claims",
            "",
            "Each is judged by the criterion that a plan states. The criteria, the single differences and what would "
            f"settle each claim: [claim by claim]({FOLDER}/{CLAIMS}).",
            "",
            table(["Claim", "Verdict", "Why"], rows),
            "",
            "## The pooled figures",
            "",
            table(["Studies", "Comparison", "Mean gain", "Per content word", "Families"], _pooled(models))
            if models
            else "None.",
            "",
            POOLED_NOTE,
            "",
        ]
    )


def _details(runs: Runs, chosen: Sequence[Stage], *, small: bool, files: Sequence[str]) -> str:
    """What stands behind the document: each claim with its criteria and numbers, and what limits the studies."""
    _, limits = _stages(runs, chosen)
    lines = ["# Claim by claim", "", *([SMALL, ""] if small else [])]
    lines += ["Where a criterion leaves a choice, the stricter reading was taken and is named.", ""]
    lines += [*(f"- {text}" for text in claims.COMBINED), ""]
    for judged in claims.judged(runs.evidence):
        lines += _claim(judged)
    for whose, own in _models(runs.evidence, pooled=False):
        lines += [f"## Pooled: {whose}", "", table(*pooled_rows(own)), ""] if own else []
    lines += [*_spread(runs.evidence.reports), *_links(files)]
    lines += ["## What limits the studies, in the words of their reports", "", *limits]
    return "\n".join(lines) + "\n"


def _claim(judged: claims.Judged) -> list[str]:
    """A claim: verdict, what it rests on, the criteria in their own words, and what would settle it."""
    finding, claim = judged.finding, judged.claim
    lines = [f"## {claim.name}", "", f"**{judged.verdict[0].upper()}{judged.verdict[1:]}.** {finding.why}", ""]
    lines += [f"- {escaped(number)}" for number in finding.numbers]
    lines += [f"- Spread over seeds: {judged.spread}"] if judged.spread else []
    lines += [f"- Criterion ({plan}): “{escaped(text)}”" for plan, text in judged.criteria]
    lines += [f"- Read as: {claim.reading}"] if claim.reading else []
    return [*lines, f"- What would settle it: {claim.settles}", ""]


def _models(evidence: Evidence, *, pooled: bool) -> list[tuple[str, Sequence[Pooled]]]:
    """(whose they are, models over datasets): those that claims are judged by, or those of the other studies."""
    found: list[tuple[str, Sequence[Pooled]]] = []
    named = {plan for pool in POOLS.values() for plan in pool.plans}
    if not pooled:
        found = [(plan, report.pooled) for plan, report in evidence.reports.items() if plan not in named]
    for name, models in evidence.pools.items() if pooled else ():
        pool = POOLS[name]
        plans = ", ".join(plan for plan in pool.plans if plan in evidence.reports)
        found.append((f"{plans}, Q/Doc {pool.per_doc} alone" if pool.per_doc else plans, models))
    # Models over single queries are quoted where a claim is judged by one; the studies' own reports hold all of them.
    return [(whose, [m for m in own if ": queries by" not in m.title]) for whose, own in found]


def _pooled(models: Sequence[tuple[str, Sequence[Pooled]]]) -> list[list[str]]:
    """A row for each comparison: the mean gain, and its slope on content words from the model that has it."""
    rows = []
    for whose, own in models:
        by_cw = {model.title.removesuffix(BY_CW): model for model in own if model.title.endswith(BY_CW)}
        for model in own:
            if model.term(MEAN) is not None and not model.title.endswith(BY_CW):
                slope = by_cw[model.title].term("cw") if model.title in by_cw else None
                rows.append([whose, model.title, _figure(model.term(MEAN)), _figure(slope), str(model.n_families)])
    return rows


def _figure(term: Coefficient | None) -> str:
    return f"{signed(term.value)} ({interval((term.low, term.high), sign=True)})" if term else "–"


def _spread(reports: Mapping[str, StudyReport]) -> list[str]:
    """The largest and the median standard deviation over seeds of a difference, per study."""
    rows = []
    for plan, report in reports.items():
        spreads = sorted(g.seed_sd for g in report.gains if g.seed_sd is not None)
        if spreads:
            seeds = max(g.n_seeds for g in report.gains)
            rows.append(
                [plan, str(seeds), f"{spreads[len(spreads) // 2]:.2f}", f"{spreads[-1]:.2f}", str(len(spreads))]
            )
    head = ["Study", "Seeds", "Median SD over seeds", "Largest", "Differences"]
    return ["## Spread over seeds", "", table(head, rows), ""] if rows else []
