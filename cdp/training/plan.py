"""What a training would do, before it starts: pairs and steps exactly, time and memory from a few measured steps.

``plan`` loads no model. ``cdp.training.measure`` is a process of its own that runs a few real steps and prints what
they took; ``estimate`` reads both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cdp.config import TrainingConfig
from cdp.errors import InputError
from cdp.training.pairs import BatchOrder, load_pairs
from cdp.training.reasoning import with_reasoned
from cdp.training.retrievers import resolve
from cdp.training.settings import complete
from cdp.training.weights import pair_weights, weighting_named
from cdp.workspace import Workspace


@dataclass(frozen=True)
class Plan:
    """``steps`` are those of the whole run on one process; ``left_out_per_epoch`` pairs are not seen in an epoch."""

    pairs: int
    documents: int
    steps: int
    steps_per_epoch: int
    batch_size: int
    left_out_per_epoch: int
    dropped: dict[str, int]
    unreasoned: int
    zero_weights: int
    settings: TrainingConfig
    licence: str
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Measured:
    """What a few real steps took on this machine. Bytes and seconds; ``memory_total`` is the device's."""

    device: str
    steps: int
    load_seconds: float
    tokenise_seconds_per_text: float
    step_seconds: float
    memory_peak: int
    memory_total: int
    trained_parameters: int

    @property
    def fits(self) -> bool:
        """Whether the peak leaves a tenth of the device's memory free."""
        return self.memory_peak < 0.9 * self.memory_total


def plan(config: TrainingConfig, workspace: Workspace) -> Plan:
    """Read the pairs and work out what would happen. Everything that can be wrong without a model is found here."""
    retriever = resolve(config.retriever, workspace)
    settings = complete(config, retriever)
    pairs = load_pairs(workspace, config.query_set, per_doc=config.per_doc, max_documents=config.max_documents)
    if weighting_named(settings.weighting).needs == "reasoning":
        pairs = with_reasoned(pairs, workspace, settings.reasoning)
    weights = pair_weights(pairs, settings.weighting, kappa=settings.kappa, file=settings.weights)
    order = BatchOrder(len(pairs), settings.batch_size or len(pairs), settings.epochs or 1, settings.seed)
    if order.global_rows < 2:
        raise InputError(f"A batch of {order.global_rows} pair has no negatives.", hint="Use a larger batch_size.")
    zero = int((weights == 0).sum())
    notes = []
    if order.batch_size > order.pairs:
        notes.append(f"The batch is larger than the data: each step sees all {order.pairs} pairs.")
    elif order.left_out_per_epoch:
        notes.append(f"Each epoch leaves out {order.left_out_per_epoch} pairs, other ones each time: its last batch.")
    if zero == len(pairs):
        notes.append("Every weight is zero, so all pairs count the same.")
    elif zero:
        notes.append(f"{zero} pairs have weight zero: they only serve as negatives.")
    if pairs.unreasoned:
        notes.append(f"{pairs.unreasoned} queries have no reasoned form and get RI 1.")
    notes += [f"{count} {reason} are left out." for reason, count in pairs.dropped.items()]
    return Plan(
        pairs=len(pairs),
        documents=len(pairs.documents),
        steps=order.steps,
        steps_per_epoch=order.steps_per_epoch,
        batch_size=order.global_rows,
        left_out_per_epoch=order.left_out_per_epoch,
        dropped=pairs.dropped,
        unreasoned=pairs.unreasoned,
        zero_weights=zero,
        settings=settings,
        licence=retriever.licence,
        notes=notes,
    )


def measured_from(values: Mapping[str, Any]) -> Measured:
    """The record that ``python -m cdp.training.measure`` prints."""
    return Measured(**values)


def estimate(plan: Plan, measured: Measured) -> float:
    """Seconds from start to model: loading, tokenising every text once, every step; evaluations while training are not
    counted."""
    texts = plan.pairs + plan.documents
    return measured.load_seconds + texts * measured.tokenise_seconds_per_text + plan.steps * measured.step_seconds
