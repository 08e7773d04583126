"""The download worker and its progress: ``python -m cdp.workers.download <job folder>``.

Reads a ``DownloadConfig``, stores the benchmark under ``benchmarks/`` and writes ``results/download.json``. A resume
continues with the files that are missing.
"""

from __future__ import annotations

from pathlib import Path

from cdp.base.config import DownloadConfig
from cdp.base.worker import Job, run
from cdp.benchmarks import manifests, registry
from cdp.benchmarks.download import download_benchmark

UNITS = {"downloading": "bytes", "writing documents": "documents", "checking": "documents"}


def main(job: Job) -> None:
    config = DownloadConfig.from_dict(job.config)

    def progress(phase: str, finished: int, total: int) -> None:
        job.advance(phase, finished, total, UNITS.get(phase, ""))

    progress("asking for the files", 0, 0)
    stored = download_benchmark(
        registry.downloadable(config.benchmark),
        job.workspace,
        revision=config.revision,
        folder=Path(config.folder) if config.folder else None,
        progress=progress,
    )
    info, manifest = stored.info, manifests.read(Path(stored.info.folder))
    state = "was there already" if stored.existed else "is stored"
    print(f"{info.name} {state}: {info.n_documents:,} documents, {info.n_queries:,} queries", flush=True)
    for note in (*manifest.notes, *info.warnings):
        print(f"  note: {note}", flush=True)
    job.result("download", {
        "benchmark": info.name, "existed": stored.existed, "documents": info.n_documents, "queries": info.n_queries,
        "commits": manifest.commits, "licence": manifest.licence, "hash": info.content_hash,
        "notes": list(manifest.notes),
    })  # fmt: skip
    job.progress("done", 1, 1, "benchmarks")


if __name__ == "__main__":
    run(main)
