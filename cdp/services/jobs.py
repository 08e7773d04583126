"""Jobs as users see them: starting any kind, log, results, states, failures, progress in words, stop, resume, rerun."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import catalog, jobs, query_sets
from cdp.base import permission
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, NotFoundError
from cdp.base.failures import FILE, RETRY, FailedItems, failed_items
from cdp.base.job_kind import BENCHMARK, CORPUS, RESULT, WHOLE_SET, JobKind, PreparedJob
from cdp.base.permission import Action, NotAllowedError, may
from cdp.base.records import Count, Real, fields, lines, whole
from cdp.base.registry import Registry, registry
from cdp.base.settings import Config
from cdp.base.text import counted, duration, name_and_split, shown, typed_path
from cdp.base.workspace import ANSWERS, Workspace, read_jsonl, write_json
from cdp.benchmarks import judged_on
from cdp.corpus import resolve_corpus
from cdp.evaluation.evaluate import OF_FILES
from cdp.evaluation.results import read_result
from cdp.jobs import JobSpec, JobView, changed, list_active, list_jobs, load_spec, place, resolve_job
from cdp.llm import address, refusals
from cdp.metrics import MEASURES
from cdp.retrievers import PRESETS, api, bm25
from cdp.services import access, commands, completeness, projects
from cdp.synthesis.work import query_set_id

__all__ = ["changed", "list_active", "list_jobs"]

LONGEST = 400  # characters of a path or address that a message repeats

FAILURES = {
    "cuda_out_of_memory": "out of GPU memory",
    "host_out_of_memory": "out of memory",
    "killed": "killed from outside",
    "disk": "disk",
    "data": "data",
    "configuration": "configuration",
    "network": "network",
    "cluster": "cluster",
    "bug": "fault in the program",
}

# The measures of a training in `metrics.jsonl`: name and format.
FIGURES: dict[str, tuple[str, str]] = {
    "loss": ("loss", "{:.4f}"),
    "learning_rate": ("learning rate", "{:.2e}"),
    "gradient_norm": ("gradient norm", "{:.3f}"),
    "ndcg_at_10": ("dev NDCG@10", "{:.2f}%"),
    "pairs_per_second": ("pairs per second", "{:,.0f}"),
    "memory_mib": ("host memory", "{:,.0f} MiB"),
    "gpu_memory_mib": ("GPU memory", "{:,.0f} MiB"),
}


@dataclass(frozen=True)
class Started:
    """What was submitted: a job, the jobs that write its missing queries first, and those beside and after it."""

    job_id: str
    generations: list[str] = field(default_factory=list)
    later: tuple[str, ...] = ()


def kinds() -> Registry[JobKind]:
    """Return the kinds of job, by name."""
    return registry("job kind")


def without_command(name: str) -> JobKind:
    """Return a kind of job that is started by its name and settings alone. NotFoundError, or ConfigError for a kind
    whose own command does more."""
    kind = kinds().named(name)
    if kind.command:
        own = commands.line(*kind.command.split(), help=True)
        raise ConfigError(f"{kind.title} has a command of its own.", hint=f"See: {own}")
    return kind


def _prepared(workspace: Workspace, kind: str, config: Config, *, after: Sequence[str] = ()) -> PreparedJob:
    """Return a job as it would be submitted: its settings with ids, its name and its inputs.

    ``after`` are jobs that end first: what they make need not be there yet. Raises CdpError for settings that cannot
    be used; nothing is started.
    """
    declared = kinds().named(kind)
    ids: dict[str, str] = {}  # of what the settings name, by setting
    names: dict[str, str] = {}
    found: dict[str, Any] = {}  # ids and hashes for the job's record
    values = config.to_dict()
    for setting, what in declared.inputs.items():
        named = str(values[setting])
        if not named and not config.settings()[setting].required:
            continue

        if what == CORPUS:
            manifest = resolve_corpus(workspace, named)
            ids[setting], content, names[setting] = manifest.id, manifest.content_hash, manifest.name
        elif what == BENCHMARK:
            ids[setting], split, info = judged_on(workspace, named, values.get("split", ""))
            ids |= {"split": split} if "split" in config.settings() else {}
            content, names[setting], found["split"] = info.content_hash, info.name, split
        else:
            query_set = query_sets.resolve_query_set(workspace, named)
            lacking = completeness.check(workspace, query_set)
            if what == WHOLE_SET and not lacking.complete:
                raise ConfigError(f"{lacking.sentence} {declared.title} takes whole sets.", hint=lacking.next_step)

            ids[setting], names[setting] = query_set.id, query_set.name
            content = query_sets.content_hash(workspace, query_set)

        # A benchmark outside the workspace is recorded by its name.
        found |= {setting: names[setting] if what == BENCHMARK else ids[setting], f"{setting}_hash": content}

    config = config.replace(**ids)
    ready = declared.prepare(workspace, config, after) if declared.prepare else PreparedJob(config)
    name = ready.name or declared.called.format(**names, config=ready.config)

    return PreparedJob(ready.config, name or declared.title, {**found, **ready.inputs})


prepared = access.reads(_prepared)


@access.runs
def start(
    workspace: Workspace,
    kind: str,
    config: Config,
    *,
    api_key: str = "",
    inputs: Mapping[str, Any] | None = None,
    after: Sequence[str] = (),
    name: str = "",
) -> str:
    """Check and submit a job of any kind; return its id, or that of an active job that does the same.

    ``inputs`` are recorded beside those that the settings name, ``name`` replaces the kind's own name for the job. The
    key travels in the worker's environment only. Raises as ``prepared``.
    """
    declared = kinds().named(kind)
    if declared.asks and (url := access.endpoint_for(config.to_dict(), api_key).url):
        # The job's record says where its texts were sent.
        config = config.replace(base_url=url)

    ready = _prepared(workspace, kind, config, after=after)
    settings = ready.config.to_dict()

    same = {setting: settings[setting] for setting in declared.once}
    if same and (view := running(workspace, kind, **same)) is not None:
        return view.id

    device = declared.device(ready.config)
    return jobs.submit(
        workspace,
        kind=kind,
        name=name or ready.name,
        module=declared.module,
        launcher=declared.launcher,
        config=settings,
        device=place.request(workspace, device),
        uses_pool=device.pool,
        inputs={**ready.inputs, **(inputs or {})},
        after=after,
        env_secrets=access.environment_for(settings, api_key) if declared.asks or access.api_urls(settings) else None,
    )


def running(workspace: Workspace, kind: str, **settings: Any) -> JobView | None:
    """Return the newest active job of a kind with these settings, or None."""
    for view in list_active(workspace):
        if view.kind == kind and settings.items() <= view.config.items():
            return view

    return None


def show(workspace: Workspace, job: str, *, with_size: bool = True) -> JobView:
    """Return one job, by id, unique prefix or name. Its size takes a walk over its folder: omit it in live views."""
    return jobs.view(workspace, resolve_job(workspace, job), with_size=with_size)


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


# A line of ``metrics.jsonl``, beside its measures.
_STEP = fields({"step": Count}, attempt=Count)


def _read_metrics(path: Path) -> dict[str, dict[int, float]]:
    measures: dict[str, dict[int, float]] = {}
    newest = 1
    for record in lines(_STEP, path):
        step, attempt = record["step"], record.get("attempt", 1)
        if attempt > newest:  # resumed from a checkpoint: later steps of the earlier attempt are void
            newest = attempt
            for name, of in measures.items():
                measures[name] = {at: value for at, value in of.items() if at < step}
        for name, value in record.items():
            if name not in ("step", "attempt", "time") and isinstance(value, (int, float)) and math.isfinite(value):
                measures.setdefault(name, {})[step] = float(value)
    return measures


def log(workspace: Workspace, job: str, *, tail_bytes: int = 1 << 16) -> str:
    """Return the end of the worker's log."""
    return jobs.follow_log(workspace, resolve_job(workspace, job), tail_bytes=tail_bytes)[0]


def follow(workspace: Workspace, job: str, *, follow: bool = False) -> Iterator[str]:
    """Yield the log in chunks; with ``follow`` until the job has ended."""
    job_id = resolve_job(workspace, job)
    offset: int | None = 0
    while True:
        active = jobs.view(workspace, job_id, with_size=False).active
        text, offset = jobs.follow_log(workspace, job_id, offset=offset, tail_bytes=1 << 22)
        if text:
            yield text
        if not follow or not active:
            return
        time.sleep(0.5)


# The result of a job of any kind but an evaluation.
_FIGURES = fields(measures=list[fields({"name": str}, value=Real | None)], notes=list[str])  # type: ignore[misc]


def outcome(workspace: Workspace, job: str) -> dict[str, Any]:
    """Return a job's results: an evaluation's measures in percent, else the content of its result file."""
    view = show(workspace, job, with_size=False)
    learnt = refusals.sentences(view.folder)
    declared = kinds().get(view.kind)
    if declared is not None and declared.makes == RESULT:
        result = read_result(view.folder)
        return {"notes": learnt} if result is None else _evaluated(result, learnt)

    found = whole(_FIGURES, view.folder / "results" / f"{view.kind}.json") or {}

    figures: dict[str, Any] = dict(found)
    figures.pop("id", None)
    figures.pop("examples", None)

    measures = []
    for measured in found.get("measures", ()):
        known = MEASURES.get(measured["name"])
        measures.append({"title": known.title if known else measured["name"], **measured})
    if "measures" in found:
        figures["measures"] = measures

    return {**figures, "notes": [*found.get("notes", ()), *learnt]}


def _evaluated(result: Mapping[str, Any], learnt: Sequence[str]) -> dict[str, Any]:
    from cdp.results import board  # a room that most commands on jobs do without: 40 ms

    per_passage = OF_FILES in result["measures"]
    notes = [*result.get("warnings", []), *learnt]
    if per_passage:
        notes.append(board.PER_PASSAGE)
    notes += [badge.meaning for badge in board.badges_from_counts(result.get("counts", {}))]

    return {
        **{name: round(100 * value, 4) for name, value in result["measures"].items()},
        "judged_per": "passage" if per_passage else "document",
        "retriever": result["retriever"]["id"],
        "benchmark": result["benchmark"]["name"],
        "split": result["benchmark"]["split"],
        "n_queries": result["benchmark"]["n_queries"],
        "seconds": result["seconds"],
        "notes": notes,
    }


def failed(workspace: Workspace, job: str) -> FailedItems:
    """Return the items that failed in a job, and in the query set that it writes."""
    spec = load_spec(workspace, resolve_job(workspace, job))
    paths = [workspace.job(spec.id) / FILE]
    if spec.kind == "synthesis":
        paths.insert(0, workspace.query_set(written_set(spec)) / FILE)
    return failed_items(*paths)


def wait(workspace: Workspace, job: str, on_update: Callable[[JobView], None] | None = None) -> JobView:
    """Wait until the job has ended."""
    return jobs.wait(workspace, resolve_job(workspace, job), on_update)


@access.runs
def stop(workspace: Workspace, job: str) -> JobView:
    """Ask a job to save its progress and end."""
    job_id = resolve_job(workspace, job)
    jobs.stop(workspace, job_id)
    return show(workspace, job_id, with_size=False)


@access.runs
def delete(workspace: Workspace, job: str) -> None:
    """Remove a job and everything it made. ConfigError while another job needs it."""
    job_id = resolve_job(workspace, job)
    projects.check_unused(workspace, f"The job {job_id}", job_id)
    jobs.delete(workspace, job_id)
    catalog.ingest(workspace)


def written_set(job: JobView | JobSpec) -> str:
    """Return the id of the query set that a job of kind ``synthesis`` writes."""
    return query_set_id(job.id, SynthesisConfig.from_dict(job.config))


def again(view: JobView) -> list[str]:
    """Return the command that starts such a job again, to be changed; empty for kinds that have none."""
    kind = kinds().get(view.kind)
    if kind is None or not kind.repeats:
        return []
    with suppress(CdpError):  # settings of a stranger's workspace
        return [command(kind, kind.settings.from_dict(view.config))]
    return []


def command(kind: JobKind, config: Config) -> str:
    """Return the command that starts a job with these settings."""
    words = kind.command.split() or ["jobs", "start", kind.name]
    first = getattr(config, kind.word, "")
    return commands.line(*words, first, config=config, without=(kind.word,), wait=True)


# in words


def activity(name: str) -> str:
    """Return the activity of a kind of job: ``Writing queries``; of an unknown kind its name."""
    declared = kinds().get(name)
    return declared.title if declared is not None else name.replace("-", " ").capitalize()


def where(view: JobView) -> list[str]:
    """Return the devices that a job has, and ``on <cluster>`` unless it is this machine."""
    devices = ["CPU" if device == "cpu" else device for device in view.devices]
    return devices + [f"on {view.cluster}"] * bool(view.cluster)


def doing(view: JobView) -> str:
    """Return a job's progress: ``training · 320 of 1,200 steps · 27% · about 2 min left``."""
    state = str(view.state)
    if state == "queued" and view.position:
        return f"queued · place {view.position}"
    if not view.active or state == "queued":
        return state

    phase = state
    if state == "running" and view.phase:
        phase = view.phase

    done = share = left = ""
    if view.total:
        done, share = f"{view.done:,} of {view.total:,} {view.unit}".strip(), f"{view.fraction:.0%}"
    if view.unit == "%":  # of several stages: the one that is at work says how far it is
        done = view.message
    if done and phase == view.unit:  # a study's phase and unit are both trainings
        phase = ""
    if view.eta_s is not None:
        left = f"about {duration(max(1.0, view.eta_s))} left"

    return " · ".join(filter(None, (phase, done, share, left)))


def sentence(view: JobView) -> str:
    """Return what a job's state means, in one or two sentences."""
    state = str(view.state)
    after = model_note = failed = ""
    if view.seconds is not None:
        after = f" after {duration(view.seconds)}"
    if view.has_model:
        model_note = " Its model is kept."
    if view.n_failures:
        failed = f" {counted(view.n_failures, 'item')} failed and can be looked at."

    if state == "queued":
        ahead = (view.position or 1) - 1
        if view.message or not ahead:
            return view.message or "It is next in the queue."
        return f"It waits for its turn: {counted(ahead, 'job is', 'jobs are')} before it."

    if state == "running":
        return f"It runs in the background and goes on if you close this window.{failed} {warning(view)}".strip()

    if view.inputs.get("recorded"):
        return "Recorded: it ran on another machine and came with the demo. Run the test on Decide to repeat it here."

    if state == "finished":
        return f"Finished{after}.{failed}{model_note}"
    if state == "stopped":
        stopped = f"{view.message or 'It was stopped.'}{model_note}"
        return stopped if "Resume" in view.message else f"{stopped} Resume it to go on."
    if state == "failed":
        reason = FAILURES.get((view.failure or {}).get("kind", ""), "")
        return f"It failed{after}{reason and f' ({reason})'}.{model_note}"
    return view.message


def warning(view: JobView) -> str:
    """Return what a model's answers so far warn of, before more is paid; empty for other jobs."""
    if not view.active or view.phase not in ("generating", "judging"):
        return ""

    return view.message


def failure(view: JobView) -> tuple[str, str, list[str]]:
    """Return (message, hint, last lines of the log) of a failed job; empty for any other."""
    failure_record = view.failure
    if not failure_record:
        return "", "", []
    message = str(failure_record.get("message") or "The job failed.")
    return message, str(failure_record.get("hint") or "The log holds more."), failure_record["log_tail"]


def figures(latest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the newest value of each measure of a training, as (name, value with its unit)."""
    # A study logs the score of each training as it ends, and no dev score while it trains.
    shown = dict(FIGURES)
    if "condition" in latest:
        shown["ndcg_at_10"] = ("NDCG@10 of the last training", "{:.2f}%")

    known = [key for key in shown if isinstance(latest.get(key), (int, float))]
    return [(shown[key][0], shown[key][1].format(latest[key])) for key in known]


def in_words(
    workspace: Workspace, results: Mapping[str, Any], scope: projects.Members | None = None
) -> list[tuple[str, str]]:
    """Return the single numbers and texts among a job's results, as (name, value with its unit). An evaluated retriever
    is called as on the leaderboard of ``scope``."""
    shown = dict(results)
    if "ndcg@10" in results:
        from cdp.results import board  # a room that most commands on jobs do without: 40 ms

        known = {row["retriever_id"]: row["retriever_name"] for row in board.list_evaluations(workspace, scope)}
        shown["retriever"] = known.get(results["retriever"], results["retriever"])

    plain = {name: value for name, value in shown.items() if isinstance(value, int | float | str) and value != ""}
    return [(name, _with_unit(name, value)) for name, value in plain.items()]


def _with_unit(name: str, value: float | str) -> str:
    if name == "seconds":
        return duration(float(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}" if "@" in name else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value


def rate(view: JobView) -> str:
    """Return the throughput of the present phase, ``12.5 documents per second``; empty if unknown."""
    if not (view.active and view.rate and view.unit):
        return ""

    return f"{view.rate:,.1f} {view.unit} per second"


# resuming


def missing_secrets(workspace: Workspace, job: str) -> list[str]:
    """Return the names of the keys that a job ran with and that this process lacks, or has for another address."""
    spec = load_spec(workspace, resolve_job(workspace, job))
    if access.holds_key(spec.config):
        return []
    missing = []
    for name in _keys(spec):
        elsewhere = name == address.OWN and access.needs_key(spec.config)
        if elsewhere or not os.environ.get(name):
            missing.append(name)

    return missing


def to_allow(workspace: Workspace, job: str) -> dict[str, list[str]]:
    """Return the paths and addresses, by setting, that a resume of the job needs a person's word for.

    Empty for a job that this account submitted. Raises NotAllowedError if this process may not give its word.
    """
    spec = load_spec(workspace, resolve_job(workspace, job))
    outside = _outside(workspace, spec)
    for setting, values in outside.items():
        if not may(Action.ANY_ENDPOINT):
            raise _not_allowed(spec, setting, values)
    if outside:
        _check(workspace, spec)
    return outside


@access.runs
def resume(
    workspace: Workspace, job: str, *, env_secrets: dict[str, str] | None = None, allow: Sequence[str] = ()
) -> JobView:
    """Continue a job that ended early, as a new attempt from its last checkpoint.

    A workspace may be a stranger's. Its ``spec.json`` can name any module, path, model or address, so without the
    signature of this account a resume trusts only the workspace, the shipped data and the operator's settings
    (``CDP_ALLOWED_FOLDERS``, ``CDP_BASE_URL`` …). Raises NotAllowedError for paths and addresses outside of them,
    unless ``allow`` names them.
    """
    job_id = resolve_job(workspace, job)
    if show(workspace, job_id, with_size=False).state is jobs.State.FINISHED:
        raise ConfigError(f"Job {job_id} has finished: nothing is left to do.", hint="Start a new one.")
    (workspace.job(job_id) / RETRY).unlink(missing_ok=True)
    return _attempt(workspace, job_id, env_secrets or {}, allow)


@access.runs
def retry(
    workspace: Workspace, job: str, items: Sequence[str] = (), *, env_secrets: dict[str, str] | None = None,
    allow: Sequence[str] = (),
) -> JobView:  # fmt: skip
    """Ask once more about what failed in a job that ended, all of it or the ``items`` of these ids, as a new attempt.

    What went well stays, and nothing of it is paid again. ConfigError for a kind that cannot, NotFoundError for an id
    that did not fail; otherwise as ``resume``.
    """
    view = show(workspace, resolve_job(workspace, job), with_size=False)
    if not may_retry(view):
        hint = "Resume it." if not view.active else "Wait until it has ended."
        raise ConfigError(f"Job {view.id} has nothing that can be tried again.", hint=hint)

    there = {str(line.get("id")) for path in failed(workspace, view.id).files for line in read_jsonl(path)}
    for item in items:
        if item not in there:
            raise NotFoundError("failed item", item, known=sorted(there))

    # A whole list is the same as all: ids that failed meanwhile are among them.
    write_json(workspace.job(view.id) / RETRY, list(items))
    return _attempt(workspace, view.id, env_secrets or {}, allow)


def may_retry(view: JobView) -> bool:
    """Return True for a job that ended with failed items, of a kind that asks about them once more."""
    kind = kinds().get(view.kind)
    return kind is not None and kind.retries and not view.active and view.n_failures > 0


def _attempt(workspace: Workspace, job_id: str, env_secrets: dict[str, str], allow: Sequence[str]) -> JobView:
    """Start a new attempt, with the keys and what may be named outside of the workspace checked as ``resume`` says."""
    spec = load_spec(workspace, job_id)
    for setting, values in _outside(workspace, spec, allow).items():
        raise _not_allowed(spec, setting, values)
    _check(workspace, spec)

    keys = _keys(spec)
    typed = {name: value for name, value in env_secrets.items() if name in address.KEYS}
    asked = access.environment_for(spec.config, typed.pop(address.OWN, ""))
    jobs.resume(workspace, job_id, env_secrets={**typed, **asked}, needs=keys)
    return show(workspace, job_id, with_size=False)


def _keys(spec: JobSpec) -> list[str]:
    """Return the keys that the job needs. A stranger's specification could name any variable of the environment."""
    return [name for name in spec.secrets if name in address.KEYS]


def _check(workspace: Workspace, spec: JobSpec) -> None:
    """Raise NotAllowedError for settings that this mode may not use. Also ConfigError, NotFoundError."""
    config = _config(spec)
    # On a local dashboard the person goes on with a job of the command line, with every folder that it names.
    if not (permission.mode() is permission.Mode.LOCAL and jobs.is_own(workspace.job(spec.id))):
        access.checked(workspace, config)


def _not_allowed(spec: JobSpec, setting: str, values: Sequence[str]) -> NotAllowedError:
    words: list[str] = []
    for value in values:
        words += ("--allow", value[:LONGEST])
    if permission.mode() is permission.Mode.OPERATOR:
        hint = f"If you trust it, add: {shlex.join(words)}"
    else:
        hint = f"The operator can allow it: {commands.line('jobs', 'resume', spec.id)} {shlex.join(words)}"
    return NotAllowedError(
        f"The job's setting {setting!r} names {values[0][:LONGEST]!r}, which is outside this workspace.", hint=hint
    )


def _outside(workspace: Workspace, spec: JobSpec, allow: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the paths and addresses outside the workspace that a stranger's job names, by setting.

    Raises NotAllowedError for a job that would run anything but the worker of its kind.
    """
    if not may(Action.ANY_ENDPOINT):
        allow = ()  # visitors of a shared dashboard decide nothing about the server's files and network

    config = _config(spec)
    if jobs.is_own(workspace.job(spec.id)):
        return {}

    # Without an address of the operator's, jobs go to OpenAI, whose address may then also be spelt out.
    known = [*(access.endpoints() or [address.OPENAI_URL]), *(a for a in allow if "://" in a)]
    found: dict[str, list[str]] = defaultdict(list)
    for setting, holds, value in access.names_in(config):
        if holds == "retriever" and (named := api.parse(value)) is not None:
            holds, value = "endpoint", named.url

        if holds == "endpoint":
            trusted = any(address.same(value, other) for other in known)
        elif holds == "tracker":
            trusted = value in allow
        else:
            trusted = _inside(workspace, spec, holds, value, allow)

        if not trusted:
            found[setting].append(value)

    return dict(found)


def _config(spec: JobSpec) -> Config:
    kind = kinds().get(spec.kind)
    if kind is None or spec.module != kind.module:
        raise NotAllowedError(
            f"The job {spec.id} would run {shown(spec.module)}, which is not the worker of a job of kind "
            f"{shown(spec.kind)}.",
            hint="It was not submitted by this program, or a plug-in is missing. Install that, or delete the job.",
        )
    return kind.settings.from_dict(spec.config)


def _inside(workspace: Workspace, spec: JobSpec, holds: str, text: str, allow: Sequence[str]) -> bool:
    """Return True for a name, and for a path in the workspace or in a folder that the operator or the caller named."""
    if holds in ("model", "retriever") and (
        text in PRESETS or text in access.CHOICES or bm25.language_in(text) is not None
    ):
        return True

    try:
        # A relative path starts where the job was submitted: the worker reads it from there.
        path = Path(spec.cwd or os.getcwd(), typed_path(text))
        if holds == "benchmark" and not path.exists():
            path = Path(spec.cwd or os.getcwd(), typed_path(name_and_split(text)[0]))
        if holds != "path" and not permission.is_path(text) and not path.exists():
            return True  # the name of a model of the hub, of a benchmark, of a training

        path = path.resolve()
        folders = [*permission.roots(workspace), *(typed_path(a).resolve() for a in allow if "://" not in a)]
    except (OSError, RuntimeError, ValueError, CdpError):
        return False

    return permission.within(path, folders)
