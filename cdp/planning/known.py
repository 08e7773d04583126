"""The rates and durations that come with the program, for where nothing was measured. Each names its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdp.planning.rates import Basis, Rate

TWO_CORES = "two cores of an AMD EPYC processor, no GPU"
BENCHMARKS = f"docs/BENCHMARKS.md, {TWO_CORES}"
DEFAULTS = f"this program's default for {TWO_CORES}"


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a retriever is: training pairs per second (each epoch counts) and texts encoded per second."""

    pairs_per_second: float
    texts_per_second: float
    measured: bool = True


MODEL_LOAD_S = 0.7
"""To load static-minilm again in a process that has loaded it before."""

STARTING_S = 15.0
"""Seconds until a job's first step: two processes start one after the other and import their libraries."""

WRITTEN_PER_S = 150.0
"""Documents for which the template generator writes queries in a second, both methods at once, on one core."""

TYPICAL_CHARACTERS = 600
"""Of a document for which the default speeds hold."""

SLOW = Speed(60.0, 60.0, measured=False)
"""A small transformer on two cores, for retrievers that have not run here: said to be a guess, and used for the size of
a test alone, never by the planner."""

PUBLISHED: Mapping[str, Rate] = {
    "encoding/static-minilm/cpu": Rate(
        3000.0, "texts", Basis.PUBLISHED, DEFAULTS, characters=TYPICAL_CHARACTERS, cpus=2
    ),
    "training/static-minilm/cpu": Rate(
        2500.0, "pairs", Basis.PUBLISHED, f"{DEFAULTS}; up to 6,405 in docs/BENCHMARKS.md", 2500.0, 6405.0, 21_267.0,
        2, TYPICAL_CHARACTERS, 2,
    ),
    "training/minilm/cpu": Rate(7.5, "pairs", Basis.PUBLISHED, BENCHMARKS, largest=256.0, cpus=2),
    "synthesis/template/cpu": Rate(
        185.0, "documents", Basis.PUBLISHED, f"{BENCHMARKS}, three queries per document", 164.0, 185.0, 1000.0, 2,
    ),
    "starting": Rate(1 / STARTING_S, "starts", Basis.PUBLISHED, DEFAULTS),
    "search/cpu": Rate(
        107e9, "multiply-adds", Basis.PUBLISHED, f"{BENCHMARKS}: half its FLOP/s", 66e9, 110.5e9,
        200_000.0 * 768 * 1000, 2, None, 2,
    ),
}  # fmt: skip
"""By ``stage/what/device``. Where a retriever, a model or a device has none, the planner says that it does not know."""

DEFAULT_SPEEDS: Mapping[str, Speed] = {
    name: Speed(PUBLISHED[f"training/{name}/cpu"].value, PUBLISHED[f"encoding/{name}/cpu"].value, measured=False)
    for name in ("static-minilm",)
}
"""Used by studies and tests on one's own data until there is a run of this machine's own."""
