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
    request = complexity.choose_source(workspace)
    if request is not None:
        target = request.target
        answer = target.recommend(
            domain=request.domain, task=request.task, budget=request.budget, n_documents=request.n_documents
        )
        complexity.answer(workspace, answer, request)
        complexity_evidence.similar(answer)
        cw_distribution.heading()
        others = cw_distribution.compared(workspace, target)
        cw_distribution.distribution(target, others)
        cw_distribution.by_language(target, others)
        complexity.extremes(target)
        complexity_evidence.expected(answer)
        complexity_evidence.splits(answer)
        complexity.what_next(workspace, answer, request)
