"""Whatever JSON a row holds: it becomes a document or a rejection, and what is read can be stored and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.corpus import read_documents, store
from cdp.corpus.reading import UNEXPECTED
from cdp.corpus.storage import delete_corpus
from cdp.query_sets import import_queries, iter_lines
from tests.strategies import examples, texts

NAMES = st.sampled_from(["_id", "id", "title", "text", "queries", "query", "document_id", "negatives", "\ud800", ""])
ANY_TEXT = texts(4)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(NAMES, VALUES | ANY_TEXT, max_size=6), min_size=1, max_size=4)
KNOWN = {"_id": "d1", "document_id": "d1", "text": "a text", "query": "what?"}


@pytest.mark.slow
@examples(10, 2_000)
@given(rows=ROWS)
def test_rows_of_any_values(rows: list[dict[str, Any]], tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [KNOWN, *rows]), encoding="utf-8")
    with read_documents(path) as result:
        assert UNEXPECTED not in result.rejected_counts, result.rejected
        assert result.n_documents + result.n_rejected == 1 + len(rows)
        corpus = store(result, "any", workspace)
    try:
        done = import_queries(path, workspace, corpus.id, "any")
    except InputError:
        return
    finally:
        delete_corpus(workspace, corpus.id)
    for line in iter_lines(workspace, done.query_set.id):
        assert all(query.strip() and query.encode("utf-8") for query in line["queries"])
