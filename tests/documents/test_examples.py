"""Every example of README.md and docs/ is run: sessions and single commands here, what trains in ``make soak``."""

from __future__ import annotations

import doctest
import json
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from cdp.cli import declare
from tests.documents.examples import DATA, PAGES, RUN, Example, commands, examples, reader, run
from tests.support import REPOSITORY
from tests.synthesis.server import KEY, MODEL, chat_server

EXAMPLES = {str(page.relative_to(REPOSITORY)): examples(page) for page in PAGES}
SESSIONS = [name for name, blocks in EXAMPLES.items() if any(block.interactive for block in blocks)]
SCRIPTS = [
    name
    for name, blocks in EXAMPLES.items()
    if any(block.language in RUN and not block.mark and not block.interactive for block in blocks)
]
# Pages whose scripts take seconds; the others train, and wait for `make soak`.
QUICK = ("docs/ARCHITECTURE.md", "docs/EXTENDING.md")
# Run from the wheel, see `test_fresh_environment`.
TUTORIAL = "docs/TUTORIAL.md"

# Blocks that nothing runs, at most. Whoever needs another says here why there is no other way: the two of MTEB are run
# by `make interop`, where it is installed.
NOT_RUN = 11


def marked(words: str) -> list[Example]:
    return [block for blocks in EXAMPLES.values() for block in blocks if block.mark == words]


def test_every_block_says_what_it_is() -> None:
    blocks = [block for page in EXAMPLES.values() for block in page]
    assert len(blocks) > 15
    assert [str(block) for block in blocks if block.language not in (*RUN, *DATA)] == []
    for block in blocks:
        reads = {"toml": tomllib.loads, "yaml": yaml.safe_load, "json": json.loads}.get(block.language)
        if reads is not None:
            reads(block.text)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    reasons = {str(block): block.reason for block in marked("not run:")}
    assert len(reasons) <= NOT_RUN, reasons
    assert all(len(reason.split()) > 3 for reason in reasons.values()), reasons


def test_what_another_test_runs_is_there() -> None:
    for block in marked("run by"):
        path, _, test = block.reason.partition("::")
        assert f"def {test}(" in (REPOSITORY / path).read_text(encoding="utf-8"), str(block)


def test_every_command_is_one_that_the_program_takes() -> None:
    """Also of blocks that are not run."""
    blocks = [block for page in EXAMPLES.values() for block in page if block.language == "bash"]
    calls = [words for block in blocks if block.mark != "run by" for words in commands(block)]
    assert len(calls) > 20
    for words in calls:
        found = declare.find(words)
        assert not isinstance(found, int), words
        found[0].read(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("page", SESSIONS)
def test_every_session_gives_what_the_page_shows(page: str) -> None:
    failed, attempted = doctest.testfile(str(REPOSITORY / page), module_relative=False)
    assert attempted > 0
    assert failed == 0


def read(page: str, folder: Path) -> None:
    """Run a page as a reader who has loaded the demo, as these pages tell them to, and who has an LLM's endpoint."""
    with chat_server() as server:
        environment = {**reader(folder), "CDP_BASE_URL": server.url, "CDP_API_KEY": KEY, "MODEL": MODEL}
        if any(block.language == "bash" and not block.mark for block in EXAMPLES[page]):
            subprocess.run(["cdp", "demo"], env=environment, check=True, capture_output=True)
        run(EXAMPLES[page], folder, environment)


@pytest.mark.slow
@pytest.mark.parametrize("page", [name for name in SCRIPTS if name in QUICK])
def test_every_example_that_takes_seconds_runs(page: str, tmp_path: Path) -> None:
    read(page, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("page", [name for name in SCRIPTS if name not in (*QUICK, TUTORIAL)])
def test_every_example_runs(page: str, tmp_path: Path) -> None:
    read(page, tmp_path)
