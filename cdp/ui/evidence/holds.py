"""The tab "Does it hold here?": each published figure beside the same of one's own results, and who is right at rank 1.

A figure without data names the run that it needs with its cost, and offers to start it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, compress
from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.text import csv_text
from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark
from cdp.charts.holds import FIGURES, Figure
from cdp.complexity import content_words
from cdp.metrics.query_set import DEPTHS
from cdp.principle.tables import TABLES, short_name
from cdp.results import arms, board
from cdp.results.arms import ArmPair, Case, FigureData
from cdp.results.numbers import Numbers
from cdp.services import benchmarks as stored_benchmarks
from cdp.services import commands, evidence, metrics, queries, studies
from cdp.services import corpora as stored_corpora
from cdp.services.evidence import Has
from cdp.services.queries import QuerySet
from cdp.ui import jobs as job_views
from cdp.ui.shell import charts, forms, frame, state, workbench
from cdp.ui.shell.tables import md, moment

OTHERS = "evaluations"
SHOWN_CASES = 10
# Queries of a set that is measured while the page is drawn: a second.
MAX_MEASURED = 12_000


def page(workspace: Workspace) -> None:
    evaluations = board.list_evaluations(workspace, state.scope(workspace))
    chosen = _choose_results(workspace, evaluations)
    sets = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
    for query_set in sets:
        _measured(workspace, query_set)

    listed = state.of_project(workspace, "benchmark", stored_benchmarks.list_benchmarks(workspace))
    judged = [info for info in listed if info.splits and not info.problem]
    compared = arms.compared(workspace, chosen)
    pair = _pair(workspace, compared)
    mine = arms.own(workspace, chosen, [q.id for q in sets])
    mine = replace(mine, stats=arms.statistics(workspace, [info.name for info in judged]))
    if pair:
        mine = replace(mine, errors=pair[0].table())

    axis = st.session_state.get("holds_axis") or "cw"
    if axis != "cw":
        mine = replace(mine, differences=arms.gains(mine.rows, axis), axis=axis)

    drawn = {name: figure.numbers(mine) for name, figure in FIGURES.items()}
    there = sum(map(bool, drawn.values()))
    st.markdown(f"#### {there} of {len(FIGURES)} figures can be drawn from your results")
    titles = {name: figure.title for name, figure in FIGURES.items()}
    for name, numbers in drawn.items():
        if not numbers:
            titles[name] += " (needs a run)"

    name = state.choose("Figure", titles, "figure", what="figure", width=420) or next(iter(FIGURES))
    figure = FIGURES[name]

    left, right = st.columns(2, gap="large")
    with right:
        st.subheader("Yours", anchor=False)
        if drawn[name]:
            _own(figure, mine, drawn[name], compared)
        else:
            corpora = [c.id for c in state.of_project(workspace, "corpus", stored_corpora.list_corpora(workspace))]
            own = state.scope(workspace).selected(judged)
            _missing(workspace, figure, Has(corpora, sets, [info.name for info in own]))
    with left:
        _published(figure)
    if figure.name == "errors" and pair:
        _cases(*pair)

    forms.command(commands.line("published", "show", short_name(figure.tables[0])))


def _measured(workspace: Workspace, query_set: QuerySet) -> None:
    """Measure a set of moderate size at each Q/Doc without a model, once."""
    if not 0 < query_set.n_queries <= MAX_MEASURED:
        return
    with suppress(CdpError):
        for per_doc in (*(m for m in DEPTHS if m < query_set.per_doc), None):
            metrics.quick(workspace, query_set.id, per_doc=per_doc)


def _choose_results(workspace: Workspace, evaluations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The evaluations that the figures are drawn from: of studies, and all others."""
    listed = state.of_project(workspace, "job", studies.list_studies(workspace))
    titles = {job.id: f"{job.name} · {moment(job.created)}" for job in listed}
    titles[OTHERS] = "Evaluations outside of studies"
    origins = [str(row["settings"].get("study") or OTHERS) for row in evaluations]
    names = {origin: titles[origin] for origin in titles if origin in origins}
    if not names:
        return []

    chosen = state.choose_many("Drawn from", names, "results", what="study", default=list(names))
    return list(compress(evaluations, map(chosen.__contains__, origins)))


def _published(figure: Figure) -> None:
    """The published side, from one of the tables that the figure stands beside."""
    st.subheader("Published", anchor=False)
    titles = {label: TABLES[label].title for label in figure.tables}
    label = figure.tables[0]
    if len(titles) > 1:
        label = forms.pick("Published table", titles, key=f"holds_table_{figure.name}")

    shown = figure.numbers(arms.published(label))
    _draw(figure, shown, f"published_{figure.name}", f"{TABLES[label].about} Printed without intervals.")


def _own(figure: Figure, mine: FigureData, shown: Numbers, compared: Mapping[str, Any]) -> None:
    if figure.name == "errors":
        _choose_pair(compared)
    if figure.name in ("cw", "correlation"):
        forms.pick("Over", arms.AXES, key="holds_axis")
    _draw(figure, shown, f"own_{figure.name}", figure.sentence(mine, shown))


def _missing(workspace: Workspace, figure: Figure, has: Has) -> None:
    """The run that the figure lacks: what it takes and its start, or the job that is at work on it."""
    st.markdown(f"##### :material/inbox: Nothing to draw yet\n{figure.needs} is needed.")
    page, label = "benchmarks", "Add a benchmark"
    if figure.run:
        label = "Set it up yourself"
        with frame.guarded():
            planned = evidence.plan(workspace, figure.run, has)
            page, config = planned.page, planned.config
            job = evidence.running(workspace, planned)
            if job is not None:
                job_views.running_note(workspace, [job])
                return

            st.caption(md(planned.sentence))
            if config is not None and forms.button("Start it", icon=":material/play_arrow:", key="holds_start"):
                with st.spinner("Starting"):
                    evidence.start(workspace, config, planned.kind)
                st.rerun()

    frame.page_button(page, label, f"to_{page}")


def _draw(figure: Figure, shown: Numbers, key: str, sentence: str) -> None:
    charts.show(figure.draw(shown), key=f"holds_{key}", alt=f"{figure.title}: {sentence}", caption=md(sentence))
    columns = list(dict.fromkeys(chain.from_iterable(shown)))
    content = csv_text(columns, (map(row.get, columns) for row in shown))
    with st.container(horizontal=True, vertical_alignment="center"):
        forms.download("CSV", content, f"{key.replace('_', '-')}.csv", key=f"holds_csv_{key}", type="tertiary")


# Who is right at rank 1.


def _first_pair(arms_here: Mapping[str, Any]) -> tuple[str, str]:
    """The arms that are compared at first: the fewest and the most queries per document, of the same kind."""

    def place(name: str) -> tuple[int, float]:
        trained = arms_here[name]["trained"]
        if trained is None:
            return 2, 0.0
        return int(trained.source != "diverse"), float(trained.per_doc)

    names = sorted(arms_here, key=place)
    diverse = [name for name in names if place(name)[0] == 0]
    if len(diverse) > 1:
        names = diverse
    return names[0], names[-1]


def _choose_pair(compared: Mapping[str, Mapping[str, Any]]) -> None:
    place = forms.pick("Benchmark", list(compared), key="errors_place")
    names = list(compared[place])
    first, second = _first_pair(compared[place])
    with st.container(horizontal=True):
        forms.pick("First arm", names, key=f"errors_first_{place}", first=first)
        forms.pick("Second arm", names, key=f"errors_second_{place}", first=second)


def _pair(workspace: Workspace, compared: Mapping[str, Mapping[str, Any]]) -> tuple[ArmPair, Benchmark] | None:
    """The two arms as chosen, and their benchmark; None where no two arms can be compared."""
    if not compared:
        return None

    place = st.session_state.get("errors_place")
    here = compared.get(place) or next(iter(compared.values()))
    first, second = _first_pair(here)
    chosen = st.session_state.get(f"errors_first_{place}"), st.session_state.get(f"errors_second_{place}")
    if chosen[0] in here:
        first = chosen[0]
    if chosen[1] in here:
        second = chosen[1]

    return arms.pair(workspace, here, (first, second))


def _cases(of: ArmPair, benchmark: Benchmark) -> None:
    """The queries that one arm alone has right, each with both passages; the query's content words are marked."""
    st.subheader("Cases", anchor=False)
    found: dict[tuple[int, bool], list[Case]] = defaultdict(list)
    for case in of.cases():
        found[case.right, case.same].append(case)
    if not found:
        st.caption("Both arms are right and wrong on the same queries.")
        return

    titles = {kind: f"{_kind(of.names, *kind)} ({len(found[kind])})" for kind in sorted(found, reverse=True)}
    kind = forms.pick("Kind", titles, key="errors_kind", persistent=False)
    texts = dict(zip(benchmark.query_ids, benchmark.queries, strict=True))
    documents = {name: i for i, name in enumerate(benchmark.document_ids)}

    for case in found[kind][:SHOWN_CASES]:
        words = sorted(content_words(texts[case.query_id], benchmark.counted_language))
        with st.container(border=True):
            workbench.text("", texts[case.query_id], words)
            sides = (("Relevant", case.relevant), ("Retrieved first", case.wrong))
            for column, (title, name) in zip(st.columns(2), sides, strict=True):
                with column:
                    body = "Nothing was retrieved."
                    if name in documents:
                        body = benchmark.documents[documents[name]]
                    workbench.text(f"{title}: {name}", body, words)


def _kind(names: tuple[str, str], right: int, same: bool) -> str:
    other = "passage of the file" if same else "file"
    return f"Right only with {names[right - 1]}; the other had another {other}"
