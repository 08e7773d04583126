"""The strip of running jobs, and what one job looks like while it goes on and afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.charts.results import LABELS, curve
from cdp.services import job_words, jobs
from cdp.services.job_words import KINDS as KINDS
from cdp.services.job_words import doing as doing
from cdp.services.jobs import JobView
from cdp.ui.shell import charts as drawn
from cdp.ui.shell import forms, navigation, project
from cdp.ui.shell.frame import guarded
from cdp.ui.shell.text import cut, duration, label_of, md, moment

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
        running = jobs.list_active(workspace)
        if running:
            live(_strip, True, workspace, states(running))


def states(views: Iterable[JobView]) -> dict[str, str]:
    """What is compared to notice that a job began, moved on or ended."""
    return {view.id: str(view.state) for view in views}


def _strip(workspace: Workspace, drawn_states: dict[str, str]) -> None:
    with guarded():
        running = in_order(jobs.list_active(workspace))
        if states(running) != drawn_states:
            st.rerun()
        at_work = [view for view in running if str(view.state) != "queued"]
        waiting = len(running) - len(at_work)
        st.caption(":material/progress_activity: " + _counted(len(at_work), waiting))
        for view in (at_work or running)[:3]:
            other = project.elsewhere(workspace, view.id)
            whose = f" (project {md(other.name, 30)})" if other else ""
            st.progress(view.fraction, text=f"{md(view.name, 44)}{whose}  \n:small[{md(doing(view))}]")
        _watch(workspace, running[0], "Watch" if len(running) == 1 else "All jobs")


def _watch(workspace: Workspace, view: JobView, label: str = "Watch") -> None:
    """The link to a job, with its project where that is another one than that on screen."""
    other = project.elsewhere(workspace, view.id)
    if other is None:
        navigation.link("jobs", label, job=view.id)
    else:
        navigation.link("jobs", label, job=view.id, project=other.id)


def _counted(at_work: int, waiting: int) -> str:
    parts = [f"{at_work} running" if at_work else "", f"{waiting} waiting" if waiting else ""]
    return ", ".join(part for part in parts if part)


def badge(state: str) -> str:
    """The state as a badge in Markdown: icon, word, colour."""
    icon, colour = LOOKS.get(state, ("help", "gray"))
    return f":{colour}-badge[:material/{icon}: {state}]"


def summary(view: JobView) -> None:
    """State, what it means, progress with the time left, and what went wrong where something did."""
    facts = [KINDS.get(view.kind, label_of(view.kind))]
    if view.attempt > 1:
        facts.append(f"attempt {view.attempt}")
    if view.started:
        facts.append(f"started {moment(view.started)}")
    if view.active and view.seconds is not None:
        facts.append(f"running for {duration(view.seconds)}")
    facts += [name if name != "cpu" else "CPU" for name in view.devices]
    facts += [where for where in [job_words.where(view)] if where]
    st.markdown(f"{badge(str(view.state))} {md(' · '.join(facts))}")
    st.markdown(md(job_words.sentence(view)))
    if view.active:
        st.progress(view.fraction, text=md(doing(view)))
    if view.failure is not None:
        failure(view)


def failure(view: JobView) -> None:
    """What went wrong, what to do, and the last lines of the log."""
    message, hint, lines = job_words.failure(view)
    st.error(md(hint), title=md(message), icon=":material/error:")
    if lines:
        st.caption("Last lines of the log")
        st.code("\n".join(lines[-12:]), language=None, wrap_lines=True)


def figures(workspace: Workspace, view: JobView) -> None:
    """The newest value of each live measure: of a training its loss and what goes with it, of others their memory."""
    if str(view.state) == "queued":
        return
    readings = job_words.figures(jobs.latest(workspace, view.id))
    if view.active:
        there = {name for name, _ in readings}
        rate = job_words.rate(view)
        if rate and "pairs per second" not in there:
            value, _, unit = rate.partition(" ")
            readings.append((unit, value))
        readings += [(name, value) for name, value in job_words.memory(view) if name not in there]
    if readings:
        with st.grid(len(readings), min_column_width=120):
            for name, value in readings:
                st.metric(name[:1].upper() + name[1:], value)


def curves(workspace: Workspace, view: JobView) -> None:
    """The live charts: the loss, and what else the worker wrote down."""
    written = jobs.latest(workspace, view.id)
    measures = [name for name in LABELS if name in written]
    if not measures:
        if view.kind == "training" and str(view.state) == "running":
            st.caption("The loss curve appears after the first steps.")
        return
    chosen = choose_curve(measures, key=f"curve_{view.id}")
    logged = jobs.curve(workspace, view.id, chosen)
    lines = [{"step": step, chosen: value} for step, value in zip(logged.steps, logged.values, strict=True)]
    thinned = ""
    if logged.n > len(logged.steps):
        thinned = f"{logged.n:,} points, reduced to the lowest and highest of each interval."
    # A study writes down the score of each of its trainings.
    x, y = ("training", "NDCG@10 (%)") if view.kind == "study" else ("step", LABELS[chosen])
    drawn.show(
        curve({cut(view.name, 60): lines}, chosen, x=x, y=y),
        key=f"curve-{chosen}",
        alt=f"{y} over the {x}s; the last value is {written[chosen]:.4g}.",
        caption=thinned,
    )


def choose_curve(measures: Sequence[str], *, key: str) -> str:
    """Which of a training's curves is drawn; nothing is asked where there is one."""
    titles = {name: LABELS[name] for name in measures}
    return measures[0] if len(measures) == 1 else str(forms.segments("Curve", titles, key=key, hidden=True))


def log(workspace: Workspace, view: JobView, *, follow: bool = False) -> None:
    """The end of the log; ``follow`` keeps its newest line in sight."""
    text = jobs.log(workspace, view.id, tail_bytes=LOG_BYTES).rstrip()
    if not text:
        st.caption("The log is empty so far.")
        return
    with st.container(height=340, autoscroll=follow):
        st.code(text, language=None, wrap_lines=True)


def running_list(workspace: Workspace, drawn_states: dict[str, str]) -> None:
    """The running jobs, each with its progress and a link, and the waiting ones by name. For ``live``."""
    with guarded():
        running = in_order(jobs.list_active(workspace))
        if states(running) != drawn_states:
            st.rerun()
        waiting = [view for view in running if str(view.state) == "queued"]
        with st.container(border=True):
            for view in running:
                if view in waiting:
                    continue
                with st.container(horizontal=True, vertical_alignment="center"):
                    other = project.elsewhere(workspace, view.id)
                    whose = f" (project {md(other.name, 60)})" if other else ""
                    text = f"**{md(view.name, 90)}**{whose}  \n{md(doing(view))}"
                    st.progress(view.fraction, text=text, width="stretch")
                    _watch(workspace, view)
            if waiting:
                names = "  \n".join(f"{i}. {md(view.name, 90)}" for i, view in enumerate(waiting[:5], 1))
                more = f"  \nand {len(waiting) - 5} more" if len(waiting) > 5 else ""
                st.caption(f"Waiting in the queue:  \n{names}{more}")
