"""Hard negatives mined by sentence-transformers for a query set, with a cross-encoder's soft labels, and trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.config import MiningConfig, TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.corpus import iter_documents, read_documents, store
from cdp.query_sets import QuerySet, import_queries
from cdp.retrievers import load, resolve
from cdp.services import jobs
from cdp.training.plan import prepare
from tests.corpus.files import jsonl
from tests.metrics.models import tiny_cross_encoder
from tests.support import work
from tests.support_models import tiny_static

pytestmark = pytest.mark.slow
N = 14


@pytest.fixture
def parent(workspace: Workspace, tmp_path: Path) -> QuerySet:
    """Queries for documents of which two are of equal content, and one query that two documents share."""
    rows = [{"_id": f"d{i}", "title": "", "text": f"the {chr(97 + i) * 5} is number {i}"} for i in range(N)]
    rows.append({**rows[0], "_id": "twin"})
    with read_documents(jsonl(tmp_path / "documents.jsonl", rows)) as result:
        corpus = store(result, "letters", workspace)
    queries = {f"d{i}": [f"what is {chr(97 + i) * 5}", "shared by two"][: 2 if i < 2 else 1] for i in range(N)}
    return import_queries(queries.items(), workspace, corpus.id, "Mine").query_set


def mined(workspace: Workspace, job: str, **config: object) -> QuerySet:
    folder = workspace.job(job)
    write_json(folder / "spec.json", {"id": job, "kind": "mining", "config": config})
    assert work("cdp.workers.mining", folder) == 0
    return query_sets.load(workspace, read_json(folder / "results" / "mining.json")["query_set"])


def test_mined_negatives_are_near_and_never_a_query_s_own(
    workspace: Workspace, parent: QuerySet, tmp_path: Path
) -> None:
    retriever = str(tiny_static(tmp_path / "tiny"))
    settings = {"query_set": parent.id, "retriever": retriever, "negatives": 3, "range_min": 1, "range_max": 9}
    cross_encoder = tiny_cross_encoder(tmp_path / "cross")
    made = mined(workspace, "m1", **settings, relative_margin=None, cross_encoder=str(cross_encoder))
    lines = {line.document_id: line for line in query_sets.read_queries(workspace, made.id)}
    assert [line.queries for line in query_sets.read_queries(workspace, parent.id)] == [
        line.queries for line in lines.values()
    ]
    assert made.hard_negatives == sum(len(names) for line in lines.values() for names in line.negatives) == 3 * (N + 2)
    assert made.parameters["made_from"] == parent.id
    assert str(tmp_path) not in str(made.parameters)
    for line in lines.values():
        for query, names in zip(line.queries, line.negatives, strict=True):
            assert not {line.document_id, *(("d0", "d1") if query == "shared by two" else ())} & {*names}
            assert not (line.document_id == "d0" and "twin" in names)  # equal content

    contents = {d.id: d.content for d in iter_documents(workspace, parent.corpus_id) if d.id != "twin"}
    model = load(resolve(retriever, workspace), "cpu")
    embedded = model.encode_document([*contents.values()])
    vectors = {name: v / np.linalg.norm(v) for name, v in zip(contents, embedded, strict=True)}
    query = model.encode_query(["what is ccccc"])[0]
    near = sorted((name for name in contents if name != "d2"), key=lambda name: -float(query @ vectors[name]))
    assert lines["d2"].negatives[0] == near[1:4]  # without the nearest: range_min 1

    data = prepare(TrainingConfig(query_set=made.id, retriever=retriever, hard_negatives=2), workspace)
    assert data.pairs.negatives is not None
    assert data.pairs.negatives.shape == (N + 2, 2)
    assert (data.pairs.negatives >= 0).all()
    strict = mined(workspace, "m2", **settings, relative_margin=0.6)
    assert 0 < strict.hard_negatives < made.hard_negatives
    assert read_json(workspace.job("m2") / "results" / "mining.json")["queries_with_fewer"] > 0


def test_a_passage_beside_its_own_is_no_negative(workspace: Workspace, tmp_path: Path) -> None:
    rows = [{"_id": f"book.pdf#p1-{i}", "title": "", "text": f"the {chr(97 + i) * 5} is number {i}"} for i in range(N)]
    with read_documents(jsonl(tmp_path / "documents.jsonl", rows)) as result:
        corpus = store(result, "book", workspace)
    # As if it had been cut: ids alone make no passage.
    manifest = workspace.corpus(corpus.id) / "manifest.json"
    write_json(manifest, {**read_json(manifest), "n_cut": 1})
    asked = {row["_id"]: [f"what is {chr(97 + i) * 5}"] for i, row in enumerate(rows)}
    book = import_queries(asked.items(), workspace, corpus.id, "Book").query_set
    retriever = str(tiny_static(tmp_path / "tiny"))
    made = mined(workspace, "m1", query_set=book.id, retriever=retriever, negatives=N - 3, range_min=0,
                 range_max=N - 3, relative_margin=None)  # fmt: skip
    for i, line in enumerate(query_sets.read_queries(workspace, made.id)):
        near = {f"book.pdf#p1-{j}" for j in (i - 1, i, i + 1)}
        assert {*line.negatives[0]} == {row["_id"] for row in rows} - near or not {*line.negatives[0]} & near
        assert len(line.negatives[0]) == N - 3


def test_what_cannot_be_mined_is_said_at_once(workspace: Workspace, parent: QuerySet) -> None:
    with pytest.raises(ConfigError, match="fewer than 5 documents"):
        MiningConfig(query_set=parent.id, range_min=10, range_max=12)
    with pytest.raises(ConfigError, match="embeds single texts"):
        jobs.start(workspace, "mining", MiningConfig(query_set=parent.id, cross_encoder="minilm"))
