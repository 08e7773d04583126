"""Real collections, whole."""

from __future__ import annotations

import gzip
import json

import pytest

from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents, read_documents, store
from cdp.studies.target_queries import read_queries
from tests.support import shared

pytestmark = pytest.mark.slow


@pytest.mark.shared
def test_multiquery_documents_come_with_their_queries(workspace: Workspace) -> None:
    path = shared("data/multiquery/fairytaleqa_train_en.jsonl.gz")
    with read_documents(path) as result:
        manifest = store(result, "fairytaleqa", workspace)
        queries = list(result.queries.items())
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert (manifest.n_documents, manifest.n_queries, manifest.n_rejected) == (2756, 7767, 0)
    assert queries == [(row["doc_id"], row["queries"]) for row in rows]
    documents = [(d.id, d.title, d.text) for d in iter_documents(workspace, manifest.id)]
    assert documents == [(row["doc_id"], row["title"], row["text"]) for row in rows]
    assert manifest.main_language == "en"


@pytest.mark.shared
@pytest.mark.parametrize(("folder", "language"), [("xquad_ar", "ar"), ("xquad_zh", "zh"), ("jsquad_ja", "ja")])
def test_languages_of_real_beir_folders(folder: str, language: str) -> None:
    with read_documents(shared(f"data/{folder}")) as result:
        assert (result.n_rejected, result.n_queries) == (0, 0)
        assert result.languages[language] > 0.95


@pytest.mark.shared
@pytest.mark.soak
def test_every_file_whole() -> None:
    n_documents = n_queries = 0
    for path in sorted(shared("data").rglob("*.jsonl.gz")):
        with read_documents(path) as result:
            assert result.n_rejected == 0, (path, result.rejected[:3])
            n_documents += result.n_documents
        if path.name.startswith("queries"):
            queries = read_queries(path)
            assert len(queries) == result.n_documents, path
            n_queries += len(queries)
    assert n_documents > 80_000
    assert n_queries > 40_000
