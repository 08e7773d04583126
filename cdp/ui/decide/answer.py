"""The answer on the Decide page: the sentence, the options, and "Test it on my data"."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.charts.decide import gains_over_one
from cdp.retrievers import PRESETS
from cdp.services import commands, jobs, queries, studies
from cdp.services import trial as service
from cdp.services.decide import MEASURED, NEAREST, NONE, PRIOR, Answered, Option, decide
from cdp.services.jobs import JobView
from cdp.services.synthesis import dollars
from cdp.services.trial import Trial
from cdp.studies.gains import SCALING
from cdp.studies.trial import TrialConfig
from cdp.ui import jobs as job_views
from cdp.ui.decide.rule import AdviceRequest
from cdp.ui.queries import writing
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import count, duration, interval, md, points

# In the address: the test is being planned.
OPEN = "test"

LABEL = "Test it on my data"


def test_link(corpus: str) -> None:
    """The way to the test from another page."""
    frame.link("decide", LABEL, icon=":material/experiment:", corpus=corpus, **{OPEN: "1"})


def test_asked() -> bool:
    """Whether the address asks for the test."""
    return st.query_params.get(OPEN) == "1"


def test_button(workspace: Workspace, corpus: str, *, again: bool) -> None:
    """The page's one button; nothing while a test is being planned or runs."""
    if not corpus:
        frame.page_button("documents", "Add documents to test it", "decide_corpus", icon="add")
    elif not test_asked() and service.running(workspace, corpus) is None:
        label = "Test again" if again else LABEL
        if st.button(label, type="secondary" if again else "primary", icon=":material/experiment:", key="decide_test"):
            state.write(OPEN, "1")
            st.rerun()


def test_panel(workspace: Workspace, corpus: str, benchmark: str) -> None:
    """The running test, or the plan of one where it is asked for."""
    job = service.running(workspace, corpus) if corpus else None
    if job is not None:
        with st.container(border=True, key="trial"):
            job_views.live(_progress, True, workspace, job.id, str(job.state))
    elif corpus and test_asked():
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
        writing.carry(source, "trial")
    chosen = writing.choose_generator(sets, "trial", service.last_generator(workspace, corpus))
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
        ("Time", f"about {duration(planned.seconds)}"),
        ("Price", "free" if not planned.requests else "not known" if planned.cost is None else dollars(planned.cost)),
        ("LLM requests", f"{planned.requests:,}") if planned.requests else None,
        ("Documents", f"{planned.documents:,} of {planned.documents_there:,}"),
        ("Trainings", len(planned.plan.conditions), _shape(planned)),
        ("Judged by", md(planned.judged.benchmark, 40)),
    )
    notes = list(planned.notes)
    if not planned.plan.measured:
        notes.insert(0, "The time is a guess until something was trained on this machine.")
    frame.remarks(notes)
    if planned.problem:
        config = _choice(planned)
    with st.container(horizontal=True):
        if forms.button("Start the test", type="primary", icon=":material/play_arrow:", key="trial_start"):
            with st.spinner("Starting"):
                service.start(workspace, config, api_key=chosen.api_key)
            state.write(OPEN, None)
            st.rerun()
        if st.button("Not now", type="tertiary", key="trial_close"):
            state.write(OPEN, None)
            st.rerun()
    forms.command(service.command(planned.config))


def _choice(planned: Trial) -> TrialConfig:
    """What to do about a test that takes longer or costs more than allowed: all of it, or fewer documents."""
    st.warning(md(planned.problem), icon=":material/hourglass_top:")
    whole = planned.config.replace(
        minutes=max(planned.config.minutes, math.ceil(planned.seconds / 6) / 10),
        spend=max(planned.config.spend, math.ceil(100 * (planned.cost or 0.0)) / 100),
    )
    ways = {"all": f"{planned.documents:,} documents, as it is"}
    if planned.fitting:
        ways = {"fewer": f"{planned.fitting:,} documents, within the limit", **ways}
    chosen = st.radio("Test on", list(ways), format_func=lambda way: ways[way], key="trial_size", horizontal=True)
    return whole if chosen == "all" else planned.config.replace(documents=planned.fitting)


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
        f"One and {planned.config.per_doc} diverse queries and paraphrases per document, three seeds: on the same "
        "documents, and on the same number of pairs."
    )


def _progress(workspace: Workspace, job_id: str, drawn: str) -> None:
    """How far the test is; the page is drawn again when its state changes, so that the sentence appears."""
    with frame.guarded():
        view = jobs.show(workspace, job_id, with_size=False)
        if not view.active or str(view.state) != drawn:
            st.rerun()
        shown = service.at_work(workspace, view)
        st.progress(shown.fraction, text=f"**Test running** · {md(job_views.doing(shown))}")
        st.caption("It goes on if you close the page. The answer appears here when it ends.")
        frame.link("jobs", "Its job", job=job_id)


def _failed(workspace: Workspace, corpus: str) -> None:
    """Why the newest test of the corpus has no answer, if it failed."""
    latest: JobView | None = next(
        (view for view in studies.list_studies(workspace) if view.config.get("corpus") == corpus), None
    )
    if latest is None or str(latest.state) not in ("failed", "lost"):
        return
    what, next_step = service.trouble(workspace, latest)
    with st.container(border=True, key="trial_trouble"):
        st.markdown(f":material/info: **The last test could not answer.** {md(what)}  \n{md(next_step)}")
        frame.link("jobs", "Open its job", job=latest.id)


def test_summary(workspace: Workspace, corpus: str) -> None:
    """For other pages: the test of a corpus in one line, running or to be started."""
    try:
        job = service.running(workspace, corpus)
    except CdpError:
        return
    if job is None:
        test_link(corpus)
    else:
        frame.link("decide", f"Test running: {count(job.done, 'step')} done", corpus=corpus)


# Of a table's row: all options are to be seen without scrolling in the table.
ROW_PX = 35

LOOKS = {
    MEASURED: ("science", "green", "Measured on your data"),
    NEAREST: ("near_me", "blue", "Nearest evidence"),
    PRIOR: ("menu_book", "orange", "Published evidence only"),
    NONE: ("help", "orange", "No evidence yet"),
}


def answer(workspace: Workspace, known: Answered, request: AdviceRequest) -> None:
    """The sentence, what it rests on, what contradicts it, and the one button."""
    icon, colour, label = LOOKS[known.standing]
    with st.container(border=True, key="decision"):
        st.markdown(f":{colour}-badge[:material/{icon}: {label}]")
        st.markdown(f"## {md(known.sentence)}")
        if known.contradiction:
            st.warning(md(known.contradiction), icon=":material/compare_arrows:")
        frame.remarks(known.remarks)
        with st.container(horizontal=True, vertical_alignment="center"):
            test_button(workspace, request.corpus, again=known.standing == MEASURED)
            if known.measured is not None:
                frame.link("evidence", f"The study: {md(known.measured.name, 50)}", study=known.study, tab="studies")
            for study, name in known.conflicts:
                frame.link(
                    "evidence",
                    f"Says the opposite: {md(name, 50)}",
                    icon=":material/warning:",
                    study=study,
                    tab="studies",
                )


def home_line(workspace: Workspace, corpus: str) -> None:
    """For the overview: what was measured on a corpus, in a sentence, or the way to the test."""
    known = decide(workspace, corpus=corpus, with_options=False)
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="home_decision"):
        if known.standing == MEASURED:
            st.markdown(f"**{md(known.sentence)}**", width="stretch")
            frame.link("decide", "Decide", corpus=corpus)
        else:
            st.markdown("**Next:** find out on your own documents. Nothing was measured yet.", width="stretch")
            test_summary(workspace, corpus)


def options(known: Answered) -> None:
    """The table of options, and the gains over one query as a chart with the prior behind them."""
    st.subheader("Options", anchor=False, help=frame.definition("ndcg"))
    shown = known.options
    tables.show(
        {
            "Option": [o.name for o in shown],
            "NDCG@10": [o.score for o in shown],
            "95% interval": [interval(o.interval, 1) for o in shown],
            "Gain over untrained": [_gain(o) for o in shown],
            "Price": [o.price_text for o in shown],
            "Training": [_time(o) for o in shown],
        },
        height=ROW_PX * (len(shown) + 1) + 3,
        alt="Every way to go, with its score, its difference to the untrained retriever, price and time",
        config={
            "NDCG@10": st.column_config.NumberColumn(format="%.1f", width=80),
            "Option": st.column_config.TextColumn(width=170, pinned=True),
            "Price": st.column_config.TextColumn(help=f"Of queries for the whole corpus: {known.priced_with}."),
            "Training": st.column_config.TextColumn(
                help="On the whole corpus. ≈ is estimated from the speed of smaller trainings here, or of the small "
                "retriever on two cores where there are none."
            ),
        },
    )
    gains = []
    if known.measured is not None:
        gains = [
            g
            for g in known.measured.report.of(SCALING)
            if (g.benchmark, g.retriever, g.weighting)
            == (known.measured.benchmark.name, known.measured.retriever, "none")
        ]
        where = f"{known.measured.retriever}, {known.measured.benchmark.name} {known.measured.benchmark.split}"
        st.caption(
            f"Measured with {md(where)}; \\* more than chance. Prices: estimates for {md(known.priced_with)}. Times: "
            "measured unless marked ≈."
        )
    else:
        st.caption(
            "Nothing was measured yet, so scores are empty. Prices and times are estimates, prices for "
            f"{md(known.priced_with)}."
        )
    if gains or known.band:
        listed = "; ".join(f"{g.condition} Q/Doc {g.per_doc}: {points(g.points)}" for g in gains)
        charts.show(
            gains_over_one(gains, known.band),
            key="decide_gains",
            alt=f"Points over one query per document. {listed or 'Only the published evidence.'}",
            caption="Bars: 95% intervals."
            + (" Grey band: the published evidence for such a task." if known.band else ""),
        )


def cli(request: AdviceRequest, benchmark: str) -> None:
    """The command that gives the same."""
    name, _, split = benchmark.rpartition(":")
    if name or request.corpus:
        forms.command(commands.line("decide", corpus=request.corpus, benchmark=name, split=split))


def _gain(option: Option) -> str:
    gain = option.gain
    if gain is None:
        return "–"
    return f"{points(gain.points)}{' *' if gain.significant else ''}  [{points(gain.low)}, {points(gain.high)}]"


def _time(option: Option) -> str:
    if not option.per_doc:
        return "none"
    if option.seconds is None:
        return "–"
    return f"{'' if option.timed else '≈ '}{duration(max(1.0, option.seconds))}"
