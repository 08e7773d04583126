"""Bringing files in: an upload, or a path on the server. What came of it is shown on the next drawing of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit.typing import UploadedFile

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.services import corpora, demo
from cdp.ui.shell import forms, project
from cdp.ui.shell.text import md

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
