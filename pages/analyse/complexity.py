"""The CW distribution of the target queries, and the recommendation that follows from it."""

from __future__ import annotations

from cdp.ui import complexity, cw_distribution, frame
from cdp.workspace import Workspace

workspace = Workspace.default()
frame.head("complexity")

with frame.guarded():
    asked = complexity.choose_source(workspace)
    if asked is not None:
        found = asked.found
        answer = found.recommend(domain=asked.domain, budget=asked.budget, n_documents=asked.n_documents)
        complexity.answer(answer, asked)
        cw_distribution.heading()
        others = cw_distribution.compared(workspace, found)
        cw_distribution.distribution(found, others)
        cw_distribution.by_language(found, others)
        complexity.extremes(found)
        complexity.expected(answer)
        complexity.splits(answer)
        complexity.what_next(answer)
