"""Two ways of doing the same thing, timed in turns within one run, so that whatever else the machine does hits both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def compare(
    name: str, ours: Callable[[], object], peer: Callable[[], object], *, amount: int, unit: str, target: float,
    repeats: int = 7,
) -> Row:  # fmt: skip
    """A row for the table: ``amount`` of work done by each, in ``unit`` per second (medians over the repeats).

    ``ratio`` is the median of ours / peer over the interleaved repeats, above 1 where ours is ahead; ``spread`` is the
    lowest and highest of them. Each side runs once before, unmeasured.
    """
    ours(), peer()
    times = [(seconds(ours), seconds(peer)) for _ in range(repeats)]
    ratios = [theirs / mine for mine, theirs in times]
    return {
        "name": name,
        "ours": amount / statistics.median(mine for mine, _ in times),
        "peer": amount / statistics.median(theirs for _, theirs in times),
        "unit": f"{unit}/s",
        "ratio": statistics.median(ratios),
        "target": target,
        "spread": [min(ratios), max(ratios)],
    }


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def show(rows: list[Row]) -> None:
    """Print rows as a table."""
    print(f"{'':52} {'ours':>12} {'peer':>12} {'unit':>14} {'ratio':>8} {'target':>7}  spread")
    for row in rows:
        low, high = row["spread"]
        print(
            f"{row['name']:52} {row['ours']:12,.2f} {row['peer']:12,.2f} {row['unit']:>14} {row['ratio']:8.2f} "
            f"{row['target']:7.2f}  {low:.2f} to {high:.2f}"
        )
