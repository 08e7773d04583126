"""What a score on the leaderboard has to be read with: leaked, stopped, in-domain, another budget, a subset …"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdp.retrievers import leakage
from cdp.retrievers.encode import HALF_PRECISION


@dataclass(frozen=True)
class Badge:
    """What a score has to be read with. A ``fault`` keeps it from being called the best."""

    word: str
    meaning: str
    fault: bool = False


def of_row(row: Mapping[str, Any], subsets: Mapping[str, str], usual: int) -> tuple[Badge, ...]:
    """The badges of one row; ``usual`` is the number of pairs that most runs from its start had."""
    badges = []
    counts, trained = row["counts"], row["trained"]
    judged = int(row["n_queries"] or 0)
    remarks = leakage.remarks(counts, judged)
    for mark in row["marks"]:
        meaning = next((text for text in remarks if text.lower().startswith(mark[:6]) or mark[:7] in text), "")
        badges.append(Badge(mark, meaning, fault=True))
    if trained is not None and trained.incomplete:
        badges.append(Badge("incomplete set", "Its query set was not whole: only what was there was trained on."))
    if leakage.in_domain(counts):
        badges.append(Badge("in-domain", remarks[-1]))
    if trained is not None and usual and trained.pairs and abs(trained.pairs - usual) > 0.01 * usual:
        badges.append(
            Badge(
                "unequal budget",
                f"Trained on {trained.pairs:,} pairs; most runs from {row['start']} here were on {usual:,}. A "
                "difference between them is one of budget too.",
            )
        )
    if row["benchmark"] in subsets:
        badges.append(
            Badge("subset", f"A subset of {subsets[row['benchmark']]}: scores on it are higher than on the whole.")
        )
    if row["settings"].get("precision") == "fp16":
        badges.append(Badge("half precision", HALF_PRECISION))
    return tuple(badges)
