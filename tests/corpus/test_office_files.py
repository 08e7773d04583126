"""PDF, Word, slides, web pages and EPUB: what was put in comes out in order, or the file is named with the reason."""

from __future__ import annotations

import io
import itertools
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import extraction, sources
from cdp.corpus.checks import RefusedValueError
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import Report
from cdp.corpus.reading import ReadResult, read_documents
from tests.support import install_plugins

pytestmark = pytest.mark.slow

SECTIONS = 3
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "la", "me", "ni", "ro", "su", "ta", "ve", "wi", "xo", "zu")


def prose(seed: int, words: int) -> str:
    """Sentences of made words, each word rarely twice, so that a lost or moved one shows."""
    draw = random.Random(seed)
    made = ["".join(draw.choices(SYLLABLES, k=4)) for _ in range(words)]
    sentences = [made[i : i + 12] for i in range(0, words, 12)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)


def sections(path: Path) -> list[tuple[str, str]]:
    """(heading, text) of the sections of a file; each file has words of its own."""
    seed = zlib.crc32(path.name.encode())
    return [(f"Part {n} about {prose(seed + 90 + n, 2)[:-1]}", prose(seed + n, 260)) for n in range(1, SECTIONS + 1)]


def pdf(
    path: Path, *, columns: int = 1, running: bool = False, password: str = "", pages: int = 0, like: Path | None = None
) -> None:
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import BaseDocTemplate, Frame, PageBreak, PageTemplate, Paragraph

    def edge(canvas: object, document: object) -> None:
        if running:
            canvas.drawString(60, 800, "Internal — Confidential")  # type: ignore[attr-defined]
            canvas.drawString(60, 30, f"Page {document.page} of 99")  # type: ignore[attr-defined]

    width = (A4[0] - 120) / columns
    frames = [Frame(60 + i * width, 60, width - 10, A4[1] - 140, id=str(i)) for i in range(columns)]
    document = BaseDocTemplate(str(path), pagesize=A4, encrypt=password or None)
    document.addPageTemplates(PageTemplate(frames=frames, onPage=edge))
    styles = getSampleStyleSheet()
    story: list[object] = []
    for heading, text in sections(like or path):
        story += [Paragraph(heading, styles["Heading1"]), Paragraph(text, styles["BodyText"])]
        if running:
            story.append(PageBreak())
    story += [part for n in range(pages) for part in (Paragraph(prose(n, 40), styles["BodyText"]), PageBreak())]
    document.build(story)


def scanned(path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    for _ in range(3):
        canvas.rect(100, 100, 300, 300, fill=1)
        canvas.showPage()
    canvas.save()


def docx(path: Path) -> None:
    import docx as library

    document = library.Document()
    document.sections[0].header.paragraphs[0].text = "Internal — Confidential"
    for heading, text in sections(path):
        document.add_heading(heading, level=2)
        document.add_paragraph(text)
    table = document.add_table(rows=2, cols=2)
    for i, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = f"zelle{i}"
    document.save(str(path))


def pptx(path: Path) -> None:
    import pptx as library

    show = library.Presentation()
    for heading, text in sections(path):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text = text
    show.save(str(path))


def html(path: Path, encoding: str = "utf-8") -> None:
    parts = "".join(f"<h2>{heading}</h2><p>{text}</p>" for heading, text in sections(path))
    page = (
        f'<html><head><meta charset="{encoding}"><title>Größe</title></head>'
        '<body><nav><a href="/">Home</a> <a>Imprint</a></nav>'
        f'<div class="cookie-banner">We use cookies. Accept all</div><main><h1>Größe</h1>{parts}</main>'
        "<footer>Copyright Example Inc</footer></body></html>"
    )
    path.write_bytes(page.encode(encoding))


def epub(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(SECTIONS))
        spine = "".join(f'<itemref idref="c{n}"/>' for n in range(SECTIONS))
        book.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<dc:title>A book</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        # Written from the last to the first: the spine says the order.
        for n, (heading, text) in reversed(list(enumerate(sections(path)))):
            book.writestr(f"OEBPS/c{n}.xhtml", f"<html><body><h1>{heading}</h1><p>{text}</p></body></html>")


READABLE: dict[str, Callable[[Path], None]] = {
    "report.pdf": pdf,
    "columns.pdf": lambda path: pdf(path, columns=2),
    "running.pdf": lambda path: pdf(path, running=True),
    "word.docx": docx,
    "slides.pptx": pptx,
    "page.html": html,
    "old.htm": lambda path: html(path, "cp1252"),
    "book.epub": epub,
}


def words_of(texts: Sequence[str]) -> list[str]:
    return re.findall(r"\w+", " ".join(texts).lower())


def recovered(found: ReadResult, file: str) -> float:
    """The share of the words put in that come out in the same order (overlap of passages left aside)."""
    texts = [
        f"{document.title} {document.text}"
        for document in found.documents
        if document.id == file or document.id.startswith(f"{file}#")
    ]
    come = words_of(texts)
    wanted = words_of([text for _, text in sections(Path(file))])
    first: dict[str, int] = {}
    for at, word in enumerate(come):
        first.setdefault(word, at)
    places = [first[word] for word in wanted if word in first]
    ordered = sum(a <= b for a, b in itertools.pairwise(places)) + 1
    return min(len(places), ordered) / len(wanted)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    for name, make in READABLE.items():
        make(folder / name)
    scanned(folder / "scanned.pdf")
    pdf(folder / "locked.pdf", password="secret")
    (folder / "torn.pdf").write_bytes((folder / "report.pdf").read_bytes()[:2000])
    (folder / "torn.docx").write_bytes((folder / "word.docx").read_bytes()[:3000])
    (folder / "empty.html").write_text("<html><body></body></html>")
    (folder / "note.txt").write_text("A plain note beside them.")
    return folder


@pytest.fixture(scope="module")
def read(mixed: Path, one_reader: None) -> ReadResult:
    return read_documents(mixed)


@pytest.mark.parametrize("file", READABLE)
def test_ninety_five_percent_of_the_words_come_out_in_order(read: ReadResult, file: str) -> None:
    assert recovered(read, file) >= 0.95


def test_what_cannot_be_read_is_named_with_the_reason(read: ReadResult) -> None:
    reasons = {rejected.file: rejected.reason for rejected in read.rejected}
    assert set(reasons) == {"scanned.pdf", "locked.pdf", "torn.pdf", "torn.docx", "empty.html"}
    assert "OCR" in reasons["scanned.pdf"]
    assert "password" in reasons["locked.pdf"]
    assert "damaged" in reasons["torn.docx"]


def test_no_running_line_no_navigation_and_no_cookie_text_becomes_a_document(read: ReadResult) -> None:
    text = "\n".join(document.text for document in read.documents)
    for unwanted in ("Confidential", "of 99", "cookies", "Imprint", "Copyright"):
        assert unwanted not in text, unwanted
    n = sum(name.endswith((".pdf", ".txt")) or name in READABLE for name in [*READABLE, "note.txt"])
    assert f"Removed from 1 of {n} files: “Internal — Confidential” and 1 more running line" in read.notes
    assert any("größe" in document.title.lower() for document in read.documents if document.id.startswith("old.htm"))


def test_passages_are_of_one_section_and_overlap_and_tell_their_page(read: ReadResult) -> None:
    own = [document for document in read.documents if document.id.startswith("running.pdf#")]
    assert all(len(document.text.split()) <= 250 for document in own)
    for n, (heading, _) in enumerate(sections(Path("running.pdf")), start=1):
        of_section = [document for document in own if document.title.endswith(heading)]
        assert len(of_section) >= 2
        assert {document.id.split("#")[1].split("-")[0] for document in of_section} == {f"p{n}"}
        first, second = (re.findall(r"[^.]+\.", document.text) for document in of_section[:2])
        assert first[-1].strip() == second[0].strip() or first[-1].strip() in " ".join(second[:4])


def test_files_in_a_zip_and_without_passages(mixed: Path, read: ReadResult, tmp_path: Path) -> None:
    packed = tmp_path / "mixed.zip"
    chosen = ["book.epub", "note.txt", "slides.pptx", "torn.docx", "word.docx"]
    with zipfile.ZipFile(packed, "w") as archive:
        for name in chosen:
            archive.write(mixed / name, name)
    unpacked = read_documents(packed)
    assert [d.text for d in unpacked.documents] == [d.text for d in read.documents if d.id.split("#")[0] in chosen]
    assert {r.file for r in unpacked.rejected} == {"torn.docx"}
    whole = read_documents(packed, ReadOptions(passages=0))
    assert whole.n_documents == 4


def test_a_file_that_hangs_or_kills_its_reader_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostile.py").write_text(
        "import os, time\n"
        "from cdp.corpus.readers.files import office_format\n"
        "def blocks(path, password, report):\n"
        "    os.kill(os.getpid(), 9) if 'kill' in path.name else time.sleep(60)\n"
        "    yield\n"
        "HOSTILE = office_format('hostile', 'Hostile', 'a hostile file', ('.hostile',), blocks, 200)\n"
    )
    install_plugins(tmp_path, "hostile")
    monkeypatch.syspath_prepend(tmp_path)  # the reading process loads it
    (tmp_path / "kill").write_text("x")
    (tmp_path / "hang").write_text("x")
    pdf(tmp_path / "page.pdf")
    with extraction.reading_process():
        with pytest.raises(RefusedValueError, match="ended the process"):
            list(extraction.blocks_of("hostile", tmp_path / "kill", Report()))
        blocks = list(extraction.blocks_of("pdf", tmp_path / "page.pdf", Report()))
        monkeypatch.setattr(extraction, "BASE_S", 1.0)
        with pytest.raises(RefusedValueError, match="longer than 1 s"):
            list(extraction.blocks_of("hostile", tmp_path / "hang", Report()))
    assert sections(tmp_path / "page.pdf")[0][0] in {block.text for block in blocks}


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FLOOR", 10**7)
    page = io.BytesIO(b"<html><body><p>" + b"word " * 2_500_000 + b"</p></body></html>")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("page.html", page.getvalue())
        archive.writestr("note.txt", "A plain note.")
    with pytest.raises(InputError, match="unpacks to more than 10 MB"):
        read_documents(tmp_path / "bomb.zip")
