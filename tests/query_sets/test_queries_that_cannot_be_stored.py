"""Imports of queries: what a row holds that cannot be used is rejected with its line, and costs no other row."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.query_sets import import_queries, iter_failures, iter_lines
from tests.synthesis.conftest import CorpusMaker

ROWS = [
    ('{"document_id": "d1", "query": "a fine query"}', ""),
    ('{"document_id": "d1", "query": "half of \\ud800 a pair"}', "half of a surrogate pair"),
    ('{"document_id": "\\ud800", "query": "x"}', "there is no document"),
    ('{"document_id": "d2", "queries": ["kept", "\\u0000"]}', "half of a surrogate pair"),
    ('{"document_id": ["d2"], "query": "x"}', "neither text nor a number"),
    ('{"document_id": "d2", "query": "y", "negatives": [["\\ud800"]]}', "there is no document"),
    ('{"document_id": "d2", "query": "z", "negatives": [[["d1"]]]}', "no list of document ids"),
    ('{"document_id": "d3", "query": ' + "[" * 900 + "]" * 900 + "}", "there is no query"),
    ('{"document_id": "d3", "\\udc00": "x"}', "there is no query"),
    ('{"document_id": "d3", "query": "the last"}', ""),
]


def test_each_has_its_line_and_reason(workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path) -> None:
    corpus = make_corpus(5)
    path = tmp_path / "q.jsonl"
    path.write_text("".join(f"{line}\n" for line, _ in ROWS), encoding="utf-8")
    done = import_queries(path, workspace, corpus.id)
    failures = {f["line"]: f["reason"] for f in iter_failures(workspace, done.query_set.id)}
    for number, (_, reason) in enumerate(ROWS, 1):
        assert reason in failures.get(number, ""), (number, failures.get(number))
    stored = {line["document_id"]: line["queries"] for line in iter_lines(workspace, done.query_set.id)}
    assert stored == {"d1": ["a fine query"], "d2": ["kept", "y"], "d3": ["the last"]}
    assert done.query_set.n_failures == done.n_rejected == sum(bool(reason) for _, reason in ROWS)


def test_a_row_of_a_table_that_cannot_be_told_apart(
    workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path
) -> None:
    corpus = make_corpus(5)
    path = tmp_path / "q.csv"
    path.write_bytes(b"document_id,query\nd1,fine\nd2,with a \x00 in it\nd3,fine too\n")
    done = import_queries(path, workspace, corpus.id)
    assert (done.query_set.n_queries, done.n_rejected) == (2, 1)
    assert done.rejected[0].startswith("Line 3: ")


def test_a_name_that_no_file_can_have(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    corpus = make_corpus(2)
    for name in ("x" * 300, "a\0b"):
        with pytest.raises(InputError, match="There is no file or folder"):
            import_queries(Path(name), workspace, corpus.id)
