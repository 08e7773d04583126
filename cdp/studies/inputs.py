"""What a study's job reads before its first condition: the same in the job's own worker and in every Ray worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from cdp.base.worker import Job
from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark, choose_split, describe, load_benchmark, resolve_benchmark
from cdp.studies.config import StudyConfig
from cdp.studies.plan import Condition, StudySource, benchmark_names, conditions, dev_name
from cdp.studies.sources import written


@dataclass(frozen=True)
class Inputs:
    """The plan, what is trained on, the conditions in their order, and what they are evaluated and chosen by."""

    config: StudyConfig
    sources: list[StudySource]
    conditions: list[Condition]
    benchmarks: list[Benchmark]
    dev: Benchmark | None

    @classmethod
    def of(cls, job: Job) -> Self:
        """Read them. CdpError where something is missing."""
        config = StudyConfig.from_dict(job.config)
        sources = [written(job.workspace, StudySource(**_lists(source))) for source in job.spec["inputs"]["sources"]]
        planned = conditions(config, sources)
        job.progress("reading benchmarks", 0, 0, "")
        benchmarks = [read_benchmark(job.workspace, name, split) for name, split in benchmark_names(config)]
        dev = read_benchmark(job.workspace, *dev_name(config)) if config.dev else None
        return cls(config, sources, planned, benchmarks, dev)


def read_benchmark(workspace: Workspace, name: str, split: str) -> Benchmark:
    """One split of a benchmark, by name or folder."""
    folder = resolve_benchmark(name, workspace)
    return load_benchmark(folder, choose_split(describe(folder, workspace), split))


def _lists(source: dict[str, Any]) -> dict[str, Any]:
    return {**source, "counts": tuple(source.get("counts", ()))}
