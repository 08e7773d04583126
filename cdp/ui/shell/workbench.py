"""Deciding item after item: buttons, keys, undo, who decides, marked words, agreement κ. Review and Label use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import streamlit as st

from cdp.base.text import marked
from cdp.evaluation.calibration import Agreement
from cdp.ui.shell import forms, frame, tables
from cdp.ui.shell.tables import MISSING, html_marked, md, written

# In the session: who decides.
BY = "workbench_by"
# Characters of a document that are drawn, and from which on they are scrolled at this height in pixels.
LONGEST_SHOWN, LONG, HEIGHT = 20_000, 2_500, 560


class AnswerKey(NamedTuple):
    """An answer that can be given: its word in the log, its label, and its key (no letter that Streamlit uses)."""

    word: str
    label: str
    key: str
    icon: str | None = None


UNDO = AnswerKey("undo", "Undo", "B", ":material/undo:")


def who() -> str:
    """Ask for the name that stands with each decision."""
    return st.text_input(
        "Your name", key=BY, persist_state="session", max_chars=60, placeholder="Ada", width=240,
        help="Stored with each decision. Two people who decide about the same items show how well they agree.",
    ).strip()  # fmt: skip


def progress(done: int, total: int, sentence: str) -> None:
    """Draw how many of all items are decided."""
    st.progress(done / max(1, total))
    st.caption(md(sentence))


def text(title: str, body: str, words: Sequence[str]) -> None:
    """Draw a document with the words of a query marked."""
    height = HEIGHT if len(body) > LONG else "content"
    with st.container(height=height, border=True):
        if title:
            st.markdown(f"**{md(title, 160)}**")
        st.html(f"<p class='snippet' dir='auto'>{html_marked(marked(body[:LONGEST_SHOWN], words))}</p>")
        if len(body) > LONGEST_SHOWN:
            st.caption(f"The other {len(body) - LONGEST_SHOWN:,} characters are not shown.")


def answers(
    choices: Sequence[AnswerKey], key: str, press: Callable[[str], object], *, chosen: str = "", keys: bool = True,
    quiet: bool = False,
) -> None:  # fmt: skip
    """Draw a button per choice, ``press`` gets its word; the ``chosen`` one stands out. ``keys``: by keyboard too."""

    def pressed(word: str) -> None:
        with frame.guarded():
            press(word)

    others = "tertiary" if quiet else "secondary"
    for choice in choices:
        style: dict[str, Any] = {"type": others}
        if choice.word == chosen:
            style["type"] = "primary"
        if keys:
            style["shortcut"] = choice.key

        forms.button(
            choice.label, icon=choice.icon, key=f"{choice.word}_{key}", on_click=pressed, args=(choice.word,), **style
        )


def agreement(rows: Sequence[Agreement]) -> None:
    """Draw how well each two agree; nothing without two."""
    if rows:
        tables.show(
            tables.by_title(map(_agreement, rows)),
            alt="Agreement of people with each other and with a model",
            about={"κ weighted": "Cohen's κ with quadratic weights: grades that are far apart count more."},
        )


def _agreement(row: Agreement) -> dict[str, Any]:
    return {
        "First": row.first,
        "Second": row.second,
        "Both": row.pairs,
        "Same": f"{row.same:.0%}",
        "κ": written(row.kappa, "{:.2f}".format, MISSING),
        "κ weighted": written(row.weighted, "{:.2f}".format, MISSING),
    }
