"""The download worker and its progress: ``python -m cdp.workers.download <job folder>``.

Stores the benchmark under ``benchmarks/``. A resume continues with the files that are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cdp.base import permission
from cdp.base.config import DownloadConfig
from cdp.base.job_kind import LIGHT, JobKind, PreparedJob
from cdp.base.worker import Job, run
from cdp.base.workspace import Workspace
from cdp.benchmarks import manifests, registry
from cdp.benchmarks.download import download_benchmark, in_folder

UNITS = {"downloading": "bytes", "writing documents": "documents", "checking": "documents"}


def main(job: Job) -> None:
    config = DownloadConfig.from_dict(job.config)

    def progress(phase: str, finished: int, total: int) -> None:
        job.advance(phase, finished, total, UNITS.get(phase, ""))

    progress("asking for the files", 0, 0)
    info, existed = download_benchmark(
        registry.downloadable(config.benchmark),
        job.workspace,
        revision=config.revision,
        folder=Path(config.folder) if config.folder else None,
        progress=progress,
    )
    manifest = manifests.read(Path(info.folder))
    state = "was there already" if existed else "is stored"
    print(f"{info.name} {state}: {info.n_documents:,} documents, {info.n_queries:,} queries", flush=True)
    for note in (*manifest.notes, *info.warnings):
        print(f"  note: {note}", flush=True)
    job.result("download", {
        "benchmark": info.name, "existed": existed, "documents": info.n_documents, "queries": info.n_queries,
        "commits": manifest.commits, "licence": manifest.licence, "hash": info.content_hash,
        "notes": list(manifest.notes),
    })  # fmt: skip
    job.progress("done", 1, 1, "benchmarks")


def prepare(workspace: Workspace, config: DownloadConfig, after: Sequence[str] = ()) -> PreparedJob:
    """Raise for what is known to fail without the network."""
    entry = registry.downloadable(config.benchmark)
    config = config.replace(benchmark=entry.name)
    if config.folder:
        folder = permission.to_read(workspace, config.folder).resolve()
        in_folder(entry, folder)
        config = config.replace(folder=str(folder))
    return PreparedJob(config, entry.title)


KIND = JobKind(
    "download", "Download", "A benchmark of the registry, brought into the workspace.", DownloadConfig, main, prepare,
    device=lambda config: LIGHT, makes="benchmark", command="benchmarks download", word="benchmark", order=130,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
