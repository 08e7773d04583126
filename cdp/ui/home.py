"""Home: the answer, or "Answer my question", one form and job from a folder to it: queries of people, who writes and
judges, price, progress, resume; counts, latest results, renaming and removing the project."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.query_sets.given import AddOptions
from cdp.results import board, naming
from cdp.services import adding, answering, corpora, endpoints, jobs, projects, queries, trial
from cdp.services.answering import AnswerPlan
from cdp.studies.config import AnswerConfig
from cdp.ui import documents as document_views
from cdp.ui import jobs as job_views
from cdp.ui.benchmarks import judging
from cdp.ui.decide import answer as decide_answer
from cdp.ui.queries import writing
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, duration, md, moment, number

TITLE = "Answer my question"


def begin(workspace: Workspace) -> None:
    """The first step in an empty workspace: documents of one's own, or the demo."""
    documents(workspace)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("New here? The demo collection has documents, queries and a benchmark.", width="content")
        forms.demo_button(workspace, "home_demo")


def contents(workspace: Workspace) -> None:
    """How much there is of each kind, and the latest results."""
    scope = state.scope(workspace)
    measured = board.list_evaluations(workspace, scope)
    trained = scope.keep("job", naming.trained(workspace))
    n_corpora = len(scope.keep("corpus", corpora.list_corpora(workspace)))
    n_sets = len(scope.keep("query_set", queries.list_query_sets(workspace)))
    tables.cards(
        ("Corpora", number(n_corpora), frame.DEFINITIONS["corpus"]),
        ("Query sets", number(n_sets), frame.DEFINITIONS["query_set"]),
        ("Trained retrievers", number(sum(job.has_model for job in trained)), frame.DEFINITIONS["retriever"]),
        ("Results", number(len(measured)), frame.DEFINITIONS["ndcg"]),
    )

    rows = sorted(board.list_rows(workspace, measured), key=attrgetter("created"), reverse=True)[:6]
    if not rows:
        return

    st.subheader("Latest results", anchor=False)
    tables.show(
        tables.by_title(map(_result, rows)),
        alt="The latest evaluation results",
        digits={"NDCG@10 (%)": 2},
    )

    frame.link("compare", "Compare retrievers")


def _result(row: board.ResultRow) -> dict[str, Any]:
    return {
        "NDCG@10 (%)": row.ndcg,  # first: what one sees on a phone
        "Retriever": row.retriever,
        "Benchmark": row.place,
        "Queries": row.n_queries,
        "Read with": ", ".join(badge.word for badge in row.badges) or None,
        "Evaluated": moment(row.created),
    }


def answer(workspace: Workspace, mine: list[str]) -> None:
    """What was measured for one of these corpora, or the way to measure it."""
    kept = state.kept("corpus")
    corpus = kept if kept in mine else mine[0]
    job = answering.latest(workspace, corpus)
    if job is not None and job.active:  # it has its own panel: one progress bar
        panel(workspace, corpus, opened=False)
        return

    measured = decide_answer.home_line(workspace, corpus)
    panel(workspace, corpus, opened=not measured)


def project_section(workspace: Workspace) -> None:
    """Rename or remove the project on screen. Nothing where all projects are shown."""
    current = state.scope(workspace).project
    if current is None:
        return

    with st.container(horizontal=True):
        with st.popover("Rename this project", icon=":material/edit_note:", type="tertiary", key="project_open"):
            name = st.text_input("Name", value=current.name, max_chars=80, key=f"project_name_{current.id}")
            if forms.button("Save", key="project_save", icon=":material/save:"):
                with frame.guarded():
                    if name.strip() != current.name:
                        projects.rename(workspace, current.id, name)
                    st.rerun()

        if not current.implied:
            forms.deletion(
                "Remove this project", f"Remove the project **{md(current.name, 60)}**?",
                "Its documents, benchmarks, queries and results are kept.",
                partial(projects.delete, workspace, current.id), key="project",
                told=f"The project {current.name} is removed.",
            )  # fmt: skip


def documents(workspace: Workspace) -> None:
    """The first step without documents: files, a folder or a path, taken as they are."""
    with st.container(border=True, key="flow"), frame.guarded():
        st.subheader(TITLE, anchor=False)
        st.markdown(
            "Does training on different queries help on **your** documents? First the documents, then the queries "
            "that people ask; a test answers."
        )
        st.markdown("**1 · Documents**")
        uploads, path = forms.source("Files", "flow_documents", None)

        with st.container(horizontal=True, vertical_alignment="center"):
            pressed = forms.button("Add documents", type="primary", icon=":material/upload_file:", key="flow_add")
            frame.link("documents", "More ways to add them")

        if pressed:
            with (
                st.spinner("Reading and checking the documents"),
                forms.opened(workspace, uploads, path) as (file, asked),
            ):
                added = adding.add(workspace, file, asked or "")
            document_views.remember(added)
            st.rerun()


def panel(workspace: Workspace, corpus: str, *, opened: bool) -> None:
    """The form, the running answer, or how one that ended early goes on; folded away unless ``opened``."""
    job = answering.latest(workspace, corpus)
    if job is not None and str(job.state) != "finished":
        with st.container(border=True, key="flow"):
            st.subheader(TITLE, anchor=False)
            job_views.live(_progress, job.active, workspace, job.id, str(job.state))
        # One that was stopped or failed may be asked for again with other settings.
        opened = False

    if trial.running(workspace, corpus) is not None:
        return

    if opened:
        place = st.container(border=True, key="flow")
        place.subheader(TITLE, anchor=False)
    else:
        place = st.expander(f"{TITLE} again", icon=":material/restart_alt:", on_change="rerun", key="flow_again")

    if opened or place.open:
        with place, ExitStack() as stack, frame.guarded():
            _form(workspace, corpus, stack)


def _progress(workspace: Workspace, job: str, drawn: str) -> None:
    """Draw the progress of the answer, or the kept results of one that ended early, with stop and resume as on Jobs."""
    with frame.guarded():
        view = jobs.show(workspace, job, with_size=False)
        if str(view.state) != drawn:
            job_views.draw_again()

        if view.active:
            st.progress(view.fraction, text=md(job_views.doing(view)))
            st.caption("It goes on if you close the page. The answer appears here when it ends.")
        else:
            st.markdown(md(jobs.sentence(view)))
            if view.failure is not None:
                message, hint, _ = jobs.failure(view)
                st.error(md(hint), title=md(message), icon=":material/error:")
            frame.remarks(jobs.outcome(workspace, job).get("notes", []), icon="savings")

        job_views.actions(workspace, view)
        frame.link("jobs", "Open its job", job=job)


def _form(workspace: Workspace, corpus: str, stack: ExitStack) -> None:
    manifest = corpora.resolve_corpus(workspace, corpus)
    st.markdown(f"**1 · Documents:** {md(manifest.name, 60)}, {count(manifest.n_documents, manifest.unit)}")
    values: dict[str, Any] = {"corpus": corpus}
    st.markdown("**2 · Queries of people**")
    values |= _asked(workspace, corpus, stack)
    st.markdown("**3 · Who writes and judges**")
    sets = queries.list_query_sets(workspace, corpus=corpus)
    first = {"generator": "openai", **endpoints.writer(workspace, corpus)}
    chosen = writing.choose_generator(workspace, sets, "flow", first)

    values |= {"generator": chosen.name, **chosen.settings}
    with st.expander("Limits and retriever", icon=":material/tune:", key="flow_limits"):
        values |= decide_answer.choose_sizes(AnswerConfig, "flow", costs=True)

    st.markdown("**4 · What it takes**")
    config = AnswerConfig.from_dict(values)

    try:
        with st.spinner("Planning"):
            planned = answering.plan(workspace, config, chosen.api_key)
    except CdpError as error:  # a form that is not filled in yet is no fault
        frame.remarks([f"{error.message} {error.hint or ''}".strip()], icon="pending")
        return

    st.info(md(planned.sentence), icon=":material/send:")

    for warning in planned.judging.warnings if planned.judging else ():
        st.warning(md(warning), icon=":material/warning:")

    config = _allowed(planned, config)
    _details(planned)

    if forms.button(TITLE, type="primary", icon=":material/play_arrow:", key="flow_start"):
        with st.spinner(planned.test.starting):
            answering.start(workspace, config, api_key=chosen.api_key)
        st.rerun()

    forms.command(answering.command(config))


def _asked(workspace: Workspace, corpus: str, stack: ExitStack) -> dict[str, Any]:
    """The queries that decide: judged ones that are there, a log, or none, which a model then imagines."""
    if trial.has_judged(workspace, corpus):
        judged = trial.of_project(workspace, corpora.resolve_corpus(workspace, corpus))[0]
        total = sum(judged.judged.values())
        st.markdown(f"{count(total, 'judged query', 'judged queries')} are there ({md(judged.name, 60)}).")
        return {}
    source = judging.asked_queries(workspace, "flow", corpus, stack)
    if not source:
        return {}
    column = judging.asked_column(workspace, source)
    _judged_already(workspace, corpus, source, column)
    return {"log": source, "query_field": column}


def _judged_already(workspace: Workspace, corpus: str, source: str, column: str) -> None:
    """Offer to take a table whose queries name the documents that answer them: no model has to judge these."""
    options = AddOptions.from_dict({"query_field": column or None})
    n = adding.n_answered(workspace, corpus, source, options)
    if not n:
        return

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Its rows name the documents that answer {count(n, 'query', 'queries')}: no model has to judge.")
        if forms.button("Use these judgments", type="primary", icon=":material/how_to_reg:", key="flow_judged"):
            document_views.remember(adding.add_queries(workspace, corpus, source, options=options), asked=True)
            st.rerun()


def _allowed(planned: AnswerPlan, config: AnswerConfig) -> AnswerConfig:
    """The settings with the time and money that it takes, where a person allows more than the limits."""
    if not planned.problem:
        return config

    st.warning(md(planned.problem), icon=":material/hourglass_top:")
    seconds = planned.test.plan.seconds
    if not st.checkbox(f"Take the time it needs ({duration(seconds)})", key="flow_more", value=False):
        return config
    return trial.allowing(config, seconds, planned.cost)


def _details(planned: AnswerPlan) -> None:
    """Draw each stage with a link to the page that does it alone, and the remarks on the test."""
    with st.expander("Each step", icon=":material/checklist:", key="flow_steps"):
        for number, (text, page) in enumerate(planned.steps, 1):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{number}. {md(text)}", width="content")
                tab = {"tab": "judge"} if page == "benchmarks" and planned.judging else {}
                frame.link(page, "Do it there", corpus=planned.config.corpus, **tab)
        frame.remarks(planned.test.notes)
