"""``plan``: what a run of any size takes, as a table of its stages and the arithmetic behind each."""

from __future__ import annotations

import argparse

from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import note, say
from cdp.planning.config import PlanConfig
from cdp.planning.quantities import short_count
from cdp.planning.scale import ScalePlan
from cdp.planning.words import interval, money
from cdp.services.jobs.job_words import size


def plan(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import planning

    given = {name: getattr(a, name) for name in PlanConfig.settings()}
    config = PlanConfig.from_dict({name: value for name, value in given.items() if value not in (None, "")})
    if a.measure:
        note("Measuring this machine: small real work of every stage.")
        note(f"Kept for {planning.measure(workspace, config.retriever).name}.")
    made = planning.plan(workspace, config)
    return say(a, made.to_dict(), text(made))


def text(plan: ScalePlan) -> str:
    """The stages as a table, the totals, then every stage's arithmetic and doubts."""
    rows = [
        {
            "stage": stage.title,
            "time": interval(stage.span),
            "money": money(stage.dollars, stage.priced),
            "memory": "–" if stage.sizes.memory is None else size(stage.sizes.memory),
            "storage": size(stage.sizes.storage),
            "network": size(stage.sizes.network),
            "rate": stage.basis,
        }
        for stage in plan.stages
    ]
    rows.append(
        {
            "stage": "All",
            "time": interval(plan.span) + (" and what is unknown" if plan.unknown else ""),
            "money": money(plan.dollars, plan.priced),
            "memory": f"at least {size(plan.memory)}",
            "storage": size(plan.storage),
            "network": size(plan.network),
            "rate": "",
        }
    )
    work, hardware = plan.work, plan.hardware
    head = (
        f"{short_count(work.documents)} documents of {work.characters:,.0f} characters, {work.per_doc} queries each by "
        f"{work.writer.name}, {work.model.name}; {hardware.machines:,} × ({hardware.cpus} processors, {hardware.gpus} "
        "GPUs)"
    )
    lines = [head, "", display.table(rows, list(rows[0]), "")]
    for stage in plan.stages:
        lines += [
            "",
            stage.title,
            *(f"  {line}" for line in stage.arithmetic),
            *(f"  ! {doubt}" for doubt in stage.notes),
        ]
    return "\n".join([*lines, "", *(f"Note: {remark}" for remark in plan.notes)])
