"""The text of HTML and XHTML by their structure: blocks in reading order, and what is left out, by kind."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any

from cdp.corpus.passages import Block, table
from cdp.corpus.readers import Report
from cdp.corpus.sources import likely_encoding

_DECLARED = re.compile(rb"""^[^>]*?encoding\s*=\s*["']([\w.-]+)|<meta[^>]+charset\s*=\s*["']?([\w.-]+)""", re.I)
# An XML parser knows none of HTML's names of characters; those of XML stay as they are.
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z][A-Za-z0-9]*;")
HEAD_BYTES = 4_096

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

# Text that no reader of the page sees, by what it is.
SCRIPTS = "scripts"
UNSEEN = {
    "script": SCRIPTS, "style": SCRIPTS, "noscript": SCRIPTS, "template": "templates", "del": "deleted text",
    "s": "deleted text", "strike": "deleted text", "rt": "readings of characters", "rp": "readings of characters",
    "select": "controls", "datalist": "controls", "object": "stand-ins for pictures", "video": "stand-ins for pictures",
    "audio": "stand-ins for pictures", "canvas": "stand-ins for pictures", "iframe": "stand-ins for pictures",
    "desc": "stand-ins for pictures",
}  # fmt: skip
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_HIDDEN_NAMES = frozenset(("sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"))

# Roles and words of names that mark the frame of a page.
_FRAME_ROLES = {"navigation": "menus", "search": "controls", "banner": "page headers", "contentinfo": "page footers"}
_FRAME_WORDS = {
    **dict.fromkeys(("cookie", "cookies", "consent", "gdpr", "onetrust"), "notices on cookies"),
    **dict.fromkeys(("nav", "navbar", "navigation", "menu", "breadcrumb", "breadcrumbs", "sidebar"), "menus"),
    **dict.fromkeys(("footer", "copyright"), "page footers"),
    **dict.fromkeys(("share", "sharing", "social", "newsletter", "related", "advert", "advertisement"), "teasers"),
}
_NAME_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*")
_FRAMES = {"footer": "page footers", "header": "page headers", "aside": "side notes", "nav": "menus"}
LONGEST_COPYRIGHT = 150
# A part of the page with so much of its prose is the page; the rest stands beside it.
MAIN_SHARE = 0.9
BESIDE = "beside the main part"

# Words of a cell that is a part of the page's layout rather than a value.
LONGEST_CELL = 150
MOST_SPANNED = 1_000

_RAISED = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")


def tree_of(data: bytes, strict: bool = False) -> Any:
    """Return the root of a page. ``strict``: it is XHTML, of which lxml's HTML parser loses what it does not know."""
    from lxml import etree
    from lxml import html as lxml_html

    text = decoded(data)
    if strict:
        # Whatever encoding a chapter declares, its text is decoded.
        parser = etree.XMLParser(
            encoding="utf-8", resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
        )
        try:
            root = etree.fromstring(_ENTITY.sub(lambda match: html.unescape(match[0]), text).encode(), parser)
        except etree.XMLSyntaxError:
            return tree_of(data)
        for element in root.iter(etree.Element):
            element.tag = element.tag.rpartition("}")[2]
        return root

    # Given as bytes: a text with a declaration of its encoding is refused.
    parser = lxml_html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    return lxml_html.document_fromstring(text.encode(), parser=parser, ensure_head_body=True)


def decoded(data: bytes) -> str:
    """Return the text of a page: UTF-8 where it fits, else as its head declares, else as it seems."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 0 in data[:HEAD_BYTES]:
        return data.decode(likely_encoding(data), "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass

    found = _DECLARED.search(data[:HEAD_BYTES])
    declared = (found[1] or found[2]).decode() if found else ""
    for encoding in (declared, likely_encoding(data)):
        try:
            return data.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode(declared if declared.lower() in ("utf-8", "utf8") else "cp1252", "replace")


class _TextCounter(HTMLParser):
    """Counts the text of a page by a parser that shares nothing with the walk."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report, self._inside, self._pieces = report, "", list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("head", "script", "style", "template", "noscript", "svg", "math") and not self._inside:
            self._inside = tag
        if tag in BLOCKS or tag in APART or tag == "br":
            self._pieces.append(" ")
        if tag == "body":
            self._inside = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""
        if tag in BLOCKS or tag in APART:
            self._pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self._pieces.append(data)

    def close(self) -> None:
        super().close()
        self._report.count("".join(self._pieces))


def count(data: bytes, report: Report) -> None:
    """Count the words of a page in its report, less those of scripts and drawings."""
    counted = _TextCounter(report)
    counted.feed(decoded(data))
    counted.close()


def _text(element: Any) -> str:
    return "".join(element.itertext())


def _spaced(element: Any) -> str:
    """The text of an element, its lines apart."""
    from lxml import etree

    pieces: list[str] = []
    for event, part in etree.iterwalk(element, events=("start", "end")):
        own = part.text if event == "start" else part.tail if part is not element else ""
        pieces += [" " if part.tag in BLOCKS or part.tag in APART or part.tag == "br" else "", own or ""]
    return "".join(pieces)


def _remove(element: Any, kind: str, report: Report) -> None:
    """Empty an element of its tree; the text behind it stays."""
    text = _spaced(element) if kind != SCRIPTS else ""
    if text.strip():
        report.remove(text, kind)
    element[:] = []
    element.text = None


def _outermost(root: Any, kind_of: Callable[[Any], str]) -> list[tuple[Any, str]]:
    """The elements that are of a kind, with it; none inside another."""
    from lxml import etree

    found = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if element is not root and (kind := kind_of(element)):
            found.append((element, kind))
            walk.skip_subtree()
    return found


def prune(root: Any, report: Report) -> None:
    """Take out what is hidden, deleted or no text."""
    for element, kind in _outermost(root, _unseen):
        _remove(element, kind, report)


def _unseen(element: Any) -> str:
    tag, attributes = element.tag, element.attrib
    if tag == "script" and attributes.get("type", "").startswith("math/"):
        element.tag = "span"  # a formula, where MathJax draws it
        return ""
    if tag in UNSEEN:
        return UNSEEN[tag]
    if tag == "title":  # of a drawing
        return "stand-ins for pictures"
    if tag == "dialog" and "open" not in attributes:
        return "hidden text"
    if not attributes:
        return ""

    hidden = "hidden" in attributes and attributes["hidden"] != "until-found"
    if hidden or attributes.get("aria-hidden") == "true" or _HIDDEN_STYLE.search(attributes.get("style", "")):
        return "hidden text"
    names = attributes.get("class", "").split()
    if not _HIDDEN_NAMES.isdisjoint(names):
        return "hidden text"
    if "headerlink" in names:
        return "links to headings"
    kind = attributes.get("{http://www.idpf.org/2007/ops}type", attributes.get("epub:type", ""))
    return "page numbers" if kind == "pagebreak" else ""


def without_frame(body: Any, report: Report) -> None:
    """Take menus, headers, footers, notices and teasers out of a page, and what stands beside its main part.

    No frame is what holds or lies in the main part, holds a first heading, or is most of the text; a ``nav`` always is.
    """
    sizes = _sizes(body)

    def frame(element: Any) -> str:
        kind = _frame(element)
        if not kind or element.tag == "nav":
            return kind
        if 2 * sizes[element][0] > sizes[body][0] or next(element.iter("main", "article", "h1"), None) is not None:
            return ""
        parts = ("main", "article", "section") if element.tag in _FRAMES else ("main", "article")
        main = next(element.iterancestors(*parts), None)
        return kind if main is None and not any(e.get("role") == "main" for e in element.iterancestors()) else ""

    for element, kind in _outermost(body, frame):
        _remove(element, kind, report)
    _remove_beside(body, _main_of(body, _sizes(body)), report)


def _frame(element: Any) -> str:
    tag, attributes = element.tag, element.attrib
    if tag in _FRAMES:
        return _FRAMES[tag]
    if tag in BLOCKS and not len(element) and (text := (element.text or "").strip()).startswith("©"):
        return "page footers" if len(text) < LONGEST_COPYRIGHT else ""
    if not attributes or tag not in ("div", "section", "ul", "ol", "form", "table", "td", "dialog", "p", "span"):
        return ""

    if kind := _FRAME_ROLES.get(attributes.get("role", "")):
        return kind
    for name in (attributes.get("id", ""), attributes.get("class", "")):
        for word in _NAME_WORD.findall(name):
            if kind := _FRAME_WORDS.get(word.lower()):
                return kind
    return ""


def _main_of(body: Any, sizes: Mapping[Any, tuple[int, int]]) -> Any:
    """The part that the page calls its main one, else the smallest with nearly all of its prose."""
    prose = sizes[body][1]
    for path in (".//main", ".//*[@role='main']", ".//article"):
        found = body.xpath(path)
        if len(found) == 1 and 2 * sizes[found[0]][1] >= prose:
            return found[0]

    main = body
    while True:
        parts = [child for child in main if child.tag in ("div", "section", "article", "main", "center", "form")]
        heavy = [child for child in parts if sizes[child][1] >= max(MAIN_SHARE * prose, 1)]
        if not heavy:
            return main
        main = heavy[0]


def _sizes(root: Any) -> dict[Any, tuple[int, int]]:
    """{element: (its characters, those outside of links and buttons)}, spaces left aside."""
    from lxml import etree

    def length(text: str | None) -> int:
        return sum(map(len, text.split())) if text else 0

    sizes: dict[Any, tuple[int, int]] = {}
    for _, element in etree.iterwalk(root, events=("end",)):
        parts = [sizes[child] for child in element]
        own = length(element.text) + sum(length(child.tail) for child in element)
        size, prose = own + sum(part[0] for part in parts), own + sum(part[1] for part in parts)
        sizes[element] = size, 0 if element.tag in ("a", "button") else prose
    return sizes


def _remove_beside(body: Any, main: Any, report: Report) -> None:
    """Take out what stands beside the main part, but for the page's only first heading."""
    above = set(body.iterancestors())
    frame = set(main.iterancestors()) - above
    kept = {main}
    if len(headings := list(body.iter("h1"))) == 1 and main not in headings[0].iterancestors():
        frame |= set(headings[0].iterancestors()) - above
        kept |= {headings[0]}

    for element in frame - kept:
        texts = [element.text or "", *(child.tail or "" for child in element)]
        if any(map(str.strip, texts)):
            report.remove(" ".join(texts), BESIDE)
        element.text = None
        for child in element:
            child.tail = None
            if child not in frame and child not in kept:
                _remove(child, BESIDE, report)


def blocks(root: Any, report: Report, deeper: int = 0) -> list[Block]:
    """Return the blocks of a tree in reading order; its headings are ``deeper`` than they say."""
    return _Walk(report, deeper).over(root)


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
            self._add(f" {_formula(element)} ")
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
    if element.get("role") in ("presentation", "none"):
        return True
    inner = element.iter("table", "pre", *HEADINGS)
    if sum(part is not element for part in inner):
        return True
    cells = list(element.iter("td", "th"))
    return any(len(_text(cell).split()) > LONGEST_CELL for cell in cells)


def _rows(element: Any, report: Report) -> tuple[list[list[str]], int]:
    """(cells of each row, rows of headings). A cell that another covers is empty, so that all keep their columns."""
    rows: list[list[str]] = []
    covered: dict[int, int] = {}
    header = 0

    def skip_covered(row: list[str]) -> None:
        while covered.get(len(row), 0) > 0:
            covered[len(row)] -= 1
            row.append("")

    for line in element.iter("tr"):
        row: list[str] = []
        cells = [cell for cell in line if cell.tag in ("td", "th")]
        for cell in cells:
            skip_covered(row)
            text = " ".join(" ".join(block.text.split()) for block in blocks(cell, report))
            down, across = (_span(cell, name) for name in ("rowspan", "colspan"))
            for i in range(across if len(row) < MOST_SPANNED else 1):
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
    return min(MOST_SPANNED, span or MOST_SPANNED) if name == "rowspan" else max(1, min(MOST_SPANNED, span))


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


def _formula(element: Any) -> str:
    """A formula as TeX where the page gives it, else in one line."""
    for note in element.iter("annotation"):
        if "tex" in note.get("encoding", "") and note.text:
            return " ".join(note.text.split())
    if told := element.get("alttext"):
        return " ".join(told.split())
    return " ".join(_line(element).split())


def _line(element: Any) -> str:
    parts = [_line(child) for child in element if child.tag != "annotation"]
    if element.tag == "mfrac" and len(parts) == 2:
        return f"{_grouped(parts[0])}/{_grouped(parts[1])}"
    if element.tag in ("msup", "msub", "msubsup") and len(parts) > 1:
        marks = {"msup": "^", "msub": "_", "msubsup": "_^"}[element.tag]
        return parts[0] + "".join(mark + _grouped(part) for mark, part in zip(marks, parts[1:], strict=False))
    if element.tag in ("msqrt", "mroot"):
        return f"√({''.join(parts[:1] if element.tag == 'mroot' else parts)})"
    text = (element.text or "").strip()
    return f" {text} " if element.tag == "mo" and text in "=+−-<>≤≥≠±" else text + "".join(parts)


def _grouped(part: str) -> str:
    return part if len(part.strip()) == 1 or part.strip().isalnum() else f"({part.strip()})"
