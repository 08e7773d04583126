"""Titles and chapters: what a document is called."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.corpus.files import read
from tests.corpus.test_office_files import prose


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
