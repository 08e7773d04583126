"""How much the code breathes: functions without a blank line, comprehensions and conditional expressions.

    python -m tests.air [FOLDER]

Prints both figures for each room and the twenty functions that need a pause most. A measure for who edits, not a check:
nothing in `make test` counts. A function of 15 lines or more (signature and body, its docstring aside) counts as
without air where its body holds no blank line; comprehensions, generator expressions and conditional expressions are
counted per 100 statements.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

LONG = 15
WORST = 20

DENSE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)


@dataclass
class Room:
    """The counts of one folder."""

    long: int = 0
    airless: int = 0
    statements: int = 0
    dense: int = 0
    functions: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        share = 100 * self.airless / max(self.long, 1)
        density = 100 * self.dense / max(self.statements, 1)
        airless = f"{share:5.1f}% of {self.long:5d} longer functions"

        return f"{airless}, {density:5.1f} per 100 of {self.statements:6d} statements"


def measure(folder: Path) -> dict[str, Room]:
    """The counts per room below ``folder``, and of all of it under the name ``all``."""
    rooms: dict[str, Room] = defaultdict(Room)

    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        parts = path.relative_to(folder).parts
        room = parts[0] if len(parts) > 1 else "(top)"

        for node in ast.walk(ast.parse(source)):
            for into in (rooms[room], rooms["all"]):
                into.statements += isinstance(node, ast.stmt)
                into.dense += isinstance(node, DENSE)

            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                _count(node, lines, str(path), (rooms[room], rooms["all"]))

    return dict(rooms)


def _count(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str], path: str, rooms: tuple[Room, ...]) -> None:
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1:
        first = node.body[1]

    body = lines[first.lineno - 1 : node.end_lineno]
    signature = node.body[0].lineno - node.lineno
    if signature + len(body) < LONG:
        return

    airless = all(line.strip() for line in body)
    for room in rooms:
        room.long += 1
        room.airless += airless
        if airless:
            room.functions.append((len(body), f"{path}:{node.lineno} {node.name}"))


def main() -> int:
    """Print the figures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "cdp")
    rooms = measure(folder)

    for name, room in sorted(rooms.items(), key=lambda pair: pair[0] == "all"):
        print(f"{name:12s} {room}")

    print("\nLongest without a blank line:")
    for length, place in sorted(rooms["all"].functions, reverse=True)[:WORST]:
        print(f"{length:5d}  {place}")

    return 0


if __name__ == "__main__":
    sys.exit(main())
