"""Queries that a benchmark judges among those to train on: what they are, and the yes that marks what follows."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.services.training import leakage
from cdp.services.training.leakage import Leak
from cdp.ui.shell.text import md


def consent(leaks: Sequence[Leak], key: str) -> bool:
    """Say what leaks, and ask for the yes; False until it is given. True where there is nothing to say."""
    if not leaks:
        return True
    for leak in leaks:
        st.error(f"**Test leakage.** {md(leak.sentence)}", icon=":material/gpp_maybe:")
    return st.checkbox(
        f"Train anyway. {leakage.FOLLOWS}",
        key="_".join([key, *(f"{leak.source}_{leak.benchmark}_{leak.split}" for leak in leaks)]),
        help="Choose another query set or benchmark instead: a score on queries seen in training says nothing "
        "about unseen queries.",
    )
