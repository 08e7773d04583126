"""Does a prediction for a new dataset hold? Asked of the published datasets that the line never saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdp.principle.correlation import fit_of_means
from cdp.principle.differences import ALL, SCALING, differences
from cdp.principle.kinds import kinds_of_datasets
from cdp.principle.scope import evidence_range
from cdp.principle.similar import most_similar, outlook

PER_DOCS = (2, 5, 10, 20)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A gain that was predicted, and the 95% interval of a new dataset; ``holds`` is whether the measured one is in."""

    points: float
    low: float
    high: float
    holds: bool


@dataclass(frozen=True, slots=True)
class DatasetCheck:
    """One published dataset at one Q/Doc: the measured gain (mean over retrievers), what the line through the four
    multi-hop datasets predicts, and what the five datasets most like it predict when it is left out.

    ``in_range`` is whether its CW lies within the line's evidence: elsewhere the line is not asked for advice.
    """

    dataset: str
    kind: str
    cw: float
    per_doc: int
    measured: float
    line: Prediction
    similar: Prediction
    in_range: bool


@dataclass(frozen=True, slots=True)
class HeldCount:
    """How many of ``n`` predictions held."""

    held: int
    n: int

    @property
    def share(self) -> float:
        return self.held / self.n if self.n else float("nan")


def checks(per_doc: int) -> tuple[DatasetCheck, ...]:
    """The 27 published datasets that the line never saw, by CW."""
    measured: dict[str, list[float]] = {}
    cw = {}
    for d in differences(ALL):
        if d.per_doc == per_doc:
            measured.setdefault(d.dataset, []).append(d.points)
            cw[d.dataset] = d.cw
    of_line = [d for d in differences() if (d.comparison, d.per_doc) == (SCALING, per_doc)]
    fit = fit_of_means(of_line)
    fitted = {d.dataset for d in of_line}
    kinds = kinds_of_datasets()
    low, high = evidence_range()
    checked = []
    for name in sorted(cw, key=lambda name: cw[name]):
        if name in fitted:
            continue
        gain = float(np.mean(measured[name]))
        line_low, line_high = map(float, fit.prediction_interval(cw[name]))
        like = next(o for o in outlook(most_similar(cw[name], kinds[name], leave_out=[name])) if o.per_doc == per_doc)
        checked.append(
            DatasetCheck(
                dataset=name,
                kind=kinds[name],
                cw=cw[name],
                per_doc=per_doc,
                measured=gain,
                line=Prediction(float(fit.at(cw[name])), line_low, line_high, line_low <= gain <= line_high),
                similar=Prediction(like.points, like.low, like.high, like.low <= gain <= like.high),
                in_range=low <= cw[name] <= high,
            )
        )
    return tuple(checked)


def held(checked: Sequence[DatasetCheck]) -> dict[str, HeldCount]:
    """How often each prediction held: the line's within its CW range and beyond, and that of similar datasets."""
    inside = [c.line.holds for c in checked if c.in_range]
    beyond = [c.line.holds for c in checked if not c.in_range]
    similar = [c.similar.holds for c in checked]
    return {
        "line, within its CW": HeldCount(sum(inside), len(inside)),
        "line, beyond its CW": HeldCount(sum(beyond), len(beyond)),
        "similar datasets": HeldCount(sum(similar), len(similar)),
    }
