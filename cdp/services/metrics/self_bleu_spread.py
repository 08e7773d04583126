"""Self-BLEU under each tokenisation, with its spread over documents: how far one number can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cdp import query_sets
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.complexity import bootstrap_interval
from cdp.metrics import reservoir, self_bleu
from cdp.metrics.tokens import TOKENISATIONS

DOCUMENTS, AMONG = 200, 2000
"""A random sample of so many documents among the first so many is cut in every way: a fraction of a second, however
large the set."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Self-BLEU of a set under one tokenisation: the mean over documents with its 95% interval, their standard
    deviation and quartiles. ``n_documents`` were measured, those with at least two queries of the sample."""

    tokenisation: str
    about: str
    mean: float
    interval: tuple[float, float]
    sd: float
    quartiles: tuple[float, float]
    n_documents: int


def spread(workspace: Workspace, query_set: str, *, per_doc: int | None = None) -> tuple[Spread, ...]:
    """One entry per tokenisation, the default first; empty where no document has two queries."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)

    def measure() -> tuple[Spread, ...]:
        several = (
            queries
            for line in islice(query_sets.read_queries(workspace, resolved_set.id), AMONG)
            if len(queries := line.queries[:per_doc]) > 1
        )
        documents, _ = reservoir(several, DOCUMENTS)
        return tuple(_of(documents, name) for name in TOKENISATIONS) if documents else ()

    path = query_sets.files(workspace, resolved_set.id).queries
    return ANSWERS.get(path, ("self-bleu spread", per_doc), measure)


def _of(documents: Sequence[Sequence[str]], tokenisation: str) -> Spread:
    values = np.array([self_bleu(queries, tokenisation) for queries in documents])
    low, high = np.percentile(values, [25, 75])
    return Spread(
        tokenisation=tokenisation,
        about=TOKENISATIONS[tokenisation],
        mean=float(values.mean()),
        interval=bootstrap_interval(values),
        sd=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        quartiles=(float(low), float(high)),
        n_documents=len(values),
    )


def order_turns(spreads: Sequence[Sequence[Spread]]) -> bool:
    """Whether the order of sets by Self-BLEU depends on the tokenisation. ``spreads`` has one entry per set."""
    measured = [set_spreads for set_spreads in spreads if set_spreads]
    orders = {
        tuple(sorted(range(len(measured)), key=lambda i: measured[i][column].mean))
        for column in range(len(TOKENISATIONS))
    }
    return len(orders) > 1
