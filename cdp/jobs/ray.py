"""Jobs on a Ray cluster. The only importer of ray, and only where it is used.

The cluster's nodes and the submitting machine share one file system with locks and rename across nodes, on which the
workspace lies under the same path; ``probe`` tests it. So files stay the truth, as on one machine:

- ``RayLauncher.submit`` gives ``python -m cdp.jobs.supervisor`` to the cluster as a Ray Job. It runs on the head, holds
  ``alive.lock`` and goes on when the submitting machine is off.
- There ``run`` starts the worker as a Ray task, or several processes of one training as a Ray Train group, wherever the
  cluster has room. ``_work`` is the node's side: the same module on the same folder as on one machine.
- ``map_missing`` is for workers that make many independent files: each file is a Ray task, skipped where it exists.

Keys are neither given to Ray nor written: nodes take them from the environment that ``ray start`` was called in.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
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

from cdp import __version__
from cdp.base.errors import ClusterError, ConfigError, WorkspaceError
from cdp.base.locks import is_held, try_lock, wait_for_lock
from cdp.base.worker import GROUP_VARIABLE, NODE_VARIABLE, START_VARIABLE, Job, report_failure
from cdp.base.workspace import INSTALLED, Workspace, private_files, read_json_or_none, write_json
from cdp.jobs.launchers import SPINS, End, python_path, starting_folder
from cdp.jobs.processes import VARIABLE as JOB_VARIABLE
from cdp.jobs.records import JobSpec, outcome_of, read_record, read_spec

T = TypeVar("T")

INSTALL = (
    'pip install "cdp-studio[cluster]"' if INSTALLED else "pip install -r requirements-cluster.txt -c constraints.txt"
)
# Seconds: how long the Jobs API may take to answer, between looks at a task, and for a file to appear on another node.
ANSWER_S, LOOK_S, SHOWN_WITHIN_S = 10.0, 0.5, 10.0
# A job whose processes die more often than this is not unlucky: they may have too little memory.
LOSSES = 5
# The head hears of a dead node a moment later; a file server frees the locks of a dead node after up to two minutes.
SETTLE_S, FREED_WITHIN_S = 3.0, 180.0
# Processes of one training wait so long for each other: the first one may evaluate on a dev benchmark for hours.
TOGETHER_S = 86_400
LIGHT_CPUS = 0.1
ENDED, STOPPED = ("STOPPED", "SUCCEEDED", "FAILED"), "stopped"
PROBED = "cdp probe:"
# Settings that a worker on this machine would inherit. No keys: Ray shows these to everybody who may ask it.
PASSED = ("CDP_UMASK", "CDP_PLUGINS", "HF_HUB_OFFLINE", "CDP_STOP_GRACE_S")
# Set for workers of jobs that spread their files over Ray tasks: "<CPUs> <GPUs>" of each task.
TASK_VARIABLE = "CDP_RAY_TASK"
RAY_TRAIN = {
    "RAY_TRAIN_V2_ENABLED": "1",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "30",
}


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
    sees: bool = True
    writes: bool = True
    locks: bool = True

    def check(self, workspace: Workspace) -> None:
        """Raise ClusterError with the next step unless jobs of the workspace can run on this node."""
        if not self.sees:
            raise ClusterError(
                f"The cluster's node {self.host} does not see the workspace {workspace.root}.",
                hint="Put it on a file system that every node mounts under the same path (NFS 4, Lustre, CephFS).",
            )
        if not self.writes:
            raise ClusterError(
                f"The cluster's node {self.host} may not write the workspace {workspace.root}.",
                hint="Run Ray under an account that may.",
            )
        if not self.locks:
            raise ClusterError(
                f"The cluster's node {self.host} and this machine do not see each other's locks on {workspace.root}.",
                hint="Mount it with locks: NFS 4 without nolock, Lustre with -o flock.",
            )
        if self.version != __version__:
            raise ClusterError(
                f"The cluster's node {self.host} has CDP Studio {self.version}, and this machine {__version__}.",
                hint="Install the same version in both places.",
            )


class RayLauncher:
    """The Jobs API of one cluster, asked from the submitting machine. Every method may raise ClusterError."""

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ConfigError("Jobs on a cluster need Ray, which is not installed here.", hint=f"Run: {INSTALL}")
        self.address = address

    def version(self) -> str:
        """Return the version of the Ray that answers. Raises ConfigError or ClusterError, each with the next step."""
        answer = self._get("/api/version")
        if answer.status_code in (401, 403):
            raise ClusterError(
                f"The cluster at {self.address} asks for a token.", hint="Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
            )
        try:
            version = str(answer.json()["ray_version"])
            major = int(version.split(".")[0])
        except (ValueError, KeyError, TypeError):
            raise ClusterError(
                f"The answer of {self.address} is not that of a Ray cluster's Jobs API.",
                hint="Name the address of the cluster's dashboard, by default port 8265.",
            ) from None
        if major != int(own_version().split(".")[0]):
            raise ClusterError(
                f"The cluster at {self.address} runs Ray {version}, which {own_version()} here cannot talk to.",
                hint=f"Install the cluster's version here: pip install 'ray[default]=={version}'",
            )
        return version

    def gpus(self) -> list[int]:
        """Return the number of GPUs of each living node."""

        def ask() -> list[int]:
            from ray.util.state import list_nodes

            listed = list_nodes(
                address=self.address, filters=[("state", "=", "ALIVE")], limit=10_000, timeout=int(ANSWER_S),
                raise_on_missing_output=False,
            )  # fmt: skip
            return [int((node.resources_total or {}).get("GPU", 0)) for node in listed]

        return self._within(2 * ANSWER_S, ask, "does not say what it has")

    def submit(self, folder: Path, spec: JobSpec, attempt: int) -> None:
        """Start the supervisor of an attempt on the head."""
        command = _on_node("cdp.jobs.supervisor", str(folder), "--attempt", str(attempt))
        # Ray kills a driver that does not end so long after its request to stop; a worker may take its grace to save.
        env = {"RAY_JOB_STOP_WAIT_TIME_S": str(round(spec.grace_s + 20.0))}
        env |= {name: os.environ[name] for name in PASSED if os.environ.get(name)}
        about = {"job": spec.id, "name": spec.name}

        def ask() -> None:
            self._client().submit_job(
                entrypoint=command, submission_id=submission(spec.id, attempt), runtime_env={"env_vars": env},
                metadata=about,
            )  # fmt: skip

        self._within(3 * ANSWER_S, ask, "did not take the job")

    def end_of(self, job_id: str, attempt: int) -> str:
        """Return why the supervisor of an attempt can no longer start; "" while it may, or the cluster is silent."""
        try:
            answer = self._get(f"/api/jobs/{submission(job_id, attempt)}", timeout=3.0)
        except ClusterError:
            return ""
        if answer.status_code == 404:
            return "The cluster does not know the job any more."
        try:
            details = answer.json()
            ended = details["status"] in ENDED
        except (ValueError, KeyError, TypeError):
            return ""
        return str(details.get("message") or "It ended before it began.").strip()[-500:] if ended else ""

    def stop(self, job_id: str, attempt: int) -> None:
        """Ask the cluster to end the supervisor of an attempt."""
        self._within(ANSWER_S, lambda: self._client().stop_job(submission(job_id, attempt)), "did not stop the job")

    def probe(self, workspace: Workspace) -> list[RayNode]:
        """Return the living nodes, the head first, once a Ray task on each has tried the workspace; takes seconds.

        Each side holds a lock that the other has to see, and each node moves a file into place by rename.
        """
        workspace.root.mkdir(parents=True, exist_ok=True)
        folder = workspace.root / f".probe-{os.urandom(6).hex()}"
        lock = wait_for_lock(folder / "here.lock", "The probe's file", wait_s=5.0)
        name = folder.name.lstrip(".")
        try:
            client = self._within(2 * ANSWER_S, self._client, "does not answer")
            command = _on_node("cdp.jobs.ray", str(folder))
            self._within(3 * ANSWER_S, lambda: client.submit_job(entrypoint=command, submission_id=name),
                         "did not take the probe")  # fmt: skip
            return self._answers(folder, client, name)
        finally:
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)

    def _answers(self, folder: Path, client: Any, name: str) -> list[RayNode]:
        held: dict[str, bool] = {}
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline:
            status = self._within(ANSWER_S, lambda: client.get_job_status(name), "does not answer")
            for path in folder.glob("*.json"):
                held.setdefault(path.stem, is_held(path.with_suffix(".lock")))
            (folder / "seen").write_text("\n".join(held), encoding="utf-8")
            if str(getattr(status, "value", status)) in ENDED:
                break
            time.sleep(0.2)
        text = str(self._within(ANSWER_S, lambda: client.get_job_logs(name), "does not answer"))
        told = [json.loads(line.removeprefix(PROBED)) for line in text.splitlines() if line.startswith(PROBED)]
        if not told:
            raise self._cannot_begin(text)
        nodes = [
            RayNode(
                **{
                    **about,
                    "accelerators": tuple(about["accelerators"]),
                    "locks": about["locks"] and held.get(key, False),
                }
            )
            for about in told
            if (key := about.pop("id"))
        ]
        return sorted(nodes, key=lambda node: (not node.head, node.host))

    def _cannot_begin(self, text: str) -> ClusterError:
        missing = re.findall(r"No module named '?([\w.]+)", text)
        if missing:
            return ClusterError(
                f"Python on the cluster's nodes has no {missing[-1]}.",
                hint=f"Install CDP Studio {__version__} on every node, in the environment that Ray runs in.",
            )
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return ClusterError(
            f"The cluster at {self.address} cannot run jobs: {lines[-1][:300] if lines else 'no output'}"
        )

    def _get(self, path: str, timeout: float = ANSWER_S / 2) -> Any:
        import httpx

        token = os.environ.get("RAY_AUTH_TOKEN", "").strip()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return httpx.get(f"{self.address}{path}", headers=headers, timeout=timeout, follow_redirects=False)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise ClusterError(
                f"No Ray cluster answers at {self.address} ({error or type(error).__name__}).",
                hint="Is it up, and is this the address that its dashboard serves (ray start --dashboard-host)?",
            ) from error

    def _client(self) -> Any:
        from ray.job_submission import JobSubmissionClient

        # Ray's client takes the address of these variables in place of the one that it is given.
        for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
            os.environ.pop(name, None)
        return JobSubmissionClient(self.address)

    def _within(self, seconds: float, call: Callable[[], T], otherwise: str) -> T:
        """Return the result of ``call``; ClusterError where it raises or takes longer: Ray's client has no timeout."""
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(call())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="ask-cluster", daemon=True)
        thread.start()
        thread.join(seconds)
        if results:
            return results[0]
        why = _in_a_line(errors[0]) if errors else f"no answer in {seconds:g} s"
        raise ClusterError(
            f"The cluster at {self.address} {otherwise} ({why}).", hint="Is it up and the network between? Try again."
        )


def own_version() -> str:
    """Return the version of the Ray installed here."""
    import importlib.metadata

    return importlib.metadata.version("ray")


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
    _start: int = 0
    _running: bool = field(default=False, init=False)
    _forced: bool = field(default=False, init=False)

    def run(self) -> End | None:
        """Run the worker to its end, through the loss of nodes. None where it was stopped before it began.

        Raises ClusterError where processes are lost again and again.
        """
        connect()
        try:
            while True:
                lost = self._group() if self._processes > 1 else self._task()
                if self._forced or lost == STOPPED:
                    return End(-signal.SIGKILL, forced=True) if self._running else None
                ended = outcome_of(self.folder, self.attempt)
                if ended or failed(self.folder, self.attempt) or not lost:
                    return End(0 if ended else 1)
                self._start += 1
                self._say(f"A process of the job was lost: {lost}")
                if self.stop_requested():
                    return End(-signal.SIGKILL)
                if self._start > LOSSES:
                    raise ClusterError(
                        f"Processes of the job were lost {self._start} times, the last one so: {lost}",
                        hint="Have the nodes too little memory? Then resume the job.",
                    )
                time.sleep(SETTLE_S)
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
        return LIGHT_CPUS if device.idle else float(device.processes), float(device.count)

    def _task(self) -> str:
        """Run the worker as one Ray task. Why its process was lost; "" where it was not."""
        import ray

        cpus, gpus = self._each
        values = self._values()
        if self.spec.spreads:  # its tasks have what the job asks for
            values[TASK_VARIABLE] = f"{cpus:g} {gpus:g}"
            cpus, gpus = LIGHT_CPUS, 0.0
        # Each attempt has a process of its own: the worker changes its environment and its folder.
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": 0, "max_calls": 1}
        task: Any = ray.remote(**options, runtime_env=_settings_of(values))(_work)
        reference = task.remote(self.spec.module, str(self.folder), self.attempt, values)
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
                worker_runtime_env=_settings_of(values),
            ),
        )  # fmt: skip
        ended: list[str] = []

        def fit() -> None:
            try:
                trainer.fit()
                ended.append("")
            except BaseException as error:
                ended.append(_in_a_line(error))

        threading.Thread(target=fit, name="ray-train", daemon=True).start()
        self._wait(lambda: _until(lambda: bool(ended), LOOK_S), lambda: None)
        return ended[0] if ended else STOPPED

    def _size(self, cpus: float, gpus: float) -> int:
        """How many processes to start: all, or after a loss a divisor for which there is room; 0: stopped."""
        import ray

        wanted = self._processes
        while not self.stop_requested():
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            room = sum(
                int(min(n.get("CPU", 0.0) // cpus, n.get("GPU", 0.0) // gpus if gpus else wanted)) for n in nodes
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
            if not self._running and at_work(self.folder, self.attempt):
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
            **{name: os.environ[name] for name in os.environ if name.startswith("RAY_TRAIN_")},
            JOB_VARIABLE: str(self.folder),
            "CDP_WORKSPACE": str(self.folder.parent.parent),
            "CDP_ATTEMPT": str(self.attempt),
            "CDP_SUPERVISOR_PID": str(os.getpid()),
            "CDP_STOP_GRACE_S": f"{self.spec.grace_s:g}",
            NODE_VARIABLE: __version__,
            "PYTHONUNBUFFERED": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "GOMP_SPINCOUNT": SPINS,
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
    path = python_path({})
    given = {"env_vars": {"PYTHONPATH": f"{path}{os.pathsep}${{PYTHONPATH}}"}} if path else {}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, runtime_env=given)
    for number, handler in handlers.items():  # Ray's own would end at once
        signal.signal(number, handler)


def at_work(folder: Path, attempt: int) -> bool:
    """Return whether the worker of this attempt has given a sign of life."""
    beat = read_record(folder / "heartbeat.json")
    return beat is not None and beat.get("attempt") == attempt


def failed(folder: Path, attempt: int) -> bool:
    """Return whether some process of this attempt has reported a failure."""
    failure = read_json_or_none(folder / "failure.json")
    return isinstance(failure, dict) and failure.get("attempt") == attempt


def _settings_of(values: Mapping[str, str]) -> dict[str, Any]:
    # OpenMP and Ray read these when a process starts, before ``_work`` can set them.
    path = python_path({})
    own = {"PYTHONPATH": f"{path}{os.pathsep}${{PYTHONPATH}}"} if path else {}
    return {"env_vars": {**own, "GOMP_SPINCOUNT": values["GOMP_SPINCOUNT"], "PYTHONUNBUFFERED": "1"}}


# The node's side


def _work(module: str, folder_name: str, attempt: int, values: Mapping[str, str]) -> None:
    """Run a worker's module in this process of Ray's, with these environment variables beside the node's own.

    The end of the worker stands in the job's files. Raises only where a process of a group has to end the others.
    """
    os.environ.update(values)
    private_files()
    folder = Path(folder_name)
    _until(lambda: (folder / "spec.json").is_file(), SHOWN_WITHIN_S)
    if outcome_of(folder, attempt) or failed(folder, attempt):
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
    sys.argv = [module, str(folder)]
    try:
        runpy.run_module(module, run_name="__main__")
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
    """Send what this process writes from now on, that of its libraries included, to the job's log."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
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


def map_missing(
    task: Callable[..., object], files: Iterable[tuple[Path, tuple[Any, ...]]], should_stop: Callable[[], bool]
) -> Iterator[Path]:
    """Yield each file once it is there: those that exist at once, the others as ``task(path, *arguments)`` makes them.

    ``task`` is a function of a module that writes the file by rename. In a worker on a cluster each call is a Ray task,
    repeated elsewhere when its node dies; on one machine they run one after the other. Ends early once ``should_stop``
    says so: the files that are there stay. An error of a task is raised here.
    """
    missing = []
    for path, arguments in files:
        if path.exists():
            yield path
        else:
            missing.append((path, arguments))
    if TASK_VARIABLE not in os.environ:
        for path, arguments in missing:
            if should_stop():
                return
            task(path, *arguments)
            yield path
        return

    import ray

    cpus, gpus = map(float, os.environ[TASK_VARIABLE].split())
    values = {name: value for name, value in os.environ.items() if name in ("CDP_WORKSPACE", *PASSED)}
    remote = ray.remote(_make).options(num_cpus=cpus, num_gpus=gpus, max_retries=LOSSES)
    started = {remote.remote(task, path, arguments, values): path for path, arguments in missing}
    waiting = list(started)
    while waiting:
        done, waiting = ray.wait(waiting, timeout=LOOK_S)
        for reference in done:
            try:
                ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                for other in waiting:
                    ray.cancel(other)
                raise error.cause or error from None
            yield started[reference]
        if should_stop():
            for reference in waiting:
                ray.cancel(reference, force=True)
            return


def _make(task: Callable[..., object], path: Path, arguments: tuple[Any, ...], values: Mapping[str, str]) -> None:
    os.environ.update(values)
    private_files()
    if not path.exists():  # a retry after the loss of a node
        task(path, *arguments)


# The probe's side on the cluster: python -m cdp.jobs.ray <folder>


def _try_workspace(folder_name: str, node: str) -> dict[str, Any]:
    """Try the workspace on this node: a lock held elsewhere, a file moved into place, a lock that others see."""
    import platform

    folder = Path(folder_name)
    facts: dict[str, Any] = {"id": node, "host": socket.gethostname(), "version": __version__,
                             "python": platform.python_version(), "writes": False, "locks": False}  # fmt: skip
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
    nodes = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
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
