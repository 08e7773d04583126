"""The command line that does the same as a button."""

from __future__ import annotations

import streamlit as st

from cdp.services.commands import PROGRAM

ALONE = ("train", "evaluate", "metrics", "search", "sweep", "decide")
"""Commands whose second word is an id or a text."""


def show(*lines: str, key: str = "") -> None:
    """The equivalent commands, folded away, to copy. A page shows each kind of command once, or gives it a ``key``.

    They are sent once the fold is opened: the browser's part that colours code takes a sixth of a second to start.
    """
    _folded([line for line in lines if line], key)


def key_of(lines: list[str]) -> str:
    """What the fold of these commands is known by, whatever their settings are: ``command-queries-import``."""
    words = lines[0].removeprefix(PROGRAM).split() if lines else []
    return "-".join(("command", *words[: 1 if words[:1] and words[0] in ALONE else 2]))


@st.fragment
def _folded(lines: list[str], key: str) -> None:
    folded = st.expander(
        "Show the command", icon=":material/terminal:", type="compact", key=key or key_of(lines),
        on_change="rerun",
    )  # fmt: skip
    if folded.open:
        folded.code("\n".join(lines), language="bash", wrap_lines=True)
