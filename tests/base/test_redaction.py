"""No key that the process knows is written, whole or a part of it, in whatever form it comes."""

from __future__ import annotations

import html
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.base import failures, redaction
from cdp.base.errors import InputError
from cdp.base.redaction import CUT, PART, clean, cleaned_output, holds_key
from cdp.base.workspace import Workspace, append_jsonl, write_json, write_jsonl
from cdp.benchmarks import judged
from cdp.llm.answers import Answer
from cdp.llm.cache import AnswerCache
from cdp.synthesis.methods import METHODS
from tests import strategies

KEY = "sk-proj-Ab9_dEf0123/456789+AbCdEf-xYzQw77="
BETWEEN = ("", "\n", " ", "\t", "\u200b", "\u00ad", "\ufeff", "**", "`", "\\n", "\\u200b", "\x07")
ONE = ("<think>so</think>", "<reasoning effort='1'>\n</reasoning>")

# How one character is written.
WRITTEN: tuple[Callable[[str], str], ...] = (
    str,
    lambda c: f"\\u{ord(c):04x}",
    lambda c: f"\\u{ord(c):04X}",
    lambda c: f"\\\\u{ord(c):04x}",
    lambda c: f"\\x{ord(c):02x}",
    lambda c: f"%{ord(c):02x}",
    lambda c: f"%{ord(c):02X}",
    lambda c: f"%25{ord(c):02x}",
    lambda c: f"&#{ord(c)};",
    lambda c: f"&#x{ord(c):x};",
    lambda c: "\\/" if c == "/" else c,
)


@st.composite
def disguised(draw: st.DrawFn) -> str:
    """The key, or its beginning or end of 12 characters and more, each character written in some way."""
    shown = KEY
    if draw(st.booleans()):
        n = draw(st.integers(PART, len(KEY)))
        shown = KEY[:n] if draw(st.booleans()) else KEY[-n:]
    rng = random.Random(draw(st.integers(0, 2**32)))
    ways = draw(st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=4))
    between = draw(st.sampled_from(BETWEEN))
    pieces = [rng.choice(ways)(c) + (between if rng.random() < 0.3 else "") for c in shown]
    if draw(st.booleans()):
        pieces.insert(rng.randrange(len(pieces)), draw(st.sampled_from(ONE)))
    return "".join(pieces)


def unwrapped(text: str) -> str:
    """The text as somebody reads it who undoes every escape; written apart from what is tested."""
    for _ in range(4):
        text = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
        text = re.sub(r"\\+x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)
        text = re.sub(r"\\+[nrt]", "", html.unescape(unquote(text)))
    return re.sub(r"[\s\\*`\u200b\u00ad\ufeff\x00-\x1f]", "", text)


def holding(text: str) -> list[str]:
    """The parts of the key in a text, also once its thinking blocks are left out."""
    once = unwrapped(text)
    bare = re.sub(r"(?s)<(think|reasoning)[^<>]*>.*?</\1>", "", once)
    parts = [KEY[i : i + PART] for i in range(len(KEY) - PART + 1)]
    return [part for part in parts if part in once or part in bare]


def all_written(folder: Path) -> str:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert len(paths) >= 8
    return "\n----\n".join(path.read_bytes().decode("utf-8", "replace") for path in paths)


def write_everywhere(folder: Path, text: str) -> None:
    """Hand a text to every writer, as answers, failures and prints do."""
    workspace = Workspace(folder)
    write_json(folder / "failure.json", {"message": text, "deep": [{text: (text, 1)}]})
    append_jsonl(folder / "queries.jsonl", [{"document_id": "d", "queries": [text]}, {"queries": [text, text]}])
    append_jsonl(folder / "parsed.jsonl", [{m.name: m.read(text, 3).queries} for m in METHODS.values()])
    write_jsonl(folder / "rankings.jsonl", ({"query": text} for _ in range(2)))
    judged.write_grades(folder, [judged.Grade("q", "d", 1, text)])
    kept = failures.Failures(folder / "failures.jsonl", "a stage")
    for error in (ValueError(text), InputError(text, hint=text), ValueError("x" * 290 + text)):
        kept.record("d", error, "y" * (failures.LONGEST_TEXT - 5) + text)
    with AnswerCache(workspace) as cache:
        cache.put("k", Answer(text, model=text, finish_reason=text))
    with open(folder / "worker.log", "w", errors="backslashreplace") as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", log)
        patch.setattr(sys, "stderr", log)
        with cleaned_output():
            print("loading", text[:5], end="")
            print(text[5:], file=sys.stdout)
            print(text, file=sys.stderr, flush=True)


@pytest.mark.slow
@strategies.examples(60, 3_000)
@given(form=disguised(), before=st.sampled_from(("", "1. What is ", '{"queries": ["', "caf\u00e9 \ud800 ")))
def test_no_writer_writes_a_key_in_any_form(form: str, before: str) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("CDP_API_KEY", KEY)
        text = f'{before}{form}"? after'
        assert holding(clean(text)) == []
        write_everywhere(Path(folder), text)
        written = all_written(Path(folder))
    assert holding(written) == []
    assert written.count(CUT) >= 8
    assert '"? after' in written.replace("\\", "")


@pytest.mark.parametrize("key", ["ollama", "EMPTY", "none", "test", "sk-no-key-required", "x" * 40, "4096", ""])
def test_a_placeholder_shreds_no_text(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_API_KEY", key)
    text = f"What does ollama do with EMPTY, none, test or {key} of 4096 tokens and {'x' * 60}?"
    assert clean(text) == text


@pytest.mark.parametrize("text", ["\\", "\\u", "&", "%4", "<think>", "&aaaaaaaaaaaaaaaa"])
def test_a_long_text_takes_time_by_its_length(text: str) -> None:
    """As long an answer as is read at all; by the square of its length it would be days."""
    began = time.process_time()
    holds_key(text * (2**20 // len(text)))
    assert time.process_time() - began < 5


def test_names_and_paths_are_no_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys2024.json").write_text("{}")
    monkeypatch.setenv("MY_TOKENIZER", "sentence-transformers/all-MiniLM-L6-v2")
    monkeypatch.setenv("SERVICE_KEY_FILE", str(tmp_path / "keys2024.json"))
    text = f"sentence-transformers/all-MiniLM-L6-v2 and {tmp_path / 'keys2024.json'} and {tmp_path}/other.json"
    assert clean(text) == text


def test_words_of_a_passphrase_stay_and_the_whole_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "the lake is deep in winter")
    assert clean("the lake is deep, and in winter the lake is frozen") == (
        "the lake is deep, and in winter the lake is frozen"
    )
    for form in ("the lake is deep in winter", "the+lake+is+deep+in+winter", "the%20lake%20is%20deep%20in%20winter"):
        assert clean(f"it: {form}!") == f"it: {CUT}!"


def test_a_given_key_is_looked_for_as_long_as_its_owner_lives() -> None:
    class Client:
        pass

    given_key = "sk-given-Zx81mQ44ppLrT0"
    one, other = Client(), Client()
    redaction.know(one, given_key)
    redaction.know(other, given_key)
    del one
    assert clean(f"by {given_key}") == f"by {CUT}"
    del other
    assert clean(f"by {given_key}") == f"by {given_key}"


def test_what_a_value_of_a_variable_becomes_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("sk-first-Qw81mZ44ppLr", "sk-other-Lm73xY22vvNq"):
        monkeypatch.setenv("CDP_API_KEY", key)
        assert clean(json.dumps({"a": key})) == json.dumps({"a": CUT})
    monkeypatch.delenv("CDP_API_KEY")
    assert clean("sk-other-Lm73xY22vvNq") == "sk-other-Lm73xY22vvNq"
