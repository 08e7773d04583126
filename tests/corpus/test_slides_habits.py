"""What PowerPoint and its imitators write: text of every shape, slide by slide, and nothing of the frame around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Block, Report
from tests.corpus.files import read
from tests.corpus.packages import deck, shape
from tests.corpus.test_word_habits import CHART

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    with reading_process():
        yield


def blocks(path: Path) -> tuple[list[Block], Report]:
    """The blocks of a deck; nothing of it may be missing."""
    report = Report()
    found = list(blocks_of("pptx", path, report))
    assert not report.missing
    return found, report


def texts(path: Path) -> list[str]:
    return [block.text for block in blocks(path)[0]]


BREAK = "<a:r><a:t>Quay House</a:t></a:r><a:br/><a:r><a:t>Anchor Street</a:t></a:r>"
NUMBER = '<a:r><a:t>Slide </a:t></a:r><a:fld type="slidenum"><a:t>7</a:t></a:fld><a:r><a:t> of the plan</a:t></a:r>'
DATE = '<a:r><a:t>On </a:t></a:r><a:fld type="datetime1"><a:t>1 June</a:t></a:fld>'
FREE = "<p:sp><p:nvSpPr/><p:spPr/><p:txBody><a:p><a:r><a:t>Free</a:t></a:r></a:p></p:txBody></p:sp>"
FORMULA = (
    "<mc:AlternateContent><mc:Choice Requires='a14'><a14:m><m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num>"
    "<m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></a14:m></mc:Choice>"
    "<mc:Fallback><a:r><a:t>a over b</a:t></a:r></mc:Fallback></mc:AlternateContent>"
)
COPY = f"<mc:Fallback>{shape('New')}</mc:Fallback>"
SHAPES = f"<mc:AlternateContent><mc:Choice>{shape('New')}</mc:Choice>{COPY}</mc:AlternateContent>"


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (FREE, ["Free"]),  # a shape of any outline, or of none
        (shape(BREAK), ["Quay House\nAnchor Street"]),
        (shape("Monday_x000D_Tuesday"), ["Monday Tuesday"]),
        (shape("a_x005F_x000D_b"), ["a_x000D_b"]),
        (shape(NUMBER), ["Slide of the plan"]),
        (shape(DATE), ["On 1 June"]),
        (shape("First\nSecond"), ["First\nSecond"]),
        (shape("Text", "body") + shape("Title", "title"), ["Title", "Text"]),
        (shape("3", "sldNum") + shape("Port", "ftr") + shape("1 June", "dt") + shape("Text"), ["Text"]),
        (SHAPES, ["New"]),
        (shape(FORMULA), ["a/b"]),
        (f"<p:grpSp>{shape('a')}<p:grpSp>{shape('b')}</p:grpSp></p:grpSp>", ["a", "b"]),
        # Read down a column; columns side by side stay as they were written.
        (shape("low", frame="0 500 100 50") + shape("high", frame="0 100 100 50"), ["high", "low"]),
        (shape("right", frame="200 0 100 50") + shape("left", frame="0 90 100 50"), ["right", "left"]),
    ],
)  # fmt: skip
def test_a_person_sees(shapes: str, expected: list[str], tmp_path: Path) -> None:
    assert texts(deck(tmp_path / "a.pptx", shapes)) == expected


def grid(*rows: list[str]) -> str:
    cells = ("".join(cell if cell.startswith("<") else tc(cell) for cell in row) for row in rows)
    inner = "".join(f"<a:tr>{row}</a:tr>" for row in cells)
    return (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{inner}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )


def tc(text: str, attributes: str = "") -> str:
    return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"


def test_cells_keep_their_columns_and_merged_ones_stand_once(tmp_path: Path) -> None:
    rows = [
        ["Team", "Won", "Lost"],
        ["Quay", "3", "3"],
        ["Mill", "", "1"],
        [tc("Both", 'gridSpan="2"'), tc("", 'hMerge="1"'), "4"],
    ]
    assert texts(deck(tmp_path / "a.pptx", grid(*rows))) == [
        "Team | Won | Lost\nQuay | 3 | 3\nMill |  | 1\nBoth |  | 4"
    ]


def test_charts_and_notes_in_any_box_and_no_hidden_slide(tmp_path: Path) -> None:
    frame = (
        '<p:graphicFrame><a:graphic><a:graphicData><c:chart r:id="rIdC"/></a:graphicData></a:graphic></p:graphicFrame>'
    )
    path = deck(
        tmp_path / "a.pptx",
        shape("One", "title") + frame,
        "hidden:" + shape("Old figures", "title"),
        shape("Three", "title"),
        notes={1: shape("Say it.", "body") + shape("In a box.") + shape("1", "sldNum"), 2: shape("Old notes.", "body")},
        charts={"rIdC": CHART},
    )
    found, report = blocks(path)
    assert found == [
        Block("One", 2, 1), Block("Berths by year", 0, 1), Block("| 2024\nnorth | 4\nsouth | 9", 0, 1, 1),
        Block("Say it.", 0, 1), Block("In a box.", 0, 1), Block("Three", 2, 3),
    ]  # fmt: skip
    assert report.removed == {"headers and footers": 1, "hidden slides": 4}


def test_every_slide_is_a_passage_with_its_number(tmp_path: Path) -> None:
    subjects = ["Permits", "Sheds", "Hours"]
    slides = [
        shape(subject, "title") + shape(f"The {subject.lower()} are on board {n}.")
        for n, subject in enumerate(subjects)
    ]
    path = deck(tmp_path / "deck.pptx", *slides, shape("Thanks", "title"), shape("No title."))
    assert read(path) == [
        ("deck.pptx#p1-1", "deck › Permits", "The permits are on board 0."),
        ("deck.pptx#p2-2", "deck › Sheds", "The sheds are on board 1."),
        ("deck.pptx#p3-3", "deck › Hours", "The hours are on board 2."),
        ("deck.pptx#p4-4", "deck", "Thanks"),
        ("deck.pptx#p5-5", "deck", "No title."),
    ]  # fmt: skip
