"""What was measured, one file per kind of machine in ``perf/results``, and the tables that are made of it.

python -m perf.report           # updates perf/results/*.md and the table of docs/BENCHMARKS.md (make docs)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.statistics import stdtrit
from cdp.base.workspace import REPOSITORY, read_json_or_none, write_json
from perf.machine import Machine
from perf.timing import Row

FOLDER = REPOSITORY / "perf" / "results"
DOCUMENT = REPOSITORY / "docs" / "BENCHMARKS.md"
# Of so many runs the newest are kept: older ones may be of older code.
RUNS = 5

BEGIN, END = "<!-- made from perf/results by make docs -->", "<!-- end of what is made -->"


def keep(
    machine: Machine, part: str, rows: list[Row], *, seconds: float, cpu_seconds: float, load: float,
    folder: Path = FOLDER,
) -> list[str]:  # fmt: skip
    """Put a part's rows in the place of those of the run before; which ratios left the range stated by the runs before.

    A row keeps the ratios of each repeat (or the lowest, the median and the highest) of this run and of the newest
    before it, ``RUNS`` in all, and as ``stated`` the range that those before it gave for this one.
    """
    path = folder / f"{machine.kind}.json"
    stored: dict[str, Any] = read_json_or_none(path) or {"parts": {}}

    before = {row["name"]: row["runs"] for row in stored["parts"].get(part, {}).get("rows", ())}
    moved = []
    for row in rows:
        earlier = before.get(row["name"], [])
        low, high = row["spread"] or (None, None)
        own = row.pop("ratios", None) or ([row["ratio"]] if low is None else [low, row["ratio"], high])
        row["runs"] = [*earlier, own][-RUNS:]
        row["stated"] = another_run(earlier)
        if within(row) is False:
            low, high = row["stated"]
            moved.append(f"{row['name']}: {row['ratio']:.3g}, stated before {low:.3g} to {high:.3g}")

    stored["machine"] = machine.to_dict()
    stored["parts"][part] = {
        "taken": date.today().isoformat(),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "load": round(load, 1),
        "rows": [_rounded(row) for row in rows],
    }

    stored["parts"] = dict(sorted(stored["parts"].items()))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, stored)

    return moved


def another_run(runs: Sequence[Sequence[float]]) -> list[float] | None:
    """The range in which the ratio of another run on the same machine is expected, in 95 of 100 cases; None for less
    than two values.

    The logarithms of all ratios are taken for draws from one normal distribution, of which Student's t predicts one
    more. How often that holds, also where runs differ more than repeats do, is simulated in ``tests/test_perf.py``.
    """
    values = np.log([value for run in runs for value in run if value > 0])
    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) * math.sqrt(1 + 1 / len(values))
    return [math.exp(float(values.mean()) - half), math.exp(float(values.mean()) + half)]


def within(row: Row) -> bool | None:
    """Whether a ratio lies in the range stated for it; None where none was."""
    return row["stated"] and row["stated"][0] <= row["ratio"] <= row["stated"][1]


def _rounded(value: Any) -> Any:
    """Four digits of each number: what is measured has no more."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value


def summary(folder: Path = FOLDER) -> str:
    """One row per question with the ratio on each kind of machine, as Markdown."""
    stored = [read_json_or_none(path) or {} for path in sorted(folder.glob("*.json"))]
    kinds = [Machine(**each["machine"]).kind for each in stored]
    ratios: dict[str, dict[str, str]] = {}
    goals: dict[str, tuple[str, float]] = {}  # with the day on which each was taken: the newest counts
    for kind, each in zip(kinds, stored, strict=True):
        for name, part in each["parts"].items():
            # Exponents are no ratio to a peer: the table of the machine has them.
            for row in part["rows"] if name != "growth" else ():
                ratios.setdefault(row["name"], {})[kind] = _ratio(row)
                if part["taken"] > goals.get(row["name"], ("", 0.0))[0]:
                    goals[row["name"]] = (part["taken"], row["target"])

    lines = [
        f"| question, peer | goal | {' | '.join(f'`{kind}`' for kind in kinds)} |",
        "|---" * (2 + len(kinds)) + "|",
    ]
    for name, by_kind in sorted(ratios.items(), key=lambda item: item[0].lower()):
        lines.append(f"| {name} | {goals[name][1]:.3g} | {' | '.join(by_kind.get(kind, '–') for kind in kinds)} |")

    return "\n".join(lines)


def section(stored: Mapping[str, Any]) -> str:
    """Every row of a kind of machine, as Markdown."""
    machine, parts = Machine(**stored["machine"]), stored["parts"]
    lines = [
        f"# {machine.processor}, {machine.vectors or 'no vector products'}, {machine.processors} processors"
        + (f", {machine.gpu}" if machine.gpu else ""),
        "",
        f"{machine.memory_gib} GiB of memory; `{machine.kind}.json`. {_again(parts)}",
        "",
        "| question, peer | CDP Studio | peer | unit | ratio (lowest to highest) | another run | goal | `perf` | taken "
        "| load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, part in parts.items():
        for row in part["rows"]:
            lines.append(
                f"| {row['name']} | {_number(row['ours'])} | {_number(row['peer'])} | {row['unit']} | {_ratio(row)} "
                f"| {_range(another_run(row['runs']))} | {row['target']:.3g} | `{name}` | {part['taken']} "
                f"| {_load(part)} |"
            )

    return "\n".join(lines)


def _again(parts: Mapping[str, Any]) -> str:
    known = [within(row) for part in parts.values() for row in part["rows"] if within(row) is not None]
    if not known:
        return "No ratio was taken twice yet."
    return f"Of {len(known)} ratios that were taken again, {sum(known)} lie in the range that the runs before stated."


def _ratio(row: Row) -> str:
    if row["spread"] is None:
        return f"{row['ratio']:.3g} (one run)"
    low, high = row["spread"]
    return f"{row['ratio']:.3g} ({low:.3g} to {high:.3g})"


def _range(ends: Sequence[float] | None) -> str:
    return "–" if ends is None else f"{ends[0]:.3g} to {ends[1]:.3g}"


def _load(part: Mapping[str, Any]) -> str:
    return "–" if part["load"] is None else f"{part['load']:g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def document(text: str, folder: Path = FOLDER) -> str:
    """``docs/BENCHMARKS.md`` with its table updated."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{summary(folder)}\n\n{END}{tail}"


def files(folder: Path = FOLDER) -> dict[Path, str]:
    """{file: text} of the table of each kind of machine."""
    return {path.with_suffix(".md"): section(read_json_or_none(path) or {}) + "\n" for path in folder.glob("*.json")}


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
