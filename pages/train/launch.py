"""Set up a training or an evaluation; see what it comes to; start it."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui import launch
from cdp.ui.shell import forms, frame

frame.head("launch")

with frame.guarded():
    forms.flash()
    tabs = {"training": ("Training", launch.train), "evaluation": ("Evaluation", launch.evaluate)}
    frame.tabs(Workspace.default(), tabs)
