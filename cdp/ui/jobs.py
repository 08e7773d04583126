"""The Jobs page, the strip of running jobs: progress, live curves, log, stop, resume with keys, what was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.job_kind import BENCHMARK, CORPUS, QUERY_SET, RESULT, JobKind
from cdp.base.text import SEPARATOR, capital, name_and_split
from cdp.base.workspace import Workspace, now
from cdp.charts.results import LABELS, curves
from cdp.services import benchmarks, commands, corpora, evaluation, jobs, queries, tuning
from cdp.services.jobs import JobView
from cdp.services.jobs import doing as doing
from cdp.synthesis import pricing
from cdp.ui.shell import charts as drawn
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.frame import guarded
from cdp.ui.shell.tables import count, cut, duration, label_of, md, moment, size

# How often a live view looks again while something runs, and how often a tab looks whether something began elsewhere.
EVERY, AT_REST = "2s", "5s"

LOG_BYTES = 20_000

# Icon and colour of each state; its word always stands beside them.
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


def live(draw: Callable[..., None], active: bool, *args: Any) -> None:
    """Call ``draw(*args)`` as a fragment that looks again every two seconds while ``active``, once otherwise."""
    st.fragment(draw, run_every=EVERY if active else None)(*args)


def in_order(views: Iterable[JobView]) -> list[JobView]:
    """Jobs as they take their turn: those at work, then the waiting by their place, then the ended, newest first."""

    def rank(view: JobView) -> tuple[int, int, int]:
        turn = 2
        if str(view.state) == "queued":
            turn = 1
        elif view.active:
            turn = 0
        return turn, view.position or 0, -view.sequence

    return sorted(views, key=rank)


# Of a session: what it saw when it was last drawn (``_Seen``), the jobs that ended since the person last did something
# {id: state}, and whether the page draws itself again because a job moved on.
SEEN, ENDED, BY_ITSELF = "jobs_seen", "jobs_ended", "jobs_drawn_again"


@dataclass(frozen=True)
class _Seen:
    """What ``jobs.changed`` said, at which time, and the jobs that were at work."""

    changed: tuple[int, ...]
    time: str
    at_work: Set[str]


def news(workspace: Workspace) -> tuple[str, str]:
    """Return the beginning of the tab's title and the name of its icon, by the jobs that ended since the person last
    did something here; both empty without any."""
    memory, before = st.session_state, st.session_state.get(SEEN)
    at_work = {view.id for view in jobs.list_active(workspace)}
    seen = memory[SEEN] = _Seen(jobs.changed(workspace), now(), at_work)
    new: dict[str, str] = {}

    if before is not None and before.changed != seen.changed:
        for view in jobs.list_jobs(workspace):
            if not view.active and (view.id in before.at_work or view.ended >= before.time):
                new[view.id] = str(view.state)

    by_itself = memory.pop(BY_ITSELF, False)
    if not by_itself:
        memory[ENDED] = new
    elif new:
        memory[ENDED] = {**memory.get(ENDED, {}), **new}

    told = Counter(memory.get(ENDED, {}).values())
    failed = told["failed"] + told["lost"]
    if failed:
        return f"✗ {failed} failed", "icon-failed"
    if told["finished"]:
        return f"✓ {told['finished']} finished", "icon-finished"
    return "", ""


def draw_again() -> None:
    """Draw the page again because a job moved on, not because the person did something."""
    st.session_state[BY_ITSELF] = True
    st.rerun()


def strip(workspace: Workspace) -> None:
    """The jobs that run now; the page is drawn again when one begins, moves on or ends, in whichever tab or process."""
    with guarded():
        running = jobs.list_active(workspace)
        st.fragment(_strip, run_every=EVERY if running else AT_REST)(workspace, _state(workspace, running))


def _state(workspace: Workspace, views: Iterable[JobView]) -> tuple[Any, ...]:
    """Return a value that changes when a job begins, moves on or ends."""
    return (jobs.changed(workspace), {view.id: str(view.state) for view in views})


def _strip(workspace: Workspace, drawn: tuple[Any, ...]) -> None:
    with guarded():
        running = in_order(jobs.list_active(workspace))
        if _state(workspace, running) != drawn:
            draw_again()

        if not running:
            return

        at_work = [view for view in running if str(view.state) != "queued"]
        waiting = len(running) - len(at_work)
        counted = []
        if at_work:
            counted.append(f"{len(at_work)} running")
        if waiting:
            counted.append(f"{waiting} waiting")
        st.caption(f":material/progress_activity: {', '.join(counted)}")

        for view in (at_work or running)[:3]:
            name = md(view.name, 44)
            other = state.elsewhere(workspace, view.id)
            if other:
                name += f" (project {md(other.name, 30)})"
            st.progress(view.fraction, text=f"{name}  \n:small[{md(doing(view))}]")

        label = "Watch" if len(running) == 1 else "All jobs"
        _watch(workspace, running[0], label)


def _watch(workspace: Workspace, view: JobView, label: str = "Watch") -> None:
    """Draw the link to a job; the link names its project if another one is on screen."""
    other = state.elsewhere(workspace, view.id)
    params: dict[str, Any] = {"job": view.id}
    if other:
        params["project"] = other.id
    frame.link("jobs", label, **params)


def active_on(workspace: Workspace, query_sets: Collection[str], *kinds: str) -> list[JobView]:
    """Return the active jobs of these kinds on these query sets (by id)."""
    active = (view for view in jobs.list_active(workspace) if view.kind in kinds)
    return [view for view in active if view.config.get("query_set") in query_sets]


def running_note(workspace: Workspace, views: Sequence[JobView]) -> None:
    """A line on jobs at work; the menu shows their progress, and draws the page again when one ends."""
    if views:
        with st.container(horizontal=True, vertical_alignment="center"):
            names = ", ".join(md(view.name, 60) for view in views[:5])
            st.caption(f":material/progress_activity: Running: {names}.", width="content")
            _watch(workspace, views[0])


def _summary(view: JobView) -> None:
    facts = [jobs.activity(view.kind)]
    if view.attempt > 1:
        facts.append(f"attempt {view.attempt}")
    if view.started:
        facts.append(f"started {moment(view.started)}")
    if view.active and view.seconds is not None:
        facts.append(f"running for {duration(view.seconds)}")

    facts += jobs.where(view)
    icon, colour = LOOKS.get(str(view.state), ("help", "gray"))
    st.markdown(f":{colour}-badge[:material/{icon}: {view.state}] {md(SEPARATOR.join(facts))}")
    st.markdown(md(jobs.sentence(view)))

    if view.active:
        st.progress(view.fraction, text=md(doing(view)))

    if view.failure is not None:
        message, hint, lines = jobs.failure(view)
        st.error(md(hint), title=md(message), icon=":material/error:")
        if lines:
            st.caption("Last lines of the log")
            st.code("\n".join(lines[-12:]), language=None, wrap_lines=True)


def bill(known: pricing.Bill | None) -> None:
    """Draw what writing queries has cost so far, and the requests that were paid without an answer."""
    if known is not None:
        st.caption(md(known.told))
        if known.unanswered:
            st.caption(f":material/warning: {md(known.unanswered)}")


def _figures(workspace: Workspace, view: JobView) -> None:
    if str(view.state) == "queued":
        return
    readings = jobs.figures(jobs.latest(workspace, view.id))
    if not readings and (rate := jobs.rate(view)):
        value, _, unit = rate.partition(" ")
        readings.append((unit, value))
    if readings:
        with st.grid(len(readings), min_column_width=120):
            for name, value in readings:
                st.metric(capital(name), value)


def _curve(workspace: Workspace, job: str) -> bool:
    """The curves of a job, one measure at a time; False where none was written."""
    latest = jobs.latest(workspace, job)
    measures = {name: title for name, title in LABELS.items() if name in latest}
    if not measures:
        return False

    chosen = next(iter(measures))

    if len(measures) > 1:
        chosen = str(forms.segments("Curve", measures, key=f"curve_{job}", hidden=True))

    others = _beside(workspace, job, chosen)
    name = jobs.show(workspace, job, with_size=False).name
    shown = {name: job, **others}
    drawn.show(
        curves({title: jobs.curve(workspace, other, chosen) for title, other in shown.items()}, LABELS[chosen]),
        key=f"curve_{job}-{chosen}",
        alt=f"{LABELS[chosen]} over the training steps. Last value: {latest[chosen]:.4g}"
        + f", beside {', '.join(others)}" * bool(others),
    )

    return True


# So many curves can be told from each other.
MAX_CURVES = 6
# Of the newest trainings; a live view reads their curves every two seconds.
OFFERED_BESIDE = 30


def _beside(workspace: Workspace, job: str, measure: str) -> dict[str, str]:
    """Return the other jobs of the project, {name: id}, whose curves the person wants over this one."""
    trained = state.of_project(workspace, "job", jobs.list_jobs(workspace, ["training"]))[:OFFERED_BESIDE]
    able = [view for view in trained if view.id != job and measure in jobs.latest(workspace, view.id)]
    if not able:
        return {}
    titles = {view.id: f"{view.name} ({moment(view.created)})" for view in able}
    chosen = st.multiselect(
        "Beside", list(titles), format_func=titles.__getitem__, max_selections=MAX_CURVES - 1, key=f"beside_{job}",
        placeholder="Other trainings to compare", label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    return {titles[other]: other for other in chosen if other in titles}


def start_another(workspace: Workspace) -> None:
    """A form for the kinds of job that have no screen of their own and whose inputs are there; nothing without one."""
    offered = {name: kind for name, kind in jobs.kinds().items() if _can_start(workspace, kind)}
    if not offered:
        return

    with st.expander("Start another kind of job", icon=":material/add:", key="start_another"), frame.guarded():
        name = str(forms.pick("Kind", {name: kind.title for name, kind in offered.items()}, key="start_kind"))
        kind = offered[name]
        st.caption(md(kind.help))
        named = {setting: _named(workspace, kind, setting) for setting in kind.inputs}
        chosen = forms.fields(kind.settings, key=f"start_{name}", leave_out=kind.inputs)
        pressed = forms.button("Start the job", key=f"start_{name}_button", icon=":material/play_arrow:")
        config = kind.settings.from_dict({**chosen, **named})
        forms.command(jobs.command(kind, config))

        if pressed:
            begin = WITHOUT_SCREEN.get(name) or partial(jobs.start, kind=name)
            frame.go("jobs", job=begin(workspace, config=config))


def _can_start(workspace: Workspace, kind: JobKind) -> bool:
    """Whether a kind of job has no screen of its own, and the project one of each input that it needs."""
    if kind.command and kind.name not in WITHOUT_SCREEN:
        return False

    about = kind.settings.settings()
    needed = [setting for setting in kind.inputs if about[setting].required]
    return all(_listed_inputs(workspace, kind, setting) for setting in needed)


def _listed_inputs(workspace: Workspace, kind: JobKind, setting: str) -> list[Any]:
    """The things of the project that a setting may name."""
    param, listed = LISTED_INPUTS.get(kind.inputs[setting], ("query_set", queries.list_query_sets))
    return state.of_project(workspace, param, listed(workspace))


def _named(workspace: Workspace, kind: JobKind, setting: str) -> str:
    """The choice of an input among those of the project."""
    things = _listed_inputs(workspace, kind, setting)
    titles = {getattr(thing, "id", thing.name): thing.name for thing in things}
    about, key = kind.settings.settings()[setting], f"start_{kind.name}_{setting}"
    none = "" if about.required else "none"
    return str(forms.pick(label_of(setting), titles, key=key, placeholder=none, help=md(about.help)) or "")


# Where a form finds the inputs of a job: the kind of thing in a project, and its list; query sets for all others.
LISTED_INPUTS: dict[str, tuple[str, Callable[[Workspace], Sequence[Any]]]] = {
    CORPUS: ("corpus", corpora.list_corpora),
    BENCHMARK: ("benchmark", benchmarks.list_benchmarks),
}

# Kinds with a command and no screen: choosing a prompt (Algorithm 1), which starts several jobs, and hard negatives.
WITHOUT_SCREEN: dict[str, Callable[..., str] | None] = {"prompts": tuning.start, "mining": None}

RESUMABLE = ("stopped", "failed", "lost")
# Kinds that train several conditions, and answer by them.
TESTS = ("study", "answer")
# How many jobs the list to choose from holds; the table below it holds all.
LISTED = 500


def choose(all_jobs: Sequence[JobView]) -> JobView:
    """Ask for the job to open. At first: the address's, the one chosen before, else one that runs, else the newest."""
    by_id = {view.id: view for view in in_order(all_jobs)}
    offered = dict.fromkeys(islice(by_id, LISTED))
    for wanted in (st.query_params.get("job"), state.kept("job")):
        if wanted in by_id:
            offered[wanted] = None

    names = {job: f"{by_id[job].name} ({_said(by_id[job])})" for job in offered}
    return by_id[str(state.choose("Job", names, "job", what="job"))]


def _said(view: JobView) -> str:
    """``training, 5 min ago``"""
    return f"{jobs.activity(view.kind).lower()}, {moment(view.created)}"


def one(workspace: Workspace, job: JobView) -> None:
    """The chosen job; it looks again every two seconds while the job is active, without the rest of the page."""
    with st.container(border=True):
        live(_live, job.active, workspace, job.id, str(job.state))

    finished = str(job.state) == "finished"
    title = f"{count(job.n_failures, 'item')} failed"
    if finished:
        title += "; all others were processed"

    retry = partial(_retry, workspace, job) if jobs.may_retry(job) else None
    load = partial(jobs.failed, workspace, job.id)
    forms.failed(job.n_failures, title, load, key=f"failed_{job.id}", retry=retry)

    if finished:
        _results(workspace, job)
    _log(workspace, job)
    _settings(workspace, job)


def _live(workspace: Workspace, job_id: str, drawn: str) -> None:
    with frame.guarded():
        view = jobs.show(workspace, job_id, with_size=False)
        if str(view.state) != drawn:
            draw_again()  # the timer, the log and the table of all jobs change with the state

        st.markdown(f"#### {md(view.name, 120)}")
        _summary(view)
        actions(workspace, view)

        if view.kind == "synthesis":
            bill(pricing.bill_of_job(workspace, view.id))

        if view.kind not in TESTS:  # their trainings are points of no curve
            _figures(workspace, view)
            if not _curve(workspace, view.id) and view.kind == "training" and str(view.state) == "running":
                st.caption("The loss curve appears after the first steps.")

        frame.remarks(jobs.outcome(workspace, view.id).get("notes", []), icon="warning")


def actions(workspace: Workspace, view: JobView) -> None:
    """Stop, resume, where to look at what it made, delete."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if view.active and str(view.state) != "stopping":
            with st.popover("Stop", icon=":material/stop_circle:", key=f"stop_open_{view.id}"):
                st.markdown("Stop this job? Its progress and model are saved, and you can resume it later.")
                if forms.button("Stop the job", key=f"stop_{view.id}", type="primary"):
                    jobs.stop(workspace, view.id)
                    st.rerun()

        if str(view.state) in RESUMABLE:
            _resume(workspace, view)

        _where_next(workspace, view)

        if not view.active:
            total = size(jobs.show(workspace, view.id).size or 0)
            note = ""
            if view.kind == "synthesis":
                note = "The query set that it wrote is kept."

            question = f"Delete this job and everything it created ({total})?"
            delete = partial(jobs.delete, workspace, view.id)
            forms.deletion("Delete", question, note, delete, key=view.id, param="job")


def _resume(workspace: Workspace, view: JobView) -> None:
    """Draw how to resume from the last checkpoint. Ask again for keys, which are never stored, and for consent to what
    a job from elsewhere reads outside the workspace."""
    try:
        outside = jobs.to_allow(workspace, view.id)
    except CdpError as error:  # a button would only repeat the error
        frame.remarks([f"This page may not resume it. {error}"])
        return

    missing = jobs.missing_secrets(workspace, view.id)
    typed: dict[str, str] = {}
    about = {"icon": ":material/resume:", "help": "Continue from the last checkpoint."}
    label = "Resume"
    place: AbstractContextManager[Any] = nullcontext()
    if missing or outside:
        place = st.popover("Resume", key=f"resume_open_{view.id}", **about)

    with place, frame.guarded():
        if outside:
            st.markdown("This job was started elsewhere. Outside this workspace it would read or ask:")
            st.markdown(_outside(outside))
        if missing:
            label = "Resume the job"
            st.markdown("This job needs its API key again, because keys are never stored.")
        for name in missing:
            field = {"CDP_API_KEY": "API key"}.get(name, name)
            typed[name] = forms.secret(field, key=f"secret_{name}_{view.id}")

        if outside:
            label = "Allow and resume"
        if forms.button(label, key=f"resume_{view.id}", disabled=not all(typed.values()), **about):
            jobs.resume(workspace, view.id, env_secrets=typed, allow=list(chain(*outside.values())))
            st.rerun()


def _outside(named: Mapping[str, Iterable[str]]) -> str:
    """The values of settings that lead outside the workspace, a line each."""
    lines = []
    for name, values in named.items():
        for value in values:
            # As Python writes it: no character hides in it or turns its direction.
            lines.append(f"- {md(label_of(name))}: {md(repr(value))}")
    return "\n".join(lines)


def _retry(workspace: Workspace, view: JobView, item: str) -> None:
    """The button that tries the chosen failed item again, or all of them; with the keys that are never stored."""
    typed = {
        name: forms.secret("API key", key=f"retry_{name}_{view.id}")
        for name in jobs.missing_secrets(workspace, view.id)
    }
    label, items = "Try all of them again", []
    if item:
        label, items = f"Try {cut(item, 40)} again", [item]

    about = "Finished items are kept and not paid for again."
    ready = all(typed.values())
    if forms.button(md(label), key=f"retry_{view.id}", icon=":material/replay:", help=about, disabled=not ready):
        jobs.retry(workspace, view.id, items, env_secrets=typed)
        st.rerun()
    forms.command(commands.line("jobs", "retry", view.id, item=item, wait=True))


def _where_next(workspace: Workspace, view: JobView) -> None:
    """The button from what a job made to where it is looked at: of all that can be done with the job, the first."""
    if str(view.state) != "finished":
        return

    def button(page: str, label: str, icon: str, **params: str | list[str]) -> None:
        frame.page_button(page, label, f"next_{view.id}", icon=icon, params=params)

    query_set, kind = str(view.config.get("query_set", "")), jobs.kinds().get(view.kind)

    if view.kind == "training":
        evaluations = [
            job for job in jobs.list_jobs(workspace, ["evaluation"]) if job.config.get("retriever") == view.id
        ]
        if waiting := [job for job in evaluations if job.active]:  # the menu draws the page again when they end
            st.caption(f":material/hourglass_empty: {md(waiting[0].name)}: {waiting[0].state}", width="content")
        elif evaluations:
            button("compare", "Compare results", "leaderboard", **evaluation.compared(evaluations[0]))

        frame.link("launch", "Evaluate this retriever", icon=":material/speed:", tab="evaluation", judged=view.id)
    elif view.kind == "evaluation":
        button("compare", "See the result", "leaderboard", **evaluation.compared(view))
    elif view.kind == "synthesis":
        written = jobs.written_set(view)
        button("queries", "Measure the queries", "scatter_plot", sets=[written], tab="quality")
        frame.link("launch", "Train on these queries", query_set=written)
    elif view.kind == "metrics":
        button("queries", "See the measures", "scatter_plot", sets=[query_set], tab="quality")
    elif view.kind == "round-trip":
        button("queries", "See the ranks", "rate_review", query_set=query_set, tab="review")
    elif kind is not None and kind.makes == QUERY_SET:
        made = str(jobs.outcome(workspace, view.id).get("query_set") or query_set)
        button("queries", "Review the new set", "rate_review", query_set=made, tab="review")
        frame.link("launch", "Train on the new set", query_set=made)
    elif view.kind == "judging":
        outcome = jobs.outcome(workspace, view.id)
        made = str(outcome.get("benchmark"))
        button("benchmarks", "Label some queries", "edit", tab="label", judged_benchmark=made)
        if outcome.get("judged"):  # else it waits for labels
            frame.link("decide", "Test it on my data", icon=":material/experiment:", target_benchmark=made, test="1")
            frame.link("launch", "Evaluate a retriever on it", tab="evaluation", on=[f"{made}/test"])
    elif view.kind in TESTS and view.config.get("corpus"):
        about = {"corpus": str(view.config["corpus"])}
        if named := view.config.get("benchmarks") or view.config.get("benchmark"):
            about["target_benchmark"] = name_and_split(str(named).partition(",")[0])[0]
        button("decide", "See what it decides", "balance", **about)
        frame.link("evidence", "Read the findings", study=view.id, tab="studies")
    elif view.kind == "study":
        button("evidence", "Read the findings", "science", study=view.id, tab="studies")


def _results(workspace: Workspace, job: JobView) -> None:
    """Draw the results of a finished job, as the command line lists them."""
    found = jobs.outcome(workspace, job.id)
    shown = {label_of(name): value for name, value in jobs.in_words(workspace, found, state.scope(workspace))}
    kind = jobs.kinds().get(job.kind)
    # Kinds with a screen of their own show their results there; those of evaluations stand here too.
    opened = kind is None or not kind.command or kind.makes == RESULT
    if shown:
        with st.expander("Results", icon=":material/fact_check:", key=f"results_{job.id}", expanded=opened):
            columns = {"Result": list(shown), "Value": list(shown.values())}
            tables.show(columns, height="content", alt="The results of this job")


def _log(workspace: Workspace, job: JobView) -> None:
    folded = st.expander("Log", icon=":material/receipt_long:", on_change="rerun", key=f"log_{job.id}")
    if folded.open:
        with folded:
            live(_log_body, job.active, workspace, job.id, job.active)


def _log_body(workspace: Workspace, job_id: str, follow: bool) -> None:
    """The end of the log; ``follow`` keeps its newest line in sight."""
    with frame.guarded():
        text = jobs.log(workspace, job_id, tail_bytes=LOG_BYTES).rstrip()
        height = 340 if text else "content"
        with st.container(height=height, autoscroll=follow):
            st.code(text or "The log is empty so far.", language=None, wrap_lines=True)


def _settings(workspace: Workspace, job: JobView) -> None:
    with st.expander("Settings", icon=":material/tune:", key=f"settings_{job.id}"):
        given = ((name, value) for name, value in job.config.items() if value not in (None, ""))
        rows = [{"Setting": label_of(name), "Value": str(value)} for name, value in given]
        tables.show(tables.by_title(rows), height="content", alt="The settings of this job")
        st.caption("Settings that are not listed are empty or use the retriever's own values.")

    again = jobs.again(job)
    shown = [commands.line("jobs", "show", job.id), commands.line("jobs", "logs", job.id, "-f"), *again]

    if job.active:
        shown += [commands.line("jobs", "wait", job.id), commands.line("jobs", "stop", job.id)]
    else:
        shown += [commands.line("jobs", "resume", job.id, wait=True)] * (str(job.state) in RESUMABLE)
        shown.append(commands.line("jobs", "delete", job.id, yes=True))

    if job.kind == "prompts":
        shown.append(commands.line("prompts", "show", job.id))

    if job.has_model and str(job.state) == "finished":
        corpus = jobs.outcome(workspace, job.id).get("corpus") or None  # without one, only dense retrievers are served
        shown += [
            commands.line("search", "QUERY", retriever=job.id),
            commands.line("serve", job.id, corpus=corpus),
            commands.line("models", "push", job.id, "OWNER/NAME"),
            commands.line("models", "export", job.id, "FOLDER"),
        ]

    forms.command(*shown)


def listing(all_jobs: Sequence[JobView]) -> None:
    """All jobs; choosing one opens it."""
    st.subheader("All jobs", anchor=False)
    used = tables.filled(tables.by_title(map(_listed, all_jobs)), "State", "Job")
    row = tables.pick_row(used, alt="All jobs; choose one to open it", key="jobs_table", width={"Job": "large"})
    if row is not None and all_jobs[row].id != st.session_state.get("jobs_opened"):
        st.session_state["jobs_opened"] = all_jobs[row].id
        state.keep("job", all_jobs[row].id)
        st.query_params["job"] = all_jobs[row].id
        st.rerun()


def _listed(view: JobView) -> dict[str, Any]:
    lasted = ""
    if not view.active:  # progress of active jobs is in the live card and the menu; this table is not redrawn
        lasted = duration(view.seconds)

    return {
        "State": str(view.state),
        "Queue position": view.position,
        "Job": view.name,
        "Kind": jobs.activity(view.kind),
        "Duration": lasted,
        "Created": moment(view.created),
        "Failed items": view.n_failures or None,
        "Error": (view.failure or {}).get("message", ""),
    }
