"""What a training would do, before it starts: pairs and steps exactly, time and memory from a few measured steps.

``plan`` loads no model. ``cdp.training.measure`` is a process of its own that runs a few real steps and prints what
they took; ``estimate`` reads both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.training.data import TrainingData, prepare
from cdp.training.licences import licence_notes
from cdp.training.pairs import BatchOrder
from cdp.training.reasoning import unreasoned_note
from cdp.training.settings import order_of

INCOMPLETE = "The query set is incomplete: only what was there is trained on."


@dataclass(frozen=True)
class RunPlan:
    """``steps`` are those of the whole run on one process; ``left_out_per_epoch`` pairs are not seen in an epoch.

    ``texts`` are all that is embedded: queries, reasoned queries, documents, hard negatives. ``licences`` says whose
    terms apply, see ``licence_notes``.
    """

    pairs: int
    documents: int
    texts: int
    steps: int
    steps_per_epoch: int
    batch_size: int
    left_out_per_epoch: int
    dropped: dict[str, int]
    unreasoned: int
    zero_weights: int
    hard_negatives: int
    settings: dict[str, Any]
    licences: dict[str, str]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Measured:
    """What a few real steps took on this machine. Bytes and seconds; ``memory_free`` is what the device (or, on a CPU,
    the machine or its container) had free before, ``memory_total`` all that it has."""

    device: str
    steps: int
    load_seconds: float
    tokenise_seconds_per_text: float
    step_seconds: float
    memory_peak: int
    memory_free: int
    memory_total: int
    trained_parameters: int

    @property
    def fits(self) -> bool:
        """Whether the peak leaves a tenth of the free memory."""
        return self.memory_peak < 0.9 * self.memory_free


def plan(config: TrainingConfig, workspace: Workspace) -> RunPlan:
    """Read the pairs and work out what would happen. Everything that can be wrong without a model is found here."""
    return plan_of(prepare(config, workspace), workspace)


def plan_of(data: TrainingData, workspace: Workspace) -> RunPlan:
    """What training on this data would do. ConfigError where a batch has no negatives."""
    settings, pairs = data.settings, data.pairs
    order = order_of(settings, len(pairs))
    zero = int((data.weights == 0).sum())
    width = 0 if pairs.negatives is None else pairs.negatives.shape[1]
    return RunPlan(
        pairs=len(pairs),
        documents=pairs.n_documents,
        texts=len(pairs.queries) + len(pairs.reasoned or ()) + len(pairs.documents),
        steps=order.steps,
        steps_per_epoch=order.steps_per_epoch,
        batch_size=order.global_rows,
        left_out_per_epoch=order.left_out_per_epoch,
        dropped=pairs.dropped,
        unreasoned=pairs.unreasoned,
        zero_weights=zero,
        hard_negatives=width,
        settings=settings.to_dict(),
        licences=licence_notes(settings, data.retriever, workspace),
        notes=_notes(data, order, zero, width),
    )


def _notes(data: TrainingData, order: BatchOrder, zero: int, width: int) -> list[str]:
    pairs, notes = data.pairs, order_notes(order)
    if not pairs.query_set.complete:
        notes.insert(0, INCOMPLETE)
    if zero == len(pairs):
        notes.append("Every weight is zero, so all pairs count the same.")
    elif zero:
        noun = "pair has" if zero == 1 else "pairs have"
        notes.append(f"{zero:,} {noun} weight zero: good as a negative only.")
    if pairs.unreasoned:
        notes.append(unreasoned_note(pairs.unreasoned, data.settings))
    if width:
        missing = f"; {pairs.without_negatives:,} pairs have none" if pairs.without_negatives else ""
        notes.append(f"Hard negatives: {width} per pair from the query set{missing}.")
    return notes + [f"Left out: {count:,} {reason}." for reason, count in pairs.dropped.items()]


def order_notes(order: BatchOrder) -> list[str]:
    """What the size of a batch means for this number of pairs, where that is worth saying."""
    if order.batch_size > order.pairs:
        return [f"The batch is larger than the data: each step sees all {order.pairs:,} pairs."]
    left = order.left_out_per_epoch
    if left:
        noun = "pair, another one" if left == 1 else "pairs, others"
        return [f"Each epoch leaves out {left:,} {noun} each time: its last batch."]
    return []


def measured_from(values: Mapping[str, Any]) -> Measured:
    """The ``measured`` of the record that ``python -m cdp.training.measure`` prints."""
    return Measured(**values)


def estimate(texts: int, steps: int, measured: Measured) -> float:
    """Seconds from start to model: loading, tokenising every text once, every step; evaluations while training are not
    counted."""
    return measured.load_seconds + texts * measured.tokenise_seconds_per_text + steps * measured.step_seconds
