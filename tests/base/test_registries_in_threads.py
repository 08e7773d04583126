"""A registry that many threads read first: each sees all items or the error, and none waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY

# Reads another registry first: the plug-ins are known then, as in a server that has drawn its first page.
PRELUDE = """
import importlib, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from cdp.base.registry import HOMES, Registry, registry
registry("preset").offered
"""
DECLARED = "from letters import Letter\n{before}\nITEM = Letter('{name}', 'A letter', '')\n{after}\n"
PACKAGE = """
from dataclasses import dataclass
from cdp.base.registry import Registered, Registry

@dataclass(frozen=True)
class Letter(Registered):
    pass

LETTERS = Registry("letter", Letter, "letters")
"""
TOGETHER = """
def together(n, call):
    barrier = threading.Barrier(n)

    def one(number):
        barrier.wait()
        try:
            return call(number)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(one, range(n)))
"""


def letters(folder: Path, **modules: tuple[str, str]) -> None:
    """Write a package with a registry; of each module, what it does before and after it declares its item."""
    package = folder / "letters"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    for name, (before, after) in modules.items():
        (package / f"{name}.py").write_text(DECLARED.format(name=name, before=before, after=after))


def python(folder: Path, script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}\nsys.path.insert(0, {str(folder)!r})\n{TOGETHER}\n{script}"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=60,  # one that waits for ever fails the test here
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SLOW = "import time\ntime.sleep(0.05)"


@pytest.mark.slow
def test_all_threads_see_all_items(tmp_path: Path) -> None:
    letters(tmp_path, a=(SLOW, SLOW), b=(SLOW, SLOW), c=(SLOW, SLOW))
    script = """
from letters import LETTERS
print({tuple(seen) for seen in together(8, lambda number: time.sleep(number * 0.03) or list(LETTERS))})
"""
    assert python(tmp_path, script) == "{('a', 'b', 'c')}"


@pytest.mark.slow
def test_visitors_at_the_start_of_a_server_see_all_of_each_kind(tmp_path: Path) -> None:
    script = """
seen = together(16, lambda number: (list(HOMES)[number % 8], tuple(registry(list(HOMES)[number % 8]).offered)))
wrong = [(kind, names) for kind, names in seen if names != tuple(registry(kind).offered) or not names]
print(len({kind for kind, _ in seen}), wrong)
"""
    assert python(tmp_path, script) == "8 []"


READS = "from letters import LETTERS\nseen = list(LETTERS)"


@pytest.mark.slow
def test_a_module_may_read_the_registry_while_another_thread_loads_it(tmp_path: Path) -> None:
    """One thread loads the registry and comes to m; the other imports m, which reads the registry."""
    letters(tmp_path, a=(SLOW, ""), m=(SLOW + "\n" + READS, ""), z=(SLOW, ""))
    script = """
from letters import LETTERS
calls = [lambda: list(LETTERS), lambda: importlib.import_module("letters.m").seen]
print(together(2, lambda number: calls[number]()), list(LETTERS))
"""
    assert python(tmp_path, script) == "[['a', 'm', 'z'], ['a']] ['a', 'm', 'z']"


@pytest.mark.slow
def test_two_registries_may_read_each_other(tmp_path: Path) -> None:
    """Whichever thread comes first, both end, and no half list is kept."""
    letters(tmp_path, a=(SLOW, ""), m=(SLOW + "\nfrom numbers_ import NUMBERS\nlist(NUMBERS)", ""))
    (tmp_path / "numbers_").mkdir()
    renamed = {"letters": "numbers_", "Letter": "Number", "LETTERS": "NUMBERS"}
    package = PACKAGE
    for name, new in renamed.items():
        package = package.replace(name, new)
    (tmp_path / "numbers_" / "__init__.py").write_text(package)
    reads = SLOW + "\nfrom letters import LETTERS\nlist(LETTERS)\nfrom numbers_ import Number\n"
    (tmp_path / "numbers_" / "one.py").write_text(f"{reads}ITEM = Number('one', 'One', '')\n")
    script = """
from letters import LETTERS
from numbers_ import NUMBERS
seen = together(6, lambda number: list((LETTERS, NUMBERS)[number % 2]))
print([tuple(map(tuple, seen[i::2])) for i in range(2)], list(LETTERS), list(NUMBERS))
"""
    full = "[(('a', 'm'), ('a', 'm'), ('a', 'm')), (('one',), ('one',), ('one',))] ['a', 'm'] ['one']"
    assert python(tmp_path, script) == full


@pytest.mark.slow
def test_a_load_that_fails_is_an_error_for_all_and_is_tried_again(tmp_path: Path) -> None:
    fails = (
        f"{SLOW}\nimport pathlib\nif not pathlib.Path({str(tmp_path)!r}, 'repaired').exists():\n    raise OSError('no')"
    )
    letters(tmp_path, a=(SLOW, ""), b=(fails, ""), c=(SLOW, ""))
    script = f"""
from letters import LETTERS
print(set(together(8, lambda number: time.sleep(number * 0.03) or list(LETTERS))))
open({str(tmp_path / "repaired")!r}, "w").close()
print(list(LETTERS))
"""
    assert python(tmp_path, script) == "{'OSError: no'}\n['a', 'b', 'c']"


@pytest.mark.slow
def test_a_dashboard_has_imported_what_its_pages_import_before_its_first_visitor(tmp_path: Path) -> None:
    """Python ends some imports by several threads at once with an error: only their modules' names can be tested."""
    script = """
import ast, pathlib
import app
before = set(sys.modules)
for page in pathlib.Path("pages").rglob("*.py"):
    body = [node for node in ast.parse(page.read_text()).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(body, []), str(page), "exec"), {})
    assert body
for kind in HOMES:
    registry(kind).offered
print([name for name in set(sys.modules) - before if name.startswith("cdp")])
"""
    assert python(tmp_path, script) == "[]"
