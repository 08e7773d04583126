"""The walk over a text document, Word's or OpenDocument's: paragraphs, tables, and what stands beside a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cdp.corpus.passages import in_cell, table
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.packages import name

PARAGRAPHS = ("w:p", "text:p", "text:h")
TABLES, ROWS = ("w:tbl", "table:table"), ("w:tr", "table:table-row")
CELLS = ("w:tc", "table:table-cell", "table:covered-table-cell")


class Walk:
    """Elements that are not known are gone through: what they hold is read. A format says what its own are."""

    # Whether text stands between elements.
    mixed = False

    def __init__(self, report: Report) -> None:
        self.report = report
        # What the paragraph being read names, to stand below it: notes, text boxes, charts.
        self.below: list[Block] = []
        # The text of a paragraph that goes on in the next one.
        self.waiting = ""

    def heading(self, paragraph: Any) -> tuple[int, bool]:
        """Return (level of the heading or 0, whether it is the document's title)."""
        return 0, False

    def goes_on(self, paragraph: Any) -> bool:
        """Return True where the next paragraph is the same one."""
        return False

    def inline(self, item: Any, kind: str) -> str | None:
        """Return the text of an element of a line; None for that of what it holds."""
        return None

    def beside(self, item: Any, kind: str) -> Iterable[Block] | None:
        """Return the blocks of an element between paragraphs; None for those of what it holds."""
        return None

    def places(self, cell: Any) -> tuple[int, int]:
        """Return (how often a cell stands, how many more columns it covers)."""
        return 1, 0

    def row(self, row: Any) -> tuple[int, bool]:
        """Return (columns that are skipped at its beginning, whether it is a row of the header)."""
        return 0, False

    def blocks(self, parent: Any) -> Iterator[Block]:
        """The paragraphs and tables inside an element."""
        for item in parent:
            kind = name(item)
            if kind in PARAGRAPHS:
                yield from self._paragraph(item)
            elif kind in TABLES:
                yield from self._table(item)
            elif (made := self.beside(item, kind)) is not None:
                yield from made
            else:
                yield from self.blocks(item)

    def line(self, parent: Any) -> str:
        """The text of a paragraph or of what is in it; what it names is put below."""
        parts = [(parent.text or "") if self.mixed else ""]
        for item in parent:
            made = self.inline(item, name(item))
            parts += [self.line(item) if made is None else made, (item.tail or "") if self.mixed else ""]
        return "".join(parts)

    def apart(self, parent: Any) -> str:
        """Put the blocks inside an element below the paragraph being read."""
        self.below += self._inside(parent)
        return ""

    def _inside(self, parent: Any) -> list[Block]:
        below, self.below = self.below, []
        made = list(self.blocks(parent))
        self.below = below
        return made

    def _paragraph(self, item: Any) -> Iterator[Block]:
        below, self.below = self.below, []
        text = self.waiting + self.line(item)
        self.waiting = text if self.goes_on(item) else ""
        lines = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        level, is_title = self.heading(item)
        if lines and not self.waiting:
            whole = " ".join(lines.split())
            yield Block(whole if level or is_title else lines, 1 if is_title else min(6, level))
            self.report.title = self.report.title or (whole if is_title else "")
        yield from self.below
        self.below = below

    def _table(self, element: Any) -> Iterator[Block]:
        rows: list[list[list[Block]]] = []
        header = 0
        for row in _parts(element, ROWS):
            skipped, is_header = self.row(row)
            cells: list[list[Block]] = [[]] * skipped
            for cell in _parts(row, CELLS):
                times, covered = self.places(cell)
                cells += [self._inside(cell)] * times + [[]] * covered
            header += is_header and header == len(rows)
            rows.append(cells)

        # Tables of one column frame text: its headings and lists stay what they are.
        if max((sum(map(bool, cells)) for cells in rows), default=0) < 2:
            yield from (block for cells in rows for cell in cells for block in cell)
        else:
            yield from table([[in_cell(cell) for cell in cells] for cells in rows], header=header or 1)


def _parts(parent: Any, wanted: tuple[str, ...]) -> Iterator[Any]:
    """The rows or cells, also those inside content controls and groups, not those of another table."""
    for item in parent:
        if name(item) in wanted:
            yield item
        elif name(item) not in TABLES:
            yield from _parts(item, wanted)
