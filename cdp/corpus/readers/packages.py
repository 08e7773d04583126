"""Packages of Office Open XML and OpenDocument: parts, names, all their text, and what their formats have in common."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Report, walk

# Bytes that one part may unpack to: a document of a hundred million characters has fewer.
MAX_PART = 1 << 29


class Kind(StrEnum):
    """What is left out on purpose, as the person reads it."""

    HEADERS = "headers and footers"
    DELETED = "deleted text"
    HIDDEN = "hidden text"
    COMMENTS = "comments"
    COPIES = "copies for older programs"
    TEMPLATE = "template text"
    CONTENTS = "table of contents"
    ABOUT = "about the document"


# Parts that formats have in common, by their place in the package of every writer.
PARTS = {
    r"/comments?\d*\.xml$|/comments/[^/]+\.xml$": Kind.COMMENTS, r"/charts/chart[^/]*\.xml$": "charts",
    r"/diagrams/data\d*\.xml$": "SmartArt",
}  # fmt: skip


# Namespaces by the prefix that the standard and all writers use; those of strict files lie elsewhere.
_PREFIXES = (
    (r"wordprocessingml/(2006/)?main", "w"), (r"drawingml/(2006/)?main", "a"), (r"presentationml/(2006/)?main", "p"),
    (r"officeDocument/(2006/)?math", "m"), (r"drawingml/(2006/)?chart", "c"), (r"drawingml/(2006/)?diagram", "dgm"),
    (r"spreadsheetml/(2006/)?main", "x"), (r"drawingml/\S*preadsheetDrawing", "xdr"), (r"compatibility/2006", "mc"),
    (r"officeDocument/(2006/)?relationships", "r"), (r"schemas-microsoft-com:vml", "v"),
)  # fmt: skip
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


@lru_cache(1 << 16)
def _short(tag: str) -> str:
    uri, _, local = tag.rpartition("}")
    if open_document := re.search(r"opendocument:xmlns:([\w-]+):", uri):
        return f"{open_document[1]}:{local}"
    prefix = next((prefix for pattern, prefix in _PREFIXES if re.search(pattern + "$", uri)), "?" if uri else "")
    return f"{prefix}:{local}" if prefix else local


def name(element: Any) -> str:
    """Return the name of an element with the usual prefix ("w:p"), "" for a comment."""
    return _short(element.tag) if isinstance(element.tag, str) else ""


def attribute(element: Any, wanted: str, default: str = "") -> str:
    """Return an attribute by its name with the usual prefix ("w:val")."""
    return next((value for key, value in element.attrib.items() if _short(key) == wanted), default)


def child(element: Any, *path: str) -> Any:
    """Return the first descendant along a path of names, else None."""
    for wanted in path:
        element = next((found for found in element if name(found) == wanted), None)
        if element is None:
            return None
    return element


def within(element: Any, *wanted: str) -> Iterator[Any]:
    return (found for found in element.iter() if name(found) in wanted)


def unescaped(text: str) -> str:
    """Return text without the escapes of control characters that DrawingML and sheets have ("_x000D_")."""
    return _ESCAPED.sub(lambda match: character(int(match[1], 16)) or " ", text)


def character(code: int) -> str:
    """Return a character that XML can hold and that is no sign of a font of its own; "" for any other."""
    return chr(code) if 32 <= code < 0xD800 or 0xF900 <= code < 0xFFFE else ""


class Package:
    """The parts of a file, each parsed when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        self.names = self._zip.NameToInfo
        self.main = next(iter(self.of_kind("officeDocument")), "")

    def xml(self, part: str) -> Any:
        """Return the root of a part, None where there is none. Entities are not resolved: they could name files."""
        from lxml import etree

        if part not in self.names:
            return None
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
        with self.opened(part) as stream:
            return etree.parse(stream, parser).getroot()

    def each(self, part: str, *wanted: str) -> Iterator[Any]:
        """Yield the elements of these local names in a part that is too long to hold, each to be read at once."""
        from lxml import etree

        if part not in self.names:
            return
        with self.opened(part) as stream:
            tags = [f"{{*}}{tag}" for tag in wanted]
            for _, element in etree.iterparse(stream, tag=tags, resolve_entities=False, no_network=True):
                yield element
                element.clear()
                while (before := element.getprevious()) is not None:
                    element.getparent().remove(before)

    def opened(self, part: str) -> IO[bytes]:
        """Return what a part is read from. KeyError where there is none; RefusedValueError for one that is too long."""
        if self.names[part].file_size > MAX_PART:
            raise RefusedValueError("too long", f"a part of it unpacks to more than {MAX_PART >> 20:,} MB")
        return self._zip.open(part)

    def related(self, part: str = "") -> dict[str, tuple[str, str]]:
        """Return {relationship: (its kind, the part)} of a part, of the package itself for ""."""
        folder, file = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        found = {}
        for relation in root if root is not None else ():
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if relation.get("TargetMode") != "External":
                found[relation.get("Id", "")] = (posixpath.basename(relation.get("Type", "")), target)
        return found

    def of_kind(self, kind: str, part: str = "") -> list[str]:
        """Return the parts that stand in a relationship of this kind to ``part``."""
        return [target for found, target in self.related(part).values() if found == kind]

    def title(self) -> str:
        """Return the title among the properties; a file without these has none."""
        parts = self.of_kind("core-properties")
        return declared_title(self.xml(parts[0])) if parts else ""

    def count(self, kinds: Mapping[str, str], report: Report) -> None:
        """Count every text node of the parts whose names match; ``kinds`` are {pattern of a part's name: kind}.

        Comments, headers and footers are left out.
        """
        for part in self.names:
            kind = next((kind for pattern, kind in {**PARTS, **kinds}.items() if re.search(pattern, part)), None)
            if kind is None or "/glossary/" in part:  # texts that Word offers for insertion
                continue
            text = all_text(self.xml(part))
            report.count(text, kind)
            if kind in (Kind.COMMENTS, Kind.HEADERS):
                report.remove(text, kind)


def declared_title(root: Any) -> str:
    """Return the title among properties, "" where there is none."""
    title = root.findtext(".//{http://purl.org/dc/elements/1.1/}title") if root is not None else ""
    return " ".join((title or "").split())


_TEXTS = frozenset(("w:t", "w:delText", "a:t", "m:t", "c:v", "x:t", "p:text"))
WORD_ART = "v:textpath"  # its text is an attribute
# Elements that end a word where they begin and where they end.
_BREAKS = frozenset(("w:p", "w:tab", "w:ptab", "w:br", "w:cr", "w:noBreakHyphen", "a:p", "a:br", "c:v", "x:comment",
                     WORD_ART, "m:e", "m:num", "m:den", "m:sup", "m:sub", "m:deg", "m:fName", "m:lim", "m:oMath",
                     "text:p", "text:h", "text:tab", "text:line-break", "text:s"))  # fmt: skip
# Elements beside or above the text in which they stand, also in the midst of a word.
_ASIDE = frozenset(("w:del", "w:moveFrom", "w:rt", "w:txbxContent", "mc:Fallback", "office:annotation", "text:note"))
# Where text stands between elements, and elements of these whose text is about the document.
_MIXED = ("text", "table", "drawing", "office", "chart", "presentation", "style")
ABOUT = ("svg-compatible:title", "svg-compatible:desc", "text:note-citation", "office:forms", "?:creator", "?:date")


def all_text(root: Any, hidden: Collection[str] = ()) -> str:
    """Return all text nodes below an element, however nested: nothing of the structure is known here but what ends a
    word, and that text of a ``hidden`` style stands apart. Numbers of charts are left aside: they are shown rounded."""
    from lxml import etree

    texts: list[list[str]] = [[]]
    inside = [texts[0]]
    skipped = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        kind, starts = name(element), event == "start"
        skipped += (1 if starts else -1) if kind in ABOUT else 0
        styled = attribute(element, "text:style-name") if hidden else ""
        if kind in _BREAKS:
            inside[-1].append("\n")
        if kind in _ASIDE or styled in hidden or (kind == "w:r" and is_on(element, "w:rPr", "w:vanish")):
            if starts:
                texts.append([])
                inside.append(texts[-1])
            else:
                inside.pop()

        own = ""
        if starts:
            number = kind == "c:v" and name(element.getparent().getparent()) == "c:numCache"
            taken = (kind in _TEXTS and not number) or kind.partition(":")[0] in _MIXED
            own = (element.text or "") if taken else element.get("string", "") if kind == WORD_ART else ""
        elif element is not root and name(element.getparent()).partition(":")[0] in _MIXED:
            own = element.tail or ""
        if own and not skipped:
            inside[-1].append(unescaped(own) if kind[0] in "acx" else own)
    return "\n".join("".join(text) for text in texts)


def prune(root: Any, left_out: Callable[[Any, str], str | None], report: Report) -> Any:
    """Take out of a tree what ``left_out(element, its name)`` gives a kind for, and count it.

    Text behind an element stays. Returns the tree.
    """

    def kind_of(element: Any) -> str | None:
        kind = name(element)
        if kind in ("mc:Choice", "mc:Fallback") and element is not child(element.getparent(), "mc:Choice"):
            return Kind.COPIES
        return left_out(element, kind)

    for element, kind in walk.outermost(root, kind_of):
        report.remove(all_text(element), kind)
        before, parent = element.getprevious(), element.getparent()
        if before is None:
            parent.text = (parent.text or "") + (element.tail or "")
        else:
            before.tail = (before.tail or "") + (element.tail or "")
        parent.remove(element)
    return root


def is_on(element: Any, *path: str) -> bool:
    """Return True where a property of Word is set and not switched off."""
    mark = child(element, *path)
    return mark is not None and attribute(mark, "w:val") not in ("0", "false", "off")


# A text document's elements, Word's or OpenDocument's.
ROWS = ("w:tr", "table:table-row")
CELLS = ("w:tc", "table:table-cell")


class Flow:
    """Puts a text document into XHTML, for the walk to read. What each element becomes its format says in ``put``; of
    those that are not known, what they hold is read."""

    def __init__(self, report: Report) -> None:
        self.report = report
        # What the paragraph being read names, to stand below it: notes, text boxes, charts.
        self.below: list[Any] = []
        # The paragraph that goes on in the next one.
        self.open: Any = None

    def put(self, parent: Any, item: Any, kind: str) -> None:
        """Put an element of this name into the parent."""
        self.into(parent, item)

    def cells(self, row: Any) -> Iterator[tuple[Any, int, int]]:
        """Yield the cells of a row, None for an empty one, and how many columns and rows each takes."""
        yield from ((cell, 1, 1) for cell in parts(row, CELLS))

    def heads(self, row: Any) -> bool:
        """Return True for a row of the table's header behind its first."""
        return False

    def into(self, parent: Any, element: Any) -> None:
        """Put what an element holds into the parent."""
        for item in element:
            self.put(parent, item, name(item))

    def paragraph(self, parent: Any, item: Any, level: int = 0, is_title: bool = False, goes_on: bool = False) -> None:
        """Put a paragraph or heading, and below it what it names. ``goes_on``: the next one is the same."""
        below, self.below = self.below, []
        line = child_of(parent, "p") if self.open is None else self.open
        if level or is_title:
            line.tag = "h1" if is_title else f"h{min(6, level)}"
        self.into(line, item)

        self.open = line if goes_on else None
        if is_title:
            self.report.title = self.report.title or " ".join(walk.all_text(line).split())
        parent.extend(self.below)
        self.below = below

    def apart(self, element: Any) -> None:
        """Put what an element holds below the paragraph being read."""
        below, self.below = self.below, []
        self.into(box(below), element)
        self.below = below

    def table(self, parent: Any, element: Any) -> None:
        """Put a table. Its first row is its header, with those behind it that say so."""
        grid = child_of(parent, "table", role="table")
        in_header = True
        for number, row in enumerate(parts(element, ROWS)):
            in_header = number == 0 or (in_header and self.heads(row))
            line = child_of(grid, "tr")
            for cell, across, down in self.cells(row):
                made = child_of(line, "th" if in_header else "td", colspan=str(across), rowspan=str(down))
                if cell is not None:
                    self.into(made, cell)


def parts(parent: Any, wanted: tuple[str, ...]) -> Iterator[Any]:
    """Yield rows or cells, also those inside content controls and groups, not those of another table."""
    for item in parent:
        if name(item) in wanted:
            yield item
        elif name(item) not in ("w:tbl", "table:table"):
            yield from parts(item, wanted)


def child_of(parent: Any, tag: str, **attributes: str) -> Any:
    """Return a new element of XHTML at the end of another."""
    from lxml import etree

    return etree.SubElement(parent, tag, attributes)


def box(among: list[Any]) -> Any:
    """Return a new ``div`` at the end of a list."""
    from lxml import etree

    among.append(etree.Element("div"))
    return among[-1]


def add(element: Any, text: str) -> None:
    """Put text at the end of an element."""
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def drawn(line: Any, body: Any) -> None:
    """Put the paragraphs of a DrawingML text into an element, a line each."""
    for number, paragraph in enumerate(within(body, "a:p")):
        if number:
            child_of(line, "br")
        _draw(line, paragraph)


def _draw(line: Any, element: Any) -> None:
    for item in element:
        match name(item):
            case "a:br":
                child_of(line, "br")
            case "a:t":
                properties = child(element, "a:rPr")
                raised = properties is not None and not properties.get("baseline", "0").startswith(("-", "0"))
                add(child_of(line, "sup") if raised else line, unescaped(item.text or ""))
            case "m:oMath":
                add(line, walk.formula(item))
            case _:
                _draw(line, item)


def graphics(element: Any, package: Package, part: str) -> list[Any]:
    """Return what an element shows of charts (titles, categories, series, values) and of SmartArt."""
    related = package.related(part)
    found: list[Any] = []
    for reference in within(element, "c:chart", "dgm:relIds"):
        _, target = related.get(attribute(reference, "r:id") or attribute(reference, "r:dm"), ("", ""))
        root = package.xml(target)
        if root is not None:
            made = box(found)
            for text in within(root, "c:rich", "dgm:ptLst"):
                drawn(child_of(made, "p"), text)
            _put_series(made, root)
    return found


def _put_series(page: Any, root: Any) -> None:
    """Put the series of a chart as the columns of a table."""

    def values(series: Any, *places: str) -> dict[int, str]:
        points = (point for place in series if name(place) in places for point in within(place, "c:pt"))
        return {int(point.get("idx")): unescaped(child(point, "c:v").text or "") for point in points}

    columns = {0: ""}
    rows: dict[int, dict[int, str]] = {}
    for number, series in enumerate(within(root, "c:ser"), start=1):
        columns[number] = " ".join(values(series, "c:tx").values())
        for place, wanted in ((0, ("c:cat", "c:xVal")), (number, ("c:val", "c:yVal"))):
            for index, value in values(series, *wanted).items():
                rows.setdefault(index, {})[place] = value

    grid = child_of(page, "table", role="table")
    for row in (columns, *(row for _, row in sorted(rows.items()))):
        line = child_of(grid, "tr")
        for place in columns:
            child_of(line, "th" if row is columns else "td").text = row.get(place, "")
