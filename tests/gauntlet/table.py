"""What came of the gauntlet, as Markdown for people and as JSON for whatever compares two runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from tests.gauntlet.stages import MEASURED_DOCUMENTS, RETRIEVER, Row
from tests.gauntlet.typed import Terminal

COLUMNS = {
    "collection": "collection",
    "lang": "language",
    "queries": "queries_of",
    "docs": "documents",
    "rejected": "rejected",
    "written": "queries",
    "failed": "failed",
    "fewer than asked": "short",
    "Self-BLEU": "self_bleu",
    "CW": "cw",
    "PR": "paraphrase_ratio",
    "Dist-Sim": "dist_sim",
    "left out": "left_out",
    "pairs": "pairs",
    "BM25": "bm25",
    "before": "before",
    "after": "after",
    "s": "seconds",
}

LEGEND = (
    "BM25, before and after are NDCG@10 in percent on the collection's own judgments: BM25 in its language, "
    f"{RETRIEVER} untrained, and trained on the row's queries. PR (paraphrase ratio) and Dist-Sim look at "
    f"{MEASURED_DOCUMENTS} documents. Left out are queries that the benchmark judges and that the generator wrote by "
    "chance. A dash: nothing to measure by, or not measured for this row."
)


def markdown(rows: Sequence[Row], typed: Terminal, seconds: float) -> str:
    """The table, its legend, and every fault."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    lines += [f"| {' | '.join(_cell(getattr(row, name)) for name in COLUMNS.values())} |" for row in rows]
    collections = len({row.collection for row in rows})
    lines += [
        "",
        LEGEND,
        "",
        f"{collections} collections, {len(rows)} query sets, {typed.commands:,} commands, {seconds / 60:.0f} minutes, "
        f"{len(typed.faults)} faults.",
    ]
    for fault in typed.faults:
        lines += ["", f"{fault.collection}: {fault.command}", *(f"    {line}" for line in fault.said.splitlines())]
    return "\n".join([*lines, ""])


def save(folder: Path, rows: Sequence[Row], typed: Terminal, seconds: float) -> None:
    """``table.md`` and ``table.json`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(markdown(rows, typed, seconds), encoding="utf-8")
    value = {
        "rows": [dataclasses.asdict(row) for row in rows],
        "faults": [dataclasses.asdict(fault) for fault in typed.faults],
        "commands": typed.commands,
        "seconds": round(seconds, 1),
    }
    (folder / "table.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2f}" if value < 1 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
