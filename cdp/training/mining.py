"""Hard negatives for queries: ranks, then the margin; a teacher's similarities as soft labels.

Ranks count the documents that may be negatives: never a query's own document, one that the same query was written for,
one of equal content, or a passage beside one of these in its file. (sentence-transformers' ``mine_hard_negatives``
applies the margin first, and counts the ranks of what is left.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.job_kind import device_for
from cdp.base.text import Progress
from cdp.base.workspace import Workspace
from cdp.retrievers import DENSE, load, model_hash, resolve
from cdp.retrievers.api import Payer
from cdp.retrievers.encode import EmbeddingStore, Encoding, cast, precision_for
from cdp.retrievers.exact_search import search

# A retriever's cosines as logits: the scale that it was trained with, and that the loss here multiplies its own by.
LOGIT_SCALE = 20.0

# The ranks of MiningConfig's defaults.
RANGE = (10, 50)
MARGIN = 0.05

# Query and own document of each pair.
Pairs = Sequence[tuple[str, str]]


class Miner:
    """A retriever with the embedding store: vectors of length 1 of queries and documents, float32 (n, dim)."""

    def __init__(
        self, workspace: Workspace, name: str, gpus: int | None, watch: Progress, payer: Payer | None = None
    ) -> None:
        retriever = resolve(name, workspace)
        retriever.require([DENSE], "mining hard negatives")
        model = load(retriever, device_for(gpus), payer=payer)
        self.watch, self.hash = watch, model_hash(model)
        self.precision = precision_for(model)
        self.model = cast(model, self.precision)
        # Texts without a vector, whether an endpoint gave none now or when they were kept.
        self.failed: set[str] = set()
        self.store = EmbeddingStore(workspace)

    def _encode(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        encoding = Encoding(self.hash, role, self.model.prompts[role], True, None, self.precision)
        phase = "encoding queries" if role == "query" else "encoding documents"
        embedded = self.store.get(lambda: self.model, texts, encoding, progress=partial(self.watch, phase))
        vectors = np.concatenate([np.asarray(part, np.float32) for part in embedded.parts])
        self.failed |= {texts[row] for row in np.flatnonzero(~vectors.any(axis=1)).tolist()}
        return vectors

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(texts, "document")

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(texts, "query")


class MinedNegatives(NamedTuple):
    """Query → ids of its hard negatives, hardest first; how many documents of the ranks the margin left out."""

    negatives: dict[str, list[str]]
    too_near: int


def mine(
    pairs: Pairs,
    contents: Mapping[str, str],
    miner: Miner,
    *,
    beside: Mapping[str, Sequence[str]],
    negatives: int,
    ranks: tuple[int, int] = RANGE,
    margin: float | None = MARGIN,
) -> MinedNegatives:
    """Return at most so many hard negatives of each query.

    ``pairs`` are queries with the ids of their own documents, ``contents`` the corpus by id, ``beside`` the passages
    next to each one in its file. ``ranks`` and ``margin``
    as ``range_min``, ``range_max`` and ``relative_margin`` of ``MiningConfig``. InputError without candidates.
    """
    known = [(text, name) for text, name in pairs if name in contents]
    ids: dict[str, str] = {}
    for name, content in contents.items():
        ids.setdefault(content, name)  # of equal contents the first
    if len(ids) < 2 or not known:
        raise InputError("There is no second document to choose hard negatives from.")

    own: dict[str, dict[str, None]] = {}
    for query, name in known:
        own.setdefault(query, {})[contents[name]] = None

    texts, queries = list(ids), list(own)
    documents, asked = miner.encode_document(texts), miner.encode_query(queries)

    index = {text: number for number, text in enumerate(texts)}
    # A text without a vector is near no other: its rank is no evidence.
    lost = {index[text] for text in miner.failed & index.keys()}
    answers, never = [], []
    for query in queries:
        answers.append([index[text] for text in own[query]])
        near = chain.from_iterable(beside.get(ids[text], ()) for text in own[query])
        next_to = {index[contents[name]] for name in near if name in contents}
        never.append(sorted(lost.union(answers[-1], next_to)))

    scores, found = search(asked, documents, min(ranks[1], len(texts)), exclude=never)

    chosen, too_near = {}, 0
    for row, query in enumerate(queries):
        if query in miner.failed:
            continue

        # The least similar of its own documents: a negative is further from the query than each of them.
        least = float((documents[answers[row]] @ asked[row]).min())
        bound = np.inf if margin is None else least - margin * abs(least)
        ranked = slice(ranks[0], None)
        there = found[row, ranked] >= 0
        fit = there & (scores[row, ranked] <= bound)
        too_near += int((there & ~fit).sum())

        names = [ids[texts[n]] for n in found[row, ranked][fit][:negatives]]
        if names:
            chosen[query] = names

    return MinedNegatives(chosen, too_near)


def similarities(
    pairs: Pairs, contents: Mapping[str, str], negatives: Mapping[str, Sequence[str]], miner: Miner
) -> dict[tuple[str, str], list[float]]:
    """Return (document id, query) → the retriever's cosine, times 20, of the document and of each negative."""
    rows = [(name, text) for text, name in pairs if name in contents and text in negatives]
    ids = list(contents)

    index = {name: number for number, name in enumerate(ids)}
    documents = miner.encode_document([contents[name] for name in ids])
    queries = miner.encode_query([text for _, text in rows])
    labels = {}
    for row, (own, text) in enumerate(rows):
        names = [own, *negatives[text]]
        if miner.failed.isdisjoint((text, *map(contents.__getitem__, names))):
            listed = documents[[index[name] for name in names]]
            labels[own, text] = (LOGIT_SCALE * (listed @ queries[row])).round(4).tolist()

    return labels
