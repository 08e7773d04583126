"""Whatever is typed where a name or a path belongs ends in an answer or in one line that says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.cli.declare import all_commands

pytestmark = pytest.mark.slow

ODD = {
    "longer than a file name": "x" * 300,
    "longer than a path": "ab/" * 3000,
    "letters of two bytes": "é" * 200,
    "NUL": "a\0b",
    "a user that is not there": "~nobody-of-that-name/x",
    "half of a surrogate pair": "\udc80x",
    "control characters": "a\nb\x1b[31m",
    "up": "..",
    "empty": "",
    "braces": "%s%n{0}",
}
# Not run here: what takes whatever it is given and then works for long.
STARTS_JOBS = {"demo", "doctor", "study run", "prompts tune", "queries generate"}


def _words(command: str, target: str, name: str) -> list[str]:
    """A command line in which the option ``target`` is ``name`` and each further one that is required is ``real``."""
    words = command.split()
    for argument in all_commands()[command].arguments.values():
        if argument.flag == target:
            words += [name] if argument.word else [f"{argument.flag}={name}"]
        elif argument.word:
            words.append("real")
        elif argument.required:
            words += [argument.flag, argument.choices[0] if argument.choices else "real"]
    return words


CASES = [
    (name, argument.flag, what)
    for name, command in all_commands().items()
    if name not in STARTS_JOBS
    for argument in command.arguments.values()
    if argument.kind is str and not (argument.choices or argument.hidden or argument.name == "set")
    for what in ODD
]


def test_odd_names_and_paths(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One case in 29, over all commands."""
    _try(CASES[::29], tmp_path, monkeypatch, capsys)


@pytest.mark.soak
def test_every_odd_name_and_path(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _try(CASES, tmp_path, monkeypatch, capsys)


def _faults(code: int, answer: str, said: str) -> Iterator[str]:
    """Yield what is wrong with how a command ended: an answer is JSON, a refusal one sentence of ours and no answer."""
    if code not in (0, 2) or "Traceback" in said:
        yield f"exit code {code}, {said[-200:]}"
    elif code == 2 and (answer or not said.startswith("cdp: ")):
        yield f"refused with {answer[-100:]!r}, {said[-300:]!r}"
    elif code == 0:
        try:
            json.loads(answer)
        except ValueError:
            yield f"answered {answer[:200]!r}"


def _try(
    cases: list[tuple[str, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one process: of a thousand commands with a process for each, start-up would take half an hour."""
    documents = tmp_path / "real.jsonl"
    documents.write_text('{"_id": "a", "text": "the moon", "queries": ["what pulls the sea?"]}\n', encoding="utf-8")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert main(["corpus", "add", str(documents), "--name", "real"]) == 0
    assert len(cases) > 30
    wrong = []
    for command, option, what in cases:
        capsys.readouterr()
        try:
            code = main([*_words(command, option, ODD[what]), "--json"])
        except SystemExit as end:
            code = int(str(end.code))
        except Exception as error:
            wrong.append(f"{command} {option} ({what}): {type(error).__name__}: {str(error)[:100]}")
            continue
        wrong += [f"{command} {option} ({what}): {why}" for why in _faults(code, *capsys.readouterr())]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong])
