"""Bringing files in: an upload, or a path on the server. What came of it is shown on the next drawing of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit.typing import UploadedFile

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.services import commands, corpora
from cdp.services.corpora import ReadOptions
from cdp.services.workspace import demo
from cdp.ui.shell import access, command, forms, frame, project, state
from cdp.ui.shell.text import count, md

MAX_UPLOAD_MB = 500


def remember(message: str, notes: list[str]) -> None:
    """Show this after the page has been drawn anew."""
    st.session_state["flash"] = (message, notes)


def flash() -> None:
    """What the last action came to, once."""
    message, notes = st.session_state.pop("flash", ("", []))
    if message:
        body = "\n".join(f"- {md(note)}" for note in notes) or "It is selected below."
        st.success(body, title=md(message), icon=":material/check_circle:")


def source(what: str, key: str, types: list[str]) -> tuple[UploadedFile | None, str]:
    """Ask for a file: an upload (or None) and a path on the server (or "")."""
    way = forms.segments(
        "File location", ["Upload", "Path on this server"], key=f"{key}_way", hidden=True, persistent=False
    )
    if way == "Upload":
        uploaded = st.file_uploader(what, type=types, max_upload_size=MAX_UPLOAD_MB, key=f"{key}_file")
        return uploaded, ""
    path = st.text_input(
        "File or folder on this server",
        key=f"{key}_path",
        placeholder="data/demo/corpus.jsonl",
        help="For large collections: the server reads the file directly; nothing is sent through the browser.",
    )
    return None, path.strip()


@contextmanager
def opened(workspace: Workspace, uploaded: UploadedFile | None, path: str) -> Iterator[Path]:
    """The chosen file as a path: an upload is written to disk first. InputError if nothing was chosen."""
    if uploaded is not None:
        with corpora.received(workspace, uploaded.name, uploaded) as target:
            yield target
    elif path:
        yield Path(path)
    else:
        raise InputError("No file is selected.", hint="Choose a file to upload, or enter a path on this server.")


def load_demo(workspace: Workspace) -> None:
    """Load the demo collection, and turn to its project."""
    remember("The demo collection is loaded.", demo.load(workspace))
    project.show(workspace, "corpus", demo.corpus(workspace))


def add_corpus(workspace: Workspace) -> None:
    """The form that adds a corpus."""
    uploaded, path = source("Documents", "corpus", corpora.file_types())
    name = st.text_input("Name", key="corpus_name", placeholder="taken from the file name", max_chars=80)
    with st.expander("File format options", icon=":material/tune:"):
        options = forms.fields(ReadOptions, key="read")
    with st.container(horizontal=True):
        pressed = access.button("Import documents", type="primary", icon=":material/upload_file:", key="corpus_add")
        if access.button(
            "Load the demo collection",
            icon=":material/science:",
            key="corpus_demo",
            help="96 short documents, diverse and paraphrase queries written by an LLM, and a benchmark.",
        ):
            with frame.guarded(), st.spinner("Loading the demo collection"):
                load_demo(workspace)
                st.rerun()
    shown = path or getattr(uploaded, "name", "") or "PATH"
    command.show(commands.line("corpus", "add", shown, *commands.given(options), name=name))
    if pressed:
        with frame.guarded():
            with st.spinner("Reading and checking the documents"), opened(workspace, uploaded, path) as file:
                added = corpora.add(workspace, file, name=name, options=ReadOptions.from_dict(options))
            project.join(workspace, corpora=[added.corpus.id])
            done = "was already in the workspace" if added.existed else "was added"
            notes = list(added.notes)
            if added.corpus.n_rejected:
                kinds = ", ".join(f"{n:,} {kind}" for kind, n in added.corpus.rejected_counts.items())
                where = kinds if added.existed else "see the list below"
                notes.append(f"{count(added.corpus.n_rejected, 'row')} could not be imported: {where}.")
            if added.query_set:
                notes.append("The queries in the same file were saved as a query set.")
                state.keep("query_set", added.query_set)
            remember(f"{added.corpus.name} {done}: {count(added.corpus.n_documents, 'document')}.", notes)
            state.keep("corpus", added.corpus.id)
            st.query_params["corpus"] = added.corpus.id
            st.rerun()
