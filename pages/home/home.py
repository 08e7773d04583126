"""The person's question: its answer, or the one next step; what is in the workspace."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.services import corpora
from cdp.ui import home
from cdp.ui.shell import forms, frame, state

workspace = Workspace.default()
frame.head("home")

with frame.guarded():
    forms.flash()
    mine = [corpus.id for corpus in state.of_project(workspace, "corpus", corpora.list_corpora(workspace))]
    if mine:
        home.answer(workspace, mine)
        home.contents(workspace)
    else:
        home.begin(workspace)
    home.project_section(workspace)
