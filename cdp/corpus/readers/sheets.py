"""Spreadsheets (.xlsx): a table for each sheet, its values as the program shows them."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.base.text import counted
from cdp.corpus.checks import RefusedValueError
from cdp.corpus.passages import table
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import MAX_CHARACTERS, office_format
from cdp.corpus.readers.packages import (
    Package,
    attribute,
    box,
    child_of,
    drawn,
    graphics,
    name,
    unescaped,
    within,
)
from cdp.corpus.readers.walk import blocks

PARTS = {r"/drawings/drawing\d*\.xml$": "drawings"}
MAX_COLUMNS = 16_384
# Dates in the order of the reader's country: here the one that cannot be misread.
COUNTRYS_OWN = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd hh:mm"}


def xlsx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Each sheet as a heading and a table; ``page`` is the sheet's number. Hidden sheets and comments are left out and
    counted. Merged cells have their value once, in the first of them."""
    import openpyxl

    package = Package(path)
    package.count(PARTS, report)
    related = package.related(package.main)
    entries = list(within(package.xml(package.main), "x:sheet"))
    parts = {entry.get("name", ""): related[attribute(entry, "r:id")][1] for entry in entries}
    hidden = _count(package, parts, report)

    # The results of formulas, as the program stored them.
    workbook = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    for number, sheet in enumerate(workbook.worksheets, start=1):
        title = " ".join(sheet.title.split())
        part = parts.get(sheet.title, "")
        unseen: list[str] = []
        rows = _rows(sheet, *hidden[part], unseen)
        report.remove("\n".join(unseen), "hidden rows and columns")

        if sheet.sheet_state != "visible":
            report.remove("\n".join("\n".join(row) for row in rows), "hidden sheets")
            continue

        yield Block(title, 2, number)
        yield from _table(rows, number)

        for drawing in package.of_kind("drawing", part):
            root, page = package.xml(drawing), box([])
            for shape in within(root, "xdr:sp"):
                drawn(child_of(page, "p"), shape)
            page.extend(graphics(root, package, drawing))
            yield from blocks(page, report, page=number)

    report.title = package.title()


def _rows(sheet: Any, hidden_rows: set[int], hidden_columns: set[int], unseen: list[str]) -> list[list[str]]:
    """The rows that show anything; what is hidden of them goes to ``unseen``. Programs state the size of a sheet
    wrongly; it is not asked for."""
    sheet.reset_dimensions()
    rows, size = [], 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells = [shown(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]
        for i in range(len(cells)) if number in hidden_rows else hidden_columns.intersection(range(len(cells))):
            unseen.append(cells[i])
            cells[i] = ""

        if any(cells):
            rows.append(cells)
            size += sum(map(len, cells)) + len(cells)
        if size > MAX_CHARACTERS:
            raise RefusedValueError("too long", f"a sheet holds more than {MAX_CHARACTERS:,} characters")
    return rows


def _table(rows: list[list[str]], page: int) -> Iterator[Block]:
    """Lines of one cell above the first row of several are what the sheet says of its table."""
    first = next((i for i, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    yield from (Block(" ".join("".join(row).split()), 0, page) for row in rows[:first])
    yield from table(rows[first:], page)


def _count(package: Package, parts: dict[str, str], report: Report) -> dict[str, tuple[set[int], set[int]]]:
    """Count the texts of all cells as they stand in the file; numbers are shown otherwise than they are stored.

    Returns {sheet: (numbers of its hidden rows from 1, indices of its hidden columns)}.
    """
    hidden: dict[str, tuple[set[int], set[int]]] = {}
    strings = package.of_kind("sharedStrings", package.main)
    shared = [_plain(item) for item in within(package.xml(strings[0]), "x:si")] if strings else []
    used = Counter[str]()
    unanswered = 0
    for part in parts.values():
        rows, columns = hidden[part] = set(), set()
        for cell in _cells(package, part, rows, columns):
            value = next((item.text or "" for item in cell if name(item) == "x:v"), "")

            match cell.get("t"):
                case "s" if value:
                    used[shared[int(value)]] += 1
                case "str":
                    used[unescaped(value)] += 1
                case "inlineStr":
                    used[_plain(cell)] += 1

            unanswered += not value and any(name(item) == "x:f" for item in cell)

    for text, n in used.items():
        report.count(text, times=n)

    if unanswered:
        formulas = counted(unanswered, "formula without a result", "formulas without a result")
        report.notes.append(f"{formulas}: save it in a spreadsheet program")
    return hidden


def _cells(package: Package, part: str, rows: set[int], columns: set[int]) -> Iterator[Any]:
    """The cells of a sheet as they stand in the file. What is hidden of it goes to ``rows`` and ``columns``."""
    number = 0
    for element in package.each(part, "col", "row"):
        is_hidden = element.get("hidden") in ("1", "true")
        if name(element) == "x:row":
            number = int(element.get("r", number + 1))
            rows.update([number] if is_hidden else [])
            yield from within(element, "x:c")
        elif is_hidden:
            columns.update(range(int(element.get("min")) - 1, min(int(element.get("max")), MAX_COLUMNS)))


def _plain(item: Any) -> str:
    """The text of a string, without the guides to its pronunciation."""
    texts = (text for text in within(item, "x:t") if name(text.getparent()) != "x:rPh")
    return unescaped("".join(text.text or "" for text in texts))


def shown(value: Any, code: str) -> str:
    """Return a value of a cell as the program shows it by the cell's number format: "1 June 2024", "45%", "01234"."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, float)):
        return _number(value, code)
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, (datetime.date, datetime.time)):
        return _date(value, COUNTRYS_OWN.get(code, code))
    return unescaped(str(value))


# What of a format is not shown (colours, conditions, widths of characters, filling), and what is shown as it is.
_UNSHOWN = re.compile(r"\[(?!\$)[^\]]*\]|_.|\*.")
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')
_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.([#0?]+))?")


def _number(value: float, code: str) -> str:
    """A number with its decimals, thousands and per cent; fractions, powers of ten and the like as plain numbers."""
    section = _UNSHOWN.sub("", code).split(";")[0]
    bare = _LITERAL.sub("", section)
    digits = _DIGITS.search(bare)
    if not digits or digits[0].endswith(",") or re.search(r"[/E@]|General", bare):
        return str(int(value)) if float(value).is_integer() else f"{value:.10g}"

    decimals = len(digits[1] or "")
    grouping = "," if "," in digits[0] else ""
    least = digits[0].count("0") + (decimals > 0) if not grouping else ""
    number = f"{value * (100 if '%' in bare else 1):0{least}{grouping}.{decimals}f}"
    return _LITERAL.sub(_inner, section).replace(digits[0], number, 1).strip()


def _inner(literal: re.Match[str]) -> str:
    return "".join(filter(None, literal.groups()))


_TOKEN = re.compile(rf"{_LITERAL.pattern}|y+|m+|n+|d+|h+|s+|am/pm", re.IGNORECASE)
_DATE = {
    "yy": "%y", "yyyy": "%Y", "m": "%-m", "mm": "%m", "mmm": "%b", "mmmm": "%B", "n": "%-M", "nn": "%M", "d": "%-d",
    "dd": "%d", "ddd": "%a", "dddd": "%A", "h": "%-H", "hh": "%H", "s": "%-S", "ss": "%S", "am/pm": "%p",
}  # fmt: skip


def _date(value: Any, code: str) -> str:
    """A date or time; months and days of the week are named in English."""
    section = _UNSHOWN.sub("", code).split(";")[0]
    if section == "General":
        return str(value)

    # Beside hours and seconds, m is minutes.
    section = re.sub(r"(?<=h:)mm?|mm?(?=:s)", lambda minutes: "n" * len(minutes[0]), section)
    noon = "am/pm" in section.lower()

    def shown(token: re.Match[str]) -> str:
        pattern = _DATE.get(token[0].lower(), "")
        return str(value.strftime(pattern.replace("H", "I") if noon else pattern)) if pattern else _inner(token)

    return _TOKEN.sub(shown, section).strip()


XLSX = office_format(
    "xlsx", "Spreadsheet", "Excel (.xlsx), a table per sheet, cut into passages", (".xlsx",), xlsx_blocks, 67,
    zipped=True, apart=True,
)  # fmt: skip
