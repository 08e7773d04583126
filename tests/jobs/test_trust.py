"""Signatures of this account: they hold for what was signed, and nothing breaks where none can be made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdp.base.workspace import FORMAT_FILE
from cdp.jobs import records
from tests.support import REPOSITORY

VALUE = {"id": "a", "config": {"n": 1, "x": 0.1, "text": "Ü \ud800", "none": None, "list": [1, (2,)]}}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "cdp-studio" / "secret"


def test_a_signature_is_of_one_value_and_one_use(state: Path) -> None:
    signature = records.sign("job", VALUE)
    assert records.is_ours("job", VALUE, signature)
    changed = {**VALUE, "id": "b"}
    for what, value, given in (
        ("job", changed, signature), ("cluster", VALUE, signature), ("job", VALUE, ""), ("job", VALUE, None),
        ("job", VALUE, signature[:-1]), ("job", VALUE, f"{signature}é"), ("job", VALUE, [signature]),
    ):  # fmt: skip
        assert not records.is_ours(what, value, given)
    assert state.stat().st_mode & 0o777 == 0o600
    assert state.parent.stat().st_mode & 0o077 == 0
    assert [path.name for path in state.parent.iterdir()] == ["secret"]


def test_another_account_did_not_sign_it(state: Path) -> None:
    signature = records.sign("job", VALUE)
    state.unlink()
    assert not records.is_ours("job", VALUE, signature)
    assert not state.exists(), "to look makes no secret"
    assert records.sign("job", VALUE) != signature


def test_a_secret_that_others_may_read_or_brought_is_none(state: Path, tmp_path: Path) -> None:
    signature = records.sign("job", VALUE)
    state.chmod(0o640)
    assert not records.is_ours("job", VALUE, signature)
    assert records.sign("job", VALUE) == ""
    state.chmod(0o600)
    for content in (b"", b"short", b"x" * 33):
        state.write_bytes(content)
        assert records.sign("job", VALUE) == ""
    other = tmp_path / "other"
    other.write_bytes(b"x" * 32)
    other.chmod(0o600)
    state.unlink()
    state.symlink_to(other)
    assert records.sign("job", VALUE) == ""


def test_a_secret_is_never_kept_in_a_workspace(state: Path) -> None:
    state.parents[1].mkdir()
    (state.parents[1] / FORMAT_FILE).write_text("{}")
    assert records.sign("job", VALUE) == ""
    assert not state.exists()


def test_without_a_folder_nothing_is_signed_and_nothing_breaks(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file where the folder would be")
    assert records.sign("job", VALUE) == ""
    assert not records.is_ours("job", VALUE, "")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/dev/null/nowhere")
    assert records.sign("job", VALUE) == ""


@pytest.mark.slow
def test_processes_that_begin_at_once_agree(state: Path) -> None:
    script = "from cdp.jobs import records; print(records.sign('job', 1))"
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        for _ in range(6)
    ]
    signed = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(signed) == 1
    assert len(signed.pop()) == 64
    assert os.listdir(state.parent) == ["secret"]
