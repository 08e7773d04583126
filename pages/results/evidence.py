"""The published tables with their relation to content words, and the studies of this workspace."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui.evidence import holds, published, studies
from cdp.ui.shell import forms, frame

frame.head("evidence")

with frame.guarded():
    forms.flash()
    tabs = {
        "published": ("Published evidence", published.page),
        "studies": ("Your studies", studies.page),
        "holds": ("Does it hold here?", holds.page),
    }
    frame.tabs(Workspace.default(), tabs)
