"""Builds the documentation as a site, build/site, and checks every link of it.

    python docs/build_site.py            # make site

Zensical ends at a page or an anchor that is not there. What it does not look at is looked at here, in the HTML that it
wrote: pictures, files beside the pages, pages that no menu leads to, and whether anything is fetched from elsewhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REPOSITORY = Path(__file__).resolve().parent.parent
SITE = REPOSITORY / "build" / "site"
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}
OUTSIDE = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//")
"""A style sheet that fetches something from another server."""


@dataclass
class Page(HTMLParser):
    """The anchors and links of one page."""

    anchors: set[str] = field(default_factory=set)
    links: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.anchors |= {name for key in ("id", "name") if (name := values.get(key))}
        if target := values.get(LINKS.get(tag, "")):
            self.links.append((tag, target))


def check(site: Path) -> tuple[int, int, list[str]]:
    """How many pages and links a built site has, and what is wrong with them."""
    pages: dict[Path, Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    wrong, links, reached = [], 0, {site / "index.html", site / "404.html"}
    for path, page in pages.items():
        for tag, target in page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if tag != "a":
                    wrong.append(f"{path.name}: {tag} is fetched from {parts.netloc}")
                continue
            links += 1
            # The page that stands in for any missing one is served from every folder, so its links begin at the top.
            start = site if parts.path.startswith("/") else path.parent
            file = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if file.is_dir():
                file = file / "index.html"
            if file != path:
                reached.add(file)
            anchor = unquote(parts.fragment)
            if not file.is_file() or (anchor and file in pages and anchor not in pages[file].anchors):
                wrong.append(f"{path.name}: there is no {target}")
    wrong += [f"{path.name}: no link leads to it" for path in pages if path not in reached]
    wrong += [f"{path.name} fetches from elsewhere" for path in site.rglob("*.css") if OUTSIDE.search(path.read_text())]
    return len(pages), links, wrong


def build() -> int:
    """Build and check; the exit code."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=REPOSITORY)
    if done.returncode:
        return done.returncode
    pages, links, wrong = check(SITE)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{pages} pages, {links} links checked, {time.monotonic() - began:.1f} s: build/site/index.html")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(build())
