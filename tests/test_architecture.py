"""The house's rules, held by reading the code: who imports whom, and what importing the app may load."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY

CDP = REPOSITORY / "cdp"

BASE = {
    "output",
    "markup",
    "scratch",
    "errors",
    "records",
    "settings",
    "config",
    "workspace",
    "worker",
    "failures",
    "locks",
    "staging",
    "paths",
    "names",
    "versions",
    "archives",
    "embedded",
    "__init__",
}
LAYERS: dict[str, set[str]] = {
    "statistics": {"errors"},
    "corpus": BASE,
    "complexity": BASE | {"statistics"},
    "synthesis": BASE | {"corpus", "complexity", "training", "evaluation", "metrics"},
    "metrics": BASE | {"statistics", "corpus", "complexity", "training"},
    "training": BASE | {"corpus", "complexity", "evaluation"},
    "evaluation": BASE | {"statistics", "corpus", "complexity", "training"},
    "tuning": BASE | {"corpus", "complexity", "synthesis", "metrics"},
    "principle": BASE | {"statistics", "corpus", "complexity"},
    "studies": BASE | {"statistics", "corpus", "complexity", "synthesis", "training", "evaluation", "principle"},
    "jobs": BASE,
    "catalog": BASE,
}
ROOMS = set(LAYERS)
LAYERS["services"] = BASE | ROOMS
LAYERS["charts"] = BASE | {"services", "principle", "studies"}
LAYERS["ui"] = BASE | {"services", "charts"}
LAYERS["cli"] = BASE | {"services", "charts"}
LAYERS["__main__"] = {"cli"}

HEAVY = {"torch", "transformers", "sentence_transformers"}
ALLOWED: dict[str, set[str]] = {
    "streamlit": {"app", "pages", "ui"},
    "duckdb": {"catalog"},
    **{name: {"metrics", "training", "evaluation", "synthesis", "studies"} for name in HEAVY},
}


def sources() -> list[Path]:
    return [*CDP.rglob("*.py"), REPOSITORY / "app.py", *(REPOSITORY / "pages").rglob("*.py")]


def room_of(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return parts[1] if parts[0] == "cdp" else parts[0]


@functools.cache
def imports_of(path: Path) -> list[tuple[str, int]]:
    """Every module imported anywhere in a file, with its line."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return found


def test_rooms_import_only_what_lies_below_them() -> None:
    wrong = []
    for path in CDP.rglob("*.py"):
        room = room_of(path)
        if room in BASE:
            allowed = BASE
        else:
            assert room in LAYERS, f"{room} is a room that ARCHITECTURE.md and this test do not know"
            allowed = LAYERS[room] | {room}
        for module, line in imports_of(path):
            parts = module.split(".")
            if parts[0] == "cdp" and len(parts) > 1 and parts[1] not in allowed | {"__version__"}:
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} imports {module}")
    assert wrong == []


def test_libraries_stay_in_their_rooms() -> None:
    wrong = []
    for path in sources():
        for module, line in imports_of(path):
            library = module.split(".")[0]
            if library in ALLOWED and room_of(path) not in ALLOWED[library]:
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} imports {library}")
    assert wrong == []


def test_pages_use_services_and_not_the_rooms_behind_them() -> None:
    allowed = {"services", "charts", "ui", "errors", "config", "records", "workspace"}
    wrong = []
    for path in [REPOSITORY / "app.py", *(REPOSITORY / "pages").rglob("*.py")]:
        for module, line in imports_of(path):
            parts = module.split(".")
            if parts[0] == "cdp" and len(parts) > 1 and parts[1] not in allowed:
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} imports {module}")
    assert wrong == []


def test_no_page_lies_directly_in_pages() -> None:
    assert [p.name for p in (REPOSITORY / "pages").glob("*.py")] == []


@pytest.mark.parametrize("module", ["app", "cdp.services", "cdp.cli"])
def test_importing_the_app_loads_no_model_library(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set(sys.modules) & {HEAVY!r}))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"
