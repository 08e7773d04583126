"""Your own benchmarks, then those available by name: sizes, licences, downloads and group means."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui import benchmarks
from cdp.ui.shell import forms, frame

frame.head("benchmarks")

with frame.guarded():
    forms.flash()
    benchmarks.page(Workspace.default())
