"""A job's processes on as many nodes as it takes, under Ray Train: ``python -m cdp.jobs.group <module> <job folder>``.

It stands where torch's launcher stands on one machine. ``cdp.jobs.node`` starts it, on the head where that may run
programs; each process of the group is one of Ray Train's workers (``cdp.jobs.rank``), and the first of them writes the
job's files. Checkpoints are the job's own, in its folder.

Ray Train tells that a process or a node is gone and ends the others. It is started again here, and not by its own
``FailureConfig``: that would try again what can never go well (a training that diverged, as its ``failure.json``
says), and its elastic sizes know nothing of batches. With fewer processes a training goes on exactly where they divide
its batch, so a group shrinks to a divisor of its size.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdp import __version__
from cdp.base.errors import CdpError, ClusterError
from cdp.base.output import survives_a_full_disk
from cdp.base.worker import GROUP_VARIABLE, START_VARIABLE, Job, report_failure
from cdp.base.workspace import private_files
from cdp.jobs import handover
from cdp.jobs.launchers import SPINS, python_path
from cdp.jobs.node import PAD_VARIABLE
from cdp.jobs.place import VARIABLE as PLACE_VARIABLE
from cdp.jobs.place import Place
from cdp.jobs.rank import has_ended, has_failed, work
from cdp.jobs.ray_cluster import RESUME
from cdp.jobs.remote import KEYS

LOSSES = 5
"""How often an attempt goes on after it lost a process. More than that is no bad luck, but perhaps a lack of memory."""

SETTLE_S = 3.0
"""Between the loss of a process and a look at the nodes: the head learns of a dead one a moment later."""

LOOK_S = 5.0
"""Seconds between looks at the nodes while there is no room."""

STARTING_S = 600.0
"""A group may take so long to start without a heartbeat: room, processes, imports."""

TOGETHER_S = 86_400
"""How long processes wait for each other (see ``cdp.workers.training``)."""

STORAGE = ".group"
"""Ray Train's own folder within the job's; nothing that is kept."""

SETTINGS = {
    "RAY_TRAIN_V2_ENABLED": "1",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "30",
}
"""Ray Train's: workers stay in their folder, and print as they are told to."""

PASSED = ("CDP_", "HF_", "OPENAI_")
NOT_PASSED = ("CDP_SUPERVISOR_PID", "CDP_SUPERVISOR_LOCK", "CDP_JOB", PAD_VARIABLE, PLACE_VARIABLE)
"""What the processes of the group get of this one's environment beside the job's keys, and what of it says something
of this process alone."""


class Group:
    """One attempt of one job."""

    def __init__(self, module: str, folder: Path, asked: Place) -> None:
        self.module, self.folder, self.asked = module, folder, asked
        self.size = asked.workers or 1
        self.job = Job(folder)
        self.stop_file = f"stop.group.{self.job.attempt}"
        self.each = {"CPU": asked.cpus or 1.0, "GPU": float(asked.gpus or 0), "memory": 1e9 * (asked.memory or 0)}
        if asked.accelerator:
            self.each[f"accelerator_type:{asked.accelerator}"] = 0.001

    def run(self) -> int:
        """Run the attempt to its end, through the loss of nodes; the exit code. CdpError where that cannot be."""
        threading.Thread(target=self._pass_on_stop, name="stop", daemon=True).start()
        losses = 0
        try:
            while True:
                size = self._wait_for_room(losses)
                if not size:
                    return 1
                why = self._fit(size, losses)
                if has_ended(self.folder, self.job.attempt):
                    return int(has_failed(self.folder, self.job.attempt))
                if self.job.stop_requested():
                    return 1
                if why is None:
                    raise ClusterError("The group ended without a word.", hint=RESUME)
                if why:
                    losses += 1
                    print(f"The group of {size} lost a process: {why}", flush=True)
                if losses > LOSSES:
                    raise ClusterError(
                        f"Processes of the group were lost {losses} times, the last one so: {why}",
                        hint="Have they too little memory (--resources memory=…)? Then resume the job.",
                    )
                time.sleep(SETTLE_S)
        finally:
            shutil.rmtree(self.folder / STORAGE, ignore_errors=True)
            (self.folder / self.stop_file).unlink(missing_ok=True)
            handover.drop(self.folder)

    def _wait_for_room(self, losses: int) -> int:
        """How many processes there are to be: all, or after a loss or a resume as many as divide that and the nodes can
        take; 0 where a stop is wanted meanwhile."""
        while not self.job.stop_requested():
            room = self._room()
            sizes = [n for n in range(1, self.size + 1) if self.size % n == 0 and n <= room]
            if self.size <= room or (sizes and (losses or self.job.attempt > 1)):
                size = max(sizes)
                if size < self.size:
                    print(f"The nodes that are left take {size} of {self.size} processes.", flush=True)
                return size
            what = f"of {self.size} processes the nodes take {room}"
            self.job.progress("waiting for nodes", room, self.size, "processes", what, next_within_s=STARTING_S)
            time.sleep(LOOK_S)
        return 0

    def _room(self) -> int:
        """How many processes the living nodes take, were nothing else at work there."""
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return sum(int(min(node.get(k, 0.0) // v for k, v in self.each.items() if v)) for node in nodes)

    def _fit(self, size: int, losses: int) -> str | None:
        """Run the group once. Why it broke off: "" if there was no room; None where it did not."""
        import ray.train
        import ray.train.torch

        api: Any = ray.train  # whose types are those of its earlier version

        module, folder, attempt, version = self.module, self.folder, self.job.attempt, __version__
        values = self._values(losses)

        def process() -> None:
            work(module, folder, attempt, version, values)

        message = "the group goes on from the last checkpoint" if losses else ""
        self.job.progress("starting", 0, size, "processes", message, next_within_s=STARTING_S)
        trainer = api.torch.TorchTrainer(
            process,
            torch_config=api.torch.TorchConfig(timeout_s=TOGETHER_S),
            scaling_config=api.ScalingConfig(
                num_workers=size,
                use_gpu=bool(self.asked.gpus),
                resources_per_worker={k: v for k, v in self.each.items() if v},
            ),
            run_config=api.RunConfig(
                name=f"{self.job.id}.{attempt}.{losses}",
                storage_path=str(self.folder / STORAGE),
                failure_config=api.FailureConfig(max_failures=0, controller_failure_limit=0),
                worker_runtime_env={"env_vars": {"GOMP_SPINCOUNT": values["GOMP_SPINCOUNT"]}},
            ),
        )
        try:
            trainer.fit()
        except api.TrainingFailedError as error:
            cause = getattr(error, "controller_failure", None)
            return "" if "StartupTimeout" in type(cause).__name__ else _in_a_line(error)
        return None

    def _values(self, losses: int) -> dict[str, str]:
        """The environment of the processes; keys are left in a file that these values alone do not open."""
        keys = {*KEYS, *self.job.spec.get("secrets", ())}
        values = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(PASSED) and name not in keys and name not in NOT_PASSED
        }
        handover.drop(self.folder)
        values[PAD_VARIABLE] = handover.put(self.folder, {name: os.environ[name] for name in keys & os.environ.keys()})
        values.update(
            {
                GROUP_VARIABLE: self.stop_file,
                START_VARIABLE: str(losses) if losses else "",
                "CDP_ATTEMPT": str(self.job.attempt),
                "PYTHONUNBUFFERED": "1",
                "TOKENIZERS_PARALLELISM": os.environ.get("TOKENIZERS_PARALLELISM", "false"),
                "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", SPINS),
            }
        )
        if not self.asked.gpus:
            values["ACCELERATE_USE_CPU"] = "true"
        return values

    def _pass_on_stop(self) -> None:
        """Whoever ends this process politely wants the group to save and end: its first one hears of it by a file."""
        while not self.job.stop_requested():
            time.sleep(0.25)
        (self.folder / self.stop_file).touch()


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def connect(environ: Mapping[str, str]) -> None:
    """Join the cluster that this node belongs to. Its workers find this package as this process does."""
    import ray

    # Ray writes twenty lines of a dead node's own log into the job's; what counts of it is said here.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    path = python_path({})
    given = {"env_vars": {"PYTHONPATH": f"{path}{os.pathsep}${{PYTHONPATH}}"}} if path else {}
    ray.init(address=environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, runtime_env=given)


def main(arguments: list[str]) -> int:
    """Run one attempt; its exit code."""
    private_files()
    survives_a_full_disk()
    module, folder = arguments[0], Path(arguments[1]).resolve()
    os.environ.update(SETTINGS)
    group = Group(module, folder, Place.from_dict(json.loads(os.environ[PLACE_VARIABLE])))
    try:
        group.job.watch_supervisor()
        connect(os.environ)
        signal.signal(signal.SIGTERM, lambda *_: group.job.ask_to_stop())  # Ray's own would end at once
        return group.run()
    except Exception as error:
        if isinstance(error, CdpError):
            print(error, file=sys.stderr, flush=True)
        report_failure(group.job, error)
        if not isinstance(error, CdpError):
            raise
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
