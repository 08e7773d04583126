"""Sixty-eight real-looking files in one folder: 95% of the words come out in order, and what has no text is named.

The ordinary suite reads a small folder (``test_office_files.py``) and the layouts below; ``make soak`` reads all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from cdp.corpus.reading import ReadResult, read_documents
from tests.corpus.test_office_files import (
    docx,
    epub,
    html,
    pdf,
    pptx,
    prose,
    recovered,
    scanned,
    sections,
    words_of,
)  # fmt: skip

LINES, IN_LINE = 40, 6


def chunks(words: list[str], n: int) -> Iterable[list[str]]:
    return (words[i : i + n] for i in range(0, len(words), n))


def all_words(path: Path) -> list[str]:
    return " ".join(text for _, text in sections(path)).split()


def across(path: Path) -> None:
    """Two columns whose lines were printed from left to right across the page."""
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    for page in chunks(all_words(path), 2 * LINES * IN_LINE):
        canvas.setFont("Helvetica", 8)
        columns = list(chunks(page, LINES * IN_LINE))
        rows = itertools.zip_longest(*(list(chunks(column, IN_LINE)) for column in columns))
        for y, row in enumerate(rows):
            for x, line in enumerate(row):
                canvas.drawString(50 + 260 * x, 780 - 15 * y, " ".join(line or ()))
        canvas.showPage()
    canvas.save()


def table(path: Path) -> None:
    """A table of four columns, which is read row by row."""
    from reportlab.platypus import SimpleDocTemplate, Table

    cells = [" ".join(words) for words in chunks(all_words(path), 2)]
    SimpleDocTemplate(str(path)).build([Table(list(chunks(cells, 4)))])


def half_scanned(path: Path) -> None:
    """A report whose first pages are images."""
    import pypdfium2

    pdf(path.with_suffix(".text"), like=path)
    scanned(path.with_suffix(".scan"))
    with pypdfium2.PdfDocument.new() as whole:
        for part in (".scan", ".text"):
            with pypdfium2.PdfDocument(path.with_suffix(part)) as pages:
                whole.import_pages(pages)
            path.with_suffix(part).unlink()
        whole.save(path)


def plain(encoding: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        text = "\n\n".join(f"{heading}\n\n{text}" for heading, text in sections(path))
        path.write_bytes(f"Größe: où l’été s’achève – près de la forêt.\n\n{text}".encode(encoding))

    return write


def markdown(path: Path) -> None:
    path.write_text("\n\n".join(f"## {heading}\n\n{text}" for heading, text in sections(path)), encoding="utf-8")


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "across.pdf": across,
    "table.pdf": table,
    "half scanned.pdf": half_scanned,
    "utf8.txt": plain("utf-8"),
    "cp1252.txt": plain("cp1252"),
    "utf16.txt": plain("utf-16"),
    "notes.md": markdown,
}
MORE: dict[str, Callable[[Path], None]] = {
    "report.pdf": pdf,
    "columns.pdf": lambda path: pdf(path, columns=2),
    "running.pdf": lambda path: pdf(path, running=True),
    "open locked.pdf": lambda path: pdf(path, password="known"),
    "word.docx": docx,
    "slides.pptx": pptx,
    "page.html": html,
    "old.htm": lambda path: html(path, "cp1252"),
    "book.epub": epub,
}
TORN = ("report 0.pdf", "word 0.docx", "slides 0.pptx", "book 0.epub")


def bad_files(folder: Path) -> set[str]:
    """Files without text that can be had; their names."""
    before = {path.name for path in folder.iterdir()}
    scanned(folder / "scan.pdf")
    pdf(folder / "locked.pdf", password="unknown")
    for name in TORN:
        if (folder / name).exists():
            (folder / f"torn {name}").write_bytes((folder / name).read_bytes()[:2500])
    (folder / "empty.html").write_text("<html><body></body></html>")
    (folder / "nothing.txt").write_bytes(b"")
    (folder / "binary.txt").write_bytes(bytes(range(1, 256)) * 40)
    (folder / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(2000))
    (folder / "encrypted.docx").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(2000))
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    return {path.name for path in folder.iterdir()} - before


def check(found: ReadResult, good: Iterable[str], bad: set[str]) -> None:
    too_little = {file: share for file in good if (share := recovered(found, file)) < 0.95}
    assert not too_little
    assert {rejected.file for rejected in found.rejected} == bad
    assert all(rejected.reason for rejected in found.rejected)
    assert (found.n_files, found.n_files_failed) == (len(set(good)), len(bad))


@pytest.mark.slow
@pytest.mark.usefixtures("one_reader")
def test_columns_across_the_page_tables_half_scanned_files_and_mixed_encodings(tmp_path: Path) -> None:
    for name, make in LAYOUTS.items():
        make(tmp_path / name)
    with read_documents(tmp_path) as found:
        check(found, LAYOUTS, set())
        [note] = [note for note in found.notes if note.startswith("half scanned.pdf: 3 of ")]
        assert ": 1, 2, 3; " in note
        assert "OCR" in note


@pytest.mark.soak
def test_sixty_files_and_two_thousand_pages(tmp_path: Path) -> None:
    good = []
    for name, make in {**LAYOUTS, **MORE}.items():
        for n in range(3):
            path = tmp_path / f"{Path(name).stem} {n}{Path(name).suffix}"
            make(path)
            good.append(path.name)
    pdf(tmp_path / "two thousand.pdf", pages=2_000)
    bad = bad_files(tmp_path)
    assert len(good) + 1 + len(bad) >= 60
    with read_documents(tmp_path, passwords=["known"]) as found:
        check(found, [*good, "two thousand.pdf"], bad)
        long = words_of([d.text for d in found.documents if d.id.startswith("two thousand.pdf#")])
        assert set(words_of([prose(n, 40) for n in range(2_000)])) <= set(long)
