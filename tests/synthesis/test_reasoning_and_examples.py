"""Reasoning queries belong to the queries they were made of; a user's examples take the place of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import METHODS
from cdp.synthesis.parsing import parse_passage
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer

DOCUMENT = Document("d1", "Basalt is a dark rock. It forms when lava cools quickly.", "Basalt")


def query_of(prompt: str) -> str:
    return prompt.rpartition("\nQuery: ")[2].partition("\n")[0]


def thought(prompt: str, m: int) -> str:
    return f"Reasoned query: To know {query_of(prompt)}\none must think of lava and cooling."


def source(workspace: Workspace, corpus_id: str, path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("".join(json.dumps({"document_id": d, "query": q}) + "\n" for d, q in rows))
    return query_sets.import_queries(path, workspace, corpus_id, name="human").query_set.id


def test_each_query_gets_its_own_reasoning(
    server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker, tmp_path: Path
) -> None:
    corpus = make_corpus(5)
    rows = [("d1", "first q"), ("d1", "second q"), ("d1", "third q"), ("d3", "other {document} q"), ("d4", "last q")]
    human = source(workspace, corpus.id, tmp_path / "h.jsonl", rows)
    server.answer = thought
    settings = {"generator": "openai", "model": MODEL, "base_url": server.url, "method": "reasoning", "per_doc": 2}
    job = make_job(corpus=corpus.id, source=human, **settings)
    result = SynthesisRun(job, api_key=KEY).execute()
    lines = list(query_sets.iter_lines(workspace, result["query_set"]))
    assert [(line["document_id"], line["position"], line["sources"]) for line in lines] == [
        ("d1", 1, ["first q", "second q"]),
        ("d3", 3, ["other {document} q"]),
        ("d4", 4, ["last q"]),
    ]
    for line in lines:
        for q, reasoned in zip(line["sources"], line["queries"], strict=True):
            assert reasoned == f"To know {q} one must think of lava and cooling."
    assert len(server.bodies) == 4
    assert result["complete"]
    assert query_sets.load(workspace, result["query_set"]).parameters["source"] == human
    assert any("device number 1" in body["messages"][0]["content"] for body in server.bodies)


def test_a_query_without_an_answer_leaves_the_others_with_theirs(server: ChatServer) -> None:
    server.answer = lambda prompt, m: "" if "second" in query_of(prompt) else thought(prompt, m)
    config = SynthesisConfig(corpus="c", generator="openai", model=MODEL, base_url=server.url)
    generation = generate_for(
        DOCUMENT,
        METHODS["reasoning"],
        3,
        make_generator(config, api_key=KEY),
        queries=["first q", "second q", "third q"],
    )
    assert tuple(generation.sources) == ("first q", "third q")
    assert [text.split()[2] for text in generation.queries] == ["first", "third"]
    assert generation.problems["too_few"] == 1
    assert generation.usage.requests == 4


def test_equal_reasoning_of_two_queries_is_kept_for_both(server: ChatServer) -> None:
    server.answer = lambda prompt, m: "Always the same thought."
    config = SynthesisConfig(corpus="c", generator="openai", model=MODEL, base_url=server.url)
    made = make_generator(config, api_key=KEY)
    generation = generate_for(DOCUMENT, METHODS["reasoning"], 2, made, queries=["one", "two"])
    assert tuple(generation.queries) == ("Always the same thought.",) * 2
    assert generation.problems == {}


def test_the_template_has_a_stand_in(workspace: Workspace) -> None:
    made = make_generator(SynthesisConfig(corpus="c"))
    generation = generate_for(DOCUMENT, METHODS["reasoning"], 2, made, queries=["what is basalt?", "dark rock"])
    assert tuple(generation.sources) == ("what is basalt?", "dark rock")
    assert all(len(q) > len(s) and q.startswith(s) for s, q in zip(generation.sources, generation.queries, strict=True))


@pytest.mark.parametrize("fault", ["missing", "other corpus"])
def test_the_source_must_be_a_set_of_this_corpus(
    fault: str, workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker, tmp_path: Path
) -> None:
    corpus = make_corpus(3)
    other = make_corpus(4, name="other")
    chosen = source(workspace, other.id, tmp_path / "h.jsonl", [("d0", "q")]) if fault == "other corpus" else ""
    with pytest.raises(ConfigError, match="existing queries" if fault == "missing" else "another corpus"):
        SynthesisRun(make_job(corpus=corpus.id, method="reasoning", source=chosen))


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("Reasoned query: a\nb c", "a b c"),
        ("<think>hm</think>\n**Query:** words here", "words here"),
        ("Here is the reasoned query:\nThe thought itself.", "The thought itself."),
        ("```\nfenced thought\n```", "fenced thought"),
    ],
)
def test_a_paragraph_is_one_query(answer: str, kept: str) -> None:
    assert parse_passage(answer).queries == (kept,)


def test_a_paragraph_without_end_is_counted() -> None:
    assert parse_passage("word " * 1000).problems == {"over_long": 1, "too_few": 1}


def test_the_schema_is_asked_for_where_the_endpoint_takes_one(server: ChatServer) -> None:
    config = SynthesisConfig(corpus="c", generator="openai", model=MODEL, base_url=server.url, per_doc=3)
    server.answer = lambda prompt, m: json.dumps({"queries": [f"query number {i}" for i in range(m)]})
    generation = generate_for(DOCUMENT, METHODS["diverse"], 3, make_generator(config, api_key=KEY))
    assert tuple(generation.queries) == ("query number 0", "query number 1", "query number 2")
    body = server.bodies[0]
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["queries"]
    assert body["messages"][0]["content"].endswith('as JSON of the form {"queries": ["…"]}, and nothing else.')


def test_an_endpoint_without_schemas_is_asked_for_a_list_from_then_on(server: ChatServer) -> None:
    server.script = ["no schema"] * 2
    config = SynthesisConfig(corpus="c", generator="openai", model=MODEL, base_url=server.url, per_doc=3)
    made = make_generator(config, api_key=KEY)
    for _ in range(2):
        assert len(generate_for(DOCUMENT, METHODS["diverse"], 3, made).queries) == 3
    kinds = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert kinds == ["json_schema", "json_object", None, None]
    assert server.bodies[2]["messages"][0]["content"].endswith("\n1.")


def test_a_list_is_asked_for_where_the_user_says_so(server: ChatServer) -> None:
    config = SynthesisConfig(corpus="c", generator="openai", model=MODEL, base_url=server.url, output="list")
    generate_for(DOCUMENT, METHODS["diverse"], 3, make_generator(config, api_key=KEY))
    generate_for(DOCUMENT, METHODS["inpars_gbq"], 1, make_generator(config, api_key=KEY))
    assert not any("response_format" in body for body in server.bodies)
