"""What several tests need: the reference data beside the repository, and jobs done in the test's own process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
import pytest

from cdp import query_sets
from cdp.base import worker
from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import list_benchmarks, load_benchmark
from cdp.jobs.launchers import End
from cdp.jobs.records import JobSpec
from cdp.jobs.supervisor import Supervisor
from cdp.llm.prices import Price
from cdp.query_sets import QuerySet

# As measured before: with them a test on one's own data trains static-minilm alone, in seconds each.
ONLY_STATIC_IS_FAST = {"static-minilm": [3000, 3000], "minilm/2": [0.5, 100], "minilm": [0.2, 50]}
REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"
T = TypeVar("T")


def shared(relative: str) -> Path:
    """A file or folder of the reference data beside the repository; the test is skipped where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"reference data ../shared/{relative} is not on this machine")
    return path


def install_plugins(folder: Path, *modules: str) -> None:
    """Make modules in this folder plug-ins, as an installer does: by a folder of metadata. It must be on the path."""
    facts = folder / "mine-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    named = "".join(f"{module} = {module}\n" for module in modules)
    (facts / "entry_points.txt").write_text(f"[cdp.plugins]\n{named}")


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread: a process whose browser tests come first has Playwright's loop running in its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def free_port() -> int:
    """A port that nobody listens on, for a program that cannot choose one itself.

    It is below those that the system gives to connections and to whoever asks for any port (32768 and up on Linux), and
    drawn: until the program listens there, neither a connection nor another test takes it.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def in_background(*command: str) -> list[str]:
    """The command as a script's background runs it: it ignores SIGINT."""
    return ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]


def work(module: str, folder: Path) -> int:
    """Do the job in ``folder`` here, in the frame that every worker has; its exit code.

    A process of its own takes 8 CPU seconds to load what a tiny training then needs for a tenth of one. What only a
    process has, its signals and its fellows, is tested on real ones.
    """
    streams, handler = (sys.stdout, sys.stderr), signal.getsignal(signal.SIGTERM)
    try:
        worker.run(import_module(module).main, [str(folder)])
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.stdout, sys.stderr = streams
        signal.signal(signal.SIGTERM, handler)
    return 0


def supervise(
    workspace: Workspace,
    folder: Path,
    spec: JobSpec,
    _lock: int,
    secrets: Mapping[str, str],
    *,
    cluster: str,
    attempt: int,
) -> None:
    """Do a job that is submitted, here and at once, and record its end as its supervisor would."""
    supervisor = Supervisor(folder)
    own = {**secrets, "CDP_ATTEMPT": str(attempt), "CDP_WORKSPACE": str(workspace.root)}
    before = {name: os.environ.get(name) for name in own}
    assert not cluster
    supervisor.status.running(supervisor_pid=os.getpid(), worker_pid=os.getpid(), devices=("cpu",))
    try:
        os.environ.update(own)
        with open(folder / "worker.log", "a", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
            code = work(spec.module, folder)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
    supervisor._record_end(End(code))
    supervisor.queue.remove(spec.id)


def search_processes(workspace: Workspace) -> list[psutil.Process]:
    """Every search process of this workspace, as the system's table has them."""
    from cdp.serving import client

    words = (client.INSTANCE, str(workspace.root))
    return [
        p
        for p in psutil.process_iter(["cmdline", "status"])
        if p.info["status"] != psutil.STATUS_ZOMBIE and all(word in (p.info["cmdline"] or []) for word in words)
    ]


def stop_search(workspace: Workspace) -> bool:
    """End the search process of a workspace and wait until it has; False if there was none."""
    processes = search_processes(workspace)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
            process.wait(10)
    return bool(processes)


class StoredQuery(NamedTuple):
    id: str
    text: str
    document_id: str


def iter_queries(workspace: Workspace, query_set: str, per_doc: int | None = None) -> Iterator[StoredQuery]:
    """Every query of a set with its id and its document's; the first ``per_doc`` of each document."""
    for document in query_sets.read_queries(workspace, query_set):
        yield from (StoredQuery(name, text, document.document_id) for name, text in document.with_ids(per_doc))


def judged_queries(workspace: Workspace, folder: Path, corpus: str, name: str, *splits: str) -> QuerySet:
    """The judged queries of a benchmark's splits as a query set of a corpus, as an import of both stores them."""
    pairs = []
    for split in splits:
        benchmark = load_benchmark(folder, split)
        texts = dict(zip(benchmark.query_ids, benchmark.queries, strict=True))
        pairs += [
            (d, texts[query]) for query, grades in benchmark.qrels.items() for d, grade in grades.items() if grade
        ]
    made = query_sets.import_queries(pairs, workspace, corpus, name).query_set
    return query_sets.update(workspace, made.id, parameters={"splits": list(splits)})


def write_prices(workspace: Workspace, prices: Iterable[Price], as_of: str) -> None:
    """Write the workspace's own price table, as a person would."""
    models = {price.model: {"input": price.input, "output": price.output} for price in prices}
    write_json(workspace.root / "prices.json", {"as_of": as_of, "models": models})


def present_hash(workspace: Workspace, benchmark: str, otherwise: str) -> str:
    """The hash of a benchmark of the workspace; ``otherwise`` where there is none of this name."""
    known = {info.name: info.content_hash for info in list_benchmarks(workspace)}

    return known.get(benchmark, otherwise)
