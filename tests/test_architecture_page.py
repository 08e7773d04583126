"""docs/ARCHITECTURE.md: its index is the modules' own words, and no path of the page leads nowhere."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tests.support import REPOSITORY

PAGE = (REPOSITORY / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")

PATH = re.compile(r"(?:cdp|pages|data|docs|tests|perf|reproduction|\.streamlit)/[\w./<>-]*\w/?")
DATA = REPOSITORY / "data"


def generator() -> ModuleType:
    """Return docs/generate_index.py as a module."""
    spec = importlib.util.spec_from_file_location("index", REPOSITORY / "docs" / "generate_index.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data() -> Iterator[tuple[Path, str]]:
    """Yield each line on ``data/``, which is written by hand: its file or folder, and what the line says."""
    block = PAGE.partition("```text\ndata/\n")[2].partition("\n```")[0]
    for line in re.sub(r"\n {6}", " ", block).splitlines():
        name, _, words = line.strip().partition(": ")
        yield DATA / name, words


def test_the_index_is_up_to_date() -> None:
    assert generator().build() == PAGE, "the index of docs/ARCHITECTURE.md is stale: run make docs"


def test_every_module_says_in_two_lines_what_it_is_asked_for() -> None:
    summary = generator().summary
    words = {str(path.relative_to(REPOSITORY)): summary(path) for path in (REPOSITORY / "cdp").rglob("*.py")}

    assert {path: said for path, said in words.items() if len(said.split()) < 3 or len(said) > 240} == {}


def test_every_folder_of_data_is_there_with_the_tables_and_word_lists() -> None:
    said = list(data())
    folders = {path.relative_to(DATA).parts[0] for path, _ in said}
    assert {path.name for path in DATA.iterdir() if path.name != "workspace"} == folders
    files = [path for name in ("words", "benchmarks", "prices", "evidence") for path in (DATA / name).glob("*.[tcj]*")]
    assert [path.name for path in files if not any(path == at or path.name in words for at, words in said)] == []


def test_every_path_of_the_page_exists() -> None:
    wrong = [str(path) for path, _ in data() if not path.exists()]
    for path, words in data():  # of other files a line may name tables
        for name in re.findall(r"[\w/]+\.(?:py|csv|toml|yaml)\b", words):
            places = (path, path.parent, DATA)
            wrong += [] if any((place / name).exists() for place in places) else [f"{path.name}: {name}"]

    names = [name for name in PATH.findall(PAGE) if "<" not in name and not name.startswith("data/workspace")]
    assert len(names) > 60
    assert wrong + [name for name in names if not (REPOSITORY / name).exists()] == []
