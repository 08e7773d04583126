"""The workspace as a whole: into one archive, out of one, and what can be cleared away. Folded away on the overview."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands
from cdp.services.jobs.job_words import size
from cdp.services.workspace import backup
from cdp.ui.shell import access, command, frame, imports, tables
from cdp.ui.shell.text import count, md


def section(workspace: Workspace) -> None:
    """Export, import and clearing away, each a button and its command."""
    folded = st.expander("Back up, move, clear away", icon=":material/archive:", key="backup", on_change="rerun")
    if not folded.open:
        return
    with folded:
        take, bring, clear = st.tabs(["Back up", "Bring in", "Clear away"])
        with take:
            _export(workspace)
        with bring:
            _import(workspace)
        with clear:
            _prune(workspace)


def _export(workspace: Workspace) -> None:
    st.caption(
        "Everything in one zip file with the SHA-256 of each file, to keep or to take to another machine. Jobs at work "
        "are left out and named. The command line takes parts: a corpus, a query set, a job."
    )
    target = st.text_input(
        "File on this server", value=str(workspace.root / "exports" / "workspace.zip"), key="backup_target"
    )
    caches = st.toggle("With model answers and embeddings", value=True, key="backup_caches")
    pressed = access.button("Back up", icon=":material/save:", key="backup_export")
    command.show(commands.line("workspace", "export", target, *([] if caches else ["--no-caches"])))
    if pressed:
        with frame.guarded(), st.spinner("Writing the archive"):
            done = backup.export(workspace, target, caches=caches)
            st.success(f"{count(done.files, 'file')}, {size(done.size)}, written to {md(done.path)}.")
            for text in done.left_out:
                st.caption(f"Left out: {md(text)}")


def _import(workspace: Workspace) -> None:
    st.caption("All of an archive comes in, or nothing of it, and nothing that is here is overwritten.")
    uploaded, path = imports.source("An archive", "backup_file", ["zip"])
    pressed = access.button("Bring it in", icon=":material/unarchive:", key="backup_import")
    command.show(commands.line("workspace", "import", path or getattr(uploaded, "name", "") or "FILE"))
    if pressed:
        with frame.guarded(), imports.opened(workspace, uploaded, path) as file, st.spinner("Checking and unpacking"):
            done = backup.import_archive(workspace, file)
            here = f"; {count(done.unchanged, 'file')} were here already" if done.unchanged else ""
            st.success(f"{count(done.files, 'file')} brought in, {size(done.size)}{here}.")


def _prune(workspace: Workspace) -> None:
    kinds = st.multiselect(
        "What may go", list(backup.PRUNABLE), default=list(backup.BY_DEFAULT), key="backup_kinds",
        help="; ".join(f"{name}: {about}" for name, about in backup.PRUNABLE.items()),
    )  # fmt: skip
    with frame.guarded():
        rows = backup.prunable(workspace, kinds)
        if rows:
            tables.show(
                {
                    "What": [row.what for row in rows],
                    "Files or folders": [row.n for row in rows],
                    "Size": [size(row.size) for row in rows],
                    "What it is": [row.about for row in rows],
                },
                alt="What can be cleared away",
            )
        nothing = not any(row.n for row in rows)
        pressed = access.button("Clear it away", icon=":material/delete_sweep:", key="backup_prune", disabled=nothing)
        command.show(commands.line("workspace", "prune", *(f"--what={kind}" for kind in kinds), "--yes"))
        if pressed:
            gone = backup.prune(workspace, kinds)
            freed = sum(row.size for row in gone)
            st.success(
                f"{count(sum(row.n for row in gone), 'file or folder', 'files or folders')} gone, {size(freed)}."
            )
