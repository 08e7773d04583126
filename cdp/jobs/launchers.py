"""How a worker process is started: its command line and its environment, for plain Python and for accelerate."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp.base.errors import ConfigError
from cdp.base.workspace import CODE, write_bytes
from cdp.jobs.devices import CPU
from cdp.jobs.records import JobSpec

# How often a thread that waits for others looks before it sleeps (GOMP_SPINCOUNT). With OpenMP's own 300,000, two
# trainings at once on two cores ran at a ninth of the speed of one; with this at 38 %, and one alone as fast.
SPINS = "10000"


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended: the worker's exit code (negative: a signal), whether a stop had to be forced, and whether
    the kernel killed processes for lack of memory meanwhile."""

    code: int
    forced: bool = False
    killed_for_memory: bool = False


def starting_folder(spec: JobSpec, folder: Path) -> str | None:
    """Where the worker starts; None: where the supervisor does. Python imports from there first, so it is never a
    folder within the workspace, into which an archive may have brought any file."""
    workspace = folder.resolve().parent.parent
    if not spec.cwd or not os.path.isdir(spec.cwd) or workspace in Path(spec.cwd).resolve().parents:
        return None
    return spec.cwd


def command(spec: JobSpec, folder: Path, devices: tuple[str, ...]) -> list[str]:
    """The command line that runs the job's module on the granted devices."""
    if spec.launcher not in ("python", "accelerate"):
        raise ConfigError(f"There is no launcher called {spec.launcher!r}.", hint="There is: python, accelerate.")
    if not is_launched(spec, devices):
        return [sys.executable, "-m", spec.module, str(folder)]
    processes = _processes(spec, devices)
    if CPU in devices:
        # accelerate starts several processes on CPU only through MPI; torchrun needs nothing but torch.
        launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        return [sys.executable, "-m", *launcher, "-m", spec.module, str(folder)]
    options = [
        "--num_processes", str(processes), "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
        "--num_cpu_threads_per_process", str(max(1, (os.cpu_count() or 1) // processes)),
    ]  # fmt: skip
    options += ["--config_file", str(_own_config(folder, processes)), "--main_process_port", "0"]
    options += ["--multi_gpu"] if processes > 1 else []
    return [sys.executable, "-m", "accelerate.commands.launch", *options, "-m", spec.module, str(folder)]


def is_launched(spec: JobSpec, devices: tuple[str, ...]) -> bool:
    """Whether a launcher stands between the supervisor and the worker.

    Not before a single process on the CPU: accelerate's launcher would load torch, which takes seconds, in order to
    start one Python with ``ACCELERATE_USE_CPU`` set, and ``environment`` sets that. The worker asks accelerate for its
    rank and its device either way.
    """
    return spec.launcher == "accelerate" and not (CPU in devices and _processes(spec, devices) == 1)


def _processes(spec: JobSpec, devices: tuple[str, ...]) -> int:
    return spec.device.processes if CPU in devices else len(devices)


def _own_config(folder: Path, processes: int) -> Path:
    """An accelerate configuration of the job's own, so that the one in the user's home cannot change a run."""
    path = folder / "accelerate.yaml"
    kind = "MULTI_GPU" if processes > 1 else "NO"
    lines = [
        "compute_environment: LOCAL_MACHINE", f"distributed_type: {kind}", f"num_processes: {processes}",
        "num_machines: 1", "machine_rank: 0", "mixed_precision: 'no'", "use_cpu: false", "debug: false",
    ]  # fmt: skip
    write_bytes(path, ("\n".join(lines) + "\n").encode("ascii"))
    return path


def environment(spec: JobSpec, devices: tuple[str, ...], attempt: int, inherited: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: what the supervisor inherited (secrets included), its devices and its attempt."""
    values = dict(inherited)
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
    values.setdefault("GOMP_SPINCOUNT", SPINS)
    if on_cpu:
        values["ACCELERATE_USE_CPU"] = "true"
    return values


def python_path(inherited: Mapping[str, str]) -> str:
    """``PYTHONPATH`` with the folder of this package in front, so that ``-m`` finds our modules from any folder.

    An environment's own folder of packages is not put there: it would come before the standard library.
    """
    environments = {Path(path).resolve() for path in (*sysconfig.get_paths().values(), site.getusersitepackages())}
    own = [] if CODE in environments else [str(CODE)]
    parts = [*own, *inherited.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(part for part in parts if part))
