"""The table *Tried*: a row for each question, a column for each server; and whether the documentation says the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.endpoints import probes
from tests.endpoints.counterparts import Counterpart
from tests.endpoints.probes import NOTHING
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "endpoint.md"
BEGIN, END = "<!-- tried: make endpoints -->", "<!-- /tried -->"


@dataclass
class Column:
    """What was seen of one counterpart; ``skipped`` says why nothing was."""

    counterpart: Counterpart
    cells: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    skipped: str = ""

    @property
    def title(self) -> str:
        return f"{self.counterpart.title} {self.counterpart.version}"


def markdown(columns: Sequence[Column]) -> str:
    """Return the tables: one of what chats, one of what embeds."""
    chatting = [column for column in columns if column.counterpart.chats and not column.skipped]
    embedding = [column for column in columns if column.counterpart.embeds and not column.skipped]
    parts = []
    if chatting:
        parts.append(_table(chatting, lambda row: "embed" not in row))
    if embedding:
        parts.append(_table(embedding, lambda row: "embed" in row or row in probes.BOTH))
    return "\n\n".join(parts)


def _table(columns: Sequence[Column], wanted: Callable[[str], bool]) -> str:
    rows = [row for row in dict.fromkeys(row for column in columns for row in column.cells) if wanted(row)]
    lines = ["| | " + " | ".join(column.title for column in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = [column.cells.get(row, NOTHING) for column in columns]
        if set(cells) != {NOTHING}:
            lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(columns: Sequence[Column]) -> list[str]:
    """Return where docs/how-to/endpoint.md says something else than was seen."""
    documented = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    said, seen = _cells(documented), _cells(markdown(columns))
    return [
        f"{column}, {row}: the page says {said.get((column, row), 'nothing')}, seen was {cell}"
        for (column, row), cell in seen.items()
        if said.get((column, row)) != cell
    ]


def _cells(text: str) -> dict[tuple[str, str], str]:
    """Return the cells of all tables in a Markdown text, by column and row."""
    found, titles = {}, list[str]()
    for line in text.splitlines():
        if not line.startswith("|"):
            titles = []
            continue
        first, *others = [cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")]
        if not titles:
            titles = others
        elif set(first) != {"-"}:
            found.update({(title, first): cell for title, cell in zip(titles, others, strict=True)})
    return found


def write(columns: Sequence[Column], out: Path, minutes: float) -> str:
    """Write the table with counts, faults and skips to ``out``; return the text."""
    parts = [markdown(columns), f"{minutes:.1f} minutes."]
    for column in columns:
        parts += [f"{column.title}: {note}" for note in column.notes]
        parts += [f"{column.title}: FAULT: {fault}" for fault in column.faults]
        parts += [f"{column.title}: skipped: {column.skipped}"] if column.skipped else []
    text = "\n\n".join(parts) + "\n"
    (out / "tried.md").write_text(text, encoding="utf-8")
    return text


def document(columns: Sequence[Column]) -> None:
    """Put the tables into docs/how-to/endpoint.md."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{markdown(columns)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
