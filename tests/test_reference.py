"""docs/REFERENCE.md is made from the code and must not be stale; what every document names must be there."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY

DOCUMENTS = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "data").glob("*/README.md")]
# What documents name and only a run writes.
MADE_LATER = ("data/workspace",)

PATH = re.compile(r"(?<![\w./-])((?:cdp|data|docs|pages|perf|tests)/[\w./-]*[\w/])(?:::(\w+))?")
COMMAND = re.compile(r"python -m ((?:cdp|perf|tests)[\w.]*)")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([\w-]+))?\)")


def test_the_reference_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "docs" / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (REPOSITORY / "docs" / "REFERENCE.md").read_text(encoding="utf-8")
    assert written == module.build(), "docs/REFERENCE.md is stale: run make docs"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_paths_commands_and_links_of_a_document_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    dead = []
    for path, test in PATH.findall(text):
        file = REPOSITORY / path
        if not (file.exists() or path.startswith(MADE_LATER)) or (test and f"def {test}(" not in file.read_text()):
            dead.append(f"{path}::{test}" if test else path)
    dead += [f"python -m {name}" for name in COMMAND.findall(text) if module_file(name) is None]
    for link, anchor in LINK.findall(text):
        target = document.parent / link if link else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(f"{link}#{anchor}")
    assert dead == []


def test_every_module_and_function_that_methods_names_exists() -> None:
    text = (REPOSITORY / "docs" / "METHODS.md").read_text(encoding="utf-8")
    names = re.findall(r"`(cdp\.[\w.]+)`", text)
    assert len(names) > 50
    assert [name for name in names if not is_defined(name)] == []


def test_every_module_that_the_code_names_in_its_comments_exists() -> None:
    dead = []
    for path in (REPOSITORY / "cdp").rglob("*.py"):
        for name in re.findall(r"``(cdp(?:\.\w+)+)``", path.read_text(encoding="utf-8")):
            if not is_defined(name):
                dead.append(f"{path.relative_to(REPOSITORY)}: {name}")
    assert dead == []


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def module_file(name: str) -> Path | None:
    path = REPOSITORY.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__main__.py", path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def is_defined(name: str) -> bool:
    """Whether a dotted name is a module, or something that its longest module defines. Read, not imported: no torch."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = REPOSITORY.joinpath(*parts[:end])
        file = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
        if file.is_file():
            return end == len(parts) or ".".join(parts[end:]) in names_of(file)
    return False


@functools.cache
def names_of(file: Path) -> frozenset[str]:
    return frozenset(_names(ast.parse(file.read_text(encoding="utf-8")).body, ""))


def _names(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _names(node.body, f"{prefix}{node.name}.")
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
        if isinstance(node, ast.ImportFrom):
            yield from (prefix + (alias.asname or alias.name) for alias in node.names)
