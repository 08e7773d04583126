"""Commands that train: one training, what it would take, and sweeps over learning rates."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.paths import typed_path
from cdp.base.workspace import Workspace, write_bytes
from cdp.cli import display
from cdp.cli.answers import config_of, followed, note, say, started, warn_incomplete
from cdp.services.jobs import job_words


def _config(workspace: Workspace, a: argparse.Namespace, **more: Any) -> TrainingConfig:
    """The training that the options describe."""
    from cdp.services import training

    if a.per_doc is not None:
        more["per_doc"] = a.per_doc
    config = config_of(TrainingConfig, a, "query_set", "retriever", "weighting", **more)
    if a.pairs is None:
        return config
    if config.max_documents is not None:
        raise ConfigError("--pairs says how many documents are taken, and so does max_documents.", hint="Give one.")
    if a.pairs < 2:
        raise ConfigError(f"--pairs must be at least 2, not {a.pairs}.")
    return training.with_pairs(workspace, config, a.pairs)


def train(workspace: Workspace, a: argparse.Namespace) -> int:
    """``train QUERY_SET``: start it, with evaluations before and after; ``--plan`` measures instead."""
    from cdp.services import jobs, training

    config = _config(workspace, a, **({"name": a.name} if a.name else {}))
    if a.plan:
        preview = training.preview(workspace, config)
        return say(a, {**dataclasses.asdict(preview), "fits": preview.fits}, preview_text(preview))
    benchmarks = [(name, split) for name, _, split in (text.partition(":") for text in a.evaluate)]
    begun = training.start(
        workspace,
        config,
        benchmarks=benchmarks,
        before=a.when != "after",
        after=a.when != "before",
        allow_incomplete=a.allow_incomplete,
        allow_leakage=a.allow_leakage,
    )
    warn_incomplete(workspace, *training.trained_on(config))
    code = started(workspace, a, begun.job_id)
    interrupted = jobs.show(workspace, begun.job_id, with_size=False).active
    for job_id in begun.evaluations:
        if a.wait and not interrupted:
            code = max(code, followed(workspace, job_id))
        else:
            note(f"also queued: {job_id}")
    return code


def preview_text(preview: Any) -> str:
    """What a training would do and take, as lines."""
    plan, measured = preview.plan, preview.measured
    fits = "fits" if preview.fits else "does NOT fit: use a smaller batch_size or max_length, or mini_batch (GradCache)"
    memory = (
        f"{job_words.size(measured.memory_peak)} at its peak, {job_words.size(measured.memory_free)} free of "
        f"{job_words.size(measured.memory_total)} ({measured.device}): {fits}"
    )
    facts = {
        "pairs": f"{plan.pairs:,} over {plan.documents:,} documents",
        "steps": f"{plan.steps:,} ({plan.steps_per_epoch:,} per epoch of {plan.batch_size} pairs)",
        "time": f"{job_words.duration(preview.seconds)} without evaluations ({measured.step_seconds:.3f} s per step)",
        "memory": memory,
        "trained": f"{measured.trained_parameters:,} parameters",
        **{f"licence, {what}": note for what, note in plan.licences.items()},
    }
    width = max(map(len, facts))
    lines = [f"{name.ljust(width)}  {value}" for name, value in facts.items()]
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes), "", preview.command])


def sweep_run(workspace: Workspace, a: argparse.Namespace) -> int:
    """``sweep run QUERY_SET``: a training job per learning rate; with ``--wait`` the report at the end."""
    from cdp.services.training import sweeps

    benchmark, _, split = a.benchmark.rpartition(":")
    if not benchmark or "/" in split:  # a colon may belong to a path
        benchmark, split = a.benchmark, ""
    config = _config(workspace, a, benchmark=benchmark, split=split, name=a.name)
    rates = (
        sweeps.read_rates(a.learning_rates)
        if a.learning_rates
        else sweeps.grid_for(workspace, config.retriever, lora=config.lora_rank is not None)
    )
    begun = sweeps.start(workspace, config, rates, allow_incomplete=a.allow_incomplete, allow_leakage=a.allow_leakage)
    warn_incomplete(workspace, config.query_set)
    ids = [job.id for job in begun.jobs]
    if not a.wait:
        text = "\n".join([f"{begun.id}: {len(ids)} trainings (see: sweep report {begun.id})", *ids])
        return say(a, {"id": begun.id, "name": begun.name, "jobs": ids}, text)
    code = max(followed(workspace, job_id) for job_id in ids)
    report = sweeps.report(workspace, begun.id)
    say(a, report.to_dict(), sweeps.to_markdown(report))
    return code


def sweep_list(workspace: Workspace, a: argparse.Namespace) -> int:
    """``sweep list``: the sweeps of this workspace."""
    from cdp.services.training import sweeps

    rows = [
        {
            "id": s.id,
            "name": s.name,
            "trainings": len(s.jobs),
            "finished": sum(str(job.state) == "finished" for job in s.jobs),
            "created": s.created,
        }
        for s in sweeps.list_sweeps(workspace)
    ]
    empty = "No sweep yet: sweep run QUERY_SET --benchmark NAME"
    return say(a, rows, display.table(rows, ["id", "name", "trainings", "finished", "created"], empty))


def sweep_report(workspace: Workspace, a: argparse.Namespace) -> int:
    """``sweep report ID``: the rates with their scores, as Markdown or JSON."""
    from cdp.services.training import sweeps

    report = sweeps.report(workspace, a.id)
    text = sweeps.to_markdown(report)
    if a.out:
        target = typed_path(a.out)
        write_bytes(target, f"{text}\n".encode())
        return say(a, {"id": report.id, "file": str(target)}, f"written: {target}")
    return say(a, report.to_dict(), text)
