"""OpenDocument text (.odt), as LibreOffice writes it, by its XML."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.packages import (
    ABOUT,
    Kind,
    Package,
    all_text,
    attribute,
    beside,
    grouped,
    name,
    prune,
    raised,
    within,
)
from cdp.corpus.readers.walk import Walk

REMOVED = {
    "text:tracked-changes": Kind.DELETED, "office:annotation": Kind.COMMENTS, "text:ruby-text": "phonetic guides",
    "text:placeholder": Kind.TEMPLATE, "text:table-of-content": Kind.CONTENTS, **dict.fromkeys(ABOUT, ""),
}  # fmt: skip
LINES = {"text:line-break": "\n", "text:tab": " ", "text:s": " "}
# The most cells that the empty margin of a table can stand for.
MOST_REPEATS = 1_000


def odt_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, headings, tables, text boxes and formulas in their order; notes follow the paragraph that names them.

    Deleted and hidden text, comments, headers, footers and the table of contents are left out and counted.
    """
    package = Package(path)
    manifest = package.xml("META-INF/manifest.xml")
    if manifest is not None and next(within(manifest, "manifest:encryption-data"), None) is not None:
        raise RefusedValueError("encrypted", "it has a password: save it again without one")

    content = package.xml("content.xml")
    roots = [root for root in (package.xml("styles.xml"), content) if root is not None]
    walk = _OpenDocument(package, report, roots)
    for body in within(content, "office:body"):
        report.count(all_text(body, walk.hidden))
    for part in package.names:
        if part.endswith("/content.xml"):
            report.count(_object_text(package.xml(part)), "formulas and charts")
    for master in within(roots[0], "office:master-styles"):
        report.count(all_text(master), Kind.HEADERS)
        report.remove(all_text(master), Kind.HEADERS)

    yield from walk.blocks(prune(content, walk.left_out, report))
    meta = package.xml("meta.xml")
    title = "" if meta is None else meta.findtext(".//{http://purl.org/dc/elements/1.1/}title")
    report.title = report.title or " ".join((title or "").split())


def _object_text(root: Any) -> str:
    """The text of a formula or a chart."""
    if not root.tag.endswith("}math"):
        return all_text(root)
    return " ".join(part.text or "" for part in root.iter() if not part.tag.endswith("}annotation"))


class _OpenDocument(Walk):
    mixed = True

    def __init__(self, package: Package, report: Report, roots: Sequence[Any]) -> None:
        super().__init__(report)
        self.package = package
        styles = [style for root in roots for style in within(root, "style:style")]
        self.parents = {attribute(s, "style:name"): attribute(s, "style:parent-style-name") for s in styles}

        def those(wanted: Callable[[Any], bool]) -> set[str]:
            found = (style for style in styles if any(map(wanted, within(style, "style:text-properties"))))
            return {attribute(style, "style:name") for style in found}

        self.hidden = those(lambda properties: attribute(properties, "text:display") == "none")
        # "super 58%" or "33% 58%".
        self.raised = those(lambda properties: attribute(properties, "style:text-position")[:1] in ("s", *"123456789"))
        self.raised -= those(lambda properties: attribute(properties, "style:text-position").startswith("sub"))

    def left_out(self, item: Any, kind: str) -> str | None:
        covered = item.getparent() is not None and name(item.getparent()) == "table:covered-table-cell"
        if covered or attribute(item, "text:display") == "none" or attribute(item, "text:style-name") in self.hidden:
            return Kind.HIDDEN
        return REMOVED.get(kind)

    def heading(self, paragraph: Any) -> tuple[int, bool]:
        style = attribute(paragraph, "text:style-name")
        level = int(attribute(paragraph, "text:outline-level", "1")) if name(paragraph) == "text:h" else 0
        return level, "Title" in (style, self.parents.get(style))

    def inline(self, item: Any, kind: str) -> str | None:
        if kind == "drawing:frame" and (formula := self._formula(item)) is not None:
            return f" {_math(formula)} "
        if kind == "text:note" or kind.startswith(("drawing:", "table:")):
            return self.apart(item if kind == "text:note" else [item])
        if attribute(item, "text:style-name") in self.raised:
            return raised(self.line(item))
        return LINES.get(kind)

    def beside(self, item: Any, kind: str) -> Iterable[Block] | None:
        root = self._embedded(item) if kind == "drawing:object" else None
        return None if root is None else self.blocks(root)

    def _embedded(self, item: Any) -> Any:
        """The root of a formula or chart, which is a document of its own; None where there is none."""
        href = next((value for key, value in item.attrib.items() if key.endswith("}href")), "")
        return self.package.xml(posixpath.normpath(posixpath.join(href, "content.xml")))

    def _formula(self, frame: Any) -> Any:
        """The formula that a frame holds, else None."""
        roots = (self._embedded(item) for item in within(frame, "drawing:object"))
        return next((root for root in roots if root is not None and root.tag.endswith("}math")), None)

    def places(self, cell: Any) -> tuple[int, int]:
        return min(int(attribute(cell, "table:number-columns-repeated", "1")), MOST_REPEATS), 0

    def row(self, row: Any) -> tuple[int, bool]:
        return 0, name(row.getparent()) == "table:table-header-rows"


def _math(element: Any) -> str:
    """A formula in MathML as one reads it aloud."""
    kind = element.tag.rpartition("}")[2]
    inner = [_math(part) for part in element if not part.tag.endswith("}annotation")]
    signs = {"mfrac": "/", "msup": "^", "msub": "_"}
    if kind in signs:
        return signs[kind].join(map(grouped, inner))
    text = reduce(beside, inner, (element.text or "").strip())
    return f"√({text})" if kind == "msqrt" else text


ODT = office_format(
    "odt", "OpenDocument", "OpenDocument text (.odt), cut into passages", (".odt",), odt_blocks, 68, zipped=True
)
