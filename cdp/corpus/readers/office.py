"""Word: the blocks of a document's main part, with its notes and text boxes where they are named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.corpus.passages import in_cell, table
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.ooxml import (
    Kind,
    Package,
    all_text,
    attribute,
    child,
    chosen,
    formula,
    graphic,
    is_hidden,
    name,
    raised,
    within,
)

# Parts that hold text, by their place in the package of every writer.
PARTS = {
    r"/document\d*\.xml$": "text", r"/footnotes\d*\.xml$": "footnotes", r"/endnotes\d*\.xml$": "endnotes",
    r"/comments\d*\.xml$": Kind.COMMENTS, r"/(header|footer)\d*\.xml$": Kind.HEADERS,
    r"/charts/chart\d*\.xml$": "charts", r"/diagrams/data\d*\.xml$": "SmartArt",
}  # fmt: skip
UNREAD = "it holds other documents (altChunk), which are not read"
# Elements around others that stay: what tracked changes brought, controls, fields, links.
AROUND = frozenset(("w:ins", "w:moveTo", "w:sdtContent", "w:customXml", "w:smartTag", "w:hyperlink", "w:fldSimple",
                    "w:dir", "w:bdo", "w:ruby", "w:rubyBase", "w:r"))  # fmt: skip
NOTES = {"w:footnoteReference": "footnotes", "w:endnoteReference": "endnotes"}


def docx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, headings, tables, text boxes, formulas and charts of a Word file in their order.

    Tracked insertions are in and deletions out. A note follows the paragraph that names it. Comments, headers, footers
    and the table of contents, which repeats the headings, are left out and counted.
    """
    package = Package(path)
    package.count(PARTS, report)
    yield from _Word(package, report).blocks()
    report.title = report.title or package.title()


class _Word:
    def __init__(self, package: Package, report: Report) -> None:
        self.package, self.report = package, report
        self.part = package.of_kind("officeDocument")[0]
        self.styles = self._styles()
        self.notes = {(kind, attribute(note, "w:id")): note for kind in NOTES.values() for note in self._notes(kind)}
        # What the paragraph being read names, to stand below it: notes, text boxes, charts.
        self.below: list[Block] = []

    def _related(self, kind: str) -> Iterator[Any]:
        return filter(lambda root: root is not None, map(self.package.xml, self.package.of_kind(kind, self.part)))

    def _notes(self, kind: str) -> Iterator[Any]:
        for root in self._related(kind):
            yield from (note for note in root if attribute(note, "w:type", "normal") == "normal")

    def _styles(self) -> dict[str, tuple[str, int, str]]:
        """{id: (name, level of outline or 0, style it is based on)}. Names of built-in styles are always English."""
        found = {}
        for style in (style for root in self._related("styles") for style in within(root, "w:style")):
            named, outline, based = (
                child(style, *at) for at in (("w:name",), ("w:pPr", "w:outlineLvl"), ("w:basedOn",))
            )
            values = ("" if element is None else attribute(element, "w:val") for element in (named, outline, based))
            title, level, base = values
            found[attribute(style, "w:styleId")] = (title.lower(), int(level) + 1 if level.isdigit() else 0, base)
        return found

    def blocks(self) -> Iterator[Block]:
        yield from self._blocks(child(self.package.xml(self.part), "w:body"))
        for note in self.notes.values():
            self.report.remove(all_text(note), "notes without a mark")
        for kind, removed in (("comments", Kind.COMMENTS), ("header", Kind.HEADERS), ("footer", Kind.HEADERS)):
            for root in self._related(kind):
                self.report.remove(all_text(root), removed)

    def _blocks(self, parent: Any) -> Iterator[Block]:
        """The paragraphs and tables inside an element."""
        waiting = ""
        for item in parent:
            match name(item):
                case "w:p":
                    text = waiting + self._inline(item)
                    marks = {name(mark) for mark in child(item, "w:pPr", "w:rPr") or ()}
                    # The next paragraph goes on where the mark that ended this one was deleted.
                    waiting = text if marks & {"w:del", "w:moveFrom"} else ""
                    if not marks & {"w:del", "w:moveFrom"}:
                        yield from self._paragraph(item, text)
                case "w:tbl":
                    yield from self._table(item)
                case "mc:AlternateContent":
                    yield from self._blocks(self._chosen(item))
                case "w:sdt":
                    yield from self._blocks(self._control(item))
                case "w:altChunk":
                    self.report.notes.append(UNREAD)
                case "w:del" | "w:moveFrom":
                    self.report.remove(all_text(item), Kind.DELETED)
                case kind if kind in AROUND:
                    yield from self._blocks(item)
        if waiting.strip():
            yield Block(" ".join(waiting.split()))
            yield from self.below

    def _chosen(self, alternate: Any) -> Any:
        kept = chosen(alternate)
        self.report.remove("\n".join(all_text(part) for part in alternate if part is not kept), Kind.COPIES)
        return [] if kept is None else kept

    def _control(self, control: Any) -> Any:
        """The content of a content control; nothing of one that shows how it is to be filled in, or of contents."""
        content = child(control, "w:sdtContent")
        gallery = child(control, "w:sdtPr", "w:docPartObj", "w:docPartGallery")
        kind = Kind.TEMPLATE if child(control, "w:sdtPr", "w:showingPlcHdr") is not None else ""
        if gallery is not None and attribute(gallery, "w:val") == "Table of Contents":
            kind = Kind.CONTENTS
        if not kind or content is None:
            return [] if content is None else content
        self.report.remove(all_text(content), kind)
        return []

    def _paragraph(self, paragraph: Any, text: str) -> Iterator[Block]:
        below, self.below = self.below, []
        style, level = self._style(paragraph)
        lines = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        if re.fullmatch(r"toc \d", style):
            self.report.remove(lines, Kind.CONTENTS)
        elif lines:
            is_title = style == "title"
            yield Block(lines.replace("\n", " ") if level or is_title else lines, 1 if is_title else level)
            self.report.title = self.report.title or (" ".join(lines.split()) if is_title else "")
        yield from below

    def _style(self, paragraph: Any) -> tuple[str, int]:
        """(name of the style or of that it is based on, level of the heading or 0)."""
        own, outline = child(paragraph, "w:pPr", "w:pStyle"), child(paragraph, "w:pPr", "w:outlineLvl")
        id, title, level = "" if own is None else attribute(own, "w:val"), "", 0
        for _ in range(10):  # styles of a damaged file may be based on one another in a circle
            named, own_level, base = self.styles.get(id, (id.lower(), 0, ""))
            heading = re.fullmatch(r"heading ?([1-9])", named)
            title = title or (named if named == "title" or named.startswith("toc ") else "")
            level = level or (int(heading[1]) if heading else own_level)
            id = base
        if outline is not None and (value := attribute(outline, "w:val")).isdigit():
            level = int(value) + 1
        return title, 0 if level > 9 else min(6, level)

    def _inline(self, parent: Any) -> str:
        """The text of a paragraph, run or what is in them; what is named there is put below."""
        parts = []
        for item in parent:
            kind = name(item)
            match kind:
                case "w:t":
                    parts.append(item.text or "")
                case "w:tab" | "w:ptab":
                    parts.append(" ")
                case "w:br" | "w:cr":
                    parts.append("\n")
                case "w:noBreakHyphen":
                    parts.append("-")
                case "w:sym" if (code := int(attribute(item, "w:char", "0"), 16)) and not 0xE000 <= code < 0xF900:
                    parts.append(chr(code))
                case "m:oMath" | "m:oMathPara":
                    parts.append(f" {formula(item)} ")
                case "w:del" | "w:moveFrom":
                    self.report.remove(all_text(item), Kind.DELETED)
                case "w:rt":
                    self.report.remove(all_text(item), "phonetic guides")
                case "w:r" if is_hidden(item):
                    self.report.remove(all_text(item), Kind.HIDDEN)
                case "w:r" if (place := child(item, "w:rPr", "w:vertAlign")) is not None:
                    text = self._inline(item)
                    parts.append(raised(text) if attribute(place, "w:val") == "superscript" else text)
                case "w:sdt":
                    parts.append(self._inline(self._control(item)))
                case "mc:AlternateContent":
                    parts.append(self._inline(self._chosen(item)))
                case "w:drawing" | "w:pict" | "w:object":
                    self.below += self._drawn(item)
                case "w:footnoteReference" | "w:endnoteReference":
                    note = self.notes.pop((NOTES[kind], attribute(item, "w:id")), ())
                    self.below += list(self._apart(note))
                case _ if kind in AROUND:
                    parts.append(self._inline(item))
        return "".join(parts)

    def _apart(self, parent: Any) -> list[Block]:
        """The blocks inside an element that stands beside the paragraph being read."""
        below, self.below = self.below, []
        made = list(self._blocks(parent))
        self.below = below
        return made

    def _drawn(self, drawing: Any) -> Iterator[Block]:
        """The text boxes, charts and SmartArt of a drawing, also of a group or canvas."""
        for item in drawing:
            match name(item):
                case "w:txbxContent":
                    yield from self._apart(item)
                case "mc:AlternateContent":
                    yield from self._drawn(self._chosen(item))
                case "c:chart" | "dgm:relIds":
                    yield from graphic(item, self.package, self.part, 0, self.report)
                case _:
                    yield from self._drawn(item)

    def _table(self, element: Any) -> Iterator[Block]:
        rows: list[list[list[Block]]] = []
        header = 0
        for row in self._inside(element, "w:tr"):
            if child(row, "w:trPr", "w:del") is not None:
                self.report.remove(all_text(row), Kind.DELETED)
                continue
            cells: list[list[Block]] = [[]] * _number(child(row, "w:trPr", "w:gridBefore"), 0)
            for cell in self._inside(row, "w:tc"):
                merged = child(cell, "w:tcPr", "w:vMerge")
                covered = merged is not None and attribute(merged, "w:val", "continue") == "continue"
                if covered:
                    self.report.remove(all_text(cell), Kind.HIDDEN)
                cells += [[] if covered else self._apart(cell)]
                cells += [[]] * (_number(child(cell, "w:tcPr", "w:gridSpan"), 1) - 1)
            header += header == len(rows) and child(row, "w:trPr", "w:tblHeader") is not None
            rows.append(cells)

        # Tables of one column frame text: its headings and lists stay what they are.
        if max(map(len, rows), default=0) < 2:
            yield from (block for cells in rows for cell in cells for block in cell)
        else:
            yield from table([[in_cell(cell) for cell in cells] for cells in rows], header=header or 1)

    def _inside(self, parent: Any, wanted: str) -> Iterator[Any]:
        """The rows or cells, also those inside content controls and tracked insertions."""
        for item in parent:
            if name(item) == wanted:
                yield item
            elif name(item) == "w:sdt":
                yield from self._inside(self._control(item), wanted)
            elif name(item) in ("w:del", "w:moveFrom"):
                self.report.remove(all_text(item), Kind.DELETED)
            elif name(item) in AROUND:
                yield from self._inside(item, wanted)


def _number(element: Any, default: int) -> int:
    value = "" if element is None else attribute(element, "w:val")
    return min(int(value), 1000) if value.isdigit() else default


DOCX = office_format("docx", "Word", "Word (.docx), cut into passages", (".docx",), docx_blocks, 63, zipped=True)
