"""The published evidence: the relation to content words with its limits, and every table of the paper."""

from __future__ import annotations

from cdp.services import published
from cdp.ui import evidence, frame
from cdp.workspace import Workspace

workspace = Workspace.default()
frame.head("evidence")

with frame.guarded():
    choice, implied = evidence.choose_evidence()
    data = published.differences(choice, implied=implied)
    fit = published.threshold(data)
    found = published.correlation_table(data)
    evidence.answer(fit, found, choice)
    evidence.scatter(data, fit)
    evidence.correlation_table(found)
    evidence.rates(data, fit)
    evidence.elsewhere()
    evidence.all_tables(workspace)
    evidence.what_next()
