"""The leaderboard: all runs of the project with score first, filters that say what they hide, and what people write."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, runs
from cdp.services import leaderboard as boards
from cdp.services.leaderboard import Board, BoardRow
from cdp.services.projects import Members
from cdp.ui.compare.choice import MOST
from cdp.ui.shell import forms, frame, state
from cdp.ui.shell.tables import MISSING, count, md

TABLE = "board_table"
# Under this name the address holds the runs that are compared below.
PICKED = "retrievers"

EVERY = "all"
FIRST = tuple(column.key for column in boards.COLUMNS if column.shown)


def show(workspace: Workspace, members: Members, evaluations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw it; the evaluations that may be compared below: those that are not archived, or asked for."""
    whole = boards.board(workspace, members, evaluations=evaluations)
    if not whole.every:
        return []
    shown = _filtered(whole)
    if shown.rows:
        _table(shown)
    else:
        st.caption("No row fits the filters.")
    _said_beside(shown)
    picked = [row for row in shown.every if row.run in st.query_params.get_all(PICKED)]
    if picked:
        _edit(workspace, picked)
    forms.command(commands.line("results", "list"))
    hidden = set() if _with_archived() else {row.id for row in whole.every if row.archived}
    return [row for row in shown.evaluations if row["id"] not in hidden]


def _with_archived() -> bool:
    return bool(st.session_state.get("board_archived"))


def _filtered(whole: Board) -> Board:
    """The board as the filters leave it. Scores of several benchmarks do not compare: the first is that with most."""
    places = {**{place: f"{place} ({n})" for place, n in whole.places.items()}, EVERY: "All benchmarks"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = EVERY
        if len(places) > 2:
            with st.container(width=260):
                place = state.choose("Benchmark of the table", places, "board") or EVERY
        active = any(st.session_state.get(key) for key in ("board_search", "board_tags"))
        tags: list[str] = []
        with st.popover("Filter (on)" if active else "Filter", icon=":material/filter_list:", type="tertiary"):
            text = st.text_input("Words", key="board_search", placeholder="diverse Q/Doc 5", persist_state="session")
            if whole.tags:
                tags = st.multiselect("Tags", whole.tags, key="board_tags", persist_state="session")
        with st.popover("Columns", icon=":material/view_column:", type="tertiary"):
            state.choose_many(
                "Columns", {column.key: column.title for column in boards.COLUMNS}, "columns", default=FIRST
            )
        if whole.archived:
            st.toggle(f"Archived ({whole.archived})", key="board_archived", persist_state="session")
    return boards.filtered(
        whole, benchmarks=[] if place == EVERY else [place], text=text or "", tags=tags, archived=_with_archived()
    )


def _table(shown: Board) -> None:
    rows = shown.rows
    names, common = boards.short_names(rows)
    keys = [key for key in (state.kept_many("columns") or list(FIRST)) if not _says_nothing(key, rows)]
    columns = [column for column in boards.COLUMNS if column.key in {"ndcg", "name", *keys}]
    cells: dict[str, list[Any]] = {
        column.title: [names[row.run] if column.key == "name" else column.value(row) for row in rows]
        for column in columns
    }
    current = st.query_params.get_all(PICKED)
    selected = [i for i, row in enumerate(rows) if row.run in current]
    if list(st.session_state.get(TABLE, {}).get("selection", {}).get("rows", [])) != selected:
        st.session_state[TABLE] = {"selection": {"rows": selected}}

    def pick() -> None:
        chosen = st.session_state[TABLE]["selection"]["rows"]
        runs = list(dict.fromkeys(rows[i].run for i in chosen if i < len(rows)))
        if runs:
            state.write(PICKED, runs[:MOST])
        else:  # nothing is chosen: below stand the best again
            state.forget(PICKED)

    st.dataframe(
        cells,
        hide_index=True,
        placeholder=MISSING,
        column_config={column.title: _format(column) for column in columns},
        key=TABLE,
        alt="Runs with NDCG@10 in percent, the difference from what each started from, and their settings",
        on_select=pick,
        selection_mode="multi-row",
        height="auto",
    )
    if common:
        st.caption(f"What all trained runs of this table share: {md(common)}.")


def _says_nothing(key: str, rows: Sequence[BoardRow]) -> bool:
    """Whether a column that nobody asked for would hold nothing, or one thing that the table says elsewhere."""
    if "columns" in st.query_params:
        return False
    if key in ("badges", "tags"):
        column = next(each for each in boards.COLUMNS if each.key == key)
        return not any(column.value(row) for row in rows)
    if key == "start":
        return len({row.start for row in rows if row.start}) < 2
    return key == "benchmark" and len({row.place for row in rows}) < 2


def _format(column: boards.Column) -> Any:
    if column.key == "ndcg":
        return st.column_config.NumberColumn(format="%.2f", help=column.help, width=78)
    if column.key == "difference":
        return st.column_config.NumberColumn(format="%+.2f", help=column.help, width=74)
    if column.digits is not None:
        shown = "%g" if column.key == "learning_rate" else f"%.{column.digits}f"
        return st.column_config.NumberColumn(format=shown, help=column.help)
    width = {"interval": 130, "badges": 240, "tags": 90}.get(column.key)
    return st.column_config.TextColumn(help=column.help, width=width)


def _said_beside(shown: Board) -> None:
    """What is not shown, and what the badges on screen mean."""
    n = len({row.run for row in shown.rows})
    hidden = boards.left_out(shown)
    marked = ["Runs that leaked or were stopped stand last."] if any(row.fault for row in shown.rows) else []
    counted = f"{count(n, 'run')}, {count(len(shown.rows), 'row')}."
    st.caption(" ".join([counted, *hidden, *marked, "Choose rows to compare them below; a click on a header sorts."]))
    meanings: dict[str, list[str]] = {}
    for row in shown.rows:
        for badge in row.badges:
            meanings.setdefault(badge.word, []).append(badge.meaning)
    if meanings:
        with st.expander(f"What the badges mean: {md(', '.join(meanings))}"):
            for word, texts in meanings.items():
                st.markdown(f"**{md(word)}** ({count(len(texts), 'row')}): {md(texts[0])}")


def _edit(workspace: Workspace, picked: Sequence[BoardRow]) -> None:
    """Name, tags, note and archive of the runs that are chosen."""
    chosen: Mapping[str, BoardRow] = {row.run: row for row in picked}
    first = next(iter(chosen.values()))
    alone = len(chosen) == 1
    with st.container(horizontal=True, vertical_alignment="center"):
        if not alone:
            st.markdown(f"**{count(len(chosen), 'run')} chosen**", width="content")
        with st.popover("Name, tags, note" if alone else "Tags", icon=":material/edit:", type="tertiary"):
            key = hashlib.sha256(" ".join(chosen).encode()).hexdigest()[:12]  # other runs, other fields
            name = note = ""
            if alone:
                own = "" if first.name == first.made_name else first.name
                name = st.text_input("Name", own, placeholder=first.made_name, key=f"name_{key}")
            before = set.intersection(*(set(row.tags) for row in chosen.values()))
            text = st.text_input(
                "Tags", ", ".join(sorted(before)), help="Words with a comma between them.", key=f"tags_{key}"
            )
            if alone:
                note = st.text_area("Note", first.note, key=f"note_{key}")
            if forms.button("Save", key="board_save", type="primary"):
                with frame.guarded():
                    tags = [tag.strip() for tag in text.split(",") if tag.strip()]
                    runs.annotate(workspace, chosen, add=tags, remove=before - set(tags))
                    if alone:
                        runs.annotate(workspace, chosen, name=name, note=note)
                    st.rerun()
        archived = all(row.archived for row in picked)
        label = "Bring back" if archived else "Archive"
        if forms.button(
            label,
            icon=":material/unarchive:" if archived else ":material/archive:",
            key="board_archive",
            type="tertiary",
            help="Archived rows are left out of the table and of comparisons, and counted. Nothing is deleted.",
        ):
            with frame.guarded():
                rows = [row.id for row in picked if row.archived and archived]
                runs.annotate(workspace, [*chosen, *rows], archived=not archived)
                state.forget(PICKED)
                st.rerun()
    if alone and first.note:
        st.caption(f":material/sticky_note_2: {md(first.note)}")
