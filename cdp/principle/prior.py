"""What to expect on a new dataset before anything is measured on it.

Estimated by ``reproduction/prior.py`` from the published differences and those of the stored studies; docs/METHODS.md
says how, and how often it held for a dataset that was left out.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from cdp.base.statistics import stdtrit
from cdp.base.workspace import SHIPPED_DATA
from cdp.principle.differences import SCALING
from cdp.principle.evidence import Expectation

FILE = SHIPPED_DATA / "evidence" / "prior.csv"

EQUAL_DOCUMENTS = "equal documents"
INFONCE = "infonce"


@dataclass(frozen=True, slots=True)
class Prior:
    """The difference that a new dataset lets expect, in NDCG@10 points: Student's t about ``points`` with scale ``sd``.

    ``design`` is what the trainings have equal, ``loss`` as studies name it. ``published`` of the ``datasets`` are the
    paper's; ``setups`` counts ways of training. ``covered`` is how often the 95% interval held for a dataset that was
    left out (a share), ``covered_setups`` the same for a way of training, ``error`` how far off its prediction was
    (root mean square), ``error_with_cw`` with a slope on content words.
    """

    comparison: str
    design: str
    loss: str
    per_doc: int
    points: float
    sd: float
    degrees: float
    datasets: int
    published: int
    setups: int
    covered: float
    covered_setups: float
    error: float
    error_with_cw: float

    @property
    def low(self) -> float:
        return self.points - float(stdtrit(self.degrees, 0.975)) * self.sd

    @property
    def high(self) -> float:
        return self.points + float(stdtrit(self.degrees, 0.975)) * self.sd


@lru_cache(maxsize=1)
def priors() -> tuple[Prior, ...]:
    """All rows of the table."""
    kinds = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(Prior)}
    with open(FILE, encoding="utf-8", newline="") as file:
        return tuple(Prior(**{name: kinds[name](text) for name, text in row.items()}) for row in csv.DictReader(file))


def _usual() -> list[Prior]:
    """The rows that an answer rests on: several different queries over one, at equal documents, by InfoNCE."""
    return [p for p in priors() if (p.comparison, p.design, p.loss) == (SCALING, EQUAL_DOCUMENTS, INFONCE)]


def expected() -> tuple[Expectation, ...]:
    """What a new dataset lets expect at each Q/Doc; empty where too few datasets were measured."""
    return tuple(Expectation(p.per_doc, p.points, p.low, p.high) for p in _usual())


def measured() -> tuple[str, tuple[str, ...]]:
    """(what ``expected()`` rests on, its limits in sentences)."""
    rows = _usual()
    most = max(rows, key=lambda p: p.datasets)
    held = np.average([p.covered for p in rows], weights=[p.datasets for p in rows])
    known = [p for p in rows if not np.isnan(p.covered_setups)]
    ways = np.average([p.covered_setups for p in known], weights=[p.setups for p in known])
    own = f", {most.published} of them the paper's" if most.published < most.datasets else " of the paper"
    return f"{most.datasets} datasets{own}", (
        f"Such intervals held for {held:.0%} of the datasets and {ways:.0%} of the ways of training left out.",
        "In the paper's trainings (up to 100 epochs) more queries also meant more steps.",
    )
