"""Exporting a retriever to ONNX: checked here, done by a job."""

from __future__ import annotations

from cdp import jobs
from cdp.base.config import ExportConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.jobs import DeviceRequest
from cdp.retrievers import resolve
from cdp.retrievers.exported import require_runtime
from cdp.services import evaluation
from cdp.services.sharing import access, paths

WORKER, KIND = "cdp.workers.export", "export"


@access.runs
def start(workspace: Workspace, config: ExportConfig) -> str:
    """Submit the export; the job's id. Everything that can be known now is checked now."""
    require_runtime("onnx", "onnxscript")
    resolved = resolve(config.retriever, workspace)
    if resolved.exported:
        raise ConfigError(f"{config.retriever} is an exported model already.", hint="Export what it was made from.")
    out = paths.to_write(workspace, config.out).resolve()
    if out.exists():
        raise InputError(f"There is a file or folder {out} already.", hint="Name a new folder.")
    changes = {"retriever": resolved.name, "out": str(out)}
    if config.benchmark:
        changes["benchmark"], changes["split"], _ = evaluation.judged_on(workspace, config.benchmark, config.split)
    config = config.replace(**changes)
    return jobs.submit(
        workspace,
        kind=KIND,
        name=f"{resolved.title} as {config.format}",
        module=WORKER,
        config=config.to_dict(),
        device=DeviceRequest.light(),
        inputs={"retriever": resolved.name},
    )
