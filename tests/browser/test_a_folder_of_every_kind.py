"""A person's folder of every kind of file, from its upload to a passage that is found, with the pages it stands on."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl
import pytest
from playwright.sync_api import Browser

from cdp.corpus import recognition
from cdp.services import corpora
from tests.browser.conftest import Looker, Server, serve_many
from tests.corpus.packages import deck, paragraph, shape, word
from tests.corpus.test_recognition import scans
from tests.support import stop_search

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ARABIC = (
    "دليل الميناء",
    "يفتح مكتب الميناء أبوابه من يوم الأحد إلى يوم الخميس.",
    "رقم هاتف الحارس الليلي 54321 في كل يوم.",
)
JAPANESE = (
    "港の手引き",
    "港の事務所は月曜日から金曜日まで開いています。",
    "灯台の見学は毎週土曜日の午後に行われます。",
)
LOST = "<w:p><m:r><m:t>a formula that stands outside of its frame</m:t></m:r></w:p>"


def printed(browser: Browser, path: Path, language: str, texts: tuple[str, ...]) -> None:
    """A heading and a page for each text, as Chromium prints them."""
    head, *pages = (f"<p>{text}</p>" for text in texts)
    direction = "rtl" if language == "ar" else "ltr"
    body = "<div style='break-after:page'></div>".join(pages)
    page = browser.new_page()
    page.set_content(f"<html lang={language} dir={direction}><h1>{head}</h1>{body}</html>")
    page.pdf(path=path)
    page.close()


def fill(folder: Path, browser: Browser) -> None:
    folder.mkdir()
    word(folder / "rules.docx", paragraph("Berths", style="berschrift1") + paragraph("A berth costs nine euros a day."))
    word(folder / "torn.docx", paragraph("Dues are paid at the office.") + LOST)
    slides = [
        shape(t, "title") + shape(f"Rule {n}: {t.lower()} are kept dry.") for n, t in enumerate(("Ropes", "Nets"))
    ]
    deck(folder / "deck.pptx", *slides)
    book = openpyxl.Workbook()
    book.active.title = "Ships"
    for row in (["Ship", "Length"], ["Stormy Petrel", 11.4], ["Elma", 9]):
        book.active.append(row)
    book.save(folder / "ships.xlsx")
    (folder / "fog.html").write_text("<h1>Fog</h1><p>The horn sounds twice a minute.</p>", encoding="utf-8")
    (folder / "notes.md").write_text("# Tides\n\nThe spring tide rises four metres.\n", encoding="utf-8")
    (folder / "gulls.csv").write_text("id,text\n1,Gulls nest on the roof of the net store.\n", encoding="utf-8")
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("ice.txt", "Ice closes the inner basin once in ten years.")
    with zipfile.ZipFile(folder / "lamp.epub", "w") as archive:
        archive.writestr("META-INF/container.xml", "<container><rootfile full-path='book.opf'/></container>")
        spine = "<manifest><item id='1' href='a.xhtml'/></manifest><spine><itemref idref='1'/></spine>"
        archive.writestr("book.opf", f"<package>{spine}</package>")
        archive.writestr("a.xhtml", "<html><body><h1>The lamp</h1>Its lens has<br/>nine rings of glass.</body></html>")
    printed(browser, folder / "arabic.pdf", "ar", ARABIC)
    printed(browser, folder / "japanese.pdf", "ja", JAPANESE)
    scans(folder / "scan.pdf")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from serve_many(tmp_path_factory.mktemp("data"))


def test_from_the_folder_to_the_page_of_a_passage(
    server: Server, look: Callable[..., Looker], browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "harbour"
    fill(folder, browser)
    tab = look(server)
    tab.open("documents").press("Folder", role="radio")
    box = tab.page.get_by_test_id("stMain").get_by_test_id("stFileUploader").locator("input[type=file]")
    box.set_input_files(folder)
    tab.idle().see("Import documents", seconds=60).shot("folder-1-chosen")
    tab.press("Import documents").see("Words of 1 file are missing", seconds=120)
    tab.page.get_by_text("12 files read").click()
    tab.idle().shot("folder-2-read")

    [corpus] = corpora.list_corpora(server.workspace)
    assert (corpus.n_files, corpus.n_files_failed, corpus.n_rejected) == (12, 0, 0)
    [torn] = [file for file in corpus.files if file.loss]
    assert (torn.name, torn.missing) == ("torn.docx", {"text": 8})

    found = {
        "lens rings of glass": "nine rings", "nets are kept dry": "deck.pptx, page 2",
        "length of the Stormy Petrel": "ships.xlsx, page 1", "54321": "arabic.pdf, pages 1–2",
        JAPANESE[2]: "japanese.pdf, pages 1–2", "ice in the inner basin": "Ice closes",
    }  # fmt: skip
    if not recognition.remedy():
        found["ferry except on Sundays"] = "scan.pdf, pages 1–4"
    for number, (query, place) in enumerate(found.items()):
        tab.open(f"search?q={query}&corpus={corpus.id}&search_with=bm25").see(" ms", seconds=60)
        first = tab.page.get_by_test_id("stMain").inner_text().partition("score ")[0]
        assert place in first, query
        tab.shot(f"folder-3-found-{number}")
    tab.page.get_by_test_id("stMain").get_by_role("link").filter(has_text="ice").first.click()
    tab.idle().see("Ice closes the inner basin")
    stop_search(server.workspace)
