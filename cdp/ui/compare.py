"""The comparison of retrievers with a pinned baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.charts.results import Gain, gains, ndcg_bars
from cdp.charts.style import METHOD_COLOURS, colours
from cdp.services import commands, results
from cdp.services.results import Comparison, Row
from cdp.ui import charts, command, frame, state, tables
from cdp.ui.text import count, cut, label_of, md, p_value, points
from cdp.workspace import Workspace

SIGNIFICANT = 0.05
SHOWN_QUERIES = 10


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
    sure = best.p is not None and best.p < SIGNIFICANT
    verb = "gains" if difference > 0 else "loses" if difference < 0 else "neither gains nor loses"
    size = f" {points(abs(difference)).lstrip('+')} points" if difference else ""
    judgement = "more than chance would give" if sure else "which chance alone could give"
    st.markdown(
        f"#### {md(cut(best.retriever, 80))} {verb}{size} on {md(place(best))}\n"
        f"95% interval {interval(best)}, p {p_value(best.p if best.p is not None else 1.0)}: {judgement}. "
        f"{tally(rows)}"
    )


def tally(rows: Sequence[Row]) -> str:
    """In how many of the comparisons there is a significant gain or loss."""
    if len(rows) < 2:
        return ""
    up = sum((row.difference or 0) > 0 and (row.p or 1) < SIGNIFICANT for row in rows)
    down = sum((row.difference or 0) < 0 and (row.p or 1) < SIGNIFICANT for row in rows)
    return f"Of {len(rows)} comparisons, {up} gain and {down} lose significantly."


def interval(row: Row) -> str:
    """``+1.20 to +6.40``, a dash without one."""
    return "–" if row.low is None or row.high is None else f"{points(row.low)} to {points(row.high)}"


def palette(found: Comparison) -> dict[str, str]:
    """One colour per retriever on all charts of the page; the baseline is grey."""
    others = sorted({row.retriever for row in found.rows if row.retriever_id != found.baseline_id})
    return {found.baseline: METHOD_COLOURS["pretrained"], **colours(others)}


def matrix(found: Comparison) -> None:
    """Retrievers × benchmarks, NDCG@10 in percent; the baseline first, with how many benchmarks each covers."""
    places = list(dict.fromkeys(place(row) for row in found.rows))
    by_name: dict[str, dict[str, float]] = {}
    for row in sorted(found.rows, key=lambda r: r.retriever_id != found.baseline_id):
        by_name.setdefault(row.retriever, {})[place(row)] = row.ndcg
    names = list(by_name)
    st.subheader("NDCG@10", anchor=False, help=frame.definition("ndcg"))
    tables.show(
        {
            "Retriever": [f"{name} (baseline)" if name == found.baseline else name for name in names],
            **{p: [by_name[name].get(p) for name in names] for p in places},
            "Benchmarks": [f"{found.coverage.get(name, 0)} of {found.n_benchmarks}" for name in names],
        },
        alt="NDCG@10 in percent of each retriever on each benchmark",
        config={p: st.column_config.NumberColumn(format="%.2f") for p in places},
    )
    charts.show(
        ndcg_bars({name: by_name[name] for name in names}, palette=palette(found)),
        key="ndcg",
        alt="NDCG@10 in percent. " + " ".join(f"{name}: {_listed(by_name[name])}." for name in names),
    )


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def differences(found: Comparison) -> None:
    """Signed differences with interval, p and counts, as a chart and a table."""
    rows = compared(found)
    if not rows:
        return
    st.subheader(f"Difference from {md(cut(found.baseline, 80))}", anchor=False, help=frame.definition("interval"))
    charts.show(
        gains(
            [
                Gain(place(r), r.retriever, r.difference or 0.0, r.low, r.high)
                for r in rows
                if r.low is not None and r.high is not None
            ],
            palette=palette(found),
        ),
        key="gains",
        alt="Differences in NDCG@10 points from the baseline with 95% intervals: "
        + "; ".join(f"{r.retriever} on {place(r)} {points(r.difference or 0.0)}" for r in rows),
        caption="Points of NDCG@10; the line is the 95% interval over queries. One that crosses zero leaves it open.",
    )
    tables.show(
        {
            "Retriever": [r.retriever for r in rows],
            "Benchmark": [place(r) for r in rows],
            "NDCG@10 (%)": [r.ndcg for r in rows],
            "Difference": [points(r.difference or 0.0) + mark(r) for r in rows],
            "95% interval": [interval(r) for r in rows],
            "p": [p_value(r.p) if r.p is not None else "–" for r in rows],
            "Better": [r.wins for r in rows],
            "Worse": [r.losses for r in rows],
            "Same": [r.ties for r in rows],
            "Queries": [r.n_queries for r in rows],
        },
        alt="Differences from the baseline with interval, p value and counts of queries",
        config={
            "NDCG@10 (%)": st.column_config.NumberColumn(format="%.2f"),
            "p": st.column_config.TextColumn(help=frame.definition("p")),
            "Better": st.column_config.NumberColumn(help="Queries on which it is better than the baseline."),
        },
    )
    st.caption("\\* p below 0.05, ** below 0.01 (paired t-test over the queries, two-sided).")


def mark(row: Row) -> str:
    """Significance in a form that does not rely on colour."""
    if row.p is None or row.p >= SIGNIFICANT:
        return ""
    return " **" if row.p < 0.01 else " *"


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


def by_query(workspace: Workspace, found: Comparison) -> None:
    """The queries that one retriever wins and loses most clearly, on one benchmark."""
    rows = {f"{r.evaluation_id}": r for r in compared(found) if r.baseline_evaluation_id}
    if not rows:
        return
    st.subheader("Query by query", anchor=False)
    picked = state.choose(
        "Retriever and benchmark",
        {key: f"{row.retriever} on {place(row)}" for key, row in rows.items()},
        "per_query",
        what="evaluation",
    )
    if picked is None:
        return
    row = rows[picked]
    queries = results.per_query(workspace, row.baseline_evaluation_id or "", row.evaluation_id)
    lost = [q for q in queries if q.difference < 0][:SHOWN_QUERIES]
    won = [q for q in reversed(queries) if q.difference > 0][:SHOWN_QUERIES]
    left, right = st.columns(2, gap="medium")
    for column, title, listed in ((left, "Most gained", won), (right, "Most lost", lost)):
        with column:
            st.markdown(f"**{title}**")
            if not listed:
                st.caption("None.")
                continue
            tables.show(
                {
                    "Difference": [points(q.difference) for q in listed],
                    "Before → after": [f"{q.baseline:.0f} → {q.other:.0f}" for q in listed],
                    "Query": [q.text or q.query_id for q in listed],
                },
                alt=f"{title}: queries with NDCG@10 under both retrievers",
                config={
                    "Difference": st.column_config.TextColumn(width=85),
                    "Before → after": st.column_config.TextColumn(
                        width=95, help="From the baseline to this retriever."
                    ),
                    "Query": st.column_config.TextColumn(width="large"),
                },
            )
    st.caption(
        f"NDCG@10 per query in percent. {count(row.wins or 0, 'query', 'queries')} better, {row.losses or 0} worse, "
        f"{row.ties or 0} the same."
    )


def settings(found: Comparison) -> None:
    """Only the settings in which the compared retrievers differ."""
    if not found.settings:
        return
    names = list(dict.fromkeys(name for values in found.settings.values() for name in values))
    with st.expander("Which settings differ", icon=":material/difference:", expanded=len(names) > 1):
        tables.show(
            {
                "Setting": [label_of(key) for key in found.settings],
                **{
                    name: [
                        "" if values.get(name) is None else str(values.get(name)) for values in found.settings.values()
                    ]
                    for name in names
                },
            },
            alt="Training settings in which the compared retrievers differ",
        )
