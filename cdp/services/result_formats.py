"""A table like a paper's: retrievers by datasets, the best bold, the second underlined, a dagger where a note applies.

Values are percent with one decimal, and compared as they are printed, so equal cells are marked alike. A group's mean
over fewer datasets than the group has carries its coverage (``41.2 (12/14)``) and competes with no full mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Values = Mapping[tuple[str, str], float]
"""{(retriever, dataset): percent}; a pair that was not evaluated is left out."""


@dataclass(frozen=True)
class Cell:
    """One number of the table. ``place`` is 1 for the best of its column, 2 for the second, else 0. ``mark`` says why
    a number competes with none: ``leaked``."""

    value: float | None
    place: int = 0
    dagger: bool = False
    coverage: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Headings and cells, ready to be written. ``rows`` holds (retriever, cells in the order of ``columns``).

    The first of the ``notes`` says what the daggers mean; others are about the whole table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    measure: str = "NDCG@10"
    notes: tuple[str, ...] = field(default=())

    def write(self, format: str) -> str:
        """The table as ``markdown`` or ``latex``."""
        return to_latex(self) if format == "latex" else to_markdown(self)

    def records(self) -> list[dict[str, Any]]:
        """One record per retriever, with value, place, dagger and coverage by column."""
        return [
            {
                "retriever": name,
                "cells": {
                    column: {
                        "value": cell.value,
                        "place": cell.place or None,
                        "dagger": cell.dagger,
                        "coverage": cell.coverage or None,
                        **({"mark": cell.mark} if cell.mark else {}),
                    }
                    for column, cell in zip(self.columns, cells, strict=True)
                },
            }
            for name, cells in self.rows
        ]


def comparison_table(
    values: Values,
    *,
    retrievers: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    daggers: Collection[tuple[str, str]] = (),
    measure: str = "NDCG@10",
    notes: Sequence[str] = (),
    marks: Mapping[tuple[str, str], str] | None = None,
) -> Table:
    """A table with the datasets of each group and, for a group of several, its mean.

    ``groups`` maps a group's name to all its datasets, evaluated or not; a dataset that nobody was evaluated on gets no
    column but counts in the coverage, and one of several groups has its column in the first of them. ``daggers`` are
    the (retriever, dataset) pairs that the notes speak of, ``marks`` those that compete with no other.
    """
    marks = marks or {}
    seen = {dataset for _, dataset in values}
    columns: list[str] = []
    cells: dict[str, list[Cell]] = {retriever: [] for retriever in retrievers}
    for group, members in groups.items():
        for dataset in members:
            if dataset in seen and dataset not in columns:
                columns.append(dataset)
                for retriever in retrievers:
                    pair = (retriever, dataset)
                    cells[retriever].append(Cell(values.get(pair), dagger=pair in daggers, mark=marks.get(pair, "")))
        if len(members) > 1 and seen.intersection(members):
            columns.append(f"{group} mean")
            for retriever in retrievers:
                mean = _mean([values.get((retriever, dataset)) for dataset in members])
                mark = ", ".join(dict.fromkeys(marks[retriever, d] for d in members if (retriever, d) in marks))
                cells[retriever].append(replace(mean, mark=mark))
    ranked = [_ranked([cells[retriever][i] for retriever in retrievers]) for i in range(len(columns))]
    rows = tuple((name, tuple(column[j] for column in ranked)) for j, name in enumerate(retrievers))
    return Table(tuple(columns), rows, measure, tuple(notes))


def _mean(values: Sequence[float | None]) -> Cell:
    present = [value for value in values if value is not None]
    if not present:
        return Cell(None, coverage=f"0/{len(values)}")
    coverage = "" if len(present) == len(values) else f"{len(present)}/{len(values)}"
    return Cell(sum(present) / len(present), coverage=coverage)


def _ranked(column: Sequence[Cell]) -> list[Cell]:
    """The cells of a column with their places; a column of one value has no best."""
    printed = [
        _number(cell) if cell.value is not None and not (cell.coverage or cell.mark) else None for cell in column
    ]
    distinct = sorted({float(text) for text in printed if text is not None}, reverse=True)
    if sum(text is not None for text in printed) < 2:
        return list(column)
    ranks = {value: rank for rank, value in enumerate(distinct[:2], start=1)}
    return [
        replace(cell, place=ranks.get(float(text), 0) if text is not None else 0)
        for cell, text in zip(column, printed, strict=True)
    ]


def _number(cell: Cell) -> str:
    return "–" if cell.value is None else f"{cell.value:.1f}"


def _shown(cell: Cell, bold: str, underlined: str, dagger: str) -> str:
    text = _number(cell)
    if cell.place:
        text = (bold if cell.place == 1 else underlined).format(text)
    if cell.dagger:
        text += dagger
    more = ", ".join(filter(None, (cell.coverage, cell.mark)))
    return f"{text} ({more})" if more and cell.value is not None else text


def to_markdown(table: Table) -> str:
    """A GitHub-flavoured table; the second best is underlined with HTML's ``u``. Names and notes are shown as text."""

    def row(texts: Sequence[str]) -> str:
        return "| " + " | ".join(texts) + " |"

    heads = [_markdown(text) for text in (table.measure, *table.columns)]
    lines = [row(heads), "|:--|" + "--:|" * len(table.columns)]
    for name, cells in table.rows:
        lines.append(row([_markdown(name), *(_shown(cell, "**{}**", "<u>{}</u>", "†") for cell in cells)]))
    marks = ["† ", *[""] * len(table.notes)]
    notes = [f"\n{mark}{_markdown(note)}" for mark, note in zip(marks, table.notes, strict=False)]
    return "\n".join([*lines, *notes]) + "\n"


def _markdown(text: str) -> str:
    """A text that Markdown and the HTML in it leave alone, on one line."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", plain)


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "*": "{*}",
}  # fmt: skip
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}


def _latex(text: str) -> str:
    """A text that LaTeX prints as it is, on one line, also after a line's end (which takes [ and * for its own)."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def to_latex(table: Table) -> str:
    """A ``tabular`` with booktabs' rules, its notes below it."""
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(_latex(text) for text in [table.measure, *table.columns]) + r" \\",
        r"\midrule",
    ]
    for name, cells in table.rows:
        shown = (_shown(cell, r"\textbf{{{}}}", r"\underline{{{}}}", r"$^\dagger$") for cell in cells)
        lines.append(" & ".join([_latex(name), *(text.replace("–", "--") for text in shown)]) + r" \\")
    marks = [r"$^\dagger$ ", *[""] * len(table.notes)]
    notes = zip(marks, table.notes, strict=False)
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip{{\footnotesize {mark}{_latex(note)}\par}}" for mark, note in notes]
    return "\n".join(lines) + "\n"
