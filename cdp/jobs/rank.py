"""One process of a group over several nodes (``cdp.jobs.group``), in a worker of Ray Train's.

Ray Train has set rank, world size and process group; from here on it is the worker of one machine: the same module in
the same frame, with the same folder before it.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

from cdp import __version__
from cdp.base.errors import ClusterError
from cdp.base.worker import Job, report_failure
from cdp.base.workspace import private_files, read_json_or_none
from cdp.jobs import handover
from cdp.jobs.attending import outcome_of
from cdp.jobs.launchers import starting_folder
from cdp.jobs.lease import about_this_node, wait_until_shown
from cdp.jobs.node import PAD_VARIABLE
from cdp.jobs.spec import read_spec


def work(module: str, folder: Path, attempt: int, version: str, values: Mapping[str, str]) -> None:
    """Run the worker of an attempt with these environment variables. Raises whatever ends it early.

    ``version`` is that of whoever started the group; another one here is the failure of the job.
    """
    os.environ.update(values)
    private_files()
    wait_until_shown(folder)
    if has_ended(folder, attempt):
        return
    if version != __version__:
        error = ClusterError(
            f"{about_this_node()['host']} has CDP Studio {__version__}, and the group was started by {version}.",
            hint="Install the same version on every node.",
        )
        report_failure(Job(folder), error)
        raise error
    os.environ.update(handover.look(folder, os.environ.pop(PAD_VARIABLE, "")))
    if os.environ["RANK"] == "0":
        _write_to(folder / "worker.log")
    where = starting_folder(read_spec(folder), folder)
    if where:
        os.chdir(where)
    sys.argv = [module, str(folder)]
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"rank {os.environ['RANK']} ended with exit code {end.code}") from None


def has_ended(folder: Path, attempt: int) -> bool:
    """Whether the worker of this attempt has said how it ended, well or not."""
    return outcome_of(folder, attempt) is not None or has_failed(folder, attempt)


def has_failed(folder: Path, attempt: int) -> bool:
    """Whether some rank of this attempt has reported a failure."""
    failure = read_json_or_none(folder / "failure.json")
    return isinstance(failure, dict) and failure.get("attempt") == attempt


def _write_to(path: Path) -> None:
    """What this process writes from now on stands in the job's log, that of its libraries included."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
