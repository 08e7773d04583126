"""The command line and environment of a worker: one Python, or several processes that accelerate launches."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp.base.machine import n_processors
from cdp.base.workspace import CODE, write_bytes
from cdp.jobs.devices import CPU
from cdp.jobs.records import JobSpec

# GOMP_SPINCOUNT: polls of a waiting thread before it sleeps. With OpenMP's own 300,000, two trainings at once on two
# cores ran at a ninth of the speed of one; with this at 38 %, and one alone as fast.
SPINS = "10000"


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt: exit code (negative: a signal), and whether a stop was forced."""

    code: int
    forced: bool = False


def starting_folder(spec: JobSpec, folder: Path) -> str | None:
    """Return the worker's current folder; None: the supervisor's. Never within the workspace."""
    # Python imports from the current folder first, and a workspace may hold other people's files.
    workspace = folder.resolve().parent.parent
    if not spec.cwd or not os.path.isdir(spec.cwd) or workspace in Path(spec.cwd).resolve().parents:
        return None
    return spec.cwd


def command(spec: JobSpec, folder: Path, devices: tuple[str, ...]) -> list[str]:
    """Return the command line that runs the job's module on the granted devices."""
    worker = ["-m", spec.module, str(folder)]
    if not is_launched(spec):
        return [sys.executable, *worker]
    count = str(spec.device.processes)
    if CPU in devices:
        # accelerate starts several processes on the CPU only through MPI; torchrun needs nothing but torch.
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", count, *worker]
    # A configuration of its own: the one in the user's home must not change a run.
    own = folder / "accelerate.yaml"
    write_bytes(own, b"compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: 'no'\n")
    options = ["--multi_gpu", "--num_processes", count, "--num_machines", "1", "--machine_rank", "0"]
    options += ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    return [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(own), *options, *worker]


def is_launched(spec: JobSpec) -> bool:
    """Return True if the supervisor starts the worker through a launcher."""
    return spec.launcher == "accelerate" and spec.device.processes > 1


def computing(inherited: Mapping[str, str], processes: int = 1) -> dict[str, str]:
    """Return the environment in which each of so many processes computes as fast as a worker does."""
    values = {"GOMP_SPINCOUNT": SPINS, **inherited}
    # OpenMP takes all processors of the machine, also where a container may use 2 of 64, and a launcher sets 1.
    if processes > 1 or n_processors() < (os.cpu_count() or 1):
        values.setdefault("OMP_NUM_THREADS", str(max(1, n_processors() // processes)))
    return values


def environment(spec: JobSpec, devices: tuple[str, ...], attempt: int, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's environment: the supervisor's (with secrets), its devices and its attempt."""
    values = computing(inherited, spec.device.processes if is_launched(spec) else 1)
    on_cpu = CPU in devices
    values.update(
        CDP_SUPERVISOR_PID=str(os.getpid()),
        CDP_ATTEMPT=str(attempt),
        PYTHONUNBUFFERED="1",
        PYTHONFAULTHANDLER="1",
        CUDA_VISIBLE_DEVICES="" if on_cpu else ",".join(devices),
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
        TOKENIZERS_PARALLELISM=values.get("TOKENIZERS_PARALLELISM", "false"),
        CDP_STOP_GRACE_S=f"{spec.grace_s:g}",
    )

    if on_cpu:
        values["ACCELERATE_USE_CPU"] = "true"

    return values


def own_process(workspace: Path) -> dict[str, str]:
    """Return the environment of a process of this program that works on a workspace."""
    return {
        **os.environ,
        "CDP_WORKSPACE": str(workspace),
        "PYTHONPATH": python_path(os.environ),
        # Else Python imports from the current folder first, which may hold other people's files.
        "PYTHONSAFEPATH": "1",
        # Logs and names of files are UTF-8 in every locale.
        "PYTHONUTF8": "1",
        "PYTHONIOENCODING": "",
    }


def python_path(inherited: Mapping[str, str]) -> str:
    """Return ``PYTHONPATH`` with the folder of this package in front, so that ``-m`` finds it from any folder."""
    # Not for an installed package: site-packages would come before the standard library.
    environments = {Path(path).resolve() for path in (*sysconfig.get_paths().values(), site.getusersitepackages())}
    own = [] if CODE in environments else [str(CODE)]
    parts = [*own, *inherited.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(part for part in parts if part))
