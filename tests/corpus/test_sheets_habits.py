"""Spreadsheets: a table per sheet, with values as the program shows them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.comments import Comment

from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.sheets import shown
from tests.corpus.files import read
from tests.corpus.packages import OFFICE, package, related

JUNE, AFTERNOON = datetime.datetime(2024, 6, 1), datetime.datetime(2024, 6, 1, 14, 5, 9)


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (4, "General", "4"),
        (4.0, "General", "4"),
        (0.1 + 0.2, "General", "0.3"),
        (4006381333931, "General", "4006381333931"),
        (1234.5, "#,##0.00", "1,234.50"),
        (1234.5, "0", "1234"),
        (0.45, "0%", "45%"),
        (0.055, "0.0%", "5.5%"),
        (1234, "00000", "01234"),
        (5, '"No. "0', "No. 5"),
        (12.5, '#,##0.00 "EUR"', "12.50 EUR"),
        (12.5, "[$€-407]#,##0.00", "€12.50"),
        (-3, "#,##0_);[Red](#,##0)", "-3"),
        (-3, "0.0", "-3.0"),
        (1500, "0.00E+00", "1500"),
        (1234567, "#,##0,", "1234567"),
        (0.5, "# ?/?", "0.5"),
        (True, "General", "TRUE"),
        ("a_x000D_b", "@", "a b"),
        (JUNE, "mm-dd-yy", "2024-06-01"),
        (JUNE, "d mmmm yyyy", "1 June 2024"),
        (JUNE, "ddd, dd.mm.yy", "Sat, 01.06.24"),
        (JUNE, '[$-407]d". "mmm yyyy', "1. Jun 2024"),
        (AFTERNOON, "yyyy-mm-dd hh:mm:ss", "2024-06-01 14:05:09"),
        (AFTERNOON, "h:mm AM/PM", "2:05 PM"),
        (AFTERNOON, "m/d/yy h:mm", "2024-06-01 14:05"),
        (datetime.time(9, 30), "h:mm", "9:30"),
        (datetime.timedelta(hours=26, minutes=3), "[h]:mm:ss", "26:03:00"),
        (JUNE, "General", "2024-06-01 00:00:00"),
    ],
)
def test_a_value_is_shown_as_the_program_shows_it(value: Any, code: str, expected: str) -> None:
    assert shown(value, code) == expected


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    with reading_process():
        yield


def blocks(path: Path) -> tuple[list[Block], Report]:
    """The blocks of a workbook; nothing of it may be missing."""
    report = Report()
    found = list(blocks_of("xlsx", path, report))
    assert not report.missing
    return found, report


def book(path: Path, fill: Callable[[Any], None]) -> Path:
    workbook = openpyxl.Workbook()
    fill(workbook)
    workbook.save(path)
    return path


def ships(workbook: Any) -> None:
    sheet = workbook.active
    sheet.title = "Ships"
    for row in (
        ["Register of ships"],
        [],
        ["Ship", "Built", "Crew"],
        ["Anna", JUNE, 4],
        ["Berta", None, 7],
        [],
        ["Both"],
    ):
        sheet.append(row)
    sheet["B4"].number_format = "yyyy-mm-dd"
    sheet.merge_cells("A7:B7")
    sheet["C7"] = 11
    sheet["A5"].comment = Comment("Doubtful", "A")
    workbook.create_sheet("Old").append(["secret figures"])
    workbook["Old"].sheet_state = "hidden"
    workbook.create_sheet("Notes").append(["Seen in June."])


@pytest.mark.slow
def test_a_sheet_is_a_table_and_what_is_hidden_is_counted(tmp_path: Path) -> None:
    found, report = blocks(book(tmp_path / "a.xlsx", ships))
    assert found == [
        Block("Ships", 2, 1), Block("Register of ships", 0, 1),
        Block("Ship | Built | Crew\nAnna | 2024-06-01 | 4\nBerta |  | 7\nBoth |  | 11", 0, 1, 1),
        Block("Notes", 2, 3), Block("Seen in June.", 0, 3),
    ]  # fmt: skip
    assert report.removed == {"comments": 1, "hidden sheets": 2}
    assert report.n_words == 15


@pytest.mark.slow
def test_hidden_rows_and_columns_are_left_out_and_counted(tmp_path: Path) -> None:
    def fill(workbook: Any) -> None:
        sheet = workbook.active
        for row in (["Ship", "Code", "Crew"], ["Anna", "x1", 4], ["Sold", "x2", 5], ["Berta", "x3", 7]):
            sheet.append(row)
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["B"].hidden = True
        sheet.column_dimensions.group("D", "XFD", hidden=True)

    found, report = blocks(book(tmp_path / "a.xlsx", fill))
    assert found[1:] == [Block("Ship | Crew\nAnna | 4\nBerta | 7", 0, 1, 1)]
    assert report.removed == {"hidden rows and columns": 6}


@pytest.mark.slow
def test_formulas_without_results_are_said(tmp_path: Path) -> None:
    _, report = blocks(book(tmp_path / "a.xlsx", lambda workbook: workbook.active.append(["Sum", "=1+1"])))
    assert report.notes == ["1 formula without a result: save it in a spreadsheet program"]


@pytest.mark.slow
def test_a_long_sheet_is_cut_between_rows(tmp_path: Path) -> None:
    def fill(workbook: Any) -> None:
        workbook.active.title = "Log"
        for row in [["Ship", "Berth"], *([f"Ship {n}", f"Berth {n}"] for n in range(200))]:
            workbook.active.append(row)

    passages = read(book(tmp_path / "log.xlsx", fill))
    assert len(passages) > 3
    assert {title for _, title, _ in passages} == {"log › Log"}
    assert {text.split("\n")[0] for *_, text in passages} == {"Ship | Berth"}
    rows = [row for *_, text in passages for row in text.split("\n")[1:]]
    assert rows == [f"Ship {n} | Berth {n}" for n in range(200)]


TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
CELLS = (
    '<c r="A1" t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r><rPh sb="0" eb="1"><t>カナ</t></rPh></is>'
    "</c>"
    '<c r="C1" t="str"><f>A1</f><v>formula_x000D_</v></c><c r="D1" t="e"><v>#REF!</v></c>'
    '<c r="E1"><f>1+1</f><v>2</v></c>'
)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", ["", '<dimension ref="A1"/>', '<dimension ref="A1:XFD1048576"/>'])
def test_other_programs_state_no_size_or_a_wrong_one(dimension: str, tmp_path: Path) -> None:
    path = package(
        tmp_path / "a.xlsx",
        {
            "[Content_Types].xml": f'<?xml version="1.0"?><Types xmlns="{OFFICE}/package/2006/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
            f'ContentType="{TYPE}"/></Types>',
            "_rels/.rels": related({"rId1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": f'<workbook {MAIN}><sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": related({"rId1": ("worksheet", "worksheets/sheet1.xml")}),
            "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}>{dimension}<sheetData><row r='1'>{CELLS}</row></sheetData>"
            "</worksheet>",
        },
    )
    assert blocks(path)[0] == [Block("S", 2, 1), Block("inline | formula | #REF! | 2", 0, 1, 1)]
