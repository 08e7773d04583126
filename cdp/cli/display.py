"""What a terminal shows: tables, facts, rejected rows. Data in, text out."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LONGEST_CELL = 60


def plain(value: Any) -> Any:
    """Return ``value`` for JSON: dataclasses as mappings, enums and paths as text, NumPy values as Python's."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def value_cell(value: Any, digits: int = 2, *, whole: bool = False) -> str:
    """Return one value as it stands in a table; texts are cut unless ``whole``."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_cell(v, digits)}" for name, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(value_cell(v, digits) for v in value)
    text = " ".join(str(value).split())
    return text if whole or len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def table(rows: Sequence[Any], columns: Sequence[str] = (), empty: str = "", *, digits: int = 2) -> str:
    """Return rows (mappings or records) as aligned columns, by default all; ``empty`` where there are no rows."""
    if not rows:
        return empty
    columns = columns or list(rows[0])
    values = [[row[c] if isinstance(row, Mapping) else getattr(row, c) for c in columns] for row in rows]
    cells = [[value_cell(v, digits, whole=c == "id") for v, c in zip(row, columns, strict=True)] for row in values]
    numeric = [all(isinstance(row[i], (int, float)) or row[i] is None for row in values) for i in range(len(columns))]
    widths = [max(len(column), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)]
    lines = [list(columns), ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def facts(record: Any, *, digits: int = 4) -> str:
    """Return a record as ``name: value`` lines."""
    values = plain(record)
    width = max(len(name) for name in values)
    return "\n".join(f"{name.ljust(width)}  {value_cell(value, digits)}" for name, value in values.items())


def many(n: int, singular: str, plural: str = "") -> str:
    """Return ``1 document``, ``2 documents``."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def first_of(n: int, lines: Sequence[str]) -> list[str]:
    """Return the first of ``n`` lines, indented, with the number of the rest."""
    rest = n - len(lines)
    return [*(f"  {line}" for line in lines), *([f"  and {rest:,} more"] if rest > 0 else [])]


def failed(summary: Any, files: Sequence[Any]) -> list[str]:
    """Return the items that failed in a job that went on: how many, the first of them, and the files with all."""
    if not summary.n:
        return []
    shown = [f"{line.get('id') or line.get('document_id')}: {line.get('reason')}" for line in summary.first]
    named = [f"  texts and tracebacks: {path}" for path in files]
    return [f"{summary.words}:", *first_of(summary.n, shown), *named]


def measures(values: Sequence[Mapping[str, Any]]) -> str:
    """Return Q-D metrics with their intervals and what they were measured with."""
    rows = [
        {
            "measure": value.get("title") or value["name"],
            "value": value["value"],
            "95% interval": "{:.3f} to {:.3f}".format(*value["interval"]) if value.get("interval") else "–",
            "documents": value.get("n_documents"),
            "measured with": ", ".join(
                str(value[k]) for k in ("scope", "tokenizer", "smoothing", "model") if value.get(k)
            ),
        }
        for value in values
    ]
    return table(rows, empty="no measures", digits=3)
