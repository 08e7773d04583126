"""A job once more, with changed settings: the form it came from, filled with what it was run with.

A link carries the job's id as ``?clone=``; the page's form then begins with that job's settings, under widget keys of
their own, so that what was typed into the form before is neither used nor lost.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.services import jobs
from cdp.services.jobs import JobView
from cdp.ui.shell import access, forms, frame, navigation
from cdp.ui.shell.text import md

LABEL = "Run again with changes"

PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "synthesis": ("queries", {"corpus": "corpus"}),
    "metrics": ("quality_diversity", {"sets": "query_set", "human": "human"}),
    "training": ("launch", {"query_set": "query_set", "retriever": "retriever"}),
    "study": ("study", {}),
}
"""Where each kind of job is set up, and which settings the link carries as selections (parameter → setting)."""


HERE = {
    "evaluation": "Start the evaluation",
    "round-trip": "Measure the ranks",
    "filter": "Make the filtered set",
    "index": "Index the documents",
}
"""What starts a job of a kind whose settings are asked for in a dialog."""


def button(workspace: Workspace, view: JobView) -> None:
    """What opens the form with this job's settings: on the page of its kind, or here for kinds that have none."""
    if view.kind in PAGES:
        page, carried = PAGES[view.kind]
        carried_values = {param: str(view.config.get(field) or "") for param, field in carried.items()}
        params: dict[str, str | list[str]] = {param: value for param, value in carried_values.items() if value}
        navigation.link(page, LABEL, icon=":material/content_copy:", clone=view.id, **params)
    elif view.kind in HERE and st.button(LABEL, icon=":material/content_copy:", key=f"clone_{view.id}"):
        _again(workspace, view)


def first(workspace: Workspace, kind: str) -> tuple[dict[str, Any], str]:
    """The settings with which a form for this kind of job begins, and what to add to its widgets' keys.

    ({}, "") unless the page was opened with the settings of a job; where it was, that is said.
    """
    job_id = st.query_params.get("clone", "")
    if not job_id:
        return {}, ""
    try:
        view = jobs.show(workspace, job_id, with_size=False)
        values, left_out = jobs.prefill(workspace, view.id)
    except CdpError as error:
        frame.show_error(error)
        return {}, ""
    if view.kind != kind:
        return {}, ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":material/content_copy: Filled in with the settings of **{md(view.name, 80)}**.", width="content")
        if st.button("Clear settings", key="clone_leave", type="tertiary"):
            del st.query_params["clone"]
            st.rerun()
    _remark(left_out)
    return {**values, "name": ""}, f"_{view.id}"


def asked() -> bool:
    """Whether the page was opened with the settings of a job."""
    return bool(st.query_params.get("clone"))


@st.dialog("Run again with changes", width="large")
def _again(workspace: Workspace, view: JobView) -> None:
    with frame.guarded():
        first_values, left_out = jobs.prefill(workspace, view.id)
        values = forms.fields(jobs.CONFIGS[view.kind], key=f"again_{view.id}", values=first_values)
        _remark(left_out)
        if access.button(HERE[view.kind], type="primary", key="again_start"):
            # What was not changed was not named by this person: the check of stored settings applies to it.
            changes = {name: value for name, value in values.items() if value != first_values.get(name)}
            job_id = jobs.start(workspace, view.id, {"name": "", **changes} if "name" in values else changes)
            navigation.go("jobs", job=job_id)


def _remark(left_out: dict[str, list[str]]) -> None:
    if left_out:
        listed = ", ".join(f"{md(name)} ({md(', '.join(values), 200)})" for name, values in left_out.items())
        st.caption(f"Not filled in, because it leads out of the workspace: {listed}. Enter it again if you know it.")
