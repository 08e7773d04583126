"""A run as a whole: every stage, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cdp.planning.rates import Rate, Span
from cdp.planning.stages import STAGES, Stage
from cdp.planning.timing import Setting
from cdp.planning.workload import Hardware, Workload


@dataclass(frozen=True)
class ScalePlan:
    """``span`` is of the stages whose time is known, one after the other; ``unknown`` names the others. ``dollars`` is
    what is known of the price, ``priced`` whether that is all. ``notes`` say what has to be known of the whole."""

    work: Workload
    hardware: Hardware
    stages: tuple[Stage, ...]
    span: Span
    unknown: tuple[str, ...]
    dollars: float
    priced: bool
    memory: float
    storage: float
    network: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "work": asdict(self.work),
            "hardware": asdict(self.hardware),
            "stages": [stage.to_dict() for stage in self.stages],
            "total": {
                "seconds": self.span.seconds,
                "low": self.span.low,
                "high": self.span.high,
                "unknown": list(self.unknown),
                "dollars": self.dollars,
                "priced": self.priced,
                "memory": self.memory,
                "storage": self.storage,
                "network": self.network,
            },
            "notes": list(self.notes),
        }


def scale_plan(work: Workload, hardware: Hardware, rates: Mapping[str, Rate]) -> ScalePlan:
    """What the whole run takes. Nothing is looked up: the same numbers give the same plan."""
    setting = Setting(work, hardware, rates)
    stages = tuple(make(setting) for make in STAGES.values())
    whole = Span(0.0)
    for stage in stages:
        whole = whole if stage.span is None else whole.plus(stage.span)
    memory = max(stage.sizes.memory or 0.0 for stage in stages)
    return ScalePlan(
        work,
        hardware,
        stages,
        whole,
        tuple(stage.title for stage in stages if stage.span is None),
        sum(stage.dollars for stage in stages),
        all(stage.priced for stage in stages),
        memory,
        sum(stage.sizes.storage for stage in stages),
        sum(stage.sizes.network for stage in stages),
        tuple(_notes(hardware, stages)),
    )


def _notes(hardware: Hardware, stages: tuple[Stage, ...]) -> list[str]:
    notes = []
    if hardware.memory_gb is not None:
        large = [s.title for s in stages if (s.sizes.memory or 0.0) > 1e9 * hardware.memory_gb]
        if large:
            notes.append(f"More than {hardware.memory_gb:,g} GB of memory: {', '.join(large)}. See docs/SCALING.md.")
    if hardware.machines > 1:
        notes.append(
            "Several machines are a model: the work divided by the workers named. docs/SCALING.md says which of it "
            "this version runs."
        )
    if hardware.dollars_per_hour is None:
        notes.append("The machines' time has no price until one is named.")
    untold = sum(s.span is None for s in stages)
    if untold:
        notes.append(f"The time is that of {len(stages) - untold} of {len(stages)} stages: the others are not known.")
    return notes
