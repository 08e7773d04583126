"""Titles and chapters: what a document is called."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.corpus.files import read


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
