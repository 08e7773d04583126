"""A worker that has a crew square numbers, and what the crew is seen to do: tests.cluster.test_crew."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from cdp.base.crew import Stopped
from cdp.base.worker import Job, run
from cdp.base.workspace import append_jsonl
from cdp.jobs import crew
from tests.jobs.squaring import square


def main(job: Job) -> None:
    folder = job.folder / "squares"
    folder.mkdir(exist_ok=True)
    own = crew.of(job.folder)
    assert own is not None, "the job was given no Ray workers"
    with own, suppress(Stopped):
        for again in range(job.config.get("times", 1)):
            parts = ({**job.config, "folder": str(folder), "number": number} for number in range(job.config["parts"]))
            done = own.each(square, parts, should_stop=job.stop_requested, on_done=partial(tell, job))
            for number, answer in done:
                append_jsonl(job.folder / "answers.jsonl", [{"again": again, "number": number, **answer}])


def tell(job: Job, done: int) -> None:
    job.progress("squaring", done, job.config["parts"], "numbers")


if __name__ == "__main__":
    run(main)
