"""What is compared with what, the answer in a sentence, and what all parts of the page share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.charts.style import METHOD_COLOURS, colours
from cdp.services import commands, results
from cdp.services.results import Comparison, Row
from cdp.ui import command, state
from cdp.ui.text import cut, md, p_value, points

SIGNIFICANT = 0.05


def choose(rows: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[str]]:
    """The pinned baseline and the retrievers beside it, both in the address."""
    names = {str(row["retriever_id"]): str(row["retriever"]) for row in rows}
    jobs = {str(row["retriever_id"]): bool(str(row["retriever_id"]).startswith("training-")) for row in rows}
    ordered = dict(sorted(names.items(), key=lambda item: jobs[item[0]]))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=320):
            baseline = state.choose(
                "Baseline",
                ordered,
                "baseline",
                what="retriever",
                help="Every difference is taken from this retriever, over the same queries.",
            )
        rest = {key: name for key, name in ordered.items() if key != baseline}
        with st.container():
            others = state.choose_many("Compared with it", rest, "retrievers", default=list(rest)[:6], most=12)
    if not rest:
        st.caption("Only one retriever has results so far; train or evaluate another to compare.")
        return baseline, [baseline] if baseline else []
    return baseline, others


def filter_benchmarks(rows: Sequence[Mapping[str, Any]], shown: Sequence[str]) -> list[str]:
    """Which benchmarks are looked at; none named means all that the shown retrievers have."""
    names = sorted({str(row["benchmark"]) for row in rows if row["retriever_id"] in shown})
    if len(names) < 2:
        return []
    return state.choose_many("Benchmarks", {name: name for name in names}, "benchmark", placeholder="all of them")


def place(row: Row) -> str:
    """A benchmark with what else tells its results apart."""
    split = "" if row.split in ("", "test") else f" {row.split}"
    protocol = "" if row.protocol == "published" else f" ({row.protocol})"
    return f"{row.benchmark}{split}{protocol}"


def compared(found: Comparison) -> list[Row]:
    """The rows that have a difference from the baseline."""
    return [row for row in found.rows if row.difference is not None]


def answer(found: Comparison) -> None:
    """What the comparison says, in one sentence or two."""
    rows = compared(found)
    if not rows:
        st.markdown("#### Nothing to compare on the same queries yet")
        st.caption("The chosen retrievers were not evaluated on a benchmark that the baseline was evaluated on.")
        return
    best = max(rows, key=lambda row: row.difference or 0.0)
    difference = best.difference or 0.0
    sure = significant(best)
    verb = "gains" if difference > 0 else "loses" if difference < 0 else "neither gains nor loses"
    size = f" {points(abs(difference)).lstrip('+')} points" if difference else ""
    judgement = "more than chance would give" if sure else "which chance alone could give"
    st.markdown(
        f"#### {md(cut(best.retriever, 80))} {verb}{size} on {md(place(best))}\n"
        f"95% interval {interval(best)}, p {p_value(best.p_holm if best.p_holm is not None else 1.0)}"
        f"{' (Holm)' if len(rows) > 1 else ''}: {judgement}. "
        f"{tally(rows)}"
    )


def tally(rows: Sequence[Row]) -> str:
    """In how many of the comparisons there is a significant gain or loss."""
    if len(rows) < 2:
        return ""
    up = sum((row.difference or 0) > 0 and significant(row) for row in rows)
    down = sum((row.difference or 0) < 0 and significant(row) for row in rows)
    return f"Of {len(rows)} comparisons, {up} gain and {down} lose significantly."


def interval(row: Row) -> str:
    """``+1.20 to +6.40``, a dash without one."""
    return "–" if row.low is None or row.high is None else f"{points(row.low)} to {points(row.high)}"


def palette(found: Comparison) -> dict[str, str]:
    """One colour per retriever on all charts of the page; the baseline is grey."""
    others = sorted({row.retriever for row in found.rows if row.retriever_id != found.baseline_id})
    return {found.baseline: METHOD_COLOURS["pretrained"], **colours(others)}


def significant(row: Row) -> bool:
    """Whether the difference is more than chance would give, corrected for all that are compared."""
    return row.p_holm is not None and row.p_holm < SIGNIFICANT


def mark(row: Row) -> str:
    """Significance in a form that does not rely on colour."""
    if not significant(row):
        return ""
    return " **" if (row.p_holm or 0.0) < 0.01 else " *"


MARKS = (
    "\\* p below 0.05, ** below 0.01: paired t-test over the queries, two-sided, corrected for all comparisons (Holm)."
)
"""What the marks mean, in Markdown."""


def names_of(found: Comparison) -> dict[str, str]:
    """The shown retrievers by id, the baseline first."""
    rows = sorted(found.rows, key=lambda row: row.retriever_id != found.baseline_id)
    return {row.retriever_id: row.retriever for row in rows}


def download(found: Comparison) -> None:
    """The rows as CSV, and the command that gives the same."""
    st.download_button(
        "Download as CSV",
        results.to_csv(found),
        file_name="comparison.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="compare_csv",
    )
    command.show(commands.line("results", "compare", baseline=found.baseline_id, format="csv"))
