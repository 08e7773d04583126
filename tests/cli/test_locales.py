"""Names and sentences are whole where the locale, or a setting of Python, has another encoding than UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

# ``LANG=en_US`` of an older cluster is Latin-1; ASCII stands for it here, for Debian ships no such locale.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NAME = "Überblick – 中文"


def cdp(folder: Path, settings: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cdp", *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **settings},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("settings", [ASCII, {"PYTHONIOENCODING": "ascii"}])
def test_a_corpus_and_a_job_in_a_locale_of_ascii(
    settings: dict[str, str], workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "ü中.txt").write_text("Die Öfen heizen – −3 °C. Sie laufen im Winter täglich.", encoding="utf-8")
    cdp(tmp_path, settings, "corpus", "add", "ü中.txt", "--name", NAME)
    [corpus] = json.loads(cdp(tmp_path, settings, "corpus", "list", "--json"))
    assert corpus["name"] == NAME
    assert corpus["source"] == "ü中.txt"
    assert NAME in cdp(tmp_path, settings, "corpus", "list")

    words = ("queries", "generate", "--corpus", NAME, "--per-doc", "1", "--generator", "template", "--wait", "--json")
    job = json.loads(cdp(tmp_path, settings, *words))
    assert job["state"] == "finished"
    assert "–" in cdp(tmp_path, settings, "jobs", "list"), "the dash of a job that stands in no queue"
