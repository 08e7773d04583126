"""Anything at all as an answer: it ends in queries or in a sentence, in time in proportion to its length."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdp.base.records import checked
from cdp.base.workspace import parse_json, to_json
from cdp.llm.answers import Malformed, Usage, paid_for, read_batch_line, read_completion
from cdp.query_sets.store import LINE, document_queries
from cdp.synthesis import parsing
from cdp.synthesis.methods import METHODS
from cdp.synthesis.parsing import LONGEST_PASSAGE, Parsed
from tests.synthesis.server import MALFORMED, ODD, completion

SOAKING = os.environ.get("CDP_SOAK", "") not in ("", "0")
SHORT, LONG = 40, 10_000
READERS: dict[str, Callable[[str, int], Parsed]] = {
    reader.__name__: reader
    for reader in (parsing.parse, parsing.parse_line, parsing.parse_passage, parsing.parse_after_summary,
                   parsing.parse_task_query)
}  # fmt: skip
PIECES = (
    "<think>", "</think>", "<think", "<thought", "```", "~~~", "```json\n", "\n", "\r\n", " ", "\t", "\x00", "\u2028",
    "1.", "2)", "(3)", "①", "十", "１．", "- ", "* ", "**", "_", "#", ">", "`", "{", "}", "[", "]", '"', "\\", ":", ",",
    '{"queries": [', '["a", ', "\\ud83d", "\ud83d", "\udc00", "😀", "question:", "Query:", "Task:", "Language:",
    "：", "What is it?", "I'm sorry", "here are", "「", "」", "“", "”", "null", "1e999", "9" * 5000, "[" * 2000,
    "a" * 500, "مرحبا", "\u200b",
)  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)), max_size=40).map("".join)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
FIELDS = ("choices", "message", "finish_reason", "usage", "model", "created", "logprobs")
# Numbers that JSON can hold and nothing counts with.
NUMBERS = st.one_of(st.sampled_from((10**399, -(10**4000), 1e308, float("inf"), float("nan"), 2**63)), st.floats())
SEEDS = [body for body, _ in (MALFORMED | ODD).values() if len(body) < 20_000] + [json.dumps(completion()).encode()]


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A good answer with some of its fields replaced by anything, or one of the server's with bytes changed."""
    if draw(st.booleans()):
        changes = draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))
        if draw(st.booleans()):
            changes["message"] = draw(
                st.dictionaries(st.sampled_from(("content", "refusal", "tool_calls")), st.one_of(JSON, TEXTS))
            )
        body = completion(**changes)
        if draw(st.booleans()) and isinstance(body["choices"], list) and body["choices"]:
            values = draw(st.lists(st.one_of(NUMBERS, JSON), max_size=3))
            body["choices"][0] = {
                **completion()["choices"][0],
                "logprobs": {"content": [{"logprob": v} for v in values]},
            }
            body["usage"] = {"prompt_tokens": draw(NUMBERS), "completion_tokens": 20}
        return json.dumps(body).encode("utf-8", "replace")
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


def check_text(name: str, text: str, m: int) -> None:
    parsed = READERS[name](text, m)
    assert len(parsed.queries) <= m
    assert all(count > 0 for count in parsed.problems.values())
    assert len(parsed.notes) in (0, len(parsed.queries))
    for query in parsed.queries:
        query.encode("utf-8")
        assert query == " ".join(query.split())
        assert any(character.isalnum() for character in query)
        assert len(query) <= LONGEST_PASSAGE + parsing.MARKS
    json.dumps([*parsed.queries, *parsed.notes], ensure_ascii=False).encode("utf-8")


def check_body(data: bytes) -> None:
    expected = Usage(100, 20, 1)
    answer, reason = None, ""
    try:
        answer = read_completion(data, expected)
    except Malformed as problem:
        reason = str(problem)
    if answer is None:
        assert reason.isprintable()
        assert 0 < len(reason) < 500
        usage = paid_for(data, expected)
    else:
        for text in (answer.text, answer.model, answer.finish_reason):
            text.encode("utf-8")
        for method in METHODS.values():
            parsed = method.read(answer.text, 3)
            line = {"document_id": "d", "queries": list(parsed.queries), "notes": list(parsed.notes),
                    "logprobs": [answer.logprob], "problems": dict(parsed.problems), "position": 0}  # fmt: skip
            stored = parse_json(to_json(line).encode("utf-8", "backslashreplace"))
            assert document_queries(checked(LINE, stored, Path("queries.jsonl"))).queries == line["queries"]
        usage = answer.usage
    assert 0 <= usage.input_tokens <= 10_000_000
    assert 0 <= usage.output_tokens <= 10_000_000
    assert usage.requests == 1
    batch = b'{"custom_id": "x", "response": {"status_code": 200, "body": ' + data + b"}}"
    try:
        read_batch_line(batch, re.compile("x"))
    except Malformed as problem:
        reason = str(problem)
    assert reason.isprintable()


fuzzed = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@settings(fuzzed, max_examples=SHORT, derandomize=True)
@given(text=TEXTS, m=st.integers(1, 20))
def test_any_text_is_read(name: str, text: str, m: int) -> None:
    check_text(name, text, m)


@pytest.mark.slow
@settings(fuzzed, max_examples=3 * SHORT, derandomize=True)
@given(data=bodies())
def test_any_body_is_an_answer_or_a_sentence(data: bytes) -> None:
    check_body(data)


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
@settings(fuzzed, max_examples=LONG if SOAKING else 1)
@given(text=TEXTS, m=st.integers(1, 20))
def test_ten_thousand_texts_are_read(name: str, text: str, m: int) -> None:
    check_text(name, text, m)


@pytest.mark.soak
@settings(fuzzed, max_examples=LONG if SOAKING else 1)
@given(data=bodies())
def test_ten_thousand_bodies_are_answers_or_sentences(data: bytes) -> None:
    check_body(data)


# What is repeated: each of them made a pattern look at the same run from each of its places, or could have.
LONG_RUNS = (
    "<think", "<think ", "</think ", "\n", " \n", "``` " + " " * 60 + "!", "```" + " ", "*", "**a", "[", '["', '"',
    '"a\\', "question", "* _ ", " ", "1. ", "Query: ", "：", "_ * ", "\t",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", LONG_RUNS)
def test_a_long_answer_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """Eight times the text takes far less than the 64 times of a quadratic pattern."""

    def seconds(n: int) -> float:
        texts = [before + piece * (n // len(piece)) + "!" for before in ("", "1. a?\n", "question: ")]
        began = time.process_time()
        for reader in READERS.values():
            for text in texts:
                reader(text, 5)
        return time.process_time() - began

    short = max(seconds(2_500) for _ in range(2))
    assert seconds(20_000) < 30 * short + 0.05
