"""Collections with judgments: yours and those available by name; a model as judge, and people's labels."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui.benchmarks import collections, judging, labelling
from cdp.ui.shell import forms, frame

frame.head("benchmarks")

with frame.guarded():
    forms.flash()
    frame.tabs(
        Workspace.default(),
        {
            "collections": ("Collections", collections.page),
            "judge": ("Judge by a model", judging.page),
            "label": ("Label", labelling.page),
        },
    )
