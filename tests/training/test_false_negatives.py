"""What is never a negative of a query: another document that it was written for, and a passage beside its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from cdp.base.workspace import Workspace
from cdp.corpus import read_documents, store
from cdp.corpus.passages import neighbours
from cdp.query_sets import import_queries, load
from cdp.training.engine import Batches, StaticEngine, TransformerEngine
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.pairs import PairSet, draw_pairs, load_pairs, with_negatives
from cdp.training.tokens import tokenise
from tests.support_models import tiny_retriever, tiny_static

PASSAGES = ["a.pdf#p1-1", "a.pdf#p1-2", "a.pdf#p2-3", "a.pdf#p9-10", "b.docx#1", "b.docx#2", "c"]
QUERIES: dict[str, list[object]] = {
    "a.pdf#p1-1": ["first of a", "Who wrote this?"],
    "a.pdf#p1-2": ["second of a"],
    "a.pdf#p2-3": ["third of a"],
    "b.docx#1": ["first of b", "who wrote THIS"],
    "c": ["about c"],
}
# By query: its document, and what is no negative of it.
UNFIT = {
    "a.pdf#p1-1-1": {"a.pdf#p1-2"},
    "a.pdf#p1-1-2": {"a.pdf#p1-2", "b.docx#1", "b.docx#2"},
    "a.pdf#p1-2-1": {"a.pdf#p1-1", "a.pdf#p2-3"},
    "a.pdf#p2-3-1": {"a.pdf#p1-2"},
    "b.docx#1-1": {"b.docx#2"},
    "b.docx#1-2": {"b.docx#2", "a.pdf#p1-1", "a.pdf#p1-2"},
    "c-1": set(),
}


@pytest.fixture
def query_set(workspace: Workspace, tmp_path: Path) -> str:
    """Queries with every passage as a hard negative, one of them shared by two passages."""
    source = tmp_path / "passages.jsonl"
    source.write_text("".join(json.dumps({"_id": n, "title": "", "text": f"text of {n}"}) + "\n" for n in PASSAGES))
    with read_documents(source) as result:
        corpus = store(replace(result, n_cut=2), "passages", workspace).id
    file = tmp_path / "queries.jsonl"
    lines = [{"document_id": name, "queries": texts, "negatives": PASSAGES} for name, texts in QUERIES.items()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return import_queries(file, workspace, corpus, "mined").query_set.id


def named(pairs: PairSet, row: int, column: np.ndarray | None) -> set[str]:
    """The ids of the documents that a row of indices names."""
    assert column is not None
    return {pairs.documents[i].removeprefix("text of ") for i in column[row] if i >= 0}


def test_neighbours_are_of_the_same_file_and_next_to_each_other() -> None:
    found = neighbours([*PASSAGES, "a.pdf", "a.pdf#x", "#1", "d#e.html#4", "d#e.html#5", "a.pdf#p2-4x"])
    assert found == {
        "a.pdf#p1-1": ["a.pdf#p1-2"],
        "a.pdf#p1-2": ["a.pdf#p1-1", "a.pdf#p2-3"],
        "a.pdf#p2-3": ["a.pdf#p1-2"],
        "b.docx#1": ["b.docx#2"],
        "b.docx#2": ["b.docx#1"],
        "d#e.html#4": ["d#e.html#5"],
        "d#e.html#5": ["d#e.html#4"],
    }


def test_pairs_name_the_documents_that_are_no_negatives(workspace: Workspace, query_set: str) -> None:
    assert load(workspace, query_set).n_shared == 1
    whole = with_negatives(load_pairs(workspace, query_set), workspace, 10)
    assert whole.query_ids == list(UNFIT)
    for row, query in enumerate(whole.query_ids):
        own = whole.documents[whole.document_of[row]].removeprefix("text of ")
        assert named(whole, row, whole.excluded_indices) == UNFIT[query], query
        assert named(whole, row, whole.negatives) == {*PASSAGES} - UNFIT[query] - {own}, query
    part = whole.part(np.array([1, 2]))
    there = {text.removeprefix("text of ") for text in part.documents}
    assert (
        named(part, 0, part.excluded_indices) == UNFIT["a.pdf#p1-1-2"] & there == {"a.pdf#p1-2", "b.docx#1", "b.docx#2"}
    )
    # Without the other document's copy of the query, that document is still an answer to it.
    one = draw_pairs(workspace, query_set, 0, among=["a.pdf#p1-1", "b.docx#1"])
    assert named(one, 0, one.excluded_indices) == set()
    assert named(one, 1, one.excluded_indices) == {"b.docx#1"}


@pytest.mark.parametrize("engine", ["static", "transformer", "cached"])
def test_no_engine_takes_them_as_negatives(workspace: Workspace, query_set: str, tmp_path: Path, engine: str) -> None:
    pairs = load_pairs(workspace, query_set)
    made = tiny_static(tmp_path / "m") if engine == "static" else tiny_retriever(tmp_path / "m")
    model = SentenceTransformer(str(made), device="cpu").eval()
    rows = np.arange(len(pairs))
    q, d = (
        torch.nn.functional.normalize(model(model.preprocess(texts))["sentence_embedding"], dim=1).detach()
        for texts in (pairs.queries, [pairs.documents[i] for i in pairs.document_of])
    )
    losses = []
    owners = [pairs.documents[i].removeprefix("text of ") for i in pairs.document_of]
    for row, query in enumerate(pairs.query_ids):
        kept = [n for n, name in enumerate(owners) if n == row or name not in UNFIT[query] | {owners[row]}]
        losses.append(-torch.log_softmax(20 * q[row] @ d[kept].T, 0)[kept.index(row)])
    asked, answers = (tokenise(model, texts) for texts in (pairs.queries, pairs.documents))
    batches = Batches(asked, answers, pairs.document_of, np.ones(len(pairs)), excluded_indices=pairs.excluded_indices)
    loss = WeightedInfoNCELoss(None)
    step = (
        StaticEngine(model, batches, loss)
        if engine == "static"
        else TransformerEngine(model, batches, loss, mini_batch=2 if engine == "cached" else None)
    )
    assert float(step.backward(rows)) == pytest.approx(float(torch.stack(losses).mean()), rel=1e-5)
    assert loss.masked == sum(
        n != row and owners[n] in UNFIT[query] | {owners[row]}
        for row, query in enumerate(pairs.query_ids)
        for n in range(len(pairs))
    )
