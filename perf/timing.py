"""Two ways of doing the same thing, timed in turns within one run, so that other load hits both.

A row says what was compared, how fast each side was, and the ``ratio`` of the two, above 1 where ours is ahead, with
the ``spread`` of that ratio over the repeats. One that was taken once has none.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def compare(
    name: str, ours: Callable[[], object], peer: Callable[[], object], *, amount: float, unit: str, target: float,
    repeats: int = 7,
) -> Row:  # fmt: skip
    """A row for ``amount`` of work done by each side in turns. Each runs once before, unmeasured."""
    ours(), peer()
    times = in_turns({"ours": ours, "peer": peer}, repeats)
    return paired(name, times["ours"], times["peer"], amount=amount, unit=unit, target=target)


def in_turns(
    ways: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[Callable[[], object]], float] | None = None
) -> dict[str, list[float]]:
    """Return the seconds that each way took, ``repeats`` of them; wall-clock ones without a ``clock``.

    The order changes at random, so that none always follows another one and what it leaves in the caches.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    order, shuffle = list(ways), random.Random(0).shuffle

    for _ in range(repeats):
        shuffle(order)
        for name in order:
            times[name].append((clock or seconds)(ways[name]))

    return times


def paired(
    name: str, ours: Sequence[float], peer: Sequence[float], *, target: float, amount: float | None = None,
    unit: str = "s",
) -> Row:  # fmt: skip
    """A row of seconds that were taken in turns; of ``amount`` in ``unit`` per second where that is told.

    ``ratio`` is the median of peer / ours over the pairs, ``spread`` the lowest and the highest of them.
    """
    ratios = [theirs / mine for mine, theirs in zip(ours, peer, strict=True)]
    shown = [statistics.median(side) if amount is None else amount / statistics.median(side) for side in (ours, peer)]
    return {
        "name": name,
        "ours": shown[0],
        "peer": shown[1],
        "unit": unit if amount is None else f"{unit}/s",
        "target": target,
        **of_ratios(ratios),
    }


def of_ratios(ratios: Sequence[float]) -> Row:
    """The part of a row that follows from the ratio of each repeat."""
    spread = [min(ratios), max(ratios)] if len(ratios) > 1 else None
    return {"ratio": statistics.median(ratios), "spread": spread, "ratios": list(ratios)}


def of_times(name: str, ours: list[float], peer: list[float], *, goal: float) -> Row:
    """A row of seconds taken in turns; ``goal`` is in seconds of ours."""
    return paired(name, ours, peer, target=statistics.median(peer) / goal)


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor seconds of one call, all threads and ended children: what other programs do hardly changes them."""
    began = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - began


def show(rows: list[Row]) -> None:
    """Print rows as a table."""
    print(f"{'':52} {'ours':>12} {'peer':>12} {'unit':>14} {'ratio':>8} {'target':>7}  spread")
    for row in rows:
        spread = "one run" if row["spread"] is None else " to ".join(f"{value:.2f}" for value in row["spread"])
        print(
            f"{row['name']:52} {row['ours']:12,.2f} {row['peer']:12,.2f} {row['unit']:>14} {row['ratio']:8.2f} "
            f"{row['target']:7.2f}  {spread}"
        )
