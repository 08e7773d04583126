"""Jobs as users see them: what runs, how far it is, its log, stopping, resuming and deleting."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdp import catalog
from cdp import jobs as room
from cdp.base.config import (
    DownloadConfig,
    EvaluationConfig,
    FilterConfig,
    IndexConfig,
    JudgeConfig,
    MetricsConfig,
    MiningConfig,
    PromptTuningConfig,
    ResultImportConfig,
    RoundTripConfig,
    SynthesisConfig,
    TrainingConfig,
)
from cdp.base.errors import CdpError, ConfigError
from cdp.base.failures import FILE, FailedItems, failed_items
from cdp.base.file_cache import ANSWERS
from cdp.base.settings import Config
from cdp.base.text import shown, typed_path
from cdp.base.workspace import Workspace, read_json_or_none, read_jsonl
from cdp.evaluation.evaluate import OF_FILES
from cdp.jobs import JobSpec, JobView, list_active, list_jobs, load_spec, resolve_job
from cdp.llm import address, refusals
from cdp.metrics import MEASURES
from cdp.retrievers import PRESETS, api, bm25
from cdp.services import access, commands, projects, results
from cdp.services.access import Action, NotAllowedError, may
from cdp.studies import StudyConfig
from cdp.synthesis.work import query_set_id

__all__ = ["list_active", "list_jobs"]

# Every kind of job, with the only module that may run it and its settings.
KINDS: dict[str, tuple[str, type[Config] | None]] = {
    "synthesis": ("cdp.workers.synthesis", SynthesisConfig),
    "prompts": ("cdp.workers.prompt_tuning", PromptTuningConfig),
    "metrics": ("cdp.workers.metrics", MetricsConfig),
    "round-trip": ("cdp.workers.round_trip", RoundTripConfig),
    "filter": ("cdp.workers.filtering", FilterConfig),
    "mining": ("cdp.workers.mining", MiningConfig),
    "training": ("cdp.workers.training", TrainingConfig),
    "evaluation": ("cdp.workers.evaluation", EvaluationConfig),
    "study": ("cdp.workers.study", StudyConfig),
    "judging": ("cdp.workers.judging", JudgeConfig),
    "index": ("cdp.workers.index", IndexConfig),
    "download": ("cdp.workers.download", DownloadConfig),
    "import": ("cdp.workers.importing", ResultImportConfig),
}

LONGEST = 400  # characters of a path or address that a message repeats


def show(workspace: Workspace, job: str, *, with_size: bool = True) -> JobView:
    """Return one job, by id, unique prefix or name. Its size takes a walk over its folder: omit it in live views."""
    return room.view(workspace, resolve_job(workspace, job), with_size=with_size)


def curve(workspace: Workspace, job: str, measure: str) -> dict[int, float]:
    """Return the values of one live metric by step, in order; empty if it was never written."""
    return dict(sorted(_live_metrics(workspace, job).get(measure, {}).items()))


def latest(workspace: Workspace, job: str) -> dict[str, float]:
    """Return the newest value of each of the job's live metrics."""
    return {name: series[max(series)] for name, series in _live_metrics(workspace, job).items() if series}


def _live_metrics(workspace: Workspace, job: str) -> dict[str, dict[int, float]]:
    """Return {measure: {step: value}} of ``metrics.jsonl``."""
    path = workspace.job(resolve_job(workspace, job)) / "metrics.jsonl"
    return ANSWERS.get(path, "metrics", lambda: _read_metrics(path))


def _read_metrics(path: Path) -> dict[str, dict[int, float]]:
    measures: dict[str, dict[int, float]] = {}
    newest = 1
    for record in read_jsonl(path):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            step, attempt = int(record["step"]), int(record.get("attempt", 1))
            if attempt > newest:  # resumed from a checkpoint: later steps of the earlier attempt are void
                newest = attempt
                measures = {name: {at: v for at, v in of.items() if at < step} for name, of in measures.items()}
            for name, value in record.items():
                if name not in ("step", "attempt", "time") and isinstance(value, (int, float)) and math.isfinite(value):
                    measures.setdefault(name, {})[step] = float(value)
    return measures


def log(workspace: Workspace, job: str, *, tail_bytes: int = 65536) -> str:
    """Return the end of the worker's log."""
    return room.read_log(workspace, resolve_job(workspace, job), tail_bytes=tail_bytes)


def follow(workspace: Workspace, job: str, *, follow: bool = False) -> Iterator[str]:
    """Yield the log in chunks; with ``follow`` until the job has ended."""
    job_id = resolve_job(workspace, job)
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
    """Return a job's results: an evaluation's measures in percent, else the content of its result file."""
    view = show(workspace, job, with_size=False)
    kind = "evaluation" if view.kind == "import" else view.kind  # a run of another program, judged here
    result = read_json_or_none(view.folder / "results" / f"{kind}.json") or {}
    if kind == "evaluation" and result:
        return {
            **{name: round(100 * value, 4) for name, value in result["measures"].items()},
            "judged_per": "passage" if OF_FILES in result["measures"] else "document",
            "retriever": result["retriever"]["id"],
            "benchmark": result["benchmark"]["name"],
            "split": result["benchmark"]["split"],
            "n_queries": result["benchmark"]["n_queries"],
            "seconds": result["seconds"],
            "notes": [
                *result.get("warnings", []),
                *refusals.sentences(view.folder),
                *([results.PER_PASSAGE] if OF_FILES in result["measures"] else []),
                *(badge.meaning for badge in results.of_counts(result.get("counts", {}))),
            ],
        }
    figures = {name: value for name, value in result.items() if name not in ("id", "examples")}
    if isinstance(figures.get("measures"), list):
        titles = {name: measure.title for name, measure in MEASURES.items()}
        named = [(str(value.get("name", "")), value) for value in figures["measures"]]
        figures["measures"] = [{"title": titles.get(name, name), **value} for name, value in named]
    learnt = " ".join(refusals.sentences(view.folder))
    return {**figures, "endpoint": learnt} if learnt else figures


def failed(workspace: Workspace, job: str) -> FailedItems:
    """Return the items that failed in a job, and in the query set that it writes."""
    spec = load_spec(workspace, resolve_job(workspace, job))
    paths = [workspace.job(spec.id) / FILE]
    if spec.kind == "synthesis":
        paths.insert(0, workspace.query_set(query_set_id(spec.id, SynthesisConfig.from_dict(spec.config))) / FILE)
    return failed_items(*paths)


def wait(workspace: Workspace, job: str, on_update: Callable[[JobView], None] | None = None) -> JobView:
    """Wait until the job has ended."""
    return room.wait(workspace, resolve_job(workspace, job), on_update)


@access.runs
def stop(workspace: Workspace, job: str) -> JobView:
    """Ask a job to save its progress and end."""
    job_id = resolve_job(workspace, job)
    room.stop(workspace, job_id)
    return show(workspace, job_id, with_size=False)


@access.runs
def delete(workspace: Workspace, job: str) -> None:
    """Remove a job and everything it made. ConfigError while another job needs it."""
    job_id = resolve_job(workspace, job)
    projects.check_unused(workspace, f"The job {job_id}", job_id)
    room.delete(workspace, job_id)
    catalog.ingest(workspace)


def written_set(view: JobView) -> str:
    """Return the id of the query set that a job of kind ``synthesis`` writes."""
    return query_set_id(view.id, SynthesisConfig.from_dict(view.config))


# The command of each kind of job that can be run again as it is, and the setting among its words.
AGAIN = {
    "synthesis": ("queries generate", ""),
    "metrics": ("metrics", "query_set"),
    "training": ("train", "query_set"),
    "evaluation": ("evaluate", "retriever"),
    "judging": ("benchmarks judge", ""),
}


def again(view: JobView) -> list[str]:
    """Return the command that starts such a job again, to be changed; empty for kinds that have none."""
    words, place = AGAIN.get(view.kind, ("", ""))
    kind = KINDS.get(view.kind, ("", None))[1]
    if not words or kind is None:
        return []
    with suppress(CdpError):  # settings of a stranger's workspace
        config = kind.from_dict(view.config)
        return [commands.line(*words.split(), getattr(config, place, ""), config=config, without=(place,), wait=True)]
    return []


# resuming


def missing_secrets(workspace: Workspace, job: str) -> list[str]:
    """Return the names of the keys that a job ran with and that this process lacks, or has for another address."""
    spec = load_spec(workspace, resolve_job(workspace, job))
    return [
        name
        for name in spec.secrets
        if not os.environ.get(name) or (name == address.OWN and access.needs_key(spec.config))
    ]


@access.runs
def resume(
    workspace: Workspace, job: str, *, env_secrets: dict[str, str] | None = None, allow: Sequence[str] = ()
) -> JobView:
    """Continue a job that ended early, as a new attempt from its last checkpoint.

    A workspace may be a stranger's. Its ``spec.json`` can name any module, path, model or address, so a resume
    trusts only the workspace, the shipped data and the operator's settings (``CDP_ALLOWED_FOLDERS``, ``CDP_BASE_URL``
    …). Raises NotAllowedError for paths and addresses outside of them, unless ``allow`` names them.
    """
    job_id = resolve_job(workspace, job)
    if show(workspace, job_id, with_size=False).state is room.State.FINISHED:
        raise ConfigError(f"Job {job_id} has finished: nothing is left to do.", hint="Start a new one.")
    typed = dict(env_secrets or {})
    spec = load_spec(workspace, job_id)
    for setting, values in _outside(workspace, spec, allow).items():
        raise NotAllowedError(
            f"The job's setting {setting!r} names {values[0][:LONGEST]!r}, which is outside this workspace.",
            hint=f"If you trust it, add: --allow {shlex.quote(values[0][:LONGEST])}",
        )
    config = _config(spec)
    if config is not None:
        access.checked(workspace, config)
    asked = access.environment_for(spec.config, typed.pop(address.OWN, ""))
    room.resume(workspace, job_id, env_secrets={**typed, **asked})
    return show(workspace, job_id, with_size=False)


def _outside(workspace: Workspace, spec: JobSpec, allow: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the paths and addresses outside the workspace that the job's settings name, by setting.

    Raises NotAllowedError for a job that would run anything but the worker of its kind.
    """
    if not may(Action.ANY_ENDPOINT):
        allow = ()  # visitors of a shared dashboard decide nothing about the server's files and network
    config = _config(spec)
    # Without an address of the operator's, jobs go to OpenAI, whose address may then also be spelt out.
    known = [*(access.endpoints() or [address.OPENAI_URL]), *(a for a in allow if "://" in a)]
    found: dict[str, list[str]] = defaultdict(list)
    for setting, holds, value in access.names_in(config) if config is not None else ():
        if holds == "retriever" and (named := api.parse(value)) is not None:
            holds, value = "endpoint", named.url
        if holds == "endpoint":
            trusted = any(address.same(value, other) for other in known)
        else:
            trusted = _inside(workspace, spec, holds, value, allow)
        if not trusted:
            found[setting].append(value)
    return dict(found)


def _config(spec: JobSpec) -> Config | None:
    module, kind = KINDS.get(spec.kind, (None, None))
    if module is None or spec.module != module:
        raise NotAllowedError(
            f"The job {spec.id} would run {shown(spec.module)}, which is not the worker of a job of kind "
            f"{shown(spec.kind)}.",
            hint="It was not submitted by this program. Delete it.",
        )
    return kind.from_dict(spec.config) if kind is not None else None


def _inside(workspace: Workspace, spec: JobSpec, holds: str, text: str, allow: Sequence[str]) -> bool:
    """Return True for a name, and for a path in the workspace or in a folder that the operator or the caller named."""
    if holds in ("model", "retriever") and (
        text in PRESETS or text in access.CHOICES or bm25.language_in(text) is not None
    ):
        return True
    try:
        # A relative path starts where the job was submitted: the worker reads it from there.
        path = Path(spec.cwd or os.getcwd(), typed_path(text))
        if holds == "benchmark" and ":" in text and not path.exists():
            path = path.with_name(path.name.rpartition(":")[0])  # name:split
        if holds != "path" and not access.is_path(text) and not path.exists():
            return True  # the name of a model of the hub, of a benchmark, of a training
        path = path.resolve()
        folders = [*access.roots(workspace), *(typed_path(a).resolve() for a in allow if "://" not in a)]
    except (OSError, RuntimeError, ValueError, CdpError):
        return False
    return access.within(path, folders)
