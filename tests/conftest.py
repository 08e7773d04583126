"""Fixtures for every test."""

from __future__ import annotations

import functools
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import uncollected

if TYPE_CHECKING:
    from cdp.base.workspace import Workspace

# Two processes that test on two cores and start workers: a thread that waits for its fellows would keep others waiting.
# Set before torch is loaded, and heard by every child.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Python reads our modules anew in each child, and pytest the tests in each of its processes, unless they may keep what
# was compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.set_threshold(50_000)  # half a million objects of torch and transformers are never garbage

# The browser is started, and the dictionaries of Chinese, Japanese and Korean are read, in one process.
TOGETHER = {"browser": "browser", "complexity": "words", "metrics": "words"}
DRAWN_IN_QUICK_CHECKS = "test_in_an_empty_workspace"
# What an operator may set for a dashboard that others use.
RESTRICTIONS = ("CDP_READ_ONLY", "CDP_SHARED", "CDP_ALLOWED_FOLDERS", "CDP_ALLOWED_ENDPOINTS", "CDP_ALLOWED_MODELS")
# A module of which the quick checks run nothing. To load torch takes as long as a third of them, in each process.
WHOLLY_SLOW = re.compile(
    r"^pytestmark = .*\bpytest\.mark\.(slow|browser|soak)\b"
    r"|^(?:import|from) (?:torch|transformers|sentence_transformers)\b",
    re.MULTILINE,
)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(uncollected)
    if config.getoption("numprocesses", None):
        return  # this process gives out tests and imports none
    from hypothesis import settings

    # How long an example takes says how busy the machine is, and no test may fail for that.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick checks do not import a module of which they run nothing, nor one that loads torch."""
    quick = all(f"not {mark}" in config.option.markexpr for mark in ("slow", "browser", "soak"))
    if not quick:
        return None
    if collection_path.is_dir():  # its conftest.py may load a browser's library
        tests = list(collection_path.glob("test_*.py"))
        return (bool(tests) and all(map(_wholly_slow, tests))) or None
    if collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return _wholly_slow(collection_path) or None
    return None


def _wholly_slow(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return bool(WHOLLY_SLOW.search(text)) or (path.parent.name == "pages" and DRAWN_IN_QUICK_CHECKS not in text)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """To draw pages takes as long as all else: the quick checks draw each page once, the rest is slow.

    The long ones come first, so that two processes end together: what is left to share in the end is short.
    What is marked ``soak`` runs only where ``CDP_SOAK=1``: everything else, ``make test`` too, must end within minutes.
    """
    soaking = os.environ.get("CDP_SOAK", "") not in ("", "0")
    for item in items:
        if item.get_closest_marker("soak") and not soaking:
            item.add_marker(pytest.mark.skip(reason="takes minutes to hours: make soak"))
        if item.path.parent.name == "pages" and not item.name.startswith(DRAWN_IN_QUICK_CHECKS):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_turn)


class _Distribution(LoadScopeScheduling):
    """A file's tests run in one process, and all that need a browser or dictionaries: these are loaded once."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return TOGETHER.get(path.split("/")[1], path)

    def _reschedule(self, node: Any) -> None:
        # A process that takes the place of one that crashed has not collected yet; xdist would end the run.
        if node in self.registered_collections:
            super()._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        # xdist would run the test that ended its process again in the next one.
        units = self.assigned_work[node].values()
        crashed = next((test for unit in units for test, done in unit.items() if not done), None)
        for unit in units:
            unit.update({test: True for test in unit if test == crashed})
        super().remove_node(node)
        return crashed


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    config.option.loadscopereorder = False  # the order of `_turn`, not of the number of tests
    return _Distribution(config, log)


def _turn(item: pytest.Item) -> int:
    """Browsers, then what is slow, then the rest; within these in the order of the files."""
    return 0 if item.get_closest_marker("browser") else 1 if item.get_closest_marker("slow") else 2


def pytest_collection_finish() -> None:
    """What would cost every test a little: to look through half a million objects of torch and transformers at each
    collection of garbage, to set up sixty of Streamlit's loggers, to read what is installed."""
    gc.freeze()
    for logger in logging.Logger.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True  # pytest puts a handler into each that does not, three times a test
    if "streamlit" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        # Each page under AppTest reads the metadata of every installed package: that takes longer than drawing it.
        manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def pytest_sessionfinish() -> None:
    """Frozen objects would live to the end, and duckdb would tell of each as of a leak."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C reaches the programs that tests start, also where a script runs the tests in its background.

    A shell has its background ignore SIGINT, which children inherit. What has a handler here is as usual in a child.
    """
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """An empty workspace of the test's own, in use for child processes too.

    Jobs that the test leaves at work are stopped: they would take the processor from the tests after it.
    """
    from cdp import jobs
    from cdp.base.errors import CdpError
    from cdp.base.workspace import Workspace

    workspace = Workspace(tmp_path / "workspace")
    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    yield workspace
    if workspace.jobs.is_dir():
        with suppress(CdpError, OSError):  # a test may leave a workspace in which nothing can be read
            for job in jobs.list_active(workspace):
                jobs.stop(workspace, job.id)


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests sign is signed with a secret of theirs, by child processes too."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session")
def demo_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace with the demo, to be read or copied: to copy it takes a 25th of loading it."""
    from cdp.base.workspace import Workspace
    from cdp.services import demo

    root = tmp_path_factory.mktemp("demo") / "workspace"
    demo.load(Workspace(root), tested=False)  # pages and commands begin without results
    return root


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are done in this process as they are submitted, by their real workers.

    A worker of its own takes seconds to load what a tiny job then needs for a tenth of one. That a supervisor starts it
    in a process, stops it and resumes it is tested with the jobs.
    """
    from tests.support import supervise

    monkeypatch.setattr("cdp.jobs._start_supervisor", supervise)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of a study take the steps of their few pairs, not the 90 that a real one takes at least."""
    monkeypatch.setattr("cdp.studies.plan.LEAST_STEPS", 1)


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page under AppTest becomes ``__main__``, which a process that a later test spawns would run again: put back."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(autouse=True)
def no_dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page under AppTest makes this process a dashboard; the next test runs as the operator again."""
    from cdp.base import permission

    monkeypatch.setattr(permission, "_declared", None)
    for name in RESTRICTIONS:
        monkeypatch.delenv(name, raising=False)
