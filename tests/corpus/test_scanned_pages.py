"""Pages that are images: named with the hint to run OCR, whatever a stamp or a running header says on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from tests.corpus.test_office_files import prose

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_reader")]


def pdf(path: Path, pages: list[str], stamp: str = "", image: bool = True) -> None:
    """A page for each text, with a stamp and a number; where it is empty, an image."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    for number, text in enumerate(pages, start=1):
        if stamp:
            canvas.drawString(60, 800, stamp)
            canvas.drawString(60, 30, str(number))
        for n, sentence in enumerate(text.split(". ")):
            canvas.drawString(60, 700 - 14 * n, f"{sentence}.")
        if not text and image:
            canvas.drawImage(ImageReader(Image.new("L", (40, 60), 128)), 50, 50, 400, 600)
        canvas.showPage()
    canvas.save()


def test_pages_with_a_stamp_alone_count_as_scans(tmp_path: Path) -> None:
    path = tmp_path / "stamped.pdf"
    pdf(path, [prose(1, 60), "", "", "", "", ""], "City Archive")
    with read_documents(path) as found:
        [file] = found.files
        assert (file.n_pages, file.n_scanned) == (6, 5)
        [note, _] = found.notes
        assert note.startswith("stamped.pdf: 5 of 6 pages have no text (scanned): 2, 3, 4, 5, 6; ")
        assert "OCR" in note


def test_a_file_of_stamped_images_is_refused_as_a_scan(tmp_path: Path) -> None:
    path = tmp_path / "camscan.pdf"
    pdf(path, ["", "", "", ""], "Scanned by a phone")
    with pytest.raises(InputError, match=r"images without text: .*OCR"):
        read_documents(path)
    with pytest.raises(InputError, match=r"images without text: .*OCR"):
        read_documents(path, ReadOptions(keep_repeated=True))


def test_a_page_with_a_date_line_alone_is_a_scan_and_one_with_a_picture_is_not(tmp_path: Path) -> None:
    """The date is on no other page, so it is no running line."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"))
    for text, width in (("Scanned on 3 May 2024, page 1", 560), (prose(1, 12), 560), ("The harbour", 90)):
        canvas.drawImage(ImageReader(Image.new("L", (40, 60), 128)), 15, 50, width, 1.3 * width)
        canvas.drawString(60, 820, text)
        canvas.showPage()
    canvas.drawString(60, 700, prose(2, 30))
    canvas.save()
    with read_documents(tmp_path / "a.pdf") as found:
        assert (found.files[0].n_pages, found.files[0].n_scanned) == (4, 2)
        assert "2 of 4 pages have no text (scanned): 1, 2; " in found.notes[0]
        assert "3 May 2024" in next(iter(found.documents)).text


def test_blank_pages_with_a_header_are_no_scans(tmp_path: Path) -> None:
    path = tmp_path / "blank.pdf"
    pdf(path, [prose(1, 60), "", prose(2, 60), ""], "City Archive", image=False)
    with read_documents(path) as found:
        assert [(file.n_pages, file.n_scanned) for file in found.files] == [(4, 0)]


def test_running_lines_are_kept_where_asked(tmp_path: Path) -> None:
    pdf(tmp_path / "a.pdf", [prose(n, 60) for n in range(4)], "City Archive 2024")
    with read_documents(tmp_path, ReadOptions(keep_repeated=True)) as kept:
        assert sum(document.text.count("City Archive 2024") for document in kept.documents) >= 4
        assert not kept.notes


def test_running_lines_of_all_files_are_one_sentence(tmp_path: Path) -> None:
    for name in "abc":
        pdf(tmp_path / f"{name}.pdf", [prose(ord(name) + n, 60) for n in range(4)], "City Archive 2024")
    pdf(tmp_path / "d.pdf", [prose(n, 60) for n in range(4)])
    with read_documents(tmp_path) as found:
        assert found.notes == ("Removed from 3 of 4 files: “City Archive 2024” and 1 more running line",)
