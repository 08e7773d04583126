"""The storm itself: submit, kill, look, resume, until so many kills are dealt; then compare with an unbroken run."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import catalog, jobs
from cdp.base.workspace import Workspace
from tests.faults.chaos.kinds import SUBMIT, Ground, differences, outputs, submit

# What is shown must be true this soon after a kill.
TRUE_WITHIN_S = 10.0

# How long a killed job may take to come to an end that can be looked at, on a busy machine: patience, no measure.
ENDS_WITHIN_S = 180.0

_spawn = multiprocessing.get_context("forkserver")
_spawn.set_forkserver_preload(["tests.faults.chaos.kinds", "cdp.catalog"])


@dataclass
class Report:
    """What a storm did and met. ``violations`` is empty if all is well."""

    kills: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    true_after_s: list[float] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        late = sorted(self.true_after_s)
        return {
            "kills": sum(self.kills.values()), "by_victim": dict(self.kills), "jobs": dict(self.jobs),
            "states_after_a_kill": dict(self.states), "violations": self.violations,
            "seconds_until_true": {"median": late[len(late) // 2], "largest": late[-1]} if late else {},
        }  # fmt: skip


def processes(workspace: Workspace, job_id: str) -> dict[int, str]:
    """Every living process of a job, by other means than the app's: its command line or environment names the folder.

    The value says whether it is the supervisor. Zombies have neither.
    """
    folder = os.fsencode(str(workspace.job(job_id)))
    found: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            line = Path(f"/proc/{entry}/cmdline").read_bytes()
            if folder not in line and folder not in Path(f"/proc/{entry}/environ").read_bytes():
                continue
        except OSError:
            continue
        found[int(entry)] = "supervisor" if b"cdp.jobs.supervisor" in line else "worker"
    return found


class Storm:
    """Kills of one kind of job in one workspace."""

    def __init__(
        self, ground: Ground, kind: str, rng: random.Random, report: Report, *, tolerance: float = 0.0
    ) -> None:
        self.ground, self.kind, self.rng, self.report = ground, kind, rng, report
        self.workspace = ground.workspace
        self.tolerance = tolerance
        self.number = 0
        began = time.monotonic()
        job_id = self._submit_whole()
        self.submit_s = time.monotonic() - began
        self._until_over(job_id)
        self.seconds = time.monotonic() - began
        self.expected = outputs(self.workspace, job_id)
        assert jobs.view(self.workspace, job_id).state == "finished", jobs.follow_log(self.workspace, job_id)[0]
        self._discard(job_id)

    def deal(self, kills: int) -> None:
        """Deal at least so many kills, over as many jobs as it takes; each job comes to its end."""
        goal = sum(self.report.kills.values()) + kills
        while sum(self.report.kills.values()) < goal:
            job_id = self._submit_under_fire() if self.rng.random() < 0.3 else self._submit_whole()
            if job_id is None:
                self._tidy("a killed submit")
                continue
            self.report.jobs[self.kind] += 1
            for _ in range(self.rng.randrange(2, 6)):
                time.sleep(self.rng.uniform(0.0, self.seconds))
                self._strike(job_id)
                state = self._state(job_id)
                if state == "finished":
                    break
                if not state.active:
                    jobs.resume(self.workspace, job_id)
                if sum(self.report.kills.values()) >= goal:
                    break
            self._until_over(job_id)
            state = self._state(job_id)
            if state != "finished":
                self._violated(job_id, f"left alone it ended as {state}: {jobs.view(self.workspace, job_id).failure}")
            else:
                apart = differences(self.expected, outputs(self.workspace, job_id), tolerance=self.tolerance)
                for difference in apart:
                    self._violated(job_id, f"resumed, it gave something else: {difference}")
            self._tidy("a job")
            self._discard(job_id)

    def _submit_whole(self) -> str:
        self.number += 1
        return SUBMIT[self.kind](self.ground, self.number)

    def _submit_under_fire(self) -> str | None:
        """Submit from a process that is killed on the way: the job's id if one appeared."""
        before = {job.id for job in jobs.list_jobs(self.workspace)}
        self.number += 1
        child = _spawn.Process(target=submit, args=(self.kind, self.ground, self.number))
        child.start()
        time.sleep(self.rng.uniform(0.0, 2 * self.submit_s))
        if child.is_alive():
            child.kill()
            self.report.kills["submitter"] += 1
        child.join()
        new = [job for job in jobs.list_jobs(self.workspace) if job.id not in before]
        for job in new:
            if not job.active and not job.ended:
                jobs.resume(self.workspace, job.id)
        return new[0].id if new else None

    def _strike(self, job_id: str) -> None:
        """Kill whom chance picks, then look until what is shown is true and the job is over."""
        present = processes(self.workspace, job_id)
        victim = self.rng.choice(("worker", "supervisor", "both", "one"))
        pids = [pid for pid, role in present.items() if victim in (role, "both")]
        if victim == "one":
            pids = [self.rng.choice(list(present))] if present else []
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if pids:
            self.report.kills[victim] += 1
            self._watch(job_id)

    def _watch(self, job_id: str) -> None:
        """Look again and again until the job is over; every look is held against the process table."""
        began = time.monotonic()
        untrue_until = began
        untrue = ""
        while time.monotonic() - began < ENDS_WITHIN_S:
            before = processes(self.workspace, job_id)
            view = jobs.view(self.workspace, job_id, with_size=False)
            after = processes(self.workspace, job_id)
            living = {pid: role for pid, role in before.items() if pid in after}
            if view.ended:  # the supervisor leaves after it has recorded the end
                living = {pid: role for pid, role in living.items() if role != "supervisor"}
            moment = time.monotonic()
            if not view.active and living:
                untrue, untrue_until = f"shown as {view.state} while processes lived", moment
                self._violated(job_id, f"{untrue}: {living}")
            elif view.active and not before and not after:
                untrue, untrue_until = f"shown as {view.state} though nothing lived", moment
            elif not view.active:
                break
            if untrue and untrue_until - began > TRUE_WITHIN_S:
                self._violated(job_id, f"{untrue} {untrue_until - began:.1f} s after the kill")
                break
            time.sleep(0.05)
        else:
            self._violated(job_id, f"not over {ENDS_WITHIN_S:.0f} s after a kill")
        self.report.true_after_s.append(untrue_until - began)
        self.report.states[str(self._state(job_id))] += 1

    def _state(self, job_id: str) -> jobs.State:
        return jobs.view(self.workspace, job_id, with_size=False).state

    def _until_over(self, job_id: str) -> None:
        deadline = time.monotonic() + ENDS_WITHIN_S
        while jobs.view(self.workspace, job_id, with_size=False).active:
            if time.monotonic() > deadline:
                self._violated(job_id, "it did not end")
                return
            time.sleep(0.05)

    def _tidy(self, after: str) -> None:
        """Nothing may be left of jobs that are over: no ticket, no hidden or nameless folder."""
        deadline = time.monotonic() + TRUE_WITHIN_S
        left: list[str] = []
        while time.monotonic() < deadline:
            known = {job.id: job for job in jobs.list_jobs(self.workspace)}
            names = {path.name for path in self.workspace.jobs.iterdir()}
            left = sorted(names - set(known))
            for path in (self.workspace.root / "queue").glob("*.json"):
                owner = next((job for job in known.values() if path.name.endswith(f".{job.id}.json")), None)
                if owner is None or not owner.active:
                    left.append(path.name)
            if not left:
                return
            time.sleep(0.2)
        self._violated("", f"{after} left {left}")

    def _discard(self, job_id: str) -> None:
        jobs.delete(self.workspace, job_id)
        shutil.rmtree(self.workspace.embeddings, ignore_errors=True)  # the next one has to compute its own

    def _violated(self, job_id: str, what: str) -> None:
        self.report.violations.append(f"{self.kind} {job_id}: {what}")


def _rebuild(workspace: Workspace) -> None:
    catalog.rebuild(workspace)


def rebuild_under_fire(workspace: Workspace, kills: int, rng: random.Random, report: Report) -> None:
    """Kill rebuilds of the catalogue; whoever reads next must see the same rows as before."""
    expected = rows_of(workspace)
    began = time.monotonic()
    catalog.rebuild(workspace)
    takes_s = time.monotonic() - began
    for _ in range(kills):
        child = _spawn.Process(target=_rebuild, args=(workspace,))
        child.start()
        time.sleep(rng.uniform(0.0, 1.5 * takes_s))
        if child.is_alive():
            child.kill()
            report.kills["rebuild"] += 1
        child.join()
        if rows_of(workspace) != expected:
            report.violations.append("a killed rebuild left another catalogue")


def rows_of(workspace: Workspace) -> dict[str, list[Any]]:
    """Everything in the catalogue, in a fixed order, after it was brought up to date."""
    import duckdb

    catalog.ingest(workspace)
    connection = duckdb.connect(str(workspace.catalog), read_only=True)
    try:
        tables = ("trainings", "evaluations", "scores", "files")
        return {name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}").fetchall())) for name in tables}
    finally:
        connection.close()
