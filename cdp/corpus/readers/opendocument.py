"""OpenDocument text (.odt), as LibreOffice writes it, by its XML."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.packages import (
    ABOUT,
    Flow,
    Kind,
    Package,
    add,
    all_text,
    attribute,
    box,
    child,
    child_of,
    declared_title,
    name,
    prune,
    within,
)
from cdp.corpus.readers.walk import blocks, formula

REMOVED = {
    "text:tracked-changes": Kind.DELETED, "office:annotation": Kind.COMMENTS, "text:ruby-text": "phonetic guides",
    "text:placeholder": Kind.TEMPLATE, "text:table-of-content": Kind.CONTENTS, **dict.fromkeys(ABOUT, Kind.ABOUT),
}  # fmt: skip
# The most cells that the empty margin of a table can stand for.
MAX_REPEATS = 1_000
COUNTS = ("columns-repeated", "columns-spanned", "rows-spanned")


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
    flow = _OpenDocument(package, report, roots)
    body = child(content, "office:body")
    report.count(all_text(body, flow.hidden))
    for part in package.names:
        if part.endswith("/content.xml"):
            report.count(_object_text(package.xml(part)), "formulas and charts")
    for master in within(roots[0], "office:master-styles"):
        report.count(all_text(master), Kind.HEADERS)
        report.remove(all_text(master), Kind.HEADERS)

    page = box([])
    flow.into(page, prune(body, flow.left_out, report))
    yield from blocks(page, report)
    report.title = report.title or declared_title(package.xml("meta.xml"))


def _object_text(root: Any) -> str:
    """The text of a formula or a chart."""
    if not _is_formula(root):
        return all_text(root)
    return " ".join(part.text or "" for part in root.iter() if not part.tag.endswith("}annotation"))


class _OpenDocument(Flow):
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
        return Kind.TEMPLATE if kind.endswith("-source") else REMOVED.get(kind)  # as of the entries of an index

    def into(self, parent: Any, element: Any) -> None:
        add(parent, element.text or "")
        for item in element:
            self.put(parent, item, name(item))
            add(parent, item.tail or "")

    def put(self, parent: Any, item: Any, kind: str) -> None:
        in_line = parent.tag not in ("div", "td", "th")

        match kind:
            case "text:p" | "text:h":
                style = attribute(item, "text:style-name")
                level = int(attribute(item, "text:outline-level", "1")) if kind == "text:h" else 0
                self.paragraph(parent, item, level, "Title" in (style, self.parents.get(style)))
            case "text:line-break":
                child_of(parent, "br")
            case "text:tab" | "text:s":
                add(parent, " ")
            case "drawing:object":
                self._put_object(parent, item)
            case "drawing:frame" if any(map(_is_formula, map(self._embedded, within(item, "drawing:object")))):
                self.into(parent, item)
            case "text:note":
                self.apart(item)
            case _ if in_line and kind.startswith("drawing:"):
                self.apart(item)
            case "table:table":
                self.table(parent, item)
            case _ if attribute(item, "text:style-name") in self.raised:
                self.into(child_of(parent, "sup"), item)
            case _:
                self.into(parent, item)

    def _put_object(self, parent: Any, item: Any) -> None:
        root = self._embedded(item)
        if _is_formula(root):
            add(parent, f" {formula(root)} ")
        elif root is not None:
            self.into(parent, root)

    def _embedded(self, item: Any) -> Any:
        """The root of a formula or chart, which is a document of its own; None where there is none."""
        href = next((value for key, value in item.attrib.items() if key.endswith("}href")), "")
        return self.package.xml(posixpath.normpath(posixpath.join(href, "content.xml")))

    def cells(self, row: Any) -> Iterator[tuple[Any, int, int]]:
        # Not all programs write the cells that another covers: what it spans says it.
        for cell, _, _ in super().cells(row):
            times, across, down = (int(attribute(cell, f"table:number-{count}", "1")) for count in COUNTS)
            yield from [(cell, across, down)] * min(times, MAX_REPEATS)

    def heads(self, row: Any) -> bool:
        return name(row.getparent()) == "table:table-header-rows"


def _is_formula(root: Any) -> bool:
    return root is not None and root.tag.endswith("}math")


ODT = office_format(
    "odt", "OpenDocument", "OpenDocument text (.odt), cut into passages", (".odt",), odt_blocks, 68, zipped=True
)
