"""The compared retrievers: scores and differences, and what stands behind them (queries, settings, curves)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.charts.results import LABELS, GainPoint, curve, gains, ndcg_bars
from cdp.services import jobs, result_tables, results
from cdp.services.result_tables import ALL, OWN, means
from cdp.services.results import ComparedRow, Comparison
from cdp.ui.compare.choice import MARKS, compared, largest, mark, names_of
from cdp.ui.jobs import choose_curve
from cdp.ui.shell import charts, frame, state, tables
from cdp.ui.shell.tables import count, cut, interval, label_of, md, p_value, points


def scores(workspace: Workspace, comparison: Comparison, palette: Mapping[str, str]) -> None:
    """Retrievers × benchmarks, with the means over shared benchmarks."""
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
    groups = {ALL: "Mean", OWN: "Mean of own benchmarks"}
    for mean in averages:
        title = f"{groups.get(mean.group, f'Mean of {mean.group}')}: {mean.coverage}"
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
    tables.show(
        columns,
        alt="NDCG@10 in percent of each retriever on each benchmark, with means over the shared benchmarks",
        config=right | {"Coverage": st.column_config.TextColumn(help="Number of benchmarks with a result.")},
    )
    notes = ["NDCG@10 in percent.", MARKS]
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
            f"{len(comparison.families)} of these runs differ from another only in seed; they can be averaged above."
        )
    st.caption(" ".join(notes))
    frame.remarks(result_tables.noise_notes(comparison), "casino")
    frame.remarks(result_tables.remarks(workspace, comparison))
    charts.show(
        ndcg_bars(values, palette=palette, marks=stars),
        key="ndcg",
        alt="NDCG@10 in percent. "
        + " ".join(f"{name}: {', '.join(f'{b} {v:.2f}' for b, v in values[name].items())}." for name in values),
    )


def _value(row: ComparedRow) -> str:
    """``41.20``, or ``41.20 ± 0.35`` where seeds were averaged."""
    return f"{row.ndcg:.2f}" if row.seed_sd is None else f"{row.ndcg:.2f} ± {row.seed_sd:.2f}"


def differences(comparison: Comparison, palette: Mapping[str, str]) -> None:
    """Signed differences with interval, p and counts; a row opens its queries below."""
    rows = compared(comparison)
    if not rows:
        return
    st.subheader(f"Difference from {md(cut(comparison.baseline, 80))}", anchor=False, help=frame.definition("interval"))
    charts.show(
        gains(
            [
                GainPoint(
                    r.place, r.retriever, r.difference or 0.0, r.low, r.high, r.significant,
                )
                for r in rows
                if r.low is not None and r.high is not None
            ],
            palette=palette,
        ),
        key="gains",
        alt="Differences in NDCG@10 points from the baseline with 95% intervals: "
        + "; ".join(f"{r.retriever} on {r.place} {points(r.difference or 0.0)}{mark(r)}" for r in rows),
        caption="NDCG@10 points with 95% intervals over queries; an interval that crosses zero is inconclusive. "
                "Filled: significant; open: not significant.",
    )  # fmt: skip
    picked = tables.pick_row(
        {
            "Retriever": [r.retriever for r in rows],
            "Benchmark": [r.place for r in rows],
            "Difference": [points(r.difference or 0.0) + mark(r) for r in rows],
            **({"Marks": [r.marks or "–" for r in rows]} if any(r.marks for r in rows) else {}),
            "95% interval": [interval((r.low, r.high), sign=True) for r in rows],
            "p (t)": [p_value(r.p_t) for r in rows],
            "p (random.)": [p_value(r.p_random) for r in rows],
            "p (Holm)": [p_value(r.p_holm) for r in rows],
            "Effect": ["–" if r.effect is None else points(r.effect) for r in rows],
            "Better": [r.wins for r in rows],
            "Worse": [r.losses for r in rows],
            "Same": [r.ties for r in rows],
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
    if picked is not None and rows[picked].evaluation_id != st.session_state.get("differences_opened"):
        st.session_state["differences_opened"] = rows[picked].evaluation_id
        state.write("per_query", rows[picked].evaluation_id)
        show_queries()
    st.caption("Choose a row to see its queries below.")


def measured(workspace: Workspace, comparison: Comparison) -> dict[str, dict[str, float]]:
    """The last value of each measure, by job, of the shown retrievers that were trained here."""
    there = (key for key in names_of(comparison) if (workspace.jobs / key / "metrics.jsonl").exists())
    return {key: values for key in there if (values := _latest(workspace, key))}


def curves(
    workspace: Workspace,
    comparison: Comparison,
    palette: Mapping[str, str],
    measured: Mapping[str, Mapping[str, float]],
) -> None:
    """The training curves of all that were trained here, one upon the other."""
    runs = {key: name for key, name in names_of(comparison).items() if key in measured}
    measures = [measure for measure in LABELS if any(measure in values for values in measured.values())]
    if not measures:
        return
    measure = choose_curve(measures, key="compare_curve")
    lines = {name: _points(workspace, key, measure) for key, name in runs.items() if measure in measured[key]}
    charts.show(
        curve(lines, measure, palette=palette),
        key=f"curves_{measure}",
        alt=f"{LABELS[measure]} over the training steps. Last values: "
        + ", ".join(f"{name} {measured[key][measure]:.4g}" for key, name in runs.items() if name in lines),
        caption="One line per training. Losses are comparable only with the same batch size and weighting."
        if measure == "loss"
        else "",
    )


def _latest(workspace: Workspace, job: str) -> dict[str, float]:
    try:
        return jobs.latest(workspace, job)
    except CdpError:
        return {}


def _points(workspace: Workspace, job: str, measure: str) -> list[dict[str, float]]:
    logged = jobs.curve(workspace, job, measure)
    return [{"step": step, measure: value} for step, value in zip(logged.steps, logged.values, strict=True)]


def settings(comparison: Comparison) -> None:
    """Only the settings in which the compared retrievers differ."""
    trained = list(dict.fromkeys(name for values in comparison.settings.values() for name in values))
    tables.show(
        {
            "Setting": [label_of(key) for key in comparison.settings],
            **{name: [_shown(values.get(name)) for values in comparison.settings.values()] for name in trained},
        },
        alt="Training settings in which the compared retrievers differ",
    )


def _shown(value: object) -> str:
    return "" if value is None else str(value)


SHOWN_QUERIES = 10
QUERIES, SETTINGS, TRAINING = "Per query", "Different settings", "Training"
VIEW = "compare_view"


def behind(workspace: Workspace, comparison: Comparison, palette: Mapping[str, str]) -> None:
    """The parts that there are, as tabs; what is not open is not worked out."""
    rows = [row for row in compared(comparison) if row.baseline_evaluation_id]
    trained = measured(workspace, comparison)
    parts: dict[str, Callable[[], None]] = {}
    if rows:
        parts[QUERIES] = lambda: by_query(workspace, comparison, choose(rows))
    if comparison.settings:
        parts[SETTINGS] = lambda: settings(comparison)
    if trained:
        parts[TRAINING] = lambda: curves(workspace, comparison, palette, trained)
    if not parts:
        return
    if st.session_state.get(VIEW) not in parts:
        st.session_state[VIEW] = next(iter(parts))
    tabs = st.tabs(list(parts), on_change="rerun", key=VIEW)
    for tab, draw in zip(tabs, parts.values(), strict=True):
        if tab.open:
            with tab, frame.guarded():
                draw()


def choose(rows: Sequence[ComparedRow]) -> ComparedRow:
    """One retriever on one benchmark; at first the one that the answer is about."""
    first = largest(rows)
    named = {row.evaluation_id: row for row in (first, *rows)}
    picked = state.choose(
        "Retriever and benchmark",
        {key: f"{row.retriever} on {row.place}" for key, row in named.items()},
        "per_query",
        what="evaluation",
    )
    return named.get(picked or "", first)


def show_queries() -> None:
    """Before the tabs are drawn: a difference was chosen, so a part that is about it is opened."""
    if st.session_state.get(VIEW) not in (None, QUERIES):
        st.session_state[VIEW] = QUERIES


def by_query(workspace: Workspace, comparison: Comparison, row: ComparedRow) -> None:
    """The queries that one retriever wins and loses most clearly, on one benchmark."""
    queries = results.per_query(workspace, comparison, row)
    lost = [q for q in queries if q.difference < 0][:SHOWN_QUERIES]
    won = [q for q in reversed(queries) if q.difference > 0][:SHOWN_QUERIES]
    left, right = st.columns(2, gap="medium")
    for column, title, listed in ((left, "Largest gains", won), (right, "Largest losses", lost)):
        with column:
            st.markdown(f"**{title}**")
            if not listed:
                st.caption("None.")
                continue
            tables.show(
                {
                    "Difference": [points(q.difference) for q in listed],
                    "Baseline → this": [f"{q.baseline:.0f} → {q.other:.0f}" for q in listed],
                    "Query": [q.text or q.query_id for q in listed],
                },
                alt=f"{title}: queries with NDCG@10 under both retrievers",
                config={
                    "Difference": st.column_config.TextColumn(width=85),
                    "Baseline → this": st.column_config.TextColumn(
                        width=115, help="NDCG@10 of the baseline and of this retriever."
                    ),
                    "Query": st.column_config.TextColumn(width="large"),
                },
            )
    st.caption(
        f"NDCG@10 per query in percent. {count(row.wins or 0, 'query', 'queries')} better, {row.losses or 0} worse, "
        f"{row.ties or 0} the same."
    )
