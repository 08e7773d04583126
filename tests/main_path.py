"""How much of the code the main path enters: ``python -m tests.main_path``.

Documents are added, queries written by templates, a retriever trained and evaluated beside the untrained one, and both
compared: six commands, with the supervisors and workers that they start. A change has to be found among the functions
that these enter, so fewer are better.

Each process counts every function of ``cdp/`` that it calls: methods, properties, functions within functions, what
Python calls itself (``__init__``, ``__enter__``), and declarations that run at import (``option``). Not counted are
lambdas, comprehensions, the bodies of modules and classes, and what dataclasses generate. A file counts with its first
function. The depth is that of frames of the counted functions within one another; frames of libraries between them
count nothing. A reader skips an accessor of one line, so the functions with more than one statement stand beside all.

Measured first (5c1f1566): 129 files in 19 rooms, 915 functions (674 of more than one statement), 20 deep.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.folders import write_benchmark
from tests.support import REPOSITORY

# Python imports this module at its start, in each process that has its folder on PYTHONPATH.
TRACER = """
import atexit, json, os, sys, threading

ROOT, OUT = os.environ["CDP_TRACED_ROOT"], os.environ["CDP_TRACED_OUT"]
OPTIMISED = 1  # set for functions, not for the bodies of classes
seen, state = {}, threading.local()

def follow(frame, event, argument):
    code = frame.f_code
    if event not in ("call", "return") or not code.co_filename.startswith(ROOT):
        return
    if code.co_name[0] == "<" or not code.co_flags & OPTIMISED:
        return
    depth = getattr(state, "depth", 0) + (1 if event == "call" else -1)
    state.depth = max(0, depth)
    if event == "call":
        key = code.co_filename[len(ROOT):] + ":" + code.co_qualname
        seen[key] = max(seen.get(key, 0), depth)

def write():
    sys.setprofile(None)
    with open(os.path.join(OUT, f"{os.getpid()}.json"), "w") as file:
        json.dump(seen, file)

atexit.register(write)
threading.setprofile(follow)
sys.setprofile(follow)
"""


@dataclass(frozen=True)
class Entered:
    """What the main path entered: functions with their deepest call, by ``file:function``."""

    functions: dict[str, int]

    @property
    def files(self) -> set[str]:
        return {name.partition(":")[0] for name in self.functions}

    @property
    def rooms(self) -> set[str]:
        return {Path(file).parts[0] for file in self.files}

    @property
    def longer(self) -> set[str]:
        """The functions with more than one statement, the docstring aside."""
        return {name for file in self.files for name in _longer_in(file)} & self.functions.keys()

    @property
    def deepest(self) -> str:
        return max(self.functions, key=lambda name: self.functions[name])

    def __str__(self) -> str:
        return (
            f"{len(self.files)} files in {len(self.rooms)} rooms, {len(self.functions)} functions "
            f"({len(self.longer)} of more than one statement), "
            f"stacks up to {self.functions[self.deepest]} deep ({self.deepest})"
        )


def _longer_in(file: str) -> Iterator[str]:
    """Yield ``file:function`` for each function of a file of ``cdp/`` that has more than one statement."""
    waiting: list[tuple[ast.AST, str]] = [(ast.parse((REPOSITORY / "cdp" / file).read_text(encoding="utf-8")), "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            within = prefix
            if isinstance(child, ast.ClassDef):
                within = f"{prefix}{child.name}."
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                within = f"{prefix}{child.name}.<locals>."
                n_statements = sum(isinstance(part, ast.stmt) for part in ast.walk(child)) - 1
                if n_statements - (ast.get_docstring(child) is not None) > 1:
                    yield f"{file}:{prefix}{child.name}"
            waiting.append((child, within))


def measured(folder: Path) -> Entered:
    """Run the main path in an empty folder."""
    (folder / "tracer").mkdir()
    (folder / "tracer" / "sitecustomize.py").write_text(TRACER, encoding="utf-8")
    (folder / "traces").mkdir()
    documents = folder / "documents.jsonl"
    texts = ("glacier", "volcano", "harbour", "orchard", "telescope", "bakery", "railway", "lighthouse")
    lines = [{"_id": f"d{i}", "title": text, "text": f"All about the {text}."} for i, text in enumerate(texts)]
    documents.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    benchmark = write_benchmark(folder / "judged")

    environment = {
        **os.environ,
        "CDP_WORKSPACE": str(folder / "workspace"),
        "CDP_TRACED_ROOT": f"{REPOSITORY / 'cdp'}{os.sep}",
        "CDP_TRACED_OUT": str(folder / "traces"),
        "PYTHONPATH": os.pathsep.join([str(folder / "tracer"), str(REPOSITORY)]),
    }

    def cdp(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "cdp", *words],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"cdp {' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    cdp("corpus", "add", str(documents), "--name", "texts")
    written = json.loads(cdp("queries", "generate", "--corpus", "texts", "--per-doc", "2", "--generator", "template",
                             "--wait", "--json"))  # fmt: skip
    trained = json.loads(cdp("train", written["query_set"], "--retriever", "static-minilm", "--set", "epochs=1",
                             "--set", "batch_size=4", "--wait", "--json"))  # fmt: skip
    for retriever in ("static-minilm", trained["id"]):
        cdp("evaluate", retriever, "--benchmark", str(benchmark), "--wait")
    cdp("results", "compare", "--baseline", "static-minilm")

    functions: dict[str, int] = {}
    for trace in (folder / "traces").glob("*.json"):
        for name, depth in json.loads(trace.read_text(encoding="utf-8")).items():
            functions[name] = max(depth, functions.get(name, 0))
    return Entered(functions)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(measured(Path(temporary)))
