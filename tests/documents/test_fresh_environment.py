"""Tutorial and notebook as an outsider does them: an empty environment, the wheel, an empty folder, nothing of a clone.

make package        with the times and sizes, which it prints
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.documents.examples import examples, run
from tests.support import REPOSITORY, free_port

TUTORIAL = REPOSITORY / "docs" / "TUTORIAL.md"
NOTEBOOK = REPOSITORY / "docs" / "library.ipynb"


class Stopwatch:
    """What each step took, for the table at the end."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.rows.append((name, time.monotonic() - began))


def called(*words: str | Path, folder: Path, environment: dict[str, str], timeout: float = 1800) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


@contextmanager
def dashboard(program: Path, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """``cdp app`` on a free port, until the block ends; its address."""
    port = free_port()
    process = subprocess.Popen(
        [str(program), "app", "--port", str(port)], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=10).close()
                break
            except OSError:
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def seen(url: str, *texts: str) -> str:
    """Look at a page until it shows each of these texts; what was looked with."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.status == 200
        return "answers (there is no chromium to look with)"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(url)
        for text in texts:
            page.get_by_text(text).first.wait_for(state="attached", timeout=60_000)  # a table is a canvas
        browser.close()
    return "seen in chromium"


@pytest.mark.soak
def test_the_tutorial_with_nothing_but_the_wheel(tmp_path: Path) -> None:
    watch = Stopwatch()
    own, folder, studio = tmp_path / "home", tmp_path / "folder", tmp_path / "studio"
    own.mkdir()
    folder.mkdir()
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("CDP_", "XDG_", "PYTHONPATH"))}

    with watch.step("build the wheel"):
        words = ("-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", REPOSITORY)
        called(sys.executable, *words, folder=folder, environment=outer)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with watch.step("make an empty environment"):
        called(sys.executable, "-m", "venv", studio, folder=folder, environment=outer)
    with watch.step("install the wheel with [app]"):
        pinned = ("--constraint", REPOSITORY / "constraints.txt")
        install = (studio / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", *pinned)
        called(*install, f"{wheel}[app]", folder=folder, environment=outer)
    called(studio / "bin" / "python", "-m", "pip", "check", folder=folder, environment=outer)
    packages = json.loads(
        called(studio / "bin" / "python", "-m", "pip", "list", "--format=json", folder=folder, environment=outer)
    )

    environment = {
        **{name: value for name, value in outer.items() if name in ("LANG", "LC_ALL", "OMP_NUM_THREADS", "TMPDIR")},
        "PATH": f"{studio / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(own),
        "HF_HUB_OFFLINE": "1",  # whatever asked for a model of the hub would fail at once
    }
    with watch.step("the tutorial, every block"):
        told = run(examples(TUTORIAL), folder, environment, timeout=3600)
    assert "judged by people" in told
    with watch.step("the notebook, every cell"):
        words = (studio / "bin" / "python", REPOSITORY / "tests" / "documents" / "notebook.py", NOTEBOOK)
        called(*words, folder=folder, environment=environment)
    for name in ("documents.jsonl", "questions.csv", "pairs.parquet"):
        assert (folder / name).stat().st_size > 0
    program = studio / "bin" / "cdp"
    decision = json.loads(called(program, "decide", "--json", folder=folder, environment=environment))
    assert decision["badge"] == "judged by people, first look"
    assert decision["basis"]["study"]
    workspace = own / ".local" / "share" / "cdp-studio"
    with watch.step("open the dashboard"), dashboard(program, folder, environment) as url:
        looked = seen(f"{url}/compare?project=python", "one query each", "BM25")

    print("\nA fresh environment with nothing but the wheel:")
    print(*(f"  {seconds:7.1f} s  {name}" for name, seconds in watch.rows), sep="\n")
    print(
        f"  wheel {wheel.stat().st_size / 1e6:.1f} MB; {len(packages)} packages, {megabytes(studio):,.0f} MB installed"
    )
    print(f"  workspace after the tutorial {megabytes(workspace):,.0f} MB; the dashboard: {looked}")
