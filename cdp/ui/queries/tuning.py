"""Choosing a prompt (Algorithm 1): what is tried, what was found, and writing with a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp.base.config import PromptTuningConfig
from cdp.base.workspace import Workspace
from cdp.services import commands, corpora, jobs, queries, tuning
from cdp.services.queries import QuerySet
from cdp.services.tuning import Tuning
from cdp.synthesis.methods import METHODS
from cdp.ui import jobs as job_views
from cdp.ui.queries import writing
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, interval, md, moment

OWN_NAME = "my-prompt"


def section(workspace: Workspace, query_sets: Sequence[QuerySet]) -> None:
    """The results of the newest job for the chosen corpus, what runs, and the form that starts one."""
    names = {m.id: m.name for m in state.of_project(workspace, "corpus", corpora.list_corpora(workspace))}
    if not names:
        return
    st.subheader(
        "Choose a prompt",
        anchor=False,
        help="Each candidate prompt writes queries for the same sample of documents. The one whose CE and "
        "Self-BLEU are closest to the target is chosen (the paper's Algorithm 1).",
    )
    corpus = state.choose("Corpus", names, "corpus", what="corpus", width=360)
    if not corpus:
        return
    with frame.guarded():
        every = tuning.list_tunings(workspace, corpus=corpus)
        outcome = next((result for view in every if (result := tuning.result(workspace, view.id)) is not None), None)
        if outcome is not None:
            _outcome(workspace, outcome)
        running = [v for v in every if v.state.active]
        job_views.running_note(workspace, running)
        with st.expander(
            "Try candidates again" if outcome else "Try candidate prompts on a sample",
            icon=":material/science:",
            key="tuning_form",
        ):
            _form(workspace, corpus, [q for q in query_sets if q.corpus_id == corpus], busy=bool(running))


def _form(workspace: Workspace, corpus: str, sets: list[QuerySet], *, busy: bool) -> None:
    titles = {name: m.title for name, m in METHODS.items() if not (m.from_queries or m.joint)}
    methods = forms.pick_many("Candidate methods", titles, first=("diverse", "paraphrase"), key="tuning_methods")
    chosen = writing.choose_generator(sets, "tuning")
    prompts: dict[str, str] = {}
    if chosen.costs:
        own = st.text_area(
            "Your own prompt (optional)",
            key="tuning_own",
            height=120,
            persist_state="session",
            placeholder="Write {M} queries about …\n<document>\n{document}\n</document>",
            help="Use {document} where the document goes and {M} for the number of queries.",
        )
        if own.strip():
            prompts[OWN_NAME] = own
    with st.grid(3, min_column_width=200):
        fields = ("target", "documents", "per_doc")
        sizes = {name: forms.widget(PromptTuningConfig, name, key="tuning") for name in fields}
    human = queries.references(sets)
    reference = forms.pick(
        "Human queries", human, key="tuning_human", placeholder="none" if human else "none for this corpus",
        help="Used for Dist-Sim and Len-Sim, which decide between candidates that both meet the target.",
    )  # fmt: skip
    config = PromptTuningConfig.from_dict(
        {
            **{name: value for name, value in chosen.settings.items() if value},
            "corpus": corpus,
            "methods": ",".join(methods),
            "generator": chosen.name,
            "human": reference or "",
            **sizes,
        }
    )
    st.caption(f"Target: {tuning.TARGET_WORDS[config.target]}.")
    if forms.button("Try candidates", icon=":material/play_arrow:", key="tuning_start", disabled=busy):
        with frame.guarded():
            tuning.start(workspace, config, prompts=prompts, api_key=chosen.api_key)
            st.rerun()
    forms.command(commands.line("prompts", "tune", config=config, wait=True))


def _outcome(workspace: Workspace, outcome: Tuning) -> None:
    """The choice and why, every candidate with its measures, and writing queries with one."""
    record = outcome.candidate(outcome.choice)
    with st.container(border=True):
        st.markdown(f"#### :material/check: {md(record['title'])}")
        st.markdown(md(outcome.why))
        st.caption(
            f"{count(outcome.n_documents, 'document')} of {outcome.n_corpus:,}, {moment(outcome.created)}. Target: "
            f"{tuning.TARGET_WORDS[outcome.target]}."
        )
        _table(outcome)
        able = [c["name"] for c in outcome.candidates if c.get("n_queries")]
        titles = {c["name"]: c["title"] for c in outcome.candidates}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            picked = forms.pick(
                "Prompt to use", {name: titles[name] for name in able}, first=outcome.choice, width=260,
                key=f"tuning_choice_{outcome.job_id}", persistent=False,
            )  # fmt: skip
            if forms.button(
                "Write queries for the whole corpus", icon=":material/edit_note:", type="primary",
                key=f"tuning_write_{outcome.job_id}",
            ):  # fmt: skip
                job = tuning.write_queries(workspace, outcome.job_id, str(picked))
                st.toast(f"Started: {md(jobs.show(workspace, job).name)}")
        _examples(outcome)


def _table(outcome: Tuning) -> None:
    ce = "CE" if outcome.scorer["measure"] == "paraphrase_ratio" else "CE by bi-encoder"
    values = [{v["name"]: v for v in c.get("measures", [])} for c in outcome.candidates]

    def column(name: str) -> list[float | None]:
        return [v.get(name, {}).get("value") for v in values]

    def tokens(record: dict[str, Any]) -> int | None:
        return round(sum(record["tokens"].values())) if record.get("tokens") else None

    columns: dict[str, Sequence[Any]] = {
        "Prompt": [c["title"] for c in outcome.candidates],
        "Distance": [c.get("distance") for c in outcome.candidates],
        "95% interval": [interval(c.get("interval")) for c in outcome.candidates],
        ce: column(outcome.scorer["measure"]),
        "Self-BLEU": column("self_bleu"),
        "Dist-Sim": column("dist_sim"),
        "Len-Sim": column("len_sim"),
        "Mean CW": column("cw"),
        "Tokens per document": [tokens(c) for c in outcome.candidates],
        "Whole corpus (US$)": [c.get("corpus_cost") for c in outcome.candidates],
        "Without queries": [c.get("failures") for c in outcome.candidates],
        "Note": [c["error"] for c in outcome.candidates],
    }
    optional = ("Dist-Sim", "Len-Sim", "Whole corpus (US$)", "Note")
    columns = {n: c for n, c in columns.items() if n not in optional or any(v not in (None, "") for v in c)}
    tables.show(
        columns,
        alt="Candidate prompts with their distance to the target, measures and cost; the nearest first",
        digits={**dict.fromkeys(("Distance", ce, "Self-BLEU", "Dist-Sim", "Len-Sim"), 3), "Mean CW": 2,
                "Whole corpus (US$)": 2},
        about={"Distance": "Distance to the target in CE and Self-BLEU; 0 meets it.",
               "Tokens per document": "Tokens of prompt and answer, estimated from the texts."},
    )  # fmt: skip
    if outcome.scorer["note"]:
        st.caption("CE was computed with a bi-encoder, so its 0.5 is not the paper's 0.5.")


def _examples(outcome: Tuning) -> None:
    """The same documents' queries of each candidate, side by side."""
    shown = {c["title"]: c["examples"] for c in outcome.candidates if c.get("examples")}
    if not shown:
        return
    with st.expander("Example queries for the same documents", icon=":material/format_list_numbered:"):
        written = {title: {e["document_id"]: e["queries"] for e in examples} for title, examples in shown.items()}
        for document in next(iter(written.values())):
            st.markdown(f"**{md(document, 80)}**")
            for column, (title, by_document) in zip(st.columns(len(shown), gap="medium"), written.items(), strict=True):
                with column:
                    st.caption(md(title))
                    st.text("\n".join(by_document.get(document, ["–"])))
