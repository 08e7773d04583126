"""The command line that does the same as a button."""

from __future__ import annotations

import streamlit as st


def show(*lines: str) -> None:
    """The equivalent commands, folded away, to copy."""
    with st.expander("The same on the command line", icon=":material/terminal:", type="compact"):
        st.code("\n".join(line for line in lines if line), language="bash", wrap_lines=True)
