"""RI: by the formula written out, online and static, in every engine, and with queries that have no reasoned form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace, read_json
from cdp.retrievers import resolve
from cdp.training.engine import Batches, Engine, StaticEngine, TransformerEngine
from cdp.training.infonce import reasoning_intensity
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.pairs import load_pairs
from cdp.training.plan import complete
from cdp.training.reasoning import with_reasoned
from cdp.training.tokens import tokenise
from tests.support_models import tiny_retriever, tiny_static
from tests.training.conftest import TOPICS, write_queries

QUERIES = ["what is tea", "why do ships float", "snow", "railways of the north", "who made ink", "tea again"]
REASONED = ["tea leaves and water brewed", "buoyancy of a hull", "snow", "a railway line", "soot and gum", "tea leaves"]
DOCUMENTS = ["tea leaves and water", "a ship and its hull", "snow falls", "a railway line", "soot, gum and water"]
DOCUMENT_OF = np.array([0, 1, 2, 3, 4, 0])
WEIGHTS = np.array([1.0, 6.0, 2.0, 0.5, 3.0, 4.0])
ROWS = np.arange(6)


def losses(queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
    """InfoNCE of each row, written out: own document over the documents that are not another copy of it."""
    scores = 20 * torch.nn.functional.normalize(queries, dim=1) @ torch.nn.functional.normalize(documents, dim=1).T
    kept = torch.tensor([[i == j or DOCUMENT_OF[i] != DOCUMENT_OF[j] for j in ROWS] for i in ROWS])
    return torch.stack([-torch.log_softmax(scores[i][kept[i]], 0)[kept[i][:i].sum()] for i in ROWS])


def embed(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    return model(model.preprocess(texts))["sentence_embedding"]


def expected(model: SentenceTransformer) -> tuple[torch.Tensor, np.ndarray]:
    """The loss weighted by label weight times RI, and RI itself."""
    documents = embed(model, [DOCUMENTS[i] for i in DOCUMENT_OF])
    rows = losses(embed(model, QUERIES), documents)
    ri = (rows / losses(embed(model, REASONED), documents)).clamp(max=5.0).detach()
    weights = torch.from_numpy(WEIGHTS).to(rows) * ri
    return (weights * rows).sum() / weights.sum(), ri.double().numpy()


def build(folder: Path, kind: str) -> tuple[SentenceTransformer, Engine]:
    model = SentenceTransformer(str(tiny_static(folder) if kind == "static" else tiny_retriever(folder)), device="cpu")
    model = (model if kind == "static" else model.double()).eval()
    stores = [tokenise(model, texts) for texts in (QUERIES, DOCUMENTS, REASONED)]
    batches = Batches(stores[0], stores[1], DOCUMENT_OF, WEIGHTS, stores[2])
    loss = WeightedInfoNCELoss(None)
    if kind == "static":
        return model, StaticEngine(model, batches, loss)
    return model, TransformerEngine(model, batches, loss, mini_batch=2 if kind == "gradcache" else None)


@pytest.mark.parametrize("kind", ["transformer", "gradcache", "static"])
def test_online_ri_weighs_as_the_formula_and_is_detached(tmp_path: Path, kind: str) -> None:
    model, engine = build(tmp_path, kind)
    reference, ri = expected(model)
    assert ri.max() <= 5.0
    assert ri.std() > 0.1
    reference.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    precision = {"rtol": 1e-4, "atol": 1e-6} if kind == "static" else {"rtol": 1e-8, "atol": 1e-11}
    value = engine.backward(ROWS)
    torch.testing.assert_close(value, reference.detach(), **precision)
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], **precision)


def test_ri_is_capped_and_has_a_floor() -> None:
    ri = reasoning_intensity(torch.tensor([1.0, 9.0, 0.5, 0.0]), torch.tensor([2.0, 0.1, 0.0, 0.0]), 5.0)
    assert ri.tolist() == [0.5, 5.0, 5.0, 0.0]


def reasoning_set(workspace: Workspace, source: str, lines: list[dict[str, object]]) -> str:
    corpus = read_json(workspace.query_set(source) / "manifest.json")["corpus_id"]
    write_queries(workspace, "thought", corpus, {})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (workspace.query_set("thought") / "queries.jsonl").write_text(text, encoding="utf-8")
    return "thought"


def test_reasoned_queries_are_matched_by_their_source_or_by_position(workspace: Workspace, query_set: str) -> None:
    thought = reasoning_set(
        workspace,
        query_set,
        [
            {"document_id": "d1", "queries": ["thought about facts"], "sources": [f"{TOPICS[1]} facts"]},
            {"document_id": "d2", "queries": ["first thought", "second thought"]},
        ],
    )
    pairs = with_reasoned(load_pairs(workspace, query_set), workspace, thought)
    assert pairs.reasoned is not None
    assert pairs.reasoned[3:6] == [f"what is a {TOPICS[1]}", "thought about facts", f"why {TOPICS[1]}"]
    assert pairs.reasoned[6:9] == ["first thought", "second thought", f"why {TOPICS[2]}"]
    assert pairs.unreasoned == len(pairs) - 3


def test_what_is_wrong_with_reasoned_queries_is_said(workspace: Workspace, query_set: str) -> None:
    pairs = load_pairs(workspace, query_set)
    with pytest.raises(NotFoundError, match="'nothing'"):
        with_reasoned(pairs, workspace, "nothing")
    with pytest.raises(InputError, match="None of the 39 queries"):
        with_reasoned(pairs, workspace, reasoning_set(workspace, query_set, []))
    write_queries(workspace, "elsewhere", "another-corpus", {"d1": ["x"]})
    with pytest.raises(ConfigError, match="another corpus"):
        with_reasoned(pairs, workspace, "elsewhere")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weighting": "ri"}, "needs 'reasoning'"),
        ({"weighting": "ri-cw"}, "needs 'reasoning'"),
        ({"weighting": "column"}, "needs 'weights'"),
        ({"patience": 2}, "needs a 'benchmark'"),
        ({"lora_rank": 4}, "has no layers"),
        ({"mini_batch": 4}, "mini_batch"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    workspace: Workspace, settings: dict[str, object], words: str
) -> None:
    config = TrainingConfig.from_dict({"query_set": "q", **settings})
    with pytest.raises(ConfigError, match=words):
        complete(config, resolve("static-minilm", workspace))
