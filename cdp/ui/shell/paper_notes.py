"""What the paper leaves open or says in two ways, beside the part of the dashboard that it touches."""

from __future__ import annotations

import streamlit as st

from cdp.services import complexity
from cdp.ui.shell.text import count, md


def beside(feature: str) -> None:
    """A quiet line with the notes on a feature (``complexity.NOTES_ON``)."""
    notes = complexity.notes_on(feature)
    with st.popover(f"{count(len(notes), 'note')} on the paper", type="tertiary", icon=":material/sticky_note_2:"):
        for note in notes:
            facts = "; ".join(
                f"{word}: {text}" for word, text in (("printed", note.printed), ("computed", note.computed)) if text
            )
            st.markdown(f"- {md(note.note)}" + (f"  \n  :gray[{md(facts)}]" if facts else ""))
