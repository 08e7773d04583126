"""Learning-rate sweeps: a training job per rate, and the report over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cdp import jobs
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.text import pick
from cdp.base.workspace import Workspace, new_id, read_jsonl
from cdp.benchmarks import describe, resolve_benchmark
from cdp.jobs import JobView
from cdp.retrievers.resolve import training_result
from cdp.services import access, completeness, evaluation, leakage, training
from cdp.studies.sweeps import SweepReport, SweepRun, grid, rate, read_rates, to_markdown
from cdp.training.plan import eval_steps_of

__all__ = ["eval_steps_of", "rate", "read_rates", "to_markdown"]

# Under this name the inputs of a training job say which sweep it belongs to.
LINK = "sweep"

# What the split for choosing is called, the usual name first.
DEV_SPLITS = ("dev", "validation", "val")


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep and its trainings, by ascending learning rate."""

    id: str
    name: str
    created: str
    jobs: tuple[JobView, ...]

    @property
    def active(self) -> bool:
        return any(job.active for job in self.jobs)


def grid_for(workspace: Workspace, retriever: str, lora: bool = False) -> tuple[float, ...]:
    """The learning rates to try with a retriever: the paper's, or some around the retriever's own, or LoRA's."""
    return grid(float(training.defaults(workspace, retriever, lora)["learning_rate"].value))


@access.runs
def start(
    workspace: Workspace,
    config: TrainingConfig,
    rates: Sequence[float],
    *,
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
) -> Sweep:
    """Submit a training for each rate. ``config`` names the dev benchmark; its learning rate is not used.

    ConfigError without a benchmark, for a query set that is not whole unless ``allow_incomplete``, or for one with
    queries that the benchmark judges unless ``allow_leakage``; everything else that can be wrong is found before the
    first job is submitted.
    """
    if len(set(rates)) < 2:
        raise ConfigError("A sweep needs at least two learning rates.")
    if not config.benchmark:
        raise ConfigError("A sweep needs a dev benchmark to choose by.", hint="Set benchmark, as --benchmark NAME.")
    split = config.split or _dev_split(workspace, config.benchmark)
    checked = evaluation.checked(workspace, config.retriever, config.benchmark, split)
    whole = config.replace(benchmark=checked.benchmark, split=checked.split)
    training.plan(workspace, whole)
    completeness.require(workspace, training.trained_on(whole), allow_incomplete)
    leaks = leakage.of_training(workspace, whole, [])
    leakage.require(leaks, allow_leakage)
    name = config.name or f"{training.label(workspace, whole)}, learning rates"
    sweep = {"id": new_id("sweep", name), "name": name}
    for value in sorted(set(rates)):
        rate_config = whole.replace(learning_rate=value, name=f"{name}, {rate(value)}")
        training.submit(workspace, rate_config, {LINK: sweep, **leakage.links(leaks)})
    return resolve_sweep(workspace, sweep["id"])


def _dev_split(workspace: Workspace, benchmark: str) -> str:
    """The split made for choosing, where the benchmark has one; empty leaves it to the benchmark."""
    info = describe(resolve_benchmark(access.benchmark(workspace, benchmark), workspace), workspace)
    return next((name for name in DEV_SPLITS if name in info.splits), "")


def list_sweeps(workspace: Workspace) -> list[Sweep]:
    """The sweeps of this workspace, newest first."""
    groups: dict[str, list[JobView]] = {}
    for view in jobs.list_jobs(workspace, ["training"]):
        link = view.inputs.get(LINK)
        if isinstance(link, dict) and link.get("id"):
            groups.setdefault(str(link["id"]), []).append(view)
    return [
        Sweep(
            sweep_id,
            str(views[0].inputs[LINK].get("name") or sweep_id),
            min(v.created for v in views),
            tuple(sorted(views, key=lambda v: float(v.config.get("learning_rate") or 0.0))),
        )
        for sweep_id, views in groups.items()
    ]


def resolve_sweep(workspace: Workspace, name: str) -> Sweep:
    """The sweep with this id, this name, or the only one whose id or name begins so; see ``cdp.base.text.pick``."""
    return pick("sweep", name, list_sweeps(workspace), none_yet="There is no sweep yet: start one (sweep QUERY_SET).")


def report(workspace: Workspace, name: str) -> SweepReport:
    """What a sweep shows so far."""
    sweep = resolve_sweep(workspace, name)
    config = sweep.jobs[0].config
    benchmark = "/".join(part for part in (config.get("benchmark"), config.get("split")) if part)
    return SweepReport(
        id=sweep.id,
        name=sweep.name,
        retriever=str(config.get("retriever", "")),
        query_set=str(config.get("query_set", "")),
        benchmark=benchmark,
        runs=tuple(_run(view) for view in sweep.jobs),
    )


def _run(view: JobView) -> SweepRun:
    """A training as the report shows it: from its result, or while it runs from what it has logged."""
    result = training_result(view.folder)
    failure = view.failure or {}
    facts: dict[str, Any] = {
        "learning_rate": float(view.config.get("learning_rate") or 0.0),
        "job_id": view.id,
        "state": str(view.state),
        "problem": str(failure.get("message", "")),
    }
    if result is not None and not view.active:
        return SweepRun(
            **facts,
            steps=int(result["steps"]),
            steps_planned=int(result["steps_planned"]),
            loss=result["loss_last"],
            evaluations=tuple((int(e["step"]), float(e["ndcg@10"])) for e in result["evaluations"]),
        )
    scores: dict[int, float] = {}
    loss, step = None, 0
    path = view.folder / "metrics.jsonl"
    for line in read_jsonl(path) if path.is_file() else ():
        step = int(line["step"])
        loss = line.get("loss", loss)
        if line.get("ndcg_at_10") is not None:
            scores[step] = float(line["ndcg_at_10"])
    return SweepRun(**facts, steps=step, steps_planned=view.total, loss=loss, evaluations=tuple(sorted(scores.items())))
