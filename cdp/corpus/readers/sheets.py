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
from cdp.corpus.readers.files import MOST_CHARACTERS, office_format
from cdp.corpus.readers.packages import Kind, Package, all_text, attribute, graphic, name, paragraphs, unescaped, within

PARTS = {
    r"/comments?\d*\.xml$": Kind.COMMENTS, r"/drawings/drawing\d*\.xml$": "drawings",
    r"/charts/chart\d*\.xml$": "charts",
}  # fmt: skip
# Dates in the order of the reader's country: here the one that cannot be misread.
COUNTRYS_OWN = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd hh:mm"}


def xlsx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Each sheet as a heading and a table; ``page`` is the sheet's number. Hidden sheets and comments are left out and
    counted. Merged cells have their value once, in the first of them."""
    import openpyxl

    package = Package(path)
    package.count(PARTS, report)
    book = package.of_kind("officeDocument")[0]
    related = package.related(book)
    entries = list(within(package.xml(book), "x:sheet"))
    parts = {entry.get("name", ""): related[attribute(entry, "r:id")][1] for entry in entries}
    _count(package, book, parts, report)

    # The results of formulas, as the program stored them.
    workbook = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    for number, sheet in enumerate(workbook.worksheets, start=1):
        title = " ".join(sheet.title.split())
        part = parts.get(sheet.title, "")
        for comments in package.of_kind("comments", part):
            report.remove(all_text(package.xml(comments)), Kind.COMMENTS)
        rows = _rows(sheet)
        if sheet.sheet_state != "visible":
            report.remove("\n".join("\n".join(row) for row in rows), "hidden sheets")
            continue

        yield Block(title, 2, number)
        yield from _table(rows, number)
        for drawing in package.of_kind("drawing", part):
            root = package.xml(drawing)
            for shape in within(root, "xdr:sp"):
                if text := paragraphs(shape):
                    yield Block(text, 0, number)
            yield from graphic(root, package, drawing, number)
    report.title = package.title()


def _rows(sheet: Any) -> list[list[str]]:
    """The rows that hold anything. Programs state the size of a sheet wrongly; it is not asked for."""
    sheet.reset_dimensions()
    rows, size = [], 0
    for row in sheet.iter_rows():
        cells = [shown(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]
        if any(cells):
            rows.append(cells)
            size += sum(map(len, cells)) + len(cells)
        if size > MOST_CHARACTERS:
            raise RefusedValueError("too long", f"a sheet holds more than {MOST_CHARACTERS:,} characters")
    return rows


def _table(rows: list[list[str]], page: int) -> Iterator[Block]:
    """Lines of one cell above the first row of several are what the sheet says of its table."""
    first = next((i for i, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    yield from (Block(" ".join("".join(row).split()), 0, page) for row in rows[:first])
    yield from table(rows[first:], page)


def _count(package: Package, book: str, parts: dict[str, str], report: Report) -> None:
    """Count the texts of all cells as they stand in the file; numbers are shown otherwise than they are stored."""
    strings = package.of_kind("sharedStrings", book)
    shared = [_plain(item) for item in within(package.xml(strings[0]), "x:si")] if strings else []
    used = Counter[str]()
    unanswered = 0
    for part in parts.values():
        for cell in (cell for row in package.each(part, "row") for cell in within(row, "x:c")):
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


# What of a number format is not shown: colours, conditions, the width of a character, what fills the cell.
_UNSHOWN = re.compile(r"\[(?!\$)[^\]]*\]|_.|\*.")
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')


def _number(value: float, code: str) -> str:
    plain = str(int(value)) if float(value).is_integer() else f"{value:.10g}"
    sections = _UNSHOWN.sub("", code).split(";")
    section = sections[1] if value < 0 and len(sections) > 1 and sections[1] else sections[0]
    bare = _LITERAL.sub("", section)
    digits = re.search(r"[#0?][#0?,]*(?:\.[#0?]+)?", bare)
    # Text, fractions, powers of ten and thousands that are left out are rare, and plain numbers tell more.
    if not digits or digits[0].endswith(",") or re.search(r"[/E@]|General", bare):
        return plain

    whole, _, decimals = digits[0].partition(".")
    size = abs(value) * (100 if "%" in bare else 1)
    least = whole.count("0") + (len(decimals) + 1 if decimals else 0)
    number = f"{size:0{'' if ',' in whole else least}{',' if ',' in whole else ''}.{len(decimals)}f}"
    sign = "-" if value < 0 and len(sections) < 2 else ""
    literal = _LITERAL.sub(lambda match: match[1] or match[2] or match[3] or "", section)
    return sign + literal.replace(digits[0], number, 1).strip()


_TOKEN = re.compile(r"y+|m+|d+|h+|s+|am/pm|a/p|.", re.IGNORECASE)


def _date(value: Any, code: str) -> str:
    """A date or time; months and days of the week are named in English."""
    literal = _LITERAL.sub(lambda match: match[1] or match[2] or "", _UNSHOWN.sub("", code).split(";")[0])
    tokens = _TOKEN.findall(literal)
    noon = any(token.lower() in ("am/pm", "a/p") for token in tokens)
    has_date, has_time = hasattr(value, "year"), hasattr(value, "hour")

    parts, before = [], ""
    for i, token in enumerate(tokens):
        kind, long = token[0].lower(), len(token) > 1
        after = next((t[0].lower() for t in tokens[i + 1 :] if t[0].lower() in "ymdhs"), "")
        pattern = ""
        if kind == "m" and has_time and (before == "h" or after == "s"):
            pattern = "%M" if long else "%-M"
        elif kind in "ymd" and has_date:
            named = {"y": ("%y", "%y", "%Y", "%Y"), "m": ("%-m", "%m", "%b", "%B"), "d": ("%-d", "%d", "%a", "%A")}
            pattern = named[kind][min(len(token), 4) - 1]
        elif kind in "hs" and has_time:
            pattern = {"h": "%I" if noon else "%H", "s": "%S"}[kind]
            pattern = pattern if long else pattern.replace("%", "%-")
        elif token.lower() in ("am/pm", "a/p") and has_time:
            pattern = "%p"
        parts.append(value.strftime(pattern) if pattern else token if kind not in "ymdhs" else "")
        before = kind if kind in "ymdhs" else before
    text = "".join(parts).strip()
    return text if any(character.isdigit() for character in text) else str(value)


XLSX = office_format(
    "xlsx", "Spreadsheet", "Excel (.xlsx), a table per sheet, cut into passages", (".xlsx",), xlsx_blocks, 67,
    zipped=True, apart=True,
)  # fmt: skip
