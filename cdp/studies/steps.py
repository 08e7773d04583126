"""The steps of a study in the order of its plan: what one process does one after the other, or several share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdp.evaluation import bm25
from cdp.studies.config import StudyConfig
from cdp.studies.plan import Condition

Step = Condition | str
"""A condition, or the name of what is evaluated untrained: a retriever or BM25."""

STEP_S = 300.0
"""A batch or a search may take this long without a heartbeat."""


def steps(config: StudyConfig, conditions: Sequence[Condition]) -> Iterator[Step]:
    """What every condition is compared with comes first."""
    if config.bm25:
        yield bm25.NAME
    yield from config.items("retrievers")
    yield from conditions
