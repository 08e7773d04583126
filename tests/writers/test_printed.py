"""PDFs and books as Chromium, LibreOffice, pandoc and EbookLib write them: what a person sees, word for word.

``make writers`` installs the programs and fonts; a row whose program or font is missing skips.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import READERS, DocumentFormat, Report, words

pytestmark = pytest.mark.slow

CHROMIUM = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")), "chromium")


class Printed(NamedTuple):
    """The body of a page, the attributes of its ``html``, the lines that come out, and its style."""

    body: str
    language: str
    lines: list[str]
    style: str = ""


# As one string in each place, for what it reads like depends on where it is cut.
ARABIC = (
    "يفتح مكتب الميناء أبوابه من يوم الأحد، ويكتب الزوار أسماءهم (القديمة) في كتاب عند الباب. "
    "رقم الهاتف 12345 والرسوم 12.5% للقارب Stormy Petrel في اليوم؟"
)
VOCALISED = (
    "يَفْتَحُ مَكْتَبُ المِينَاءِ أَبْوَابَهُ مِنْ يَوْمِ الأَحَدِ، وَيَكْتُبُ الزُّوَّارُ أَسْمَاءَهُمْ (القَدِيمَةَ) فِي كِتَابٍ. "
    "رَقْمُ الهَاتِفِ 12345 وَالرُّسُومُ 12.5% لِلْقَارِبِ Stormy Petrel فِي اليَوْمِ؟"
)
POINTED = "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ, 12345 (וְהָאָרֶץ)."
HEBREW = "משרד הנמל פתוח בימים ראשון עד חמישי (בבוקר), והמבקרים כותבים את שמם בספר. הטלפון 12345 לסירה Elma."
JAPANESE = "港の事務所は月曜日から金曜日まで開いています。訪問者は入口で名前を本に書きます。"
CHINESE = "港口办公室从星期一到星期五开放，访客在门口把名字写进一本书里。船长不超过三十米。"
DIVIDED = "The office plans the main&shy;te&shy;nance of the nor&shy;thern cranes, and en&shy;gi&shy;neers order ropes."
JUSTIFIED = (
    "The harbour office plans the extraordinary maintenance of the northern cranes for the spring, "
    "and the well-known engineers order considerable quantities of rope."
)
ROWS = ("<th>Team<th>Won<th>Drawn", "<td>Harbour<td>3<td>0", "<td>Mill<td>2<td>1")
TABLE = f"<table cellpadding=9>{''.join(f'<tr>{row}</tr>' for row in ROWS)}</table>"
VERTICAL = "body{writing-mode:vertical-rl;height:14em}"
PAGES = {
    "arabic": Printed(f"<h1>دليل الميناء</h1><p>{ARABIC}</p>", "ar", ["دليل الميناء", ARABIC]),
    "hebrew": Printed(f"<h1>ספר הנמל</h1><p>{HEBREW}</p>", "he", ["ספר הנמל", HEBREW]),
    "vocalised arabic": Printed(f"<p>{VOCALISED}</p>", "ar", [VOCALISED]),
    "pointed hebrew": Printed(f"<p>{POINTED}</p>", "he", [POINTED]),
    "japanese": Printed(f"<h1>港の手引き</h1><p>{JAPANESE}</p>", "ja", ["港の手引き", JAPANESE]),
    "vertical japanese": Printed(f"<h1>港の手引き</h1><p>{JAPANESE}</p>", "ja", ["港の手引き", JAPANESE], VERTICAL),
    "chinese": Printed(f"<h1>港口手册</h1><p>{CHINESE}</p>", "zh", ["港口手册", CHINESE]),
    "divided": Printed(f"<p>{DIVIDED}</p>", "en", [DIVIDED.replace("&shy;", "")], "p{width:7em}"),
    "justified": Printed(f"<p>{JUSTIFIED}</p>", "en", [JUSTIFIED], "p{width:10em;text-align:justify}"),
    "a table": Printed(
        f"<p>The league of the season.</p>{TABLE}",
        "en",
        ["The league of the season.", "Team | Won | Drawn", "Harbour | 3 | 0", "Mill | 2 | 1"],
    ),
}


def page(path: Path, printed: Printed) -> Path:
    direction = ' dir="rtl"' if printed.language in ("ar", "he") else ""
    style = f"<style>body{{width:16em;font-family:sans-serif}}{printed.style}</style>"
    path.write_text(
        f'<!doctype html><html lang="{printed.language}"{direction}><head><meta charset="utf-8"><title>t</title>'
        f"{style}</head><body>{printed.body}</body></html>",
        encoding="utf-8",
    )
    return path


def installed(program: str, language: str = "en") -> None:
    """Skip where a program, or a font for a language, is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: make writers")
    if shutil.which("fc-list") and not subprocess.check_output(["fc-list", f":lang={language}"]):
        pytest.skip(f"no font for {language}: make writers")


def read(path: Path) -> tuple[list[str], Report]:
    reader = next(r for r in READERS.values() if isinstance(r, DocumentFormat) and path.suffix in r.suffixes)
    report = Report()
    with reading_process():
        blocks = list(blocks_of(reader.name, path, report))
    return [line for block in blocks for line in block.text.split("\n")], report


@pytest.mark.parametrize("name", PAGES)
def test_chromium_prints(name: str, tmp_path: Path) -> None:
    printed = PAGES[name]
    installed(CHROMIUM, printed.language)
    source, made = page(tmp_path / "page.html", printed), tmp_path / "page.pdf"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    subprocess.run([*command, f"--print-to-pdf={made}", source.as_uri()], check=True, capture_output=True, timeout=120)
    lines, report = read(made)
    assert lines == printed.lines
    assert not report.missing


WRITING = {
    "arabic": "rl-tb",
    "vocalised arabic": "rl-tb",
    "pointed hebrew": "rl-tb",
    "hebrew": "rl-tb",
    "vertical japanese": "tb-rl",
    "japanese": "lr-tb",
    "divided": "lr-tb",
}
NAMES = "urn:oasis:names:tc:opendocument:xmlns:"


@pytest.mark.parametrize("name", WRITING)
def test_libreoffice_prints(name: str, tmp_path: Path) -> None:
    printed = PAGES[name]
    installed("soffice", printed.language)
    paragraphs = "".join(f"<text:p>{line}</text:p>" for line in printed.lines)
    (tmp_path / "page.fodt").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<office:document xmlns:office="{NAMES}office:1.0" xmlns:style="{NAMES}style:1.0" '
        f'xmlns:text="{NAMES}text:1.0" '
        f'xmlns:fo="{NAMES}xsl-fo-compatible:1.0" office:mimetype="application/vnd.oasis.opendocument.text">'
        '<office:automatic-styles><style:page-layout style:name="L"><style:page-layout-properties fo:page-width="9cm" '
        f'fo:page-height="20cm" fo:margin="1cm" style:writing-mode="{WRITING[name]}"/></style:page-layout>'
        '</office:automatic-styles><office:master-styles><style:master-page style:name="Standard" '
        f'style:page-layout-name="L"/></office:master-styles><office:body><office:text>{paragraphs}</office:text>'
        "</office:body></office:document>",
        encoding="utf-8",
    )
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", str(tmp_path)]
    subprocess.run([*convert, str(tmp_path / "page.fodt")], check=True, capture_output=True, timeout=120)
    lines, report = read(tmp_path / "page.pdf")
    assert words(" ".join(lines)) == words(" ".join(printed.lines))
    assert "".join("".join(lines).split()) == "".join("".join(printed.lines).split())
    assert not report.missing


BOOK = [
    "Bericht",
    "Zeile des Wärters",
    "im März.",
    "Ein Block ohne Absatz.",
    "Linse",
    "aus Glas",
    "Öl",
    "Raps",
    "Ende.",
]
CHAPTER = (
    "<h1>Bericht</h1>Zeile des Wärters<br/>im März.<div>Ein Block ohne Absatz.</div><dl><dt>Linse</dt><dd>aus Glas</dd>"
    "</dl><ul><li>Öl<ul><li>Raps</li></ul></li></ul><p>Ende.</p>"
)


def by_ebooklib(folder: Path) -> Path:
    epub = pytest.importorskip("ebooklib.epub", reason="EbookLib is not installed: make writers")
    book = epub.EpubBook()
    book.set_identifier("b")
    book.set_title("Leuchtturm")
    chapter = epub.EpubHtml(title="Bericht", file_name="one.xhtml", lang="de")
    chapter.content = f"<html><body>{CHAPTER}</body></html>"
    book.add_item(chapter)
    book.toc = (chapter,)
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    book.spine = ["nav", chapter]
    epub.write_epub(str(folder / "book.epub"), book)
    return folder / "book.epub"


def by_pandoc(folder: Path) -> Path:
    installed("pandoc")
    (folder / "in.html").write_text(f"<html><body>{CHAPTER}</body></html>", encoding="utf-8")
    command = [
        "pandoc",
        str(folder / "in.html"),
        "--metadata",
        "title=Leuchtturm",
        "--output",
        str(folder / "book.epub"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / "book.epub"


def by_libreoffice(folder: Path) -> Path:
    installed("soffice")
    installed("pandoc")
    (folder / "in.html").write_text(f"<html><body>{CHAPTER}</body></html>", encoding="utf-8")
    subprocess.run(["pandoc", str(folder / "in.html"), "--output", str(folder / "book.odt")], check=True, timeout=120)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    convert = [
        "soffice",
        profile,
        "--headless",
        "--convert-to",
        "epub",
        "--outdir",
        str(folder),
        str(folder / "book.odt"),
    ]
    subprocess.run(convert, check=True, capture_output=True, timeout=120)
    return folder / "book.epub"


@pytest.mark.parametrize("write", [by_ebooklib, by_pandoc, by_libreoffice])
def test_a_book_by(write: Callable[[Path], Path], tmp_path: Path) -> None:
    lines, report = read(write(tmp_path))
    came = [word for word in words(" ".join(lines)) if word != "leuchtturm"]
    assert came == words(" ".join(BOOK))
    assert not report.missing


def test_a_book_of_pandoc_as_a_page(tmp_path: Path) -> None:
    installed("pandoc")
    (tmp_path / "in.html").write_text(f"<html><body>{CHAPTER}</body></html>", encoding="utf-8")
    made = tmp_path / "page.html"
    command = ["pandoc", str(tmp_path / "in.html"), "--standalone", "--metadata", "title=Leuchtturm"]
    subprocess.run([*command, "--output", str(made)], check=True, capture_output=True, timeout=120)
    lines, report = read(made)
    assert [line for line in lines if line != "Leuchtturm"] == BOOK
    assert not report.missing
