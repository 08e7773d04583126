"""The published methods as points in the space of quality and diversity (the paper's Figure 3)."""

from __future__ import annotations

from dataclasses import dataclass

from cdp.principle import tables

TABLES = ("qd_full", "diversity_ablation_qd")
NAMES = {"Dist-Sim": "dist_sim", "Len-Sim": "len_sim", "CE": "ce", "Self-BLEU": "self_bleu"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A published method at one Q/Doc, with its values by measure."""

    method: str
    per_doc: int
    values: dict[str, float]


def references() -> list[Reference]:
    """The published points, by method and Q/Doc; of two tables with the same condition the first counts."""
    points: dict[tuple[str, int], dict[str, float]] = {}
    for name in TABLES:
        of_table: dict[tuple[str, int], dict[str, float]] = {}
        for row in tables.table(name).rows:
            key = (row["method"], row["queries_per_doc"])
            of_table.setdefault(key, {})[NAMES[row["metric"]]] = row["value"]
        points = {**of_table, **points}
    return [Reference(method, m, points[method, m]) for method, m in sorted(points)]
