"""Other publications on synthetic training queries: their findings and figures, and where they disagree."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

from cdp.base.workspace import SHIPPED_DATA

FILE = SHIPPED_DATA / "evidence" / "prior_work.csv"


@dataclass(frozen=True, slots=True)
class PriorWork:
    """A publication beside the paper. ``read`` is what was read of it, ``against`` where it disagrees with the
    principle in a sentence (empty where it does not), ``on`` the page that says so: decide, or evidence alone."""

    source: str
    year: str
    authors: str
    title: str
    url: str
    read: str
    finding: str
    figures: str
    against: str
    on: str

    @property
    def disagreement(self) -> str:
        """``against`` with its source, as Markdown; empty where it does not disagree."""
        return f"{self.against} [{self.source}]({self.url})" if self.against else ""


@lru_cache(maxsize=1)
def prior_work() -> tuple[PriorWork, ...]:
    """All rows of the table, those that disagree with the principle first."""
    with open(FILE, encoding="utf-8", newline="") as file:
        return tuple(PriorWork(**row) for row in csv.DictReader(file))
