"""The reader of refusals against the table of what servers say, and what is learnt of a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.llm.refusals import Learnt, Refusal, read_refusal, sentences
from tests.endpoint_situations import NO_REFUSAL, SITUATIONS


def read(status: int, headers: dict[str, str], body: bytes) -> Refusal | None:
    return read_refusal(status, {name.lower(): value for name, value in headers.items()}, body)


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_server_says_is_read(name: str) -> None:
    said = SITUATIONS[name]
    found = read(said.status, said.headers, said.body)
    assert found is not None
    assert found.words.startswith(said.words)
    assert not any(mark in found.words for mark in ("/srv/", "Traceback", "LiteLLM: model group"))
    assert (found.refuses, found.limit) == (said.refuses, said.limit)
    assert found.retry_after == (None if said.retry_after is None else pytest.approx(said.retry_after))
    assert found.status == (said.inside or said.status)


def test_what_was_sent_is_not_shown_as_words() -> None:
    said = SITUATIONS["words: infinity, which repeats what was sent"]
    found = read(said.status, said.headers, said.body)
    assert found is not None
    assert found.words == said.words


@pytest.mark.parametrize("name", NO_REFUSAL)
def test_an_answer_is_no_refusal(name: str) -> None:
    assert read(200, {}, json.dumps(NO_REFUSAL[name]).encode()) is None


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"error": ' * 5000 + b"1" + b"}" * 5000,
        b'{"error": {"code": 1e999}}',
        b'{"error": {"message": ["a", {"message": {"message": []}}]}}', b'{"detail": {"loc": 7, "msg": null}}',
        b'{"error": {"message": "' + b"x" * 70_000 + b'"}}', b"<html>" + b"<" * 60_000,
        b'{"error": {"details": [null, {"retryDelay": 5}], "param": {"a": 1}, "code": {"b": 2}}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [200, 400, 429, 500, 799])
def test_any_body_gives_short_words_on_one_line(status: int, body: bytes) -> None:
    found = read(status, {}, body)
    assert found is None if found is None else found.words.isprintable() and 0 < len(found.words) <= 2**17
    assert status == 200 or found is not None


@pytest.mark.parametrize(
    "said",
    [
        "inf",
        "-inf",
        "1e999",
        "Thu, 01 Jan 99999999999 00:00:30 GMT",
        "Thu, 99 Foo 0 99:99:99 GMT",
        ",",
        "\x00",
        "9" * 5000,
    ],
)
def test_any_pause_is_none_or_at_most_a_day(said: str) -> None:
    for headers, words in (
        ({"retry-after": said}, "x"),
        ({"retry-after-ms": said}, "x"),
        ({}, f"try again in {said}s"),
    ):
        found = read_refusal(429, headers, json.dumps({"error": words}).encode())
        assert found is not None
        assert found.retry_after is None or 0 < found.retry_after <= 86_400


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 1m3.2s.", 63.2),
        ("Please retry after 26 seconds.", 26),
        ("Model overloaded, try again in 20 s", 20),
        ("Retry in 500ms", 0.5),
        ("Rate limit reached. Try again in 6m0s.", 360),
        ("Try again in 5 minutes", 300),
        ("Retry after 1 minute 30 seconds", 90),
        ("Try again in a while, or retry after 8 secs", 8),
        ("Try again in 3 models", None),
    ],
)
def test_a_pause_said_in_words_is_kept(said: str, seconds: float | None) -> None:
    found = read_refusal(429, {}, json.dumps({"error": {"message": said}}).encode())
    assert found is not None
    assert found.retry_after == (seconds if seconds is None else pytest.approx(seconds))


def test_what_is_learnt_replaces_what_is_sent_and_is_kept(tmp_path: Path) -> None:
    path = tmp_path / Learnt.FILE
    learnt = Learnt("m", "http://h/v1", path)
    body = {"messages": [], "max_tokens": 9, "temperature": 0.7, "response_format": {"type": "json_schema"}}
    for refuses in ("max_tokens", "temperature", "response_format"):
        assert learnt.learn(Refusal(400, "", refuses=refuses), learnt.fit(body))
    fitted = {"messages": [], "max_completion_tokens": 9, "response_format": {"type": "json_object"}}
    assert learnt.fit(body) == fitted == Learnt("m", "http://h/v1", path).fit(body)
    assert not learnt.learn(Refusal(400, "", refuses="seed"), learnt.fit(body)), "it was not sent"
    assert Learnt("other", "http://h/v1", path).fit(body) == body
    assert learnt.learn(Refusal(400, "", refuses="max_completion_tokens"), fitted)
    assert learnt.learn(Refusal(400, "", refuses="response_format"), fitted)
    assert learnt.fit(body) == {"messages": []}
    assert learnt.fit(body, {"messages": [1], "temperature": 1.0}) == {"messages": [1]}
    assert sentences(tmp_path) == [learnt.sentence]
    assert "m at http://h/v1 takes no JSON mode, no JSON schema, no max_completion_tokens" in learnt.sentence


def test_the_number_of_texts_is_learnt_from_a_limit_or_by_halves(tmp_path: Path) -> None:
    learnt = Learnt("m", "http://h/v1", tmp_path / Learnt.FILE)
    sent = {"input": ["x"] * 32}
    assert not learnt.learn(Refusal(400, "", refuses="texts", limit=32), sent), "a limit that the request kept"
    assert learnt.learn(Refusal(400, "", refuses="texts"), sent)
    assert learnt.texts == 16
    assert learnt.learn(Refusal(400, "", refuses="texts", limit=10), sent)
    assert Learnt("m", "http://h/v1", tmp_path / Learnt.FILE).texts == 10
    assert learnt.sentence.endswith("takes at most 10 texts a request: requests are sent accordingly.")
    assert not learnt.learn(Refusal(400, "", refuses="texts", limit=0), {"input": ["x"]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"m at u": 7}',
        '{"m at u": {"refused": "x", "texts": -1}}',
        '{"m at u": {"refused": [[], 7]}}',
        "\x00",
    ],
)
def test_a_damaged_file_is_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / Learnt.FILE).write_text(text, encoding="utf-8")
    assert Learnt("m", "u", tmp_path / Learnt.FILE).sentence == ""
    assert sentences(tmp_path) == []
