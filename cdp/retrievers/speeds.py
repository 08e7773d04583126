"""Training and encoding speeds that come with the program, for estimates before this machine has runs of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speed:
    """Training pairs per second (each epoch counts) and texts encoded per second."""

    pairs_per_second: float
    texts_per_second: float

    def training_seconds(self, pairs: float) -> float:
        """Return seconds from loading the model to the end of training; ``pairs`` counts each epoch."""
        return MODEL_LOAD_S + pairs / self.pairs_per_second

    def encoding_seconds(self, texts: float) -> float:
        """Return seconds to encode and search ``texts``: studies measure both together."""
        return texts / self.texts_per_second


# All figures below: two cores of an AMD EPYC processor, no GPU (docs/BENCHMARKS.md).
MODEL_LOAD_S = 0.7  # static-minilm, in a process that has loaded it before
STARTING_S = 15.0  # until a job's first step: two processes start and import their libraries
WRITTEN_PER_S = 150.0  # documents that the template generator writes for, both methods, one core
TYPICAL_CHARACTERS = 600  # length of a document for which the speeds hold

DEFAULT_SPEEDS: Mapping[str, Speed] = {"static-minilm": Speed(2500.0, 3000.0)}

# A guess for a small transformer that has not run here; sizes a test on one's own data, and is called a guess there.
SLOW = Speed(60.0, 60.0)
