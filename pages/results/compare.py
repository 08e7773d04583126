"""All recipes on a benchmark, and their differences from a baseline."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui import compare
from cdp.ui.shell import frame

workspace = Workspace.default()
frame.head("compare")

with frame.guarded():
    compare.page(workspace)
