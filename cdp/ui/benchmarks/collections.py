"""The tab "Collections": known and own benchmarks, download form, subset, adding a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from cdp.base.config import DownloadConfig
from cdp.base.text import tally
from cdp.base.workspace import Workspace
from cdp.benchmarks import BenchmarkInfo
from cdp.benchmarks.schemas import Entry
from cdp.corpus import looking
from cdp.query_sets.imports import SUFFIXES
from cdp.services import adding, benchmarks, commands, corpora, jobs, projects
from cdp.services.benchmarks import BenchmarkDetails
from cdp.ui import documents as document_views
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, md, number, size, written

NOT_STATED = "not stated"
COUNTS = {name: st.column_config.NumberColumn(format="localized") for name in ("Documents", "Queries")}


def page(workspace: Workspace) -> None:
    _own(workspace)
    _add(workspace)
    asked = "entry" in st.query_params  # a link led to one of them
    title = "Add a published benchmark: download one of those known by name"
    with st.expander(title, icon=":material/download:", key="benchmark_known", expanded=asked):
        listed = benchmarks.list_registry(workspace)
        _table(listed)
        _details(workspace, listed)
        st.caption("CW and sizes are as stated by each source. Decide counts the CW of a benchmark's own queries.")


def _table(listed: Sequence[tuple[Entry, str]]) -> None:
    rows = []
    for entry, stored in listed:
        rows.append(
            {
                "Benchmark": entry.title,
                "Status": "downloaded" if stored else "not downloaded",
                "Documents": entry.documents,
                "Queries": entry.queries,
                "Text size": _text_size(entry),
                "CW": entry.cw,
                "Language": entry.language,
                "Licence": entry.licence,
                "Group": ", ".join(entry.groups),
            }
        )

    tables.show(
        tables.by_title(rows),
        alt="The benchmarks available by name, with their sizes and licences",
        digits={"CW": 2},
        about={"CW": md(frame.DEFINITIONS["cw"]), "Text size": "Approximate size of the documents' texts."},
        config=COUNTS,
    )


def _text_size(entry: Entry) -> str:
    if entry.text_bytes is None:
        return NOT_STATED
    return f"≈ {size(entry.text_bytes)}"


def _details(workspace: Workspace, listed: Sequence[tuple[Entry, str]]) -> None:
    """One benchmark: its facts beside the download form, or what can be done with it once it is downloaded."""
    by_name = {entry.name: (entry, stored) for entry, stored in listed}
    titles = {entry.name: entry.title for entry, _ in listed}
    chosen = state.choose("Benchmark", titles, "entry", what="benchmark")
    if chosen is None:
        return

    entry, stored = by_name[chosen]
    with st.container(border=True):
        left, right = st.columns([3, 2], gap="large")
        with left:
            _facts(entry)
        with right:
            if stored:
                _stored(benchmarks.show(workspace, chosen))
            else:
                _download(workspace, entry)


def _facts(entry: Entry) -> None:
    st.markdown(f"#### {md(entry.title)}")
    tables.figures(
        ("Documents", written(entry.documents, number, NOT_STATED)),
        ("Queries", written(entry.queries, number, NOT_STATED)),
        ("CW", written(entry.cw, "{:.2f}".format, NOT_STATED), frame.DEFINITIONS["cw"]),
        ("Text size", _text_size(entry), "Approximate size of the documents' texts."),
    )

    st.markdown(f"**Licence:** {md(entry.licence)} ({md(entry.licence_source)})")
    facts = [f"Sizes: {md(entry.figures)}", f"split: {md(entry.split)}", f"language: {md(entry.language)}"]
    st.caption(" · ".join(facts))

    if entry.repos:
        st.caption(f"From {md(', '.join(entry.repos))} on the Hugging Face Hub.")
    if entry.note:
        st.caption(md(entry.note))


def _download(workspace: Workspace, entry: Entry) -> None:
    key = f"download_{entry.name}"
    settings = forms.fields(DownloadConfig, key=key, leave_out=("benchmark",))
    st.caption(f"{_text_size(entry)} of text, licence {md(entry.licence)}.")
    pressed = forms.button("Download", type="primary", icon=":material/download:", key=f"{key}_start")
    forms.command(commands.line("benchmarks", "download", entry.name, **settings))
    if pressed:
        with frame.guarded():
            config = DownloadConfig.from_dict({"benchmark": entry.name, **settings})
            frame.go("jobs", job=jobs.start(workspace, "download", config))


def _stored(shown: BenchmarkDetails) -> None:
    info, manifest = shown.info, shown.manifest
    assert info is not None
    assert manifest is not None
    st.markdown(f":material/check_circle: In the workspace as **{md(info.name)}**")
    documents = count(info.n_documents, "document")
    st.caption(md(f"{documents}, judged queries {tally(info.judged)}, {size(info.bytes)} on disk."))

    split = info.splits[0]
    if shown.entry is not None and shown.entry.split in info.splits:
        split = shown.entry.split

    benchmark_split = f"{info.name}/{split}"
    frame.link("launch", "Train and evaluate on it", benchmarks=[benchmark_split])
    frame.link("launch", "Evaluate a retriever on it", tab="evaluation", on=[benchmark_split])

    for repository, commit in manifest.commits.items():
        st.caption(f"{md(repository)} at `{commit[:12]}`")

    for note in manifest.notes:
        if shown.entry is None or note != shown.entry.note:
            st.caption(f":material/info: {md(note)}")

    forms.command(commands.line("benchmarks", "sample", info.name))


def _own(workspace: Workspace) -> None:
    stored = state.of_project(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    if not stored:
        st.caption("No collection yet. Add one below, or have your query log judged.")
        return

    st.subheader("Your collections", anchor=False)
    rows = []
    for info in stored:
        rows.append(
            {
                "Benchmark": info.name,
                "Documents": info.n_documents,
                "Queries": info.n_queries,
                "Splits": ", ".join(info.splits),
                "Note": info.note,
            }
        )

    columns = tables.by_title(rows)
    tables.show(tables.filled(columns, "Benchmark"), alt="Your benchmarks and subsets", config=COUNTS)

    frame.link("launch", "Evaluate a retriever on them", tab="evaluation")

    with st.expander("Delete", icon=":material/delete:", type="compact", key="own_manage"):
        by_name = {info.name: info for info in stored}
        info = by_name[forms.pick("Benchmark", list(by_name), key="own_benchmark", persistent=False)]
        forms.deletion(
            "Delete this benchmark",
            f"Delete **{md(info.name)}** with {count(info.n_queries, 'query', 'queries')} and judgments?",
            "Results on it are kept.", partial(benchmarks.delete, workspace, info.name), key=f"benchmark_{info.name}",
            told=f"The benchmark {info.name} is deleted.",
        )  # fmt: skip


def _add(workspace: Workspace) -> None:
    with st.expander(
        "Add your own benchmark: a folder or zip in BEIR layout, or a table of queries",
        icon=":material/add:",
        key="benchmark_own",
    ):
        st.caption(
            "corpus.jsonl, queries.jsonl (both may be gzipped) and qrels/\\<split>.tsv. Or queries for documents that "
            "are here: in each row one, with the ID of its document."
        )
        uploads, path = forms.source("Benchmark", "benchmark_own_source", ["zip", *(end[1:] for end in SUFFIXES)])
        shown = uploads[0].name if uploads else path
        corpus = ""
        if shown.lower().removesuffix(".gz").endswith(SUFFIXES):
            titles = looking.titles(state.of_project(workspace, "corpus", corpora.list_corpora(workspace)))
            corpus = str(forms.pick("Documents", titles, key="benchmark_own_corpus", persistent=False) or "")

        name = st.text_input("Name", key="benchmark_own_name", placeholder="taken from the file name", max_chars=80)
        language = st.text_input(
            "Language", key="benchmark_own_language", placeholder="detected from its texts", max_chars=8,
            help="Language code of the queries and documents (en, zh …), used for CW and BM25.",
        )  # fmt: skip
        pressed = forms.button("Add benchmark", icon=":material/upload_file:", key="benchmark_own_add")
        about = {"name": name.strip(), "language": language.strip()}
        forms.command(commands.line("benchmarks", "add", shown or "PATH", corpus=corpus, **about))

        if pressed:
            with frame.guarded():
                with st.spinner("Checking the benchmark"), forms.opened(workspace, uploads, path) as (file, _):
                    if corpus:
                        document_views.remember(adding.add_queries(workspace, corpus, file, **about), asked=True)
                    else:
                        _take(workspace, benchmarks.add(workspace, file, **about))
                st.rerun()


def _take(workspace: Workspace, added: BenchmarkInfo) -> None:
    """Take a new benchmark into the project on screen, and keep what it holds for when the page is next drawn."""
    current = state.scope(workspace).project
    if current is not None:
        projects.add_members(workspace, current.id, benchmarks=[added.name])

    figures = f"{count(added.n_queries, 'query', 'queries')}, {count(added.n_documents, 'document')}."
    forms.remember(f"The benchmark {added.name} is added.", [figures, *added.warnings])
