"""The command line as a user runs it: a process of its own in a workspace of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.support import REPOSITORY


def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``python -m cdp`` with these words and check its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "cdp", *words], capture_output=True, text=True, cwd=REPOSITORY, timeout=900
    )
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def answer(*words: str, code: int = 0) -> Any:
    """The JSON value that a command answers with ``--json``."""
    return json.loads(run(*words, "--json", code=code).stdout)


def refusal(*words: str) -> str:
    """The one line with which a command refuses bad input: exit code 2, nothing on stdout, no traceback."""
    done = run(*words, code=2)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]
