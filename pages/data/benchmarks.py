"""Collections with judgments: yours and those available by name; a model as judge, and people's labels."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui.benchmarks import collections, judging, labelling
from cdp.ui.shell import forms, frame, state

TABS = {"collections": "Collections", "judge": "Judge by a model", "label": "Label"}

workspace = Workspace.default()
frame.head("benchmarks")

with frame.guarded():
    forms.flash()
    opened = state.tabs(TABS)
    for tab, draw in (("collections", collections.page), ("judge", judging.page), ("label", labelling.page)):
        if opened[tab].open:
            with opened[tab], frame.guarded():
                draw(workspace)
