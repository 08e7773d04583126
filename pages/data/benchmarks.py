"""Collections with judgments: yours and those available by name; judging by a model or people, and labels."""

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
            "judge": ("Judge", judging.page),
            "label": ("Label", labelling.page),
        },
    )
