"""Titles, notices and tables: what a document is called, what is no part of it, and rows that stay rows."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from cdp.corpus import read_documents
from tests.corpus.files import read
from tests.corpus.test_office_files import prose, words_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_reader")]


def pages(folder: Path, bodies: list[str], title: str = "") -> list[tuple[str, str, str]]:
    for n, body in enumerate(bodies):
        text = f"<html><head><title>{title}</title></head><body>{body}</body></html>"
        (folder / f"{n}.html").write_text(text, encoding="utf-8")
    return read(folder)


def test_a_page_is_called_by_its_heading_or_what_it_declares(tmp_path: Path) -> None:
    named = [
        (f"<h1>Soup</h1><p>{prose(1, 60)}</p>", "Soup"),
        (f"<h1>Soup<a class='headerlink'>¶</a></h1><p>{prose(2, 60)}</p>", "Soup"),
        (f"<p>{prose(3, 60)}</p>", "Recipes"),
        (f"<main><h1>Soup</h1><p>{prose(4, 60)}</p><h1>Bread</h1><p>{prose(5, 60)}</p></main>", "Recipes"),
    ]
    found = pages(tmp_path, [body for body, _ in named], "Recipes | A site")
    assert [title for _, title, _ in found] == [title for _, title in named]
    assert not any("¶" in text for _, _, text in found)


def test_notices_on_cookies_and_navigation_are_no_part_of_a_page(tmp_path: Path) -> None:
    marks = ("class='cookies'", "id='CookieBox'", "class='gdpr-overlay'", "id='onetrust-banner'")
    notices = "".join(f"<div {mark}>This site uses cookies. By continuing you agree.</div>" for mark in marks)
    bodies = [
        f"<nav><a>Home</a></nav>{notices}<div><h1>Soup</h1><h3>How do I boil it?</h3><p>{prose(words, words)}</p>"
        f"<h3>Can it be cold?</h3><p>{prose(words + 1, 12)}</p></div>"
        "<div>© Soup Inc · Imprint</div><footer>Privacy</footer>"
        for words in (9, 60)
    ]
    for words, (_, title, text) in zip((9, 60), pages(tmp_path, bodies), strict=True):
        assert title == "Soup"
        for unwanted in ("cookies", "Home", "Imprint", "Privacy"):
            assert unwanted not in text
        for wanted in (prose(words, words), "Can it be cold?", prose(words + 1, 12)):
            assert wanted in text


def test_a_chapter_on_consent_and_the_frame_of_a_page_stay(tmp_path: Path) -> None:
    body = (
        f"<div class='has-cookie-banner'><main><h1>Sessions</h1><p>{prose(1, 90)}</p>"
        f"<section id='consent'><h2>Consent</h2><p>{prose(2, 30)}</p></section></main></div>"
    )
    [(_, _, text)] = pages(tmp_path, [body])
    assert prose(1, 90) in text
    assert prose(2, 30) in text


def test_the_chapters_of_a_book_may_have_spaces_in_their_names(tmp_path: Path) -> None:
    path = tmp_path / "book.epub"
    with zipfile.ZipFile(path, "w") as book:
        container = "<container><rootfiles><rootfile full-path='book.opf'/></rootfiles></container>"
        book.writestr("META-INF/container.xml", container)
        book.writestr(
            "book.opf",
            "<package><manifest><item id='a' href='ch%200.xhtml'/><item id='b' href='100%25.xhtml'/></manifest>"
            "<spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
        )
        book.writestr("ch 0.xhtml", "<html><body><p>First chapter.</p></body></html>")
        book.writestr("100%25.xhtml", "<html><body><p>Second chapter.</p></body></html>")
    assert [text for _, _, text in read(path)] == ["First chapter.\n\nSecond chapter."]


def test_a_word_file_is_called_by_its_title(tmp_path: Path) -> None:
    import docx

    named = [
        ("A manual", "Other", 2, "A manual"),
        ("A manual", "", 1, "A manual"),
        ("", "A manual", 2, "A manual"),
        ("", "", 1, "Part 0"),
        ("", "", 2, "4"),
    ]
    for number, (styled, property, n_headings, _) in enumerate(named):
        document = docx.Document()
        document.core_properties.title = property
        if styled:
            document.add_paragraph(styled, style="Title")
        for n in range(n_headings):
            document.add_heading(f"Part {n}", level=1)
            document.add_paragraph(prose(10 * number + n, 300))
        document.save(str(tmp_path / f"{number}.docx"))
    titles = {id.split(".")[0]: title.split(" › ")[0] for id, title, _ in read(tmp_path)}
    assert list(titles.values()) == [title for *_, title in named]


CELLS = [
    ["Station", "Height (m)", "Built"], ["Eddystone", "49", "1882"], ["Bell Rock", "35", "1810"],
    ["Fastnet", "54", "1904"],
]  # fmt: skip


def table(path: Path, cells: list[list[str]]) -> None:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    body = getSampleStyleSheet()["BodyText"]
    SimpleDocTemplate(str(path)).build([Paragraph(prose(1, 40), body), Table(cells), Paragraph(prose(2, 40), body)])


@pytest.mark.parametrize("n_columns", [2, 3])
def test_rows_of_a_pdf_stay_rows_and_the_next_paragraph_begins_after_them(tmp_path: Path, n_columns: int) -> None:
    cells = [row[:n_columns] for row in CELLS]
    table(tmp_path / "table.pdf", cells)
    [(_, _, text)] = read(tmp_path / "table.pdf")
    assert text.split("\n\n") == [prose(1, 40), "\n".join(map(" | ".join, cells)), prose(2, 40)]


def test_cells_of_several_lines_are_paragraphs_and_no_word_moves(tmp_path: Path) -> None:
    table(tmp_path / "table.pdf", [CELLS[0], ["Bell\nRock", "thirty\nfive", "in\n1810"]])
    [(_, _, text)] = read(tmp_path / "table.pdf")
    assert text.split("\n\n")[1:] == [
        "Station | Height (m) | Built",
        "Bell Rock",
        "thirty five",
        "in 1810",
        prose(2, 40),
    ]
    assert words_of([text]) == words_of([prose(1, 40), *CELLS[0], "Bell Rock thirty five in 1810", prose(2, 40)])


def test_numbers_of_headings_and_items_are_no_cells(tmp_path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "list.pdf"))
    lines = ["First we boil the water", "then we add the salt", "and we serve it hot."]
    for n, line in enumerate(lines):
        canvas.drawString(60, 700 - 14 * n, f"{n + 1}.")
        canvas.drawString(90, 700 - 14 * n, line)
    canvas.save()
    with read_documents(tmp_path) as found:
        assert "|" not in next(iter(found.documents)).text
