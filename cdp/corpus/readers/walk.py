"""The walk that every document's text goes through: blocks of XHTML in reading order, with tables, powers and formulas.

Web pages and books are XHTML; Word, OpenDocument and slides are put into it by their readers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from cdp.corpus.passages import Block, in_cell, table
from cdp.corpus.readers import Report

HEADINGS = {f"h{level}": level for level in range(1, 7)}
ITEMS = frozenset(("li", "dt", "dd"))
LISTS = frozenset(("ul", "ol", "dl", "menu", "dir"))
# What stands in lines of its own; anything else is part of a line.
_DRAWN_APART = """
    address article aside blockquote body caption center details dialog div dl fieldset figcaption figure footer form
    header hgroup hr html legend main nav optgroup option p pre search section summary svg table tbody td text tfoot th
    thead tr
"""
BLOCKS = ITEMS | LISTS | HEADINGS.keys() | set(_DRAWN_APART.split())
# Drawn apart from the text beside them, though no line ends there.
APART = frozenset(("button", "input", "select", "textarea", "img", "video", "audio", "iframe", "object", "label"))

# Words of a cell of a web page that is a part of its layout rather than a value.
LONGEST_CELL = 150
MAX_SPANNED = 1_000

_RAISED = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")


# What of a page no reader of its text would count.
_UNCOUNTED = frozenset(("script", "style", "template", "noscript", "svg", "math"))


def all_text(element: Any) -> str:
    """Return all text of an element but for scripts and drawings, its lines apart; nothing else of the page is known
    here, so that what the walk passes over is missing."""
    from lxml import etree

    pieces: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, part in walk:
        own = part.text if event == "start" else part.tail if part is not element else ""
        if event == "start" and part.tag in _UNCOUNTED:
            walk.skip_subtree()
            own = ""
        pieces += [" " if part.tag in BLOCKS or part.tag in APART or part.tag == "br" else "", own or ""]
    return "".join(pieces)


def outermost(root: Any, kind_of: Callable[[Any], str | None]) -> list[tuple[Any, str]]:
    """Return the elements below a root that are of a kind, with it; none inside another."""
    from lxml import etree

    found = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if element is not root and (kind := kind_of(element)):
            found.append((element, kind))
            walk.skip_subtree()
    return found


def blocks(root: Any, report: Report, deeper: int = 0, page: int = 0) -> list[Block]:
    """Return the blocks of a tree in reading order; its headings are ``deeper`` than they say."""
    return [block._replace(page=page) for block in _Walk(report, deeper).over(root)]


class _Walk:
    """Text of a line is joined as it stands; what a browser draws apart is separated."""

    def __init__(self, report: Report, deeper: int) -> None:
        self._report, self._deeper = report, deeper
        self._found: list[Block] = []
        self._pieces: list[str] = []
        # The heading, plain list or preformatted text that is one block, and the marks where raised text begins.
        self._holder: Any = None
        self._raised: list[int] = []
        self._apart = False
        self._buttons = 0
        self._own = False  # text of the block that belongs to no button

    def over(self, root: Any) -> list[Block]:
        from lxml import etree

        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            if event == "start":
                self._start(element)
                if element.tag in ("math", "table") and self._whole(element):
                    walk.skip_subtree()
                else:
                    self._add(element.text)
            else:
                self._end(element)
                if element is not root:
                    self._add(element.tail)
        self._flush()
        return self._found

    def _add(self, text: str | None) -> None:
        if not text:
            return
        if self._holder is None or self._holder.tag != "pre":
            text = text.replace("\n", " ").replace("\r", " ")
        if self._apart and self._pieces and self._pieces[-1][-1:].isalnum() and text[0].isalnum():
            self._pieces.append(" ")
        self._apart = False
        self._own = self._own or (not self._buttons and not text.isspace())
        self._pieces.append(text)

    def _start(self, element: Any) -> None:
        tag = element.tag
        if tag in BLOCKS:
            self._boundary(tag)
            if self._holder is None and (tag in HEADINGS or tag == "pre" or (tag in LISTS and _is_plain(element))):
                self._holder = element
        elif tag == "br":
            in_list = self._holder is not None and self._holder.tag in LISTS
            self._pieces.append(" " if in_list else "\n")
        elif tag in ("sup", "sub"):
            self._raised.append(len(self._pieces))
        elif tag == "q":
            self._add("“")

        self._apart = self._apart or tag in APART or "-" in tag
        self._buttons += tag == "button"

    def _end(self, element: Any) -> None:
        tag = element.tag
        if tag in BLOCKS:
            if element is self._holder:
                self._flush(HEADINGS.get(tag, 0))
                self._holder = None
            else:
                self._boundary(tag)
        elif tag in ("sup", "sub") and self._raised:
            at = self._raised.pop()
            before, text = self._pieces[at - 1][-1:] if at else "", "".join(self._pieces[at:])
            self._pieces[at:] = [_raised(before, text) if tag == "sup" else _lowered(before, text)]
        elif tag == "q":
            self._add("”")

        self._apart = self._apart or tag in APART or "-" in tag
        self._buttons -= tag == "button"

    def _boundary(self, tag: str) -> None:
        """End the line; inside a heading, list or preformatted text, the block goes on."""
        if self._holder is None:
            self._flush()
        else:
            self._pieces.append("\n" if tag in ITEMS and self._holder.tag in LISTS else " ")

    def _flush(self, level: int = 0) -> None:
        text = "".join(self._pieces).replace("\xad", "").replace("\u200b", "")
        keep = self._holder is not None and self._holder.tag == "pre"
        lines = [line.rstrip() if keep else " ".join(line.split()) for line in text.split("\n")]
        joined = "\n".join(lines).strip("\n") if keep else "\n".join(filter(None, lines))
        if level:
            level, joined = min(6, level + self._deeper), " ".join(joined.split())
        own, self._own = self._own, False
        self._pieces, self._raised, self._apart = [], [], False
        if joined.strip() and not (own or level):  # a heading may be the button that opens what follows
            self._report.remove(joined, "controls")
        elif joined.strip(" ¶"):
            self._found.append(Block(joined.rstrip(" ¶"), level))

    def _whole(self, element: Any) -> bool:
        """Take a formula or a table whole; False for a table of layout, whose cells are blocks."""
        if element.tag == "math":
            self._add(f" {_shown(element)} ")
            return True
        if _is_layout(element):
            return False

        rows, header = _rows(element, self._report)
        if self._holder is not None:
            self._add(" ".join(cell for row in rows for cell in row))
            return True
        for caption in element.iterchildren("caption"):
            self._found += blocks(caption, self._report, self._deeper)
        self._found += table(rows, header=header)
        return True


def _is_plain(element: Any) -> bool:
    """Return True for a list of short items: one block, a line for each."""
    if next(element.iter("table", "pre", "blockquote", "figure", *HEADINGS), None) is not None:
        return False
    return not any(len(item.findall("p")) > 1 for item in element.iter(*ITEMS))


def _is_layout(element: Any) -> bool:
    """Return True for a table that frames text: what is in it stays what it is. A table by its role has columns."""
    if element.get("role") in ("presentation", "none"):
        return True
    if element.get("role") == "table":
        widths = (sum(bool(all_text(cell).strip()) for cell in row) for row in element)
        return max(widths, default=0) < 2

    inner = element.iter("table", "pre", *HEADINGS)
    if sum(part is not element for part in inner):
        return True
    return any(len("".join(cell.itertext()).split()) > LONGEST_CELL for cell in element.iter("td", "th"))


def _rows(element: Any, report: Report) -> tuple[list[list[str]], int]:
    """(cells of each row, rows of headings). A cell that another covers is empty, so that all keep their columns."""
    rows: list[list[str]] = []
    covered: dict[int, int] = {}
    header = 0

    def skip_covered(row: list[str]) -> None:
        while covered.get(len(row), 0) > 0:
            covered[len(row)] -= 1
            row.append("")

    own = element if element.get("role") == "table" else element.iter("tr")
    for line in own:
        row: list[str] = []
        cells = [cell for cell in line if cell.tag in ("td", "th")]
        for cell in cells:
            skip_covered(row)
            text = in_cell(blocks(cell, report))
            down, across = (_span(cell, name) for name in ("rowspan", "colspan"))
            for i in range(across if len(row) < MAX_SPANNED else 1):
                covered[len(row)] = down - 1
                row.append("" if i else text)
        skip_covered(row)
        headings = line.getparent().tag == "thead" or (cells and all(cell.tag == "th" for cell in cells))
        header += bool(headings) and header == len(rows)
        rows.append(row)
    return rows, header


def _span(cell: Any, name: str) -> int:
    value = cell.get(name, "1").strip()
    span = int(value) if value.isdecimal() and len(value) < 5 else 1
    # 0 is the rest of the rows.
    return min(MAX_SPANNED, span or MAX_SPANNED) if name == "rowspan" else max(1, min(MAX_SPANNED, span))


def _raised(before: str, text: str) -> str:
    """10³ for 10 to the power of 3; ordinals and notes in brackets as they stand."""
    bare = text.strip()
    raised = bare.translate(_RAISED)
    if bare and all(character in "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ" for character in raised):
        return raised
    return f"^{bare}" if before.isdigit() and len(bare) == 1 and bare.isalpha() and bare not in "aeo" else text


def _lowered(before: str, text: str) -> str:
    """H2O, but x_max."""
    return f"_{text}" if before.isalpha() and text[:1].isalpha() else text


# What a structure of MathML or of Office's formulas reads as, from its parts.
_FORMULAS = {
    "mfrac": "{}/{}", "msup": "{}^{}", "msub": "{}_{}", "msubsup": "{}_{}^{}", "msqrt": "√{}",
    "munder": "{}_{}", "munderover": "{}_{}^{}",
    "f": "{}/{}", "sSup": "{}^{}", "sSub": "{}_{}", "sSubSup": "{}_{}^{}", "rad": "{}√{}", "d": "({})",
}  # fmt: skip


def _shown(element: Any) -> str:
    """A formula as TeX where the page gives it, else in one line."""
    for note in element.iter("annotation"):
        if "tex" in note.get("encoding", "") and note.text:
            return " ".join(note.text.split())
    return " ".join((element.get("alttext") or formula(element)).split())


def formula(element: Any) -> str:
    """Return a formula as one reads it aloud: "(a+b)/2", "x^2", "∑_(i=1)^n a_i"."""
    kind = _local(element)
    parts: list[str] = []
    before = ""
    for part in element:
        after = _local(part)
        if after.endswith("Pr") or after.startswith("annotation"):
            continue
        made = formula(part)
        if after == before == "r":  # the runs of one text
            parts[-1] += made
        else:
            parts.append(made)
        before = after

    shape = _FORMULAS.get(kind, "")
    if shape and shape.count("{}") == len(parts):
        return shape.format(*(part if kind == "d" else _grouped(part) for part in parts))
    if kind == "nary" and len(parts) == 3:
        signs = (value for mark in element.iter("{*}chr") for value in mark.attrib.values())
        marks = zip("_^", map(_grouped, parts[:2]), strict=True)
        return "".join([next(signs, "∫"), *(mark + part for mark, part in marks if part), " ", parts[2]])
    return reduce(_beside, parts, (element.text or "").strip())


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _grouped(part: str) -> str:
    """An operand, in brackets unless it is one number or name."""
    return part if len(part) < 2 or part.isalnum() else f"({part})"


def _beside(first: str, second: str) -> str:
    """Two parts of a formula, apart where they would read as one word or number."""
    return f"{first} {second}" if first[-1:].isalnum() and second[:1].isalnum() else first + second
