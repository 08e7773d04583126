"""The Launch page: training, evaluation, "what will happen", consent to leaks and incomplete sets, learning rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import streamlit as st

from cdp.base.config import EvaluationConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.text import rate
from cdp.base.workspace import Workspace
from cdp.benchmarks import BenchmarkInfo
from cdp.query_sets import usable
from cdp.retrievers import PRESETS, leakage, sending
from cdp.retrievers.leakage import Leak
from cdp.services import benchmarks, clusters, commands, evaluation, jobs, queries, studies, training
from cdp.services.queries import QuerySet
from cdp.studies.config import DEV_SPLITS, read_rates
from cdp.training import plan as training_plan
from cdp.training.weightings import WEIGHTINGS
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, duration, md, number

# A model that is no preset and was not trained here.
OTHER, OTHER_TITLE = "other", "Other model (name or folder)"
BM25 = "bm25"
# Benchmarks that are selected at first.
MAX_AT_FIRST = 3
# Settings with a place of their own.
CHOSEN_ABOVE = (
    "query_set", "retriever", "weighting", "per_doc", "max_documents", "name", "benchmark", "split", "query_source",
)  # fmt: skip

Place = tuple[str, str]


def train(workspace: Workspace) -> None:
    """The tab "Training": the choices on the left, what will happen on the right."""
    own = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
    query_sets = [q for q in own if q.n_queries]
    if not query_sets:
        text = "A retriever is trained on queries and their documents. Write or import some."
        frame.empty("No query sets yet", text, "queries", "Write queries")
        return

    left, right = st.columns([3, 2], gap="large")
    with left:
        config = _settings(workspace, query_sets)
        if config is None:
            return
        judges = _judges(workspace, config)
        typed = _rates(workspace, config)

    with right, frame.guarded():
        rates = read_rates(typed) if typed else ()
        _summary(workspace, config, judges, rates)


def _usable(workspace: Workspace) -> list[BenchmarkInfo]:
    """The benchmarks of the project that can be evaluated on."""
    own = state.of_project(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    return [info for info in own if not info.problem]


def _splits(infos: Iterable[BenchmarkInfo]) -> dict[str, str]:
    """NAME/SPLIT → the label of each split, with how many queries it judges."""
    labels: dict[str, str] = {}
    for info in infos:
        for split in info.splits:
            label = f"{info.name} · {split}"
            n = info.judged.get(split)
            if n:
                label += f" ({count(n, 'query', 'queries')})"
            labels[f"{info.name}/{split}"] = label
    return labels


def _place(key: str) -> Place:
    """NAME/SPLIT taken apart."""
    name, _, split = key.partition("/")
    return name, split


def _other_model(key: str) -> str:
    typed = st.text_input(
        "Model name or folder", key=key, persist_state="session",
        placeholder="facebook/contriever or a folder on this server",
        help="Any sentence-transformers or transformers encoder. To evaluate: also api:MODEL@ADDRESS, an "
        "OpenAI-compatible embeddings endpoint.",
    )  # fmt: skip
    return (typed or "").strip()


def _add_benchmarks() -> None:
    frame.link("benchmarks", "Add benchmarks", icon=":material/add:")


def _consent(workspace: Workspace, query_sets: Iterable[str], leaks: Sequence[Leak]) -> tuple[dict[str, Any], bool]:
    """Warn of incomplete sets and of leaks, and ask for consent to each. Return the options that record it, and whether
    all was given."""
    lacking = stored_sets.incomplete_notes(workspace, query_sets)
    which = "this incomplete set" if len(lacking) == 1 else "these incomplete sets"
    agreed = not lacking or st.checkbox(
        f"Train on {which}",
        key=f"train_incomplete_{'_'.join(item.query_set.id for item in lacking)}",
        help="Incomplete query sets are used for training only if you tick this box.",
    )
    for leak in leaks:
        st.error(f"**Test leakage.** {md(leak.sentence)}", icon=":material/gpp_maybe:")

    train_anyway = not leaks or st.checkbox(
        f"Train anyway. {leakage.FOLLOWS}",
        key="_".join(["train_leakage", *(f"{leak.source}_{leak.benchmark}_{leak.split}" for leak in leaks)]),
        help="Choose another query set or benchmark instead: a score on queries seen in training says nothing about "
        "unseen queries.",
    )
    return {"allow_incomplete": bool(lacking), "allow_leakage": bool(leaks)}, agreed and train_anyway


def _settings(workspace: Workspace, query_sets: Sequence[QuerySet]) -> TrainingConfig | None:
    """The choices that matter first, then everything else; None where they do not make a configuration."""
    key = "train"
    ordered = training_plan.in_order(query_sets, state.kept("corpus") or "")
    query_set = state.choose(
        "Query set", _set_titles(workspace, ordered), "query_set", what="query set", help=frame.DEFINITIONS["query_set"]
    )
    retriever = _retriever(workspace, key)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        limits = {
            "per_doc": forms.widget(TrainingConfig, "per_doc", key=key, label="Q/Doc"),
            "max_documents": forms.widget(TrainingConfig, "max_documents", key=key, label="Maximum documents"),
        }

    frame.remarks(usable.q_doc_notes(workspace, [q for q in query_sets if q.id == query_set]))
    weighting = forms.segments(
        "Weighting",
        {name: weighting.title for name, weighting in WEIGHTINGS.items()},
        key=f"{key}_weighting",
        help=frame.DEFINITIONS["weighting"]
        + " RI (reasoning intensity): how much easier a query becomes once its reasoning is written out, as the "
        "ratio of the two losses. Needs a query set with the reasoned form of each query.",
    )

    needed = _needed(workspace, query_set or ordered[0].id, weighting, key)
    name = forms.widget(TrainingConfig, "name", key=key)

    try:
        lacking = training.lacking(workspace, retriever)
        lora = "lora_rank" not in lacking and st.session_state.get(f"{key}_lora_rank") is not None
        presets = training.defaults(workspace, retriever, lora=lora)
        with st.expander("Training settings", icon=":material/tune:", key=f"{key}_settings"):
            st.caption("Empty fields use the retriever's own value, shown in grey; its reason is behind the ?.")
            dev = _dev(workspace, key)
            # Of the settings of weightings only those of the chosen one have an effect.
            idle = set(chain.from_iterable(other.settings for other in WEIGHTINGS.values()))
            idle -= set(WEIGHTINGS[weighting].settings)
            unused = (*CHOSEN_ABOVE, *needed, *idle, *lacking)
            more = forms.fields(TrainingConfig, key=key, leave_out=unused, presets=presets)

        given = {name: int(value) for name, value in limits.items() if value is not None}
        chosen = {"query_set": query_set, "retriever": retriever, "weighting": weighting, "name": name}
        return TrainingConfig.from_dict({**more, **dev, **given, **needed, **chosen})
    except CdpError as error:
        frame.show_error(error)
        return None


def _set_titles(workspace: Workspace, query_sets: Iterable[QuerySet]) -> dict[str, str]:
    return {q.id: f"{stored_sets.set_name(workspace, q)} ({count(q.n_queries, 'pair')})" for q in query_sets}


def _retriever(workspace: Workspace, key: str) -> str:
    choices = state.of_project(workspace, "job", training.list_retrievers(workspace, to_train=True))
    names = {c.id: c.title for c in choices} | {OTHER: OTHER_TITLE}
    about = frame.DEFINITIONS["retriever"]
    picked = state.choose("Retriever to start from", names, "retriever", what="retriever", help=about) or choices[0].id
    if picked == OTHER:
        return _other_model(f"{key}_model") or choices[0].id

    notes = {c.id: c.note for c in choices}
    if notes.get(picked):
        st.caption(md(notes[picked]))
    return picked


def _needed(workspace: Workspace, query_set: str, weighting: str, key: str) -> dict[str, str]:
    """Ask for the further inputs of a weighting: a file of weights, or the reasoned queries and which of both forms is
    trained on."""
    needs = WEIGHTINGS[weighting].needs
    if needs == "column":
        return {"weights": forms.widget(TrainingConfig, "weights", key=key)}
    if needs != "reasoning":
        return {}

    names = _set_titles(workspace, training_plan.reasoned_sets(workspace, query_set))
    if not names:
        st.caption("This corpus has no reasoned queries yet. Write them with the method “reasoning”, or import some.")
        frame.link("queries", "Write or import reasoned queries", icon=":material/edit_note:")
        return {}

    source = forms.widget(TrainingConfig, "query_source", key=key)
    chosen = forms.pick(
        "Reasoned queries", names, key=f"{key}_reasoned", persistent=False,
        help="The query set that holds the reasoned form q′ of each query: written with the method reasoning, or "
        "imported. It is matched by the queries it was made from, or by position.",
    )  # fmt: skip

    return {"reasoning": chosen or "", "query_source": str(source)}


def _dev(workspace: Workspace, key: str) -> dict[str, str]:
    """The settings ``benchmark`` and ``split`` of a single training; empty where the last model is to be kept."""
    splits = _splits(_usable(workspace))
    options = {"": "none (keep the last model)"}
    for split in sorted(splits, key=lambda split: _place(split)[1] not in DEV_SPLITS):
        options[split] = splits[split]

    chosen = forms.pick(
        "Dev benchmark", options, first="", key=f"{key}_dev",
        help="Evaluated during training (every 500 steps; change it under More settings). The model with the best "
        "NDCG@10 is kept. Do not report results on this benchmark.",
    )  # fmt: skip

    if not chosen:
        return {}
    name, split = _place(chosen)
    return {"benchmark": name, "split": split}


def _before(config: TrainingConfig) -> str:
    """``before and after``, or ``after training`` for a retriever that finds nothing before its training."""
    preset = PRESETS.get(config.retriever)
    return "after training" if preset is not None and preset.trained_only else "before and after"


def _judges(workspace: Workspace, config: TrainingConfig) -> list[Place]:
    """Ask for the benchmarks to evaluate on. Selected at first are a few that do not judge the training queries, and no
    subset of another one. Benchmarks left out for leakage are named with the reason."""
    infos = _usable(workspace)
    if not infos:
        st.caption("No benchmark yet, so the retriever is trained without an evaluation.")
        _add_benchmarks()
        return []

    names = {info.name for info in infos}
    whole = [info for info in infos if info.subset_of not in names]
    first = state.scope(workspace).selected(whole)[:MAX_AT_FIRST]
    ready = [f"{info.name}/{_first_split(info)}" for info in first if info.splits]
    leaks = {key: leakage.find_leaks(workspace, [config.query_set], [_place(key)]) for key in ready}
    clean = [key for key in ready if not leaks[key]]
    chosen = state.choose_many(
        f"Evaluate {_before(config)} on", _splits(infos), "benchmarks", what="benchmark", default=clean,
        help=frame.DEFINITIONS["benchmark"], placeholder="no evaluation",
    )  # fmt: skip
    for key in ready:
        if leaks[key] and key not in chosen:
            st.caption(f":material/gpp_maybe: Not selected by default: {md(leaks[key][0].sentence)}")

    _add_benchmarks()
    return [_place(key) for key in chosen]


def _first_split(info: BenchmarkInfo) -> str:
    return "test" if "test" in info.splits else info.splits[0]


def _rates(workspace: Workspace, config: TrainingConfig) -> str:
    """The learning rates of a sweep as typed; empty for a single training."""
    grid = studies.grid_for(workspace, config.retriever, config.loop.lora_rank is not None)
    some = ", ".join(map(rate, grid[:3]))
    typed = st.text_input(
        "Learning rates to compare", key="sweep_rates", placeholder=f"none; for example {some}",
        help="A sweep: one training for each learning rate, separated by commas. The dev benchmark of the training "
        "settings chooses the rate, and its other queries are reported on.", persist_state="session",
    )  # fmt: skip
    return (typed or "").strip()


def _summary(workspace: Workspace, config: TrainingConfig, judges: list[Place], rates: Sequence[float]) -> None:
    """What the training, or one per learning rate, comes to in figures, and the button that starts it."""
    plan = training.plan(workspace, config)
    study = studies.sweep(workspace, config, rates) if rates else None
    about = (
        "At the speed of this retriever's last training here, or on two cores where none has run. Without evaluations."
    )

    trainings = time = None
    if rates:
        trainings = ("Trainings", number(len(rates)))
    if plan.seconds is not None:
        time = ("Time", duration(plan.seconds), about)

    with st.container(border=True):
        st.markdown("#### What will happen")
        tables.figures(
            ("Pairs", number(plan.pairs), "Each pair is a query and its document."),
            ("Documents", number(plan.documents)),
            ("Steps", number(plan.steps), "Updates of the model's weights."),
            trainings,
            time,
        )
        frame.remarks(plan.notes)

        with st.expander("Licences", icon=":material/gavel:", type="compact", key="train_licences"):
            st.markdown("\n".join(f"- **{what.capitalize()}**: {md(note)}" for what, note in plan.licences.items()))

        if study:
            judges = []
            chooses = f"{md(config.dev.benchmark)} chooses the rate"
            st.caption(f"Figures of one training. {chooses}. The report stands on Evidence.")
        elif judges:
            st.caption(f"Evaluated {_before(config)}, beside BM25. Results that exist are reused.")
        else:
            st.caption("No evaluation. You can evaluate the retriever later.")

        leaks = leakage.of_training(workspace, config, judges)
        needed, given = _consent(workspace, training_plan.trained_on(config), leaks)
        _offer_copy(workspace, leaks, config.query_set)

        start: Callable[[], Any] = partial(training.start, workspace, config, benchmarks=judges, **needed)
        label = "Start training"
        if study:
            start, label = partial(studies.run, workspace, study, **needed), "Start the sweep"

        if _start_button(label, "train_start", disabled=not given):
            with frame.guarded():
                with st.spinner("Starting"):
                    started = start()
                frame.go("jobs", job=started.job_id)

        with frame.guarded():
            own = clusters.setting(workspace)
            place = "in the background"
            if own:
                place = f"on the Ray cluster {md(own)}"
            st.caption(f"Runs {place}. You can close this page, the browser and the app.")

    if study:
        shown = partial(commands.line, "sweep", config.query_set, without=("query_set", "learning_rate"))
        forms.command(shown(config=config, rates=",".join(map(rate, rates)), **needed, wait=True))
        return

    places = [f"{name}:{split}" for name, split in judges]
    shown = partial(commands.line, "train", config.query_set, config=config, without=("query_set",))
    forms.command(shown(evaluate=places, **needed, wait=True), shown(plan=True))


def _start_button(label: str, key: str, *, disabled: bool = False) -> bool:
    icon = ":material/rocket_launch:"
    return forms.button(label, type="primary", icon=icon, key=key, width="stretch", disabled=disabled)


def _offer_copy(workspace: Workspace, leaks: Sequence[Leak], query_set: str) -> None:
    """Draw a button that makes a copy of the set without the judged queries, if that removes the leak."""
    places = [(leak.benchmark, leak.split) for leak in leaks if leak.queries and leak.query_set == query_set]
    if places and forms.button(
        "Train on a copy without these queries", icon=":material/content_copy:", key="leave_out_judged",
        help="The query set itself stays as it is. Nothing in the copy is judged there: its results carry no mark.",
    ):  # fmt: skip
        with frame.guarded():
            copy, _ = queries.leave_out(workspace, query_set, places)
            frame.go("launch", query_set=copy.id)


# an evaluation of a retriever that is there


def evaluate(workspace: Workspace) -> None:
    """The tab "Evaluation"."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        choices = state.of_project(workspace, "job", training.list_retrievers(workspace))
        titles = {c.id: c.title for c in choices}
        trained = [c.id for c in choices if c.kind == "job"]

        # The newest of one's own first, then what needs no training.
        names = {name: titles.pop(name) for name in reversed(trained)}
        names |= {BM25: "BM25 (keyword search, no model)", **titles, OTHER: OTHER_TITLE}
        about = frame.DEFINITIONS["retriever"]

        retriever = state.choose("Retriever", names, "judged", what="retriever", help=about) or ""
        if retriever == OTHER:
            retriever = _other_model("evaluate_model")

        places = _places(workspace)

        with st.expander("Evaluation settings", icon=":material/tune:", key="evaluate_settings"):
            above = ("retriever", "benchmark", "split")
            settings = forms.fields(EvaluationConfig, key="evaluate", leave_out=above)

    with right, frame.guarded():
        if retriever and places:
            _evaluation_summary(workspace, retriever, places, settings)
        else:
            st.caption("Choose a retriever and a benchmark to see what will happen.")


def _places(workspace: Workspace) -> list[Place]:
    """Ask for the benchmarks to evaluate on."""
    usable_here = _usable(workspace)
    labels = _splits(usable_here)
    if not labels:
        text = "Retrievers are evaluated on judged queries. Add a benchmark first."
        frame.empty("No benchmarks yet", text, "benchmarks", "Add a benchmark")
        return []
    first = list(_splits(state.scope(workspace).selected(usable_here)))[:1]
    about = frame.DEFINITIONS["benchmark"]
    chosen = state.choose_many("Evaluate on", labels, "on", what="benchmark", default=first, help=about)
    _add_benchmarks()
    return [_place(key) for key in chosen]


def _evaluation_summary(workspace: Workspace, retriever: str, places: list[Place], settings: dict[str, Any]) -> None:
    """Draw which results exist, which will be computed, and the button that starts them."""
    configs = [
        EvaluationConfig.from_dict({**settings, "retriever": retriever, "benchmark": name, "split": split})
        for name, split in places
    ]
    with st.container(border=True):
        st.markdown("#### What will happen")
        to_do: list[EvaluationConfig] = []
        for config in configs:
            wanted = evaluation.checked(workspace, retriever, config.judged.benchmark, config.judged.split, **settings)
            evaluated = evaluation.existing(workspace, wanted) is not None
            if evaluated:
                icon, done = "check_circle", "already has a result with these settings"
            else:
                icon, done = "play_arrow", "will be evaluated"
                to_do.append(wanted)
            st.markdown(f":material/{icon}: **{md(config.judged.benchmark)}** · {md(config.judged.split)} {done}")

        frame.remarks(evaluation.language_notes(workspace, retriever, to_do), "warning")
        for config in to_do:
            for sent in sending.for_evaluation(workspace, config):
                st.info(md(sent.sentence), icon=":material/send:")

        if not to_do:
            frame.page_button("compare", "Compare results", "evaluate_compare")
        else:
            about = "Embeddings are cached and reused by later evaluations of the same model on the same documents."
            if retriever == BM25:
                about = "BM25 is keyword search without a model: the baseline to compare retrievers with."
            st.caption(about)

            if _start_button("Start the evaluation", "evaluate_start"):
                with frame.guarded():
                    with st.spinner("Starting"):
                        started = [jobs.start(workspace, "evaluation", config) for config in to_do]
                    frame.go("jobs", job=started[0])

    lines = (commands.line("evaluate", retriever, without=("retriever",), wait=True, config=one) for one in configs)
    forms.command(*lines)
