"""A worker that has its crew rank by BM25, and waits in the middle of each pass: tests.cluster.test_divided_stages."""

from __future__ import annotations

import time

import numpy as np

from cdp.base.worker import Job, run
from cdp.base.workspace import read_json
from cdp.evaluation import bm25_divided
from cdp.evaluation.bm25_divided import Team
from cdp.jobs import crew


def main(job: Job) -> None:
    texts = read_json(job.folder.parent.parent / "texts.json")
    bm25_divided.ALONE = 0

    def pause(phase: str, done: int, total: int) -> None:
        job.progress(phase, done, total, "documents")
        while 0 < done < total and not (job.folder / f"go-{phase}").exists():
            (job.folder / f"paused-{phase}").touch()
            time.sleep(0.05)

    with crew.of(job.folder) as own:  # type: ignore[union-attr]
        ranked = Team(own, job.folder / "bm25").indexed(texts["documents"], "en", pause)
        scores, numbers = ranked(texts["queries"], 100, watch=pause)
    np.savez(job.folder / "found.npz", scores=scores, numbers=numbers)


if __name__ == "__main__":
    run(main)
