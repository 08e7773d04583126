"""The scores of the compared retrievers: by benchmark, in the mean, and as differences from the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.charts.results import GainPoint, gains, ndcg_bars
from cdp.services import leaderboard as result_tables
from cdp.services.leaderboard import ALL, OWN, means
from cdp.services.results import ComparedRow, Comparison
from cdp.ui.compare import focus
from cdp.ui.compare import queries as compare_queries
from cdp.ui.compare.comparison import compared, interval, mark, marks, names_of
from cdp.ui.shell import charts, frame, state, tables
from cdp.ui.shell.text import cut, md, p_value, points


def scores(workspace: Workspace, comparison: Comparison, chosen: Sequence[str], palette: Mapping[str, str]) -> None:
    """Retrievers × benchmarks with the means over shared benchmarks; rows and bars choose what stands out."""
    names = names_of(comparison)
    having = Counter(row.place for row in comparison.rows)
    benchmarks = sorted(having, key=lambda benchmark: -having[benchmark])  # those with gaps come last
    values: dict[str, dict[str, float]] = {name: {} for name in names.values()}
    stars = {(row.retriever, row.place): mark(row) for row in comparison.rows}
    for row in comparison.rows:
        values[row.retriever][row.place] = row.ndcg
    shown = {(row.retriever, row.place): _value(row) for row in comparison.rows}
    averages = [mean for mean in means(comparison) if mean.values or mean.group == ALL] if len(benchmarks) > 1 else []
    st.subheader("NDCG@10", anchor=False, help=frame.definition("ndcg"))
    columns: dict[str, list[str]] = {
        "Retriever": [f"{name} (baseline)" if name == comparison.baseline else name for name in names.values()]
    }
    for mean in averages:
        title = f"{_group(mean.group)}: {mean.coverage}"
        columns[title] = [f"{mean.values[name]:.2f}" if mean.values else "–" for name in names.values()]
    for benchmark in benchmarks:
        columns[benchmark] = [
            f"{shown[name, benchmark]}{stars[name, benchmark]}" if benchmark in values[name] else "–"
            for name in names.values()
        ]
    if any(comparison.coverage.get(name, 0) < comparison.n_benchmarks for name in names.values()):
        columns["Coverage"] = [
            f"{comparison.coverage.get(name, 0)} of {comparison.n_benchmarks}" for name in names.values()
        ]
    badges = {
        name: ", ".join(dict.fromkeys(r.marks for r in comparison.rows if r.retriever == name and r.marks))
        for name in values
    }
    if any(badges.values()):
        columns["Marks"] = [badges[name] or "–" for name in names.values()]
    right = {
        title: st.column_config.TextColumn(alignment="right")
        for title in columns
        if title not in ("Retriever", "Marks")
    }
    focus.table(
        columns,
        list(names),
        alt="NDCG@10 in percent of each retriever on each benchmark, with means over the shared benchmarks",
        config=right | {"Coverage": st.column_config.TextColumn(help="Number of benchmarks with a result.")},
    )
    notes = ["NDCG@10 in percent.", marks(comparison)]
    if any(badges.values()):
        notes.append(
            "Scores with a mark are never starred: they do not come from a complete training on other queries."
        )
    if averages:
        notes.append("Means cover the benchmarks that all shown retrievers share; the header says how many.")
    if any(row.seed_sd is not None for row in comparison.rows):
        notes.append("± is the standard deviation over the averaged seeds.")
    elif comparison.families:
        notes.append(
            f"{len(comparison.families)} of these runs differ from another only in seed; average them "
            "under Test and seeds."
        )
    st.caption(" ".join(notes))
    frame.remarks(result_tables.noise_notes(comparison), "casino")
    frame.remarks(result_tables.remarks(workspace, comparison))
    charts.show(
        ndcg_bars(values, palette=palette, marks=stars, focus=chosen),
        key="ndcg",
        turn=focus.turn(),
        alt="NDCG@10 in percent. " + " ".join(f"{name}: {_listed(values[name])}." for name in values),
        caption="Select rows above or bars here to highlight retrievers on the whole page." if len(names) > 2 else "",
        on_pick=lambda points: focus.toggle(names, points),
    )


def _value(row: ComparedRow) -> str:
    """``41.20``, or ``41.20 ± 0.35`` where seeds were averaged."""
    return f"{row.ndcg:.2f}" if row.seed_sd is None else f"{row.ndcg:.2f} ± {row.seed_sd:.2f}"


def _group(group: str) -> str:
    return {ALL: "Mean", OWN: "Mean of own benchmarks"}.get(group, f"Mean of {group}")


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def differences(comparison: Comparison, chosen: Sequence[str], palette: Mapping[str, str]) -> None:
    """Signed differences with interval, p and counts; a row or a point opens its queries below."""
    rows = compared(comparison)
    if not rows:
        return
    st.subheader(f"Difference from {md(cut(comparison.baseline, 80))}", anchor=False, help=frame.definition("interval"))
    charts.show(
        gains(
            [
                GainPoint(
                    r.place, r.retriever, r.difference or 0.0, r.low, r.high, r.significant,
                    r.evaluation_id,
                )
                for r in rows
                if r.low is not None and r.high is not None
            ],
            palette=palette,
            focus=chosen,
        ),
        key="gains",
        alt="Differences in NDCG@10 points from the baseline with 95% intervals: "
        + "; ".join(f"{r.retriever} on {r.place} {points(r.difference or 0.0)}{mark(r)}" for r in rows),
        caption="NDCG@10 points with 95% intervals over queries; an interval that crosses zero is inconclusive. "
                "Filled: significant; open: not significant.",
        on_pick=_open_queries,
    )  # fmt: skip
    shown = [r for r in rows if not chosen or r.retriever in chosen] or rows
    picked = tables.pick_row(
        {
            "Retriever": [r.retriever for r in shown],
            "Benchmark": [r.place for r in shown],
            "Difference": [points(r.difference or 0.0) + mark(r) for r in shown],
            **({"Marks": [r.marks or "–" for r in shown]} if any(r.marks for r in shown) else {}),
            "95% interval": [interval(r) for r in shown],
            "p (t)": [_p(r.p_t) for r in shown],
            "p (random.)": [_p(r.p_random) for r in shown],
            "p (Holm)": [_p(r.p_holm) for r in shown],
            "Effect": ["–" if r.effect is None else points(r.effect) for r in shown],
            "Better": [r.wins for r in shown],
            "Worse": [r.losses for r in shown],
            "Same": [r.ties for r in shown],
        },
        alt="Differences from the baseline with interval, p value and counts of queries; choose one for its queries",
        key="differences_table",
        config={
            "p (t)": st.column_config.TextColumn(width=62, help=f"Paired t-test. {frame.definition('p')}"),
            "p (random.)": st.column_config.TextColumn(width=82, help=f"Paired randomisation. {frame.definition('p')}"),
            "Effect": st.column_config.TextColumn(
                width=56,
                help="Cohen's d for pairs: the mean difference over the standard deviation of the differences. 0.2 is "
                "called small, 0.5 medium, 0.8 large.",
            ),
            "p (Holm)": st.column_config.TextColumn(width=72, help=frame.definition("holm")),
            "Better": st.column_config.NumberColumn(width=56, help="Queries on which it is better than the baseline."),
            "Worse": st.column_config.NumberColumn(width=56),
            "Same": st.column_config.NumberColumn(width=52),
        },
    )
    if picked is not None and shown[picked].evaluation_id != st.session_state.get("differences_opened"):
        st.session_state["differences_opened"] = shown[picked].evaluation_id
        state.write("per_query", shown[picked].evaluation_id)
        compare_queries.show_queries()
    st.caption("Choose a row to see its queries below.")


def _p(value: float | None) -> str:
    return "–" if value is None else p_value(value)


def _open_queries(clicked: Sequence[Mapping[str, object]]) -> None:
    """A click on a difference: its queries are shown below."""
    for point in clicked:
        data = point.get("customdata")
        if isinstance(data, (list, tuple)) and len(data) == 3 and data[2]:
            state.write("per_query", str(data[2]))
            compare_queries.show_queries()
