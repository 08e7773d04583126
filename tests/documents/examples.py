"""The examples of the documentation: fenced blocks of code, and how to run those of a page as a reader would.

A block says its language: ``bash`` and ``python`` are run, ``text`` and data are not. A comment on the line before it
makes an exception:

    <!-- not run: REASON -->            nothing here can run it; counted and listed in ``test_examples``
    <!-- run by PATH::TEST -->          a test of its own does

All blocks of a page are one script, in one folder and one workspace, so that a block may go on from those before it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support import REPOSITORY

RUN = ("bash", "python")
DATA = ("text", "toml", "yaml", "json", "ini", "xml", "console")
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))

_FENCE = re.compile(
    r"^(?P<mark>[ \t]*<!-- .*? -->\n)?(?P<indent>[ \t]*)```(?P<language>.*)\n(?P<text>(?:.*\n)*?)[ \t]*```$", re.M
)
_MARK = re.compile(r"<!-- (not run:|run by) (.*?) -->")
_TABLE = re.compile(r"^\|.*\| command line[^|]*\|\n\|[-|]*\n((?:\|.*\n)+)", re.M)


@dataclass(frozen=True)
class Example:
    """One block: where it stands, its text, and what runs it (``runner`` with the words ``not run:`` or ``run by``)."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def interactive(self) -> bool:
        """Whether it is a Python session with its answers, which doctest runs."""
        return self.language == "python" and ">>> " in self.text


def examples(page: Path) -> list[Example]:
    """The blocks of a page in their order, and the commands of tables that show them beside the dashboard."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for match in _FENCE.finditer(text):
        mark = _MARK.search(match["mark"] or "")
        line = text.count("\n", 0, match.start("language")) + 1
        words = (mark[1], mark[2]) if mark else ("", "")
        blocks.append(Example(page, line, match["language"].strip(), match["text"], *words))
    for table in _TABLE.finditer(text):
        cells = [row.rstrip().rstrip("|").rpartition("|")[2] for row in table[1].splitlines()]
        commands = [f"cdp {command}\n" for cell in cells for command in re.findall(r"`([^`]+)`", cell)]
        blocks.append(Example(page, text.count("\n", 0, table.start()) + 1, "bash", "".join(commands)))
    return sorted(blocks, key=lambda block: block.line)


def commands(block: Example) -> list[list[str]]:
    """The words of each call of the program in a shell block, without what the shell does with it."""
    calls = []
    for line in block.text.replace("\\\n", " ").splitlines():
        reading = shlex.shlex(line, posix=True, punctuation_chars=True)
        reading.whitespace_split = True
        words: list[str] | None = None
        for word in reading:
            if set(word) <= set("();<>|&"):
                words = None
            elif words is not None:
                words.append(word)
            elif word == "cdp":
                words = []
                calls.append(words)
    return calls


def script(blocks: list[Example]) -> str:
    """One bash script of what is to be run; each block says its line, so that a fault can be told by it."""
    parts = ["set -euo pipefail"]
    for block in blocks:
        if block.mark or block.language not in RUN or block.interactive:
            continue
        parts.append(f"printf '\\n== {block} %s\\n' \"$EPOCHSECONDS\"")
        parts.append(block.text if block.language == "bash" else f"python - <<'PYTHON_ENDS'\n{block.text}PYTHON_ENDS")
    return "\n".join([*parts, ""])


def run(blocks: list[Example], folder: Path, environment: dict[str, str], *, timeout: float = 900) -> str:
    """Run a page's blocks in ``folder``; what they printed. AssertionError with the end of it where one fails."""
    done = subprocess.run(
        ["bash", "-c", script(blocks)], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def reader(folder: Path) -> dict[str, str]:
    """The environment of a reader in ``folder``: some documents, the program on the path, a home and workspace of one's
    own."""
    programs = folder / "bin"
    programs.mkdir()
    shutil.copy(REPOSITORY / "data" / "demo" / "corpus.jsonl", folder / "documents.jsonl")
    for name, words in (("cdp", '-m cdp "$@"'), ("python", '"$@"')):
        (programs / name).write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}\n")
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CDP_", "XDG_", "OPENAI_"))}
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(folder),
        "CDP_WORKSPACE": str(folder / "workspace"),
        "HF_HUB_OFFLINE": "1",
    }
