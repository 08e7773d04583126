"""The twelve conditions of ReasonEmbed's ablation: queries, reasoned forms or both, with no weights, CW, RI or both."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import SHIPPED_DATA, Workspace, read_json, read_jsonl
from cdp.complexity import count_content_words
from cdp.query_sets import import_queries
from cdp.services import training as service
from cdp.training import plan as training_plan
from cdp.training.engine import Batches, StaticEngine, TransformerEngine
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.plan import notes_of, prepare
from cdp.training.tokens import tokenise
from tests.support_models import tiny_retriever, tiny_static

SOURCES = ("query-only", "reasoning-only", "multi-query")
WEIGHTINGS = ("none", "cw", "ri", "ri-cw")


def thought_of(query: str) -> str:
    return f"{query} and the mechanism behind it"


def imported(workspace: Workspace, name: str, corpus: str, queries: dict[str, list[str]]) -> str:
    return import_queries(queries.items(), workspace, corpus, name).query_set.id


@pytest.fixture
def query_set(workspace: Workspace, query_set: str) -> str:
    """13 documents, 12 contents, 3 queries each, imported."""
    folder = workspace.query_set(query_set)
    corpus, queries = read_json(folder / "manifest.json")["corpus_id"], queries_of(workspace, query_set)
    shutil.rmtree(folder)
    return imported(workspace, "asked", corpus, queries)


def queries_of(workspace: Workspace, query_set: str) -> dict[str, list[str]]:
    return {
        line["document_id"]: line["queries"] for line in read_jsonl(workspace.query_set(query_set) / "queries.jsonl")
    }


@pytest.fixture
def thought(workspace: Workspace, query_set: str) -> str:
    """q′ of every query but the third of each document, whose q′ is the query itself, and the twin, which has none."""
    corpus = read_json(workspace.query_set(query_set) / "manifest.json")["corpus_id"]
    forms = {
        document_id: [thought_of(q) for q in queries[:2]] + queries[2:]
        for document_id, queries in queries_of(workspace, query_set).items()
        if document_id != "twin"
    }
    return imported(workspace, "thought", corpus, forms)


def settings(query_set: str, thought: str, source: str, weighting: str, **more: object) -> TrainingConfig:
    values = {"query_set": query_set, "reasoning": thought, "query_source": source, "weighting": weighting, **more}
    return TrainingConfig.from_dict(values)


def test_the_conditions_are_those_of_the_published_table() -> None:
    """The twelve rows of the table: every source but one exists with every weighting, and so does the last here."""
    with open(SHIPPED_DATA / "published" / "results.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "tab:reasonembed"]
    names = {"none": "none", "CW": "cw", "RI": "ri", "RIxCW": "ri-cw"}
    assert {(row["query_source"], names[row["weighting"]]) for row in rows} == {
        (source, weighting) for source in SOURCES for weighting in WEIGHTINGS
    }
    best = max((row for row in rows if row["group"] == "Multi-hop"), key=lambda row: float(row["value"]))
    assert (best["query_source"], best["weighting"], best["value"]) == ("multi-query", "RI", "33.20")


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_condition_has_its_pairs_weights_and_comparison(
    workspace: Workspace, query_set: str, thought: str, source: str, weighting: str
) -> None:
    config = settings(query_set, thought, source, weighting, max_documents=5)
    found = prepare(config, workspace)
    plain = prepare(TrainingConfig.from_dict({"query_set": query_set, "max_documents": 5}), workspace).pairs
    first_two = [query for place, query in enumerate(plain.queries) if place % 3 < 2]
    expected = {
        "query-only": plain.queries,
        "reasoning-only": [thought_of(query) for query in first_two],
        "multi-query": [
            text
            for place, query in enumerate(plain.queries)
            for text in ((query, thought_of(query)) if place % 3 < 2 else (query,))
        ],
    }[source]
    pairs = found.pairs
    assert pairs.queries == expected
    words = count_content_words(pairs.queries, "en") if "cw" in weighting else np.ones(len(expected))
    np.testing.assert_array_equal(found.weights, words)
    if weighting in ("none", "cw"):
        assert pairs.reasoned is None
        assert pairs.swapped is None
        return
    assert pairs.reasoned is not None
    swapped = pairs.swapped if pairs.swapped is not None else np.zeros(len(pairs), dtype=bool)
    for query, other, as_reasoned in zip(pairs.queries, pairs.reasoned, swapped, strict=True):
        assert query == (thought_of(other) if as_reasoned else query)
        assert as_reasoned or other in (thought_of(query), query)
    equal = sum(q == other for q, other in zip(pairs.queries, pairs.reasoned, strict=True))
    assert equal == pairs.unreasoned == (0 if source == "reasoning-only" else 5)
    left_out = {"reasoning-only": 5}.get(source, 0)
    assert pairs.dropped.get("queries without a reasoned form", 0) == left_out


@pytest.mark.parametrize("source", SOURCES)
def test_what_has_no_reasoned_form_is_counted_before_the_training(
    workspace: Workspace, query_set: str, thought: str, source: str
) -> None:
    """39 queries of 13 documents, 15 of them without a q′ of their own. Both plans say so, and agree on the pairs."""
    config = settings(query_set, thought, source, "ri", retriever="static-minilm", gpus=0)
    words = {"query-only": "they get 1", "reasoning-only": "they are left out", "multi-query": "only the query itself"}
    whole, quick = prepare(config, workspace), service.plan(workspace, config)
    assert len(whole.pairs) == quick.pairs == {"query-only": 39, "reasoning-only": 24, "multi-query": 63}[source]
    assert whole.pairs.n_documents == 12
    assert quick.documents == (12 if source == "reasoning-only" else 13)  # the twin has the content of another
    for notes in (of_all := notes_of(whole), quick.notes):
        said = " ".join(notes)
        if source == "reasoning-only" and notes is of_all:
            assert "15 queries without a reasoned form" in said
        else:
            assert "15 queries; " in said
            assert words[source] in said
    assert training_plan.trained_on(config) == [query_set, thought]


QUERIES = ["what is tea", "what is tea, brewed leaves and water", "why ships float, buoyancy of a hull", "snow"]
OTHERS = ["tea leaves in hot water", "what is tea", "why do ships float", "frozen water that falls"]
SWAPPED = np.array([False, True, True, False])
DOCUMENTS = ["tea leaves and water", "a ship and its hull", "snow falls"]
DOCUMENT_OF = np.array([0, 0, 1, 2])
WEIGHTS = np.array([1.0, 3.0, 2.0, 0.5])


@pytest.mark.parametrize("kind", ["transformer", "gradcache", "static"])
def test_ri_of_a_pair_trained_on_its_reasoned_form_is_still_that_of_q_over_q_prime(tmp_path: Path, kind: str) -> None:
    """Against the formula written out row by row: weights c · min(L(q, D) / L(q′, D), 5), normalised, detached."""
    folder = tiny_static(tmp_path) if kind == "static" else tiny_retriever(tmp_path)
    model = SentenceTransformer(str(folder), device="cpu").eval()
    model = model if kind == "static" else model.double()
    embed = {text: model(model.preprocess([text]))["sentence_embedding"][0] for text in {*QUERIES, *OTHERS, *DOCUMENTS}}

    def loss(text: str, row: int) -> torch.Tensor:
        kept = [j for j in range(4) if j == row or DOCUMENT_OF[j] != DOCUMENT_OF[row]]
        columns = torch.stack([embed[DOCUMENTS[DOCUMENT_OF[j]]] for j in kept])
        scores = 20 * torch.nn.functional.cosine_similarity(embed[text][None], columns)
        return -torch.log_softmax(scores, 0)[kept.index(row)]

    rows = torch.stack([loss(query, row) for row, query in enumerate(QUERIES)])
    other = torch.stack([loss(text, row) for row, text in enumerate(OTHERS)])
    ri = (
        torch.stack([o / r if s else r / o for r, o, s in zip(rows, other, SWAPPED, strict=True)]).clamp(max=5).detach()
    )
    assert ri.std() > 0.1
    weights = torch.from_numpy(WEIGHTS).to(rows) * ri
    expected = (weights * rows).sum() / weights.sum()

    stores = [tokenise(model, texts) for texts in (QUERIES, DOCUMENTS, OTHERS)]
    batches = Batches(stores[0], stores[1], DOCUMENT_OF, WEIGHTS, stores[2], swapped=SWAPPED)
    criterion = WeightedInfoNCELoss(None)
    engine = (
        StaticEngine(model, batches, criterion)
        if kind == "static"
        else TransformerEngine(model, batches, criterion, mini_batch=2 if kind == "gradcache" else None)
    )
    expected.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    precision = {"rtol": 1e-4, "atol": 1e-6} if kind == "static" else {"rtol": 1e-8, "atol": 1e-11}
    torch.testing.assert_close(engine.backward(np.arange(4)), expected.detach(), **precision)
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], **precision)
    assert replace(batches, swapped=None).content_hash != batches.content_hash


def test_a_reasoned_form_is_never_compared_with_itself(workspace: Workspace, query_set: str, thought: str) -> None:
    """It was: RI of a set of q′ weighted by itself was 1 for every pair, and nothing said so."""
    for config in (
        settings(thought, thought, "query-only", "ri"),
        settings(thought, thought, "reasoning-only", "ri-cw"),
    ):
        with pytest.raises(ConfigError, match="not with itself") as caught:
            prepare(config, workspace)
        assert "reasoning-only" in (caught.value.hint or "")
        with pytest.raises(ConfigError, match="not with itself"):
            service.plan(workspace, config)
    manifest = workspace.query_set(thought) / "manifest.json"
    manifest.write_text(json.dumps({**read_json(manifest), "method": "reasoning"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="not with itself"):
        prepare(settings(thought, query_set, "query-only", "ri"), workspace)

    corpus = read_json(manifest)["corpus_id"]
    same = imported(workspace, "same", corpus, queries_of(workspace, query_set))
    with pytest.raises(InputError, match=r"None of the 39 queries .* differs from it"):
        prepare(settings(query_set, same, "query-only", "ri"), workspace)
    with pytest.raises(ConfigError, match="multi-query needs 'reasoning'"):
        service.plan(workspace, TrainingConfig(query_set=query_set, query_source="multi-query"))
