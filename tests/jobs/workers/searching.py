"""A worker that has its crew search, and waits in the middle for a node's death: tests.cluster.test_divided_stages."""

from __future__ import annotations

import time

import numpy as np

from cdp.base.worker import Job, run
from cdp.jobs import crew
from cdp.retrievers.exact_search.divided import search_by


def main(job: Job) -> None:
    queries, documents = (
        [np.load(path, mmap_mode="r") for path in sorted(job.folder.parent.parent.glob(f"{name}-*.npy"))]
        for name in ("q", "d")
    )
    total = sum(map(len, documents))

    def pause(done: int) -> None:
        job.progress("searching", done, total, "documents")
        while 0 < done < total and not (job.folder / "go").exists():
            (job.folder / "paused").touch()
            time.sleep(0.05)

    with crew.of(job.folder) as own:  # type: ignore[union-attr]
        scores, numbers = search_by(own, queries, documents, 100, progress=pause)
    np.savez(job.folder / "found.npz", scores=scores, numbers=numbers)


if __name__ == "__main__":
    run(main)
