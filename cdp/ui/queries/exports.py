"""Query sets as files for other programs, and synthesis through batch files."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.services import commands, synthesis
from cdp.services.queries import QuerySet
from cdp.ui.shell import access, command, forms, frame, imports
from cdp.ui.shell.text import count, md

MOST_DOWNLOADED = 200 * 2**20


def export(workspace: Workspace, query_set: QuerySet) -> None:
    """Write the set in a format of another program, on the server and to download."""
    with st.expander("Export", icon=":material/download:", key=f"export_{query_set.id}"):
        formats = synthesis.export_formats(query_set)
        form = forms.segments("Format", list(formats), key="export_format", persistent=False)
        st.caption(md(formats[form].help))
        target = st.text_input(
            "File or folder on this server",
            value=str(workspace.root / "exports" / f"{query_set.id}{formats[form].suffix}"),
            key=f"export_target_{query_set.id}_{form}",
        )
        pressed = access.button("Export query set", icon=":material/save:", key="export_write")
        command.show(commands.line("queries", "export", query_set.id, format=form, out=target))
        if pressed:
            with frame.guarded(), st.spinner("Writing"):
                done = synthesis.export(workspace, query_set.id, form, target)
                what = ("query", "queries") if formats[form].write else ("request",)
                st.success(f"{count(done.n, *what)} written to {md(target)}.")
                if done.note:
                    st.caption(f":material/warning: {md(done.note)}")
                st.session_state[f"exported_{query_set.id}_{form}"] = done.paths
        _download(st.session_state.get(f"exported_{query_set.id}_{form}", ()))


def _download(written: tuple[Path, ...]) -> None:
    """What this session has just written, where it is a single file; never what somebody names."""
    for path in written[:1]:
        if len(written) == 1 and path.is_file() and path.stat().st_size <= MOST_DOWNLOADED:
            st.download_button("Download", path.read_bytes, file_name=path.name, key="export_download")


def batch(workspace: Workspace, config: SynthesisConfig) -> None:
    """The job's requests as a batch file, and the answers back."""
    with st.expander("Use a batch file", icon=":material/inventory_2:", key="batch"):
        st.caption(
            "Write the requests as an OpenAI Batch file (JSONL), process it with the Batch API or vllm run-batch, "
            "and import the answers. Then start the job as usual: it only requests what the batch did not answer."
        )
        folder = st.text_input(
            "Folder on this server", value=str(workspace.root / "exports" / "batch"), key="batch_folder"
        )
        if access.button("Write batch file", key="batch_write"):
            with frame.guarded():
                done = synthesis.batch_write(workspace, config, folder)
                st.success(f"{count(done.n, 'request')} in {count(len(done.paths), 'file')}, in {md(folder)}.")
        uploaded, path = imports.source("Batch output", "batch_back", ["jsonl"])
        if access.button("Import answers", key="batch_read"):
            with frame.guarded(), imports.opened(workspace, uploaded, path) as file:
                read = synthesis.batch_read(workspace, file)
                st.success(f"{count(read.answers, 'answer')} imported.")
                frame.remarks(read.problems, "warning")
        command.show(
            commands.line("queries", "batch-write", config=config, out=folder),
            commands.line("queries", "batch-read", path or getattr(uploaded, "name", "") or "PATH"),
        )
