"""Jobs on a Ray cluster: lost nodes, the node test. The only importer of ray, inside functions.

The nodes and the submitting machine share one file system with locks and rename across nodes, with the workspace under
the same path (``probe`` tests it):

- ``RayLauncher.submit`` submits ``python -m cdp.jobs.supervisor`` as a Ray Job. It runs on the head, holds
  ``alive.lock``, and does not need the submitting machine.
- There ``RayRun`` starts the worker as a Ray task, or the processes of a training as a Ray Train group, on any nodes
  with room. ``_work`` is the node's side: the same module on the same folder as on one machine.
- ``RayPool`` is for workers that write many independent files: one Ray task per missing file.

Keys are neither sent to Ray nor written: nodes take them from the environment of ``ray start``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cdp.base.errors import ClusterError, ConfigError, WorkspaceError
from cdp.base.locks import is_held, wait_for_lock
from cdp.base.version import __version__
from cdp.base.worker import GROUP_VARIABLE, NODE_VARIABLE, START_VARIABLE, Job, report_failure
from cdp.base.worker import run as run_worker
from cdp.base.workspace import INSTALLED, Workspace, now, private_files, write_json
from cdp.jobs.launchers import SPINS, End, python_path, starting_folder
from cdp.jobs.logs import redirect_output
from cdp.jobs.records import JobSpec, outcome_of, read_spec, written_by
from cdp.jobs.state import JOB_VARIABLE

T = TypeVar("T")

INSTALL = (
    'pip install "cdp-studio[cluster]"' if INSTALLED else "pip install -r requirements-cluster.txt -c constraints.txt"
)
# Seconds: for an answer of the Jobs API, between looks at a task, for a file to appear on another node, for a probe.
ANSWER_S, LOOK_S, SHOWN_WITHIN_S, PROBED_WITHIN_S = 30.0, 0.5, 10.0, 120.0
LOSSES = 5  # retries of lost processes: more may mean too little memory
# Seconds: until the head detects a dead node, until a file server frees its locks, between looks at nodes.
NODE_DEATH_TIMEOUT_S, LOCK_RELEASE_TIMEOUT_S, SETTLE_S = 20.0, 180.0, 3.0
TOGETHER_S = 86_400  # ranks wait for rank 0, which may evaluate on a dev benchmark for hours
LIGHT_CPUS, CPUS = 0.1, 4.0
ENDED, STOPPED, NO_ROOM = ("STOPPED", "SUCCEEDED", "FAILED"), "stopped", "no room"
PROBED = "cdp probe:"
# Variables that a worker inherits from the submitter. No keys: Ray shows these to all its users.
PASSED = ("CDP_UMASK", "HF_HUB_OFFLINE", "CDP_STOP_GRACE_S")
# Further variables that Ray tasks inherit from their worker.
OF_TASKS = ("CDP_WORKSPACE", NODE_VARIABLE, "ACCELERATE_USE_CPU", "TOKENIZERS_PARALLELISM")
# Ray Train's workers keep their current folder and their output.
RAY_TRAIN = {"RAY_CHDIR_TO_TRIAL_DIR": "0", "RAY_TRAIN_ENABLE_PRINT_PATCH": "0"}


# The submitting side


@dataclass(frozen=True, slots=True)
class RayNode:
    """A living node: its resources (``memory`` in GB), and whether it sees, writes and locks the workspace."""

    host: str
    head: bool = False
    cpus: float = 0.0
    gpus: int = 0
    memory: float = 0.0
    accelerators: tuple[str, ...] = ()
    version: str = ""
    python: str = ""
    ray: str = ""
    sees: bool = True
    writes: bool = True
    locks: bool = True

    def check(self, workspace: Workspace) -> None:
        """Raise ClusterError with the next step if jobs of the workspace cannot run on this node."""
        root, ours = workspace.root, __version__
        for fine, problem, hint in (
            (self.sees, f"does not see the workspace {root}",
             "Put it on a file system that every node mounts under the same path (NFS 4, Lustre, CephFS)."),
            (self.writes, f"may not write the workspace {root}", "Run Ray under an account that may."),
            (self.locks, f"does not see this machine's locks on {root}",
             "Mount it with locks: NFS 4 without nolock, Lustre with -o flock."),
            (self.version == ours, f"has CDP Studio {self.version}, and this machine {ours}",
             "Install the same version in both places."),
        ):  # fmt: skip
            if not fine:
                raise ClusterError(f"The cluster's node {self.host} {problem}.", hint=hint)


class RayLauncher:
    """Client of one cluster's Jobs API, on the submitting machine. Every method may raise ClusterError."""

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ConfigError("Jobs on a cluster need Ray, which is not installed here.", hint=f"Run: {INSTALL}")
        self.address = address

    def check(self) -> None:
        """Raise ClusterError if no compatible Ray answers."""
        self._ask(lambda client: client.get_version())

    def gpus(self) -> int:
        """Return the number of GPUs of all living nodes."""

        def ask(_: Any) -> int:
            from ray.util.state import list_nodes

            alive: Any = [("state", "=", "ALIVE")]
            listed = list_nodes(self.address, filters=alive, limit=10_000, raise_on_missing_output=False)
            return sum(int((node.resources_total or {}).get("GPU", 0)) for node in listed)

        return self._ask(ask)

    def submit(self, folder: Path, spec: JobSpec, attempt: int) -> None:
        """Start the supervisor of an attempt on the head."""
        command = _on_node("cdp.jobs.supervisor", str(folder), "--attempt", str(attempt))
        # Ray kills a driver so long after its request to stop; a worker may take its grace period to save.
        env = {"RAY_JOB_STOP_WAIT_TIME_S": str(round(spec.grace_s + 20.0))}
        env |= {name: os.environ[name] for name in PASSED if os.environ.get(name)}
        about = {"job": spec.id, "name": spec.name}
        name = submission(spec.id, attempt)
        self._ask(
            lambda client: client.submit_job(
                entrypoint=command, submission_id=name, runtime_env={"env_vars": env}, metadata=about
            )
        )

    def end_of(self, job_id: str, attempt: int) -> str:
        """Return why the supervisor of an attempt cannot start; "" while it may, or if the cluster is silent."""
        name = submission(job_id, attempt)
        try:
            info = self._ask(lambda client: next((j for j in client.list_jobs() if j.submission_id == name), None))
        except ClusterError:
            return ""
        if info is None:
            return "The cluster no longer knows the job."
        ended = _status(info.status) in ENDED
        return str(info.message or "It ended before it began.").strip()[-500:] if ended else ""

    def stop(self, job_id: str, attempt: int) -> None:
        """Ask the cluster to end the supervisor of an attempt."""
        self._ask(lambda client: client.stop_job(submission(job_id, attempt)))

    def probe(self, workspace: Workspace) -> list[RayNode]:
        """Return the living nodes, the head first, after a test of the workspace on each; takes seconds.

        Each node has to see a lock that is held here, and to write a file by rename.
        """
        workspace.root.mkdir(parents=True, exist_ok=True)
        folder = workspace.root / f".probe-{os.urandom(6).hex()}"
        lock = wait_for_lock(folder / "here.lock", "The probe's file", wait_s=5.0)
        name = folder.name.lstrip(".")

        try:
            command = _on_node("cdp.jobs.ray", str(folder))
            self._ask(lambda client: client.submit_job(entrypoint=command, submission_id=name))
            _until(lambda: self._ask(lambda client: _status(client.get_job_status(name))) in ENDED, PROBED_WITHIN_S)
            log = str(self._ask(lambda client: client.get_job_logs(name)))
        finally:
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)

        found = [json.loads(line.removeprefix(PROBED)) for line in log.splitlines() if line.startswith(PROBED)]
        if found:
            nodes = [RayNode(**{**about, "accelerators": tuple(about["accelerators"])}) for about in found]
            return sorted(nodes, key=lambda node: (not node.head, node.host))

        if missing := re.findall(r"No module named '?([\w.]+)", log):
            raise ClusterError(
                f"Python on the cluster's nodes has no {missing[-1]}.",
                hint=f"Install CDP Studio {__version__} on every node, in the environment that Ray runs in.",
            )

        lines = [line.strip() for line in log.splitlines() if line.strip()]
        why = lines[-1][:300] if lines else "no output"
        raise ClusterError(f"The cluster at {self.address} cannot run jobs: {why}")

    def _ask(self, call: Callable[[Any], T]) -> T:
        """Return ``call(client)``; ClusterError if it raises or takes too long (Ray has no timeouts)."""
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                from ray.job_submission import JobSubmissionClient

                # In Ray's client these variables override the given address.
                for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
                    os.environ.pop(name, None)
                results.append(call(JobSubmissionClient(self.address)))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="ask-cluster", daemon=True)
        thread.start()
        thread.join(ANSWER_S)
        if results:
            return results[0]
        why = _in_a_line(errors[0]) if errors else f"no answer in {ANSWER_S:g} s"
        raise ClusterError(
            f"The Ray cluster at {self.address} does not answer: {why}.",
            hint="Is it up, and is this the address that its dashboard serves (ray start --dashboard-host, port 8265)?",
        )


def _status(status: Any) -> str:
    return str(getattr(status, "value", status))


def submission(job_id: str, attempt: int) -> str:
    """Return the submission id of an attempt."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '', job_id)}.{attempt}"


def _on_node(module: str, *words: str) -> str:
    """Return a command for a node: with this Python if the node has it at the same path, else with Ray's own."""
    python, path = shlex.quote(sys.executable), python_path({})
    ours = f"PYTHONPATH={shlex.quote(path)}${{PYTHONPATH:+:$PYTHONPATH}} " if path else ""
    return f'P={python}; [ -x "$P" ] || P=python; {ours}exec "$P" -m {module} {shlex.join(words)}'


# The supervisor's side, on the cluster


@dataclass
class RayRun:
    """One attempt of a job, run by its supervisor on the cluster. ``begun`` is called once the worker runs."""

    folder: Path
    spec: JobSpec
    attempt: int
    stop_requested: Callable[[], bool]
    begun: Callable[[], None]
    _start: int = field(default=0, init=False)
    _nodes: int = field(default=0, init=False)
    _running: bool = field(default=False, init=False)
    _forced: bool = field(default=False, init=False)

    def run(self) -> End | None:
        """Run the worker to its end, also if nodes are lost. None if it was stopped before it started.

        Raises ClusterError if processes are lost too often.
        """
        connect()
        try:
            while True:
                self._nodes = len(_alive())
                lost = self._group() if self._processes > 1 else self._task()
                if self._forced or lost == STOPPED:
                    return End(-signal.SIGKILL, forced=True) if self._running else None
                ended = outcome_of(self.folder, self.attempt)
                if ended or written_by(self.attempt, self.folder / "failure.json") or not lost:
                    return End(0 if ended else 1)
                if lost == NO_ROOM:
                    continue
                self._start += 1
                self._say(f"A process of the job was lost: {lost}")
                if self.stop_requested():
                    return End(-signal.SIGKILL)
                if self._start > LOSSES:
                    raise ClusterError(
                        f"Processes of the job were lost {self._start} times, the last one so: {lost}",
                        hint="The nodes may be out of memory. Resume the job.",
                    )
                # A group that starts before its dead node is detected would wait for it.
                _until(lambda: len(_alive()) < self._nodes, NODE_DEATH_TIMEOUT_S if self._processes > 1 else SETTLE_S)
        finally:
            import ray

            ray.shutdown()  # ends all tasks
            shutil.rmtree(self.folder / ".ray-train", ignore_errors=True)

    @property
    def _processes(self) -> int:
        return self.spec.device.processes if self.spec.launcher == "accelerate" else 1

    @property
    def _each(self) -> tuple[float, float]:
        """The CPUs and GPUs of each process."""
        device = self.spec.device
        if self._processes > 1:
            return 1.0, float(min(device.count, 1))
        if device.idle:
            return LIGHT_CPUS, 0.0
        # Ray limits threads to the CPUs that a task asks for, and starts none that no node has room for.
        largest = max((has.get("CPU", 0.0) for has in _alive().values()), default=1.0)
        return max(1.0, min(CPUS, largest)), float(device.count)

    def _task(self) -> str:
        """Run the worker as one Ray task. Return why its process was lost, "" if it was not."""
        import ray

        cpus, gpus = self._each
        values, tasks = self._values(), None
        if self.spec.uses_pool:  # its tasks have the job's devices
            tasks, cpus, gpus = RayPool(cpus, gpus), LIGHT_CPUS, 0.0
        # max_calls: the worker changes the environment and the current folder of its process.
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": 0, "max_calls": 1}
        task: Any = ray.remote(**options, runtime_env=_settings())(_work)
        reference = task.remote(self.spec.module, str(self.folder), self.attempt, values, tasks)
        self._wait(lambda: bool(ray.wait([reference], timeout=LOOK_S)[0]), lambda: ray.cancel(reference))
        if self._forced or (self.stop_requested() and not self._running):
            return STOPPED
        try:
            ray.get(reference)
        except ray.exceptions.RayError as error:
            return _in_a_line(error)
        return ""

    def _group(self) -> str:
        """Run the processes of a training under Ray Train. Return why one was lost, "" if none was."""
        # Retried here and not by Ray Train's ``FailureConfig``, which would also retry a training that diverges.
        import ray.train
        import ray.train.torch

        api: Any = ray.train
        cpus, gpus = self._each

        size = self._size(cpus, gpus)
        if not size:
            return STOPPED

        module, folder, attempt, values = self.spec.module, str(self.folder), self.attempt, self._values()
        values[GROUP_VARIABLE] = "1"
        trainer = api.torch.TorchTrainer(
            lambda: _work(module, folder, attempt, values),
            torch_config=api.torch.TorchConfig(timeout_s=TOGETHER_S),
            scaling_config=api.ScalingConfig(
                num_workers=size, use_gpu=bool(gpus),
                resources_per_worker={"CPU": cpus, **({"GPU": gpus} if gpus else {})},
            ),
            run_config=api.RunConfig(
                name=f"{self.spec.id}.{attempt}.{self._start}", storage_path=str(self.folder / ".ray-train"),
                failure_config=api.FailureConfig(max_failures=0, controller_failure_limit=0),
                worker_runtime_env=_settings(),
            ),
        )  # fmt: skip

        ended: list[str] = []

        def fit() -> None:
            try:
                trainer.fit()
                ended.append("")
            except BaseException as error:
                cause = type(getattr(error, "controller_failure", None)).__name__
                ended.append(NO_ROOM if "StartupTimeout" in cause else _in_a_line(error))

        threading.Thread(target=fit, name="ray-train", daemon=True).start()
        self._wait(lambda: _until(lambda: bool(ended), LOOK_S), lambda: None)

        return ended[0] if ended else STOPPED

    def _size(self, cpus: float, gpus: float) -> int:
        """Return the number of processes to start: all, or after a loss a divisor of it with room; 0: stopped."""
        # With a divisor the batch is sharded evenly as before.
        wanted = self._processes
        while not self.stop_requested():
            room = sum(
                int(min(n.get("CPU", 0.0) // cpus, n.get("GPU", 0.0) // gpus if gpus else wanted))
                for n in _alive().values()
            )
            sizes = [n for n in range(1, wanted + 1) if wanted % n == 0 and n <= room]
            if room >= wanted or (sizes and (self._start or self.attempt > 1)):
                if sizes[-1] < wanted:
                    self._say(f"The remaining nodes have room for {sizes[-1]} of {wanted} processes.")
                return sizes[-1]
            time.sleep(SETTLE_S)
        return 0

    def _wait(self, ended: Callable[[], bool], cancel: Callable[[], None]) -> None:
        """Wait for the end, or after a request to stop for the grace period; report when the worker starts."""
        deadline = None
        while not ended():
            if not self._running and written_by(self.attempt, self.folder / "heartbeat.json"):
                self._running = True
                self.begun()

            if not self.stop_requested():
                continue

            if deadline is None:
                write_json(self.folder / "stop.request", {"time": now()})  # the worker looks for this file
                deadline = time.monotonic() + self.spec.grace_s

            if not self._running:
                cancel()
                return

            if time.monotonic() > deadline:
                self._forced = True
                return

    def _values(self) -> dict[str, str]:
        """Return the environment of the worker's processes, added to the node's."""
        return {
            **{name: os.environ[name] for name in PASSED if os.environ.get(name)},
            **RAY_TRAIN,
            JOB_VARIABLE: str(self.folder),
            "CDP_WORKSPACE": str(self.folder.parent.parent),
            "CDP_ATTEMPT": str(self.attempt),
            "CDP_SUPERVISOR_PID": str(os.getpid()),
            "CDP_STOP_GRACE_S": f"{self.spec.grace_s:g}",
            NODE_VARIABLE: __version__,
            "TOKENIZERS_PARALLELISM": "false",
            **({START_VARIABLE: str(self._start)} if self._start else {}),
            **({} if self.spec.device.count else {"ACCELERATE_USE_CPU": "true"}),
        }

    def _say(self, line: str) -> None:
        print(line, flush=True)
        with open(self.folder / "worker.log", "a", encoding="utf-8") as log:
            log.write(f"{line}\n")


def connect() -> None:
    """Join the cluster of this node. Its workers import the same package as this process."""
    import ray

    os.environ.update(RAY_TRAIN)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, runtime_env=_settings())
    for number, handler in handlers.items():  # Ray's would end the process at once
        signal.signal(number, handler)


def _alive() -> dict[str, dict[str, float]]:
    """Return the resources of each living node, by its id."""
    import ray

    return {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}


def _settings() -> dict[str, Any]:
    # Python and OpenMP read these when a process starts, before ``_work`` can set them.
    path = python_path({})
    own = {"PYTHONPATH": f"{path}{os.pathsep}${{PYTHONPATH}}"} if path else {}
    return {"env_vars": {**own, "GOMP_SPINCOUNT": SPINS, "PYTHONUNBUFFERED": "1"}}


# The node's side


def _work(module: str, folder_name: str, attempt: int, values: Mapping[str, str], tasks: RayPool | None = None) -> None:
    """Run a worker's module in this process of Ray's, with ``values`` added to the environment.

    The outcome is in the job's files. Raises only to end the other processes of a group.
    """
    os.environ.update(values)
    private_files()
    Job.pool = tasks
    folder = Path(folder_name)
    _until(lambda: (folder / "spec.json").is_file(), SHOWN_WITHIN_S)

    if outcome_of(folder, attempt) or written_by(attempt, folder / "failure.json"):
        return

    job, spec = Job(folder), read_spec(folder)
    if problem := _problem(spec, values[NODE_VARIABLE]):
        report_failure(job, problem)
        raise problem

    if job.is_main:
        # A file server may hold the lock of a process that died with its node.
        _until(lambda: not is_held(folder / "worker.lock"), LOCK_RELEASE_TIMEOUT_S)
        _write_to(folder / "worker.log")
        print(f"--- on {socket.gethostname()} ---", flush=True)

    if where := starting_folder(spec, folder):
        os.chdir(where)

    try:
        run_worker(importlib.import_module(module).main, [str(folder)])
    except SystemExit as end:
        if end.code and os.environ.get(GROUP_VARIABLE):
            raise RuntimeError(f"rank {os.environ['RANK']} ended with exit code {end.code}") from None


def _problem(spec: JobSpec, version: str) -> Exception | None:
    host = socket.gethostname()
    if version != __version__:
        return ClusterError(
            f"The node {host} has CDP Studio {__version__}, and the job was started by {version}.",
            hint="Install the same version on every node.",
        )
    missing = [name for name in spec.secrets if not os.environ.get(name)]
    if missing:
        return ConfigError(
            f"The job needs {', '.join(missing)}, which is not set on the node {host}.",
            hint="Keys are not sent to a cluster: set them in the environment of `ray start` on every node.",
        )
    return None


def _write_to(path: Path) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    redirect_output(path)
    # Ray's own streams forward lines to the driver.
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300] if lines else ''}".rstrip(": ")


# Many files by as many tasks


@dataclass(frozen=True)
class RayPool:
    """``cdp.base.worker.WorkerPool`` on a cluster: one Ray task per missing file."""

    cpus: float
    gpus: float

    def map(
        self,
        task: Callable[..., object],
        files: Iterable[tuple[Path, tuple[Any, ...]]],
        should_stop: Callable[[], bool],
    ) -> Iterator[Path]:
        """See ``cdp.base.worker.WorkerPool``. Tasks of a lost node are retried on another."""
        import ray

        values = {name: os.environ[name] for name in (*OF_TASKS, *PASSED) if name in os.environ}
        remote = ray.remote(_make).options(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=LOSSES)
        total = ray.cluster_resources()
        slots = total.get("GPU", 0) / self.gpus if self.gpus else total.get("CPU", 1) / self.cpus
        left, started = iter(files), dict[Any, Path]()

        try:
            while not should_stop():
                # Arguments may be large: the queue of tasks is short.
                while len(started) < max(2, int(2 * slots)) and (file := next(left, None)) is not None:
                    path, arguments = file
                    if path.exists():
                        yield path
                    else:
                        started[remote.remote(task, path, arguments, values)] = path

                if not started:
                    return

                for reference in ray.wait(list(started), timeout=LOOK_S)[0]:
                    path = started.pop(reference)
                    try:
                        ray.get(reference)
                    except ray.exceptions.RayTaskError as error:
                        raise error.cause or error from None
                    if path.exists():
                        yield path
        finally:  # the caller may also end early
            _cancel(started)


def _cancel(references: Iterable[Any]) -> None:
    import ray

    for reference in references:
        ray.cancel(reference, force=True)


def _make(task: Callable[..., object], path: Path, arguments: tuple[Any, ...], values: Mapping[str, str]) -> None:
    os.environ.update(values)
    private_files()
    if not path.exists():  # a retry after the loss of a node
        task(path, *arguments)


# The probe's side on the cluster: python -m cdp.jobs.ray <folder>


def _try_workspace(folder_name: str) -> dict[str, Any]:
    """Test the workspace on this node: a lock held elsewhere, a file written by rename."""
    import platform

    import ray

    folder = Path(folder_name)
    sees, writes, locks = _until((folder / "here.lock").is_file, SHOWN_WITHIN_S), False, False
    if sees:
        with suppress(OSError, WorkspaceError):
            locks = is_held(folder / "here.lock")
            write_json(folder / f"{os.urandom(6).hex()}.json", {})
            writes = True
    return {"host": socket.gethostname(), "version": __version__, "python": platform.python_version(),
            "ray": ray.__version__, "sees": sees, "writes": writes, "locks": locks}  # fmt: skip


def main(arguments: list[str]) -> None:
    """Test the workspace on every living node; print a line for each."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    private_files()
    connect()
    nodes = _alive()
    remote = ray.remote(_try_workspace)
    asked = {
        node: remote.options(num_cpus=0, scheduling_strategy=On(node, soft=False)).remote(arguments[0])
        for node in nodes
    }
    for node, reference in asked.items():
        total = nodes[node]
        has = {
            "head": "node:__internal_head__" in total,
            "cpus": float(total.get("CPU", 0)),
            "gpus": int(total.get("GPU", 0)),
            "memory": float(total.get("memory", 0)) / 1e9,
            "accelerators": [name.partition(":")[2] for name in total if name.startswith("accelerator_type:")],
        }
        tried: dict[str, Any] = ray.get(reference)
        print(f"{PROBED}{json.dumps({**has, **tried})}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
