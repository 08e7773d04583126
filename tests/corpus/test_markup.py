"""Web pages and books by their structure: each visible word comes once, in order and apart from its neighbours."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.readers import Report, web
from cdp.corpus.reading import ReadResult
from tests.corpus.files import read
from tests.corpus.test_office_files import prose
from tests.support import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_reader")]

CASES = REPOSITORY.parent / "shared" / "cases" / "documents"

# (what stands in the main part, the text that must come of it); two line ends divide blocks.
TEXTS = {
    "line breaks": ("<p>Quay House<br>Anchor Street 12<br/>Lerwick</p>", "Quay House\nAnchor Street 12\nLerwick"),
    "bare text beside blocks": ("one<p>two</p>three<div>four<br>five</div>", "one\n\ntwo\n\nthree\n\nfour\nfive"),
    "elements of a sentence": (
        "<p>It met on <time>3 May</time>; press <button>Save</button>, "
        "the <label>name</label>, <output>42</output>.</p>",
        "It met on 3 May; press Save, the name, 42.",
    ),
    "marks inside a word": ("<p>un<b>believ</b>a<wbr>ble, mainte&shy;nance</p>", "unbelievable, maintenance"),
    "comments and instructions": ("<p>one<!-- no --> two<?php no ?> three</p>", "one two three"),
    "powers and indices": (
        "<p>10<sup>3</sup> m<sup>−2</sup>, 2<sup>n</sup>, the 1<sup>st</sup>, H<sub>2</sub>O, x<sub>max</sub></p>",
        "10³ m⁻², 2ⁿ, the 1st, H2O, x_max",
    ),
    "a formula": (
        "<p>so <math><mi>A</mi><mo>=</mo><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"
        " and <math alttext='x^2'><mi>x</mi></math></p>",
        "so A=(a+b)/2 and x^2",
    ),
    "a nested list": (
        "<ul><li>oil<ul><li>colza</li><li>olive</li></ul></li><li><a>gas</a>, <p>town</p></li></ul>",
        "oil\ncolza\nolive\ngas, town",
    ),
    "items of paragraphs": ("<ul><li><p>ring</p><p>wait</p></li></ul>", "ring\n\nwait"),
    "terms": ("<dl><dt>lens</dt><dd>a ring of <i>glass</i></dd></dl>", "lens\na ring of glass"),
    "a figure": (
        "<figure><pre>if a:\n    b()</pre><figcaption>The call</figcaption></figure>"
        "<figure><blockquote>No.</blockquote><figcaption>Ada</figcaption></figure>",
        "if a:\n    b()\n\nThe call\n\nNo.\n\nAda",
    ),
    "a caption that pandoc hides from screen readers": (
        "<figure><img src=a.png alt='The tower'><figcaption aria-hidden=true>The tower</figcaption></figure>"
        "<p>Save<span aria-hidden=true>x</span></p>",
        "The tower\n\nSave",
    ),
    "cells": (
        "<table><caption>Fares</caption><tr><th>Day</th><th>Who</th></tr>"
        "<tr><td><p>Mon</p><p>Tue</p></td><td>Ada<br>Ben<div>Cy</div></td></tr></table>",
        "Fares\n\nDay | Who\nMon Tue | Ada Ben Cy",
    ),
    "empty cells and equal neighbours": (
        "<table><tr><th>A<th>B<th>C</tr><tr><td>x<td><td>3</tr><tr><td>y<td>3<td>3</tr></table>",
        "A | B | C\nx |  | 3\ny | 3 | 3",
    ),
    "covered cells": (
        "<table><tr><th>Item</th><th>May</th><th>June</th></tr><tr><td rowspan=2>Boats</td><td>10</td><td>9</td></tr>"
        "<tr><td>11</td><td>12</td></tr><tr><td colspan=2>None</td><td>13</td></tr></table>",
        "Item | May | June\nBoats | 10 | 9\n| 11 | 12\nNone |  | 13",
    ),
    "a table of layout": (
        "<table><tr><td><h2>Left</h2><p>one</p></td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>",
        "Left\n\none\n\na | b",
    ),
    "spans beyond reason": (
        "<table><tr><td rowspan=0 colspan=99999>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a | b\n| c",
    ),
    "hidden and deleted": (
        "<p>The fee is <del>30</del><ins>45</ins> euros<span hidden> once</span><span style='display: none'>x</span>."
        "</p><template><p>y</p></template><script>z</script><noscript>turn on</noscript><dialog>Sure?</dialog>",
        "The fee is 45 euros.",
    ),
    "readings": ("<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby></p>", "漢字"),
    "controls": ("<p>Pay at the desk.</p><button>Log in</button><select><option>EN</select>", "Pay at the desk."),
    "notes": (
        "<p>The fee<a role='doc-noteref'>1</a> is low.</p><p>Since May. <a role='doc-backlink'>↩︎</a></p>",
        "The fee¹ is low.\n\nSince May.",
    ),
    "limits of a sum": (
        "<p>It is <math><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>"
        "<mi>i</mi></math>.</p>",
        "It is ∑_(i=1)^n i .",
    ),
    "quotation marks": ("<p>She said <q>no</q>.</p>", "She said “no”."),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_of(name: str, tmp_path: Path) -> None:
    body, wanted = TEXTS[name]
    page = f"<html><head><title>T</title></head><body><main><h1>T</h1>{body}</main></body></html>"
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    [(_, title, text)] = read(tmp_path / "page.html")
    assert title == "T"
    assert text == f"T\n\n{wanted}"


def page(path: Path, body: str, head: str = "", encoding: str = "utf-8") -> ReadResult:
    path.write_bytes(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode(encoding))
    return read_documents(path)


def text_of(found: ReadResult) -> str:
    return "\n\n".join(document.text for document in found.documents)


def test_the_frame_of_a_page_is_counted_by_kind(tmp_path: Path) -> None:
    frame = (
        "<header><a>The harbour</a><nav><a>Home</a> <a>Imprint</a></nav></header>"
        "<div class='cookieBanner'>We use cookies. <button>Accept</button></div>"
        "<div id='left-sidebar'><a>Fares</a></div>"
    )
    body = f"{frame}<div><h1>Cranes</h1><p>{prose(1, 60)}</p></div><footer>Opening hours</footer><p>© Harbour</p>"
    with page(tmp_path / "a.html", body) as found:
        assert text_of(found) == f"Cranes\n\n{prose(1, 60)}"
        [file] = found.files
        assert file.removed == {
            "page headers": 4, "notices on cookies": 4, "menus": 1, "page footers": 3,
        }  # fmt: skip
        assert not file.loss


@pytest.mark.parametrize("name", ["main", "div"])
def test_half_of_a_page_is_never_taken_for_its_frame(name: str, tmp_path: Path) -> None:
    """A page may call a small part its main one, and its text a menu."""
    body = (
        f"<{name}><h1>Soup</h1><p>{prose(1, 20)}</p></{name}>"
        f"<div class='menu'><p>{prose(2, 90)}</p></div><p>{prose(3, 30)}</p>"
    )
    with page(tmp_path / "a.html", body) as found:
        for n, words in ((1, 20), (2, 90), (3, 30)):
            assert prose(n, words) in text_of(found)


def test_a_menu_is_left_out_of_a_short_page_and_read_where_there_is_nothing_else(tmp_path: Path) -> None:
    menu = "<nav><ul><li><a>Cranes and ropes of the harbour</a></li><li><a>Fares</a></li></ul></nav>"
    with page(tmp_path / "a.html", f"{menu}<p>The quay is closed.</p>") as found:
        assert text_of(found) == "The quay is closed."
        assert found.files[0].removed == {"menus": 7}
    with page(tmp_path / "b.html", menu) as found:
        assert text_of(found) == "Cranes and ropes of the harbour\nFares"
        assert found.files[0].removed == {}


def test_what_stands_beside_the_main_part_is_counted(tmp_path: Path) -> None:
    body = f"<h1>Soup</h1><div><main><p>{prose(1, 60)}</p></main></div><div><p>See also the kitchen</p></div>"
    with page(tmp_path / "a.html", body) as found:
        assert text_of(found) == f"Soup\n\n{prose(1, 60)}"
        assert found.files[0].removed == {"beside the main part": 4}


def test_headings_in_buttons_and_sections_with_headers_stay(tmp_path: Path) -> None:
    body = (
        f"<h1>Help</h1><h2><button>May I pay later?</button></h2><p>{prose(1, 20)}</p>"
        f"<section><header><h2>Fees</h2><p>{prose(2, 20)}</p></header><aside><p>{prose(3, 20)}</p></aside></section>"
    )
    with page(tmp_path / "a.html", body) as found:
        for wanted in ("May I pay later?", "Fees", prose(1, 20), prose(2, 20), prose(3, 20)):
            assert wanted in text_of(found)


@pytest.mark.parametrize(
    ("encoding", "head"),
    [("utf-8", ""), ("utf-16", ""), ("utf-32", ""), ("koi8-r", "<meta charset='koi8-r'>"), ("cp1252", "")],
)
def test_encodings(encoding: str, head: str, tmp_path: Path) -> None:
    words = "Маяк горит всю ночь" if encoding == "koi8-r" else "Größe der Wärter – près de l’été"
    with page(tmp_path / "a.html", f"<p>{words}</p>", head, encoding) as found:
        assert text_of(found) == words


SPANNED = "<tr>" + "<td colspan=1000 rowspan=1000>a</td>" * 50 + "</tr>"
HOSTILE = {
    "frames within frames": "<div class='nav'>" * 240 + "<h1>x</h1>" + "word " * 200_000 + "</div>" * 240,
    "cells that cover a million": f"<table>{SPANNED}{'<tr><td>b</td></tr>' * 1_000}</table>",
    "a hundred thousand powers": "<p>" + "a<sup>2</sup> " * 100_000 + "</p>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_takes_time_by_its_size(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<html><body>{HOSTILE[name]}</body></html>")
    began = time.process_time()
    assert list(web.html_blocks(tmp_path / "a.html", [], Report()))
    assert time.process_time() - began < 4


CHAPTERS = {
    "one.xhtml": "<html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><body><h1>Bericht</h1>Zeile des "
    "W&auml;rters<br/>im März.<div class='x'>Ein Block <span epub:type='pagebreak' id='p'>12</span>ohne Absatz.</div>"
    "<dl><dt>Linse</dt><dd>aus Glas</dd></dl><figure><figcaption>Der Turm</figcaption></figure></body></html>",
    "bad.xhtml": "<html><body><p>Not &amp; closed <b>bold<p>next</body>",
    "nav.xhtml": "<html><body><nav><ol><li>Contents</li></ol></nav></body></html>",
    "two.xhtml": "<?xml version='1.0' encoding='iso-8859-1'?><html><body><p>Größe und Ende.</p></body></html>",
}


def book(path: Path, missing: tuple[str, ...] = (), title: str = "") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        root = "<container><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></container>"
        archive.writestr("META-INF/container.xml", root)
        items = "".join(
            f"<item id='{n}' href='{name}'{' properties=' + repr('nav') if name == 'nav.xhtml' else ''}/>"
            for n, name in enumerate(CHAPTERS)
        )
        named = f"<dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>{title}</dc:title>" if title else ""
        spine = "".join(f"<itemref idref='{n}'/>" for n in [*range(len(CHAPTERS)), "unknown"])
        archive.writestr(
            "OPS/book.opf", f"<package>{named}<manifest>{items}</manifest><spine>{spine}</spine></package>"
        )
        for name, text in CHAPTERS.items():
            if name not in missing:
                archive.writestr(f"OPS/{name}", text.encode("iso-8859-1" if "iso-8859-1" in text else "utf-8"))


def test_a_book_of_bare_text_and_odd_chapters(tmp_path: Path) -> None:
    book(tmp_path / "book.epub")
    with read_documents(tmp_path / "book.epub") as found:
        text = text_of(found)
        assert text == (
            "Bericht\n\nZeile des Wärters\nim März.\n\nEin Block ohne Absatz.\n\nLinse\naus Glas\n\nDer Turm\n\n"
            "Not & closed bold\n\nnext\n\nGröße und Ende."
        )
        assert found.notes == ("book.epub: 1 of its chapters could not be read: unknown (it is missing).",)


@pytest.mark.parametrize(("named", "title"), [("Unknown Title", "book"), ("The lamp", "The lamp")])
def test_a_book_without_a_title_is_called_by_its_file(named: str, title: str, tmp_path: Path) -> None:
    book(tmp_path / "book.epub", title=named)
    with read_documents(tmp_path / "book.epub") as found:
        assert [document.title for document in found.documents] == [title]
        assert (named in text_of(found)) == (named == title)


def test_a_chapter_that_is_missing_costs_itself(tmp_path: Path) -> None:
    book(tmp_path / "book.epub", missing=("one.xhtml",))
    with read_documents(tmp_path / "book.epub") as found:
        assert "Größe und Ende." in text_of(found)
        assert "one.xhtml" in found.notes[0]
    book(tmp_path / "book.epub", missing=tuple(CHAPTERS))
    with pytest.raises(InputError):
        read_documents(tmp_path / "book.epub")


@pytest.mark.skipif(not CASES.is_dir(), reason="needs ../shared/cases")
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "br.html",
            ["Quay House\nAnchor Street 12\nLerwick", "Elma | Mon 08:15 Tue 09:40 Wed NOTICE: no sailing", "Bring"],
        ),
        (
            "glue.html",
            ["Office hours", "Monday Tuesday | Ada Ben", "ring\n\nwait\n\none two", "first\nsecond", "alpha\nbeta"],
        ),
        ("brbook.epub", ["Leuchtturm.\nZweite Zeile", "des Wärters.", "Der Anhang steht in einem Block ohne Absatz."]),
        (
            "odd.epub",
            ["DIVTEXT", "DTTERM Fresnel lens\nDDTEXT a lens of rings.", "Oil\nNESTEDLI colza", "one\nverse two",
             "FIGCAPTION", "CAPTION panes\n\nP1 | P2", "Bare text BARETEXT in the body."],
        ),
    ],
)  # fmt: skip
def test_the_cases_beside_the_repository(name: str, wanted: list[str]) -> None:
    with read_documents(CASES / name, ReadOptions(passages=0)) as found:
        text = text_of(found)
        assert all(words in text for words in wanted), text
        assert all(text.count(word) == 1 for word in ("NESTEDLI", "BARETEXT") if word in text)
        assert not found.files[0].loss
