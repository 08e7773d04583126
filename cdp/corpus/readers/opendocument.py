"""OpenDocument text (.odt), as LibreOffice writes it, by its XML."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.passages import in_cell, table
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.ooxml import Kind, Package, attribute, beside, grouped, name, raised, within

# Elements whose text is about the document: descriptions of pictures, who wrote a comment, the mark of a note.
ABOUT = ("svg-compatible:title", "svg-compatible:desc", "text:note-citation", "office:forms", "?:creator", "?:date")
REMOVED = {
    "text:tracked-changes": Kind.DELETED, "office:annotation": Kind.COMMENTS, "text:ruby-text": "phonetic guides",
    "text:placeholder": Kind.TEMPLATE, "text:table-of-content": Kind.CONTENTS, "table:covered-table-cell": Kind.HIDDEN,
}  # fmt: skip
PARAGRAPHS = ("text:p", "text:h")
# The most cells that a sheet's empty margin can stand for.
MOST_REPEATS = 1_000


def odt_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, headings, tables, text boxes and formulas in their order; notes follow the paragraph that names them.

    Deleted and hidden text, comments, headers, footers and the table of contents are left out and counted.
    """
    package = Package(path)
    manifest = package.xml("META-INF/manifest.xml")
    if manifest is not None and next(within(manifest, "manifest:encryption-data"), None) is not None:
        raise RefusedValueError("encrypted", "it has a password: save it again without one")

    content, styles = package.xml("content.xml"), package.xml("styles.xml")
    masters = [] if styles is None else list(within(styles, "office:master-styles"))
    roots = [root for root in (styles, content) if root is not None]
    report.count(all_text(content, _with(roots, _is_hidden)))
    for part in package.names:
        if part.endswith("/content.xml"):
            report.count(_object_text(package.xml(part)), "formulas and charts")
    for master in masters:
        report.count(all_text(master), Kind.HEADERS)
        report.remove(all_text(master), Kind.HEADERS)

    yield from _Text(package, report, roots).blocks(content)
    meta = package.xml("meta.xml")
    title = "" if meta is None else meta.findtext(".//{http://purl.org/dc/elements/1.1/}title")
    report.title = report.title or " ".join((title or "").split())


def _with(roots: Sequence[Any], wanted: Callable[[Any], bool]) -> set[str]:
    """The styles whose text properties are as wanted."""
    properties = (found for root in roots for found in within(root, "style:text-properties") if wanted(found))
    return {attribute(found.getparent(), "style:name") for found in properties}


def _is_hidden(properties: Any) -> bool:
    return attribute(properties, "text:display") == "none"


def _is_raised(properties: Any) -> bool:
    position = attribute(properties, "style:text-position")  # "super 58%" or "33% 58%"
    return position.startswith("super") or (position[:1].isdigit() and position[0] != "0")


def _object_text(root: Any) -> str:
    """The text of a formula or a chart."""
    if not root.tag.endswith("}math"):
        return all_text(root)
    return " ".join(part.text or "" for part in root.iter() if not part.tag.endswith("}annotation"))


def all_text(root: Any, hidden: Collection[str] = ()) -> str:
    """Return the text of all paragraphs below an element, however nested; that of a ``hidden`` style apart."""
    from lxml import etree

    texts: list[list[str]] = [[]]
    inside: list[list[str]] = [texts[0]]
    skipped = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        kind, starts = name(element), event == "start"
        skipped += (1 if starts else -1) if kind in ABOUT else 0
        is_apart = kind in PARAGRAPHS or attribute(element, "text:style-name") in hidden
        if is_apart and starts:
            texts.append([])
            inside.append(texts[-1])
        elif is_apart:
            inside.pop()
        text = element.text if starts else element.tail
        # The text behind an element belongs to the paragraph around it.
        if text and not skipped and len(inside) > 1:
            inside[-1].append(text)
        if kind in ("text:tab", "text:line-break", "text:s") and starts and len(inside) > 1:
            inside[-1].append("\n")
    return "\n".join("".join(text) for text in texts)


class _Text:
    def __init__(self, package: Package, report: Report, roots: Sequence[Any]) -> None:
        self.package, self.report = package, report
        self.below: list[Block] = []
        self.parents: dict[str, str] = {}
        self.hidden, self.raised = _with(roots, _is_hidden), _with(roots, _is_raised)
        for style in (style for root in roots for style in within(root, "style:style")):
            self.parents[attribute(style, "style:name")] = attribute(style, "style:parent-style-name")

    def blocks(self, parent: Any) -> Iterator[Block]:
        for item in parent:
            match kind := name(item):
                case _ if self._left_out(item, kind):
                    continue
                case "text:p" | "text:h":
                    yield from self._paragraph(item, kind)
                case "table:table":
                    yield from self._table(item)
                case "drawing:object" if (embedded := self._embedded(item)) is not None:
                    yield from self.blocks(embedded)
                case _:
                    yield from self.blocks(item)

    def _left_out(self, item: Any, kind: str) -> bool:
        """Whether an element is left out; what it says is counted."""
        removed = REMOVED.get(kind, "")
        if attribute(item, "text:display") == "none" or attribute(item, "text:style-name") in self.hidden:
            removed = Kind.HIDDEN
        if removed:
            self.report.remove(all_text(item) if kind not in _IN_LINE else "".join(item.itertext()), removed)
        return bool(removed) or kind in ABOUT

    def _paragraph(self, item: Any, kind: str) -> Iterator[Block]:
        below, self.below = self.below, []
        text = self._inline(item)
        lines = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        style = attribute(item, "text:style-name")
        is_title = "Title" in (style, self.parents.get(style))
        level = int(attribute(item, "text:outline-level", "1")) if kind == "text:h" else 0
        if lines:
            yield Block(" ".join(lines.split()) if level or is_title else lines, 1 if is_title else min(6, level))
            self.report.title = self.report.title or (" ".join(lines.split()) if is_title else "")
        yield from self.below
        self.below = below

    def _inline(self, parent: Any) -> str:
        parts = [parent.text or ""]
        for item in parent:
            kind = name(item)
            if kind in ("text:line-break", "text:tab", "text:s"):
                parts.append("\n" if kind == "text:line-break" else " ")
            elif kind == "drawing:frame" and (math := self._math_in(item)) is not None:
                parts.append(f" {_math(math)} ")
            elif kind == "text:note" or kind.startswith(("drawing:", "table:")):
                self.below += self._apart([item] if kind != "text:note" else item)
            elif not self._left_out(item, kind):
                text = self._inline(item)
                parts.append(raised(text) if attribute(item, "text:style-name") in self.raised else text)
            parts.append(item.tail or "")
        return "".join(parts)

    def _apart(self, parent: Any) -> list[Block]:
        """The blocks inside an element that stands beside the paragraph being read."""
        below, self.below = self.below, []
        made = list(self.blocks(parent))
        self.below = below
        return made

    def _embedded(self, item: Any) -> Any:
        """The root of a formula or chart, which is a document of its own; None where there is none."""
        href = next((value for key, value in item.attrib.items() if key.endswith("}href")), "")
        return self.package.xml(posixpath.normpath(posixpath.join(href, "content.xml")))

    def _math_in(self, frame: Any) -> Any:
        """The formula that a frame holds, else None."""
        roots = (self._embedded(item) for item in within(frame, "drawing:object"))
        return next((root for root in roots if root is not None and root.tag.endswith("}math")), None)

    def _table(self, element: Any) -> Iterator[Block]:
        heads = [row for head in element.iterchildren() if name(head) == "table:table-header-rows" for row in head]
        rows = [row for row in within(element, "table:table-row") if next(_tables(row)) is element]
        made = []
        for row in rows:
            cells: list[list[Block]] = []
            for cell in row:
                times = attribute(cell, "table:number-columns-repeated", "1")
                covered = name(cell) == "table:covered-table-cell"
                inner = [] if covered and self._left_out(cell, name(cell)) else self._apart(cell)
                cells += [inner] * min(int(times), MOST_REPEATS)
            made.append(cells)

        if max((sum(map(bool, cells)) for cells in made), default=0) < 2:
            yield from (block for cells in made for cell in cells for block in cell)
        else:
            yield from table([[in_cell(cell) for cell in cells] for cells in made], header=len(heads) or 1)


def _math(element: Any) -> str:
    """A formula in MathML as one reads it aloud."""
    kind = element.tag.rpartition("}")[2]
    inner = [_math(part) for part in element if not part.tag.endswith("}annotation")]
    signs = {"mfrac": "/", "msup": "^", "msub": "_"}
    if kind in signs:
        return signs[kind].join(map(grouped, inner))
    text = reduce(beside, inner, (element.text or "").strip())
    return f"√({text})" if kind == "msqrt" else text


# Elements of a line: their text is not in a paragraph of their own.
_IN_LINE = ("text:span", "text:placeholder", "text:ruby-text")


def _tables(row: Any) -> Iterator[Any]:
    return (above for above in row.iterancestors() if name(above) == "table:table")


ODT = office_format(
    "odt", "OpenDocument", "OpenDocument text (.odt), cut into passages", (".odt",), odt_blocks, 68, zipped=True
)
