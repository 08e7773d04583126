"""The published evidence: the relation to content words with its limits, and every table of the paper."""

from __future__ import annotations

import streamlit as st

from cdp import principle
from cdp.base.workspace import Workspace
from cdp.ui import evidence as evidence_page
from cdp.ui.shell import frame

RELATION, TABLES = "CW and gain", "All tables"

workspace = Workspace.default()
frame.head("evidence")

relation, every = st.tabs([RELATION, TABLES], default=TABLES if "table" in st.query_params else RELATION)
with relation, frame.guarded():
    choice = evidence_page.choose_evidence()
    data = principle.differences(choice)
    fit = principle.threshold(data)
    correlations = principle.correlation_table(data)
    evidence_page.answer(fit, correlations, choice)
    if choice == principle.MULTI_HOP:
        evidence_page.rests_on(fit)
    evidence_page.scatter(data, fit)
    evidence_page.correlation_table(correlations)
    evidence_page.rates(data, fit)
with every, frame.guarded():
    evidence_page.all_tables()
with frame.guarded():
    evidence_page.what_next()
