"""Word and slides: paragraphs, headings, tables, notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.corpus.passages import table
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format


def docx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, headings and tables of a Word file in their order; headers, footers and comments are left out."""
    import docx
    from docx.table import Table

    document = docx.Document(str(path))
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            yield from table([[cell.text for cell in row.cells] for row in item.rows])
            continue
        text = " ".join(item.text.split())
        # The name of a built-in style is English in every language of Word.
        style = (item.style.name or "").lower() if item.style is not None else ""
        if text:
            heading = re.fullmatch(r"heading ([1-9])", style)
            yield Block(text, 1 if style == "title" else min(6, int(heading[1])) if heading else 0)
            report.title = report.title or (text if style == "title" else "")
    report.title = report.title or " ".join((document.core_properties.title or "").split())


def pptx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Titles, text, tables and speaker notes of each slide; ``page`` is the slide's number."""
    import pptx

    def texts(shapes: Any, number: int) -> Iterator[Block]:
        for shape in shapes:
            if shape.shape_type == 6:  # a group
                yield from texts(shape.shapes, number)
            elif shape.has_text_frame and not (shape.is_placeholder and shape.placeholder_format.type in FOOTERS):
                yield Block("\n".join(p.text for p in shape.text_frame.paragraphs).strip(), 0, number)
            elif getattr(shape, "has_table", False) and shape.has_table:
                yield from table([[cell.text for cell in row.cells] for row in shape.table.rows], number)

    for number, slide in enumerate(pptx.Presentation(str(path)).slides, start=1):
        title = slide.shapes.title
        if title is not None and title.text.strip():
            yield Block(" ".join(title.text.split()), 2, number)
        others = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
        yield from (block for block in texts(others, number) if block.text)
        speaker = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if speaker is not None and speaker.text.strip():
            yield Block(speaker.text.strip(), 0, number)


# Placeholders of date, footer and slide number (PP_PLACEHOLDER).
FOOTERS = (13, 15, 16)


DOCX = office_format("docx", "Word", "Word (.docx), cut into passages", (".docx",), docx_blocks, 63, zipped=True)
PPTX = office_format(
    "pptx", "Slides", "PowerPoint (.pptx), cut into passages", (".pptx",), pptx_blocks, 64, zipped=True, apart=True
)
