"""The Study page: a plan from a template or a form, and the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape as html_unescape
from typing import Any

import streamlit as st

from cdp.base.errors import InputError
from cdp.base.text import duration
from cdp.base.workspace import Workspace
from cdp.charts import results as figures
from cdp.charts.evidence import difference_against_cw
from cdp.services import commands, completeness, corpora, queries, studies, training
from cdp.services.studies import beside, progress_text, read_plan, ready_made, threshold_rows, to_markdown
from cdp.services.synthesis import dollars
from cdp.studies import StudyConfig, StudyReport
from cdp.studies.config import INFONCE, LOSSES
from cdp.studies.gains import SCALING, TITLES
from cdp.synthesis.methods import METHODS
from cdp.ui import jobs as job_views
from cdp.ui import launch
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import cut, interval, md, moment, p_value, points

# Fields that are chosen from what is there instead of typed.
LISTS = ("benchmarks", "query_sets", "corpus", "methods", "weightings", "losses", "retrievers")

OWN = "Empty plan"


def choose(workspace: Workspace) -> StudyConfig | None:
    """A ready-made plan as a start, then the form; None while something is missing."""
    ready = {plan.name: plan for plan in ready_made()}
    start = forms.pick(
        "Template", {OWN: OWN, **{name: plan.title for name, plan in ready.items()}}, key="study_start",
        help="A template fills in the form; you can change everything.",
    )  # fmt: skip
    first: dict[str, Any] = {}
    if start in ready:
        st.caption(md(ready[start].about))
        first = read_plan(start).to_dict()
    cloned, suffix = job_views.prefilled(workspace, "study")
    first, key = (cloned, f"study{suffix}") if cloned else (first, f"study_{start}")
    settings = _from_lists(workspace, first, key)
    settings |= forms.fields(StudyConfig, key=key, leave_out=LISTS, values=first)
    if not settings.get("benchmarks") or not (settings.get("query_sets") or settings.get("methods")):
        st.caption("Select benchmarks, and query sets or methods to train on.")
        return None
    return StudyConfig.from_dict({name: value for name, value in settings.items() if value is not None})


def _from_lists(workspace: Workspace, first: dict[str, Any], key: str) -> dict[str, Any]:
    """The fields that name what is in the workspace."""
    scope = state.scope(workspace)
    benchmark_splits = [":".join(place) for place in launch.usable_splits(workspace).values()]
    query_sets = [q for q in scope.keep("query_set", queries.list_query_sets(workspace)) if q.n_queries]
    sets = stored_sets.set_names(workspace, query_sets)
    by_name = {q.name: q.id for q in reversed(query_sets)}
    corpus_names = {c.id: c.name for c in scope.keep("corpus", corpora.list_corpora(workspace))}
    corpus_ids = {name: corpus_id for corpus_id, name in corpus_names.items()}
    wanted = _split(first.get("query_sets"))
    _say_missing("benchmarks", _split(first.get("benchmarks")), benchmark_splits)
    _say_missing("query sets", wanted, [*sets, *by_name])
    retrievers = {r.id: r.title for r in scope.keep("job", training.list_retrievers(workspace))}
    with st.grid(2, min_column_width=260):
        chosen: dict[str, Any] = {
            name: forms.pick_many(name.replace("_", " ").capitalize(), titles, first=begin, key=f"{key}_{name[0]}")
            for name, titles, begin in (
                ("benchmarks", {p: p for p in benchmark_splits}, _split(first.get("benchmarks"))),
                ("query_sets", state.labels(sets), [by_name.get(n, n) for n in wanted]),
                ("methods", {m.name: m.name for m in METHODS.values()}, _split(first.get("methods"))),
                ("retrievers", state.labels(retrievers), _split(first.get("retrievers")) or ["static-minilm"]),
                ("weightings", {w: w for w in studies.weightings()}, _split(first.get("weightings")) or ["none"]),
                ("losses", {loss: loss for loss in LOSSES}, _split(first.get("losses")) or [INFONCE]),
            )
        }
        if chosen["methods"] and corpus_names:
            named = str(first.get("corpus", ""))
            begin = corpus_ids.get(named, named if named in corpus_names else "")
            chosen["corpus"] = forms.pick(
                "Corpus", corpus_names, first=begin, key=f"{key}_c",
                help="The documents that the methods write queries for. Existing query sets are reused.",
            )  # fmt: skip
    return {name: value if isinstance(value, str) else ", ".join(value) for name, value in chosen.items()}


def _split(text: Any) -> list[str]:
    return [part.strip() for part in str(text or "").split(",") if part.strip()]


def _say_missing(what: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """A ready-made plan may name things that are not in this workspace, or not in this project."""
    absent = [name for name in wanted if name not in there]
    if absent:
        st.caption(f":material/info: Not in the lists below, so left out: {what} {md(', '.join(absent))}.")


def summary(workspace: Workspace, config: StudyConfig) -> None:
    """What it comes to, what to know before, and the button."""
    plan = studies.plan(workspace, config)
    st.subheader("Summary", anchor=False)
    requests = sum(g.requests for g in plan.generations)
    costs = [g.cost for g in plan.generations if g.cost is not None]
    tables.figures(
        ("Trainings", len(plan.conditions)),
        ("Evaluations", plan.to_dict()["evaluations"]),
        (
            "Time",
            "unknown" if plan.seconds is None else duration(plan.seconds),
            "Estimated from earlier runs on this machine, if any.",
        ),
        ("LLM requests", f"{requests:,}") if plan.generations else None,
        ("LLM cost", dollars(sum(costs))) if requests and len(costs) == len(plan.generations) else None,
    )
    once = list({(c.source, c.per_doc, c.held): c for c in plan.conditions}.values())
    tables.show(
        {
            "Queries": [f"{c.source}, {c.held}" if c.held else c.source for c in once],
            "Q/Doc": [c.per_doc for c in once],
            "Pairs": [plan.pairs[str(c)] for c in once],
        },
        alt="Training pairs at each Q/Doc",
    )
    sets = config.items("query_sets")
    consent = launch.consent(workspace, sets, studies.leaks_of(workspace, config), "study")
    said = {item.note for item in completeness.list_incomplete(workspace, sets)}
    frame.remarks(note for note in plan.notes if note not in said)
    if forms.button(
        "Start the study", type="primary", icon=":material/play_arrow:", key="study_start_button",
        disabled=not consent.given,
    ):  # fmt: skip
        begun = studies.run(workspace, config, **consent.allowed)
        state.keep("study", begun.job_id)
        frame.go("jobs", job=begun.job_id)
    forms.command(commands.line("study", "run", "plan.yaml", **consent.options, wait=True))
    forms.download("Download the plan (YAML)", studies.to_yaml(config), "plan.yaml", key="study_yaml")


_ESCAPES = re.compile(r"\\([\\`*\[\]!])")


def choose_study(workspace: Workspace) -> str | None:
    """One of the project's studies, the newest first."""
    listed = state.of_project(workspace, "job", studies.list_studies(workspace))
    names = {job.id: f"{job.name} · {job.state} · {moment(job.created)}" for job in listed}
    return state.choose("Study", names, "study", what="study") if names else None


def shown(workspace: Workspace, study: str) -> None:
    """A study's report, or how far it is."""
    try:
        report = studies.report(workspace, study)
    except InputError as error:
        st.caption(md(str(error)))
        frame.link("jobs", "Open its job", job=study)
        return
    if report.finished < report.planned:
        st.progress(report.finished / max(1, report.planned), text=md(progress_text(report)))
        frame.link("jobs", "Follow it on the Jobs page", job=study)
    findings(report)
    scores(report)
    comparisons(report)
    relation(report)
    more(report)
    forms.download("Report as Markdown", to_markdown(report), f"{report.id}.md", key="study_md")
    forms.command(commands.line("study", "report", report.id))


def findings(report: StudyReport) -> None:
    """What was found and what cannot be told, before any table."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Findings", anchor=False)
        for text in report.findings:
            st.markdown(f"- {md(text)}")
        if not report.findings:
            st.caption("No findings yet: a comparison needs results for both sides.")
    with right:
        st.subheader("Limits", anchor=False)
        for text in report.limits:
            st.markdown(f"- {md(text)}")


def scores(report: StudyReport) -> None:
    """NDCG@10 of every way of training, mean over seeds."""
    if not report.rows:
        return
    st.subheader("NDCG@10", anchor=False, help=frame.DEFINITIONS["ndcg"])
    tables.show(
        {
            "Training": [row.name for row in report.rows],
            **{f"{b.name} (CW {b.cw:.1f})": [row.scores.get(b.name) for row in report.rows] for b in report.benchmarks},
            **({"Mean": [row.average for row in report.rows]} if len(report.benchmarks) > 1 else {}),
            "Documents": [f"{row.documents:,}" if row.pairs else "–" for row in report.rows],
            "Pairs": [f"{row.pairs:,}" if row.pairs else "–" for row in report.rows],
            "Steps": [f"{row.steps:,}" if row.steps else "–" for row in report.rows],
            "Spread over seeds": [
                f"± {max(row.spread.values()):.2f} at most" if row.spread else "none" if row.n_seeds > 1 else "–"
                for row in report.rows
            ],
            "Seeds": [str(row.n_seeds) if row.pairs else "–" for row in report.rows],
        },
        alt="NDCG@10 in percent of each way of training on each benchmark",
        digits={**{f"{b.name} (CW {b.cw:.1f})": 2 for b in report.benchmarks}, "Mean": 2},
        width={"Training": 275},
        pinned="Training",
    )
    if any(row.pairs for row in report.rows):
        benchmark = forms.pick("Benchmark", [b.name for b in report.benchmarks], key="study_benchmark")
        charts.show(
            figures.scaling(report, benchmark),
            key="study_scaling",
            alt=f"NDCG@10 on {benchmark} by queries per document for each way of training",
            caption="Mean over seeds, ± their standard deviation; dashed: before training.",
        )


def comparisons(report: StudyReport) -> None:
    """Differences with interval, p and spread over seeds, one kind at a time."""
    kinds = {kind: title for kind, title in TITLES.items() if report.of(kind)}
    if not kinds:
        return
    st.subheader("Differences", anchor=False, help=frame.DEFINITIONS["p"])
    kind = forms.segments("Comparison", kinds, default=SCALING, key="study_comparison", hidden=True, persistent=False)
    gains = report.of(kind)
    tables.show(
        {
            "Condition": [cut(g.condition, 60) for g in gains],
            "Q/Doc": [g.per_doc for g in gains],
            "Benchmark": [g.benchmark for g in gains],
            "CW": [g.cw for g in gains],
            # In brackets where the test knows nothing of training noise.
            "Points": [
                points(g.points) + ("" if not g.significant else " (*)" if g.seed_sd is None else " *") for g in gains
            ],
            "95% interval": [interval((g.low, g.high), sign=True) for g in gains],
            "p, corrected": [p_value(g.p_holm) for g in gains],
            "Spread over seeds": [g.seed_sd for g in gains],
            "Seeds": [g.n_seeds for g in gains],
            "Queries": [g.n_queries for g in gains],
        },
        alt="Differences in NDCG@10 points with intervals and p values",
        digits={"CW": 2, "Spread over seeds": 2},
        about={"Spread over seeds": "Standard deviation, in points."},
    )
    st.caption(
        "\\* p below 0.05 (variance over queries and seeds, Holm-corrected over the benchmarks of a condition), with "
        "the same sign for all seeds. (\\*) The same with one seed, or seeds that do not differ: a test over the "
        "queries only, which ignores training noise."
    )


def relation(report: StudyReport) -> None:
    """The study's own correlation with CW and threshold, beside the published ones."""
    if not (report.differences or report.threshold or report.correlations):
        return  # the limits say why
    st.subheader("Relation to content words", anchor=False, help=frame.DEFINITIONS["cw"])
    if report.differences:
        charts.show(
            difference_against_cw(report.differences, report.threshold, band=True),
            key="study_relation",
            alt=f"{len(report.differences)} differences of this study against the content words of its benchmarks",
            caption="Each difference of this study at its benchmark's CW. Shaded: the published advice.",
        )
    if report.threshold is None:
        st.caption(md(report.no_threshold))
    else:
        rows = threshold_rows(report)
        tables.show(
            {"": [r[0] for r in rows], "This study": [r[1] for r in rows], "Published": [r[2] for r in rows]},
            alt="This study's threshold beside the published one",
        )
    if report.correlations:
        correlations = report.correlations
        tables.show(
            {
                "Condition": [cut(c.retriever, 60) for c in correlations],
                "Comparison": [TITLES.get(c.comparison, c.comparison) for c in correlations],
                "Q/Doc": [c.per_doc for c in correlations],
                "r": [points(c.r) for c in correlations],
                "p": [p_value(c.p) for c in correlations],
                "Spearman's ρ": [points(c.rho) for c in correlations],
                "Benchmarks": [c.n_datasets for c in correlations],
            },
            alt="Correlation between content words and the difference, per condition of this study",
        )


def more(report: StudyReport) -> None:
    """What else could explain a gain, the errors, the paper's cells and the pooled models: a table each, folded."""
    if report.config.criteria:
        with st.expander("What would count as support", icon=":material/gavel:"):
            st.caption("Written before the run.")
            st.markdown(md(report.config.criteria))
    for title, (head, rows, note) in beside(report).items():
        with st.expander(title, icon=":material/table_rows:"):
            plain = [[html_unescape(_ESCAPES.sub(r"\1", cell)) for cell in row] for row in rows]
            tables.show(
                {name: [row[i] for row in plain] for i, name in enumerate(head)}, alt=title, width={head[0]: 240}
            )
            if note:
                st.caption(md(note))
