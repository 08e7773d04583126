"""Slides: titles, text, tables, charts and speaker notes, slide by slide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.packages import (
    Kind,
    Package,
    all_text,
    attribute,
    box,
    child,
    child_of,
    drawn,
    graphics,
    name,
    parts,
    prune,
    within,
)
from cdp.corpus.readers.walk import blocks

PARTS = {r"/slides/[^/]+\.xml$": "text", r"/notesSlides/[^/]+\.xml$": "notes"}
# Placeholders of the date, footer and number of a slide, and of its picture on a page of notes.
FURNITURE = ("dt", "ftr", "sldNum", "hdr", "sldImg")
TITLES = ("title", "ctrTitle")


def pptx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Titles, text, tables, charts and speaker notes of each slide; ``page`` is the slide's number.

    Hidden slides, comments, and the date, footer and number of a slide are left out and counted.
    """
    package = Package(path)
    package.count(PARTS, report)
    related = package.related(package.main)
    entries = within(package.xml(package.main), "p:sldId")
    for number, part in enumerate((related[attribute(entry, "r:id")][1] for entry in entries), start=1):
        slide = package.xml(part)
        notes = [(note, package.xml(note)) for note in package.of_kind("notesSlide", part)]
        if slide.get("show") in ("0", "false"):
            report.remove("\n".join(all_text(root) for root in (slide, *(note for _, note in notes))), "hidden slides")
            continue

        for at, root in ((part, slide), *notes):
            tree = child(prune(root, _left_out, report), "p:cSld", "p:spTree")
            page = box([])
            for shape in sorted(_in_order(tree), key=lambda shape: _placeholder(shape) not in TITLES):
                _put(page, shape, package, at)
            yield from blocks(page, report, page=number)


def _left_out(item: Any, kind: str) -> str | None:
    furniture = kind == "p:sp" and _placeholder(item) in FURNITURE
    return Kind.HEADERS if furniture or (kind == "a:fld" and item.get("type") == "slidenum") else None


def _placeholder(shape: Any) -> str:
    """The type of a placeholder, "" for any other shape."""
    mark = next(within(shape, "p:ph"), None)
    return "" if mark is None else str(mark.get("type", "obj"))


def _shapes(tree: Any) -> Iterator[Any]:
    """The shapes of a slide or group, also of alternate content."""
    for item in tree:
        if name(item) in ("p:sp", "p:grpSp", "p:graphicFrame", "p:cxnSp"):
            yield item
        else:
            yield from _shapes(item)


def _in_order(tree: Any) -> list[Any]:
    """The shapes of a slide or group in the order of the file, which is that of screen readers; but one that lies
    wholly above another, in the same column, before it."""
    ordered: list[Any] = []
    for shape in _shapes(tree):
        left, _, right, bottom = _box(shape)
        below = (
            place
            for place, (x, y, x_end, _) in enumerate(map(_box, ordered))
            if bottom <= y and left < x_end and x < right
        )
        ordered.insert(next(below, len(ordered)), shape)
    return ordered


def _box(shape: Any) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of a shape; not a number where its layout has the place."""
    frame = next((part for part in within(shape, "a:xfrm", "p:xfrm")), None)
    offset, size = (None, None) if frame is None else (child(frame, "a:off"), child(frame, "a:ext"))
    if offset is None or size is None:
        return (float("nan"),) * 4
    x, y, width, height = (
        float(part.get(key, 0)) for part, key in ((offset, "x"), (offset, "y"), (size, "cx"), (size, "cy"))
    )
    return x, y, x + width, y + height


def _put(page: Any, shape: Any, package: Package, part: str) -> None:
    """Put a shape of a slide into XHTML."""
    if name(shape) == "p:grpSp":
        for inner in _in_order(shape):
            _put(page, inner, package, part)
    elif name(shape) == "p:graphicFrame":
        for number, row in enumerate(within(shape, "a:tr")):
            grid = page[-1] if number else child_of(page, "table", role="table")
            line = child_of(grid, "tr")
            for cell in parts(row, ("a:tc",)):
                made = child_of(line, "td" if number else "th")
                if not {cell.get("hMerge"), cell.get("vMerge")} & {"1", "true"}:  # another covers it
                    drawn(made, cell)

        page.extend(graphics(shape, package, part))
    else:
        drawn(child_of(page, "h2" if _placeholder(shape) in TITLES else "p"), shape)


PPTX = office_format(
    "pptx", "Slides", "PowerPoint (.pptx), cut into passages", (".pptx",), pptx_blocks, 64, zipped=True, apart=True
)
