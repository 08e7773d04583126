"""A look at a table before its import: the first rows, and a dropdown for the column of each role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.base.settings import Config
from cdp.corpus.looking import FilePreview
from cdp.corpus.options import NO_FIELD
from cdp.ui.shell import forms, frame, tables
from cdp.ui.shell.tables import count, md

TITLES = {
    "id_field": "ID", "title_field": "Title", "text_field": "Text", "query_field": "Queries",
    "document_field": "Document ID", "split_field": "Split", "grade_field": "Grade",
}  # fmt: skip
# Chosen where no column has a role.
NONE = "none"
ROWS = 3


def rows(preview: FilePreview) -> None:
    """Draw the first rows, and the columns with empty cells in them."""
    more = ""
    if preview.n_files > 1:
        more = f" and {count(preview.n_files - 1, 'more file')}"

    if preview.rows:
        first = preview.rows[:ROWS]
        st.caption(f"The first {count(len(first), 'row')} of {md(preview.file)}{more}")
        tables.show(
            {column: [row.get(column, "") for row in first] for column in preview.columns},
            alt=f"The first rows of {preview.file}",
        )
    else:
        st.caption(f"{md(preview.file)} has no row that can be shown{more}.")

    frame.remarks([note for note in preview.notes if "not the corpus of a BEIR folder" not in note])

    gaps = [f"{column} in {n:,}" for column, n in preview.gaps.items() if n]
    if gaps:
        frame.remarks([f"Empty among the first {preview.looked_at:,} rows: {', '.join(gaps)}."])
    if preview.unreadable:
        frame.remarks([f"{count(preview.unreadable, 'row')} of them cannot be read."], "warning")


def dropdowns(
    config: type[Config],
    preview: FilePreview,
    fields: Sequence[str],
    guessed: Mapping[str, str | None],
    key: str,
    always: Sequence[str] = (),
) -> dict[str, Any]:
    """Draw a select box for each role, a field of ``config``, and how a column of grades is read. Return the choices
    that differ from what would be found by name; roles in ``always`` are returned in any case."""
    chosen: dict[str, Any] = {}
    grades: str | None = None
    with st.grid(len(fields), min_column_width=150):
        for field in fields:
            first = guessed[field]
            options = [NONE, *preview.columns]
            if field == "text_field" and first:
                options.remove(NONE)

            picked = forms.pick(
                TITLES[field],
                options,
                first=first,
                key=f"{key}_{field}_{abs(hash((preview.file, preview.columns))):x}",
                help=config.settings()[field].help.replace(f"; {NO_FIELD} ", f"; {NONE} "),
                persistent=False,
            )
            if field == "grade_field" and picked != NONE:
                grades = picked

            if picked != NONE and (picked != first or field in always):
                chosen[field] = picked
            elif picked == NONE and first and field in ("id_field", "title_field"):
                chosen[field] = NO_FIELD
            elif picked == NONE and field == "query_field" and key == "corpus" and first:
                chosen["with_queries"] = False

    if grades is not None:
        _grades(preview, grades)

    return chosen


def _grades(preview: FilePreview, column: str) -> None:
    """How the first values of a column are read as grades."""
    known: list[str] = []
    odd: list[str] = []
    for value, grade in preview.grades(column).items():
        if grade is None:
            odd.append(value)
        else:
            known.append(f"{value} is {grade}")

    if known:
        st.caption(md(f"Grades: {', '.join(known)}. 0 and below are judged not relevant."))
    if odd:
        frame.remarks([f"No grade, so these rows are left out: {', '.join(odd)}."], "warning")
