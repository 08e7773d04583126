"""Batch files: what a job would ask, written; what came back, kept; the job then pays only for the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.llm.cache import AnswerCache
from cdp.synthesis import batch
from cdp.synthesis.batch import read_batch, write_batch
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MALFORMED, MODEL, ChatServer, asked_for, completion, numbered


def answered(requests: list[dict[str, object]]) -> list[dict[str, object]]:
    """What a batch service returns for these requests."""
    lines: list[dict[str, object]] = []
    for request in requests:
        body = request["body"]
        assert isinstance(body, dict)
        prompt = body["messages"][0]["content"]
        completion = {
            "model": body["model"],
            "choices": [{"finish_reason": "stop", "message": {"content": numbered(prompt, asked_for(prompt))}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }
        response = {"status_code": 200, "body": completion}
        lines.append({"id": "r", "custom_id": request["custom_id"], "response": response, "error": None})
    return lines


def read_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def canonical(body: object) -> str:
    return json.dumps(body, sort_keys=True)


def config_of(server: ChatServer, corpus_id: str, **more: object) -> dict[str, object]:
    base = {
        "generator": "openai",
        "model": MODEL,
        "base_url": server.url,
        "per_doc": 3,
        "concurrency": 2,
        "output": "list",
    }
    return {"corpus": corpus_id, **base, **more}


@pytest.mark.slow
def test_answers_of_a_batch_are_not_asked_for_again(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace, tmp_path: Path
) -> None:
    values = config_of(server, make_corpus(10).id)
    config = SynthesisConfig.from_dict(values)
    (path,) = write_batch(workspace, config, tmp_path / "out")
    requests = read_lines(path)
    assert len({request["custom_id"] for request in requests}) == 10
    assert all((request["method"], request["url"]) == ("POST", "/v1/chat/completions") for request in requests)
    assert KEY not in path.read_text()
    lines = answered(requests)
    lines[2] = {"custom_id": requests[2]["custom_id"], "response": None, "error": {"message": "expired"}}
    lines[5]["response"]["status_code"] = 500  # type: ignore[index]
    lines.append({"custom_id": "someone-elses", "response": {}})
    back = write_lines(tmp_path / "back.jsonl", list(reversed(lines)))
    read = read_batch(workspace, back)
    assert (read.answers, read.failed) == (8, 3)
    assert any("expired" in problem for problem in read.problems)
    assert any("not one of our requests" in problem for problem in read.problems)
    result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    assert result["n_documents"] == 10
    assert len(server.bodies) == 2
    left_open = [requests[2]["body"], requests[5]["body"]]
    assert sorted(map(canonical, server.bodies)) == sorted(map(canonical, left_open))


KEY_OF_OURS = "cdp-" + "0123456789abcdef" * 4
DAMAGED: dict[str, bytes] = {
    name: json.dumps({"custom_id": KEY_OF_OURS, "response": {"status_code": 200, "body": json.loads(body)}}).encode()
    for name, (body, _) in MALFORMED.items()
    if name in ("message null", "choices empty", "content number", "refusal", "tool call", "a list", "null")
} | {
    "deep": b"[" * 100_000,
    "no object": b'"text"',
    "no JSON": b"<html>",
    "invalid UTF-8": b'{"custom_id": "\xff"}',
    "id of another type": b'{"custom_id": 7, "response": null}',
    "id with half a character": b'{"custom_id": "cdp-\\ud83d", "response": null}',
    "id of 64 other characters": json.dumps(
        {"custom_id": "cdp-" + "ü" * 64, "response": {"body": completion()}}
    ).encode(),
    "error is a number": json.dumps({"custom_id": KEY_OF_OURS, "error": 7}).encode(),
    "error is a text": json.dumps({"custom_id": KEY_OF_OURS, "error": "expired"}).encode(),
    "error without words": json.dumps({"custom_id": KEY_OF_OURS, "error": {"message": {"a": []}}}).encode(),
    "response is a list": json.dumps({"custom_id": KEY_OF_OURS, "response": []}).encode(),
    "status is a text": json.dumps({"custom_id": KEY_OF_OURS, "response": {"status_code": "200"}}).encode(),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_line_that_is_no_answer_is_counted_and_the_others_are_kept(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    good = {"custom_id": "cdp-" + "f" * 64, "response": {"status_code": 200, "body": completion()}}
    path = tmp_path / "back.jsonl"
    path.write_bytes(DAMAGED[name] + b"\n" + json.dumps(good).encode() + b"\n")
    read = read_batch(workspace, path)
    assert (read.answers, read.failed) == (1, 1)
    (problem,) = read.problems
    assert problem.startswith("Line 1: ")
    assert len(problem) < 400
    with AnswerCache(workspace) as cache:
        assert cache.get("f" * 64) is not None
        assert len(cache) == 1


def test_a_second_batch_holds_only_what_is_open(
    server: ChatServer, make_corpus: CorpusMaker, workspace: Workspace, tmp_path: Path
) -> None:
    config = SynthesisConfig.from_dict(config_of(server, make_corpus(6).id))
    (first,) = write_batch(workspace, config, tmp_path / "one")
    read_batch(workspace, write_lines(tmp_path / "back.jsonl", answered(read_lines(first)[:4])))
    (second,) = write_batch(workspace, config, tmp_path / "two")
    assert read_lines(second) == read_lines(first)[4:]
    read_batch(workspace, write_lines(tmp_path / "back2.jsonl", answered(read_lines(second))))
    assert write_batch(workspace, config, tmp_path / "three") == []


def test_sampled_methods_have_one_request_per_query(
    server: ChatServer, make_corpus: CorpusMaker, workspace: Workspace, tmp_path: Path
) -> None:
    config = SynthesisConfig.from_dict(config_of(server, make_corpus(2).id, method="inpars_gbq"))
    (path,) = write_batch(workspace, config, tmp_path)
    bodies = [request["body"] for request in read_lines(path)]
    assert [body["seed"] for body in bodies] == [0, 1, 2, 0, 1, 2]  # type: ignore[index]
    assert all(body["stop"] == ["\n"] for body in bodies)  # type: ignore[index]


def test_files_stay_within_the_limits_and_equal_documents_share_a_request(
    server: ChatServer,
    make_corpus: CorpusMaker,
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "MAX_REQUESTS", 3)
    rows = [(f"d{i}", "", f"Text number {i % 7} of them.") for i in range(10)]
    config = SynthesisConfig.from_dict(config_of(server, make_corpus(rows=rows).id))
    paths = write_batch(workspace, config, tmp_path)
    assert [path.name for path in paths] == ["batch-0001.jsonl", "batch-0002.jsonl", "batch-0003.jsonl"]
    assert [len(read_lines(path)) for path in paths] == [3, 3, 1]
    with pytest.raises(InputError, match="already"):
        write_batch(workspace, config, tmp_path)


@pytest.mark.slow
def test_the_batch_and_the_run_give_the_same_set(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace, tmp_path: Path
) -> None:
    values = config_of(server, make_corpus(5).id)
    (path,) = write_batch(workspace, SynthesisConfig.from_dict(values), tmp_path)
    direct = SynthesisRun(make_job(**values), api_key=KEY).execute()
    for kept in workspace.llm_cache.iterdir():
        kept.unlink()
    read_batch(workspace, write_lines(tmp_path / "back.jsonl", answered(read_lines(path))))
    through_batch = SynthesisRun(make_job(**values), api_key=KEY).execute()
    assert through_batch["usage"]["requests"] == 0
    hashes = {query_sets.load(workspace, run["query_set"]).content_hash for run in (direct, through_batch)}
    assert len(hashes) == 1
