"""A table keeps its columns, is cut between rows, and each piece begins with its header."""

from __future__ import annotations

import pytest

from cdp.corpus.passages import Block, cut, table

ROWS = [["Id", "Holder", "Shares"], *([f"SH-{n}", f"Holder {n} of the fund", str(7 + n)] for n in range(60))]


def test_empty_cells_and_equal_neighbours_keep_their_columns() -> None:
    [block] = table([["Team", "Won", "Drawn", "Lost"], ["Harbour", "3", "3", "0"], ["Mill", "", "2", "1"]])
    assert block.text == "Team | Won | Drawn | Lost\nHarbour | 3 | 3 | 0\nMill |  | 2 | 1"
    assert block.header == 1


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["", "2023"], ["Ships", "4"]], [Block("| 2023\nShips | 4", 0, 0, 1)]),
        ([["A", "", "B"], ["1", "", "2"]], [Block("A | B\n1 | 2", 0, 0, 1)]),
        ([["", ""], ["A", "B"], ["1", "2"]], [Block("A | B\n1 | 2", 0, 0, 0)]),
        ([["A", "B"], ["1"]], [Block("A | B\n1", 0, 0, 1)]),
        ([["A paragraph\nin a box."], [""], ["Another."]], [Block("A paragraph in a box."), Block("Another.")]),
        ([[""]], []),
        ([], []),
    ],
)
def test_rows_and_columns_without_text_go_and_one_column_is_prose(rows: list[list[str]], expected: list[Block]) -> None:
    assert list(table(rows)) == expected


@pytest.mark.parametrize("words", [30, 60, 100])
def test_each_piece_of_a_table_begins_with_its_header_and_holds_whole_rows(words: int) -> None:
    [block] = table(ROWS)
    lines = block.text.split("\n")
    pieces = [passage.text.split("\n") for passage in cut([Block("Register", 1), block], words)]
    assert len(pieces) > 3
    assert {piece[0] for piece in pieces} == {lines[0]}
    assert [row for piece in pieces for row in piece[1:]] == lines[1:]
    assert all(len(" ".join(piece).replace("|", "").split()) <= 1.5 * words for piece in pieces)


def test_a_table_behind_a_sentence_is_told_apart_and_its_header_stands_once() -> None:
    [block] = table(ROWS[:3])
    [passage] = cut([Block("Who holds what."), block], 40)
    assert passage.text == "Who holds what.\n\n" + block.text


def test_a_row_longer_than_a_passage_is_cut_and_a_long_header_is_not_repeated() -> None:
    [block] = table([["Name", "Text"], ["a", " ".join(f"w{n}" for n in range(90))]])
    pieces = [passage.text for passage in cut([block], 30)]
    assert all(piece.startswith("Name | Text\n") for piece in pieces)
    [long] = table([[f"column {n}" for n in range(40)], *([str(n)] * 40 for n in range(20))])
    assert sum("column 7" in passage.text for passage in cut([long], 60)) == 1


def test_no_passage_crosses_a_slide_and_any_other_tells_its_pages() -> None:
    slides = [block for n in range(1, 4) for block in (Block(f"Slide {n}", 2, n), Block(f"It says {n}.", 0, n))]
    assert [(p.text, p.section, p.page, p.last) for p in cut(slides, 100, apart=True)] == [
        (f"It says {n}.", (f"Slide {n}",), n, n) for n in range(1, 4)
    ]
    [whole] = cut(slides, 100)
    assert (whole.page, whole.last) == (1, 3)


def test_a_heading_with_nothing_under_it_is_text() -> None:
    long = "w " * 150
    blocks = [Block("Book", 1), Block("Alone", 2), Block("Part", 2), Block("Text."), Block(long, 2), Block("Last", 2)]
    found = [(p.section, p.text) for p in cut(blocks, 3)]
    assert found[:2] == [(("Book",), "Alone"), (("Book", "Part"), "Text.")]
    assert found[-1] == (("Book",), "Last")
    assert " ".join(text for section, text in found[2:-1]).split()[:3] == ["w", "w", "w"]
    assert "Book" not in next(cut([Block("Book", 1), Block("x " * 9, 2)], 3, title="Book")).text
