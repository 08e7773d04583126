"""The tab "Judge by a model": form, pooled retrievers, what is sent where at which price; judging missing documents."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import streamlit as st

from cdp.base.config import JudgeConfig
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
TYPES = ("txt", "csv", "tsv", "jsonl")


def page(workspace: Workspace) -> None:
    st.markdown(
        "A model grades what retrievers find for your target queries: a benchmark for documents without judgments. "
        "People label some of its queries afterwards, which corrects the figures."
    )

    manifests = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        frame.empty("No documents yet", "A model judges documents that you have. Add some first.", "documents",
                    "Add documents")  # fmt: skip
        return

    key = "judge"
    corpus = state.choose("Corpus", looking.titles(manifests), "corpus", what="corpus") or manifests[0].id
    with ExitStack() as stack, frame.guarded():
        source = asked_queries(workspace, key, corpus, stack)
        chosen = writing.choose_generator(workspace, [], key, llm_only=True)
        own = ["corpus", "queries", "query_field", "benchmark", "runs", "generator", "model", "base_url", "writer"]
        writer = ""
        if source == "":  # a model writes the queries
            writer = forms.widget(JudgeConfig, "writer", key=key)
            own.append("written_by")

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

        if forms.button("Start judging", type="primary", icon=":material/gavel:", key=f"{key}_start"):
            frame.go("jobs", job=judging.start(workspace, config, api_key=chosen.api_key))

        forms.command(commands.line("benchmarks", "judge", config=shown, wait=True))


def asked_queries(workspace: Workspace, key: str, corpus: str, stack: ExitStack) -> str | None:
    """Ask for the target queries; return the path of a log or the id of a query set.

    Empty if a model is to write them, None while none is chosen. Uploads live as long as the ``stack``. Queries given
    for this corpus before are offered first.
    """
    about = frame.DEFINITIONS["target_queries"]
    before, texts = judging.given_before(workspace, corpus)
    ways = [FILE, SET, MODEL]
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
    """Where a model judged the benchmark: a button that has the unjudged documents of ``runs`` judged, and a link to
    labelling. Draws nothing where people judged."""
    judged = judging.judged_name(workspace, name)
    if not judged:
        return

    if runs:
        config = judging.repeated(workspace, judged, runs)
        # Without a key nothing can be planned: the page around it stands all the same.
        with st.popover("Judge the missing documents", icon=":material/gavel:"), frame.guarded():
            api_key = ""
            if not config.endpoint.local:
                api_key = writing.ask_key(config.endpoint.base_url, f"again_{judged}")
            planned = judging.plan(workspace, config, api_key)
            st.markdown(md(planned.sentence))
            if forms.button("Start judging", type="primary", key=f"again_{judged}"):
                frame.go("jobs", job=judging.start(workspace, planned.config, api_key=api_key))
            forms.command(commands.line("benchmarks", "judge", config=planned.config, wait=True))

    frame.link("benchmarks", "Label queries", icon=":material/edit:", tab="label", judged_benchmark=judged)
