"""Planning a study on the screen: a form filled from what is there or from a ready-made plan, and what it comes to."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import benchmarks, commands, corpora, queries, studies, training
from cdp.services.studies import StudyConfig, StudyPlan
from cdp.services.synthesis import dollars
from cdp.synthesis.methods import METHODS
from cdp.ui.jobs import clone
from cdp.ui.launch import leakage as leaking
from cdp.ui.queries import incomplete
from cdp.ui.shell import access, command, forms, navigation, project, state, tables
from cdp.ui.shell.text import md

LISTS = ("benchmarks", "query_sets", "corpus", "methods", "weightings", "retrievers")
"""Fields that are chosen from what is there instead of typed."""

OWN = "Empty plan"


def asked() -> str:
    """The ready-made plan that a link asks for (``?plan=cw-weighting``); empty without one."""
    name = st.query_params.get("plan", "")
    return name if name in {plan.name for plan in studies.ready_made()} else ""


def asked_changes() -> dict[str, str]:
    """Settings that a link gives on top of its plan (``?plan=qdoc-scaling&per_doc=1, 5``); others are not looked at."""
    names = StudyConfig.settings()
    return {name: value for name, value in st.query_params.to_dict().items() if name in names and value}


def choose(workspace: Workspace) -> StudyConfig | None:
    """A ready-made plan as a start, then the form; None while something is missing."""
    ready = {plan.name: plan for plan in studies.ready_made()}
    wanted = asked()
    start = st.selectbox(
        "Template",
        [OWN, *ready],
        index=[OWN, *ready].index(wanted) if wanted else 0,
        format_func=lambda name: ready[name].title if name in ready else OWN,
        key="study_start",
        persist_state="session",
        help="A template fills in the form; you can change everything.",
    )
    first: dict[str, Any] = {}
    if start in ready:
        st.caption(md(ready[start].about))
        changes = asked_changes() if start == wanted else {}
        first = studies.read_plan(start, changes).to_dict()
        key = f"study_{start}_{zlib.crc32(repr(sorted(changes.items())).encode()):08x}" if changes else f"study_{start}"
    else:
        key = f"study_{start}"
    cloned, suffix = clone.first(workspace, "study")
    if cloned:
        changes = asked_changes()
        first, key = {**cloned, **changes}, f"study{suffix}_{zlib.crc32(repr(sorted(changes.items())).encode()):08x}"
    settings = _from_lists(workspace, first, key)
    settings |= forms.fields(StudyConfig, key=key, leave_out=LISTS, values=first)
    if not settings.get("benchmarks") or not (settings.get("query_sets") or settings.get("methods")):
        st.caption("Select benchmarks, and query sets or methods to train on.")
        return None
    return StudyConfig.from_dict({name: value for name, value in settings.items() if value is not None})


def _from_lists(workspace: Workspace, first: dict[str, Any], key: str) -> dict[str, Any]:
    """The fields that name what is in the workspace."""
    scope = project.scope(workspace)
    benchmark_splits = [
        f"{info.name}:{split}"
        for info in scope.keep("benchmark", benchmarks.list_benchmarks(workspace))
        for split in info.splits
    ]
    query_sets = [q for q in scope.keep("query_set", queries.list_query_sets(workspace)) if q.n_queries]
    sets = incomplete.names(workspace, query_sets)
    by_name = {q.name: q.id for q in reversed(query_sets)}
    corpus_names = {c.id: c.name for c in scope.keep("corpus", corpora.list_corpora(workspace))}
    corpus_ids = {name: corpus_id for corpus_id, name in corpus_names.items()}
    wanted = _split(first.get("query_sets"))
    _say_missing("benchmarks", _split(first.get("benchmarks")), benchmark_splits)
    _say_missing("query sets", wanted, [*sets, *by_name])
    methods = [m.name for m in METHODS.values()]
    with st.grid(2, min_column_width=260):
        chosen: dict[str, Any] = {
            "benchmarks": _many(
                "Benchmarks", {p: p for p in benchmark_splits}, _split(first.get("benchmarks")), f"{key}_b"
            ),
            "query_sets": _many("Query sets", sets, [by_name.get(n, n) for n in wanted], f"{key}_q"),
            "methods": _many("Methods", {m: m for m in methods}, _split(first.get("methods")), f"{key}_m"),
            "retrievers": _many(
                "Retrievers",
                {r.id: r.title for r in scope.keep("job", training.list_retrievers(workspace))},
                _split(first.get("retrievers")) or ["static-minilm"],
                f"{key}_r",
            ),
            "weightings": _many(
                "Weightings",
                {w: w for w in studies.weightings()},
                _split(first.get("weightings")) or ["none"],
                f"{key}_w",
            ),
        }
        if chosen["methods"] and corpus_names:
            named = str(first.get("corpus", ""))
            begin = corpus_ids.get(named, named if named in corpus_names else "")
            chosen["corpus"] = st.selectbox(
                "Corpus",
                list(corpus_names),
                index=list(corpus_names).index(begin) if begin else 0,
                format_func=lambda c: corpus_names[c],
                key=f"{key}_c",
                persist_state="session",
                help=md("The documents that the methods write queries for. Existing query sets are reused."),
            )
    return {name: value if isinstance(value, str) else ", ".join(value) for name, value in chosen.items()}


def _many(label: str, items: dict[str, str], first: Sequence[str], key: str) -> list[str]:
    names = state.labels(items)
    return st.multiselect(
        label,
        list(names),
        default=[item for item in first if item in names],
        format_func=lambda item: names.get(item, item),
        key=key,
        placeholder="Choose one or several",
        persist_state="session",
    )


def _split(text: Any) -> list[str]:
    return [part.strip() for part in str(text or "").split(",") if part.strip()]


def _say_missing(what: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """A ready-made plan may name things that are not in this workspace."""
    absent = [name for name in wanted if name not in there]
    if absent:
        st.caption(f":material/info: Not in this workspace, so left out: {what} {md(', '.join(absent))}.")


def summary(workspace: Workspace, config: StudyConfig) -> None:
    """What it comes to, what to know before, and the button."""
    plan = studies.plan(workspace, config)
    st.subheader("Summary", anchor=False)
    requests = sum(g.requests for g in plan.generations)
    costs = [g.cost for g in plan.generations if g.cost is not None]
    tables.figures(
        ("Trainings", len(plan.conditions)),
        ("Evaluations", plan.to_dict()["evaluations"]),
        (
            "Time",
            "unknown" if plan.seconds is None else studies.minutes(plan.seconds),
            "Estimated from earlier runs on this machine, if any.",
        ),
        ("LLM requests", f"{requests:,}") if plan.generations else None,
        ("LLM cost", dollars(sum(costs))) if requests and len(costs) == len(plan.generations) else None,
    )
    _pairs(plan)
    lacking, agreed = incomplete.consent(workspace, config.items("query_sets"), "study_incomplete")
    leaks = studies.leaks_of(workspace, config)
    leaking_agreed = leaking.consent(leaks, "study_leakage")
    shown_notes = {item.note for item in lacking}
    for note in (note for note in plan.notes if note not in shown_notes):
        st.caption(f":material/info: {md(note)}")
    if access.button(
        "Start the study",
        type="primary",
        icon=":material/play_arrow:",
        key="study_start_button",
        disabled=(bool(lacking) and not agreed) or not leaking_agreed,
    ):
        begun = studies.run(workspace, config, allow_incomplete=agreed, allow_leakage=bool(leaks) and leaking_agreed)
        state.keep("study", begun.job_id)
        navigation.go("jobs", job=begun.job_id)
    command.show(
        commands.line("study", "run", "plan.yaml", allow_incomplete=bool(lacking), allow_leakage=bool(leaks), wait=True)
    )
    forms.download("Download the plan (YAML)", studies.to_yaml(config), "plan.yaml", key="study_yaml")


def _pairs(plan: StudyPlan) -> None:
    """How many training pairs each Q/Doc gives."""
    once = list({(c.source, c.per_doc, c.held): c for c in plan.conditions}.values())
    tables.show(
        {
            "Queries": [f"{c.source}, {c.held}" if c.held else c.source for c in once],
            "Q/Doc": [c.per_doc for c in once],
            "Pairs": [plan.pairs[str(c)] for c in once],
        },
        alt="Training pairs at each Q/Doc",
    )
