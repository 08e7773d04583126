"""Test it on my data: the button, what it takes before the start, and how it goes on."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.retrievers import PRESETS
from cdp.services import job_words, jobs, queries, studies
from cdp.services import trial as service
from cdp.services.jobs import JobView
from cdp.services.synthesis import dollars
from cdp.services.trial import Trial
from cdp.studies.trial import TrialConfig
from cdp.ui.jobs import live
from cdp.ui.queries import generators
from cdp.ui.shell import access, command, forms, frame, navigation, state, tables
from cdp.ui.shell.text import count, md

OPEN = "test"
"""In the address: the test is being planned."""

LABEL = "Test it on my data"


def link(corpus: str) -> None:
    """The way to the test from another page."""
    navigation.link("complexity", LABEL, icon=":material/experiment:", corpus=corpus, **{OPEN: "1"})


def asked() -> bool:
    """Whether the address asks for the test."""
    return st.query_params.get(OPEN) == "1"


def button(workspace: Workspace, corpus: str, *, again: bool) -> None:
    """The page's one button; nothing while a test is being planned or runs."""
    if not corpus:
        navigation.button("corpus", "Add documents to test it", "decide_corpus", icon="add")
    elif not asked() and service.running(workspace, corpus) is None:
        label = "Test again" if again else LABEL
        if st.button(label, type="secondary" if again else "primary", icon=":material/experiment:", key="decide_test"):
            state.write(OPEN, "1")
            st.rerun()


def panel(workspace: Workspace, corpus: str, benchmark: str) -> None:
    """The running test, or the plan of one where it is asked for."""
    job = service.running(workspace, corpus) if corpus else None
    if job is not None:
        with st.container(border=True, key="trial"):
            live.live(_progress, True, workspace, job.id, str(job.state))
    elif corpus and asked():
        with st.container(border=True, key="trial"), frame.guarded():
            _plan(workspace, corpus, benchmark)
    elif corpus:
        _failed(workspace, corpus)


def _plan(workspace: Workspace, corpus: str, benchmark: str) -> None:
    """What the test takes, first; then the start."""
    st.markdown(f"**{LABEL}**")
    st.caption(
        "Writes diverse queries and paraphrases for a part of the documents, trains on one and on several of each per "
        "document, and measures on judged queries what it gains over the untrained retriever and BM25."
    )
    sets = queries.list_query_sets(workspace, corpus=corpus)
    for source in ("preview", "generate"):
        generators.carry(source, "trial")
    chosen = generators.choose(sets, "trial", service.last_generator(workspace, corpus))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            retriever = _retriever()
        with st.container(width=150):
            minutes = forms.widget(TrialConfig, "minutes", key="trial")
        spend: Any = None
        if chosen.costs:
            with st.container(width=170):
                spend = forms.widget(TrialConfig, "spend", key="trial", label="At most (US dollars)")
    values = {
        "corpus": corpus,
        "benchmark": benchmark,
        "generator": chosen.name,
        **chosen.settings,
        "retriever": retriever,
    }
    values |= {name: value for name, value in (("minutes", minutes), ("spend", spend)) if value}
    config = TrialConfig.from_dict(values)
    planned = service.plan(workspace, config)
    tables.figures(
        ("Time", f"about {job_words.duration(planned.seconds)}"),
        ("Price", "free" if not planned.requests else "not known" if planned.cost is None else dollars(planned.cost)),
        ("LLM requests", f"{planned.requests:,}") if planned.requests else None,
        ("Documents", f"{planned.size.documents:,} of {planned.documents_there:,}"),
        ("Trainings", len(planned.plan.conditions), _shape(planned)),
        ("Judged by", md(planned.judged.name, 40)),
    )
    notes = list(planned.notes)
    if not planned.measured:
        notes.insert(0, "The time is a guess until something was trained on this machine.")
    frame.remarks(notes)
    with st.container(horizontal=True):
        if access.button("Start the test", type="primary", icon=":material/play_arrow:", key="trial_start"):
            with st.spinner("Starting"):
                service.start(workspace, config, api_key=chosen.api_key)
            state.write(OPEN, None)
            st.rerun()
        if st.button("Not now", type="tertiary", key="trial_close"):
            state.write(OPEN, None)
            st.rerun()
    command.show(service.command(planned.config))


def _retriever() -> str:
    """The retriever to train: one of the presets, the small one first."""
    default = str(TrialConfig.settings()["retriever"].default)
    names = {preset.name: preset.title for preset in PRESETS.values()}
    ids = sorted(names, key=lambda name: name != default)
    return st.selectbox(
        "Retriever",
        ids,
        format_func=lambda name: names[name],
        key="trial_retriever",
        persist_state="session",
        help="The small one trains in seconds and knows English. Others take longer, and most are downloaded first.",
    )


def _shape(planned: Trial) -> str:
    """What the trainings are."""
    return (
        f"Diverse queries and paraphrases, {planned.size.per_doc} per document, with the seeds {planned.size.seeds}: "
        "once on the same documents, once on the same number of pairs."
    )


def _progress(workspace: Workspace, job_id: str, drawn: str) -> None:
    """How far the test is; the page is drawn anew when its state changes, so that the sentence appears."""
    with frame.guarded():
        view = jobs.show(workspace, job_id, with_size=False)
        if not view.active or str(view.state) != drawn:
            st.rerun()
        shown = service.at_work(workspace, view)
        st.progress(shown.fraction, text=f"**Test running** · {md(live.doing(shown))}")
        st.caption("It goes on if you close the page. The answer appears here when it ends.")
        navigation.link("jobs", "Its job", job=job_id)


def _failed(workspace: Workspace, corpus: str) -> None:
    """Why the newest test of the corpus has no answer, if it failed."""
    latest: JobView | None = next(
        (view for view in studies.list_studies(workspace) if view.config.get("corpus") == corpus), None
    )
    if latest is None or str(latest.state) not in ("failed", "lost"):
        return
    trouble = service.trouble(workspace, latest)
    with st.container(border=True, key="trial_trouble"):
        st.markdown(
            f":material/info: **The last test could not answer.** {md(trouble.what)}  \n{md(trouble.next_step)}"
        )
        with st.container(horizontal=True):
            if trouble.fewer:
                link = {"clone": latest.id, "per_doc": trouble.fewer}
                navigation.link("study", f"Compare Q/Doc {trouble.fewer} instead", icon=":material/science:", **link)
            navigation.link("jobs", "Open its job", job=latest.id)


def summary(workspace: Workspace, corpus: str) -> None:
    """For other pages: the test of a corpus in one line, running or to be started."""
    try:
        job = service.running(workspace, corpus)
    except CdpError:
        return
    if job is None:
        link(corpus)
    else:
        navigation.link("complexity", f"Test running: {count(job.done, 'step')} done", corpus=corpus)
