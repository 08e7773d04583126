"""RI, the reasoning intensity of ReasonEmbed: which reasoned query q′ belongs to which query, and RI computed once.

RI(s) = min(L(q, D) / L(q′, D), κ) with L the InfoNCE loss under the model in training, κ = 5. ``online`` computes it in
each step, inside the loss; ``static`` here, once, with the untrained model over the batches of the first epoch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cdp.errors import ConfigError, InputError, NotFoundError
from cdp.training.pairs import PairSet
from cdp.workspace import Workspace, read_json, read_jsonl

if TYPE_CHECKING:
    from cdp.training.engine import Engine
    from cdp.training.pairs import BatchOrder


def with_reasoned(pairs: PairSet, workspace: Workspace, reasoning: str) -> PairSet:
    """``pairs`` with the reasoned form of each query, from the query set ``reasoning`` of the same corpus.

    A line that says from which queries its own were made (``sources``) is matched by text, any other by position. A
    query without a reasoned form keeps itself as q′, which makes its RI 1; those are counted. InputError if no query
    has one.
    """
    if not reasoning.strip():
        raise ConfigError(
            "Weighting by RI needs reasoned queries.",
            hint="Set 'reasoning' to a query set made with the method reasoning from this query set.",
        )
    folder = workspace.query_set(reasoning)
    if not (folder / "manifest.json").is_file():
        known = sorted(p.parent.name for p in workspace.queries.glob("[!.]*/manifest.json"))
        raise NotFoundError("query set", reasoning, known=known)
    check_corpus(reasoning, str(read_json(folder / "manifest.json").get("corpus_id", "")), pairs.corpus_id)
    by_text: dict[tuple[str, str], str] = {}
    by_place: dict[str, str] = {}
    for line in read_jsonl(folder / "queries.jsonl"):
        document_id, texts = str(line["document_id"]), line.get("queries", [])
        if line.get("sources"):
            by_text |= {(document_id, s.strip()): t for s, t in zip(line["sources"], texts, strict=False)}
        else:
            by_place |= {f"{document_id}-{place}": t for place, t in enumerate(texts, start=1)}
    reasoned: list[str] = []
    missing = 0
    for query_id, query in zip(pairs.query_ids, pairs.queries, strict=True):
        document_id = query_id.rsplit("-", 1)[0]
        found = (by_text.get((document_id, query)) or by_place.get(query_id) or "").strip()
        missing += not found
        reasoned.append(found or query)
    if missing == len(pairs):
        raise InputError(
            f"None of the {len(pairs)} queries of {pairs.query_set_id} has a reasoned form in {reasoning}.",
            hint="Make one with the method reasoning from this query set.",
        )
    return replace(pairs, reasoned=reasoned, unreasoned=missing)


def check_corpus(reasoning: str, corpus_id: str, wanted: str) -> None:
    """ConfigError where reasoned queries belong to another corpus than the queries."""
    if corpus_id != wanted:
        raise ConfigError(
            f"The query set {reasoning} belongs to another corpus, {corpus_id}.",
            hint=f"Name one with reasoned queries for {wanted}.",
        )


def static_ri(engine: Engine, order: BatchOrder) -> NDArray[np.float64]:
    """RI of every pair, shape (n,), under the engine's model as it is, each in its batch of the first epoch.

    The pairs that the epoch leaves out at its end form a last batch with the first ones; a pair counted twice keeps
    its first value.
    """
    permutation = order.permutation(0)
    size = min(order.global_rows, order.pairs)
    found = np.full(order.pairs, np.nan)
    for first in range(0, order.pairs, size):
        rows = permutation[first : first + size]
        if len(rows) < size:
            rows = np.concatenate([rows, permutation[: size - len(rows)]])
        values = engine.reasoning_intensity(rows)
        fresh = np.isnan(found[rows])
        found[rows[fresh]] = values[fresh]
    return found
