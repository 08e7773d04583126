"""A program beside the test on the same workspace: ``python -m tests.faults.app <what> …``.

``serve <steps>``   submits a counting job, prints its id, and then stays, like an app that somebody looks at
``train <epochs>``  loads the demo collection, starts a training on it, and stays the same way
``busy <seed> <n>`` does n random things that pages and the command line do, and prints what came of them as JSON
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cdp import jobs
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from tests.jobs.support import start


def serve(workspace: Workspace, steps: str) -> None:
    print(start(workspace, steps=int(steps), hold_at=10), flush=True)
    look_on(workspace)


def train(workspace: Workspace, epochs: str) -> None:
    from cdp.base.config import TrainingConfig
    from cdp.services import demo, queries, training

    demo.load(workspace)
    (query_set,) = [q.id for q in queries.list_query_sets(workspace) if q.name == "demo diverse"]
    values = {"query_set": query_set, "epochs": int(epochs), "batch_size": 32}
    print(training.start(workspace, TrainingConfig.from_dict(values)).job_id, flush=True)
    look_on(workspace)


def look_on(workspace: Workspace) -> None:
    """Show what runs, again and again, until somebody kills this program."""
    while True:
        for job in jobs.list_jobs(workspace):
            jobs.follow_log(workspace, job.id)[0]
        time.sleep(0.1)


def busy(workspace: Workspace, seed: str, n: str) -> None:
    from cdp import catalog
    from cdp.results import differences
    from tests.catalog.support import add_evaluation

    draw = random.Random(seed)
    plan = draw.choices(["submit", "result", "ingest", "read", "compare", "list"], [3, 2, 3, 4, 1, 3], k=int(n))
    done: Counter[str] = Counter()
    errors: list[str] = []
    submitted: list[str] = []
    written: list[str] = []

    def act(step: tuple[int, str]) -> None:
        number, what = step
        try:
            if what == "submit":
                submitted.append(start(workspace, steps=1, step_s=0.0, name=f"app {seed} job {number}"))
            elif what == "result":
                written.append(f"evaluate-{seed}-{number}")
                add_evaluation(workspace, written[-1], f"retriever-{seed}")
            elif what == "ingest":
                catalog.ingest(workspace)
            elif what == "read":
                for row in catalog.evaluations(workspace)[:3]:
                    catalog.per_query(workspace, [row["id"]])
            elif what == "compare":
                rows: list[dict[str, Any]] = catalog.evaluations(workspace)
                if rows:
                    differences.compare(workspace, rows[0]["retriever_id"])
            else:
                jobs.list_jobs(workspace)
            done[what] += 1
        except CdpError as error:
            errors.append(f"{what}: {error}")

    with ThreadPoolExecutor(4) as pool:
        for finished in [pool.submit(act, step) for step in enumerate(plan)]:
            finished.result()
    print(json.dumps({"done": done, "errors": errors, "submitted": submitted, "written": written}), flush=True)


if __name__ == "__main__":
    {"serve": serve, "train": train, "busy": busy}[sys.argv[1]](Workspace.default(), *sys.argv[2:])
