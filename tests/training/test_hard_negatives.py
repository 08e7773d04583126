"""Hard negatives from where they lie on disk, through pairs and engines, into the loss."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.corpus import read_documents, store
from cdp.query_sets import import_queries
from cdp.training.engine import Batches, StaticEngine, TransformerEngine
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.pairs import load_pairs, with_negatives
from cdp.training.plan import prepare
from cdp.training.tokens import tokenise
from tests.support import work
from tests.support_models import tiny_retriever, tiny_static
from tests.training.conftest import TOPICS, write_job

QUERIES = ["what is tea", "why do ships float", "snow", "who made this ink"]
DOCUMENTS = ["tea leaves", "ships " * 9, "snow falls", "ink", "a warship", "green tea"]
DOCUMENT_OF = np.array([0, 1, 2, 3])
NEGATIVES = np.array([[5, 2], [4, -1], [-1, -1], [0, 5]])
WEIGHTS = np.array([1.0, 6.0, 2.0, 0.5])
ROWS = np.array([3, 0, 2, 1])


@pytest.fixture
def corpus(workspace: Workspace, tmp_path: Path) -> str:
    """Sixty documents, so that rankings reach rank 50."""
    source = tmp_path / "sixty.jsonl"
    lines = [
        {"_id": f"d{i}", "title": "", "text": f"All about {TOPICS[i % 12]} number {i}. It is {i}."} for i in range(60)
    ]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with read_documents(source) as result:
        return store(result, "sixty", workspace).id


def imported(workspace: Workspace, corpus: str, folder: Path, lines: list[dict[str, object]]) -> str:
    file = folder / "queries.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return import_queries(file, workspace, corpus, "mined").query_set.id


LINES: list[dict[str, object]] = [
    {
        "document_id": "d0",
        "queries": ["what is d0", "  ", "why d0"],
        "negatives": [["d12", "d24"], ["d1"], ["nowhere"]],
    },
    {"document_id": "d1", "query": "what is d1", "negatives": ["d1", "d13"]},
    {"document_id": "d2", "query": "what is d2"},
    {"document_id": "d3", "queries": ["a", "b"], "negatives": [["d4"]]},
]


def by_hand(queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
    """Weighted InfoNCE of ROWS with each row's hard negatives as further columns, written out row by row."""
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    pool = [*DOCUMENT_OF[ROWS], *(n for column in NEGATIVES[ROWS].T for n in column if n >= 0)]
    losses = []
    for i, row in enumerate(ROWS):
        others = [n for place, n in enumerate(pool) if place != i and n != DOCUMENT_OF[row]]
        scores = 20 * q[row] @ d[[DOCUMENT_OF[row], *others]].T
        losses.append(-torch.log_softmax(scores, dim=0)[0])
    weights = torch.tensor(WEIGHTS[ROWS], dtype=q.dtype)
    return (weights / weights.mean() * torch.stack(losses)).mean()


@pytest.mark.parametrize("mini_batch", [None, 2])
def test_the_transformer_engine_takes_each_rows_own_hard_negatives(tmp_path: Path, mini_batch: int | None) -> None:
    model = SentenceTransformer(str(tiny_retriever(tmp_path)), device="cpu").double().eval()
    by_hand(*(model(model.preprocess(t))["sentence_embedding"] for t in (QUERIES, DOCUMENTS))).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    stores = (tokenise(model, texts) for texts in (QUERIES, DOCUMENTS))
    batches = Batches(*stores, DOCUMENT_OF, WEIGHTS, negatives=NEGATIVES)
    loss = WeightedInfoNCELoss(None)
    TransformerEngine(model, batches, loss, mini_batch=mini_batch).backward(ROWS)
    assert loss.masked == 2  # documents 0 and 2 are hard negatives of other rows than their own
    for name, gradient in expected.items():
        torch.testing.assert_close(model.get_parameter(name).grad, gradient, rtol=1e-8, atol=1e-11)


def test_the_static_engine_takes_them_too(tmp_path: Path) -> None:
    model = SentenceTransformer(str(tiny_static(tmp_path)), device="cpu").eval()
    by_hand(*(model(model.preprocess(t))["sentence_embedding"] for t in (QUERIES, DOCUMENTS))).backward()
    expected = model[0].embedding.weight.grad.clone()
    model.zero_grad(set_to_none=True)
    stores = (tokenise(model, texts) for texts in (QUERIES, DOCUMENTS))
    engine = StaticEngine(model, Batches(*stores, DOCUMENT_OF, WEIGHTS, negatives=NEGATIVES), WeightedInfoNCELoss(None))
    engine.backward(ROWS)
    torch.testing.assert_close(engine.table.grad, expected, rtol=1e-4, atol=1e-7)


def test_an_import_with_negatives_keeps_them_and_counts_what_leads_nowhere(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    query_set = imported(workspace, corpus, tmp_path, LINES)
    manifest = read_json(workspace.query_set(query_set) / "manifest.json")
    assert manifest["parameters"] == {"hard_negatives": 3}
    assert manifest["n_failures"] == 4  # an empty query, an unknown negative, its own document, lists that do not match
    plain = load_pairs(workspace, query_set)
    pairs = with_negatives(plain, workspace, 2)
    assert pairs.query_ids == ["d0-1", "d0-2", "d1-1", "d2-1"]
    assert pairs.negatives is not None
    found = [[pairs.documents[n].split(" number ")[1].split(".")[0] for n in row if n >= 0] for row in pairs.negatives]
    assert found == [["12", "24"], [], ["13"], []]  # a query's own document is no negative
    assert (pairs.n_documents, len(pairs.documents), pairs.without_negatives) == (3, 6, 2)
    assert pairs.content_hash != plain.content_hash
    automatic = prepare(TrainingConfig(query_set=query_set), workspace).pairs.negatives
    assert automatic is not None
    assert automatic.shape == (4, 1)
    assert prepare(TrainingConfig(query_set=query_set, hard_negatives=0), workspace).pairs.negatives is None


def test_the_same_queries_with_other_negatives_are_another_set(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    one = imported(workspace, corpus, tmp_path, LINES[:2])
    assert imported(workspace, corpus, tmp_path, LINES[:2]) == one
    assert imported(workspace, corpus, tmp_path, [LINES[0], {**LINES[1], "negatives": ["d25"]}]) != one


def test_a_set_without_hard_negatives_says_so_when_they_are_asked_for(workspace: Workspace, query_set: str) -> None:
    pairs = load_pairs(workspace, query_set)
    assert with_negatives(pairs, workspace, None) is pairs
    with pytest.raises(ConfigError, match="has no hard negatives"):
        with_negatives(pairs, workspace, 1)


@pytest.mark.slow
def test_rankings_of_dragon_s_reach_the_loss_of_a_training(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    teacher = str(tiny_static(tmp_path / "tiny"))
    made = workspace.job("dragon")
    write_job(workspace, "dragon", corpus=corpus, method="dragon_s_faithful", per_doc=2, teachers=teacher, gpus=0)
    assert work("cdp.workers.synthesis", made) == 0
    query_set = read_json(made / "results" / "synthesis.json")["query_set"]
    ranked = {
        (document, line["query"]): line["negatives"]
        for line in read_jsonl(workspace.query_set(query_set) / "rankings.jsonl")
        for document in line["positives"]
    }
    pairs = with_negatives(load_pairs(workspace, query_set), workspace, 5)
    assert pairs.negatives is not None
    texts = {f"d{i}": f"All about {TOPICS[i % 12]} number {i}. It is {i}." for i in range(60)}
    for query_id, query, row in zip(pairs.query_ids, pairs.queries, pairs.negatives, strict=True):
        named = [name for name in ranked[query_id.rsplit("-", 1)[0], query] if name != query_id.rsplit("-", 1)[0]]
        assert [pairs.documents[n] for n in row if n >= 0] == [texts[name] for name in named]

    losses = {}
    for number in (0, 2):
        folder = write_job(
            workspace, f"t{number}", query_set=query_set, retriever=teacher, batch_size=8, learning_rate=1e-3, epochs=1,
            hard_negatives=number, gpus=0,
        )  # fmt: skip
        assert work("cdp.workers.training", folder) == 0
        assert read_json(folder / "results" / "training.json")["hard_negatives"] == number
        losses[number] = next(iter(read_jsonl(folder / "metrics.jsonl")))["loss"]
    assert losses[2] > losses[0] + 0.3  # sixteen more negatives in the same first batch
