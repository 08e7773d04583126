"""A search by late interaction marks the words of a document that the query's words matched, and finds by MaxSim."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.config import ServingConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.text import silent, snippet
from cdp.base.workspace import Workspace
from cdp.corpus import read_documents, store
from cdp.metrics.scorers import load_encoder
from cdp.retrievers import load, resolve
from cdp.services import search
from cdp.serving.engine import SearchEngine
from cdp.serving.public import Serving
from cdp.training.mining import Miner
from cdp.ui.shell.tables import html_marked
from tests.support_models import tiny_sparse

pytestmark = pytest.mark.slow

TEXTS = {
    "first": "The vessel crossed the ocean in a storm, and its crew was saved.",
    "second": "Bake the bread for an hour, then let the loaf cool on a rack.",
    "third": "A comet was seen in the night sky by several astronomers.",
}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[SearchEngine, str]:
    folder = tmp_path_factory.mktemp("late")
    workspace = Workspace(folder / "workspace")
    (folder / "texts").mkdir()
    for name, text in TEXTS.items():
        (folder / "texts" / f"{name}.txt").write_text(text)
    corpus = store(read_documents(folder / "texts"), "stories", workspace)
    return SearchEngine(workspace, 1 << 30), corpus.id


def test_the_words_that_matched_are_marked_though_they_are_others(searched: tuple[SearchEngine, str]) -> None:
    engine, corpus = searched
    best = engine.search("minilm-multi", corpus, "a ship on the sea", 3)["hits"][0]
    assert "vessel" in best["text"]
    assert {"vessel", "ocean"} <= set(best["words"])
    assert "storm" not in best["words"]
    assert engine.search("minilm-multi", corpus, "a ship on the sea", 3)["hits"][0]["words"] == best["words"]


def test_a_match_is_marked_by_its_share_of_the_score(searched: tuple[SearchEngine, str]) -> None:
    engine, corpus = searched
    query = "a vessel that eats bread"
    hits = {hit["id"]: hit for hit in engine.search("minilm-multi", corpus, query, 3)["hits"]}
    shares = hits["first.txt"]["shares"]
    assert sorted(shares) == hits["first.txt"]["words"]
    assert max(shares, key=shares.__getitem__) == "vessel"
    assert 0 < sum(shares.values()) < 1, "special tokens and words of no content have the rest"
    assert min(shares.values()) < shares["vessel"] / 2
    shown = html_marked(snippet(TEXTS["first"], list(shares)), shares)
    assert "<mark style='--share: 1.00'>vessel</mark>" in shown
    assert engine.search("bm25", corpus, query, 3)["hits"][0]["shares"] == {}


def test_late_interaction_orders_the_candidates_of_another(searched: tuple[SearchEngine, str]) -> None:
    engine, corpus = searched
    query = "the crew of a vessel eats a loaf"
    every = {hit["id"]: hit["score"] for hit in engine.search("minilm-multi", corpus, query, 3)["hits"]}
    candidates = {hit["id"] for hit in engine.search("bm25", corpus, query, 3)["hits"]}
    assert len(candidates) == 2 < len(every)

    found = engine.search("reranked:bm25:minilm-multi", corpus, query, 3)
    assert found["title"] == "BM25, its first 100 by minilm-multi (late interaction)"
    assert {hit["id"] for hit in found["hits"]} == candidates
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == pytest.approx([every[hit["id"]] for hit in found["hits"]], rel=1e-5)
    assert scores == sorted(scores, reverse=True)
    assert "vessel" in {word for hit in found["hits"] for word in hit["words"]}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reranked:bm25:minilm", "reranking by token vectors"),
        ("reranked:bm25:none-such", "none-such is not on this machine yet"),
        ("reranked:minilm-multi:minilm-multi", "compares tokens itself"),
        ("reranked:reranked:bm25:minilm-multi:minilm-multi", "reranks already"),
    ],
)
def test_what_cannot_rerank_is_refused(searched: tuple[SearchEngine, str], name: str, message: str) -> None:
    engine, corpus = searched
    with pytest.raises(CdpError, match=message):
        engine.search(name, corpus, "a ship", 3)


def test_reranking_is_offered_and_searched_by_its_name(searched: tuple[SearchEngine, str]) -> None:
    engine, corpus = searched
    offered = {choice.id: choice for choice in search.list_retrievers(engine.workspace)}
    choice = offered["reranked:bm25:minilm-multi"]
    assert search.model_of(choice.id) == "minilm-multi"
    assert not [name for name in offered if name.startswith("reranked:") and name != choice.id]

    answered = search.search(engine.workspace, "a vessel", [choice.id], corpus, in_process=True).answers[0]
    assert (answered.problem, answered.title) == (None, choice.title)
    assert [hit.rank for hit in answered.hits] == [1]


def test_a_sparse_retriever_finds_by_its_words(searched: tuple[SearchEngine, str], tmp_path: Path) -> None:
    engine, corpus = searched
    folder = str(tiny_sparse(tmp_path))
    found = engine.search(folder, corpus, "bread and a loaf", 3)["hits"]
    model = load(resolve(folder, engine.workspace), "cpu")
    contents = [f"{hit['title']} {hit['text']}".strip() for hit in found]
    (query,), documents = (
        model.encode_query(["bread and a loaf"], convert_to_sparse_tensor=False),
        model.encode_document(contents, convert_to_sparse_tensor=False),
    )
    assert [hit["score"] for hit in found] == pytest.approx((documents @ query).tolist(), rel=1e-5)
    with pytest.raises(ConfigError, match="minilm-sparse finds nothing before it is trained"):
        engine.search("minilm-sparse", corpus, "bread", 3)


def test_what_takes_single_vectors_refuses_it_in_a_sentence(searched: tuple[SearchEngine, str]) -> None:
    engine, _ = searched
    with pytest.raises(ConfigError, match="minilm-multi searches, and gives no embeddings"):
        Serving(engine.workspace, ServingConfig.from_dict({"retriever": "minilm-multi", "port": 0}), "")
    with pytest.raises(ConfigError, match="mining hard negatives needs a dense one"):
        Miner(engine.workspace, "minilm-multi", 0, silent)
    with pytest.raises(ConfigError, match="a measure of queries needs a dense one"):
        load_encoder("minilm-multi", engine.workspace)
