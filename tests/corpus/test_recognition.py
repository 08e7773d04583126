"""Scanned pages are recognised where OCRmyPDF and Tesseract are installed, and marked; else what to install is said."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, write_json
from cdp.corpus import extraction, list_corpora, load_manifest, read_documents, recognition, store
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import Report
from cdp.corpus.reading import FileRead
from cdp.services import doctor
from tests.corpus.test_office_files import words_of
from tests.support import install_plugins

pytestmark = pytest.mark.slow

PAGES = (
    ["The harbour office keeps a small archive of tide", "tables, and visitors write their names into a book."],
    ["The ferry runs every morning except on Sundays."],
)


def scans(path: Path) -> None:
    """Pages as images with a printed date line, and a page of text between them."""
    import pypdfium2
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    typed = Canvas(str(path.with_suffix(".typed")))
    for lines in PAGES:
        typed.setFont("Helvetica", 15)
        for n, line in enumerate(lines):
            typed.drawString(60, 700 - 24 * n, line)
        typed.showPage()
    typed.save()
    with pypdfium2.PdfDocument(path.with_suffix(".typed")) as document:
        images = [page.render(scale=200 / 72).to_pil().convert("L") for page in document]
    path.with_suffix(".typed").unlink()

    canvas = Canvas(str(path))
    for n, image in enumerate(images):
        canvas.drawImage(ImageReader(image), 0, 0, 595, 842)
        canvas.drawString(420, 20, f"Scanned {n + 3} May 2024")
        canvas.showPage()
        canvas.drawString(60, 700, "This page was typed and is no scan, with so many words that it is no stamp either.")
        canvas.showPage()
    canvas.save()


@pytest.mark.skipif(bool(recognition.remedy()), reason="needs OCRmyPDF and Tesseract")
def test_scanned_pages_are_read_and_marked(tmp_path: Path) -> None:
    scans(tmp_path / "a.pdf")
    with read_documents(tmp_path / "a.pdf", ReadOptions(passages=0, scan_languages="en")) as found:
        [document] = found.documents
        came = words_of([document.text])
        assert set(words_of([line for lines in PAGES for line in lines])) <= set(came)
        assert (found.files[0].n_pages, found.files[0].n_scanned) == (4, 0)
        assert found.notes == ("a.pdf: 2 of 4 pages were recognised as eng: 1, 3.",)
        assert found.files[0].recognised == (1, 3)


def test_a_passage_of_a_recognised_page_says_so(workspace: Workspace, tmp_path: Path) -> None:
    """In its place, which stands wherever a passage is shown; also of a corpus that was stored."""
    (tmp_path / "a.md").write_text("".join(f"# Part {n}\n\n{'The tide rises by night. ' * 30}\n\n" for n in range(9)))
    with read_documents(tmp_path / "a.md") as found:
        store(found, "tides", workspace)
    [kept] = list_corpora(workspace)
    scan = FileRead("a.pdf", "pdf", "", "en", 3, n_pages=4, recognised=(2, 4))
    write_json(workspace.corpus(kept.id) / "manifest.json", asdict(replace(kept, files=(scan,))))
    places = [load_manifest(workspace, kept.id).place_of(f"a.pdf#{id}") for id in ("p1-1", "p2-3", "p3..4-4", "9")]
    assert places == [("a.pdf", pages) for pages in ("page 1", "page 2, recognised", "pages 3–4, recognised", "")]


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(recognition.sys, "executable", str(tmp_path / "bin" / "python"))


@pytest.mark.usefixtures("nothing_installed")
def test_without_the_programs_the_doctor_names_them(workspace: Workspace) -> None:
    [check] = [check for check in doctor.check(workspace) if check.name == "scanned pages"]
    assert check.ok  # only scanned pages need it
    assert "pip install 'cdp-studio[ocr]'" in check.text
    assert "apt-get install tesseract-ocr" in check.text


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.usefixtures("nothing_installed")
def test_with_them_it_names_the_languages(workspace: Workspace, tmp_path: Path) -> None:
    program(tmp_path / "bin", "ocrmypdf", "exit 0")
    program(tmp_path / "bin", "tesseract", "printf 'List of languages (3):\\ndeu\\neng\\nosd\\n'")
    [check] = [check for check in doctor.check(workspace) if check.name == "scanned pages"]
    assert check.text == "read in deu, eng"


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("script", ["exit 3", "sleep 60"])
def test_a_program_that_fails_or_hangs_costs_its_time_alone(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pypdfium2

    monkeypatch.setattr(recognition, "PAGE_S", 0.2)
    program(tmp_path / "bin", "ocrmypdf", script if script != "sleep 60" else "exec /bin/sleep 60")
    scans(tmp_path / "a.pdf")
    began = time.monotonic()
    with pypdfium2.PdfDocument(tmp_path / "a.pdf") as document:
        assert recognition.recognised(document, [0, 2], "eng") == {}
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("text", "chosen", "installed", "wanted", "missing"),
    [
        ("Der Bericht ist von dem Amt und nicht von der Stadt.", "", ["deu", "eng"], "deu", ""),
        ("Der Bericht ist von dem Amt und nicht von der Stadt.", "", ["eng"], "eng", "deu"),
        ("", "", ["deu", "eng", "fra", "spa"], "deu+eng+fra", ""),
        ("", "de+eng", ["deu", "eng", "fra"], "deu+eng", ""),
        ("", "zh,ja", ["jpn"], "jpn", "chi_sim"),
    ],
)
def test_the_languages_of_scans(text: str, chosen: str, installed: list[str], wanted: str, missing: str) -> None:
    found, told = recognition.languages_for(text, chosen, installed)
    assert found == wanted
    assert missing in told
    assert bool(told) == bool(missing)


def test_a_file_with_scans_may_take_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_reader.py").write_text(
        "import time\n"
        "from cdp.corpus.readers import Block\n"
        "from cdp.corpus.readers.files import office_format\n"
        "def blocks(path, passwords, report):\n"
        "    report.more_time(30.0)\n"
        "    time.sleep(float(path.read_text()))\n"
        "    yield Block('recognised')\n"
        "SLOW = office_format('slow', 'Slow', 'a slow file', ('.slow',), blocks, 201)\n"
    )
    install_plugins(tmp_path, "slow_reader")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "first.slow").write_text("0")
    (tmp_path / "a.slow").write_text("5")
    with extraction.reading_process():
        # The process starts with the first file: on a busy machine that takes longer than the limit that is tried.
        list(extraction.blocks_of("slow", tmp_path / "first.slow", Report()))
        monkeypatch.setattr(extraction, "BASE_S", 4.0)
        assert [block.text for block in extraction.blocks_of("slow", tmp_path / "a.slow", Report())] == ["recognised"]
