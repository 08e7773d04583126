"""The tab "Collections": known and own benchmarks, download form, subset, adding a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from cdp.base.config import DownloadConfig
from cdp.base.workspace import Workspace
from cdp.benchmarks import BenchmarkInfo
from cdp.services import benchmarks, commands, jobs, projects
from cdp.services.benchmarks import BenchmarkDetails, RegistryStatus
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, md, number, size

NOT_STATED = "not stated"
COUNTS = {name: st.column_config.NumberColumn(format="localized") for name in ("Documents", "Queries")}


def page(workspace: Workspace) -> None:
    """The page below its head."""
    _own(workspace)
    _add(workspace)
    asked = "entry" in st.query_params  # a link led to one of them
    title = "Add a published benchmark: download one of those known by name"
    with st.expander(title, icon=":material/download:", key="benchmark_known", expanded=asked):
        statuses = benchmarks.list_registry(workspace)
        _table(statuses)
        _details(workspace, statuses)
        st.caption("CW and sizes are as stated by each source. Decide counts the CW of a benchmark's own queries.")


def _table(statuses: Sequence[RegistryStatus]) -> None:
    """Sizes, CW, licence, and whether each is here."""
    entries = [status.entry for status in statuses]
    tables.show(
        {
            "Benchmark": [e.title for e in entries],
            "Status": ["downloaded" if status.stored else "not downloaded" for status in statuses],
            "Documents": [e.documents for e in entries],
            "Queries": [e.queries for e in entries],
            "Text size": [_text(status) for status in statuses],
            "CW": [e.cw for e in entries],
            "Language": [e.language for e in entries],
            "Licence": [e.licence for e in entries],
            "Group": [", ".join(e.groups) for e in entries],
        },
        alt="The benchmarks available by name, with their sizes and licences",
        digits={"CW": 2},
        about={"CW": md(frame.DEFINITIONS["cw"]), "Text size": "Approximate size of the documents' texts."},
        config=COUNTS,
    )


def _text(status: RegistryStatus) -> str:
    return NOT_STATED if status.entry.text_bytes is None else f"≈ {size(status.entry.text_bytes)}"


def _details(workspace: Workspace, statuses: Sequence[RegistryStatus]) -> None:
    """One benchmark: what is said of it, and bringing it in or making a subset."""
    names = {k.entry.name: k.entry.title for k in statuses}
    chosen = state.choose("Benchmark", names, "entry", what="benchmark")
    if chosen is None:
        return
    shown = benchmarks.show(workspace, chosen)
    item = next(k for k in statuses if k.entry.name == chosen)
    with st.container(border=True):
        left, right = st.columns([3, 2], gap="large")
        with left:
            _facts(item)
        with right:
            (_stored(workspace, shown) if item.stored else _download(workspace, item))


def _facts(item: RegistryStatus) -> None:
    entry = item.entry
    st.markdown(f"#### {md(entry.title)}")
    tables.figures(
        ("Documents", NOT_STATED if entry.documents is None else number(entry.documents)),
        ("Queries", NOT_STATED if entry.queries is None else number(entry.queries)),
        ("CW", NOT_STATED if entry.cw is None else f"{entry.cw:.2f}", frame.DEFINITIONS["cw"]),
        ("Text size", _text(item), "Approximate size of the documents' texts."),
    )

    st.markdown(f"**Licence:** {md(entry.licence)} ({md(entry.licence_source)})")
    facts = [f"Sizes: {md(entry.figures)}", f"split: {md(entry.split)}", f"language: {md(entry.language)}"]
    st.caption(" · ".join(facts))

    if entry.repos:
        st.caption(f"From {md(', '.join(entry.repos))} on the Hugging Face Hub.")
    if entry.note:
        st.caption(md(entry.note))


def _download(workspace: Workspace, item: RegistryStatus) -> None:
    """The form that brings a benchmark in; size and licence stand beside it."""
    entry = item.entry
    key = f"download_{entry.name}"
    settings = forms.fields(DownloadConfig, key=key, leave_out=("benchmark",))
    st.caption(f"{_text(item)} of text, licence {md(entry.licence)}.")
    pressed = forms.button("Download", type="primary", icon=":material/download:", key=f"{key}_start")
    forms.command(commands.line("benchmarks", "download", entry.name, **settings))
    if pressed:
        with frame.guarded():
            config = DownloadConfig.from_dict({"benchmark": entry.name, **settings})
            frame.go("jobs", job=jobs.start(workspace, "download", config))


def _stored(workspace: Workspace, shown: BenchmarkDetails) -> None:
    """What is in the workspace of a benchmark that is there, and what can be done with it."""
    info, manifest = shown.info, shown.manifest
    assert info is not None
    assert manifest is not None
    st.markdown(f":material/check_circle: In the workspace as **{md(info.name)}**")
    judged = ", ".join(f"{split}: {n:,}" for split, n in info.judged.items())
    st.caption(md(f"{count(info.n_documents, 'document')}, judged queries {judged}, {size(info.bytes)} on disk."))
    split = shown.entry.split if shown.entry is not None and shown.entry.split in info.splits else info.splits[0]
    benchmark_split = f"{info.name}/{split}"
    frame.link("launch", "Train and evaluate on it", benchmarks=[benchmark_split])
    frame.link("launch", "Evaluate a retriever on it", tab="evaluation", on=[benchmark_split])

    for repository, commit in manifest.commits.items():
        st.caption(f"{md(repository)} at `{commit[:12]}`")

    for note in manifest.notes:
        if shown.entry is None or note != shown.entry.note:
            st.caption(f":material/info: {md(note)}")

    forms.command(commands.line("benchmarks", "sample", info.name))


def _note(info: BenchmarkInfo) -> str:
    subset = f"Subset of {info.subset_of}: scores are higher" if info.subset_of else ""
    return info.problem or subset


def _own(workspace: Workspace) -> None:
    """The benchmarks that are here: own ones, downloaded ones, and subsets."""
    stored = state.of_project(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    if not stored:
        st.caption("No collection yet. Add one below, or have a model judge your query log.")
        return

    st.subheader("Your collections", anchor=False)
    columns: dict[str, Sequence[Any]] = {
        "Benchmark": [b.name for b in stored],
        "Documents": [b.n_documents for b in stored],
        "Queries": [b.n_queries for b in stored],
        "Splits": [", ".join(b.splits) for b in stored],
        "Note": list(map(_note, stored)),
    }

    tables.show(tables.filled(columns, "Benchmark"), alt="Your benchmarks and subsets", config=COUNTS)

    frame.link("launch", "Evaluate a retriever on them", tab="evaluation")

    with st.expander("Delete", icon=":material/delete:", type="compact", key="own_manage"):
        name = forms.pick("Benchmark", [b.name for b in stored], key="own_benchmark", persistent=False)
        info = next(b for b in stored if b.name == name)
        forms.deletion(
            "Delete this benchmark",
            f"Delete **{md(info.name)}** with {count(info.n_queries, 'query', 'queries')} and judgments?",
            "Results on it are kept.", partial(benchmarks.delete, workspace, info.name), key=f"benchmark_{info.name}",
            told=f"The benchmark {info.name} is deleted.",
        )  # fmt: skip


def _add(workspace: Workspace) -> None:
    """Import a benchmark of one's own: a folder or a zip in BEIR layout."""
    with st.expander(
        "Add your own benchmark: a folder or zip in BEIR layout", icon=":material/add:", key="benchmark_own"
    ):
        st.caption("corpus.jsonl, queries.jsonl (both may be gzipped) and qrels/\\<split>.tsv.")
        uploads, path = forms.source("Benchmark", "benchmark_own_source", ["zip"])
        name = st.text_input("Name", key="benchmark_own_name", placeholder="taken from the file name", max_chars=80)
        language = st.text_input(
            "Language", key="benchmark_own_language", placeholder="detected from its texts", max_chars=8,
            help="Language code of the queries and documents (en, zh …), used for CW and BM25.",
        )  # fmt: skip
        pressed = forms.button("Add benchmark", icon=":material/upload_file:", key="benchmark_own_add")
        shown = path or (uploads[0].name if uploads else "PATH")
        forms.command(commands.line("benchmarks", "add", shown, name=name.strip(), language=language.strip()))

        if pressed:
            with frame.guarded():
                with st.spinner("Checking the benchmark"), forms.opened(workspace, uploads, path) as (file, _):
                    added = benchmarks.add(workspace, file, name=name.strip(), language=language.strip())
                    if current := state.scope(workspace).project:
                        projects.add_members(workspace, current.id, benchmarks=[added.name])
                figures = f"{count(added.n_queries, 'query', 'queries')}, {count(added.n_documents, 'document')}."
                forms.remember(f"The benchmark {added.name} is added.", [figures, *added.warnings])
                st.rerun()
