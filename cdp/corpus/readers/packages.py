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
from cdp.corpus.passages import table
from cdp.corpus.readers import Block, Report

# Bytes that one part may unpack to: a document of a hundred million characters has fewer.
MOST_PART = 1 << 29


class Kind(StrEnum):
    """What is left out on purpose, as the person reads it."""

    HEADERS = "headers and footers"
    DELETED = "deleted text"
    HIDDEN = "hidden text"
    COMMENTS = "comments"
    COPIES = "copies for older programs"
    TEMPLATE = "template text"
    CONTENTS = "table of contents"


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
    return _ESCAPED.sub(lambda match: " " if (code := int(match[1], 16)) < 32 else chr(code), text)


class Package:
    """The parts of a file, each parsed when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        self.names = self._zip.namelist()

    def xml(self, part: str) -> Any:
        """Return the root of a part, None where there is none. Entities are not resolved: they could name files."""
        from lxml import etree

        if part not in self._zip.NameToInfo:
            return None
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
        with self._opened(part) as stream:
            return etree.parse(stream, parser).getroot()

    def each(self, part: str, wanted: str) -> Iterator[Any]:
        """Yield the elements of this local name in a part that is too long to hold, each to be read at once."""
        from lxml import etree

        if part not in self._zip.NameToInfo:
            return
        with self._opened(part) as stream:
            for _, element in etree.iterparse(stream, tag=f"{{*}}{wanted}", resolve_entities=False, no_network=True):
                yield element
                element.clear()
                while (before := element.getprevious()) is not None:
                    element.getparent().remove(before)

    def _opened(self, part: str) -> IO[bytes]:
        if self._zip.NameToInfo[part].file_size > MOST_PART:
            raise RefusedValueError("too long", f"a part of it unpacks to more than {MOST_PART >> 20:,} MB")
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
        root = self.xml(parts[0]) if parts else None
        title = "" if root is None else root.findtext("{http://purl.org/dc/elements/1.1/}title")
        return " ".join((title or "").split())

    def count(self, kinds: Mapping[str, str], report: Report) -> None:
        """Count every text node of the parts whose names match; ``kinds`` are {pattern of a part's name: kind}."""
        for part in self.names:
            kind = next((kind for pattern, kind in kinds.items() if re.search(pattern, part)), None)
            if kind is not None and "/glossary/" not in part:  # texts that Word offers for insertion
                report.count(all_text(self.xml(part)), kind)


_TEXTS = frozenset(("w:t", "w:delText", "a:t", "m:t", "c:v", "x:t"))
# Elements that end a word where they begin and where they end.
_BREAKS = frozenset(("w:p", "w:tab", "w:ptab", "w:br", "w:cr", "w:noBreakHyphen", "a:p", "a:br", "c:v", "x:comment",
                     "m:e", "m:num", "m:den", "m:sup", "m:sub", "m:deg", "m:fName", "m:lim", "m:oMath",
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
        if kind in _ASIDE or styled in hidden or (kind == "w:r" and is_hidden(element)):
            if starts:
                texts.append([])
                inside.append(texts[-1])
            else:
                inside.pop()

        own = ""
        if starts:
            number = kind == "c:v" and name(element.getparent().getparent()) == "c:numCache"
            taken = (kind in _TEXTS and not number) or kind.partition(":")[0] in _MIXED
            own = (element.text or "") if taken else ""
        elif element is not root and name(element.getparent()).partition(":")[0] in _MIXED:
            own = element.tail or ""
        if own and not skipped:
            inside[-1].append(unescaped(own) if kind[0] in "acx" else own)
    return "\n".join("".join(text) for text in texts)


def prune(root: Any, left_out: Callable[[Any, str], str | None], report: Report) -> Any:
    """Take out of a tree what ``left_out(element, its name)`` gives a kind for, and count it; "" is not counted.

    Text behind an element stays. Returns the tree.
    """
    from lxml import etree

    found = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if element is root:
            continue
        kind = left_out(element, name(element))
        if kind is None and name(element) in ("mc:Choice", "mc:Fallback"):
            first = next((part for part in element.getparent() if name(part) == "mc:Choice"), element)
            kind = None if element is first else Kind.COPIES
        if kind is not None:
            found.append((element, kind))
            walk.skip_subtree()
    for element, kind in found:
        if kind:
            report.remove(all_text(element), kind)
        before, parent = element.getprevious(), element.getparent()
        if before is None:
            parent.text = (parent.text or "") + (element.tail or "")
        else:
            before.tail = (before.tail or "") + (element.tail or "")
        parent.remove(element)
    return root


def is_hidden(run: Any) -> bool:
    """Return True for a run of Word that is marked hidden."""
    mark = child(run, "w:rPr", "w:vanish")
    return mark is not None and attribute(mark, "w:val") not in ("0", "false", "off")


_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ⁽⁾"
_TO_RAISED = str.maketrans("0123456789+-−n()", _RAISED)


def raised(text: str) -> str:
    """Return a superscript in characters of its own where there are such: 10³ is not 103."""
    changed = text.translate(_TO_RAISED)
    return changed if set(changed) <= {*_RAISED, " "} else text


def paragraphs(body: Any) -> str:
    """Return the paragraphs of a DrawingML text, a line each."""
    lines = (_line(paragraph).strip() for paragraph in within(body, "a:p"))
    return "\n".join(line for line in lines if line)


def _line(element: Any) -> str:
    parts = []
    for item in element:
        match name(item):
            case "a:br":
                parts.append("\n")
            case "a:t":
                properties = child(element, "a:rPr")
                text = unescaped(item.text or "")
                is_raised = properties is not None and not properties.get("baseline", "0").startswith(("-", "0"))
                parts.append(raised(text) if is_raised else text)
            case "m:oMath":
                parts.append(formula(item))
            case _:
                parts.append(_line(item))
    return "".join(parts)


def graphic(element: Any, package: Package, part: str, page: int = 0) -> Iterator[Block]:
    """Yield the titles, categories, series and values of charts, and the text of SmartArt, that an element shows."""
    related = package.related(part)
    for reference in within(element, "c:chart", "dgm:relIds"):
        _, target = related.get(attribute(reference, "r:id") or attribute(reference, "r:dm"), ("", ""))
        root = package.xml(target)
        if root is not None and name(reference) == "c:chart":
            yield from _chart(root, page)
        elif root is not None:
            texts = (paragraphs(point) for point in within(root, "dgm:pt"))
            if text := "\n".join(filter(None, texts)):
                yield Block(text, 0, page)


def _chart(root: Any, page: int) -> Iterator[Block]:
    """The titles of a chart and its axes, and its series as the columns of a table."""
    for rich in within(root, "c:rich"):
        if text := paragraphs(rich):
            yield Block(text, 0, page)

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
    filled = ([row.get(place, "") for place in columns] for _, row in sorted(rows.items()))
    yield from table([list(columns.values()), *filled], page)


def _of(*wanted: str) -> Callable[[Any], list[str]]:
    return lambda element: [formula(part) if (part := child(element, name)) is not None else "" for name in wanted]


def _script(sign: str, *wanted: str) -> Callable[[Any], str]:
    return lambda element: sign.join(grouped(text) for text in _of("m:e", *wanted)(element))


def grouped(text: str) -> str:
    """Return an operand, in brackets unless it is one number or name."""
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _delimited(element: Any) -> str:
    first = child(element, "m:dPr", "m:begChr")
    last = child(element, "m:dPr", "m:endChr")
    inner = ", ".join(formula(part) for part in element if name(part) == "m:e")
    begin, end = (d if e is None else attribute(e, "m:val") for e, d in ((first, "("), (last, ")")))
    return f"{begin}{inner}{end}"


def _sum(element: Any) -> str:
    sign = child(element, "m:naryPr", "m:chr")
    low, high, of = _of("m:sub", "m:sup", "m:e")(element)
    shown = "∫" if sign is None else attribute(sign, "m:val", "∫")
    return shown + (f"_{grouped(low)}" if low else "") + (f"^{grouped(high)}" if high else "") + f" {of}"


# What a structure of a formula reads as; any other is its parts one after another.
_FORMULAS: dict[str, Callable[[Any], str]] = {
    "m:f": lambda element: "/".join(map(grouped, _of("m:num", "m:den")(element))),
    "m:sSup": _script("^", "m:sup"),
    "m:sSub": _script("_", "m:sub"),
    "m:sSubSup": lambda e: "{}_{}^{}".format(*map(grouped, _of("m:e", "m:sub", "m:sup")(e))),
    "m:rad": lambda element: "{}√{}".format(*map(grouped, _of("m:deg", "m:e")(element))),
    "m:d": _delimited,
    "m:nary": _sum,
    "m:func": lambda element: " ".join(_of("m:fName", "m:e")(element)),
    "m:mr": lambda element: ", ".join(map(formula, element)) + "; ",
}


def formula(element: Any) -> str:
    """Return a formula (OMML) as one reads it aloud: "(a+b)/2", "x^2", "∑_(i=1)^n a_i"."""
    text, before = "", ""
    for item in element:
        kind = name(item)
        made = item.text or "" if kind == "m:t" else _FORMULAS.get(kind, formula)(item)
        # A structure beside a letter is another word; runs go on.
        text = beside(text, made) if {kind, before} - {"m:r", "m:t"} else text + made
        before = kind
    return text


def beside(first: str, second: str) -> str:
    """Return two parts of a formula, apart where they would read as one word or number."""
    return f"{first} {second}" if first[-1:].isalnum() and second[:1].isalnum() else first + second
