"""Several processes that import at the same time: ``python -m tests.faults.importing OF FOLDER``.

Before each kind of import each waits until all of them have come that far; afterwards it writes what it got into
FOLDER, as JSON. Before them one imports queries and is killed in the midst of it. All are forks of one process, which
has loaded what they need.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, download, registry, subsets
from cdp.corpus import list_corpora
from cdp.query_sets import import_queries
from cdp.services import corpora

LONGEST_WAIT_S = 60.0


def meet(folder: Path, what: str, number: int, of: int) -> None:
    """Go on once every process is here."""
    (folder / f"{what}-{number}").touch()
    deadline = time.monotonic() + LONGEST_WAIT_S
    while len(list(folder.glob(f"{what}-*"))) < of:
        if time.monotonic() > deadline:
            raise SystemExit(f"the others did not come to {what}")
        time.sleep(0.01)


def main(number: int, of: int, folder: Path) -> dict[str, Any]:
    workspace = Workspace(folder / "workspace")
    (corpus,) = list_corpora(workspace)
    entry = registry.find("scifact")
    assert entry is not None

    def imported(name: str, label: str) -> str:
        return import_queries(folder / name, workspace, corpus.id, label).query_set.id

    actions = {
        "queries": lambda: (
            import_queries(folder / f"queries-{number}.jsonl", workspace, corpus.id, "mine").query_set.id
        ),
        "same_queries": lambda: imported("queries-0.jsonl", "same"),
        "corpora": lambda: corpora.add(workspace, folder / f"documents-{number}.jsonl", name="mine").corpus.id,
        "same_corpus": lambda: corpora.add(workspace, folder / "documents-0.jsonl", name="same").corpus.id,
        "benchmarks": lambda: add_benchmark(folder / f"benchmark-{number}", workspace, "mine"),
        "same_benchmark": lambda: add_benchmark(folder / "benchmark-0", workspace, "same"),
        "subset": lambda: subsets.sample("whole", workspace, queries=2, documents=6)[0].name,
        "download": lambda: download.download_benchmark(entry, workspace, folder=folder / "published")[0].name,
    }
    got: dict[str, Any] = {}
    for what, action in actions.items():
        meet(folder / "meeting", what, number, of)
        try:
            got[what] = action()
        except CdpError as error:
            got[what] = {"error": str(error)}
    return got


def cut_off(folder: Path) -> None:
    """Import queries, and be killed before the last of them."""
    workspace = Workspace(folder / "workspace")
    (corpus,) = list_corpora(workspace)

    def pairs() -> Iterator[tuple[str, str]]:
        for i in range(5000):
            yield f"d{i % 90}", f"query {i}"
        os.kill(os.getpid(), signal.SIGKILL)

    import_queries(pairs(), workspace, corpus.id, "cut off")


def fork(act: Callable[[], object]) -> int:
    """The id of a process that does this and ends."""
    if process := os.fork():
        return process
    code = 1
    try:
        act()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    import pandas  # noqa: F401  pyarrow loads it when it is first used

    of, at = int(sys.argv[1]), Path(sys.argv[2])
    _, status = os.waitpid(fork(lambda: cut_off(at)), 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    shutil.copytree(at / "workspace" / "queries", at / "cut-off")
    ids = [
        fork(lambda number=number: (at / f"got-{number}.json").write_text(json.dumps(main(number, of, at))))
        for number in range(of)
    ]
    sys.exit(max(os.waitpid(process, 0)[1] for process in ids) and 1)
