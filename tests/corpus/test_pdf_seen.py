"""A PDF as it is seen: turned, cropped, scaled, with divided words, a filled form and lines from right to left."""

from __future__ import annotations

import time
import unicodedata
from pathlib import Path

import pytest

from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.readers.lines import Joined, Letter, as_drawn, in_logical_order, without_gaps
from cdp.corpus.reading import ReadResult
from tests.corpus.test_office_files import prose, words_of
from tests.support import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_reader")]

CASES = REPOSITORY.parent / "shared" / "cases" / "documents"
WIDTH, HEIGHT = 595, 842


def canvas(path: Path, size: tuple[float, float] = (WIDTH, HEIGHT), **more: object):  # type: ignore[no-untyped-def]
    from reportlab.pdfgen.canvas import Canvas

    made = Canvas(str(path), pagesize=size, **more)
    made.setFont("Helvetica", 10)
    return made


def text_of(found: ReadResult) -> str:
    return "\n\n".join(document.text for document in found.documents)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_turned_page_is_read_column_by_column(turn: int, tmp_path: Path) -> None:
    """Its lines were printed across two columns, as the page is shown."""
    columns = [[f"{side}{n} " + prose(100 * side + n, 5)[:-1].lower() for n in range(25)] for side in (1, 2)]
    page = canvas(tmp_path / "a.pdf")
    page.setPageRotation(turn)
    # What a person sees after the turn: the origin moves, the page's width and height change places.
    width, height = (WIDTH, HEIGHT) if turn in (0, 180) else (HEIGHT, WIDTH)
    x, y = {0: (0, 0), 90: (WIDTH, 0), 180: (WIDTH, HEIGHT), 270: (0, HEIGHT)}[turn]
    page.translate(x, y)
    page.rotate(turn)
    for n in range(25):
        for side, column in enumerate(columns):
            page.drawString(40 + side * width / 2, height - 60 - 15 * n, column[n])
    page.save()
    with read_documents(tmp_path / "a.pdf", ReadOptions(passages=0)) as found:
        assert words_of([text_of(found)]) == words_of([*columns[0], *columns[1]])


def test_what_lies_outside_of_the_crop_box_is_left_out_and_counted(tmp_path: Path) -> None:
    page = canvas(tmp_path / "a.pdf", cropBox=(50, 50, 545, 790))
    for y, text in ((815, "printer marks 12 of 40"), (700, prose(1, 8)), (685, prose(2, 8)), (20, "plate cyan")):
        page.drawString(60, y, text)
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        assert text_of(found) == f"{prose(1, 8)} {prose(2, 8)}"
        assert found.files[0].removed == {"outside of the page": 7}
        assert not found.files[0].loss


def test_a_heading_is_one_by_its_size_on_the_page(tmp_path: Path) -> None:
    """Fonts of size 1 that a matrix enlarges, and of size 24 that one halves."""
    page = canvas(tmp_path / "a.pdf")

    def scaled(x: float, y: float, by: float, size: float, text: str) -> None:
        page.saveState()
        page.translate(x, y)
        page.scale(by, by)
        page.setFont("Helvetica", size)
        page.drawString(0, 0, text)
        page.restoreState()

    scaled(60, 760, 20, 1, "Harbour rules")
    for n in range(10):
        page.drawString(60, 700 - 14 * n, prose(n, 8))
    scaled(60, 500, 0.5, 20, "a line as large as the others")
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        [document] = found.documents
        assert document.title == "Harbour rules"
        assert document.text.startswith("Harbour rules\n\n")
        assert document.text.endswith("a line as large as the others")


def test_a_filled_form_is_read_beside_its_labels(tmp_path: Path) -> None:
    page = canvas(tmp_path / "a.pdf")
    form = page.acroForm
    labels = (("Name of the vessel:", 700), ("Length in metres:", 660), ("Winter storage:", 620), ("Password:", 580))
    for label, y in labels:
        page.drawString(60, y, label)
    form.textfield(name="vessel", x=200, y=695, width=200, height=20, value="Stormy Petrel")
    form.textfield(name="length", x=200, y=655, width=200, height=20, value="11.4")
    form.textfield(name="secret", x=200, y=575, width=200, height=20, value="hunter", fieldFlags="password")
    form.checkbox(name="winter", x=200, y=618, size=14, checked=True)
    form.checkbox(name="summer", x=240, y=618, size=14, checked=False)
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        lines = text_of(found).split("\n\n")
        assert lines[:2] == ["Name of the vessel: Stormy Petrel", "Length in metres: 11.4"]
        assert lines[2] in ("Winter storage: Yes", "Winter storage: ✓")
        assert "hunter" not in text_of(found)


def test_a_word_that_two_pages_divide_is_whole(tmp_path: Path) -> None:
    page = canvas(tmp_path / "a.pdf")
    page.drawString(60, 700, "The office plans the mainte-")
    page.showPage()
    page.drawString(60, 700, "nance of the cranes.")
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        assert words_of([text_of(found)]) == words_of(["the office plans the maintenance of the cranes"])
        assert not found.files[0].loss


def test_japanese_drawn_from_top_to_bottom_has_no_spaces(tmp_path: Path) -> None:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont

    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    text = "港の事務所は月曜日から金曜日まで開いています。訪問者は入口で名前を本に書きます。"
    page = canvas(tmp_path / "a.pdf")
    page.setFont("HeiseiMin-W3", 12)
    for n, character in enumerate(text):
        page.drawString(500 - 30 * (n // 14), 780 - 20 * (n % 14), character)
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        assert text_of(found).replace("\n\n", "") == text


@pytest.mark.parametrize(
    ("lines", "elsewhere", "wanted"),
    [
        (["the mainte\ufffe", "nance of cranes"], "", "the maintenance of cranes"),
        (["the mainte\ufffenance of mainte\ufffenance"], "", "the maintenance of maintenance"),  # halves that return
        (["the well\ufffe", "known crane"], "", "the well-known crane"),
        (["the note\ufffe", "book"], "the notebook", "the notebook"),
        (["the sea\ufffe", "bird"], "a sea and a bird", "the sea-bird"),
        (["the sea\ufffe", "bird"], "no sea-bird", "the sea-bird"),
        (["die Mitglieder\ufffe", "versammlung"], "Mitglieder und Versammlung", "die Mitgliederversammlung"),
        (["die Vor\ufffe", "und Nachteile"], "", "die Vor- und Nachteile"),
        (["two-", "or three-year"], "", "two- or three-year"),
        (["die CDU\ufffe", "Politiker"], "", "die CDU-Politiker"),
        (["Saxe\ufffe", "Coburg, MAIN\ufffe", "TENANCE"], "", "Saxe-Coburg, MAINTENANCE"),
        (["in 2019\ufffe", "2020"], "", "in 2019-2020"),
        (["engi\u2010", "neers re\xad", "pair"], "", "engineers repair"),
        (["日本語の", "文章です。", "次の", "word", "英語"], "", "日本語の文章です。次の word 英語"),
        (["ผู้เยี่ยมชม", "เขียนชื่อ"], "", "ผู้เยี่ยมชมเขียนชื่อ"),
        (["한국어 문장은", "띄어 씁니다"], "", "한국어 문장은 띄어 씁니다"),
        (["one", "two"], "", "one two"),
    ],
)
def test_lines_are_joined(lines: list[str], elsewhere: str, wanted: str) -> None:
    assert Joined([[*lines, elsewhere]])(lines) == wanted


def test_one_long_word_is_looked_through_once() -> None:
    began = time.process_time()
    lines = ["a" * 300_000, "main\ufffetenance"]
    assert Joined([lines])(lines).endswith("a maintenance")
    assert time.process_time() - began < 5


def test_gaps_between_characters_go_and_those_between_words_stay() -> None:
    assert without_gaps("港 の 事 務 所 は") == "港の事務所は"
    assert without_gaps("港の事務所 月曜日から金曜日") == "港の事務所 月曜日から金曜日"


@pytest.mark.parametrize("order", ["as read", "as drawn", "each word as drawn"])
def test_a_line_from_right_to_left_is_read_in_its_order_however_it_is_stored(order: str) -> None:
    text = "يفتح مكتب الميناء، (القديمة) في 12345 قارب."
    places = {i: 10.0 * (len(text) - i) for i in range(len(text))}
    start = text.index("12345")
    places |= {start + i: 10.0 * (len(text) - start - 4 + i) for i in range(5)}  # a number is drawn from left to right
    stored = {
        "as read": list(range(len(text))),
        "as drawn": sorted(places, key=lambda i: places[i]),
        "each word as drawn": [i for word in _spans(text) for i in sorted(word, key=lambda i: places[i])],
    }[order]
    boxes = [(places[i], 0.0, places[i] + 9.5, 10.0) for i in stored]
    assert in_logical_order("".join(text[i] for i in stored), boxes, True) == text


def test_the_letters_of_a_ligature_are_not_turned_with_it() -> None:
    """As LibreOffice draws them: one glyph for two letters, stored the other way round."""
    line = "األحد"
    lefts = [50.0, 42.0, 42.0, 34.0, 26.0]
    boxes = [(left, 0.0, left + 7.0, 10.0) for left in lefts]
    assert in_logical_order(line, boxes, True) == "الأحد"


@pytest.mark.parametrize("apart", [True, False])
def test_a_mark_stands_behind_its_letter_however_it_is_stored(apart: bool) -> None:
    """Of two words: each mark a glyph of its own above its letter, or said with its letter in one place of the two."""
    words, size = ("مَكْتَبُ", "دَلِيلُ"), 10.0
    letters, ink, right = [], [], 200.0
    for word in words:
        for letter, mark in pairs(word):
            box = (right - 6, 0.0, right, 8.0)
            ink.append(box)
            above = (right - 5, 9.0, right - 2, 11.0)
            if apart or not mark:
                letters.append(Letter(letter, right - 6, 0.0, size, box, box))
                letters += [Letter(mark, right - 7.5, 0.8, size, above, above)] if mark else []
            else:  # as pdfium divides the box of the glyph among the characters that a writer says it stands for
                halves = (right - 5, 9.0, right - 3.5, 11.0), (right - 3.5, 9.0, right - 2, 11.0)
                letters += [Letter(c, right - 6, 0.8, size, b, b) for c, b in zip((mark, letter), halves, strict=True)]
            ink += [above] if mark else []
            right -= 6
        right -= 3
        letters.append(Letter(" ", right, 0.8, size, (right, 0.8) * 2, (right, 0.8) * 2))
    letters.insert(3, Letter(" ", 188.0, 0.8, size, (188.0, 0.8) * 2, (188.0, 0.8) * 2))  # seen beside a mark
    text, boxes = as_drawn(letters, ink)
    assert in_logical_order(text, boxes, True) == " ".join(words)


def pairs(word: str) -> list[tuple[str, str]]:
    """Each letter with the mark behind it, or without one."""
    found = []
    for character in word:
        if unicodedata.combining(character):
            found[-1] = (found[-1][0], character)
        else:
            found.append((character, ""))
    return found


@pytest.mark.parametrize(
    ("shown", "wanted"), [(".Elma", "Elma."), (")Elma(", "(Elma)"), ("30", "30"), (".Stormy Petrel", "Stormy Petrel.")]
)
def test_latin_words_on_a_page_from_right_to_left(shown: str, wanted: str) -> None:
    boxes = [(10.0 * n, 0.0, 10.0 * n + 9.5, 10.0) for n in range(len(shown))]
    assert in_logical_order(shown, boxes, True) == wanted


def test_words_of_a_justified_line_are_no_cells(tmp_path: Path) -> None:
    """In a column so narrow that they stand as far apart as cells do."""
    lines = ["the office plans", "rope and oil now", "for a long while", "and pays the men."]
    page = canvas(tmp_path / "a.pdf")
    for n, line in enumerate(lines):
        words = line.split()
        gap = (110 - sum(page.stringWidth(word, "Helvetica", 10) for word in words)) / (len(words) - 1)
        x = 60.0
        for word in words:
            page.drawString(x, 700 - 14 * n, word)
            x += page.stringWidth(word, "Helvetica", 10) + gap
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        assert text_of(found) == " ".join(lines)


@pytest.mark.parametrize("gap", [12, 5, 3])
def test_words_of_a_narrow_table_stand_in_their_columns(gap: float, tmp_path: Path) -> None:
    """Where a row fills two columns to their edges, and where one leaves a cell empty."""
    rows = [
        ("Team of the year", "Won", "Drawn"),
        ("Harbour", "13", "0"),
        ("Mill and quay", "", "1"),
        ("Lighthouse keepers", "30", "11"),
    ]
    page = canvas(tmp_path / "a.pdf")
    widths = [max(page.stringWidth(row[at], "Helvetica", 10) for row in rows) for at in range(3)]
    page.drawString(60, 760, prose(1, 12))
    for n, row in enumerate(rows):
        page.drawString(60, 720 - 14 * n, row[0])
        for at in (1, 2):
            page.drawRightString(60 + sum(widths[: at + 1]) + at * gap, 720 - 14 * n, row[at])
    page.save()
    with read_documents(tmp_path / "a.pdf") as found:
        assert text_of(found).split("\n")[2:] == [" | ".join(row) for row in rows]


def test_a_row_of_the_longest_texts_stays_one_and_marks_of_items_are_no_cells(tmp_path: Path) -> None:
    """The words of the first stand evenly, as in a justified line. The second touch what they mark."""
    page = canvas(tmp_path / "a.pdf")
    rows = [("Ship", "Built", "Crew"), ("Anna", "1920", "4"), ("Petrel", "193111", "Twelve"), ("Elma", "1999", "7")]
    widths = [page.stringWidth(text, "Helvetica", 10) + 15 for text in rows[2]]
    for n, row in enumerate(rows):
        for at, text in enumerate(row):
            page.drawString(60 + sum(widths[:at]), 720 - 14 * n, text)
    for n, line in enumerate(["Ropes and hooks,", "lamps for the quay,", "nets and sails."]):
        page.drawRightString(70, 600 - 14 * n, f"{n + 1}.")
        page.drawString(70, 600 - 14 * n, line)
    page.save()
    with read_documents(tmp_path / "a.pdf", ReadOptions(passages=0)) as found:
        table, items = text_of(found).split("\n\n")
    assert table.split("\n") == [" | ".join(row) for row in rows]
    assert "|" not in items


@pytest.mark.parametrize("turn", [0, 90])
@pytest.mark.parametrize("ruled", ["between the cells", "not at all", "across the letters"])
def test_cells_that_touch_are_parted(ruled: str, turn: int, tmp_path: Path) -> None:
    """By the lines between them, else where texts of their own begin. A line that crosses letters of one row is no
    border of cells."""
    page = canvas(tmp_path / "a.pdf", (HEIGHT, WIDTH) if turn else (WIDTH, HEIGHT))
    page.setPageRotation(turn)
    if turn:
        page.translate(HEIGHT, 0)
        page.rotate(90)

    rows = [
        ("Dune field", "1250", "north"),
        ("Fen", "7", "south"),
        ("Moor", "12345", "the east"),
        ("Heath", "88", "west"),
    ]
    for n, (name, count, side) in enumerate(rows):
        y = 700 - 14 * n
        if ruled == "across the letters":
            page.drawString(150 - page.stringWidth(name, "Helvetica", 10), y, name + count)
        else:
            page.drawRightString(150, y, name)
            page.drawString(150, y, count)
        page.drawString(260, y, side)
        borders = {"between the cells": (90, 150, 230, 330), "across the letters": (90, 153, 230, 330)}
        for x in borders.get(ruled, ()):
            page.line(x, y - 4, x, y + 10)
    page.save()

    with read_documents(tmp_path / "a.pdf", ReadOptions(passages=0)) as found:
        if ruled != "across the letters":
            parted = "Dune field | 1250 | north\nFen | 7 | south\nMoor | 12345 | the east\nHeath | 88 | west"
            assert text_of(found) == parted
        else:
            assert "Moor12345 | the east" in text_of(found)


def _spans(text: str) -> list[range]:
    spans, start = [], 0
    for word in text.split(" "):
        spans.append(range(start, start + len(word) + 1) if start + len(word) < len(text) else range(start, len(text)))
        start += len(word) + 1
    return spans


@pytest.mark.skipif(not CASES.is_dir(), reason="needs ../shared/cases")
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "hyphen.pdf",
            "plans the maintenance of the well-known northern cranes for the spring, and the engineers order",
        ),
        ("hyphen_rare.pdf", "die Mitgliederversammlung und das Prozesskostenrisiko des Vereins"),
        ("form.pdf", "Name of the vessel: FORMVALUE Stormy Petrel\n\nLength overall in metres: FORMVALUE2 11.4"),
    ],
)
def test_the_cases_beside_the_repository(name: str, wanted: str) -> None:
    with read_documents(CASES / name) as found:
        assert wanted in text_of(found)
        assert not found.files[0].loss
