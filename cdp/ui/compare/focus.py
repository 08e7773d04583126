"""Which of the compared retrievers stand out: one choice, made in the table or in a chart, shown in both.

The choice is kept under ``focus`` and stands in the address. The table's selection is set from it on every drawing. A
chart remembers what was clicked in it until its turn changes, so every choice is a new turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.ui.shell import state
from cdp.ui.shell.tables import MISSING

PARAM = "focus"
TABLE = "focus_table"
TURN = "focus_turn"


def chosen(names: Mapping[str, str]) -> list[str]:
    """The names in focus; ``names`` maps the shown retrievers' ids to their names."""
    requested = st.query_params.get_all(PARAM) or state.kept_many(PARAM)
    ids = [key for key in requested if key in names]
    _write(ids)
    return [names[key] for key in ids]


def turn() -> int:
    """How often the focus was chosen: for the charts that follow it."""
    return int(st.session_state.get(TURN, 0))


def table(columns: Mapping[str, Sequence[Any]], ids: Sequence[str], *, alt: str, config: Mapping[str, Any]) -> None:
    """A table with one retriever to a row; choosing rows puts these in focus."""
    current = st.query_params.get_all(PARAM)
    rows = [i for i, retriever_id in enumerate(ids) if retriever_id in current]
    if list(st.session_state.get(TABLE, {}).get("selection", {}).get("rows", [])) != rows:
        st.session_state[TABLE] = {"selection": {"rows": rows}}

    def picked() -> None:
        _choose([ids[row] for row in st.session_state[TABLE]["selection"]["rows"] if row < len(ids)])

    st.dataframe(
        dict(columns),
        hide_index=True,
        placeholder=MISSING,
        column_config=dict(config),
        key=TABLE,
        alt=alt,
        on_select=picked,
        selection_mode="multi-row",
        height="auto",
    )


def toggle(names: Mapping[str, str], points: Sequence[Mapping[str, Any]]) -> None:
    """A click on a chart: the retriever of the point comes into focus, or leaves it. ``customdata`` holds its name."""
    by_name = {name: key for key, name in names.items()}
    current = st.query_params.get_all(PARAM)
    for point in points:
        data = point.get("customdata")
        clicked = by_name.get(str(data[0] if isinstance(data, (list, tuple)) and data else data))
        if clicked is not None:
            current = (
                [retriever_id for retriever_id in current if retriever_id != clicked]
                if clicked in current
                else [*current, clicked]
            )
    _choose(current)


def _choose(ids: list[str]) -> None:
    state.write(PARAM, ids)
    st.session_state[TURN] = turn() + 1


def _write(ids: list[str]) -> None:
    state.keep(PARAM, ids)
    if ids and st.query_params.get_all(PARAM) != ids:
        st.query_params[PARAM] = ids
    elif not ids and PARAM in st.query_params:
        del st.query_params[PARAM]
