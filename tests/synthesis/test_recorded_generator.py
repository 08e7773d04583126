"""Recorded answers belong to the demo collection's documents and to no others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cdp.base.errors import NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import read_jsonl
from cdp.llm.answers import RequestError
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators.recorded import PASSAGES, RECORDINGS, RecordedGenerator
from cdp.synthesis.methods import METHODS
from tests.support import SHARED


def demo() -> list[Document]:
    return [
        Document(line["_id"], line["text"], line["title"]) for line in read_jsonl(RECORDINGS.parent / "corpus.jsonl")
    ]


@pytest.mark.parametrize("method", ["diverse", "paraphrase"])
def test_every_demo_document_has_its_eight_queries(method: str) -> None:
    recorded = {line["document_id"]: line["queries"] for line in read_jsonl(RECORDINGS / f"{method}.jsonl")}
    documents = demo()
    assert len(documents) >= 80
    for document in documents:
        generation = generate_for(document, METHODS[method], 8, RecordedGenerator())
        assert list(generation.queries) == recorded[document.id]
        assert generation.problems == {}


def test_fewer_are_the_first_and_more_are_counted_as_missing() -> None:
    document = demo()[0]
    eight = generate_for(document, METHODS["diverse"], 8, RecordedGenerator()).queries
    assert generate_for(document, METHODS["diverse"], 3, RecordedGenerator()).queries == eight[:3]
    assert generate_for(document, METHODS["diverse"], 20, RecordedGenerator()).problems == {"too_few": 12}


def test_a_demo_document_is_known_by_content_under_any_id() -> None:
    first = demo()[0]
    renamed = Document("another-id", first.text, first.title)
    assert len(generate_for(renamed, METHODS["diverse"], 8, RecordedGenerator()).queries) == 8


def test_another_document_with_a_demo_id_gets_no_borrowed_queries() -> None:
    stranger = Document(demo()[0].id, "A different text altogether.")
    with pytest.raises(RequestError, match="only the demo collection"):
        generate_for(stranger, METHODS["diverse"], 8, RecordedGenerator())


def test_a_method_without_recordings_offers_those_with(tmp_path: Path) -> None:

    (tmp_path / "paraphrase.jsonl").write_text(json.dumps({"document_id": "a", "queries": ["q"]}) + "\n")
    with pytest.raises(NotFoundError, match="template or openai"):
        generate_for(demo()[0], METHODS["diverse"], 8, RecordedGenerator(tmp_path))


@pytest.mark.parametrize("method", ["diverse", "paraphrase"])
def test_a_passage_of_a_public_benchmark_is_known_by_its_content(method: str) -> None:
    """The passages are not in the repository: each line holds the hash of what its queries were written for."""
    lines = list(read_jsonl(PASSAGES / f"{method}.jsonl"))
    assert len(lines) == len({line["content_hash"] for line in lines}) >= 1000
    for line in lines:
        assert {line["collection"], line["document_id"], line["prompt_hash"]} - {""}
        assert len({query.casefold() for query in line["queries"]}) == 5, line["document_id"]
        assert all(query == query.strip() and query for query in line["queries"])


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
def test_every_recorded_passage_is_in_its_collection() -> None:
    path = SHARED / "data" / "multiquery" / "fairytaleqa_train_en.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    documents = [Document(record["doc_id"], record["text"], record["title"]) for record in records]
    wanted = {
        line["content_hash"] for line in read_jsonl(PASSAGES / "diverse.jsonl") if line["collection"] == "fairytaleqa"
    }
    recorded = [document for document in documents if document.content_hash in wanted]
    assert len(recorded) == len(wanted) == 280
    assert len(generate_for(recorded[0], METHODS["diverse"], 5, RecordedGenerator()).queries) == 5
