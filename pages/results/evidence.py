"""The published tables with their relation to content words, and the studies of this workspace."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui.evidence import published, studies
from cdp.ui.shell import forms, frame, state

workspace = Workspace.default()
frame.head("evidence")

with frame.guarded():
    forms.flash()
    opened = state.tabs({"published": "Published evidence", "studies": "Your studies"})
    if opened["published"].open:
        with opened["published"], frame.guarded():
            published.page()
    if opened["studies"].open:
        with opened["studies"], frame.guarded():
            studies.page(workspace)
