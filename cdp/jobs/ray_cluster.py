"""A Ray cluster, asked through the address of its Jobs API. The only importer of ray, and only where it is used."""

from __future__ import annotations

import importlib.util
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cdp import __version__
from cdp.base.errors import ClusterError, ConfigError
from cdp.base.workspace import INSTALLED
from cdp.jobs.place import Place

T = TypeVar("T")

INSTALL = (
    'pip install "cdp-studio[cluster]"' if INSTALLED else "pip install -r requirements-cluster.txt -c constraints.txt"
)

ANSWER_S = 10.0
"""How long a cluster may take over an answer."""

POLL_S = 1.0

RESUME = (
    "Once it is back, resume the job: it goes on from its last checkpoint. On this machine: jobs resume ID --on here"
)


@dataclass(frozen=True, slots=True)
class RayNode:
    """A living node with what it has in all; ``memory`` in GB."""

    host: str
    head: bool
    cpus: float
    gpus: int
    memory: float
    accelerators: tuple[str, ...] = ()


def require() -> None:
    """ConfigError with the command that installs Ray where it is missing. Loads nothing."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("Jobs on a cluster need Ray, which is not installed here.", hint=f"Run: {INSTALL}")


def own_version() -> str:
    import importlib.metadata

    return importlib.metadata.version("ray")


def check(address: str) -> str:
    """The version of the Ray that answers there. ConfigError or ClusterError, each with what to do next."""
    import httpx

    require()
    try:
        token = os.environ.get("RAY_AUTH_TOKEN", "").strip()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = httpx.get(f"{address}/api/version", headers=headers, timeout=ANSWER_S / 2, follow_redirects=False)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # the last two: a host that no name can be
        raise ClusterError(
            f"No Ray cluster answers at {address} ({error or type(error).__name__}).",
            hint="Is it up, and is this the address that its dashboard serves (ray start --dashboard-host, port 8265)?",
        ) from error
    if answer.status_code in (401, 403):
        raise ClusterError(
            f"The cluster at {address} asks for a token.",
            hint="Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN.",
        )
    try:
        version = str(answer.json()["ray_version"])
        major = int(version.split(".")[0])
    except (ValueError, KeyError, TypeError):
        raise ClusterError(
            f"What answers at {address} is no Ray cluster's Jobs API.",
            hint="Name the address of the cluster's dashboard, by default port 8265.",
        ) from None
    if major != int(own_version().split(".")[0]):
        raise ClusterError(
            f"The cluster at {address} runs Ray {version}, and here is {own_version()}, which cannot talk to it.",
            hint=f"Install the cluster's version here: pip install 'ray[default]=={version}'",
        )
    return version


def list_nodes(address: str) -> list[RayNode]:
    """The living nodes of a cluster, the head first. ClusterError where it does not tell."""

    def ask() -> list[RayNode]:
        from ray.util.state import list_nodes as of_ray

        _as_asked()
        listed = of_ray(
            address=address,
            filters=[("state", "=", "ALIVE")],
            limit=10_000,
            timeout=int(ANSWER_S),
            raise_on_missing_output=False,  # so Ray calls it when a node has died: no reason not to hear of the others
        )
        return sorted((_node(node) for node in listed), key=lambda node: (not node.head, node.host))

    return _within(2 * ANSWER_S, ask, f"The cluster at {address} does not say what it has")


def _node(node: Any) -> RayNode:
    total = node.resources_total or {}
    kinds = tuple(name.partition(":")[2] for name in total if name.startswith("accelerator_type:"))
    return RayNode(
        host=node.node_ip,
        head=bool(node.is_head_node),
        cpus=float(total.get("CPU", 0)),
        gpus=int(total.get("GPU", 0)),
        memory=float(total.get("memory", 0)) / 1e9,
        accelerators=kinds,
    )


def check_fits(place: Place, gpus: int, cpus: float, nodes: Sequence[RayNode]) -> None:
    """ConfigError unless some node has all that a job asks for: its worker runs on one."""
    left = list(nodes)
    needs: list[tuple[str, Callable[[RayNode], bool], str]] = [
        (
            f"{gpus:g} GPUs" if gpus > 1 else "a GPU",
            lambda n: n.gpus >= gpus,
            "Ask for fewer, or for --resources gpus=0.",
        ),
        (f"the accelerator {place.accelerator}", lambda n: place.accelerator in ("", *n.accelerators), ""),
        (f"{cpus:g} CPUs", lambda n: n.cpus >= cpus, "Ask for fewer, as --resources cpus=1."),
        (f"{place.memory or 0:g} GB of memory", lambda n: n.memory >= (place.memory or 0), "Ask for less."),
    ]
    for what, has, cure in needs:
        left = [node for node in left if has(node)]
        if not left:
            raise ConfigError(
                f"No node of the cluster at {place.address} has {what}{' beside the rest' if cure else ''}.",
                hint=f"It has: {in_words(nodes)}. {cure}".strip(),
            )


def check_fit_together(place: Place, gpus: int, cpus: float, nodes: Sequence[RayNode]) -> None:
    """ConfigError unless the nodes have room for all workers of a place at once, were nothing else at work there."""
    room = 0
    for node in nodes:
        asked = [(node.cpus, cpus), (node.gpus, gpus), (node.memory, place.memory or 0)]
        if place.accelerator in ("", *node.accelerators):
            room += min((int(has // each) for has, each in asked if each), default=place.workers or 0)
    if room < (place.workers or 0):
        raise ConfigError(
            f"A training's {place.workers} workers are at work together, and the cluster at {place.address} has room "
            f"for {room}.",
            hint=f"It has: {in_words(nodes)}. Ask for fewer: --resources workers={room}.",
        )


def in_words(nodes: Sequence[RayNode]) -> str:
    """``3 nodes, 96 CPUs, 8 GPUs (A100), 512 GB memory``."""
    kinds = ", ".join(sorted({kind for node in nodes for kind in node.accelerators}))
    n_gpus = sum(node.gpus for node in nodes)
    gpus = f"{n_gpus} GPUs{f' ({kinds})' if kinds else ''}" if n_gpus else "no GPU"
    cpus, memory = sum(node.cpus for node in nodes), sum(node.memory for node in nodes)
    return f"{len(nodes)} node{'s' * (len(nodes) != 1)}, {cpus:g} CPUs, {gpus}, {memory:.0f} GB memory"


def cannot_begin(text: str) -> ClusterError:
    """Why a command that Ray was given did not begin, from what it wrote and Ray said."""
    missing = re.findall(r"No module named '?([\w.]+)", text)
    if missing:
        return ClusterError(
            f"Python on the cluster's nodes has no {missing[-1]}.",
            hint=f"Install CDP Studio {__version__} on every node, in the environment that Ray runs in.",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ClusterError(f"The job could not begin on the cluster: {lines[-1][:300] if lines else 'nothing was said'}")


class Connection:
    """The Jobs API of one cluster."""

    def __init__(self, address: str) -> None:
        require()
        self.address = address

        def connect() -> Any:
            from ray.job_submission import JobSubmissionClient

            _as_asked()
            return JobSubmissionClient(address)

        self._client = _within(2 * ANSWER_S, connect, f"No Ray cluster answers at {address}")

    def submit(
        self, submission: str, command: str, place: Place, *, cpus: float, gpus: int, env: Mapping[str, str],
        about: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Give a command to the cluster, to be run on a node that has what it asks for."""
        kind = {f"accelerator_type:{place.accelerator}": 0.001} if place.accelerator else {}

        def ask() -> None:
            self._client.submit_job(
                entrypoint=command,
                submission_id=submission,
                runtime_env={"env_vars": dict(env)},
                metadata=dict(about),
                entrypoint_num_cpus=cpus,
                entrypoint_num_gpus=gpus,
                entrypoint_memory=int((place.memory or 0) * 1e9),
                entrypoint_resources=kind,
            )

        _within(3 * ANSWER_S, ask, f"The cluster at {self.address} did not take the job")

    def stop(self, submission: str) -> None:
        """Have the cluster end what it runs; where it does not answer there is nobody to ask."""
        try:
            _within(ANSWER_S, lambda: self._client.stop_job(submission), "")
        except ClusterError as error:
            print(error, flush=True)

    def log(self, submission: str) -> str:
        """What the command wrote to Ray's own log; empty where that is not to be had."""
        try:
            return str(_within(ANSWER_S, lambda: self._client.get_job_logs(submission), ""))
        except ClusterError:
            return ""

    def poll(self, submission: str) -> Poll:
        return Poll(lambda: self._client.get_job_info(submission))


class Poll:
    """Asks again and again in a thread of its own, for the client waits for an answer without an end.

    ``info`` is the newest answer: Ray's JobDetails, None before the first.
    """

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.info: Any = None
        self._ask = ask
        self._answered = time.monotonic()
        self._over = threading.Event()
        threading.Thread(target=self._run, name="poll", daemon=True).start()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self.info = self._ask()
                self._answered = time.monotonic()
            except Exception as error:  # whatever it is, it is no answer
                print(f"no answer: {type(error).__name__}: {str(error)[:300]}", flush=True)
            self._over.wait(POLL_S)

    @property
    def silent_s(self) -> float:
        """Seconds since the last answer."""
        return time.monotonic() - self._answered

    def close(self) -> None:
        self._over.set()


def _as_asked() -> None:
    """Ray's clients take the address of these variables in place of the one that they are given."""
    for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
        os.environ.pop(name, None)


def _within(seconds: float, call: Callable[[], T], otherwise: str) -> T:
    """What ``call`` returns; ClusterError where it raises, or takes longer: the client has no limit of its own."""
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
    why = (
        f"{type(errors[0]).__name__}: {' '.join(str(errors[0]).split())[:300]}"
        if errors
        else f"no answer in {seconds:g} s"
    )
    raise ClusterError(f"{otherwise} ({why}).", hint="Is the cluster up and the network between? Try again.")
