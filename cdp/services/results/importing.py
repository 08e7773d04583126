"""Taking in what another program retrieved or measured: a job makes an evaluation of it."""

from __future__ import annotations

from cdp import jobs
from cdp.base.config import ResultImportConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace, is_name
from cdp.evaluation import bm25
from cdp.jobs import DeviceRequest
from cdp.retrievers import PRESETS
from cdp.services import evaluation
from cdp.services.sharing import access, paths

WORKER, KIND = "cdp.workers.importing", "import"


@access.runs
def start(workspace: Workspace, config: ResultImportConfig) -> str:
    """Submit the import; the job's id. ConfigError for a name that a retriever of one's own has already."""
    name = " ".join(config.retriever.split())
    own = is_name(name) and workspace.job(name).is_dir()
    if not name or name in PRESETS or own or bm25.language_in(name) is not None:
        raise ConfigError(
            f"{name!r} is a retriever of this workspace: imported scores would stand as its own.",
            hint="Choose another name, such as the name of the file.",
        )
    source = paths.to_read(workspace, config.path)
    if not source.is_file():
        raise InputError(f"There is no file {source}.", hint="Check the path; it is read on the server.")
    benchmark, split, info = evaluation.judged_on(workspace, config.benchmark, config.split)
    config = config.replace(path=str(source.resolve()), retriever=name, benchmark=benchmark, split=split)
    return jobs.submit(
        workspace,
        kind=KIND,
        name=f"{name} on {info.name}",
        module=WORKER,
        config=config.to_dict(),
        device=DeviceRequest.light(),
        inputs={"benchmark": info.name, "benchmark_hash": info.content_hash, "split": config.split},
    )
