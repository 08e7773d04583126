"""Jobs on a Ray cluster. The only importer of ray, and only where it is used.

The cluster's nodes and the submitting machine share one file system with locks and rename across nodes, on which the
workspace lies under the same path; ``probe`` tests it. So files stay the truth, as on one machine:

- ``RayLauncher.submit`` gives ``python -m cdp.jobs.supervisor`` to the cluster as a Ray Job. It runs on the head, holds
  ``alive.lock`` and goes on when the submitting machine is off.
- There ``run`` starts the worker as a Ray task, or several processes of one training as a Ray Train group, wherever the
  cluster has room. ``_work`` is the node's side: the same module on the same folder as on one machine.
- ``RayTasks`` is for workers that make many independent files: each file is a Ray task, skipped where it exists.

Keys are neither given to Ray nor written: nodes take them from the environment that ``ray start`` was called in.
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
from cdp.base.locks import is_held, try_lock, wait_for_lock
from cdp.base.version import __version__
from cdp.base.worker import GROUP_VARIABLE, NODE_VARIABLE, START_VARIABLE, Job, report_failure
from cdp.base.worker import run as run_worker
from cdp.base.workspace import INSTALLED, Workspace, private_files, write_bytes, write_json
from cdp.jobs.launchers import SPINS, End, python_path, starting_folder
from cdp.jobs.logs import redirect_output
from cdp.jobs.processes import VARIABLE as JOB_VARIABLE
from cdp.jobs.records import JobSpec, outcome_of, read_spec, written_by

T = TypeVar("T")

INSTALL = (
    'pip install "cdp-studio[cluster]"' if INSTALLED else "pip install -r requirements-cluster.txt -c constraints.txt"
)
# Seconds: for an answer of the Jobs API, between looks at a task, for a file to appear on another node, for a probe.
ANSWER_S, LOOK_S, SHOWN_WITHIN_S, PROBED_WITHIN_S = 30.0, 0.5, 10.0, 120.0
# A job whose processes die more often than this is not unlucky: they may have too little memory.
LOSSES = 5
# How long the head takes to hear of a dead node, and a file server to free the locks of one; between looks at nodes.
HEARD_WITHIN_S, FREED_WITHIN_S, SETTLE_S = 20.0, 180.0, 3.0
# Processes of one training wait so long for each other: the first one may evaluate on a dev benchmark for hours.
TOGETHER_S = 86_400
LIGHT_CPUS, CPUS = 0.1, 4.0
ENDED, STOPPED, NO_ROOM = ("STOPPED", "SUCCEEDED", "FAILED"), "stopped", "no room"
PROBED = "cdp probe:"
# Settings that a worker on this machine would inherit. No keys: Ray shows these to everybody who may ask it.
PASSED = ("CDP_UMASK", "CDP_PLUGINS", "HF_HUB_OFFLINE", "CDP_STOP_GRACE_S")
# What the tasks of a worker get of its environment beside these.
OF_TASKS = ("CDP_WORKSPACE", NODE_VARIABLE, "ACCELERATE_USE_CPU", "TOKENIZERS_PARALLELISM")
# Ray Train's workers stay in their folder and print as they are told to.
RAY_TRAIN = {"RAY_CHDIR_TO_TRIAL_DIR": "0", "RAY_TRAIN_ENABLE_PRINT_PATCH": "0"}


# The submitting side


@dataclass(frozen=True, slots=True)
class RayNode:
    """A living node: what it has in all, and what it sees of the workspace. ``memory`` is in GB.

    ``sees`` is False where the workspace is not there, ``writes`` where it cannot be written, ``locks`` where a lock
    held by one machine is not seen by the other.
    """

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
        """Raise ClusterError with the next step unless jobs of the workspace can run on this node."""
        root, ours = workspace.root, __version__
        for fine, told, hint in (
            (self.sees, f"does not see the workspace {root}",
             "Put it on a file system that every node mounts under the same path (NFS 4, Lustre, CephFS)."),
            (self.writes, f"may not write the workspace {root}", "Run Ray under an account that may."),
            (self.locks, f"and this machine do not see each other's locks on {root}",
             "Mount it with locks: NFS 4 without nolock, Lustre with -o flock."),
            (self.version == ours, f"has CDP Studio {self.version}, and this machine {ours}",
             "Install the same version in both places."),
        ):  # fmt: skip
            if not fine:
                raise ClusterError(f"The cluster's node {self.host} {told}.", hint=hint)


class RayLauncher:
    """The Jobs API of one cluster, asked from the submitting machine. Every method may raise ClusterError."""

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ConfigError("Jobs on a cluster need Ray, which is not installed here.", hint=f"Run: {INSTALL}")
        self.address = address

    def check(self) -> None:
        """Raise ClusterError unless a Ray answers that the one installed here can talk to."""
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
        # Ray kills a driver that does not end so long after its request to stop; a worker may take its grace to save.
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
        """Return why the supervisor of an attempt can no longer start; "" while it may, or the cluster is silent."""
        name = submission(job_id, attempt)
        try:
            info = self._ask(lambda client: next((j for j in client.list_jobs() if j.submission_id == name), None))
        except ClusterError:
            return ""
        if info is None:
            return "The cluster does not know the job any more."
        ended = str(getattr(info.status, "value", info.status)) in ENDED
        return str(info.message or "It ended before it began.").strip()[-500:] if ended else ""

    def stop(self, job_id: str, attempt: int) -> None:
        """Ask the cluster to end the supervisor of an attempt."""
        self._ask(lambda client: client.stop_job(submission(job_id, attempt)))

    def probe(self, workspace: Workspace) -> list[RayNode]:
        """Return the living nodes, the head first, once a Ray task on each has tried the workspace; takes seconds.

        Each side holds a lock that the other has to see, and each node moves a file into place by rename.
        """
        workspace.root.mkdir(parents=True, exist_ok=True)
        folder = workspace.root / f".probe-{os.urandom(6).hex()}"
        lock = wait_for_lock(folder / "here.lock", "The probe's file", wait_s=5.0)
        name, held, log = folder.name.lstrip("."), dict[str, bool](), ""
        try:
            command = _on_node("cdp.jobs.ray", str(folder))
            self._ask(lambda client: client.submit_job(entrypoint=command, submission_id=name))
            deadline = time.monotonic() + PROBED_WITHIN_S
            over = False
            while not over and time.monotonic() < deadline:
                status = self._ask(lambda client: client.get_job_status(name))
                over = str(getattr(status, "value", status)) in ENDED
                for path in folder.glob("*.json"):
                    held.setdefault(path.stem, is_held(path.with_suffix(".lock")))
                write_bytes(folder / "seen", "\n".join(held).encode())
            log = str(self._ask(lambda client: client.get_job_logs(name)))
        finally:
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)
        told = [json.loads(line.removeprefix(PROBED)) for line in log.splitlines() if line.startswith(PROBED)]
        if not told:
            raise self._cannot_begin(log)
        nodes = []
        for about in told:
            locks = held.get(about.pop("id"), False) and about.pop("locks")
            nodes.append(RayNode(**{**about, "accelerators": tuple(about["accelerators"]), "locks": locks}))
        return sorted(nodes, key=lambda node: (not node.head, node.host))

    def _cannot_begin(self, log: str) -> ClusterError:
        missing = re.findall(r"No module named '?([\w.]+)", log)
        if missing:
            return ClusterError(
                f"Python on the cluster's nodes has no {missing[-1]}.",
                hint=f"Install CDP Studio {__version__} on every node, in the environment that Ray runs in.",
            )
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        why = lines[-1][:300] if lines else "no output"
        return ClusterError(f"The cluster at {self.address} cannot run jobs: {why}")

    def _ask(self, call: Callable[[Any], T]) -> T:
        """Return the result of ``call(client)``; ClusterError where it raises or takes long: Ray has no timeouts."""
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                from ray.job_submission import JobSubmissionClient

                # Ray's client takes the address of these variables in place of the one that it is given.
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
            f"The Ray cluster at {self.address} does not answer as it should: {why}.",
            hint="Is it up, and is this the address that its dashboard serves (ray start --dashboard-host, port 8265)?",
        )


def submission(job_id: str, attempt: int) -> str:
    """Return the name of an attempt among Ray's jobs."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '', job_id)}.{attempt}"


def _on_node(module: str, *words: str) -> str:
    """The command that Ray runs: with this Python where the node has it at the same path, else with Ray's own."""
    python, path = shlex.quote(sys.executable), python_path({})
    ours = f"PYTHONPATH={shlex.quote(path)}${{PYTHONPATH:+:$PYTHONPATH}} " if path else ""
    return f'P={python}; [ -x "$P" ] || P=python; {ours}exec "$P" -m {module} {shlex.join(words)}'


# The supervisor's side, on the cluster


@dataclass
class RayRun:
    """One attempt of a job, run by its supervisor on the cluster. ``begun`` is called once the worker is at work."""

    folder: Path
    spec: JobSpec
    attempt: int
    stop_requested: Callable[[], bool]
    stop_now: Callable[[], bool]
    begun: Callable[[], None]
    _start: int = field(default=0, init=False)
    _nodes: int = field(default=0, init=False)
    _running: bool = field(default=False, init=False)
    _forced: bool = field(default=False, init=False)

    def run(self) -> End | None:
        """Run the worker to its end, through the loss of nodes. None where it was stopped before it began.

        Raises ClusterError where processes are lost again and again.
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
                        hint="Have the nodes too little memory? Then resume the job.",
                    )
                # A group that starts while its dead node still counts as alive would wait for it in vain.
                _until(lambda: len(_alive()) < self._nodes, HEARD_WITHIN_S if self._processes > 1 else SETTLE_S)
        finally:
            import ray

            ray.shutdown()  # and with it what is still at work
            shutil.rmtree(self.folder / ".ray-train", ignore_errors=True)

    @property
    def _processes(self) -> int:
        return self.spec.device.processes if self.spec.launcher == "accelerate" else 1

    @property
    def _each(self) -> tuple[float, float]:
        """CPUs and GPUs of each process."""
        device = self.spec.device
        if self._processes > 1:
            return 1.0, float(min(device.count, 1))
        if device.idle:
            return LIGHT_CPUS, 0.0
        # Ray limits threads to the CPUs that a task asks for, and starts none that no node has room for.
        largest = max((has.get("CPU", 0.0) for has in _alive().values()), default=1.0)
        return max(1.0, min(CPUS, largest)), float(device.count)

    def _task(self) -> str:
        """Run the worker as one Ray task. Why its process was lost; "" where it was not."""
        import ray

        cpus, gpus = self._each
        values, tasks = self._values(), None
        if self.spec.spreads:  # its tasks have what the job asks for
            tasks, cpus, gpus = RayTasks(cpus, gpus), LIGHT_CPUS, 0.0
        # Each attempt has a process of its own: the worker changes its environment and its folder.
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
        """Run the processes of a training under Ray Train. Why one was lost; "" where none was.

        They are started again here and not by Ray Train's own ``FailureConfig``, which would also repeat what fails
        each time (a training that diverges). After a loss a group shrinks to a divisor of its size, with which a batch
        divides as before.
        """
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
        """How many processes to start: all, or after a loss a divisor for which there is room; 0: stopped."""
        wanted = self._processes
        while not self.stop_requested():
            room = sum(
                int(min(n.get("CPU", 0.0) // cpus, n.get("GPU", 0.0) // gpus if gpus else wanted))
                for n in _alive().values()
            )
            sizes = [n for n in range(1, wanted + 1) if wanted % n == 0 and n <= room]
            if room >= wanted or (sizes and (self._start or self.attempt > 1)):
                if sizes[-1] < wanted:
                    self._say(f"The nodes that are left take {sizes[-1]} of {wanted} processes.")
                return sizes[-1]
            time.sleep(SETTLE_S)
        return 0

    def _wait(self, ended: Callable[[], bool], cancel: Callable[[], None]) -> None:
        """Wait for the end, or for that of the grace period once a stop is wanted, and tell when the worker begins."""
        deadline = None
        while not ended():
            if not self._running and written_by(self.attempt, self.folder / "heartbeat.json"):
                self._running = True
                self.begun()
            if not self.stop_requested():
                continue
            if deadline is None:
                write_json(self.folder / "stop.request", {"now": self.stop_now()})  # the worker looks for this file
                deadline = time.monotonic() + self.spec.grace_s
            if not self._running:
                cancel()
                return
            if self.stop_now() or time.monotonic() > deadline:
                self._forced = True
                return

    def _values(self) -> dict[str, str]:
        """The environment of the worker's processes beside the node's own."""
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
    """Join the cluster that this node belongs to. Its workers find this package as this process does."""
    import ray

    os.environ.update(RAY_TRAIN)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, runtime_env=_settings())
    for number, handler in handlers.items():  # Ray's own would end at once
        signal.signal(number, handler)


def _alive() -> dict[str, dict[str, float]]:
    """What each living node has in all, by the node's id."""
    import ray

    return {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}


def _settings() -> dict[str, Any]:
    # Python and OpenMP read these when a process starts, before ``_work`` can set them.
    path = python_path({})
    own = {"PYTHONPATH": f"{path}{os.pathsep}${{PYTHONPATH}}"} if path else {}
    return {"env_vars": {**own, "GOMP_SPINCOUNT": SPINS, "PYTHONUNBUFFERED": "1"}}


# The node's side


def _work(
    module: str, folder_name: str, attempt: int, values: Mapping[str, str], tasks: RayTasks | None = None
) -> None:
    """Run a worker's module in this process of Ray's, with these environment variables beside the node's own.

    The end of the worker stands in the job's files. Raises only where a process of a group has to end the others.
    """
    os.environ.update(values)
    private_files()
    Job.spread = tasks
    folder = Path(folder_name)
    _until(lambda: (folder / "spec.json").is_file(), SHOWN_WITHIN_S)
    if outcome_of(folder, attempt) or written_by(attempt, folder / "failure.json"):
        return
    job, spec = Job(folder), read_spec(folder)
    if problem := _problem(spec, values[NODE_VARIABLE]):
        report_failure(job, problem)
        raise problem
    if job.is_main:
        # A process that died with its node may hold the lock until the file server notices.
        _until(lambda: not is_held(folder / "worker.lock"), FREED_WITHIN_S)
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
class RayTasks:
    """``cdp.base.worker.Spread`` on a cluster: each missing file is a Ray task with so many CPUs and GPUs."""

    cpus: float
    gpus: float

    def map(
        self,
        task: Callable[..., object],
        files: Iterable[tuple[Path, tuple[Any, ...]]],
        should_stop: Callable[[], bool],
    ) -> Iterator[Path]:
        """See ``cdp.base.worker.Spread``. A task whose node dies is repeated on another."""
        import ray

        values = {name: os.environ[name] for name in (*OF_TASKS, *PASSED) if name in os.environ}
        remote = ray.remote(_make).options(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=LOSSES)
        total = ray.cluster_resources()
        slots = total.get("GPU", 0) / self.gpus if self.gpus else total.get("CPU", 1) / self.cpus
        left, started = iter(files), dict[Any, Path]()
        while not should_stop():
            # Arguments may be large: no more tasks wait than are at work.
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
                    _cancel(started)
                    raise error.cause or error from None
                if path.exists():
                    yield path
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


def _try_workspace(folder_name: str, node: str) -> dict[str, Any]:
    """Try the workspace on this node: a lock held elsewhere, a file moved into place, a lock that others see."""
    import platform

    import ray

    folder = Path(folder_name)
    facts: dict[str, Any] = {"id": node, "host": socket.gethostname(), "version": __version__,
                             "python": platform.python_version(), "ray": ray.__version__,
                             "writes": False, "locks": False}  # fmt: skip
    facts["sees"] = _until((folder / "here.lock").is_file, SHOWN_WITHIN_S)
    if not facts["sees"]:
        return facts
    with suppress(OSError, WorkspaceError):
        facts["locks"] = is_held(folder / "here.lock")
        lock = try_lock(folder / f"{node}.lock")
        write_json(folder / f"{node}.json", facts)
        facts["writes"] = True
        _until(lambda: node in _text(folder / "seen"), 2 * SHOWN_WITHIN_S)
        if lock is not None:
            os.close(lock)
    return facts


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def main(arguments: list[str]) -> None:
    """Try the workspace on every living node, a line for each."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    private_files()
    connect()
    nodes = _alive()
    remote = ray.remote(_try_workspace)
    asked = {
        node: remote.options(num_cpus=0, scheduling_strategy=On(node, soft=False)).remote(arguments[0], node)
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
