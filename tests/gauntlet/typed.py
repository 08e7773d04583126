"""Typing commands: each is run as a user runs it, and what it answers, takes and fails at is written down."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cdp.cli import main
from cdp.jobs.state import State
from tests.support import REPOSITORY

BAD_ENDS = set(State) - {State.FINISHED}

# A command that takes longer than this hangs.
LONGEST_S = 3600.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A command that did not do what it was asked for: the words as typed, and the end of what it said."""

    collection: str
    command: str
    said: str


@dataclass
class Terminal:
    """Runs ``python -m cdp …`` in one workspace. Whatever fails is kept in ``faults``, and the rest goes on."""

    workspace: Path
    faults: list[Fault] = field(default_factory=list)
    commands: int = 0

    def __call__(self, collection: str, *words: str) -> Any:
        """The JSON that a command answers; None, and a fault, where it fails, hangs, or answers no JSON."""
        self.commands += 1
        try:
            code, out, err = self.type(*words, "--json")
        except subprocess.TimeoutExpired:
            return self.fault(collection, words, f"no end after {LONGEST_S:.0f} s")
        problems = [f"exit code {code}"] if code else []
        problems += ["a traceback"] if "Traceback (most recent call last)" in err else []
        try:
            value = json.loads(out)
        except ValueError:
            value, problems = None, [*problems, "no JSON on stdout"]
        # A query set has a state too: whether it is whole. Only a job's can be a bad end.
        if isinstance(value, dict) and value.get("state", State.FINISHED) in BAD_ENDS:
            problems.append(f"the job is {value['state']}")
        if problems:
            return self.fault(collection, words, f"{', '.join(problems)}: {err[-2000:] or out[-2000:]}")
        return value

    def type(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command in a process of its own."""
        environment = {**os.environ, "CDP_WORKSPACE": str(self.workspace)}
        typed = [sys.executable, "-m", "cdp", *words]
        done = subprocess.run(typed, capture_output=True, text=True, cwd=REPOSITORY, env=environment, timeout=LONGEST_S)
        return done.returncode, done.stdout, done.stderr

    def fault(self, collection: str, words: Sequence[str], said: str) -> None:
        """Keep what went wrong."""
        self.faults.append(Fault(collection, " ".join(("cdp", *words)), said))


class OneProcess(Terminal):
    """The same commands without a new process for each, of whose start-up a short test would mostly consist. Their
    jobs are processes of their own all the same."""

    def type(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command in this process."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setenv("CDP_WORKSPACE", str(self.workspace))
            try:
                code = main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        return code, out.getvalue(), err.getvalue()


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began
