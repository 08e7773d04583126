"""What a measure is: the facts that forms, tables, the command line and the docs show of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a query set.

    ``better`` is "higher" or "lower" (empty: neither); ``needs`` says what must be there besides the queries: "",
    "human queries", "a cross-encoder" …; ``model_based`` measures are computed by a job, the others at once.
    """

    name: str
    title: str
    better: str
    low: float
    high: float
    definition: str
    needs: str = ""
    model_based: bool = False
