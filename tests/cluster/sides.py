"""Both sides of a job through a store in a folder, without Ray: the node's process is started as Ray would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cdp import __version__
from cdp.base.workspace import Workspace, now, read_json_or_none, write_json
from cdp.jobs import lease
from cdp.jobs.lease import NODE
from cdp.jobs.spec import JobSpec, read_spec
from cdp.jobs.store.here import Here
from tests.jobs.support import until
from tests.support import REPOSITORY

UNSEEN = REPOSITORY / "tests" / "cluster" / "unseen"


def submitted(workspace: Workspace, worker: str = "count", **config: Any) -> Path:
    """The folder of a job that nobody has started."""
    job_id = f"test-{len(list(workspace.jobs.glob('*')))}"
    module = config.pop("module", f"tests.jobs.workers.{worker}")
    spec = JobSpec(
        id=job_id, kind="test", name=job_id, created=now(), sequence=1, module=module, config=config, cwd=os.getcwd()
    )
    write_json(workspace.job(job_id) / "spec.json", spec.to_dict())
    return workspace.job(job_id)


class Attempt:
    """One attempt of a job, its node in a process that does not see the workspace."""

    def __init__(self, folder: Path, store: Path, attempt: int = 1) -> None:
        self.folder, self.store, self.attempt = folder, store, attempt
        self.side = Here(folder, read_spec(folder), f"file://{store}", attempt)
        self.pulse = lease.lease(folder, attempt)
        self.stop = self._over = False
        self.said = ""

    def __enter__(self) -> Self:
        self._renew()
        self.said = self.side.send(lambda: True)
        self.side.start()
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()
        log = self.store.parent / "opened.log"
        env = {
            **{name: value for name, value in os.environ.items() if name != "CDP_WORKSPACE"},
            "PYTHONPATH": f"{UNSEEN}:{REPOSITORY}",
            "CDP_UNSEEN": str(self.folder.parent.parent),
            "CDP_UNSEEN_LOG": str(log),
            "CDP_SCRATCH": str(self.store.parent / f"node-{self.attempt}"),
        }
        command = [
            sys.executable,
            "-m",
            "cdp.jobs.store.there",
            f"file://{self.store}",
            self.side.job,
            str(self.attempt),
        ]
        self.process = subprocess.Popen(command, env=env, start_new_session=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._over = True
        self._thread.join()
        self.pulse.renew(at_once=True, version=__version__, over=True)
        self.side.close()
        if kind is not None:
            self.kill()
        self.process.wait(60)
        assert not (self.store.parent / "opened.log").exists(), "the node saw the workspace"

    def node(self) -> dict[str, Any]:
        record = read_json_or_none(self.folder / NODE) or {}
        return record if record.get("attempt") == self.attempt else {}

    def wait(self) -> dict[str, Any]:
        """How the worker ended."""
        until(lambda: self.side.error or self.node().get("phase") == "ended", "the end of the worker")
        assert self.side.error is None, self.side.error
        return self.node()

    def kill(self) -> None:
        """As where the node dies."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def _renew(self) -> None:
        self.pulse.renew(version=__version__, stop=self.stop)

    def _keep(self) -> None:
        while not self._over:
            self._renew()
            threading.Event().wait(0.05)
