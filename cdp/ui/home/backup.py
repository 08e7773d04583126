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
    folded = st.expander("Back up, import, free up space", icon=":material/archive:", key="backup", on_change="rerun")
    if not folded.open:
        return
    with folded:
        take, bring, clear = st.tabs(["Back up", "Import", "Free up space"])
        with take:
            _export(workspace)
        with bring:
            _import(workspace)
        with clear:
            _prune(workspace)


def _export(workspace: Workspace) -> None:
    st.caption(
        "Writes everything to one zip file with the SHA-256 of each file, to keep or to move to another machine. "
        "Running jobs are skipped and listed. The command line can also export a single corpus, query set or job."
    )
    target = st.text_input(
        "File on this server", value=str(workspace.root / "exports" / "workspace.zip"), key="backup_target"
    )
    caches = st.toggle("Include cached model answers and embeddings", value=True, key="backup_caches")
    pressed = access.button("Back up workspace", icon=":material/save:", key="backup_export")
    command.show(commands.line("workspace", "export", target, *([] if caches else ["--no-caches"])))
    if pressed:
        with frame.guarded(), st.spinner("Writing the archive"):
            done = backup.export(workspace, target, caches=caches)
            st.success(f"{count(done.files, 'file')}, {size(done.size)}, written to {md(done.path)}.")
            for text in done.left_out:
                st.caption(f"Skipped: {md(text)}")


def _import(workspace: Workspace) -> None:
    st.caption("An archive is imported completely or not at all, and existing files are never overwritten.")
    uploaded, path = imports.source("Archive", "backup_file", ["zip"])
    pressed = access.button("Import archive", icon=":material/unarchive:", key="backup_import")
    command.show(commands.line("workspace", "import", path or getattr(uploaded, "name", "") or "FILE"))
    if pressed:
        with frame.guarded(), imports.opened(workspace, uploaded, path) as file, st.spinner("Checking and unpacking"):
            done = backup.import_archive(workspace, file)
            here = f"; {count(done.unchanged, 'file')} already in the workspace" if done.unchanged else ""
            st.success(f"{count(done.files, 'file')} imported, {size(done.size)}{here}.")


def _prune(workspace: Workspace) -> None:
    kinds = st.multiselect(
        "What to delete", list(backup.PRUNABLE), default=list(backup.BY_DEFAULT), key="backup_kinds",
        help="; ".join(f"{name}: {about}" for name, about in backup.PRUNABLE.items()),
    )  # fmt: skip
    with frame.guarded():
        rows = backup.prunable(workspace, kinds)
        if rows:
            tables.show(
                {
                    "Item type": [row.what for row in rows],
                    "Files or folders": [row.n for row in rows],
                    "Size": [size(row.size) for row in rows],
                    "Description": [row.about for row in rows],
                },
                alt="What can be deleted",
            )
        nothing = not any(row.n for row in rows)
        pressed = access.button(
            "Delete these files", icon=":material/delete_sweep:", key="backup_prune", disabled=nothing
        )
        command.show(commands.line("workspace", "prune", *(f"--what={kind}" for kind in kinds), "--yes"))
        if pressed:
            gone = backup.prune(workspace, kinds)
            freed = sum(row.size for row in gone)
            st.success(
                f"{count(sum(row.n for row in gone), 'file or folder', 'files or folders')} deleted, {size(freed)} "
                "freed."
            )
