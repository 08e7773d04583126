"""Grades of judgments: columns that hold them, words for relevant and not relevant, and how values were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from cdp.base.errors import some
from cdp.base.text import counted
from cdp.base.workspace import shipped_table
from cdp.corpus.checks import GUESSES, cell_of, columns_named, excerpt

LARGEST_GRADE = 10**9
A_GRADE = "a whole number, yes or no, true or false, relevant or not relevant"
# Values of a column that a sentence names.
SHOWN_VALUES = 8

_BY_MEANING = shipped_table("words/grades")
WORDS = {
    **dict.fromkeys(chain.from_iterable(_BY_MEANING["relevant"].values()), 1),
    **dict.fromkeys(chain.from_iterable(_BY_MEANING["not_relevant"].values()), 0),
}


def grade_of(value: Any) -> int | None:
    """Return a grade: a whole number below a billion (``2``, ``2.0``, ``−1``), true or false, or a word of ``WORDS``.

    None for anything else. Grades above 0 are relevant.
    """
    value = _single(value)
    if not isinstance(value, (str, int, float)):
        return None
    text = str(value).strip().casefold()
    if text in WORDS:
        return WORDS[text]
    try:
        number = float(text.replace("\u2212", "-"))
    except ValueError:
        return None
    return int(number) if abs(number) < LARGEST_GRADE and number.is_integer() else None


def _single(value: Any) -> Any:
    """Return the only text of a list, as doccano writes a label; any other value as it is."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError):
            value = cell_of(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]

    return value


def grade_columns(
    rows: Sequence[Mapping[str, Any]], chosen: str | None = None, others: Collection[str | None] = ()
) -> tuple[str, ...]:
    """Return the columns with grades: the chosen one, else those with a name for it whose values in ``rows`` mostly are
    grades (a column ``score`` may hold similarities), but for ``others``, which hold something else."""
    if chosen is not None:
        return (chosen,)
    names = dict.fromkeys(chain.from_iterable(rows))
    found = []
    for name in columns_named([name for name in names if name not in others], GUESSES["grade"]):
        values = [row[name] for row in rows if row.get(name) not in (None, "")]
        if 2 * list(map(grade_of, values)).count(None) < len(values):
            found.append(name)
    return tuple(found)


@dataclass
class Grades:
    """Reads the grade of each row, from the first of ``columns`` that is not empty in it, and counts the values."""

    columns: tuple[str, ...]
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    missing: int = 0

    def of(self, row: Mapping[str, Any]) -> int | None:
        """Return the grade of a row: 1 where there are no such columns, None where they hold no grade."""
        if not self.columns:
            return 1
        value = next((row[name] for name in self.columns if row.get(name) not in (None, "")), None)
        grade = grade_of(value)
        if grade is None:
            self.missing += 1
        else:
            self.counts[excerpt(_single(value)), grade] += 1
        return grade

    def sentence(self) -> str:
        """``Grades in the column label: yes is 1 (3 rows), no is 0 (2 rows). 2 rows are judged not relevant.``"""
        if not self.counts:
            return ""
        values: list[str] = []
        n_not_relevant = 0
        for (value, grade), n in self.counts.most_common():
            values.append(f"{value} is {grade} ({counted(n, 'row')})")
            n_not_relevant += n * (grade <= 0)

        said = f"Grades in the column {' or '.join(self.columns)}: {some(values, SHOWN_VALUES)}."
        if n_not_relevant:
            said += f" {counted(n_not_relevant, 'row')} judged not relevant: no training pairs."
        if self.missing:
            said += f" {counted(self.missing, 'row')} without a grade left out."
        return said
