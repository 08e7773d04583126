"""The published evidence: the relation to content words with its limits, every claim, and every table of the paper."""

from __future__ import annotations

import streamlit as st

from cdp import principle
from cdp.base.workspace import Workspace
from cdp.ui.evidence import checks as evidence_checks
from cdp.ui.evidence import published as evidence
from cdp.ui.shell import frame

RELATION, CLAIMS, TABLES = "CW and gain", "Claims and limits", "All tables"

workspace = Workspace.default()
frame.head("evidence")

relation, claims, every = st.tabs(
    [RELATION, CLAIMS, TABLES], default=TABLES if "table" in st.query_params else RELATION
)
with relation, frame.guarded():
    choice, implied = evidence.choose_evidence()
    data = principle.differences(choice, implied=implied)
    fit = principle.threshold(data)
    correlations = principle.correlation_table(data)
    evidence.answer(fit, correlations, choice)
    evidence.by_retriever(data)
    if choice == principle.MULTI_HOP:
        evidence_checks.rests_on(fit)
    evidence.scatter(data, fit)
    evidence.correlation_table(correlations)
    evidence.rates(data, fit)
    evidence.elsewhere()
    evidence_checks.prediction_check()
with claims, frame.guarded():
    evidence_checks.limits()
    evidence_checks.claims()
with every, frame.guarded():
    evidence.all_tables(workspace)
with frame.guarded():
    evidence.what_next()
