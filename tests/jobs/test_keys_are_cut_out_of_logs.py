"""Whoever may look at a job sees no key in it, whatever was printed."""

from __future__ import annotations

import pytest

from cdp.base.redaction import CUT, redact
from cdp.base.workspace import Workspace
from cdp.services import jobs
from tests.pages.support import ended_job

KEYS = {
    "OpenAI": "sk-proj-AbCdEf0123456789AbCdEf",
    "Hugging Face": "hf_AbCdEfGhIjKlMnOpQrStUv",
    "bearer": "Authorization: Bearer abcdef0123456789.xyz",
    "named": 'api_key="0123456789abcdef"',
    "address": "http://ada:p4ssw0rd@db.example/x",
    "cloud": "AKIAABCDEFGHIJKLMNOP",
}
SECRET = {"named": "0123456789abcdef", "bearer": "abcdef0123456789.xyz", "address": "p4ssw0rd"}


@pytest.mark.parametrize("name", KEYS)
def test_what_looks_like_a_key_is_cut_out(name: str) -> None:
    cut = redact(f"before {KEYS[name]} after")
    assert SECRET.get(name, KEYS[name]) not in cut
    assert CUT in cut
    assert cut.startswith("before ")
    assert cut.endswith(" after")


@pytest.mark.parametrize(
    "line",
    ["step 12: loss 0.5, 1,234 tokens: 5678901", "http://localhost:8000/v1 answered 200", "risk-averse task-oriented",
     "tokenizer=static-minilm password: x", "2026-01-02 03:04:05 a@b.example"],
)  # fmt: skip
def test_ordinary_lines_stay(line: str) -> None:
    assert redact(line) == line


def test_this_processs_own_secrets_are_known_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "plain words that nobody would take for a key")
    assert redact("it said: plain words that nobody would take for a key.") == f"it said: {CUT}."


def test_log_and_failure_show_no_key(workspace: Workspace) -> None:
    key = KEYS["OpenAI"]
    told = {"kind": "bug", "message": f"KeyError {key}", "hint": f"see {key}", "log_tail": [key]}
    folder = ended_job(workspace, "training-1", "training", {}, outcome="failed", failure=told)
    (folder / "worker.log").write_text(f"first line\nwith {key} in it\nlast line\n")
    assert key not in jobs.log(workspace, "training-1")
    assert key not in "".join(jobs.follow(workspace, "training-1"))
    view = jobs.show(workspace, "training-1")
    assert key not in str(view.failure)
    assert key not in str(jobs.failure(view))
