"""The shipped figures: complete against the reference data, shown with marks, notes where they stand."""

from __future__ import annotations

import csv

import pytest

from cdp.base.errors import NotFoundError
from cdp.principle.tables import TABLES, Note, notes, read, resolve, table, wide
from tests.support import shared


def reference(name: str) -> list[dict[str, str]]:
    with open(shared(f"paper/{name}.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("ours", "theirs", "column"),
    [
        ("results", "results", "value_printed"),
        ("qd_metrics", "qd_metrics", "value_printed"),
        ("threshold_printed", "threshold", "value_printed"),
        ("correlation_printed", "cdp_correlation", "p_printed"),
        ("error_analysis", "error_analysis", "value_printed"),
    ],
)
def test_every_printed_number_is_there_as_printed(ours: str, theirs: str, column: str) -> None:
    assert [row[column] for row in read(ours)] == [row[column] for row in reference(theirs)]


@pytest.mark.slow
def test_every_results_row_belongs_to_a_table_that_is_listed() -> None:
    assert {row["table"] for row in read("results")} <= set(TABLES)
    assert {row["table"] for row in read("qd_metrics")} <= set(TABLES)
    counts = {name: len(table(name).rows) for name in TABLES}
    assert all(counts.values())
    scores = sum(n for name, n in counts.items() if TABLES[name].file == "results")
    assert scores == len(read("results")) == 1420


def test_each_conflict_has_a_note_in_our_own_words() -> None:
    theirs = reference("discrepancies")
    assert [note.id for note in notes()] == [int(row["id"][1:]) for row in theirs]
    for note, row in zip(notes(), theirs, strict=True):
        assert note.note != row["explanation"]
        words, their_words = note.note.split(), f" {' '.join(row['explanation'].split())} "
        runs = [" ".join(words[i : i + 9]) for i in range(len(words) - 8)]
        assert not any(f" {run} " in their_words for run in runs)


@pytest.mark.slow
def test_every_note_stands_at_some_row() -> None:
    placed = {number for name in TABLES for number in table(name).related}
    assert placed == {note.id for note in notes()}


def test_notes_stand_where_they_apply() -> None:
    rows = table("multihop_scaling").rows
    with_first = [(r["retriever"], r["dataset"], r["queries_per_doc"]) for r in rows if 1 in r["notes"]]
    assert with_first == [("RetroMAE", "hotpotqa", m) for m in (2, 5, 10, 20)]
    assert table("multihop_scaling").on_all == (37,)


def test_a_note_without_a_pattern_concerns_no_row() -> None:
    note = Note(1, "mark", "", "", "", ({"table": "tab:main_results", "n_docs": [8000]},))
    assert note.concerns({"table": "tab:main_results", "n_docs": 8000})
    assert not note.concerns({"table": "tab:main_results", "n_docs": 80000})
    assert not note.concerns({"table": "tab:main_results"})


@pytest.mark.slow
def test_the_wide_form_holds_every_number_once() -> None:
    for name, info in TABLES.items():
        if info.file != "results":
            continue
        found = table(name)
        columns, lines = wide(found)
        places = {row["dataset"] or f"{row['group']} average" for row in found.rows}
        cells = [str(line[c]).split(" / ") for line in lines for c in columns if c in places and line[c]]
        assert sum(map(len, cells)) == len(found.rows), name


def test_marks_of_the_paper_are_kept() -> None:
    rows = table("multihop_scaling").rows
    best = {r["value_printed"] for r in rows if r["mark"] == "●" and r["dataset"] == "novelhopqa"}
    assert best == {"64.37", "71.17"}


def test_names_of_tables() -> None:
    assert resolve("tab:main_results") is resolve("main_results")
    assert resolve("qdoc_distribution").kind == "figure"
    assert resolve("cost_efficiency_full").kind == "table"
    assert resolve("fig:cost_efficiency_full").kind == "figure"
    with pytest.raises(NotFoundError, match="no_such"):
        resolve("no_such")
