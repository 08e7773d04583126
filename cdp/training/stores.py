"""The texts of all pairs as tokens; a pair whose text the tokenizer rejects is left out, listed and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cdp.base.failures import Failures, concerns_run
from cdp.training.pairs import UNTOKENISED, PairSet
from cdp.training.tokens import CHUNK, Store, tokenise

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Stores = tuple[Store, Store, Store | None]
"""Queries, documents and, where there are any, reasoned queries."""

Report = Callable[[str, int, int], None]
"""Told what is tokenised, how many texts are done, and of how many."""


def _silent(phase: str, done: int, total: int) -> None:
    pass


def stores_of(
    model: SentenceTransformer, pairs: PairSet, failures: Failures, report: Report = _silent
) -> tuple[PairSet, NDArray[np.bool_], Stores]:
    """The pairs that can be tokenised, which of the given ones they are (n_pairs,), and their stores.

    InputError where too few pairs are left to train on.
    """
    usable = np.ones(len(pairs), dtype=bool)
    try:
        return pairs, usable, _stores(model, pairs, report)
    except Exception as error:
        if concerns_run(error):
            raise
    asked_of = dict(zip(reversed(pairs.document_of.tolist()), reversed(pairs.query_ids), strict=True))
    names = [asked_of[i].rsplit("-", 1)[0] if i in asked_of else f"{i}" for i in range(len(pairs.documents))]
    bad_documents = np.array(_rejected(model, pairs.documents, "document", failures, names), dtype=bool)
    usable &= ~bad_documents[pairs.document_of]
    usable &= ~np.array(_rejected(model, pairs.queries, "query", failures, pairs.query_ids), dtype=bool)
    if pairs.reasoned is not None:
        usable &= ~np.array(_rejected(model, pairs.reasoned, "query", failures, pairs.query_ids), dtype=bool)
    if pairs.negatives is not None:
        bad = (pairs.negatives >= 0) & bad_documents[pairs.negatives]
        pairs = replace(pairs, negatives=np.where(bad, -1, pairs.negatives))
    pairs = pairs.without(usable, UNTOKENISED)
    return pairs, usable, _stores(model, pairs, report)


def _stores(model: SentenceTransformer, pairs: PairSet, report: Report) -> Stores:
    def store(role: str, phase: str, texts: list[str]) -> Store:
        return tokenise(model, texts, model.prompts[role] or "", lambda done: report(phase, done, len(texts)))

    return (
        store("query", "tokenising queries", pairs.queries),
        store("document", "tokenising documents", pairs.documents),
        None if pairs.reasoned is None else store("query", "tokenising reasoned queries", pairs.reasoned),
    )


def _rejected(
    model: SentenceTransformer, texts: list[str], role: str, failures: Failures, names: list[str]
) -> list[bool]:
    """Which of the texts the tokenizer rejects; each is recorded under its name."""
    prompt = model.prompts[role] or None

    def taken(chunk: list[str]) -> list[bool]:
        model.preprocess(chunk, prompt=prompt)
        return [True] * len(chunk)

    rejected: list[bool] = []
    for start in range(0, len(texts), CHUNK):
        ids = names[start : start + CHUNK]
        results = failures.batch(taken, texts[start : start + CHUNK], ids.__getitem__, str)
        rejected += [result is None for result in results]
    return rejected
