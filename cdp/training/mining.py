"""Hard negatives for queries: ranks and margin; a teacher's similarities as soft labels.

sentence-transformers' ``mine_hard_negatives`` chooses among the corpus's documents, never a query's own document, one
that the same query was written for, one of equal content, or a passage beside one of these in its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.text import Progress
from cdp.base.workspace import Workspace
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.api import Payer, failed_texts
from cdp.retrievers.encode import EmbeddingStore, Encoding, cast, precision_for

if TYPE_CHECKING:
    from torch import Tensor

# A retriever's cosines as logits: the scale that it was trained with, and that the loss here multiplies its own by.
LOGIT_SCALE = 20.0

# The ranks of MiningConfig's defaults.
RANGE = (10, 50)
MARGIN = 0.05

# Query and own document of each pair.
Pairs = Sequence[tuple[str, str]]


class Miner:
    """The interface of ``mine_hard_negatives`` to a retriever, with our embedding store."""

    def __init__(
        self, workspace: Workspace, name: str, gpus: int | None, watch: Progress, payer: Payer | None = None
    ) -> None:
        import torch

        model = load(resolve(name, workspace), "cpu" if gpus == 0 else None, payer=payer)
        self.watch, self.hash = watch, model_hash(model)
        self.precision = precision_for(model)
        self.model = cast(model, self.precision)
        self.failed = failed_texts(self.model).keys()
        self.store = EmbeddingStore(workspace)
        self.device = torch.device("cpu")

    def _encode(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        encoding = Encoding(self.hash, role, self.model.prompts[role], True, None, self.precision)
        phase = "encoding queries" if role == "query" else "encoding documents"
        embedded = self.store.get(lambda: self.model, texts, encoding, progress=partial(self.watch, phase))
        return np.concatenate([np.asarray(part, np.float32) for part in embedded.parts])

    def encode_document(self, texts: Sequence[str], **_: Any) -> NDArray[np.float32]:
        return self._encode(texts, "document")

    def encode_query(self, texts: Sequence[str], **_: Any) -> NDArray[np.float32]:
        return self._encode(texts, "query")

    def similarity(self, queries: Any, documents: Any) -> Tensor:
        import torch

        return torch.as_tensor(queries) @ torch.as_tensor(documents).T

    def similarity_pairwise(self, queries: Any, documents: Any) -> Tensor:
        import torch

        return (torch.as_tensor(queries) * torch.as_tensor(documents)).sum(1)


def mine(
    pairs: Pairs,
    contents: Mapping[str, str],
    miner: Miner,
    *,
    beside: Mapping[str, Sequence[str]],
    negatives: int,
    ranks: tuple[int, int] = RANGE,
    margin: float | None = MARGIN,
) -> dict[str, list[str]]:
    """Return query → ids of at most so many hard negatives, hardest first.

    ``pairs`` are queries with the ids of their own documents, ``contents`` the corpus by id, ``beside`` the passages
    next to each one in its file. ``ranks`` and ``margin``
    as ``range_min``, ``range_max`` and ``relative_margin`` of ``MiningConfig``. InputError without candidates.
    """
    from datasets import Dataset  # type: ignore[import-untyped, unused-ignore]
    from sentence_transformers.util import mine_hard_negatives

    known = [(text, name) for text, name in pairs if name in contents]
    ids = {content: name for name, content in reversed(list(contents.items()))}  # of equal contents the first
    answers: dict[str, set[str]] = {}
    for query, name in known:
        answers.setdefault(query, set()).add(ids[contents[name]])
    unfit = {query: {near for name in names for near in beside.get(name, ())} for query, names in answers.items()}
    if len(ids) < 2 or not known:
        raise InputError("There is no second document to choose hard negatives from.")
    spare = max(map(len, unfit.values()))
    dataset = Dataset.from_dict({"query": [text for text, _ in known], "document": [contents[n] for _, n in known]})
    mined = mine_hard_negatives(
        dataset,
        miner,  # type: ignore[arg-type, unused-ignore]
        corpus=list(ids),
        range_min=ranks[0],
        range_max=ranks[1] + spare,
        relative_margin=margin,
        num_negatives=negatives + spare,
        output_format="labeled-pair",
        verbose=False,
    )
    found: dict[str, dict[str, None]] = {}
    for query, document, label in zip(mined["query"], mined["document"], mined["label"], strict=True):
        # A text without a vector is near no other: its rank is no evidence.
        if not label and ids[document] not in unfit[query] and not miner.failed & {query, document}:
            found.setdefault(query, {})[ids[document]] = None
    return {query: list(names)[:negatives] for query, names in found.items()}


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
        if miner.failed & {text, *(contents[name] for name in (own, *negatives[text]))}:
            continue
        listed = documents[[index[name] for name in (own, *negatives[text])]]
        labels[own, text] = (LOGIT_SCALE * (listed @ queries[row])).round(4).tolist()
    return labels
