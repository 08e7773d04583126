"""Web pages and EPUB: headings, paragraphs, lists and tables by the structure of their markup."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report, markup, walk
from cdp.corpus.readers.files import office_format

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
        root = markup.tree_of(data)
        body = root.find("body")
        report.inside, report.removed, report.outside = {}, {}, Counter()
        report.count(walk.all_text(body))
        markup.prune(body, report)
        if framed:
            markup.without_frame(body, report)
        if found := walk.blocks(body, report):
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
    with zipfile.ZipFile(path) as book:
        package = _xml(book, "META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        opf = _xml(book, package)
        items = {item.get("id"): item for item in opf.iterfind(".//{*}manifest/{*}item")}
        title = " ".join((opf.findtext(".//{http://purl.org/dc/elements/1.1/}title") or "").split())
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
                yield from _chapter(book, posixpath.join(posixpath.dirname(package), href), report)
            except (KeyError, ValueError, SyntaxError, OSError, RuntimeError, zipfile.BadZipFile, EOFError) as error:
                fault = "it is missing" if isinstance(error, KeyError) else "it is damaged"
                unread.append(f"{href} ({fault})")
        if unread:
            shown = ", ".join(unread[:NAMED_CHAPTERS]) + (" …" if len(unread) > NAMED_CHAPTERS else "")
            report.notes.append(f"{len(unread):,} of its chapters could not be read: {shown}")


def _xml(book: zipfile.ZipFile, name: str) -> Any:
    from lxml import etree

    # Entities of a book's own XML are not resolved: they could name local files.
    return etree.fromstring(book.read(name), etree.XMLParser(resolve_entities=False, no_network=True))


def _chapter(book: zipfile.ZipFile, name: str, report: Report) -> list[Block]:
    name = posixpath.normpath(name)
    data = book.read(name if name in book.NameToInfo else unquote(name))
    root = markup.tree_of(data, strict=True)
    body = root if root.tag == "body" else root.find(".//body")
    if body is None:  # a drawing as a page of its own
        body = root
    report.count(walk.all_text(body))
    markup.prune(body, report)
    return walk.blocks(body, report, deeper=1)


HTML = office_format("html", "Web page", "web pages, cut into passages", (".html", ".htm", ".xhtml"), html_blocks, 65)
EPUB = office_format("epub", "EPUB", "EPUB, cut into passages", (".epub",), epub_blocks, 66, zipped=True)
