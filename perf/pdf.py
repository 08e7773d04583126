"""What does reading PDFs cost beside the bare library?

Ours is a PDF from its bytes to headings and paragraphs with their pages: in a process of its own with limits of time
and memory, columns and running lines looked for, lines joined. The peer asks pypdfium2 for the text of each page, in
the same process, and does nothing with it. Times are CPU seconds of all processes, in turns; the ratio has to stay
above 1 / 1.3.

    python -m perf pdf
"""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path

from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Report
from perf.timing import Row, cpu_seconds, paired, show

PAGES, COPIES, WORDS, REPEATS = 500, 10, 400, 3


def write(path: Path) -> None:
    """5,000 pages of made words, with a heading on every tenth."""
    import pypdfium2
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    draw, styles = random.Random(0), getSampleStyleSheet()
    words = ["".join(draw.choices("abdefgiklmnoprstu", k=draw.randint(2, 11))) for _ in range(5_000)]
    story: list[object] = []
    for n in range(PAGES):
        if n % 10 == 0:
            story.append(Paragraph(f"Chapter {n // 10}", styles["Heading1"]))
        text = " ".join(" ".join(draw.choices(words, k=12)).capitalize() + "." for _ in range(WORDS // 12))
        story += [Paragraph(text, styles["BodyText"]), PageBreak()]
    part = path.with_name("part.pdf")
    SimpleDocTemplate(str(part)).build(story)
    with pypdfium2.PdfDocument(part) as pages, pypdfium2.PdfDocument.new() as long:
        for _ in range(COPIES):
            long.import_pages(pages)
        long.save(path)


def bare(path: Path) -> int:
    """Characters of all pages, by pypdfium2 alone."""
    import pypdfium2

    n = 0
    with pypdfium2.PdfDocument(path) as document:
        for page in document:
            text = page.get_textpage()
            n += len(text.get_text_range())
            text.close()
            page.close()
    return n


def blocks(path: Path) -> int:
    """Characters of all blocks."""
    with reading_process():
        return sum(len(block.text) for block in blocks_of("pdf", path, Report()))


def run() -> list[Row]:
    """One peer."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "long.pdf"
        write(path)
        assert blocks(path) > 0.98 * bare(path)
        times = [(cpu_seconds(partial(blocks, path)), cpu_seconds(partial(bare, path))) for _ in range(REPEATS)]
        amount = PAGES * COPIES
        title = "reading PDF to headings and paragraphs, CPU, pypdfium2 alone"
        rows = [paired(title, *zip(*times, strict=True), amount=amount, unit="pages", target=1 / 1.3)]
    show(rows)
    return rows


if __name__ == "__main__":
    run()
