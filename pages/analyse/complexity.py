"""The CW distribution of the target queries, and the recommendation that follows from it."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.ui.complexity import advice as complexity
from cdp.ui.complexity import distribution as cw_distribution
from cdp.ui.complexity import evidence as complexity_evidence
from cdp.ui.shell import frame

workspace = Workspace.default()
frame.head("complexity")

with frame.guarded():
    asked = complexity.choose_source(workspace)
    if asked is not None:
        found = asked.found
        answer = found.recommend(
            domain=asked.domain, task=asked.task, budget=asked.budget, n_documents=asked.n_documents
        )
        complexity.answer(workspace, answer, asked)
        complexity_evidence.similar(answer)
        cw_distribution.heading()
        others = cw_distribution.compared(workspace, found)
        cw_distribution.distribution(found, others)
        cw_distribution.by_language(found, others)
        complexity.extremes(found)
        complexity_evidence.expected(answer)
        complexity_evidence.splits(answer)
        complexity.what_next(workspace, answer, asked)
