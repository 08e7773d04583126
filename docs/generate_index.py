"""Makes the index "Every file" of docs/ARCHITECTURE.md from the first paragraphs of the modules' docstrings.

    python docs/generate_index.py            # writes it into the page (make docs)

A room's headline is the first paragraph of its ``__init__.py``; the rooms stand in the order of the page's table. The
index of ``data/`` below it, like the rest of the page, is written by hand. A test fails when the index is stale.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "cdp"
TARGET = REPOSITORY / "docs" / "ARCHITECTURE.md"

INDEX = re.compile(r"(?<=<!-- made by make docs -->\n```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
WRAPPED = textwrap.TextWrapper(width=120, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False)


def summary(module: Path) -> str:
    """Return the first paragraph of a module's docstring as one line, code in single backticks."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""

    return " ".join(docstring.partition("\n\n")[0].replace("``", "`").split())


def rooms(page: str) -> list[Path]:
    """Return the rooms of ``cdp/`` in the order in which the page's table names them; others come last."""
    table = page.partition("## Rooms")[2].partition("\n\nA room imports")[0]
    named = [PACKAGE / name for name in re.findall(r"`(\w+)`", table)]
    folders = sorted(module.parent for module in PACKAGE.glob("*/__init__.py"))

    return sorted(folders, key=lambda room: named.index(room) if room in named else len(named))


def lines_of(room: Path, modules: list[Path]) -> Iterator[str]:
    """Yield the lines of a room: its headline, then a file each; a folder stands for its ``__init__.py``."""
    headline = room / "__init__.py"
    yield f"{room.relative_to(REPOSITORY)}/  {summary(headline)}"

    for module in modules:
        name = str(module.relative_to(room)).removesuffix("__init__.py")
        if module != headline:
            yield f"  {name}: {summary(module)}"


def index(page: str) -> str:
    """Return the index of every module below ``cdp/``."""
    sections = [lines_of(PACKAGE, sorted(PACKAGE.glob("*.py")))]
    sections += [lines_of(room, sorted(room.rglob("*.py"))) for room in rooms(page)]

    return "\n\n".join("\n".join(map(WRAPPED.fill, section)) for section in sections) + "\n"


def build() -> str:
    """Return the whole page with its index made from the code."""
    page = TARGET.read_text(encoding="utf-8")
    assert INDEX.search(page), "docs/ARCHITECTURE.md has no place for its index"

    return INDEX.sub(lambda _: index(page), page, count=1)


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
