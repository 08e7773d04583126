"""Round-trip ranks and filtered sets, made by the workers as the supervisor runs them, by BM25 and by small models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.corpus import iter_documents
from cdp.evaluation.round_trip import ranks_of
from cdp.metrics.scorers import load_cross_encoder
from cdp.query_sets import QuerySet, import_queries, store
from cdp.retrievers import load, resolve
from cdp.workers import filtering, round_trip
from tests.metrics.models import tiny_cross_encoder
from tests.support import iter_queries
from tests.support_models import tiny_retriever
from tests.synthesis.conftest import CorpusMaker, make_corpus

pytestmark = pytest.mark.slow
__all__ = ["make_corpus"]

LINES = {
    "d0": ["Which device is Thing0?", "which device is thing0", "As an AI language model, I cannot do that."],
    "d1": ["why does Thing1 work", "Nobody sells it."],
    "d2": ["Thing2", "Thing3 turns a wheel"],
}


@pytest.fixture
def parent(workspace: Workspace, make_corpus: CorpusMaker) -> QuerySet:
    return import_queries(LINES.items(), workspace, make_corpus(6).id, "Mine").query_set


def job(workspace: Workspace, job_id: str, **config: object) -> Path:
    folder = workspace.job(job_id)
    write_json(folder / "spec.json", {"id": job_id, "kind": "filter", "config": config})
    return folder


def texts(workspace: Workspace, query_set: str) -> list[str]:
    return [query.text for query in iter_queries(workspace, query_set)]


def test_bm25_ranks_then_a_filter_by_them(workspace: Workspace, parent: QuerySet) -> None:
    folder = job(workspace, "r1", query_set=parent.id)
    round_trip.main(Job(folder))
    result = read_json(folder / "results" / "round-trip.json")
    kept = store.load_scores(workspace, parent, store.ROUND_TRIP, "bm25")
    assert kept is not None
    ranks = dict(zip((q.text for q in iter_queries(workspace, parent.id)), kept.values, strict=True))
    assert ranks["Thing2"] == 1
    assert ranks["Thing3 turns a wheel"] == 2
    assert result["within_1"] == pytest.approx((kept.values == 1).mean(), abs=1e-4)
    folder = job(workspace, "f1", query_set=parent.id, round_trip_rank=1)
    filtering.main(Job(folder))
    made = query_sets.load(workspace, read_json(folder / "results" / "filter.json")["query_set"])
    assert texts(workspace, made.id) == [text for text, rank in ranks.items() if rank == 1]
    assert made.parameters["without"]["filter"] == "bm25@1"
    assert sum(made.parameters["without"]["reasons"].values()) == parent.n_queries - made.n_queries
    assert texts(workspace, parent.id) == [text for queries in LINES.values() for text in queries]


def test_what_is_no_query_is_left_out_and_counted_by_reason(workspace: Workspace, parent: QuerySet) -> None:
    folder = job(workspace, "f1", query_set=parent.id, usable=True, name="clean")
    filtering.main(Job(folder))
    result = read_json(folder / "results" / "filter.json")
    assert result["reasons"] == {
        "refusal": 1,
        "repeats an earlier query of its document": 1,
    }
    assert texts(workspace, result["query_set"]) == [LINES["d0"][0], *LINES["d1"], *LINES["d2"]]


def test_a_retrievers_ranks_are_those_of_its_own_scores(workspace: Workspace, parent: QuerySet, tmp_path: Path) -> None:
    name = str(tiny_retriever(tmp_path / "tiny"))
    round_trip.main(Job(job(workspace, "r1", query_set=parent.id, by=name, gpus=0)))
    kept = store.load_scores(workspace, parent, store.ROUND_TRIP, name)
    assert kept is not None
    model = load(resolve(name, workspace), "cpu")
    documents = list(iter_documents(workspace, parent.corpus_id))
    queries = list(iter_queries(workspace, parent.id))
    q = model.encode([query.text for query in queries], normalize_embeddings=True)
    d = model.encode([document.content for document in documents], normalize_embeddings=True)
    scores = np.asarray(q, np.float64) @ np.asarray(d, np.float64).T
    order = np.argsort(-scores, axis=1)
    own = np.array([[doc.id for doc in documents].index(query.document_id) for query in queries])
    assert kept.values.tolist() == ranks_of(np.take_along_axis(scores, order, 1), order, own).tolist()


def test_a_cross_encoder_keeps_what_it_scores_high(workspace: Workspace, parent: QuerySet, tmp_path: Path) -> None:
    name = str(tiny_cross_encoder(tmp_path / "ce"))
    contents = {document.id: document.content for document in iter_documents(workspace, parent.corpus_id)}
    queries = list(iter_queries(workspace, parent.id))
    scores = load_cross_encoder(name, workspace, device="cpu")([(q.text, contents[q.document_id]) for q in queries])
    bar = round(float(np.median(scores)), 6)
    folder = job(workspace, "f1", query_set=parent.id, cross_encoder=name, at_least=bar, gpus=0)
    filtering.main(Job(folder))
    result = read_json(folder / "results" / "filter.json")
    assert texts(workspace, result["query_set"]) == [
        q.text for q, score in zip(queries, scores, strict=True) if score >= bar
    ]
    assert 0 < result["dropped"] < len(queries)
    kept = store.load_scores(workspace, parent, store.CROSS_ENCODER, name)
    assert kept is not None
    assert kept.values == pytest.approx(scores, abs=1e-5)


def test_a_set_that_is_not_whole_is_not_filtered(workspace: Workspace, parent: QuerySet) -> None:
    query_sets.update(workspace, parent.id, complete=False, content_hash="")
    with pytest.raises(ConfigError, match="incomplete"):
        filtering.main(Job(job(workspace, "f1", query_set=parent.id, usable=True)))
