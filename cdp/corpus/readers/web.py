"""Web pages and EPUB by the structure of their markup: blocks in reading order, and what is left out, by kind."""

from __future__ import annotations

import codecs
import html
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cdp.base.errors import some
from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.packages import Package, declared_title
from cdp.corpus.readers.walk import BLOCKS, all_text, blocks, outermost
from cdp.corpus.sources import likely_encoding

_DECLARED = re.compile(rb"""^[^>]*?encoding\s*=\s*["']([\w.-]+)|<meta[^>]+charset\s*=\s*["']?([\w.-]+)""", re.I)
# An XML parser knows none of HTML's names of characters; those of XML stay as they are.
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z][A-Za-z0-9]*;")
HEAD_BYTES = 4_096

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
BESIDE = "beside the main part"


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


def _remove(element: Any, kind: str, report: Report) -> None:
    """Empty an element of its tree; the text behind it stays."""
    if (text := all_text(element)).strip() and kind != SCRIPTS:
        report.remove(text, kind)
    element[:] = []
    element.text = None


def prune(root: Any, report: Report) -> None:
    """Take out what is hidden, deleted or no text."""
    for element, kind in outermost(root, _unseen):
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
    # Pandoc hides from screen readers the caption that is also its picture's description: on the page it is seen.
    unheard = attributes.get("aria-hidden") == "true" and tag != "figcaption"
    if hidden or unheard or _HIDDEN_STYLE.search(attributes.get("style", "")):
        return "hidden text"
    names = attributes.get("class", "").split()
    if not _HIDDEN_NAMES.isdisjoint(names):
        return "hidden text"
    role = attributes.get("role", "")
    if "headerlink" in names or role == "doc-backlink":
        return "links to headings"
    kind = attributes.get("{http://www.idpf.org/2007/ops}type", attributes.get("epub:type", ""))
    if role == "doc-noteref" or kind == "noteref":
        element.tag = "sup"  # some are raised by their style alone
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
        if 2 * sizes[element] > sizes[body] or next(element.iter("main", "article", "h1"), None) is not None:
            return ""
        inside = ("main", "article", "section") if element.tag in _FRAMES else ("main", "article")
        return "" if next(element.iterancestors(*inside), None) is not None else kind

    for element, kind in outermost(body, frame):
        _remove(element, kind, report)

    # What the page calls its main part is that, unless most of the text stands elsewhere.
    sizes = _sizes(body)
    named = [body.findall(f".//{path}") for path in ("main", "*[@role='main']", "article")]
    main = next((found[0] for found in named if len(found) == 1 and 2 * sizes[found[0]] >= sizes[body]), body)
    while main is not body:
        for beside in [*main.itersiblings(), *main.itersiblings(preceding=True)]:
            if beside.tag != "h1" and next(beside.iter("h1"), None) is None:
                _remove(beside, BESIDE, report)
        main = main.getparent()


def _frame(element: Any) -> str:
    tag, attributes = element.tag, element.attrib
    if tag in _FRAMES:
        return _FRAMES[tag]
    text = (element.text or "").strip()
    if tag in BLOCKS and not len(element) and text.startswith("©") and len(text) < LONGEST_COPYRIGHT:
        return "page footers"
    if tag not in ("div", "section", "ul", "ol", "form", "table", "td", "p", "span"):
        return ""

    words = _NAME_WORD.findall(f"{attributes.get('id', '')} {attributes.get('class', '')}")
    named = (_FRAME_WORDS.get(word.lower(), "") for word in words)
    return _FRAME_ROLES.get(attributes.get("role", "")) or next(filter(None, named), "")


def _sizes(root: Any) -> dict[Any, int]:
    """{element: its characters}, spaces left aside."""
    from lxml import etree

    sizes: dict[Any, int] = {}
    for _, element in etree.iterwalk(root, events=("end",)):
        texts = [element.text, *(child.tail for child in element)]
        own = sum(len("".join(text.split())) for text in texts if text)
        sizes[element] = own + sum(sizes[child] for child in element)
    return sizes


# Between the title of a page and the name of its site.
_SITE = re.compile(r"\s+[|–—·•»:-]\s+")
# What writers of books fill in where they are told no title.
_NO_TITLE = ("unknown title", "unknown", "untitled")
# Chapters without text that are named.
NAMED_CHAPTERS = 5


def html_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Headings, paragraphs, lists and tables of a web page, without menus, notices and what is hidden."""
    data = path.read_bytes()
    found: list[Block] = []
    for framed in (True, False):  # a page that is all menu, as a list of contents, is read whole
        root = tree_of(data)
        body = root.find("body")
        report.inside, report.removed, report.outside = {}, {}, Counter()
        report.count(all_text(body))
        prune(body, report)
        if framed:
            without_frame(body, report)
        if found := blocks(body, report):
            break
    if not found:
        raise RefusedValueError("empty text", "no text was found in the page")

    # The only h1, else what the page declares.
    tops = [block.text for block in found if block.level == 1]
    report.title = tops[0] if len(tops) == 1 else _declared_title(root)
    if report.title and not tops:
        yield Block(report.title, 1)
    yield from found


def _declared_title(root: Any) -> str:
    """The title in the head of a page, without the name of the site."""
    for name in ("og:title", "dc.title"):
        for meta in root.iterfind("head/meta"):
            if (meta.get("property") or meta.get("name") or "").lower() == name and meta.get("content"):
                return " ".join(meta.get("content").split())
    return _SITE.split(" ".join((root.findtext("head/title") or "").split()), maxsplit=1)[0]


def epub_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """The chapters of an EPUB in the order of its spine. One that cannot be read is named."""
    book = Package(path)
    described = book.xml("META-INF/container.xml").find(".//{*}rootfile").get("full-path")
    opf = book.xml(described)
    items = {item.get("id"): item for item in opf.iterfind(".//{*}manifest/{*}item")}
    title = declared_title(opf)
    if title and title.lower() not in _NO_TITLE:
        report.title = title
        yield Block(title, 1)

    unread = []
    for entry in opf.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(entry.get("idref"))
        if item is not None and "nav" in (item.get("properties") or "").split():
            continue

        href = item.get("href") if item is not None else entry.get("idref")
        try:
            yield from _chapter(book, posixpath.join(posixpath.dirname(described), href), report)
        except (KeyError, ValueError, SyntaxError, OSError, RuntimeError, zipfile.BadZipFile, EOFError) as error:
            fault = "it is missing" if isinstance(error, KeyError) else "it is damaged"
            unread.append(f"{href} ({fault})")

    if unread:
        report.notes.append(f"{len(unread):,} of its chapters could not be read: {some(unread, NAMED_CHAPTERS)}")


def _chapter(book: Package, name: str, report: Report) -> list[Block]:
    name = posixpath.normpath(name)
    with book.opened(name if name in book.names else unquote(name)) as stream:
        root = tree_of(stream.read(), strict=True)
    body = root if root.tag == "body" else root.find(".//body")
    if body is None:  # a drawing as a page of its own
        body = root
    report.count(all_text(body))
    prune(body, report)
    return blocks(body, report, deeper=1)


HTML = office_format("html", "Web page", "web pages, cut into passages", (".html", ".htm", ".xhtml"), html_blocks, 65)
EPUB = office_format("epub", "EPUB", "EPUB, cut into passages", (".epub",), epub_blocks, 66, zipped=True)
