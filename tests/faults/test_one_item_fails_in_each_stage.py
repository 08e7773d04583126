"""Each stage, with one item that raises: the others are done, and the item is listed with its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.failures import Failures
from cdp.base.records import Document
from cdp.base.workspace import Workspace, append_jsonl
from cdp.metrics import measure_query_set
from cdp.metrics import query_set as measures
from cdp.query_sets import QuerySet
from cdp.synthesis import ranking
from cdp.synthesis.sentences import sentences
from cdp.training.pairs import UNUSABLE, load_pairs

BAD = "a bad one"


def raising(plain: Any) -> Any:
    """``plain``, but a text that holds BAD raises as a fault of our own would."""

    def called(text: Any, *more: Any, **named: Any) -> Any:
        texts = [text] if isinstance(text, str) else list(text)
        if any(BAD in item for item in texts):
            raise IndexError("list index out of range")
        return plain(text if isinstance(text, str) else texts, *more, **named)

    return called


def ids(failures: Failures) -> list[str]:
    return [line["id"] for line in failures.first]


@pytest.mark.parametrize("part", ["tokens", "count_content_words"])
def test_measuring(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(measures, part, raising(getattr(measures, part)))
    documents = [(f"d{i}", [f"what is {i}", BAD if i == 1 else f"why does {i} turn"]) for i in range(4)]
    failures = Failures()
    found = measure_query_set(documents, failures=failures)
    assert found.document_ids == ["d0", "d2", "d3"]
    assert len(found.cw) == 6
    assert (found.n_failed, ids(failures)) == (1, ["d1"])


def test_splitting_into_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "sentences", raising(sentences))
    texts = ["The wheel turns the mill.", BAD, "Nobody sells the mill."]
    documents = [Document(id=f"d{i}", title="", text=text) for i, text in enumerate(texts)]
    failures = Failures()
    found, _ = ranking.distinct_sentences(documents, failures)
    assert [place for place, _ in found] == [0, 2]
    assert ids(failures) == ["d1"]


def test_building_pairs(workspace: Workspace, tmp_path: Path) -> None:
    from cdp.corpus import read_documents, store

    path = tmp_path / "c.jsonl"
    append_jsonl(path, [{"_id": f"d{i}", "title": "", "text": f"wheel {i} turns"} for i in range(4)])
    with read_documents(path) as result:
        corpus = store(result, "c", workspace)
    query_sets.create(workspace, QuerySet("set", "set", corpus.id, corpus.content_hash, complete=True))
    lines: list[Any] = [{"document_id": f"d{i}", "queries": [f"which wheel {i}"]} for i in range(3)]
    append_jsonl(
        query_sets.files(workspace, "set").queries, [*lines, {"document_id": "d3", "queries": [7]}, ["no", "line"]]
    )
    failures = Failures()
    pairs = load_pairs(workspace, "set", failures=failures)
    assert len(pairs) == 3
    assert ids(failures) == ["d3", "line 5"]
    assert pairs.dropped == {UNUSABLE: 2}
