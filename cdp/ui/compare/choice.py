"""What is compared with what, the answer in a sentence, and what all parts of the page share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.charts.style import METHOD_COLOURS, by_method
from cdp.services import commands, evaluation, queries, result_tables, results, runs
from cdp.services.results import ComparedRow, Comparison
from cdp.ui.shell import forms, frame, state
from cdp.ui.shell.tables import cut, interval, md, p_value, points

# How many retrievers are compared with a baseline at once.
MOST = 12


def choose(rows: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[str]]:
    """The pinned baseline and the retrievers beside it, both in the address.

    Without a choice the baseline is the untrained retriever that the runs started from, and beside it stand BM25 and
    those with the highest mean difference from it.
    """
    names: dict[str, str] = {}
    measured_on: dict[str, set[tuple[str, ...]]] = {}
    for row in rows:
        key = str(row["retriever_id"])
        names.setdefault(key, str(row["retriever_name"]))
        measured_on.setdefault(key, set()).add((row["benchmark"], row["split"], row["protocol"]))
    trained = {str(row["retriever_id"]) for row in rows if row["retriever_kind"] == "job"}
    first = runs.baseline(rows)
    ordered = {
        key: names[key] for key in sorted(names, key=lambda key: (key != first, key in trained, -len(measured_on[key])))
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=320):
            baseline = state.choose(
                "Baseline",
                ordered,
                "baseline",
                what="retriever",
                help="All differences are measured against this retriever, on the same queries.",
            )
        rest = {key: name for key, name in names.items() if key != baseline}  # rows come newest first
        near = runs.near(rows, baseline or "")
        with st.container():
            others = state.choose_many("Compare with", rest, "retrievers", default=near, most=MOST)
    if not rest:
        st.caption("Only one retriever has results so far. Train or evaluate another one to compare.")
        return baseline, [baseline] if baseline else []
    return baseline, others


def left_out(rows: Sequence[Mapping[str, Any]], baseline: str, shown: Collection[str]) -> None:
    """How many retrievers that could be compared are not shown, and which of them is better than all shown."""
    names = {str(row["retriever_id"]): str(row["retriever_name"]) for row in rows}
    gains = runs.gains(rows, baseline)
    hidden = [key for key in gains if key not in shown]
    if not hidden:
        return
    marked = {str(row["retriever_id"]) for row in rows if row.get("marks")}
    whole = [key for key in hidden if key not in marked]
    best = max(whole, key=lambda key: gains[key], default="")
    better = best and gains[best] > max((gains[key] for key in shown if key in gains and key not in marked), default=0)
    summary = f"{len(hidden)} of {len(gains)} retrievers that share a benchmark with the baseline are not shown."
    aside = ", apart from stopped and leaked runs," if len(whole) < len(hidden) else ""
    if better:
        st.warning(
            f"{summary} One of them is better than all shown: **{md(names[best])}**, {points(gains[best])} points on "
            "average. Select it above.",
            icon=":material/visibility_off:",
        )
    else:
        st.caption(
            f":material/visibility_off: {summary} None of them{aside} is better on average. Select any of them above."
        )


def bm25(workspace: Workspace, comparison: Comparison) -> None:
    """One press for the row that every retriever should be beside, where it was not measured."""
    lacking = evaluation.without_bm25(workspace, [(row.benchmark, row.split) for row in comparison.rows])
    if not lacking:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        where = ", ".join(results.benchmark_label(*benchmark_split, "published") for benchmark_split in lacking)
        st.markdown(f"BM25 has not been evaluated on {md(where)}.", width="content")
        if forms.button("Evaluate BM25", icon=":material/add:", key="compare_bm25"):
            with frame.guarded():
                state.write("job", evaluation.start_bm25(workspace, lacking)[0])
                frame.go("jobs", job=str(state.kept("job")))


def filter_benchmarks(rows: Sequence[Mapping[str, Any]], shown: Sequence[str]) -> list[str]:
    """Which benchmarks are looked at; none named means all that the shown retrievers have."""
    names = sorted({str(row["benchmark"]) for row in rows if row["retriever_id"] in shown})
    if len(names) < 2:
        return []
    return state.choose_many("Benchmarks", {name: name for name in names}, "benchmark", placeholder="all")


def average_seeds() -> bool:
    """Whether runs that differ in the seed alone are averaged."""
    return st.toggle(
        "Average runs that differ only in seed", value=True, key="compare_seeds", persist_state="session",
        help="Averages are taken per query and shown with their standard deviation over seeds.",
    )  # fmt: skip


def covered(comparison: Comparison) -> Comparison:
    """The comparison on the benchmarks that all shown retrievers have, unless all are asked for."""
    common = result_tables.shared(comparison)
    if common.n_benchmarks == comparison.n_benchmarks:
        return comparison
    kinds = {
        "shared": f"the {common.n_benchmarks} shared by all retrievers",
        "all": f"all {comparison.n_benchmarks}, with gaps",
    }
    with st.container(width=360):
        shown = state.choose("Benchmarks shown", kinds, "coverage")
    return comparison if shown == "all" else common


def compared(comparison: Comparison) -> list[ComparedRow]:
    """The rows that have a difference from the baseline."""
    return [row for row in comparison.rows if row.difference is not None]


def largest(rows: Sequence[ComparedRow]) -> ComparedRow:
    """The row that the answer is about: the largest difference of a run without a mark, if there is one."""
    return max(rows, key=lambda row: (not row.marks, row.difference or 0.0))


def answer(comparison: Comparison) -> None:
    """What the comparison says, in one sentence or two."""
    rows = compared(comparison)
    if not rows:
        st.markdown("#### No shared benchmark yet")
        st.caption(
            "The selected retrievers and the baseline were not evaluated on the same benchmark. Evaluate them on "
            "one, or select others."
        )
        return
    best = largest(rows)
    difference = best.difference or 0.0
    sure = best.significant
    verb = "gains" if difference > 0 else "loses" if difference < 0 else "neither gains nor loses"
    size = f" {points(abs(difference)).lstrip('+')} points" if difference else ""
    judgement = "statistically significant" if sure else "not statistically significant"
    if best.marks:
        judgement = f"{best.marks}, so this does not show how good it is"
    st.markdown(
        f"#### {md(cut(best.retriever, 80))} {verb}{size} on {md(best.place)}\n"
        f"95% interval {interval((best.low, best.high), sign=True)}, "
        f"p {p_value(1.0 if best.p_holm is None else best.p_holm)}"
        f"{' (Holm)' if comparison.n_tests > 1 else ''}: {judgement}. "
        f"{tally(rows)}"
    )


def tally(rows: Sequence[ComparedRow]) -> str:
    """In how many of the comparisons there is a significant gain or loss."""
    if len(rows) < 2:
        return ""
    up = sum((row.difference or 0) > 0 and row.significant for row in rows)
    down = sum((row.difference or 0) < 0 and row.significant for row in rows)
    return f"Of {len(rows)} comparisons, {up} gain and {down} lose significantly."


def palette(workspace: Workspace, comparison: Comparison) -> dict[str, str]:
    """One colour per retriever on all charts of the page, by the method of its queries; the baseline is grey."""
    others = sorted({row.retriever for row in comparison.rows if row.retriever_id != comparison.baseline_id})
    trained_on = comparison.settings.get("query_set", {})
    methods = {q.id: q.method or q.kind for q in queries.list_query_sets(workspace)} if trained_on else {}
    method_of = {name: methods.get(str(trained_on.get(name, "")), "") for name in others}
    return {comparison.baseline: METHOD_COLOURS["pretrained"], **by_method(method_of)}


def mark(row: ComparedRow) -> str:
    """Significance in a form that does not rely on colour."""
    if not row.significant:
        return ""
    return " **" if (row.p_holm or 0.0) < 0.01 else " *"


MARKS = (
    "\\* p below 0.05, ** below 0.01: paired t-test over the queries, two-sided, corrected for all comparisons (Holm)."
)


def names_of(comparison: Comparison) -> dict[str, str]:
    """The shown retrievers by id, the baseline first."""
    rows = sorted(comparison.rows, key=lambda row: row.retriever_id != comparison.baseline_id)
    return {row.retriever_id: row.retriever for row in rows}


FORMS = {"csv": ("CSV with all tests", "text/csv"), "markdown": ("Markdown table", "text/markdown"),
         "latex": ("LaTeX table", "text/x-tex")}  # fmt: skip
ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"}


def download(comparison: Comparison) -> None:
    """The comparison in the forms of papers and programs, and the command that gives the same."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, (label, mime) in FORMS.items():
            st.download_button(
                label,
                partial(result_tables.write, comparison, form),
                file_name=f"comparison.{ENDINGS[form]}",
                mime=mime,
                icon=":material/download:",
                type="tertiary",
                on_click="ignore",
                key=f"compare_{form}",
            )
    averaged = any(row.seeds > 1 for row in comparison.rows)
    named = [word for key in names_of(comparison) if key != comparison.baseline_id for word in ("--retriever", key)]
    shown = [word for name in dict.fromkeys(row.benchmark for row in comparison.rows) for word in ("--benchmark", name)]
    forms.command(
        commands.line(
            "results", "compare", "--baseline", comparison.baseline_id, *named, *shown,
            over_seeds=averaged, format="markdown",
        )
    )  # fmt: skip
