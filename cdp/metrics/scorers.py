"""The models behind measures: the cross-encoder of query pairs, its stand-in and threshold, the encoder of queries.

torch and sentence-transformers are imported inside the functions. ``cdp.retrievers`` finds the models: one
that is neither on this machine nor to be had from the hub is known to be missing within seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import ModelError, NotFoundError
from cdp.base.text import encodable
from cdp.base.workspace import Workspace
from cdp.metrics.measures import Measure
from cdp.metrics.measures.dist_sim import unit_vectors
from cdp.metrics.measures.paraphrase_ratio import MEASURE, STAND_IN, THRESHOLD, Pair, checked_scores

# The paper does not name its cross-encoder; this one was trained to tell duplicate questions, score 0 to 1.
CROSS_ENCODER = "cross-encoder/quora-distilroberta-base"

BI_ENCODER = "bi-encoder"
STAND_IN_MODEL = "minilm"

# Cosine of two all-MiniLM-L6-v2 embeddings above which a pair counts as paraphrases.
#
# Chosen for balanced accuracy on one half of the documents, by ``perf/calibrate_paraphrase.py``. On the other
# half it is 0.834: above the threshold are 83% of the demo's recorded paraphrase pairs and 6% of its diverse ones;
# 21% and 23% of the pairs of human questions on one paragraph of XQuAD and FairytaleQA, some of which do ask the
# same.
CALIBRATED_THRESHOLD = 0.66


@dataclass(frozen=True)
class PairScorer:
    """Scores pairs of queries.

    ``score`` maps n pairs to float64 of shape (n,). ``note`` says why this scorer stands in for another.
    """

    measure: Measure
    model: str
    threshold: float
    score: Callable[[Sequence[Pair]], NDArray[np.float64]]
    note: str = ""


def load_scorer(
    choice: str, workspace: Workspace, *, threshold: float | None = None, batch_size: int = 128
) -> PairScorer:
    """The scorer of a choice: ``auto``, ``bi-encoder``, or a cross-encoder's name or folder.

    ``auto`` is the default cross-encoder if it can be loaded and the bi-encoder stand-in if not, and then says why.
    ``threshold`` None means 0.5 for a cross-encoder and the calibrated cosine for the stand-in. For a model asked for
    by name: NotFoundError if there is none, ModelError if it cannot be loaded or does not score pairs.
    """
    if choice == BI_ENCODER:
        return _bi_encoder(workspace, threshold, batch_size)
    try:
        name = CROSS_ENCODER if choice == "auto" else choice
        return _cross_encoder(name, workspace, THRESHOLD if threshold is None else threshold, batch_size)
    except (ModelError, NotFoundError) as error:
        if choice != "auto":
            raise
        return _bi_encoder(workspace, None, batch_size, note=error.message)


def load_cross_encoder(
    name: str, workspace: Workspace, *, batch_size: int = 64, device: str | None = None, logits: bool = False
) -> Callable[[Sequence[Pair]], NDArray[np.float64]]:
    """A cross-encoder, by name or folder, that scores n (query, document) pairs: float64 of shape (n,) in [0, 1].

    With ``logits`` the scores are not squeezed into [0, 1], where half precision makes ties of high ones.

    NotFoundError if there is none, ModelError if it cannot be loaded or does not score pairs.
    """
    return _cross_encoder(name, workspace, THRESHOLD, batch_size, device, logits).score


def load_encoder(
    name: str, workspace: Workspace, *, batch_size: int = 128
) -> Callable[[list[str]], NDArray[np.float64]]:
    """An encoder of queries: a retriever preset, a training's id or name, or any model's folder or name.

    The retriever's query side and prompt are used. The result maps n texts to unit vectors, float64 of shape (n, dim).
    NotFoundError if there is no such model, ModelError if it cannot be loaded, ConfigError if it is not dense.
    """
    from cdp.retrievers import DENSE, load, resolve

    retriever = resolve(name, workspace)
    retriever.require([DENSE], "a measure of queries")
    model = load(retriever)
    prompt = model.prompts.get("query", "")

    def encode(texts: list[str]) -> NDArray[np.float64]:
        if not texts:
            return np.zeros((0, 1))

        clean = list(map(encodable, texts))
        vectors = model.encode_query(clean, prompt=prompt, batch_size=batch_size, show_progress_bar=False)
        return unit_vectors(vectors, len(texts))

    return encode


def _bi_encoder(workspace: Workspace, threshold: float | None, batch_size: int, note: str = "") -> PairScorer:
    """The cosine of two embeddings in place of a cross-encoder's score."""
    encode = load_encoder(STAND_IN_MODEL, workspace, batch_size=batch_size)
    if threshold is None:
        threshold = CALIBRATED_THRESHOLD

    def score(pairs: Sequence[Pair]) -> NDArray[np.float64]:
        if not len(pairs):
            return np.zeros(0)

        rows: dict[str, int] = {}
        at = [rows.setdefault(text, len(rows)) for text in chain.from_iterable(pairs)]
        vectors = encode(list(rows))
        return np.einsum("ij,ij->i", vectors[at[::2]], vectors[at[1::2]])

    return PairScorer(STAND_IN, STAND_IN_MODEL, threshold, score, note)


def _cross_encoder(
    name: str, workspace: Workspace, threshold: float, batch_size: int, device: str | None = None, logits: bool = False
) -> PairScorer:
    from cdp.retrievers import resolve
    from cdp.retrievers.load import device_or_best, load_cross_encoder

    resolved = resolve(name, workspace)
    if resolved.origin in ("preset", "job"):
        raise ModelError(
            f"{name} embeds single texts; a cross-encoder is needed, which scores pairs.",
            hint=f"Use {CROSS_ENCODER}, or for the measure CE {BI_ENCODER}.",
        )
    import torch

    device = device_or_best(device)
    model = load_cross_encoder(resolved, device, "float16" if device.startswith("cuda") else "float32")

    def score(pairs: Sequence[Pair]) -> NDArray[np.float64]:
        scores = model.predict(
            [tuple(map(encodable, pair)) for pair in pairs],
            batch_size=batch_size,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity() if logits else torch.nn.Sigmoid(),
        )
        return checked_scores(scores, len(pairs))

    return PairScorer(MEASURE, name, threshold, score)
