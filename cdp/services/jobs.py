"""Jobs as users see them: what runs, how far it is, its log, stopping and resuming."""

from __future__ import annotations

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from cdp import catalog
from cdp import jobs as room
from cdp.base.config import (
    DownloadConfig,
    EvaluationConfig,
    FilterConfig,
    IndexConfig,
    MetricsConfig,
    RoundTripConfig,
    SynthesisConfig,
    TrainingConfig,
)
from cdp.base.errors import ConfigError
from cdp.base.failures import FILE, ItemsFailed, lost, summary
from cdp.base.file_cache import ANSWERS
from cdp.base.settings import Config
from cdp.base.workspace import Workspace, folder_size, read_json_or_none, read_jsonl
from cdp.jobs import JobView, list_active, list_jobs, load_spec, resolve_job
from cdp.metrics import MEASURES
from cdp.services import (
    access,
    benchmarks,
    clusters,
    endpoints,
    evaluation,
    in_use,
    metrics,
    queries,
    results,
    search,
    stored,
    studies,
    training,
)
from cdp.studies import StudyConfig
from cdp.synthesis.work import query_set_id

__all__ = ["list_active", "list_jobs"]

# Most points of a curve: about one per pixel.
POINTS = 1500

# What a job's folder holds that a person would miss, by its name there.
PARTS = {"model": "model", "checkpoints": "checkpoints", "results": "results", "worker.log": "log"}


def show(workspace: Workspace, job: str, *, with_size: bool = True) -> JobView:
    """One job, by id, unique beginning or name. Its size takes a walk over its folder: leave it out in live views."""
    return room.view(workspace, room.resolve_job(workspace, job), with_size=with_size)


@dataclass(frozen=True, slots=True)
class Curve:
    """One measure over the steps, thinned: ``n`` is how many points there are in the file."""

    steps: list[int]
    values: list[float]
    n: int


def curve(workspace: Workspace, job: str, measure: str) -> Curve:
    """Return one measure of the job's live metrics, thinned for drawing; empty where it was never written.

    Of each stretch of steps the lowest and the highest value stay, so that no spike is lost, and always the newest one.
    """
    points = sorted(_live_metrics(workspace, job).get(measure, {}).items())
    n, stretches = len(points), POINTS // 2 - 1
    if n > POINTS:
        cut = [points[i * n // stretches : (i + 1) * n // stretches] for i in range(stretches)]
        ends = {pick(part, key=itemgetter(1)) for part in cut for pick in (min, max)}
        points = sorted(ends | {points[-1]})
    return Curve([step for step, _ in points], [value for _, value in points], n)


def latest(workspace: Workspace, job: str) -> dict[str, float]:
    """Return the newest value of each of the job's live metrics."""
    return {name: series[max(series)] for name, series in _live_metrics(workspace, job).items() if series}


def _live_metrics(workspace: Workspace, job: str) -> dict[str, dict[int, float]]:
    """Return {measure: {step: value}} of ``metrics.jsonl``, read again only when it has grown."""
    path = workspace.job(room.resolve_job(workspace, job)) / "metrics.jsonl"

    def read() -> dict[str, dict[int, float]]:
        measures: dict[str, dict[int, float]] = defaultdict(dict)
        newest = 1
        for line in path.read_bytes().splitlines():
            try:
                record = json.loads(line)
                step, attempt = int(record["step"]), int(record.get("attempt", 1))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # torn by a crash
            if attempt > newest:
                # It went on from a checkpoint: what the earlier attempt logged beyond that is void.
                newest = attempt
                for series in measures.values():
                    for late in [at for at in series if at >= step]:
                        del series[late]
            for name, value in record.items():
                if name not in ("step", "attempt", "time") and isinstance(value, (int, float)) and math.isfinite(value):
                    measures[name][step] = float(value)
        return measures

    return ANSWERS.get(path, "live metrics", read) if path.is_file() else {}


def log(workspace: Workspace, job: str, *, tail_bytes: int = 65536) -> str:
    """The end of the worker's log."""
    return room.read_log(workspace, room.resolve_job(workspace, job), tail_bytes=tail_bytes)


def follow(workspace: Workspace, job: str, *, follow: bool = False) -> Iterator[str]:
    """The log in pieces; with ``follow`` until the job has ended."""
    job_id = room.resolve_job(workspace, job)
    offset: int | None = 0
    while True:
        active = room.view(workspace, job_id, with_size=False).active
        text, offset = room.follow_log(workspace, job_id, offset=offset, tail_bytes=1 << 22)
        if text:
            yield text
        if not follow or not active:
            return
        time.sleep(0.5)


def outcome(workspace: Workspace, job: str) -> dict[str, Any]:
    """The figures that a job was run for: of an evaluation its measures in percent, else what its result says."""
    view = room.view(workspace, room.resolve_job(workspace, job), with_size=False)
    kind = "evaluation" if view.kind == "import" else view.kind  # a run of another program, judged here
    result = read_json_or_none(view.folder / "results" / f"{kind}.json") or {}
    if kind == "evaluation" and result:
        return {
            **{name: round(100 * value, 4) for name, value in result["measures"].items()},
            "retriever": result["retriever"]["id"],
            "benchmark": result["benchmark"]["name"],
            "split": result["benchmark"]["split"],
            "n_queries": result["benchmark"]["n_queries"],
            "seconds": result["seconds"],
            "notes": [*result.get("warnings", []), *results.of_counts(result.get("counts", {}))],
        }
    figures = {name: value for name, value in result.items() if name not in ("id", "per_document", "examples")}
    if isinstance(figures.get("measures"), list):
        figures["measures"] = [{"title": _title(value), **value} for value in figures["measures"]]
    return figures


def failed(workspace: Workspace, job: str) -> ItemsFailed:
    """What failed item by item: of the set that a job writes, and of the job itself."""
    spec = room.load_spec(workspace, room.resolve_job(workspace, job))
    paths = [workspace.job(spec.id) / FILE]
    if spec.kind == "synthesis":
        paths.insert(0, workspace.query_set(query_set_id(spec.id, SynthesisConfig.from_dict(spec.config))) / FILE)
    there = tuple(path for path in paths if any(True for _ in lost(read_jsonl(path))))
    return ItemsFailed(summary(line for path in there for line in read_jsonl(path)), there)


def _title(measure: dict[str, Any]) -> str:
    """The name of a Q-D metric as every table shows it."""
    definition = MEASURES.get(measure.get("name", ""))
    return definition.title if definition else str(measure.get("name", ""))


@access.runs
def stop(workspace: Workspace, job: str) -> JobView:
    """Ask a job to stop: it saves what it has and ends."""
    job_id = room.resolve_job(workspace, job)
    room.stop(workspace, job_id)
    return room.view(workspace, job_id, with_size=False)


def written_set(view: JobView) -> str:
    """The id of the query set that a job of kind ``synthesis`` writes."""
    return query_set_id(view.id, SynthesisConfig.from_dict(view.config))


def missing_secrets(workspace: Workspace, job: str) -> list[str]:
    """Return the names of the keys that a job ran with and that this process has not, or has for another address."""
    spec = room.load_spec(workspace, room.resolve_job(workspace, job))
    return [
        name
        for name in spec.secrets
        if not os.environ.get(name) or (name == endpoints.OWN and endpoints.needs_key(spec.config))
    ]


def sizes(workspace: Workspace, job: str) -> dict[str, int]:
    """The bytes of what a job made, by what it is (model, checkpoints, results, log); the last one, total, is all."""
    folder = workspace.job(room.resolve_job(workspace, job))
    bytes_by_part = {}
    for name, label in PARTS.items():
        path = folder / name
        n = folder_size(path) if path.is_dir() else path.stat().st_size if path.is_file() else 0
        if n:
            bytes_by_part[label] = n
    return {**bytes_by_part, "total": folder_size(folder)}


def outside(workspace: Workspace, job: str) -> list[str]:
    """Return the paths and addresses outside the workspace that the job's settings name."""
    found = stored.outside(workspace, room.load_spec(workspace, room.resolve_job(workspace, job)))
    return sorted({value for values in found.values() for value in values})


@access.runs
def resume(
    workspace: Workspace, job: str, *, env_secrets: dict[str, str] | None = None, allow: Sequence[str] = ()
) -> JobView:
    """Go on with a job that ended early, as a new attempt from where it stopped.

    ``allow`` holds the paths and addresses outside the workspace that its settings may name.
    """
    job_id = room.resolve_job(workspace, job)
    if room.view(workspace, job_id, with_size=False).state is room.State.FINISHED:
        raise ConfigError(f"Job {job_id} has finished: nothing is left to go on with.", hint="Clone it to run it anew.")
    typed = dict(env_secrets or {})
    spec = room.load_spec(workspace, job_id)
    stored.check(workspace, spec, allow)
    clusters.check_resume_on(workspace, job_id)
    endpoint = endpoints.endpoint_for(spec.config, typed.pop(endpoints.OWN, ""))
    room.resume(workspace, job_id, env_secrets={**typed, **endpoint.environment})
    return room.view(workspace, job_id, with_size=False)


@access.runs
def delete(workspace: Workspace, job: str) -> None:
    """Remove a job and everything it made."""
    job_id = room.resolve_job(workspace, job)
    users = [user for user in in_use.jobs_that_need(workspace, job_id) if user.id != job_id]
    if users:
        raise ConfigError(
            f"{users[0].name} ({users[0].id}, {users[0].state}) needs what the job {job_id} made.",
            hint="Wait until it has ended, or stop it first.",
        )
    room.delete(workspace, job_id)
    catalog.ingest(workspace)


def wait(workspace: Workspace, job: str, on_update: Callable[[JobView], None] | None = None) -> JobView:
    """Wait until the job has ended."""
    return room.wait(workspace, room.resolve_job(workspace, job), on_update)


# The kinds of job that can be started again.
AGAIN = ("synthesis", "metrics", "training", "evaluation", "study", "download", "round-trip", "filter", "index")


def settings(
    workspace: Workspace, job: str, changes: Mapping[str, Any] | None = None, allow: Sequence[str] = ()
) -> Config:
    """Return the configuration of a job with some fields changed.

    ConfigError for a kind or a field that there is not, NotAllowedError where a setting that is not changed names
    something outside the workspace that ``allow`` does not hold.
    """
    spec = load_spec(workspace, resolve_job(workspace, job))
    kind = stored.JOBS[spec.kind][1] if spec.kind in AGAIN else None
    if kind is None:
        raise ConfigError(f"A job of kind {spec.kind!r} cannot be started again.")
    stored.check(workspace, spec, allow, named=frozenset(changes or ()))
    config_values = {name: value for name, value in spec.config.items() if name in kind.settings()}
    return kind.from_dict({**config_values, **(changes or {})})


def prefill(workspace: Workspace, job: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return a job's settings for a form, and those left out of it because they lead out of the workspace."""
    spec = load_spec(workspace, resolve_job(workspace, job))
    left_out = stored.outside(workspace, spec)
    kind = stored.JOBS[spec.kind][1] if spec.kind in AGAIN else None
    names = kind.settings().keys() - left_out.keys() if kind is not None else set()
    return {name: value for name, value in spec.config.items() if name in names}, left_out


@access.runs
def start(
    workspace: Workspace,
    job: str,
    changes: Mapping[str, Any] | None = None,
    *,
    api_key: str = "",
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
    allow: Sequence[str] = (),
) -> str:
    """Submit a job like ``job`` with some settings changed; the new job's id.

    ``allow_incomplete`` says yes to training on query sets that are not whole, ``allow_leakage`` to training on what
    a benchmark judges.
    """
    config = settings(workspace, job, changes, allow)
    if isinstance(config, SynthesisConfig):
        return queries.generate(workspace, config, api_key=api_key)
    if isinstance(config, MetricsConfig):
        return metrics.start(workspace, config)
    if isinstance(config, TrainingConfig):
        return training.start(workspace, config, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage).job_id
    if isinstance(config, EvaluationConfig):
        return evaluation.start(workspace, config)
    if isinstance(config, DownloadConfig):
        return benchmarks.start_download(workspace, config)
    if isinstance(config, RoundTripConfig):
        return queries.start_round_trip(workspace, config.query_set, config.by, gpus=config.gpus)
    if isinstance(config, FilterConfig):
        return queries.start_filter(workspace, config)
    if isinstance(config, IndexConfig):
        return search.start_index(workspace, config)
    assert isinstance(config, StudyConfig)
    return studies.run(
        workspace, config, api_key=api_key, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage
    ).job_id
