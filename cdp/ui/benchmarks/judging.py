"""The tab "Judge": a model or people, queries, what is sent where at which price; what is missing."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import streamlit as st

from cdp.base.config import PEOPLE, Judge, JudgeConfig
from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import commands, corpora, judging, queries
from cdp.services.judging import JudgePlan
from cdp.studies import target_queries
from cdp.ui.queries import sets as stored_sets
from cdp.ui.queries import writing
from cdp.ui.shell import columns, forms, frame, state, tables
from cdp.ui.shell.tables import count, cut, md

FILE, SET, MODEL, BEFORE = "Query log", "Query set", "A model writes them", "Given before"
JUDGES = {"model": "A model", PEOPLE: "People"}
TYPES = ("txt", "csv", "tsv", "jsonl")


def page(workspace: Workspace) -> None:
    st.markdown(
        "What retrievers find for your target queries is judged: a benchmark for documents without judgments. A model "
        "grades it, and labels of people correct the figures; or people alone label it, on this machine."
    )

    manifests = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        frame.empty("No documents yet", "Judged are documents that you have. Add some first.", "documents",
                    "Add documents")  # fmt: skip
        return

    key = "judge"
    corpus = state.choose("Corpus", looking.titles(manifests), "corpus", what="corpus") or manifests[0].id
    with ExitStack() as stack, frame.guarded():
        people = forms.segments("Who judges", JUDGES, key=f"{key}_by") == PEOPLE
        if people:
            st.caption(
                "A query counts once all its pooled documents are labelled: these queries are the test. A document "
                "outside the pool counts as not relevant."
            )

        source = asked_queries(workspace, key, corpus, stack, writes=not people)
        chosen = writing.Chosen(PEOPLE, {})
        if not people:
            chosen = writing.choose_generator(workspace, [], key, llm_only=True)

        own = ["corpus", "queries", "query_field", "benchmark", "runs", "generator", "model", "base_url", "writer"]
        writer = ""
        if source == "":  # a model writes the queries
            writer = forms.widget(JudgeConfig, "writer", key=key)
            own.append("written_by")

        if people:
            own += [*Judge.settings(), "written_by", "budget", "constant_judge"]

        settings = forms.fields(JudgeConfig, key=key, leave_out=own)

        if source is None:
            st.caption("Choose the target queries: what people search for, one query per line.")
            return

        column = asked_column(workspace, source) if source else ""
        named = {"corpus": corpus, "queries": source, "query_field": column, "generator": chosen.name, "writer": writer}
        values = {**chosen.settings, **settings, **named}

        config = JudgeConfig.from_dict(values)
        with st.spinner("Reading the queries"):
            planned = judging.plan(workspace, config, chosen.api_key)

        _summary(planned)
        shown = config.replace(queries=source)

        label = "Pool the documents" if people else "Start judging"
        if forms.button(label, type="primary", icon=":material/gavel:", key=f"{key}_start"):
            frame.go("jobs", job=judging.start(workspace, config, api_key=chosen.api_key))

        forms.command(commands.line("benchmarks", "judge", config=shown, wait=True))


def asked_queries(workspace: Workspace, key: str, corpus: str, stack: ExitStack, *, writes: bool = True) -> str | None:
    """Ask for the target queries; return the path of a log or the id of a query set.

    Empty if a model ``writes`` them, None while none is chosen. Uploads live as long as the ``stack``. Queries given
    for this corpus before are offered first.
    """
    about = frame.DEFINITIONS["target_queries"]
    before, texts = judging.given_before(workspace, corpus)
    ways = [FILE, SET, MODEL] if writes else [FILE, SET]
    if before:
        ways.insert(0, BEFORE)

    way = forms.segments("Target queries", ways, key=f"{key}_from", help=about)
    if way == BEFORE:
        st.caption(f"{count(len(texts), 'query', 'queries')}, the first: {md(cut(texts[0], 80))}")
        return before

    if way == MODEL:
        st.caption(
            "Without a log, a model imagines what people would ask. Results then say so: real queries are better."
        )
        return ""

    if way == SET:
        sets = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
        named = stored_sets.set_names(workspace, [q for q in sets if q.n_queries])
        return str(forms.pick("Query set", named, key=f"{key}_set", placeholder="Choose a query set") or "") or None

    uploads, path = forms.source("Query log", f"{key}_log", TYPES)
    if not uploads and not path:
        return None

    file, _ = stack.enter_context(forms.opened(workspace, uploads, path))
    return str(file)


def asked_column(workspace: Workspace, source: str) -> str:
    """Ask which column of a table holds the queries; empty if its name tells, or if there is no table."""
    seen = target_queries.columns_of(workspace, source) if Path(source).is_file() else None
    if seen is None:
        return ""
    columns.rows(seen)
    guessed = target_queries.query_column(seen.columns)
    chosen = columns.dropdowns(JudgeConfig, seen, ("query_field",), {"query_field": guessed}, "judge_log")
    return str(chosen.get("query_field", ""))


def _summary(planned: JudgePlan) -> None:
    """The queries to be judged, warnings, and what is sent to which model at which price."""
    if planned.log is not None:
        st.caption(md(planned.log.sentence))
    if planned.queries:
        with st.expander(f"{count(planned.n_queries, 'query', 'queries')} to be judged", key="judged_queries"):
            tables.show({"Query": list(planned.queries)}, alt="The target queries that are judged", height=240)
    for warning in planned.warnings:
        st.warning(md(warning), icon=":material/warning:")
    st.info(md(planned.sentence), icon=":material/send:")


def after(workspace: Workspace, name: str, runs: list[str]) -> None:
    """Where the benchmark was judged here: a button that has the unjudged documents of ``runs`` judged, or pooled for
    people, and a link to labelling. Draws nothing for any other benchmark."""
    judged = judging.judged_name(workspace, name)
    if not judged:
        return

    if runs:
        config = judging.repeated(workspace, judged, runs)
        # Without a key nothing can be planned: the page around it stands all the same.
        people = config.endpoint.by_people
        start = "Add to the pool" if people else "Start judging"
        label = "Label the missing documents" if people else "Judge the missing documents"
        with st.popover(label, icon=":material/gavel:"), frame.guarded():
            api_key = ""
            if not config.endpoint.local:
                api_key = writing.ask_key(config.endpoint.base_url, f"again_{judged}")
            planned = judging.plan(workspace, config, api_key)
            st.markdown(md(planned.sentence))
            if forms.button(start, type="primary", key=f"again_{judged}"):
                frame.go("jobs", job=judging.start(workspace, planned.config, api_key=api_key))
            forms.command(commands.line("benchmarks", "judge", config=planned.config, wait=True))

    frame.link("benchmarks", "Label queries", icon=":material/edit:", tab="label", judged_benchmark=judged)
