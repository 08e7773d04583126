"""What a measure is: the facts that forms, tables, the command line and the docs show of it, and its function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cdp.base.registry import Registered


@dataclass(frozen=True)
class Measure(Registered):
    """One measure of a query set; ``help`` is its definition.

    ``better`` is "higher" or "lower" (empty: neither), ``low`` and ``high`` its range. ``needs`` says what must be
    there besides the queries: "", "human queries", "a cross-encoder" …; ``model_based`` measures are computed by a job,
    the others at once.

    ``of_document`` gives the value of one document from its first M queries and its human ones (none where there are
    none), NaN where the measure is not defined. It is averaged over documents at each M, beside the quick measures. The
    built-in ones have none: they share their passes over tokens and embeddings.
    """

    better: str
    low: float
    high: float
    needs: str = ""
    model_based: bool = False
    of_document: Callable[[Sequence[str], Sequence[str]], float] | None = None
