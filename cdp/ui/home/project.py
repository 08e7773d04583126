"""The project on screen, on the overview: its notes, its name, and the way to remove it."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import projects
from cdp.services.projects import Project
from cdp.ui.shell import access, frame, imports, project
from cdp.ui.shell.text import md


def section(workspace: Workspace) -> None:
    """The notes as text, and a popover that changes name and notes. Nothing where all projects are shown."""
    current = project.current_project(workspace)
    if current is None:
        return
    if current.notes:
        st.markdown(md(current.notes))
    with st.popover("Name and notes", icon=":material/edit_note:", type="tertiary", key="project_open"):
        _edit(workspace, current)
        if not current.implied:
            _delete(workspace, current)


def _edit(workspace: Workspace, current: Project) -> None:
    name = st.text_input("Name", value=current.name, max_chars=80, key=f"project_name_{current.id}")
    notes = st.text_area("Notes", value=current.notes, key=f"project_notes_{current.id}")
    if access.button("Save", key="project_save", icon=":material/save:"):
        with frame.guarded():
            if name.strip() != current.name:
                projects.rename(workspace, current.id, name)
            if notes != current.notes:
                projects.annotate(workspace, current.id, notes)
            st.rerun()


def _delete(workspace: Workspace, current: Project) -> None:
    st.caption("Removing the project removes nothing else: its documents, benchmarks, queries and results stay.")
    sure = st.checkbox(f"Yes, remove the project {md(current.name, 60)}", key=f"project_sure_{current.id}")
    if access.button("Remove project", key="project_delete", icon=":material/delete:", disabled=not sure):
        with frame.guarded():
            projects.delete(workspace, current.id)
            imports.remember(f"The project {current.name} is removed.", ["What belonged to it is still here."])
            st.query_params.clear()
            st.rerun()
