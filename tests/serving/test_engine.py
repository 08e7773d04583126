"""What is retrieved is what an evaluation retrieves; what is held stays within its limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp.base.errors import InputError, ModelError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.benchmarks import load_benchmark
from cdp.retrievers import bm25
from cdp.services import corpora
from cdp.serving.engine import Cache, NotPreparedError, SearchEngine
from tests.benchmarks.folders import write_benchmark
from tests.serving.conftest import AddCorpus

pytestmark = pytest.mark.slow  # a first search loads the stemmer's library for a second

TEXTS = ["Bees find their way by the sun.", "A lighthouse guides ships.", "Sugar is made from beets.", "Bees and sugar"]
GIB = 1 << 30


def retrieved(engine: SearchEngine, retriever: str, corpus: str, query: str, k: int = 10) -> list[str]:
    return [hit["id"] for hit in engine.search(retriever, corpus, query, k)["hits"]]


def test_the_least_recently_used_goes_first_and_what_changed_is_made_anew() -> None:
    held, made = Cache(10), []

    def get(key: str, state: int = 0, size: int = 4) -> None:
        held.get(key, state, lambda: made.append(key), lambda _: size)

    for key in ("a", "b", "a", "c"):
        get(key)
    assert (made, held.keys(), held.nbytes) == (["a", "b", "c"], ["a", "c"], 8)
    get("a", state=1)
    assert (made[3:], held.keys()) == (["a"], ["c", "a"])
    get("huge", size=99)
    assert held.keys() == ["huge"]
    held.drop(lambda key: key == "huge")
    assert held.nbytes == 0


def test_bm25_over_a_corpus_and_its_index_is_kept(
    workspace: Workspace, add_corpus: AddCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = add_corpus(TEXTS)
    assert retrieved(SearchEngine(workspace, GIB), "bm25", corpus, "sugar bees") == ["d4", "d1", "d3"]
    kept = {path: path.stat().st_mtime_ns for path in workspace.embeddings.rglob("*")}
    assert kept
    monkeypatch.setattr(bm25, "index", None)  # it is not made again
    assert retrieved(SearchEngine(workspace, GIB), "bm25", corpus, "lighthouse", 1) == ["d2"]
    assert {path: path.stat().st_mtime_ns for path in workspace.embeddings.rglob("*")} == kept


def test_a_damaged_index_is_made_anew(workspace: Workspace, add_corpus: AddCorpus) -> None:
    corpus = add_corpus(TEXTS)
    expected = retrieved(SearchEngine(workspace, GIB), "bm25", corpus, "bees")
    for path in sorted(workspace.embeddings.rglob("*.json")):
        path.write_text("{ not json")
        assert retrieved(SearchEngine(workspace, GIB), "bm25", corpus, "bees") == expected


@pytest.mark.parametrize("query", ["zebra", "the of a", "?!", "🦓 ﷽ ‮x", "a" * 9000])
def test_a_query_that_matches_nothing_gives_nothing(workspace: Workspace, add_corpus: AddCorpus, query: str) -> None:
    assert retrieved(SearchEngine(workspace, GIB), "bm25", add_corpus(["One document."], "one"), query) == []


def test_a_corpus_of_one_document(workspace: Workspace, add_corpus: AddCorpus) -> None:
    assert retrieved(SearchEngine(workspace, GIB), "bm25", add_corpus(["One document."], "one"), "document", 100) == [
        "d1"
    ]


def test_a_corpus_that_is_deleted_meanwhile_is_let_go_of(workspace: Workspace, add_corpus: AddCorpus) -> None:
    corpus, other = add_corpus(TEXTS), add_corpus(["Another one."], "other")
    engine = SearchEngine(workspace, GIB)
    retrieved(engine, "bm25", corpus, "bees")
    retrieved(engine, "bm25", other, "bees")
    before = engine.cache.nbytes
    corpora.delete(workspace, corpus)
    with pytest.raises(NotFoundError, match="No corpus"):
        engine.search("bm25", corpus, "bees", 3)
    assert 0 < engine.cache.nbytes < before
    assert retrieved(engine, "bm25", other, "another") == ["d1"]


def test_what_takes_long_is_said_before_it_is_begun(
    workspace: Workspace, add_corpus: AddCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdp.serving.engine.LEXICAL_AT_ONCE", 499)
    corpus = add_corpus([f"document number {i}" for i in range(500)])
    with pytest.raises(NotPreparedError, match="500 documents of mine"):
        SearchEngine(workspace, GIB, interactive=True).search("bm25", corpus, "number", 3)
    assert not workspace.embeddings.exists()
    assert retrieved(SearchEngine(workspace, GIB), "bm25", corpus, "number", 3)


def test_an_unknown_retriever_and_an_empty_name(workspace: Workspace, add_corpus: AddCorpus) -> None:
    corpus = add_corpus(TEXTS)
    with pytest.raises(NotFoundError, match="no-such"):
        SearchEngine(workspace, GIB).search("no-such model!", corpus, "bees", 3)
    with pytest.raises(ModelError, match="not on this machine"):
        SearchEngine(workspace, GIB).search("somebody/no-such-model", corpus, "bees", 3)


def test_embeddings_of_an_evaluation_are_used_and_retrieve_the_same(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdp.evaluation.evaluate import evaluate_model
    from cdp.retrievers import load, model_hash, resolve
    from cdp.retrievers.encode import EmbeddingStore
    from tests.support_models import tiny_static

    folder = write_benchmark(tmp_path / "bench")
    corpus = corpora.add(workspace, folder / "corpus.jsonl").corpus.id
    name = str(tiny_static(tmp_path / "model"))
    model = load(resolve(name, workspace), "cpu")
    benchmark = load_benchmark(folder)
    evaluated = evaluate_model(model, benchmark, store=EmbeddingStore(workspace), model_hash=model_hash(model))
    kept = sorted(workspace.embeddings.rglob("*"))
    monkeypatch.setattr("cdp.serving.engine.STATIC_AT_ONCE", 0)
    engine = SearchEngine(workspace, GIB, interactive=True)  # nothing may be encoded
    for row, query in enumerate(benchmark.queries):
        numbers = evaluated.ranking.documents[row]
        expected = [benchmark.document_ids[n] for n in numbers[numbers >= 0]]
        assert retrieved(engine, name, corpus, query) == expected
    assert sorted(workspace.embeddings.rglob("*")) == kept
    (Path(name) / "model.safetensors").unlink()
    with pytest.raises((ModelError, NotFoundError, InputError)):
        engine.search(name, corpus, "bees", 3)


def test_prepared_documents_are_searched_as_they_were() -> None:
    from cdp.retrievers.exact_search import Prepared, search

    random = np.random.default_rng(0)
    documents = random.standard_normal((20_000, 24), dtype=np.float32)
    documents[7000] = documents[3]  # equal scores stand in the order of their numbers
    queries = np.concatenate([random.standard_normal((3, 24), dtype=np.float32), documents[3:4]])
    expected = search(queries, documents, 30)
    parts = [documents[:9000], documents[9000:].astype(np.float32)]
    for k in (1, 30):
        scores, numbers = search(queries, Prepared(parts), k)
        assert np.array_equal(numbers, expected[1][:, :k])
        assert np.array_equal(scores, expected[0][:, :k])
