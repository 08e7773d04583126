"""Web pages by trafilatura, and EPUB: headings, paragraphs, lists and tables."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.passages import table
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format


def html_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Headings, paragraphs, lists and tables of a web page's main content by trafilatura, without navigation."""
    import trafilatura

    title, blocks = "", list[Block]()
    # Where it finds less, trafilatura gives all text of the page as one block, menus too.
    for least in (250, 100):
        trafilatura.settings.DEFAULT_CONFIG["DEFAULT"]["MIN_EXTRACTED_SIZE"] = str(least)
        found: Any = trafilatura.bare_extraction(
            path.read_bytes(), include_comments=False, favor_recall=True, with_metadata=True, prune_xpath=UNWANTED
        )
        elements = list(_page_elements(found.body)) if found is not None and found.body is not None else []
        if elements and (not blocks or sum(len(block.text) for block in elements) < 250):
            title, blocks = found.title or "", elements
        if len(blocks) > 1:
            break
    if not blocks:
        raise RefusedValueError("empty text", "no text was found in the page")
    # The only h1, else what the page declares, without the name of the site.
    tops = [block.text for block in blocks if block.level == 1]
    report.title = tops[0] if len(tops) == 1 else " ".join(title.split()).rstrip(" ¶")
    if report.title and not tops:
        yield Block(report.title, 1)
    yield from blocks


# Navigation, footers, a line with the copyright, and notices on cookies. The frame of a page and a chapter on cookies
# are called so too: nothing is removed that holds or lies in the main part, or is most of the text.
UNWANTED = [
    "//nav | //footer | //*[not(*) and starts-with(normalize-space(), '©') and string-length() < 150]",
    *(
        "//*[self::div or self::section or self::aside or self::dialog]"
        f"[contains(translate(concat(@id, ' ', @class), 'CDEGIKNOPRSTU', 'cdegiknoprstu'), '{word}')]"
        "[not(.//h1 or .//main or .//article or ancestor::main or ancestor::article or ancestor::*[@role='main'])]"
        "[2 * string-length() < string-length(//body)]"
        for word in ("cookie", "consent", "gdpr", "onetrust")
    ),
]


def _page_elements(body: Any) -> Iterator[Block]:
    for element in body:
        if element.tag == "table":
            yield from table([["".join(cell.itertext()) for cell in row.iter("cell")] for row in element.iter("row")])
            continue
        if element.tag == "list":
            text = "\n".join(" ".join("".join(item.itertext()).split()) for item in element.iter("item"))
        else:
            text = " ".join("".join(element.itertext()).split())
        level = int(element.get("rend", "h2")[1:]) if element.tag == "head" else 0
        if text := text.strip().rstrip(" ¶"):
            yield Block(text, level)


def epub_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """The chapters of an EPUB in the order of its spine."""
    from lxml import etree, html

    # Entities of a book's own XML are not resolved: they could name local files.
    parser = etree.XMLParser(resolve_entities=False, no_network=True)

    def xml(book: zipfile.ZipFile, name: str) -> Any:
        return etree.fromstring(book.read(name), parser)

    with zipfile.ZipFile(path) as book:
        package = xml(book, "META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        opf = xml(book, package)
        items = {item.get("id"): item.get("href") for item in opf.iterfind(".//{*}manifest/{*}item")}
        title = opf.findtext(".//{http://purl.org/dc/elements/1.1/}title")
        if title and title.strip():
            yield Block(" ".join(title.split()), 1)
        for entry in opf.iterfind(".//{*}spine/{*}itemref"):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(package), items[entry.get("idref")]))
            name = name if name in book.NameToInfo else unquote(name)
            chapter = html.fromstring(book.read(name), parser=html.HTMLParser(no_network=True))
            for element in chapter.iter("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "td", "th", "pre", "blockquote"):
                if element.find(".//p") is not None:  # its paragraphs come by themselves
                    continue
                if text := " ".join(element.text_content().split()):
                    yield Block(text, min(6, int(element.tag[1]) + 1) if element.tag[0] == "h" else 0)


HTML = office_format("html", "Web page", "web pages, cut into passages", (".html", ".htm", ".xhtml"), html_blocks, 65)
EPUB = office_format("epub", "EPUB", "EPUB, cut into passages", (".epub",), epub_blocks, 66, zipped=True)
