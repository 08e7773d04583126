"""The CW distribution of the target queries, and the recommendation that follows from it."""

from __future__ import annotations

from cdp.ui import complexity, frame
from cdp.workspace import Workspace

workspace = Workspace.default()
frame.head("complexity")

with frame.guarded():
    chosen = complexity.choose_source(workspace)
    if chosen is not None:
        found, domain = chosen
        answer = found.recommend(domain=domain)
        complexity.answer(answer, found)
        complexity.distribution(found)
        complexity.extremes(found)
        complexity.expected(answer)
        complexity.what_next(answer)
