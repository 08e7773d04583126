"""Items that failed while a job or a measurement went on: how many, and each with its text and traceback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp.ui.shell import tables
from cdp.ui.shell.text import cut


def listing(lines: Sequence[dict[str, Any]], n: int, *, key: str) -> None:
    """A table of the first lines of a ``failures.jsonl``, ``n`` in all; choosing one shows its text and traceback."""
    row = tables.pick_row(
        {
            "Item type": [str(line.get("unit") or "document") for line in lines],
            "ID": [name_of(line) for line in lines],
            "Reason": [str(line.get("reason") or "") for line in lines],
            "Stage": [str(line.get("stage") or "") for line in lines],
        },
        alt="What failed and why; choose a row to see its text and traceback",
        key=key,
    )
    if n > len(lines):
        st.caption(f"Showing the first {len(lines)} of {n:,}. All are listed in failures.jsonl.")
    if row is None:
        return
    line = lines[row]
    raw = [str(text) for text in line.get("raw") or ()]
    for title, text in (
        ("Input text", str(line.get("text") or "")),
        ("Model answer", "\n\n".join(raw)),
        ("Traceback", str(line.get("traceback") or "")),
    ):
        if text:
            st.caption(title)
            st.code(cut(text, 4000), language=None, wrap_lines=True)


def name_of(line: dict[str, Any]) -> str:
    """The item's id; of a rejected row its line."""
    return str(line.get("id") or line.get("document_id") or (f"line {line['line']}" if line.get("line") else ""))
