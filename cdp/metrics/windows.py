"""What a model makes of a long list of items: in windows, one after another here or several at once by a crew.

A model's value for an item may depend on what it is given with it: a batch is padded to its longest text, and sums of
floating point depend on their order. So the windows are the same however many workers there are, and a part is one or
more whole windows. With the same kind of machine, the values are then the same to the last bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.crew import Crew, Stopped, kept
from cdp.base.failures import Failures, Listed
from cdp.base.worker import Job
from cdp.base.workspace import Workspace
from cdp.metrics.ledger import Ledger
from cdp.metrics.measures.dist_sim import document_dist_sims
from cdp.metrics.measures.embedding_diversity import document_diversities
from cdp.metrics.scorers import BI_ENCODER, STAND_IN_MODEL, PairScorer, load_encoder, load_scorer

BATCH_S = 300.0
"""How long a window may take without a word."""

Rows = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Model:
    """A model by what loads it, and what is made of a window by it: ``kind`` is "pairs", "diversity" or "dist_sim"."""

    kind: str
    name: str
    workspace: str
    batch_size: int
    depths: tuple[int, ...] = ()
    threshold: float | None = None

    def text_of(self, item: Any) -> str:
        """What an item says, for the list of failures."""
        return "\n".join(itertools.chain(*item) if self.kind == "dist_sim" else item)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.name, self.workspace, self.batch_size, self.threshold

    def as_found(self, scorer: PairScorer) -> Model:
        """The scorer that was found for "auto", by its name: every worker takes the same."""
        return replace(self, name=BI_ENCODER if scorer.model == STAND_IN_MODEL else scorer.model)

    def rows(self) -> Rows:
        """The function of a window; its model is loaded once in this process."""
        workspace, depths = Workspace(Path(self.workspace)), list(self.depths)
        if self.kind == "pairs":
            return scorer_of(self).score  # type: ignore[return-value]
        encode = kept("encoder", self.key, lambda: load_encoder(self.name, workspace, batch_size=self.batch_size))
        if self.kind == "diversity":
            return lambda window: list(document_diversities(window, encode, depths))
        return lambda window: list(document_dist_sims(window, encode, depths))


def scorer_of(model: Model) -> PairScorer:
    """The scorer, loaded once in this process."""

    def load() -> PairScorer:
        workspace = Workspace(Path(model.workspace))
        return load_scorer(model.name, workspace, threshold=model.threshold, batch_size=model.batch_size)

    return kept("scorer", model.key, load)


def about(model: Model) -> PairScorer:
    """What the scorer is, which is loaded for that; by itself it scores nothing, so that it can be sent."""
    return replace(scorer_of(model), score=_elsewhere)


def about_there(crew: Crew, model: Model, job: Job) -> PairScorer:
    """The same as one of the crew finds it: the models and the GPUs are there. ``Stopped`` after a request to stop."""

    def tell(n: int) -> None:
        job.progress("loading the scorer", 0, 0, "", next_within_s=BATCH_S)

    ((_, found),) = crew.each(about, [model], should_stop=job.stop_requested, on_done=tell)
    return found


def _elsewhere(pairs: Sequence[Any]) -> NDArray[np.float64]:
    raise RuntimeError("This scorer only says what scored; pairs are scored where its model is.")


@dataclass(frozen=True)
class Items:
    """What is to be done: ``n`` items in windows of ``step``, ``stage`` in words, of one ``unit`` each (singular).

    ``of`` gives the items from one number to another, ``name`` the id of an item by its number.
    """

    stage: str
    unit: str
    n: int
    step: int
    of: Callable[[int, int], list[Any]]
    name: Callable[[int], object]


def done_here(job: Job, model: Model, items: Items, ledger: Ledger, failures: Failures) -> bool:
    """Fill the ledger in this process; False where a stop was requested first."""
    call = model.rows()
    _tell(job, items, ledger.done)
    while ledger.done < items.n:
        if job.stop_requested():
            return False
        start = ledger.done
        rows = failures.batch(
            call,
            items.of(start, start + items.step),
            lambda index, start=start: items.name(start + index),  # type: ignore[misc]
            model.text_of,
        )
        ledger.append(_filled(rows, ledger.width))
        _tell(job, items, ledger.done)
    return True


@dataclass(frozen=True)
class Part:
    """Whole windows with the names of their items. The items themselves go along: those of a window of pairs are of
    equal length and come from all over the set."""

    model: Model
    step: int
    unit: str
    stage: str
    width: int
    items: list[Any]
    names: list[str]


@dataclass(frozen=True)
class PartRows:
    """``rows`` (n_items, width) float32, NaN for what failed, and the line of each failure."""

    rows: NDArray[np.float32]
    failed: list[dict[str, Any]]


def do_part(part: Part) -> PartRows:
    """The rows of a part, window by window."""
    call = part.model.rows()
    failures = Listed(part.stage, unit=part.unit)
    rows: list[Any] = []
    for start in range(0, len(part.items), part.step):
        window = part.items[start : start + part.step]
        done = failures.batch(
            call,
            window,
            lambda index, start=start: part.names[start + index],  # type: ignore[misc]
            part.model.text_of,
        )
        rows += _filled(done, part.width)
    return PartRows(np.asarray(rows, dtype="<f4").reshape(-1, part.width), failures.lines)


def done_by(
    crew: Crew, job: Job, model: Model, items: Items, ledger: Ledger, failures: Failures, *, windows: int
) -> bool:
    """Have the crew fill the ledger, so many windows in a part; False where a stop was requested first.

    The ledger grows in order. What is done before something that comes before it waits in files beside the ledger,
    where the next attempt finds it.
    """
    size, first = items.step * windows, ledger.done
    begins = [at for at in range(first, items.n, size) if not ledger.waiting(at)]

    def parts() -> Iterator[Part]:
        for start in begins:
            batch = items.of(start, min(start + size, items.n))
            names = [str(items.name(start + index)) for index in range(len(batch))]
            yield Part(model, items.step, items.unit, items.stage, ledger.width, batch, names)

    n_done = 0

    def tell() -> None:
        _tell(job, items, min(items.n, first + n_done))

    tell()
    try:
        for number, result in crew.each(do_part, parts(), should_stop=job.stop_requested, on_done=lambda n: tell()):
            for line in result.failed:
                failures.count(line)
                failures.write(line)
            failures.done(len(result.rows) - len(result.failed))
            ledger.put(begins[number], result.rows)
            n_done += len(result.rows)
    except Stopped:
        return False
    ledger.drain()
    tell()
    return ledger.done >= items.n


def _filled(rows: Sequence[Any], width: int) -> list[Any]:
    """NaN for each item that failed."""
    nothing = math.nan if width == 1 else [math.nan] * width
    return [nothing if row is None else row for row in rows]


def _tell(job: Job, items: Items, done: int) -> None:
    job.progress(items.stage, done, items.n, f"{items.unit}s", next_within_s=BATCH_S)
