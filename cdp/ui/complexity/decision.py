"""The decision: one large sentence from what is known best, and every option with what it scored, costs and takes."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.charts.decide import gains_over_one
from cdp.services import commands
from cdp.services.decide import MEASURED, NEAREST, NONE, PRIOR, Answered, decide
from cdp.services.decisions import Option
from cdp.services.studies import SCALING
from cdp.ui.complexity import trial
from cdp.ui.complexity.advice import AdviceRequest
from cdp.ui.shell import charts, command, frame, navigation, tables
from cdp.ui.shell.text import duration, md, points

ROW_PX = 35
"""Of a table's row: all options are to be seen without scrolling in the table."""

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
            trial.button(workspace, request.corpus, again=known.standing == MEASURED)
            if known.measured is not None:
                navigation.link("study", f"The study: {md(known.measured.name, 50)}", study=known.study)
            for study, name in known.conflicts:
                navigation.link("study", f"Says the opposite: {md(name, 50)}", icon=":material/warning:", study=study)


def line(workspace: Workspace, corpus: str) -> None:
    """For the overview: what was measured on a corpus, in a sentence, or the way to the test."""
    known = decide(workspace, corpus=corpus, with_options=False)
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="home_decision"):
        if known.standing == MEASURED:
            st.markdown(f"**{md(known.sentence)}**", width="stretch")
            navigation.link("complexity", "Decide", corpus=corpus)
        else:
            st.markdown(
                "**Do several queries per document help on your data?** Nothing was measured yet.", width="stretch"
            )
            trial.summary(workspace, corpus)


def options(known: Answered) -> None:
    """The table of options, and the gains over one query as a chart with the prior behind them."""
    st.subheader("Options", anchor=False, help=frame.definition("ndcg"))
    shown = known.options
    tables.show(
        {
            "Option": [o.name for o in shown],
            "NDCG@10": [o.score for o in shown],
            "95% interval": [_interval(o.interval) for o in shown],
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
        command.show(commands.line("decide", corpus=request.corpus, benchmark=name, split=split))


def _interval(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.1f} to {interval[1]:.1f}"


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
