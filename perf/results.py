"""What was measured, one file per kind of machine in ``benchmarks/results``, and the tables that are made of it.

python -m perf.results          # docs/BENCHMARKS.md, its tables made anew (make docs)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from cdp.base.workspace import REPOSITORY, read_json_or_none, write_json
from perf.machine import Machine
from perf.timing import Row

FOLDER = REPOSITORY / "benchmarks" / "results"
DOCUMENT = REPOSITORY / "docs" / "BENCHMARKS.md"
BEGIN, END = "<!-- made from benchmarks/results by make docs -->", "<!-- end of what is made -->"


def keep(
    machine: Machine, part: str, rows: list[Row], *, seconds: float, cpu_seconds: float, load: float,
    folder: Path = FOLDER,
) -> list[str]:  # fmt: skip
    """Put a part's rows in the place of those of the run before; which ratios left the spread that was stated then."""
    path = folder / f"{machine.kind}.json"
    stored: dict[str, Any] = read_json_or_none(path) or {"parts": {}}
    before = {row["name"]: row for row in stored["parts"].get(part, {}).get("rows", ())}
    moved = []
    for row in rows:
        earlier = before.get(row["name"])
        if earlier is None or earlier.get("spread") is None or row["spread"] is None:
            continue
        low, high = earlier["spread"]
        row["before"] = {"ratio": earlier["ratio"], "spread": [low, high], "within": low <= row["ratio"] <= high}
        if not row["before"]["within"]:
            moved.append(f"{row['name']}: {row['ratio']:.2f}, before {low:.2f} to {high:.2f}")
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


def _rounded(value: Any) -> Any:
    """Four digits of each number: what is measured has no more."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value


def tables(folder: Path = FOLDER) -> str:
    """A section per kind of machine, as Markdown."""
    return "\n\n".join(_section(read_json_or_none(path) or {}) for path in sorted(folder.glob("*.json")))


def _section(stored: Mapping[str, Any]) -> str:
    machine, parts = Machine(**stored["machine"]), stored["parts"]
    lines = [
        f"### {machine.processor}, {machine.vectors or 'no vector products'}, {machine.processors} processors"
        + (f", {machine.gpu}" if machine.gpu else ""),
        "",
        f"{machine.memory_gib} GiB of memory; `benchmarks/results/{machine.kind}.json`. {_again(parts)}",
        "",
        "| question, peer | CDP Studio | peer | unit | ratio (lowest to highest) | goal | `perf` | taken | load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, part in parts.items():
        for row in part["rows"]:
            lines.append(
                f"| {row['name']} | {_number(row['ours'])} | {_number(row['peer'])} | {row['unit']} | {_ratio(row)} "
                f"| {row['target']:.3g} | `{name}` | {part['taken']} | {_load(part)} |"
            )
    return "\n".join(lines)


def _again(parts: Mapping[str, Any]) -> str:
    twice = [row["before"]["within"] for part in parts.values() for row in part["rows"] if "before" in row]
    if not twice:
        return "No ratio was taken twice yet."
    return f"Of {len(twice)} ratios that were taken twice, {sum(twice)} lay within the spread of the run before."


def _ratio(row: Row) -> str:
    if row["spread"] is None:
        return f"{row['ratio']:.3g} (one run)"
    low, high = row["spread"]
    return f"{row['ratio']:.3g} ({low:.3g} to {high:.3g})"


def _load(part: Mapping[str, Any]) -> str:
    return "–" if part["load"] is None else f"{part['load']:g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def document(text: str, folder: Path = FOLDER) -> str:
    """``docs/BENCHMARKS.md`` with its tables made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{tables(folder)}\n\n{END}{tail}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
