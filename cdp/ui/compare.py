"""The Compare page: leaderboard, stars, baseline, answer sentence, renaming a run, "Add BM25", tabs, export buttons."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import streamlit as st

from cdp.base.text import clustered, size
from cdp.base.workspace import Workspace
from cdp.charts.results import GainPoint, gains
from cdp.results import board, differences, naming, paper
from cdp.results.board import ResultRow
from cdp.results.differences import MOST, Comparison
from cdp.services import commands, evaluation, jobs
from cdp.ui.benchmarks import judging
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import MISSING, count, cut, interval, label_of, md, p_value, points

TABLE, VIEW = "board_table", "compare_view"

# Under this name the address holds the recipes that were chosen in the table.
PICKED = "retrievers"

SHOWN_QUERIES = 5
# Pixels, and from how many rows on the table scrolls.
ROW_HEIGHT, TALL = 30, 900

SEARCHING = "Searching alone: all queries together, their encoding left out, a cross-encoder's reading included."

STRONG = {
    "BM25": "Keyword search, without a model.",
    "hybrid": "BM25 fused with the baseline, and with the best training (reciprocal rank fusion).",
    "reranked": "The first 50 documents of the baseline, and of the best training, reordered by a cross-encoder.",
}

FORMS = {"csv": ("CSV with all tests", "text/csv", "csv"), "markdown": ("Markdown table", "text/markdown", "md"),
         "latex": ("LaTeX table", "text/x-tex", "tex")}  # fmt: skip


def page(workspace: Workspace) -> None:
    """Draw the page below its head."""
    evaluations = board.list_evaluations(workspace, state.scope(workspace))
    rows = board.list_rows(workspace, evaluations)
    if not rows:
        text = "Train a retriever with an evaluation before and after to compare both here."
        frame.empty("No results yet", text, "launch", "Set up a training")
        frame.link("launch", "Or evaluate an existing retriever", tab="evaluation")
        return

    run = st.query_params.get("run", "")  # a link led here for its row

    arrived = next((row.retriever_id for row in rows if run and run in row.runs), "")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = _place(rows, arrived)
        here = [row for row in rows if row.place == place]
        baseline = _baseline(here)

    picked = [row.retriever_id for row in here if row.retriever_id in st.query_params.get_all(PICKED)]
    compared = picked or differences.default_comparison(here, baseline)
    compared += [arrived] if arrived and not picked and arrived not in compared else []
    comparison = differences.compare(workspace, baseline, compared, evaluations=evaluations)
    on_place = comparison.on([place])
    tested = {row.retriever_id: row for row in on_place.rows}
    _answer(on_place, arrived)

    if on_place.rows:
        with st.container(horizontal=True, vertical_alignment="center"), frame.guarded():
            judging.after(workspace, on_place.rows[0].benchmark, differences.unjudged(workspace, on_place))

    shown = [tested.get(row.retriever_id, row) for row in here]
    _table(shown, baseline)

    with st.container(horizontal=True, vertical_alignment="center"):
        common = md(", ".join(sorted(_common(here))))
        below = [f"{count(len(here), 'recipe')}."]
        below += ["Judged per passage."] if any(row.per_file is not None for row in here) else []
        below += ["Leaked and stopped runs stand last."] if any(row.marks for row in here) else []
        below += [f"All trained ones: {common}."] if common else []
        machines = {row.machine for row in here} - {""}
        below += [f"Times on {md(next(iter(machines)))}."] if len(machines) == 1 else []
        st.caption(" ".join([*below, "Choose rows to compare only these."]), width="stretch")
        _baselines(workspace, here, baseline)

    if len(picked) == 1:
        _rename(workspace, next(row for row in here if row.retriever_id in picked))

    _differences(on_place)
    _tested(on_place, shown)
    _details(workspace, on_place, comparison, arrived)
    frame.link("decide", "Test it with several seeds", icon=":material/experiment:", test="1")


# what is compared


def _place(rows: Sequence[ResultRow], arrived: str) -> str:
    """One benchmark: scores of several do not compare. The first is that with most rows, or of the run that came."""
    counted = Counter(row.place for row in rows)
    of_run = [row.place for row in rows if row.retriever_id == arrived]
    places = dict.fromkeys([*of_run, *(place for place, _ in counted.most_common())])
    titles = {place: f"{place} ({count(counted[place], 'recipe')})" for place in places}
    if len(places) == 1:
        return next(iter(places))
    return state.choose("Benchmark", titles, "benchmark", width=320) or next(iter(places))


def _baseline(here: Sequence[ResultRow]) -> str:
    """The retriever that all differences are from; at first the untrained one that the runs started from."""
    first = board.baseline(here)
    names = {row.retriever_id: row.retriever for row in sorted(here, key=lambda row: row.retriever_id != first)}
    chosen = state.choose(
        "Baseline", names, "baseline", what="retriever", width=320,
        help="All differences are measured against this retriever, on the same queries.",
    )  # fmt: skip
    return chosen or first


# the answer and the table


def _answer(comparison: Comparison, arrived: str) -> None:
    """What the comparison says: of the run that a link led here for, else of the best."""
    rows = [row for row in comparison.rows if row.difference is not None]
    if not rows:
        st.caption("Nothing else was evaluated on the same queries as the baseline: evaluate another retriever.")
        return
    about = _about(rows, arrived)
    st.markdown(
        _withheld(about, comparison.baseline) if about.withheld else _tested_sentence(about, comparison.baseline)
    )
    if about.calibration is not None:
        icon = ":material/fact_check:" if about.calibration.corrected else ":material/warning:"
        st.markdown(f"{icon} **{md(about.calibration.sentence)}**")


def _withheld(row: ResultRow, baseline: str) -> str:
    """Both bounds in place of a verdict that the missing judgments would decide."""
    over = f"{md(cut(row.retriever, 80))} over {md(cut(baseline, 60))}"
    return f"#### Withheld on {md(row.place)}\n{over}: {row.withheld}."


def _tested_sentence(row: ResultRow, baseline: str) -> str:
    """What the test of a row says, in a headline and a sentence."""
    difference = row.difference or 0.0
    verb = "gains" if difference > 0 else "loses" if difference < 0 else "neither gains nor loses"
    size = f" {points(abs(difference)).lstrip('+')} points" if difference else ""
    sure = "more than chance" if row.significant else "may be chance"
    judgement = f"{row.marks}, so this does not show how good it is" if row.marks else sure
    chance = p_value(1.0 if row.p_holm is None else row.p_holm)
    over = f" over {clustered(row.n_queries, row.n_clusters or 0, ' queries')}" if row.shared_units else ""

    return (
        f"#### {md(cut(row.retriever, 80))} {verb}{size} on {md(row.place)}\n"
        f"NDCG@10 {md(row.score)}. Difference from {md(cut(baseline, 60))}: 95% interval "
        f"{interval((row.low, row.high), sign=True)}, p {chance}{over}: {md(judgement)}."
    )


def _about(rows: Sequence[ResultRow], arrived: str) -> ResultRow:
    """The row that the answer is about: that of the link's run, else the largest difference without a mark."""
    return max(rows, key=lambda row: (row.retriever_id == arrived, not row.marks, row.difference or 0.0))


def _table(rows: Sequence[ResultRow], baseline: str) -> None:
    """One row per recipe, the best first; chosen rows alone are compared."""
    common = _common(rows)
    columns: dict[str, Sequence[Any]] = {
        "NDCG@10": [row.score for row in rows],  # first: what one sees on a phone
        "Per file": [None if row.per_file is None else f"{row.per_file:.2f}" for row in rows],
        "Recipe": [f"{row.retriever} (baseline)" if row.retriever_id == baseline else row.retriever for row in rows],
        "Difference": [MISSING if row.difference is None else points(row.difference) + _star(row) for row in rows],
        "95% interval": [_interval(row) for row in rows],
        "p": [p_value(row.p_holm) for row in rows],
        "Corrected": [_corrected(row) for row in rows],
        "Seeds": [row.seeds if row.trained else None for row in rows],
        "Index": [None if row.index_bytes is None else size(row.index_bytes) for row in rows],
        "Per query": [None if row.query_ms is None else f"{row.query_ms:.3g} ms" for row in rows],
        "Machine": [row.machine for row in rows] if len({row.machine for row in rows} - {""}) > 1 else [],
        "Read with": [
            ", ".join(badge.word for badge in row.badges if badge.word not in common) or None for row in rows
        ],
    }

    columns = tables.filled(columns, "Recipe")
    further: dict[str, Sequence[Any]] = {
        "Pairs": [row.trained and row.trained.pairs for row in rows],
        "Steps": [row.trained and row.trained.steps for row in rows],
    }

    columns |= {title: cells for title, cells in further.items() if len({*cells} - {None}) > 1}
    current = st.query_params.get_all(PICKED)

    selected = [i for i, row in enumerate(rows) if row.retriever_id in current]
    if list(st.session_state.get(TABLE, {}).get("selection", {}).get("rows", [])) != selected:
        st.session_state[TABLE] = {"selection": {"rows": selected}}

    def pick() -> None:
        chosen = [rows[i].retriever_id for i in st.session_state[TABLE]["selection"]["rows"] if i < len(rows)]
        if chosen:
            state.write(PICKED, chosen[:MOST])
        else:
            state.forget(PICKED)

    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        columns,
        hide_index=True,
        placeholder=MISSING,
        column_config={
            "Recipe": st.column_config.TextColumn(width=260),
            "NDCG@10": st.column_config.TextColumn(
                width=105, alignment="right", help="In percent; ± is the standard deviation over seeds."
            ),
            "Per file": st.column_config.TextColumn(alignment="right", help=board.PER_PASSAGE),
            "Difference": right,
            "95% interval": right,
            "Index": st.column_config.TextColumn(
                alignment="right", help="What the documents' index takes: vectors, token vectors, or inverted lists."
            ),
            "Per query": st.column_config.TextColumn(alignment="right", help=SEARCHING),
            "p": st.column_config.TextColumn(alignment="right", help=frame.DEFINITIONS["holm"]),
            "Corrected": st.column_config.TextColumn(
                alignment="right", help="A model judged: the difference as people's labels of some queries correct it."
            ),
        },
        key=TABLE,
        alt="Recipes with NDCG@10 in percent and the difference from the baseline",
        on_select=pick,
        selection_mode="multi-row",
        row_height=ROW_HEIGHT,
        height="content" if len(rows) <= 2 * MOST else TALL,
    )


def _interval(row: ResultRow) -> str:
    """The interval of the difference, or its other bound where too few documents are judged."""
    if row.if_relevant is not None:
        return f"{points(row.if_relevant)} if top-grade"
    return interval((row.low, row.high), sign=True)


def _star(row: ResultRow) -> str:
    """Significance in a form that does not rely on colour."""
    return "" if not row.significant else " **" if (row.p_holm or 0.0) < 0.01 else " *"


def _corrected(row: ResultRow) -> str:
    """The difference and interval corrected by people's labels; empty where people judged."""
    if row.calibration is None:
        return ""
    found = row.calibration.corrected
    return f"{points(found.mean)} ({interval(found.interval, sign=True)})" if found else "uncalibrated"


def _common(rows: Sequence[ResultRow]) -> set[str]:
    """The badges of all trained rows: said once below the table."""
    trained = [{badge.word for badge in row.badges} for row in rows if row.trained]
    return set.intersection(*trained) if len(trained) > 1 else set()


def _rename(workspace: Workspace, row: ResultRow) -> None:
    """A name for the row that is chosen."""
    with st.popover("Rename", icon=":material/edit:", type="tertiary"):
        key = hashlib.sha256(" ".join(row.runs).encode()).hexdigest()[:12]  # another row, another field
        given = naming.given_names(workspace).get(row.runs[0], "")
        name = st.text_input("Name", given, placeholder=row.retriever, key=f"name_{key}", max_chars=120)
        if forms.button("Save", key="board_save", type="primary"):
            with frame.guarded():
                evaluation.rename(workspace, row.runs, name)
                st.rerun()


def _baselines(workspace: Workspace, here: Sequence[ResultRow], baseline: str) -> None:
    """One press for each strong baseline that was not measured here: BM25, hybrid, reranked."""
    for title, configs in evaluation.strong_baselines(workspace, here, baseline).items():
        if configs and forms.button(
            f"Add {title}", icon=":material/add:", key=f"add_{title}", type="tertiary", help=STRONG[title]
        ):
            with frame.guarded():
                started = [jobs.start(workspace, "evaluation", config) for config in configs]
                frame.go("jobs", job=started[0])


# differences


def _differences(comparison: Comparison) -> None:
    """The chart: a point and an interval per recipe."""
    rows = [row for row in comparison.rows if row.difference is not None and row.low is not None]
    rows.sort(key=lambda row: (bool(row.marks), -(row.difference or 0.0)))
    if not rows:
        return

    charts.show(
        gains(
            [
                GainPoint(row.retriever, row.difference or 0.0, row.low or 0.0, row.high or 0.0, row.significant)
                for row in rows
            ],
            x=f"points above {cut(comparison.baseline, 40)}",
        ),
        key="gains",
        alt="Differences in NDCG@10 points from the baseline with 95% intervals: "
        + "; ".join(f"{row.retriever} {points(row.difference or 0.0)}{_star(row)}" for row in rows),
        caption=paper.test_line(comparison),
    )


def _tested(comparison: Comparison, shown: Sequence[ResultRow]) -> None:
    """The small print, behind one fold; what the judged queries are a sample of stands in sight."""
    for sample in {badge.meaning for row in shown for badge in row.badges if badge.word == "subset"}:
        st.caption(md(sample))
    units = " or ".join(sorted({row.judged_per for row in shown}))
    with st.expander("How this was tested", icon=":material/help:"):
        st.markdown(
            f"NDCG@10 in percent, judged per {units}. \\* p below 0.05, \\*\\* below 0.01, two-sided, corrected for "
            "all comparisons (Holm). An interval that crosses zero is inconclusive. Filled: significant; open: not."
        )
        frame.remarks(paper.noise_notes(comparison), "casino")
        frame.remarks(board.remarks(shown))


# the details, in tabs


def _details(workspace: Workspace, on_place: Comparison, whole: Comparison, arrived: str) -> None:
    """The parts that there are, as tabs; what is not open is not worked out."""
    rows = [row for row in on_place.rows if row.baseline_evaluation_id]
    parts: dict[str, Callable[[], None]] = {}
    if rows:
        parts["Per query"] = lambda: _by_query(workspace, on_place, rows, arrived)
    if len({row.place for row in whole.rows}) > 1:
        parts["All benchmarks"] = lambda: _all_benchmarks(whole)
    if on_place.settings:
        parts["Different settings"] = lambda: _settings(on_place)

    parts["Export"] = lambda: _export(on_place)

    if st.session_state.get(VIEW) not in parts:
        st.session_state[VIEW] = next(iter(parts))

    opened = st.tabs(list(parts), on_change="rerun", key=VIEW)
    for tab, draw in zip(opened, parts.values(), strict=True):
        if tab.open:
            with tab, frame.guarded():
                draw()


def _by_query(workspace: Workspace, comparison: Comparison, rows: Sequence[ResultRow], arrived: str) -> None:
    """The queries that one recipe wins and loses most clearly; at first of the one that the answer is about."""
    first = _about(rows, arrived)
    named = {row.evaluation_id: row for row in (first, *rows)}
    titles = {key: row.retriever for key, row in named.items()}
    picked = state.choose("Recipe", titles, "per_query", what="evaluation", width=420)
    row = named.get(picked or "", first)
    queries = differences.per_query(workspace, comparison, row)

    lost = [q for q in queries if round(q.difference, 2) < 0][:SHOWN_QUERIES]
    won = [q for q in reversed(queries) if round(q.difference, 2) > 0][:SHOWN_QUERIES]
    for column, title, listed in zip(st.columns(2), ("Largest gains", "Largest losses"), (won, lost), strict=True):
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
                about={"Baseline → this": "NDCG@10 of the baseline and of this retriever."},
                width={"Difference": 85, "Baseline → this": 115, "Query": "large"},
            )

    st.caption(
        f"NDCG@10 per query in percent. {count(row.wins or 0, 'query', 'queries')} better, {row.losses or 0} worse, "
        f"{row.ties or 0} the same."
    )


def _all_benchmarks(comparison: Comparison) -> None:
    """Recipes × benchmarks as a paper has them, with means and their coverage."""
    table = paper.paper_table(comparison)
    columns = {name: [cells[i].shown() for _, cells in table.rows] for i, name in enumerate(table.columns)}
    tables.show(
        {"Recipe": [name for name, _ in table.rows], **columns},
        alt="NDCG@10 in percent of each recipe on each benchmark, with means and their coverage",
    )
    st.caption("Means say how many benchmarks they cover: *Mean* those that all shown retrievers have.")


def _settings(comparison: Comparison) -> None:
    """Only the settings in which the compared recipes differ."""
    cells: dict[str, list[str]] = {}
    for name in dict.fromkeys(chain.from_iterable(comparison.settings.values())):
        values = [of.get(name) for of in comparison.settings.values()]
        cells[name] = ["" if value is None else str(value) for value in values]

    tables.show(
        {"Setting": [label_of(key) for key in comparison.settings], **cells},
        alt="Training settings in which the compared recipes differ",
    )


def _export(comparison: Comparison) -> None:
    """The comparison in the forms of papers and programs, and the command that gives the same."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, (label, mime, ending) in FORMS.items():
            content = partial(paper.write, comparison, form)
            forms.download(label, content, f"comparison.{ending}", key=f"compare_{form}", mime=mime, type="tertiary")
    others = [row.retriever_id for row in comparison.rows if row.retriever_id != comparison.baseline_id]
    named = [word for key in dict.fromkeys(others) for word in ("--retriever", key)]
    shown = [word for name in dict.fromkeys(row.benchmark for row in comparison.rows) for word in ("--benchmark", name)]
    words = ("--baseline", comparison.baseline_id, *named, *shown)
    forms.command(commands.line("results", "compare", *words, format="markdown"))
