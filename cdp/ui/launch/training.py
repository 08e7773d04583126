"""Setting up a training: its queries, retriever and dev benchmark, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.services import benchmarks, clusters, commands, leakage, training
from cdp.services.leakage import Leak
from cdp.services.queries import QuerySet
from cdp.services.training import TrainingPlan
from cdp.studies.config import DEV_SPLITS
from cdp.training.weightings import WEIGHTINGS
from cdp.ui import jobs as job_views
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, duration, md, number

OTHER = "other"


def usable_splits(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """Name → (benchmark, split) of every usable one of the project."""
    own = state.of_project(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    return {f"{b.name}/{split}": (b.name, split) for b in own if not b.problem for split in b.splits}


def split_labels(workspace: Workspace) -> dict[str, str]:
    """The names of ``usable_splits``, each with how many queries it judges."""
    judged = {b.name: b.judged for b in benchmarks.list_benchmarks(workspace)}
    return {
        key: f"{name} · {split}" + (f" ({count(n, 'query', 'queries')})" if (n := judged[name].get(split)) else "")
        for key, (name, split) in usable_splits(workspace).items()
    }


def dev_options(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """``usable_splits`` with those made for choosing first."""
    return dict(sorted(usable_splits(workspace).items(), key=lambda item: item[1][1] not in DEV_SPLITS))


def other_model(key: str, value: str = "") -> str:
    """A model that is no preset and was not trained here."""
    typed = st.text_input(
        "Model name or folder", value=value, key=key, persist_state="session",
        placeholder="facebook/contriever or a folder on this server",
        help="Any sentence-transformers or transformers encoder.",
    )  # fmt: skip
    return (typed or "").strip()


def _dev(workspace: Workspace, first: dict[str, Any], key: str) -> dict[str, str]:
    """The settings ``benchmark`` and ``split`` of a single training; empty where the last model is to be kept."""
    options = {"": ("", ""), **dev_options(workspace)}
    preset = (str(first.get("benchmark") or ""), str(first.get("split") or ""))
    if preset not in options.values():
        options["/".join(filter(None, preset))] = preset
    chosen = st.selectbox(
        "Dev benchmark", list(options), index=list(options.values()).index(preset), key=f"{key}_dev",
        format_func=lambda name: " · ".join(filter(None, options[name])) or "none (keep the last model)",
        help="Evaluated during training (every 500 steps; change it under More settings). The model with the "
        "best NDCG@10 is kept. Do not report results on this benchmark.",
        persist_state="session",
    )  # fmt: skip
    return {"benchmark": options[chosen][0], "split": options[chosen][1]} if chosen else {}


@dataclass(frozen=True)
class Consent:
    """What stands in the way of a training (incomplete sets, leaks), and whether the user trains all the same."""

    incomplete: bool
    leaking: bool
    given: bool

    @property
    def options(self) -> dict[str, Any]:
        """The command's options that say yes to each."""
        return {"allow_incomplete": self.incomplete, "allow_leakage": self.leaking}

    @property
    def allowed(self) -> dict[str, Any]:
        """The arguments that say what was agreed to."""
        return {name: needed and self.given for name, needed in self.options.items()}


def consent(workspace: Workspace, query_sets: Iterable[str], leaks: Sequence[Leak], key: str) -> Consent:
    """Say what sets lack and what leaks, and ask for a yes to each."""
    lacking, agreed = stored_sets.incomplete_consent(workspace, query_sets, f"{key}_incomplete")
    for leak in leaks:
        st.error(f"**Test leakage.** {md(leak.sentence)}", icon=":material/gpp_maybe:")
    if leaks:
        train_anyway = st.checkbox(
            f"Train anyway. {leakage.FOLLOWS}",
            key="_".join([f"{key}_leakage", *(f"{leak.source}_{leak.benchmark}_{leak.split}" for leak in leaks)]),
            help="Choose another query set or benchmark instead: a score on queries seen in training says nothing "
            "about unseen queries.",
        )
        agreed = train_anyway and (agreed or not lacking)
    return Consent(bool(lacking), bool(leaks), agreed or not (lacking or leaks))


def choose_place(workspace: Workspace, key: str) -> str:
    """Where it runs: a cluster's address, ``here``, or "" where there is no choice. The workspace's own comes first."""
    named = clusters.named(workspace)
    if not named:
        return ""
    own = clusters.setting(workspace)
    labels = {clusters.HERE: "This machine"} | {a: f"Ray cluster {urlsplit(a).netloc}" for a in named}
    on = st.selectbox(
        "Run on", sorted(labels, key=lambda address: address != own), format_func=labels.__getitem__, key=f"{key}_on",
        help="Jobs on a Ray cluster look the same: state, log, stop and resume.", persist_state="session",
    )  # fmt: skip
    return "" if on == clusters.HERE and not own else on


def offer_copy(workspace: Workspace, leaks: Sequence[Leak], query_set: str) -> None:
    """A button that goes on with a copy of the set without the judged queries, where a copy would cure it."""
    benchmark_splits = [(leak.benchmark, leak.split) for leak in leaks if leak.queries and leak.query_set == query_set]
    if not benchmark_splits:
        return
    if forms.button(
        "Train on a copy without these queries",
        icon=":material/content_copy:",
        key="leave_out_judged",
        help="The query set itself stays as it is. Nothing in the copy is judged there: its results carry no mark.",
    ):
        with frame.guarded():
            copy, _ = leakage.leave_out(workspace, query_set, benchmark_splits)
            frame.go("launch", query_set=copy.id)


def _limits(first: dict[str, Any], key: str) -> dict[str, int]:
    """The settings ``per_doc`` and ``max_documents`` as they were chosen; those left empty are not in it."""
    with st.container(horizontal=True):
        limits = {
            "per_doc": forms.widget(TrainingConfig, "per_doc", key=key, label="Q/Doc", value=first.get("per_doc")),
            "max_documents": forms.widget(
                TrainingConfig, "max_documents", key=key, label="Maximum documents", value=first.get("max_documents")
            ),
        }
    return {name: int(value) for name, value in limits.items() if value is not None}


def plan_figures(plan: TrainingPlan, trainings: int = 1) -> None:
    """Pairs, documents, steps, and what to know of them."""
    tables.figures(
        ("Pairs", number(plan.pairs), "Each pair is a query and its document."),
        ("Documents", number(plan.documents)),
        ("Steps" if trainings == 1 else "Steps each", number(plan.steps), "Updates of the model's weights."),
        ("Trainings", number(trainings)) if trainings > 1 else None,
        None
        if plan.seconds is None
        else (
            "Time" if trainings == 1 else "Time each",
            duration(plan.seconds),
            "At the speed of the last training of this retriever here, without evaluations.",
        ),
    )
    frame.remarks(plan.notes)


def licences(plan: TrainingPlan) -> None:
    """Whose terms apply."""
    with st.expander("Licences", icon=":material/gavel:", type="compact", key="train_licences"):
        st.markdown("\n".join(f"- **{what.capitalize()}**: {md(note)}" for what, note in plan.licences.items()))


# Settings that have a place of their own, above all others.
CHOSEN_ABOVE = ("query_set", "retriever", "weighting", "per_doc", "max_documents", "name")


@dataclass(frozen=True)
class Judged:
    """The benchmarks to evaluate on, as (name, split), and when."""

    benchmarks: list[tuple[str, str]]
    before: bool
    after: bool


def settings(
    workspace: Workspace, query_sets: Sequence[QuerySet], leave_out: Sequence[str] = ()
) -> TrainingConfig | None:
    """The choices that matter first, then everything else; None where they do not make a configuration.

    ``leave_out`` are settings that are chosen elsewhere.
    """
    first, suffix = job_views.prefilled(workspace, "training")
    key = f"train{suffix}"
    ordered = training.in_order(query_sets, state.kept("corpus") or "")
    query_set = state.choose(
        "Query set",
        {q.id: f"{stored_sets.set_name(workspace, q)} ({count(q.n_queries, 'pair')})" for q in ordered},
        "query_set",
        what="query set",
        help=frame.definition("query_set"),
    )
    retriever = _retriever(workspace, first, key)
    pairs = _limits(first, key)
    weighting = forms.segments(
        "Weighting",
        {name: weighting.title for name, weighting in WEIGHTINGS.items()},
        default=first.get("weighting"),
        key=f"{key}_weighting",
        help=frame.definition("weighting")
        + " RI (reasoning intensity): how much easier a query becomes once its reasoning is written out, as the "
        "ratio of the two losses. Needs a query set with the reasoned form of each query.",
    )
    needed = _needed(workspace, query_set or ordered[0].id, weighting, first, key)
    name = forms.widget(TrainingConfig, "name", key=key)
    try:
        lora = st.session_state.get(f"{key}_lora_rank", first.get("lora_rank"))
        presets = training.defaults(workspace, retriever, lora=lora is not None)
    except CdpError as error:
        frame.show_error(error)
        return None
    with st.expander("Training settings", bool(first), icon=":material/tune:", key=f"{key}_settings"):
        st.caption(
            "Empty fields use the retriever's own value, shown in grey; hover over the question mark for the reason."
        )
        judged = {} if "benchmark" in leave_out else _dev(workspace, first, key)
        more = forms.fields(
            TrainingConfig,
            key=key,
            leave_out=(*CHOSEN_ABOVE, "benchmark", "split", *leave_out, *needed, *_idle(weighting)),
            values=first,
            presets=presets,
        )
        if trouble := clusters.gpu_problem():
            st.warning(trouble, icon=":material/memory:")
    values = {
        **more,
        **judged,
        **pairs,
        **needed,
        "query_set": query_set,
        "retriever": retriever,
        "weighting": weighting,
        "name": name,
    }
    try:
        return TrainingConfig.from_dict(values)
    except CdpError as error:
        frame.show_error(error)
        return None


def _idle(weighting: str) -> list[str]:
    """Settings that have no effect with this weighting."""
    used_by_some = {name for other in WEIGHTINGS.values() for name in other.settings}
    return ["query_source", *sorted(used_by_some - set(WEIGHTINGS[weighting].settings))]


def _needed(workspace: Workspace, query_set: str, weighting: str, first: dict[str, Any], key: str) -> dict[str, str]:
    """What a weighting needs besides the queries: the reasoned forms, or a file of weights. Where there are reasoned
    forms, also what of both is trained on."""
    needs = WEIGHTINGS[weighting].needs
    if needs == "column":
        return {"weights": forms.widget(TrainingConfig, "weights", key=key, value=first.get("weights"))}
    candidates = training.reasoned_sets(workspace, query_set)
    preset = str(first.get("reasoning") or "")
    names = {q.id: f"{stored_sets.set_name(workspace, q)} ({count(q.n_queries, 'pair')})" for q in candidates}
    if preset and preset not in names:
        names[preset] = preset
    ri = needs == "reasoning"
    if not names:
        if ri:
            st.caption(
                "This corpus has no reasoned queries yet. Write them with the method “reasoning”, or import existing "
                "ones."
            )
            frame.link("queries", "Write or import reasoned queries", icon=":material/edit_note:")
        return {}
    source = str(first.get("query_source") or "query-only")
    if any(q.method == "reasoning" for q in candidates) or ri or preset:
        source = str(forms.widget(TrainingConfig, "query_source", key=key, value=source) or source)
    if not ri and source == "query-only":
        return {"query_source": source}
    chosen = st.selectbox(
        "Reasoned queries",
        list(names),
        index=list(names).index(preset) if preset else 0,
        format_func=lambda query_set: names[query_set],
        key=f"{key}_reasoned",
        help="The query set that holds the reasoned form q′ of each query: written with the method reasoning, or "
        "imported. It is matched by the queries it was made from, or by position.",
    )
    return {"reasoning": chosen or "", "query_source": source}


def _retriever(workspace: Workspace, first: dict[str, Any], key: str) -> str:
    choices = state.of_project(workspace, "job", training.list_retrievers(workspace))
    preset = str(first.get("retriever", ""))
    if preset and preset not in {c.id for c in choices} and st.query_params.get("retriever") == preset:
        st.query_params["retriever"] = OTHER
    names = {c.id: c.title for c in choices} | {OTHER: "Other model (name or folder)"}
    about = frame.definition("retriever")
    picked = state.choose("Retriever to start from", names, "retriever", what="retriever", help=about) or choices[0].id
    if picked == OTHER:
        return other_model(f"{key}_model", preset) or choices[0].id
    note = next((c.note for c in choices if c.id == picked), "")
    if note:
        st.caption(md(note))
    embedding = training.embedding(picked)
    if embedding:
        st.caption(
            md(" · ".join(str(default.value) for default in embedding.values())),
            help="\n\n".join(f"**{what.capitalize()}**: {md(default.reason)}" for what, default in embedding.items()),
        )
    return picked


def judges(workspace: Workspace, query_set: str = "") -> Judged:
    """The benchmarks to evaluate on before and after. Without a choice the first three that do not judge what is
    trained on: the others are named with what is in the way."""
    options = usable_splits(workspace)
    if not options:
        st.caption("The workspace has no benchmark, so the retriever is trained without an evaluation. Add one below.")
        _add_benchmark(workspace)
        return Judged([], False, False)
    names = list(dict.fromkeys(name for name, _ in options.values()))[:3]
    ready = [f"{n}/test" if f"{n}/test" in options else next(k for k, v in options.items() if v[0] == n) for n in names]
    leaks = {key: leakage.find_leaks(workspace, [query_set], [options[key]]) for key in ready}
    first = [key for key in ready if not leaks[key]]
    chosen = state.choose_many(
        "Evaluate on",
        split_labels(workspace),
        "benchmarks",
        default=first,
        help=frame.definition("benchmark"),
        placeholder="no evaluation",
    )
    for key in ready:
        if leaks[key] and key not in chosen:
            st.caption(f":material/gpp_maybe: Not selected by default: {md(leaks[key][0].sentence)}")
    with st.container(horizontal=True):
        before = st.checkbox("Evaluate before training", value=True, key="train_before", persist_state="session")
        after = st.checkbox("Evaluate after training", value=True, key="train_after", persist_state="session")
    _add_benchmark(workspace)
    return Judged([options[key] for key in chosen], before, after)


def _add_benchmark(workspace: Workspace) -> None:
    with st.expander("Add a benchmark", icon=":material/add:", type="compact", key="add_benchmark"):
        path = st.text_input(
            "Folder or zip in BEIR layout, on this server",
            key="benchmark_path",
            help="corpus.jsonl, queries.jsonl (both may be gzipped) and qrels/<split>.tsv.",
        )
        if forms.button("Add benchmark", key="benchmark_add", disabled=not path.strip()):
            with frame.guarded(), st.spinner("Checking the benchmark"):
                added = benchmarks.add(workspace, path.strip())
                split = "test" if "test" in added.splits else added.splits[0]
                state.set_many("benchmarks", [*state.kept_many("benchmarks"), f"{added.name}/{split}"])
                forms.remember(
                    f"The benchmark {added.name} is added.",
                    [f"{count(added.n_queries, 'query', 'queries')}, {count(added.n_documents, 'document')}."],
                )
                st.rerun()
        frame.link("benchmarks", "Download BEIR, BRIGHT, MIRACL and others")


def summary(workspace: Workspace, config: TrainingConfig, judged: Judged) -> None:
    """What will happen, in figures, and the button that makes it happen."""
    plan = training.plan(workspace, config)
    with st.container(border=True):
        st.markdown("#### What will happen")
        plan_figures(plan)
        licences(plan)
        runs = len(judged.benchmarks) * (int(judged.before) + int(judged.after))
        st.caption(
            f"Includes {count(runs, 'evaluation')}. Existing results of the untrained retriever are reused."
            if runs
            else "No evaluation. You can evaluate the retriever later."
        )
        leaks = leakage.of_training(workspace, config, judged.benchmarks if runs else [])
        consented = consent(workspace, training.trained_on(config), leaks, "train")
        offer_copy(workspace, leaks, config.query_set)
        on = choose_place(workspace, "train")
        if forms.button(
            "Start training",
            type="primary",
            icon=":material/rocket_launch:",
            key="train_start",
            width="stretch",
            disabled=not consented.given,
        ):
            with frame.guarded():
                with st.spinner("Starting"), clusters.chosen(workspace, on):
                    started = training.start(
                        workspace,
                        config,
                        benchmarks=judged.benchmarks,
                        before=judged.before,
                        after=judged.after,
                        **consented.allowed,
                    )
                frame.go("jobs", job=started.job_id)
        st.caption("Runs in the background. You can close this page, the browser and the app.")
    when = "both" if judged.before and judged.after else "before" if judged.before else "after"
    judges = judged.benchmarks if judged.before or judged.after else []
    begin = commands.line(
        "train", config.query_set, config=config, without=("query_set",),
        evaluate=[f"{name}:{split}" for name, split in judges],
        when=when if judges and when != "both" else "",
        **consented.options, wait=True, on=on,
    )  # fmt: skip
    forms.command(begin, commands.line("train", config.query_set, config=config, without=("query_set",), plan=True))
