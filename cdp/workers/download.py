"""The download worker: ``python -m cdp.workers.download <job folder>``.

Reads a ``DownloadConfig``, stores the benchmarks under ``benchmarks/`` and writes ``results/download.json``. A resume
continues with the files that are missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cdp.base.config import DownloadConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.worker import Job, run
from cdp.benchmarks import download, manifests, registry
from cdp.benchmarks.download import DownloadError
from cdp.benchmarks.schemas import Entry

UNITS = {"downloading": "bytes", "writing documents": "documents", "checking": "documents"}


def main(job: Job) -> None:
    config = DownloadConfig.from_dict(job.config)
    wanted = registry.leaves(config.benchmark)
    if config.name and len(wanted) > 1:
        raise ConfigError(f"{config.benchmark} is {len(wanted)} benchmarks, which keep their own names.")
    done: list[dict[str, Any]] = []
    failed: dict[str, CdpError] = {}
    for number, entry in enumerate(wanted, 1):
        label = f"{entry.name} ({number} of {len(wanted)})" if len(wanted) > 1 else entry.name
        try:
            done.append(_download(job, config, entry, label))
        except CdpError as error:
            if len(wanted) == 1:
                raise
            print(f"{entry.name}: {error}", flush=True)
            failed[entry.name] = error
        stored = ", ".join(record["benchmark"] for record in done)
        problems = {name: str(error) for name, error in failed.items()}
        job.result("download", {"stored": stored, "benchmarks": done, "failed": problems})
    if failed:
        first = next(iter(failed.values()))
        message = f"{len(failed)} of {len(wanted)} could not be brought in ({', '.join(failed)}): {first.message}"
        problem = DownloadError(message, hint=first.hint)
        problem.kind = first.kind
        raise problem
    job.progress("done", len(done), len(wanted), "benchmarks")


def _download(job: Job, config: DownloadConfig, entry: Entry, label: str) -> dict[str, Any]:
    """Download one benchmark and return its row of the result."""

    def progress(phase: str, finished: int, total: int) -> None:
        job.advance(phase, finished, total, UNITS.get(phase, ""), label)

    progress("asking for the files", 0, 0)
    folder = Path(config.folder) if config.folder else None
    stored = download.download_benchmark(
        entry, job.workspace, revision=config.revision, folder=folder, name=config.name, progress=progress
    )
    info, manifest = stored.info, manifests.read(Path(stored.info.folder))
    state = "was there already" if stored.existed else "is stored"
    print(f"{info.name} {state}: {info.n_documents:,} documents, {info.n_queries:,} queries", flush=True)
    for note in (*manifest.notes, *info.warnings):
        print(f"  note: {note}", flush=True)
    return {
        "benchmark": info.name,
        "entry": entry.name,
        "existed": stored.existed,
        "documents": info.n_documents,
        "queries": info.n_queries,
        "commits": manifest.commits,
        "licence": manifest.licence,
        "hash": info.content_hash,
        "notes": list(manifest.notes),
    }


if __name__ == "__main__":
    run(main)
