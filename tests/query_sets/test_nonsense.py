"""What an endpoint returns in place of a query is flagged, and what people ask is not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.query_sets.nonsense import MANY_DOCUMENTS, REASONS, nonsense
from tests.strategies import examples
from tests.support import REPOSITORY

DOCUMENT = (
    "The Eddystone lighthouse was built on a reef south of Plymouth. Its first tower was lost in the storm of 1703, "
    "and the engineer John Smeaton was asked to build another one, which was made of granite."
)
PROMPT = (
    "Write 5 search queries that the document below answers. Each must ask for something else.\n\nDocument: {document}"
)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("... ???", "no words"),
        ("As an AI language model, I cannot write queries for this text.", "refusal"),
        ("I'm sorry, but I can't assist with that request.", "refusal"),
        ("I cannot generate queries from an empty document.", "refusal"),
        ("Unfortunately, I do not have access to the document.", "refusal"),
        ("Es tut mir leid, aber dabei kann ich nicht helfen.", "refusal"),
        ("抱歉，我无法回答这个问题。", "refusal"),
        ("申し訳ありませんが、お答えできません。", "refusal"),
        ("Here are 5 diverse search queries for the document:", "prompt"),
        ("Sure! Here are the queries you asked for", "prompt"),
        ("Generate 5 search queries for the following document", "prompt"),
        ("Each must ask for something else.", "prompt"),
        ("Query 3:", "prompt"),
        ("{document}", "prompt"),
        ('{"queries": ["who built the lighthouse", "when was it lost"]}', "markup"),
        ('"queries": [', "prompt"),
        ('who built the lighthouse"]}', "markup"),
        ("```json", "markup"),
        ("<li>who built the lighthouse</li>", "markup"),
        ("<queries><query>who built the lighthouse</query>", "markup"),
        ("string", "prompt"),
        ("N/A", "prompt"),
        ("<your query here>", "prompt"),
        ("<think>the user wants queries", "markup"),
        ("the tower the tower the tower the tower the tower the tower the tower", "loop"),
        ("这座灯塔是什么时候在普利茅斯附近建造的", "other script"),
        ("Quel ingénieur a été chargé de construire une nouvelle tour dans le port ?", "other language"),
    ],
)
def test_what_is_no_query_is_flagged_with_its_reason(query: str, reason: str) -> None:
    assert reason in REASONS
    assert nonsense(query, DOCUMENT, prompt=PROMPT) == reason


@pytest.mark.parametrize(
    "query",
    [
        "who built the lighthouse",
        "1703 storm",
        "string theory",
        "Eddystone",
        "What is the sorry state of British lighthouses after the storm?",
        "I can't sleep at night, what could help?",
        "How do AI language models write queries?",
        "What does the document 'Magna Carta' say about taxes?",
        "Here Comes the Sun composer",
        'who said "to be or not to be"',
        "how to parse [1, 2, 3] in python",
        "Smeaton's tower: granite or wood?",
        "質問 Plymouth",  # too short to be another language
    ],
)
def test_what_people_ask_is_not_flagged(query: str) -> None:
    assert nonsense(query, DOCUMENT, prompt=PROMPT) == ""


def test_the_names_of_a_document_may_be_asked_for_in_their_own_script() -> None:
    assert nonsense("Bayern München Champions League", "拜仁慕尼黑(Bayern München)赢得了 Champions League 冠军。") == ""


def test_a_document_full_of_names_is_not_taken_for_another_language() -> None:
    """Its language is guessed to be Spanish, by Los Angeles; the query's is not."""
    document = (
        "Los Angeles Lakers, Los Angeles Clippers, Los Angeles Dodgers, Los Angeles Angels of Anaheim: from the NBA."
    )
    assert nonsense("Professional teams in Southern California include teams from the NFL", document) == ""


def test_the_same_answer_for_many_documents_is_flagged() -> None:
    assert nonsense("what is this about", DOCUMENT, n_documents=MANY_DOCUMENTS) == "same everywhere"
    assert nonsense("what is this about", DOCUMENT, n_documents=5) == ""


@pytest.mark.slow
@examples(30, 1_000)
@given(st.text(max_size=400), st.text(max_size=400))
def test_any_text_gets_an_answer(query: str, document: str) -> None:
    reason = nonsense(query, document, prompt=document)
    assert reason in ("", *REASONS)
    assert query.strip() or reason == "empty"


@pytest.mark.slow
def test_time_grows_with_the_length_alone() -> None:
    """No pattern looks at the same run from each of its places: texts that invite that are judged at once."""
    for piece in ('"', "[ ", "{", "sorry ", "a ", "the the ", "`", " :", "我", "\u0301"):
        assert nonsense(piece * 50_000, piece * 50_000) is not None


def _human() -> Iterator[tuple[str, str, str]]:
    """(set, query, document) of the human sets that are here: 60 documents of each."""
    for path in sorted((REPOSITORY.parent / "shared" / "data" / "multiquery").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in islice(file, 60):
                row = json.loads(line)
                text = f"{row.get('title') or ''} {row.get('text') or row.get('context') or ''}".strip()
                for query in row["queries"]:
                    yield path.name, query if isinstance(query, str) else query["text"], text


@pytest.mark.slow
def test_human_queries_are_flagged_in_well_under_one_percent() -> None:
    rows = list(_human())
    if not rows:
        pytest.skip("the human query sets of ../shared/data are not here")
    flagged = [(name, query, reason) for name, query, text in rows if (reason := nonsense(query, text))]
    assert len(rows) > 1000
    assert len(flagged) / len(rows) < 0.002, flagged[:10]


@pytest.mark.slow
def test_the_demos_recorded_queries_are_not_flagged() -> None:
    demo = REPOSITORY / "data" / "demo"
    documents = {row["_id"]: row for row in _rows(demo / "corpus.jsonl")}
    flagged = [
        (query, reason)
        for path in (demo / "generations").glob("*.jsonl")
        for row in _rows(path)
        for query in row["queries"]
        if (reason := nonsense(query, documents[row["document_id"]]["text"]))
    ]
    assert flagged == []


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
