"""Word: the blocks of a document's main part, with its notes and text boxes where they are named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.packages import (
    WORD_ART,
    Flow,
    Kind,
    Package,
    add,
    all_text,
    attribute,
    box,
    character,
    child,
    child_of,
    graphics,
    is_on,
    name,
    prune,
    within,
)
from cdp.corpus.readers.walk import blocks, formula

PARTS = {
    r"/document\d*\.xml$": "text", r"/footnotes\d*\.xml$": "footnotes", r"/endnotes\d*\.xml$": "endnotes",
    r"/(header|footer)\d*\.xml$": Kind.HEADERS,
}  # fmt: skip
UNREAD = "it holds other documents (altChunk), which are not read"
NOTES = {"w:footnoteReference": "footnotes", "w:endnoteReference": "endnotes"}


def docx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, headings, tables, text boxes, formulas and charts of a Word file in their order.

    Tracked insertions are in and deletions out. A note follows the paragraph that names it. Comments, headers, footers
    and the table of contents, which repeats the headings, are left out and counted.
    """
    package = Package(path)
    package.count(PARTS, report)
    yield from _Word(package, report).document()
    report.title = report.title or package.title()


class _Word(Flow):
    def __init__(self, package: Package, report: Report) -> None:
        super().__init__(report)
        self.package = package
        self.part = package.main
        # {id: (name, level of outline or 0, style it is based on)}. Names of built-in styles are always English.
        self.styles: dict[str, tuple[str, int, str]] = {}
        self.hidden: set[str] = set()  # styles of text that is not shown

        for style in (style for root in self._related("styles") for style in within(root, "w:style")):
            level = _value(style, "w:pPr", "w:outlineLvl")
            of = (_value(style, "w:name").lower(), int(level) + 1 if level.isdigit() else 0, _value(style, "w:basedOn"))
            self.styles[attribute(style, "w:styleId")] = of
            if is_on(style, "w:rPr", "w:vanish"):
                self.hidden.add(attribute(style, "w:styleId"))

        self.notes = {
            (kind, attribute(note, "w:id")): note
            for kind in NOTES.values()
            for root in self._related(kind)
            for note in root
            if attribute(note, "w:type", "normal") == "normal"
        }

    def _related(self, kind: str) -> Iterator[Any]:
        for part in self.package.of_kind(kind, self.part):
            if (root := self.package.xml(part)) is not None:
                yield root

    def document(self) -> Iterator[Block]:
        page = box([])
        self.into(page, prune(self.package.xml(self.part), self._left_out, self.report))
        yield from blocks(page, self.report)
        for note in self.notes.values():
            self.report.remove(all_text(note), "notes without a mark")

    def _left_out(self, item: Any, kind: str) -> str | None:
        if kind in ("w:del", "w:moveFrom") and name(item.getparent()) not in ("w:rPr", "w:trPr"):
            return Kind.DELETED
        if kind == "w:tr" and child(item, "w:trPr", "w:del") is not None:
            return Kind.DELETED
        if kind == "w:sdt" and child(item, "w:sdtPr", "w:showingPlcHdr") is not None:
            return Kind.TEMPLATE

        gallery = _value(item, "w:sdtPr", "w:docPartObj", "w:docPartGallery") if kind == "w:sdt" else ""
        if gallery == "Table of Contents" or (kind == "w:p" and re.fullmatch(r"toc \d", self._style(item)[0])):
            return Kind.CONTENTS
        if kind == "w:r" and (is_on(item, "w:rPr", "w:vanish") or _value(item, "w:rPr", "w:rStyle") in self.hidden):
            return Kind.HIDDEN
        if kind == "w:p" and _value(item, "w:pPr", "w:pStyle") in self.hidden:
            return Kind.HIDDEN
        if kind == "w:tr" and is_on(item, "w:trPr", "w:hidden"):
            return Kind.HIDDEN

        if name(item.getparent()) == "w:tc" and kind != "w:tcPr":
            merged = child(item.getparent(), "w:tcPr", "w:vMerge")
            if merged is not None and attribute(merged, "w:val", "continue") == "continue":
                return Kind.HIDDEN

        return "phonetic guides" if kind == "w:rt" else None

    def _style(self, paragraph: Any) -> tuple[str, int]:
        """(name of the style or of that it is based on, level of the heading or 0)."""
        id, title, level = _value(paragraph, "w:pPr", "w:pStyle"), "", 0
        for _ in range(10 if id else 0):  # styles of a damaged file may be based on one another in a circle
            named, own_level, base = self.styles.get(id, (id.lower(), 0, ""))
            heading = re.fullmatch(r"heading ?([1-9])", named)
            title = title or (named if named == "title" or named.startswith("toc ") else "")
            level = level or (int(heading[1]) if heading else own_level)
            id = base
        outline = _value(paragraph, "w:pPr", "w:outlineLvl")
        level = int(outline) + 1 if outline.isdigit() else level
        return title, 0 if level > 9 else level

    def put(self, parent: Any, item: Any, kind: str) -> None:
        match kind:
            case "w:p":
                title, level = self._style(item)
                # The mark that ended it was deleted.
                marks = (child(item, "w:pPr", "w:rPr", mark) for mark in ("w:del", "w:moveFrom"))
                goes_on = any(mark is not None for mark in marks)
                self.paragraph(parent, item, level, title == "title", goes_on)
            case "w:tbl":
                self.table(parent, item)

            case "w:t":
                add(parent, item.text or "")
            case "w:br" | "w:cr":
                child_of(parent, "br")
            case "w:tab" | "w:ptab":
                add(parent, " ")
            case "w:noBreakHyphen":
                add(parent, "-")
            case "w:sym":
                add(parent, character(int(attribute(item, "w:char", "0"), 16)))

            case "w:ddList":  # of a form of before 2007
                chosen = _number(item, "w:result", default=_number(item, "w:default"))
                entries = [attribute(entry, "w:val") for entry in within(item, "w:listEntry")]
                add(parent, "".join(entries[chosen : chosen + 1]))
            case "w:checkBox" if is_on(item, "w:checked"):
                add(parent, "☒")

            case "m:oMath":
                add(parent, f" {formula(item)} ")
            case "w:r" if _value(item, "w:rPr", "w:vertAlign") == "superscript":
                self.into(child_of(parent, "sup"), item)
            case "w:txbxContent":
                self.apart(item)
            case _ if kind == WORD_ART:
                box(self.below).text = item.get("string")
            case "c:chart" | "dgm:relIds":
                self.below += graphics(item, self.package, self.part)
            case "w:footnoteReference" | "w:endnoteReference":
                note = self.notes.pop((NOTES[kind], attribute(item, "w:id")), None)
                if note is not None:
                    self.apart(prune(note, self._left_out, self.report))

            case "w:altChunk":
                self.report.notes.append(UNREAD)
            case _:
                self.into(parent, item)

    def cells(self, row: Any) -> Iterator[tuple[Any, int, int]]:
        yield from [(None, 1, 1)] * _number(row, "w:trPr", "w:gridBefore")
        for cell, _, _ in super().cells(row):
            yield cell, _number(cell, "w:tcPr", "w:gridSpan", default=1), 1

    def heads(self, row: Any) -> bool:
        return is_on(row, "w:trPr", "w:tblHeader")


def _value(element: Any, *path: str) -> str:
    """The value of a property; "" where it is not set."""
    found = child(element, *path)
    return "" if found is None else attribute(found, "w:val")


def _number(element: Any, *path: str, default: int = 0) -> int:
    value = _value(element, *path)
    return min(int(value), 1000) if value.isdigit() else default


DOCX = office_format("docx", "Word", "Word (.docx), cut into passages", (".docx",), docx_blocks, 63, zipped=True)
