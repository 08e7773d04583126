"""The command line as a user types it, in this process or in one of its own; both in a workspace of the test's own.

A Python process of its own takes a second to load what a command needs, so most commands run here, through the function
that ``python -m cdp`` calls. ``spawn`` starts the real thing, for what only a process has.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from cdp import cli
from tests.support import REPOSITORY

Done = subprocess.CompletedProcess[str]


def spawn(*words: str, code: int = 0) -> Done:
    """Run ``python -m cdp`` with these words in a process of its own and check its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "cdp", *words], capture_output=True, text=True, cwd=REPOSITORY, timeout=900
    )
    return _checked(done, code)


def run(*words: str, code: int = 0) -> Done:
    """Run a command in this process and check its exit code; what is no answer but a fault fails the test."""
    out, err = io.StringIO(), io.StringIO()
    mask = os.umask(0o022)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                ended = cli.main(words)
            except SystemExit as left:  # argparse
                ended = int(left.code or 0)
    finally:
        os.umask(mask)
    return _checked(subprocess.CompletedProcess(words, ended, out.getvalue(), err.getvalue()), code)


def _checked(done: Done, code: int) -> Done:
    assert done.returncode == code, f"{done.args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def answer(*words: str, code: int = 0) -> Any:
    """The JSON value that a command answers with ``--json``."""
    return json.loads(run(*words, "--json", code=code).stdout)


def spawned_answer(*words: str) -> Any:
    """``answer`` of a process of its own."""
    return json.loads(spawn(*words, "--json").stdout)


def refusal(*words: str) -> str:
    """The one line with which a command refuses bad input: exit code 2, nothing on stdout, no traceback."""
    done = run(*words, code=2)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return str(lines[0])
