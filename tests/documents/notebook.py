"""Runs the cells of a notebook as a kernel does, with nothing but Python, and compares what they show.

    python notebook.py NOTEBOOK             # exit code 1 where a cell fails or shows something else than is stored
    python notebook.py NOTEBOOK --write     # store what they show, of cells that have an output already

The value of a cell's last expression is what it shows, as text; its HTML is asked for, too. It stands alone, so that an
environment with nothing but the wheel can run it.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any


def shown(source: str, names: dict[str, Any], where: str) -> str:
    """Run a cell; return its last expression's value as text, "" where it ends with a statement or is None."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), where, "exec"), names)
    value = eval(compile(ast.Expression(last.value), where, "eval"), names) if isinstance(last, ast.Expr) else None
    html = getattr(value, "_repr_html_", None)
    if html is not None:
        assert "<" in (html() or "<"), where
    return "" if value is None else repr(value)


def run(path: Path, *, write: bool = False) -> list[str]:
    """Run all cells in one namespace; return what differs from the stored outputs, a text each."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        text = shown("".join(cell["source"]), names, f"{path.name}, cell {number}")
        stored = ["".join(output["data"]["text/plain"]) for output in cell["outputs"]]
        if stored and stored != [text]:
            wrong.append(f"cell {number} shows\n{text}\nnot\n{stored[0]}")
            cell["outputs"][0]["data"]["text/plain"] = text.splitlines(keepends=True)
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return wrong


if __name__ == "__main__":
    differences = run(Path(sys.argv[1]), write="--write" in sys.argv)
    print(*differences, sep="\n\n")
    raise SystemExit(bool(differences) and "--write" not in sys.argv)
