"""One of several processes that import at the same time: ``python -m tests.faults.importing NUMBER OF FOLDER``.

Before each kind of import it waits until all of them have come that far; afterwards it prints what it got, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
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
        "download": lambda: download.download_benchmark(entry, workspace, folder=folder / "published").info.name,
    }
    got: dict[str, Any] = {}
    for what, action in actions.items():
        meet(folder / "meeting", what, number, of)
        try:
            got[what] = action()
        except CdpError as error:
            got[what] = {"error": str(error)}
    return got


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
