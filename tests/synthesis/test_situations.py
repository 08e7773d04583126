"""Situations of public reports at the local server: what becomes of an answer, and what is asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.llm.answers import RequestError
from cdp.llm.cache import AnswerCache
from cdp.synthesis.batch import read_batch, write_batch
from cdp.synthesis.generate import generate_for
from cdp.synthesis.methods import METHODS, method_of
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer, completion
from tests.synthesis.situations import LIST, SITUATIONS
from tests.synthesis.test_batch import read_lines, write_lines
from tests.synthesis.test_generate import openai
from tests.synthesis.test_run import settings

DOCUMENT = Document("d1", "A fjord is a valley that ice carved. The sea fills it.", "Fjord")


@pytest.mark.parametrize("name", SITUATIONS)
def test_an_answer_at_an_endpoint(server: ChatServer, name: str) -> None:
    situation = SITUATIONS[name]
    server.changes = dict(situation.changes)
    if situation.error:
        with pytest.raises(RequestError, match=situation.error) as caught:
            generate_for(DOCUMENT, METHODS["diverse"], 3, openai(server))
        assert caught.value.hint or "refused" in situation.error
        assert "chat endpoint" not in caught.value.hint
    else:
        made = generate_for(DOCUMENT, METHODS["diverse"], 3, openai(server))
        assert tuple(made.queries) == situation.queries
        assert made.problems == situation.problems
    assert len(server.bodies) == situation.requests


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, situation in SITUATIONS.items() if situation.queries or not situation.error]
)
def test_the_same_answer_in_a_batch(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace, tmp_path: Path, name: str
) -> None:
    situation = SITUATIONS[name]
    values = {**settings(server, make_corpus(1).id), "per_doc": 3}
    (path,) = write_batch(workspace, SynthesisConfig.from_dict(values), tmp_path)
    body = completion(**situation.changes)
    lines = [
        {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}} for line in read_lines(path)
    ]
    assert read_batch(workspace, write_lines(tmp_path / "back.jsonl", lines)).answers == 1
    server.changes = dict(situation.changes)
    result = None
    try:
        result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    except ConfigError:
        assert not situation.queries
    if result is not None:
        (line,) = query_sets.iter_lines(workspace, result["query_set"])
        assert tuple(line["queries"]) == situation.queries
    # The second attempt at most, with its tries; an answer without a query is asked for once more.
    assert len(server.bodies) == situation.requests - (not situation.error) + (not situation.queries)


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize(
    "text",
    ["What is a fjord?\n2.", " What is a fjord?\nBad question: a fjo", "<think>\na\nb</think>\nWhat is a fjord?\nb"],
)
def test_a_stop_text_that_stays_in_the_answer_is_cut_with_what_follows(
    server: ChatServer, text: str, reason: str
) -> None:
    """Seen at transformers 5.23.0, which leaves it in the answer; others know none and write up to the limit."""
    server.changes = {"message": {"content": text}, "finish_reason": reason}
    made = generate_for(DOCUMENT, METHODS["inpars_gbq"], 1, openai(server))
    assert (made.queries, made.problems, len(server.bodies)) == (["What is a fjord?"], {}, 1)


@pytest.mark.parametrize("field", ["id", "model", "message"])
def test_half_of_a_surrogate_pair_costs_no_answer(server: ChatServer, field: str) -> None:
    """A server may cut a text within an emoji; the answer was paid for, and the half may stand where nothing reads."""
    message = {"role": "assistant", "content": LIST.replace("1. ", "1. \ud83d")}
    server.changes = {"message": message} if field == "message" else {field: "x\ud800"}
    made = generate_for(DOCUMENT, METHODS["diverse"], 3, openai(server))
    assert len(made.queries) == 3
    assert all(query.isascii() for query in made.queries)
    assert len(server.bodies) == 1


@pytest.mark.slow
def test_a_cut_answer_is_a_failure_that_is_shown(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace
) -> None:
    server.changes = dict(SITUATIONS["cut at the limit"].changes)
    job = make_job(**{**settings(server, make_corpus(4).id), "per_doc": 3})
    result = SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) == 4
    assert (result["n_queries"], result["incomplete"]) == (8, 4)
    assert sorted(result["notes"]) == [
        "4 documents with an answer that was cut off: what it ended with was left out.",
        "Fewer than 3 queries for 4 documents of 4.",
    ]
    failures = list(read_jsonl(query_sets.files(workspace, result["query_set"]).failures))
    assert {line["reason"] for line in failures} == {"Only 2 of 3 queries. The answer was cut off."}
    assert "cut off" in read_json(job.folder / "heartbeat.json")["message"]


@pytest.mark.slow
def test_a_prompt_that_the_server_cuts_is_counted_and_said(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace
) -> None:
    """Ollama answers 200 with the tokens that it kept (ollama #17889, #3839)."""
    rows = [(f"d{i}", "", f"Text {i}. " + "Ice carves rock, and the sea fills the valley. " * 400) for i in range(3)]
    server.changes = {"message": {"content": LIST}, "usage": {"prompt_tokens": 2050, "completion_tokens": 20}}
    values = {**settings(server, make_corpus(rows=rows).id), "per_doc": 3, "max_document_tokens": 8000}
    result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    (note,) = result["notes"]
    assert note.startswith("3 prompts: the endpoint counted far fewer tokens than were sent")
    assert all(line["problems"] == {"prompt_cut": 1} for line in query_sets.iter_lines(workspace, result["query_set"]))
    server.changes["usage"] = {"prompt_tokens": 4600, "completion_tokens": 20}
    result = SynthesisRun(make_job(**{**values, "seed": 1}), api_key=KEY).execute()
    assert result["notes"] == []


@pytest.mark.slow
def test_an_answer_that_could_not_be_read_is_asked_for_by_the_next_run_and_by_no_resume_after_a_kill(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace
) -> None:
    server.answer = lambda prompt, m: "```\n```" if "Thing1" in prompt else "1. a\n2. b\n3. c"
    corpus = make_corpus(3)
    job = make_job(**{**settings(server, corpus.id), "per_doc": 3})
    run = SynthesisRun(job, api_key=KEY)
    run._close = lambda: {"complete": True}  # type: ignore[method-assign]  # killed: the attempt never ends
    run.execute()
    assert len(server.bodies) == 4
    for _ in range(3):
        again = SynthesisRun(job, api_key=KEY)
        again._close = lambda: {"complete": True}  # type: ignore[method-assign]
        again.execute()
    assert len(server.bodies) == 4, "what was paid is not paid again"
    SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) == 4
    server.answer = lambda prompt, m: "1. a\n2. b\n3. c"
    result = SynthesisRun(make_job(**job.config), api_key=KEY).execute()
    assert len(server.bodies) == 5
    assert (result["n_documents"], result["failures"]) == (3, 0)
    with AnswerCache(workspace) as cache:
        assert len(cache) == 4


@pytest.mark.slow
def test_a_better_reader_reads_what_was_paid_for(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.changes = dict(SITUATIONS["channels"].changes)
    values = {**settings(server, make_corpus(3).id), "per_doc": 3}
    with monkeypatch.context() as earlier:
        earlier.setattr("cdp.synthesis.generate._parsed", lambda answer, method, m: method.read("", m))
        with pytest.raises(ConfigError):
            SynthesisRun(make_job(**values), api_key=KEY).execute()
    asked = len(server.bodies)
    result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    assert (result["n_queries"], len(server.bodies)) == (9, asked)


NEW = ("o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-mini", "openai/gpt-5-nano")
NEWER = ("gpt-5.1", "gpt-5-chat-latest", "gpt-5.2-chat-latest")
OLD = (MODEL, "gpt-4o-mini", "qwen3-8b", "o3x", "my-gpt-4")


@pytest.mark.slow
@pytest.mark.parametrize("model", [*NEW, *NEWER, *OLD])
@pytest.mark.parametrize("method", ["diverse", "inpars_gbq"])
def test_a_batch_line_is_the_request_of_the_same_job_online(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace, tmp_path: Path, model: str,
    method: str,
) -> None:  # fmt: skip
    """OpenAI docs, reasoning models: max_completion_tokens, no temperature, top_p, stop."""
    values = {**settings(server, make_corpus(1).id), "model": model, "method": method, "per_doc": 2, "output": "list"}
    server.models = {model}
    (path,) = write_batch(workspace, SynthesisConfig.from_dict(values), tmp_path)
    bodies = [line["body"] for line in read_lines(path)]
    result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    assert [body for body in bodies if body in server.bodies] == bodies
    newest = model in NEW
    names = ["max_tokens", "max_completion_tokens"]
    other, tokens = names[::-1] if model in OLD else names
    for body in server.bodies:
        assert body[tokens] == (64 if method == "inpars_gbq" else 2048)
        assert other not in body
        assert ("temperature" in body, "stop" in body) == (not newest, not newest and method == "inpars_gbq")
    kept = query_sets.load(workspace, result["query_set"]).parameters
    assert kept["temperature"] == (None if newest else 0.7 if method == "inpars_gbq" else 0.0)
    assert kept["max_output_tokens"] == (64 if method == "inpars_gbq" else 2048)


@pytest.mark.slow
def test_what_a_model_refused_on_the_way_is_not_recorded_as_sent(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace
) -> None:
    run = SynthesisRun(make_job(**{**settings(server, make_corpus(2).id), "temperature": 0.4}), api_key=KEY)
    run.source._client.learnt.refused = {"temperature"}  # type: ignore[attr-defined]  # as a refusal teaches it
    result = run.execute()
    assert all("temperature" not in body for body in server.bodies)
    assert query_sets.load(workspace, result["query_set"]).parameters["temperature"] is None


@pytest.mark.parametrize(("name", "value"), [("temperature", 1.3), ("max_output_tokens", 300)])
def test_a_setting_without_effect_is_refused(name: str, value: float) -> None:
    config = SynthesisConfig.from_dict({"corpus": "c", "method": "inpars_gbq", name: value})
    with pytest.raises(ConfigError, match=f"{name} has no effect: the method inpars_gbq sets it to"):
        method_of(config)
    assert method_of(config.replace(method="diverse"))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["diverse", "inpars_gbq"])
def test_another_seed_is_another_draw(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace, method: str
) -> None:
    values = {**settings(server, make_corpus(2).id), "method": method, "per_doc": 3, "limit": 2}
    seeds = list[set[object]]()
    for seed in (0, 11, 12, 12):
        before = len(server.bodies)
        result = SynthesisRun(make_job(**values, seed=seed), api_key=KEY).execute()
        sent = {body.get("seed") for body in server.bodies[before:]}
        assert query_sets.load(workspace, result["query_set"]).parameters["seed"] == seed
        seeds.append(sent)
    first, eleven, twelve, again = seeds
    assert again == set(), "the same seed is the same draw"
    assert first == ({None} if method == "diverse" else {0, 1, 2, 3, 4} & first)
    assert eleven
    assert twelve
    assert not eleven & twelve
