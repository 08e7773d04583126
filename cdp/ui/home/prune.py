"""Freeing disk space, folded away at the end of the overview."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, prune
from cdp.services.job_words import size
from cdp.ui.shell import access, command, frame, tables
from cdp.ui.shell.text import count


def section(workspace: Workspace) -> None:
    """Draw what can be deleted, by kind, with the button and the command that delete it."""
    folded = st.expander("Free up space", icon=":material/delete_sweep:", key="prune", on_change="rerun")
    if not folded.open:
        return
    with folded:
        _prune(workspace)


def _prune(workspace: Workspace) -> None:
    kinds = st.multiselect(
        "What to delete", list(prune.PRUNABLE), default=list(prune.BY_DEFAULT), key="prune_kinds",
        help="; ".join(f"{name}: {about}" for name, about in prune.PRUNABLE.items()),
    )  # fmt: skip
    with frame.guarded():
        rows = prune.prunable(workspace, kinds)
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
            "Delete these files", icon=":material/delete_sweep:", key="prune_delete", disabled=nothing
        )
        command.show(commands.line("workspace", "prune", *(f"--what={kind}" for kind in kinds), "--yes"))
        if pressed:
            deleted = prune.prune(workspace, kinds)
            freed = sum(row.size for row in deleted)
            st.success(
                f"{count(sum(row.n for row in deleted), 'file or folder', 'files or folders')} deleted, {size(freed)} "
                "freed."
            )
