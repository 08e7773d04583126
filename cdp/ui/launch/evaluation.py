"""Evaluating a retriever that is there: which one, on what, how; what that comes to, and its start."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cdp.base.config import EvaluationConfig
from cdp.base.workspace import Workspace
from cdp.services import benchmarks, clusters, commands, evaluation, training
from cdp.ui.launch import training as training_form
from cdp.ui.shell import forms, frame, state
from cdp.ui.shell.tables import md

BM25 = "bm25"
# What the name of a group begins with among the benchmarks to choose from.
GROUP = "group:"

CHOSEN_ABOVE = ("retriever", "benchmark", "split")


def page(workspace: Workspace) -> None:
    """The form on the left, what will happen on the right."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        retriever = _retriever(workspace)
        benchmark_splits = _places(workspace)
        with st.expander("Evaluation settings", icon=":material/tune:", key="evaluate_settings"):
            settings = forms.fields(EvaluationConfig, key="evaluate", leave_out=CHOSEN_ABOVE)
    if retriever and benchmark_splits:
        with right, frame.guarded():
            _summary(workspace, retriever, benchmark_splits, settings)


def _retriever(workspace: Workspace) -> str:
    choices = state.of_project(workspace, "job", training.list_retrievers(workspace))
    names = {c.id: c.title for c in reversed(choices) if c.kind == "job"}
    names |= {BM25: "BM25 (keyword search, no model)"}
    names |= {c.id: c.title for c in choices if c.kind != "job"} | {training_form.OTHER: "Other model (name or folder)"}
    picked = state.choose("Retriever", names, "judged", what="retriever", help=frame.definition("retriever"))
    if picked == BM25:
        language = st.text_input(
            "Language of the benchmark",
            placeholder="en",
            key="evaluate_language",
            persist_state="session",
            help="English words are stemmed; other languages are tokenized as for content words.",
        )
        return f"{BM25}:{language.strip()}" if language and language.strip() else BM25
    if picked != training_form.OTHER:
        return picked or ""
    return training_form.other_model("evaluate_model")


def _places(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """What is chosen to evaluate on: {name in the address: (benchmark or group, split)}."""
    options, labels = training_form.usable_splits(workspace), training_form.split_labels(workspace)
    if not options:
        frame.empty(
            "No benchmarks yet", "Retrievers are evaluated on queries with known answers. Add a benchmark first."
        )
        frame.page_button("benchmarks", "Add a benchmark", "to_benchmarks")
        return {}
    for name, title in benchmarks.GROUPS.items():
        members = benchmarks.list_registry(workspace, name)
        here = sum(member.here for member in members)
        if here:
            options[f"{GROUP}{name}"] = (name, "")
            labels[f"{GROUP}{name}"] = f"{title}: {here} of {len(members)} downloaded"
    first = [key for key in options if not key.startswith(GROUP)][:1]
    chosen = state.choose_many("Evaluate on", labels, "on", default=first, help=frame.definition("benchmark"))
    frame.link("benchmarks", "Add benchmarks", icon=":material/add:")
    return {key: options[key] for key in chosen}


def _summary(
    workspace: Workspace, retriever: str, benchmark_splits: dict[str, tuple[str, str]], settings: dict[str, Any]
) -> None:
    """What will be done, what is there already, and the button."""
    with st.container(border=True):
        st.markdown("#### What will happen")
        to_do = False
        for key, (name, split) in benchmark_splits.items():
            if key.startswith(GROUP):
                st.markdown(f":material/stacks: Every downloaded benchmark of **{md(benchmarks.GROUPS[name])}**")
                to_do = True
                continue
            wanted = evaluation.checked(workspace, retriever, name, split, **settings)
            evaluated = evaluation.existing(workspace, wanted) is not None
            to_do = to_do or not evaluated
            done = "already has a result with these settings" if evaluated else "will be evaluated"
            icon = "check_circle" if evaluated else "play_arrow"
            st.markdown(f":material/{icon}: **{md(name)}** · {md(split)} {done}")
        on = training_form.choose_place(workspace, "evaluate") if to_do else ""
        if to_do:
            _start(workspace, retriever, benchmark_splits, settings, on)
        else:
            frame.page_button("compare", "Compare results", "evaluate_compare")
    lines = [
        commands.line(
            "evaluate",
            retriever,
            without=("retriever",),
            wait=True,
            on=on,
            config=EvaluationConfig.from_dict({**settings, "retriever": retriever, "benchmark": name, "split": split}),
        )
        for name, split in benchmark_splits.values()
    ]
    forms.command(*lines)


def _start(
    workspace: Workspace,
    retriever: str,
    benchmark_splits: dict[str, tuple[str, str]],
    settings: dict[str, Any],
    on: str,
) -> None:
    st.caption(
        "BM25 is keyword search without a model: the baseline to compare retrievers with."
        if retriever.startswith(BM25)
        else "Embeddings are cached and reused by later evaluations of the same model on the same documents."
    )
    if forms.button(
        "Start the evaluation", type="primary", icon=":material/play_arrow:", key="evaluate_start", width="stretch"
    ):
        with frame.guarded():
            with st.spinner("Starting"), clusters.chosen(workspace, on):
                started = benchmarks.evaluate_on(workspace, retriever, list(benchmark_splits.values()), settings)
            if started:
                frame.go("jobs", job=started[0])
            st.info("All of these results already exist.", icon=":material/check_circle:")
            frame.link("compare", "Compare results")
