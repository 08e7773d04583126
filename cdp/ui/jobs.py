"""The strip of running jobs, and what one job looks like while it goes on and afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from cdp.charts.training import LABELS, curve
from cdp.services import jobs
from cdp.services.jobs import JobView
from cdp.ui import charts as drawn
from cdp.ui import navigation
from cdp.ui.frame import guarded
from cdp.ui.text import count, cut, duration, label_of, md, moment, time_left
from cdp.workspace import Workspace

EVERY = "2s"
"""How often a live view looks again; only while something runs."""

LOG_BYTES = 20_000
"""How much of the log's end is shown."""

LOOKS: dict[str, tuple[str, str]] = {
    "queued": ("hourglass_empty", "gray"),
    "running": ("play_circle", "blue"),
    "stalled": ("warning", "orange"),
    "stopping": ("stop_circle", "orange"),
    "stopped": ("stop_circle", "gray"),
    "finished": ("check_circle", "green"),
    "failed": ("error", "red"),
    "lost": ("error", "red"),
}
"""Icon and colour of each state; its word always stands beside them."""

KINDS = {
    "synthesis": "Writing queries",
    "metrics": "Measuring queries",
    "training": "Training",
    "evaluation": "Evaluation",
    "study": "Study",
}
"""What each kind of job does, as shown."""


def live(draw: Callable[..., None], active: bool, *args: Any) -> None:
    """Call ``draw(*args)`` as a fragment that looks again every two seconds while ``active``, once otherwise."""
    st.fragment(draw, run_every=EVERY if active else None)(*args)


def in_order(views: Iterable[JobView]) -> list[JobView]:
    """Jobs as they take their turn: those at work, then the waiting by their place, then the ended, newest first."""

    def rank(view: JobView) -> tuple[int, int, int]:
        waiting = str(view.state) == "queued"
        return (0 if view.active and not waiting else 1 if waiting else 2, view.position or 0, -view.sequence)

    return sorted(views, key=rank)


def strip(workspace: Workspace) -> None:
    """The jobs that run now. Nothing is drawn, and no timer runs, while there are none."""
    with guarded():
        running = jobs.running(workspace)
        if running:
            live(_strip, True, workspace, states(running))


def states(views: Iterable[JobView]) -> dict[str, str]:
    """What is compared to notice that a job began, moved on or ended."""
    return {view.id: str(view.state) for view in views}


def _strip(workspace: Workspace, known: dict[str, str]) -> None:
    with guarded():
        running = in_order(jobs.running(workspace))
        if states(running) != known:
            st.rerun()
        at_work = [view for view in running if str(view.state) != "queued"]
        waiting = len(running) - len(at_work)
        st.caption(":material/progress_activity: " + _counted(len(at_work), waiting))
        for view in (at_work or running)[:3]:
            st.progress(view.fraction, text=f"{md(view.name, 44)}  \n:small[{md(doing(view))}]")
        navigation.link("jobs", "Watch" if len(running) == 1 else "All jobs", job=running[0].id)


def _counted(at_work: int, waiting: int) -> str:
    parts = [f"{at_work} running" if at_work else "", f"{waiting} waiting" if waiting else ""]
    return ", ".join(part for part in parts if part)


def doing(view: JobView) -> str:
    """A job's present state in a few words: ``training · 320 of 1,200 steps · about 2 min left``."""
    state = str(view.state)
    if state == "queued":
        place = f"place {view.position} in the queue" if view.position else ""
        return " · ".join(part for part in ("queued", place) if part)
    if not view.active:
        return state
    phase = view.phase if state == "running" and view.phase else state
    done = f"{view.done:,} of {view.total:,} {view.unit}".strip() if view.total else ""
    return " · ".join(part for part in (phase, done, time_left(view.eta_s)) if part)


def badge(state: str) -> str:
    """The state as a badge in Markdown: icon, word, colour."""
    icon, colour = LOOKS.get(state, ("help", "gray"))
    return f":{colour}-badge[:material/{icon}: {state}]"


def summary(view: JobView) -> None:
    """State, progress, time left, and what went wrong where something did."""
    facts = [KINDS.get(view.kind, label_of(view.kind))]
    if view.attempt > 1:
        facts.append(f"attempt {view.attempt}")
    if view.started:
        facts.append(f"started {moment(view.started)}")
    if view.seconds is not None:
        facts.append(f"{'running for' if view.active else 'took'} {duration(view.seconds)}")
    if view.devices:
        facts.append(", ".join(view.devices))
    st.markdown(f"{badge(str(view.state))} {md(' · '.join(facts))}")
    if view.active:
        st.progress(view.fraction, text=md(doing(view)))
        rate = f"{view.rate:,.1f} {view.unit} per second" if view.rate and view.unit else ""
        memory = f"{view.host_memory / 2**20:,.0f} MB of memory" if view.host_memory else ""
        line = " · ".join(part for part in (view.message, rate, memory) if part)
        if line:
            st.caption(md(line))
    elif view.message and view.failure is None:
        st.caption(md(view.message))
    if view.failure is not None:
        failure(view)


def failure(view: JobView) -> None:
    """What went wrong, what to do, and the last lines of the log."""
    found = view.failure or {}
    kind = str(found.get("kind", "")).replace("_", " ")
    st.error(
        md(found.get("hint") or "The log holds more."),
        title=md(found.get("message") or "The job failed."),
        icon=":material/error:",
    )
    if kind:
        st.caption(f"Kind of failure: {md(kind)}")
    tail = found.get("log_tail") or []
    lines = tail.splitlines() if isinstance(tail, str) else list(tail)
    if lines:
        with st.expander("Last lines of the log", icon=":material/receipt_long:"):
            st.code("\n".join(lines[-30:]), language=None, wrap_lines=True)


def curves(workspace: Workspace, view: JobView) -> None:
    """The live charts: the loss, and what else the worker wrote down."""
    lines = jobs.metrics(workspace, view.id)
    measures = [name for name in LABELS if any(line.get(name) is not None for line in lines)]
    if not measures:
        if view.kind == "training" and view.active:
            st.caption("The loss curve begins with the first steps.")
        return
    chosen = measures[0]
    if len(measures) > 1:
        picked = st.segmented_control(
            "Curve",
            measures,
            format_func=lambda name: LABELS[name],
            default=measures[0],
            required=True,
            key=f"curve_{view.id}",
            label_visibility="collapsed",
        )
        chosen = picked if isinstance(picked, str) else measures[0]
    last = next((line[chosen] for line in reversed(lines) if line.get(chosen) is not None), None)
    drawn.show(
        curve({cut(view.name, 60): lines}, chosen),
        key=f"curve-{chosen}",
        alt=f"{LABELS[chosen]} over the training steps; the last value is {last:.4g}." if last is not None else "Curve",
    )


def log(workspace: Workspace, view: JobView) -> None:
    """The end of the log, with a search."""
    wanted = st.text_input(
        "Search the log", type="search", key=f"log_search_{view.id}", placeholder="error, warning, step …"
    )
    if wanted:
        lines, n = jobs.search_log(workspace, view.id, wanted)
        text = "\n".join(f"{number:>6}  {line}" for number, line in lines)
        more = f", the last {len(lines)} are shown" if n > len(lines) else ""
        st.caption(f"{count(n, 'line')} with that{more}." if n else "No line holds that.")
    else:
        text = jobs.log(workspace, view.id, tail_bytes=LOG_BYTES).rstrip()
        if not text:
            st.caption("The log is empty so far.")
    if text:
        st.code(text, language=None, wrap_lines=True, height=320)


def running_list(workspace: Workspace, known: dict[str, str]) -> None:
    """The running jobs, each with its progress and a link, and the waiting ones by name. For ``live``."""
    with guarded():
        running = in_order(jobs.running(workspace))
        if states(running) != known:
            st.rerun()
        waiting = [view for view in running if str(view.state) == "queued"]
        with st.container(border=True):
            for view in running:
                if view in waiting:
                    continue
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.progress(view.fraction, text=f"**{md(view.name, 90)}**  \n{md(doing(view))}", width="stretch")
                    navigation.link("jobs", "Watch", job=view.id)
            if waiting:
                names = "  \n".join(f"{i}. {md(view.name, 90)}" for i, view in enumerate(waiting[:5], 1))
                more = f"  \nand {len(waiting) - 5} more" if len(waiting) > 5 else ""
                st.caption(f"Waiting for their turn:  \n{names}{more}")
