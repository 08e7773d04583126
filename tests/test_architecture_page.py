"""docs/ARCHITECTURE.md: its index "Every file" names every module, and no path of the page leads nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cdp.base.registry import HOMES
from tests.support import REPOSITORY

PAGE = (REPOSITORY / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
INDEX = PAGE.partition("## Every file")[2].partition("```text\n")[2].partition("\n```")[0]

# Folders of one item a file: the folder's line says what an item is.
REGISTRIES = {REPOSITORY / home.partition(":")[0].replace(".", "/") for home in HOMES.values()}

PATH = re.compile(r"(?:cdp|pages|data|docs|tests|perf|reproduction|\.streamlit)/[\w./<>-]*\w/?")
DATA = REPOSITORY / "data"


def entries() -> Iterator[tuple[Path, Path, str]]:
    """Yield each line of the index: its room, the file or folder that it is about, and what it says."""
    room = REPOSITORY
    for line in re.sub(r"\n {6}", " ", INDEX).splitlines():
        if line and not line.startswith(" "):
            room = REPOSITORY / line.split()[0]
        elif line:
            name, _, words = line.strip().partition(": ")
            yield room, room / name, words


def only_hands_on(path: Path) -> bool:
    """Return True for a package's ``__init__.py`` that defines nothing itself."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return path.name == "__init__.py" and not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body)


def test_every_module_has_a_line_or_its_registry_has_one() -> None:
    lines = {path for _, path, _ in entries()}
    missing = [
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "cdp").rglob("*.py")
        if path not in lines and path.parent not in lines & REGISTRIES and not only_hands_on(path)
    ]
    assert missing == []


def test_every_folder_of_data_is_there_with_the_tables_and_word_lists() -> None:
    said = [(path, words) for room, path, words in entries() if room == DATA]
    folders = {path.relative_to(DATA).parts[0] for path, _ in said}
    assert {path.name for path in DATA.iterdir() if path.name != "workspace"} == folders
    files = [path for name in ("words", "benchmarks", "prices", "evidence") for path in (DATA / name).glob("*.[tcj]*")]
    assert [path.name for path in files if not any(path == at or path.name in words for at, words in said)] == []


def test_every_line_says_something() -> None:
    assert [str(path) for _, path, words in entries() if len(words.split()) < 2 and path.suffix] == []


def test_every_path_of_the_page_exists() -> None:
    wrong = [str(path) for _, path, _ in entries() if not path.exists()]
    for room, path, words in entries():  # of other files a line may name modules, and in data/ tables
        for name in re.findall(r"[\w/]+\.(?:py|csv|toml|yaml)\b" if room == DATA else r"[\w/]+\.py\b", words):
            places = (path, path.parent, room, REPOSITORY)
            wrong += [] if any((place / name).exists() for place in places) else [f"{path.name}: {name}"]
    names = [name for name in PATH.findall(PAGE) if "<" not in name and not name.startswith("data/workspace")]
    assert len(names) > 60
    assert wrong + [name for name in names if not (REPOSITORY / name).exists()] == []
