"""The Compare page: leaderboard, stars, baseline, answer sentence, renaming a run, "Add BM25", tabs, export buttons."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

import streamlit as st

from cdp.base.text import clustered, size
from cdp.base.workspace import Workspace
from cdp.charts.results import GainPoint, gains
from cdp.results import board, differences, naming, paper
from cdp.results.board import ResultRow
from cdp.results.differences import MOST, Comparison, QueryDifference
from cdp.results.paper import TableCell
from cdp.services import commands, evaluation, jobs
from cdp.ui.benchmarks import judging
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import MISSING, count, cut, interval, label_of, md, p_value, points, written

TABLE, VIEW = "board_table", "compare_view"

# Under this name the address holds the recipes that were chosen in the table.
PICKED = "retrievers"

# Columns that are left out where all rows say the same.
VARYING = ("Machine", "Pairs", "Steps")

SHOWN_QUERIES = 5
# Pixels, and from how many rows on the table scrolls.
ROW_HEIGHT, TALL = 30, 900

SEARCHING = "Search time, all queries in one batch: without encoding the queries, with any reranking."

STRONG = {
    "BM25": "Keyword search, without a model.",
    "hybrid": "BM25 fused with the baseline, and with the best training (reciprocal rank fusion).",
    "reranked": "The first 50 documents of the baseline, and of the best training, reordered by a cross-encoder.",
}

FORMS = {"csv": ("CSV with all tests", "text/csv", "csv"), "markdown": ("Markdown table", "text/markdown", "md"),
         "latex": ("LaTeX table", "text/x-tex", "tex")}  # fmt: skip


def page(workspace: Workspace) -> None:
    evaluations = board.list_evaluations(workspace, state.scope(workspace))
    rows = board.list_rows(workspace, evaluations)
    if not rows:
        text = "Train a retriever with an evaluation before and after to compare both here."
        frame.empty("No results yet", text, "launch", "Set up a training")
        frame.link("launch", "Or evaluate an existing retriever", tab="evaluation")
        return

    linked = st.query_params.get("run", "")
    arrived = next((row.retriever_id for row in rows if linked in row.runs), "")
    if linked and not arrived:
        state.not_here("run", linked)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = _place(rows, arrived)
        here = [row for row in rows if row.place == place]
        baseline = _baseline(here)

    chosen = st.query_params.get_all(PICKED)
    picked = [row for row in here if row.retriever_id in chosen]
    compared = [row.retriever_id for row in picked]
    if not picked:
        compared = differences.default_comparison(here, baseline)
        if arrived and arrived not in compared:
            compared.append(arrived)

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
        st.caption(f"{_about_all(here)} Choose rows to compare only these.", width="stretch")
        _baselines(workspace, here, baseline)

    if len(picked) == 1:
        _rename(workspace, picked[0])

    _differences(on_place)
    _tested(on_place, shown)
    _details(workspace, on_place, comparison, arrived)
    frame.link("decide", "Test it with several seeds", icon=":material/experiment:", test="1")


def _place(rows: Sequence[ResultRow], arrived: str) -> str:
    """Ask for a benchmark: at first that of the link's run, else of the newest result, then those with most recipes."""
    counted = Counter(row.place for row in rows)
    places = [row.place for row in rows if row.retriever_id == arrived]
    places.append(max(rows, key=attrgetter("created")).place)
    places += dict(counted.most_common())

    titles = {place: f"{place} ({count(counted[place], 'recipe')})" for place in places}
    if len(titles) == 1:
        return places[0]
    return state.choose("Benchmark", titles, "benchmark", width=320) or places[0]


def _baseline(here: Sequence[ResultRow]) -> str:
    """Ask for the baseline: at first the untrained retriever that the runs started from."""
    first = board.baseline(here)
    names = {row.retriever_id: row.retriever for row in sorted(here, key=lambda row: row.retriever_id != first)}
    chosen = state.choose(
        "Baseline", names, "baseline", what="retriever", width=320,
        help="All differences are measured against this retriever, on the same queries.",
    )  # fmt: skip
    return chosen or first


def _answer(comparison: Comparison, arrived: str) -> None:
    """The result in a sentence: of the link's run, else of the best."""
    rows = [row for row in comparison.rows if row.difference is not None]
    if not rows:
        _alone(comparison)
        return

    about = _about(rows, arrived)
    describe = _withheld if about.withheld else _tested_sentence
    st.markdown(describe(about, comparison.baseline))

    if about.calibration is not None:
        icon = "fact_check" if about.calibration.corrected else "warning"
        st.markdown(f":material/{icon}: **{md(about.calibration.sentence)}**")


def _alone(comparison: Comparison) -> None:
    """The score of a baseline that nothing stands beside, and the way to something."""
    for row in comparison.rows:
        st.markdown(f"#### {md(cut(row.retriever, 80))} scores {md(row.score)} on {md(row.place)}")
    st.caption("NDCG@10 in percent. Nothing else was evaluated on the same queries.")

    place = [f"{row.benchmark}/{row.split}" for row in comparison.rows]
    frame.link("launch", "Evaluate another retriever", icon=":material/add:", tab="evaluation", on=place)


def _withheld(row: ResultRow, baseline: str) -> str:
    """Both bounds in place of a verdict, where missing judgments would decide it."""
    over = f"{md(cut(row.retriever, 80))} over {md(cut(baseline, 60))}"
    return f"#### Withheld on {md(row.place)}\n{over}: {row.withheld}."


def _tested_sentence(row: ResultRow, baseline: str) -> str:
    difference = row.difference or 0.0
    outcome = "neither gains nor loses"
    if difference:
        verb = "gains" if difference > 0 else "loses"
        outcome = f"{verb} {points(abs(difference)).lstrip('+')} points"

    judgement = "more than chance" if row.significant else "may be chance"
    if not difference:
        judgement = "no difference"
    if row.marks:
        judgement = f"{row.marks}, so this does not show how good it is"

    over = ""
    if row.shared_units:
        over = f" over {clustered(row.n_queries, row.n_clusters or 0, ' queries')}"

    chance = f"p {p_value(1.0 if row.p_holm is None else row.p_holm)}"
    if row.low and row.high and row.low * row.high > 0 and not row.significant:
        # The interval is of this difference alone and excludes zero: it would seem to contradict the verdict.
        chance += " once corrected for all comparisons"

    return (
        f"#### {md(cut(row.retriever, 80))} {outcome} on {md(row.place)}\n"
        f"NDCG@10 {md(row.score)}. Difference from {md(cut(baseline, 60))}: 95% interval "
        f"{interval((row.low, row.high), sign=True)}, {chance}{over}: {md(judgement)}."
    )


def _about(rows: Sequence[ResultRow], arrived: str) -> ResultRow:
    """The row of the link's run, else that with the largest difference, unmarked rows first."""
    return max(rows, key=lambda row: (row.retriever_id == arrived, not row.marks, row.difference or 0.0))


def _table(rows: Sequence[ResultRow], baseline: str) -> None:
    """One row per recipe, the best first. Choosing rows compares these alone."""
    common = _common(rows)
    columns = tables.by_title(_cells(row, baseline, common) for row in rows)
    for title in VARYING:
        if len({*columns[title]} - {None, ""}) < 2:
            del columns[title]

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

    right = partial(st.column_config.TextColumn, alignment="right")
    wide = any("±" in str(score) for score in columns["NDCG@10"])
    st.dataframe(
        tables.filled(columns, "Recipe"),
        hide_index=True,
        placeholder=MISSING,
        column_config={
            "Recipe": st.column_config.TextColumn(width=260),
            "NDCG@10": right(width=105 if wide else 80, help="In percent; ± is the standard deviation over seeds."),
            "Per file": right(help=board.PER_PASSAGE),
            "Difference": right(help="NDCG@10 points over the baseline, on the same queries."),
            "95% interval": right(help="Of the difference, in points."),
            "Index": right(help="Size of the documents' index: vectors, token vectors, or inverted lists."),
            "Per query": right(help=SEARCHING),
            "p": right(help=frame.DEFINITIONS["holm"]),
            "Corrected": right(help="A model judged: the difference, corrected by people's labels of some queries."),
        },
        key=TABLE,
        alt="Recipes with NDCG@10 in percent and the difference from the baseline",
        on_select=pick,
        selection_mode="multi-row",
        row_height=ROW_HEIGHT,
        height="content" if len(rows) <= 2 * MOST else TALL,
    )


def _cells(row: ResultRow, baseline: str, common: Collection[str]) -> dict[str, Any]:
    """A row of the table; its badges without those ``common`` to all."""
    name = row.retriever
    if row.retriever_id == baseline:
        name = f"{name} (baseline)"

    seeds = pairs = steps = None
    if row.trained is not None:
        seeds, pairs, steps = row.seeds, row.trained.pairs, row.trained.steps

    return {
        "NDCG@10": row.score,  # first: what one sees on a phone
        "Per file": written(row.per_file, "{:.2f}".format, None),
        "Recipe": name,
        "Difference": _difference(row),
        "95% interval": _interval(row),
        "p": p_value(row.p_holm),
        "Corrected": _corrected(row),
        "Seeds": seeds,
        "Index": written(row.index_bytes, size, None),
        "Per query": written(row.query_ms, "{:.3g} ms".format, None),
        "Machine": row.machine,
        "Read with": ", ".join(word for word in row.words if word not in common) or None,
        "Pairs": pairs,
        "Steps": steps,
    }


def _difference(row: ResultRow) -> str:
    if row.difference is None:
        return MISSING

    star = ""  # significance in a form that does not rely on colour
    if row.significant:
        star = " **" if (row.p_holm or 0.0) < 0.01 else " *"
    return points(row.difference) + star


def _interval(row: ResultRow) -> str:
    """The interval of the difference, or its other bound where too few documents are judged."""
    if row.if_relevant is not None:
        return f"{points(row.if_relevant)} if top-grade"
    return interval((row.low, row.high), sign=True)


def _corrected(row: ResultRow) -> str:
    """The difference and interval corrected by people's labels; empty where people judged."""
    if row.calibration is None:
        return ""
    found = row.calibration.corrected
    if not found:
        return "uncalibrated"
    return f"{points(found.mean)} ({interval(found.interval, sign=True)})"


def _common(rows: Sequence[ResultRow]) -> set[str]:
    """The badges that all trained rows share: they stand once below the table."""
    trained = [set(row.words) for row in rows if row.trained]
    if len(trained) < 2:
        return set()
    return set.intersection(*trained)


def _about_all(rows: Sequence[ResultRow]) -> str:
    """What holds for the whole table, as Markdown for its caption."""
    said = [f"{count(len(rows), 'recipe')}."]
    if any(row.per_file is not None for row in rows):
        said.append("Judged per passage.")
    if any(row.marks for row in rows):
        said.append("Leaked and stopped runs stand last.")

    common = sorted(_common(rows))
    if common:
        said.append(f"All trained ones: {md(', '.join(common))}.")

    machines = {row.machine for row in rows} - {""}
    if len(machines) == 1:
        said.append(f"Times on {md(machines.pop())}.")

    return " ".join(said)


def _rename(workspace: Workspace, row: ResultRow) -> None:
    with st.popover("Rename", icon=":material/edit:", type="tertiary"):
        key = hashlib.sha256(" ".join(row.runs).encode()).hexdigest()[:12]  # another row, another field
        given = naming.given_names(workspace).get(row.runs[0], "")
        name = st.text_input("Name", given, placeholder=row.retriever, key=f"name_{key}", max_chars=120)
        if forms.button("Save", key="board_save", type="primary"):
            with frame.guarded():
                evaluation.rename(workspace, row.runs, name)
                st.rerun()


def _baselines(workspace: Workspace, here: Sequence[ResultRow], baseline: str) -> None:
    """A button for each strong baseline that was not evaluated here: BM25, hybrid, reranked."""
    for title, configs in evaluation.strong_baselines(workspace, here, baseline).items():
        if configs and forms.button(
            f"Add {title}", icon=":material/add:", key=f"add_{title}", type="tertiary", help=STRONG[title]
        ):
            with frame.guarded():
                started = [jobs.start(workspace, "evaluation", config) for config in configs]
                frame.go("jobs", job=started[0])


def _differences(comparison: Comparison) -> None:
    rows = [row for row in comparison.rows if row.difference is not None and row.low is not None]
    rows.sort(key=lambda row: (bool(row.marks), -(row.difference or 0.0)))
    if not rows:
        return

    shown, described = [], []
    for row in rows:
        difference = row.difference or 0.0
        shown.append(GainPoint(row.retriever, difference, row.low or 0.0, row.high or 0.0, row.significant))
        described.append(f"{row.retriever} {_difference(row)}")

    charts.show(
        gains(shown, x=f"points above {cut(comparison.baseline, 40)}"),
        key="gains",
        alt=f"Differences in NDCG@10 points from the baseline with 95% intervals: {'; '.join(described)}",
        caption=paper.test_line(comparison),
    )


def _tested(comparison: Comparison, shown: Sequence[ResultRow]) -> None:
    """How the tests were made, behind a fold; above it, which sample of the queries was judged."""
    for badge in dict.fromkeys(chain.from_iterable(row.badges for row in shown)):
        if badge.word == "subset":
            st.caption(md(badge.meaning))

    units = " or ".join(sorted({row.judged_per for row in shown}))
    with st.expander("How this was tested", icon=":material/help:"):
        st.markdown(
            f"NDCG@10 in percent, judged per {units}. \\* p below 0.05, \\*\\* below 0.01, two-sided, corrected for "
            "all comparisons (Holm). An interval that crosses zero is inconclusive. Filled: significant; open: not."
        )
        frame.remarks(paper.noise_notes(comparison), "casino")
        frame.remarks(board.remarks(shown))


def _details(workspace: Workspace, on_place: Comparison, whole: Comparison, arrived: str) -> None:
    """The details as tabs, those with content; only the open one is computed."""
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
    """The queries with the largest gains and losses of a recipe, at first of the one in the answer."""
    first = _about(rows, arrived)
    named = {row.evaluation_id: row for row in (first, *rows)}
    titles = {key: row.retriever for key, row in named.items()}
    picked = state.choose("Recipe", titles, "per_query", what="evaluation", width=420)
    row = named.get(picked or "", first)
    found = differences.per_query(workspace, comparison, row)

    lost = [q for q in found if round(q.difference, 2) < 0]
    won = [q for q in reversed(found) if round(q.difference, 2) > 0]
    with st.grid(2, min_column_width=400):
        for title, queries in (("Largest gains", won), ("Largest losses", lost)):
            with st.container():
                _listed_queries(title, queries[:SHOWN_QUERIES])

    st.caption(
        f"NDCG@10 per query in percent. {count(row.wins or 0, 'query', 'queries')} better, {row.losses or 0} worse, "
        f"{row.ties or 0} the same."
    )


def _listed_queries(title: str, queries: Sequence[QueryDifference]) -> None:
    st.markdown(f"**{title}**")
    if not queries:
        st.caption("None.")
        return

    rows = []
    for q in queries:
        scores = f"{q.baseline:.0f} → {q.other:.0f}"
        rows.append({"Difference": points(q.difference), "Baseline → this": scores, "Query": q.text or q.query_id})

    tables.show(
        tables.by_title(rows),
        alt=f"{title}: queries with NDCG@10 under both retrievers",
        about={"Baseline → this": "NDCG@10 of the baseline and of this retriever."},
        width={"Difference": 85, "Baseline → this": 115, "Query": "large"},
    )


def _all_benchmarks(comparison: Comparison) -> None:
    table = paper.paper_table(comparison)
    rows = []
    for name, cells in table.rows:
        scores = zip(table.columns, map(TableCell.shown, cells), strict=True)
        rows.append({"Recipe": name, **dict(scores)})

    tables.show(
        tables.by_title(rows),
        alt="NDCG@10 in percent of each recipe on each benchmark, with means and their coverage",
    )
    daggers = "".join(f" † {md(note)}" for note in table.notes[:1])
    means = "Means say how many benchmarks they cover: *Mean* those that all shown retrievers have."
    st.caption(f"NDCG@10 in percent: \\*best\\*, \\_second\\_.{daggers} {means}")


def _settings(comparison: Comparison) -> None:
    rows = []
    for setting, values in comparison.settings.items():
        row = {"Setting": label_of(setting)}
        for name, value in values.items():
            row[name] = "" if value is None else str(value)
        rows.append(row)

    tables.show(tables.by_title(rows), alt="Training settings in which the compared recipes differ")


def _export(comparison: Comparison) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, (label, mime, ending) in FORMS.items():
            content = partial(paper.write, comparison, form)
            forms.download(label, content, f"comparison.{ending}", key=f"compare_{form}", mime=mime, type="tertiary")

    words = ["--baseline", comparison.baseline_id]
    for retriever in dict.fromkeys(row.retriever_id for row in comparison.rows):
        if retriever != comparison.baseline_id:
            words += ["--retriever", retriever]
    for benchmark in dict.fromkeys(row.benchmark for row in comparison.rows):
        words += ["--benchmark", benchmark]

    forms.command(commands.line("results", "compare", *words, format="markdown"))
