"""What is compared with which control: differences with interval, p and spread over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.statistics import bootstrap_interval, has_spread, holm, t_test, two_level_test
from cdp.principle import PARAPHRASE, SCALING, WEIGHTING
from cdp.studies.config import INFONCE
from cdp.studies.plan import HYBRID, UNTRAINED, Cell, paraphrase_of
from cdp.training.reasoning import QUERY_ONLY

TRAINING = "trained_minus_untrained"
LOSS = "loss_minus_infonce"
REASONED = "reasoned_minus_query"

TITLES = {
    TRAINING: "Trained minus untrained",
    SCALING: "More queries per document minus one",
    PARAPHRASE: "Diverse minus paraphrase",
    WEIGHTING: "CW-weighted minus equal weights",
    LOSS: "Another loss minus InfoNCE",
    REASONED: "Reasoned forms minus the queries",
}

SIGNIFICANT = 0.05

# Seed → NDCG@10 in percent of each query of a benchmark, shape (n_queries,), always in the same order.
BySeed = Mapping[int, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Gain:
    """The difference between a condition and its control on one benchmark, in NDCG@10 points, mean over the seeds.

    ``low`` and ``high`` bound it (95%) and ``p`` tests it by the variance over queries and over seeds together
    (``statistics.two_level_test``); with one seed, or seeds without any spread, by the queries alone, which know
    nothing of training noise. ``p_holm`` is corrected over the benchmarks of the comparison. ``seed_sd`` is the
    standard deviation over seeds (None without a spread) and ``seeds_agree`` whether all have its sign; ``by_seed`` are
    the differences of the single seeds.
    """

    comparison: str
    cell: Cell
    benchmark: str
    cw: float
    points: float
    low: float
    high: float
    p: float
    p_holm: float
    n_queries: int
    n_seeds: int
    seed_sd: float | None
    seeds_agree: bool
    by_seed: tuple[float, ...] = ()

    @property
    def significant(self) -> bool:
        """More than chance over the queries and the seeds, on all seeds in the same direction."""
        return self.p_holm < SIGNIFICANT and self.seeds_agree

    @property
    def condition(self) -> str:
        """What besides Q/Doc the condition is, in words."""
        # The comparison itself says that it is of CW weighting.
        plain = self.comparison == WEIGHTING and self.cell.weighting == "cw"
        cell = self.cell._replace(weighting="none") if plain else self.cell
        return f"{cell.retriever}, {cell.source}{cell.details}"


def gains(scores: Mapping[Cell, Mapping[str, BySeed]], cw: Mapping[str, float]) -> list[Gain]:
    """Every comparison that the conditions allow. ``scores[cell][benchmark]`` as ``BySeed``; ``cw`` by benchmark.

    A condition and its control are compared on the seeds that both have; the untrained retriever has none of its own
    and is compared with every seed.
    """
    compared: list[Gain] = []
    for cell in scores:
        for comparison, control in controls(cell, scores):
            of_benchmarks = [
                _gain(comparison, cell, name, cw[name], scores[cell][name], scores[control][name])
                for name in scores[cell]
                if name in scores[control]
            ]
            family = [gain for gain in of_benchmarks if gain is not None]
            corrected = holm([gain.p for gain in family])
            compared += [replace(gain, p_holm=p) for gain, p in zip(family, corrected, strict=True)]
    order = list(TITLES)

    def shown_order(g: Gain) -> tuple[int, str, str, bool, str, str, str, int, float]:
        c = g.cell
        which = c.retriever, c.source, c.weighting != "none", c.weighting, f"{c.query_source} {c.loss}", c.held
        return order.index(g.comparison), *which, c.per_doc, g.cw

    return sorted(compared, key=shown_order)


def controls(cell: Cell, cells: Iterable[Cell]) -> list[tuple[str, Cell]]:
    """What a condition is compared with, as far as it is there."""
    if cell.source in (UNTRAINED, HYBRID):
        return []
    wanted: list[tuple[str, Cell]] = [(TRAINING, Cell(cell.retriever))]
    if cell.per_doc > 1:
        wanted.append((SCALING, cell._replace(per_doc=1, held="")))
    if control := paraphrase_of(cell.source):
        wanted.append((PARAPHRASE, cell._replace(source=control)))
    if cell.weighting != "none":
        wanted.append((WEIGHTING, cell._replace(weighting="none")))
    if cell.loss != INFONCE:
        wanted.append((LOSS, cell._replace(loss=INFONCE)))
    if cell.query_source != QUERY_ONLY:
        wanted.append((REASONED, cell._replace(query_source=QUERY_ONLY)))
    present = set(cells)
    return [(comparison, control) for comparison, control in wanted if control in present]


def _gain(comparison: str, cell: Cell, benchmark: str, cw: float, scores: BySeed, control: BySeed) -> Gain | None:
    if comparison == TRAINING:
        (before,) = control.values()
        differences = [values - before for values in scores.values()]
    else:
        differences = [scores[seed] - control[seed] for seed in scores if seed in control]
    if not differences:
        return None
    per_query = np.mean(differences, axis=0)
    by_seed = [float(values.mean()) for values in differences]
    points = float(per_query.mean())
    spread = has_spread(by_seed)
    if spread and len(per_query) > 1:
        tested = two_level_test(differences)
        low, high, p = tested.low, tested.high, tested.p
    else:
        low, high = bootstrap_interval(per_query)
        p = 1.0 if len(per_query) < 2 else t_test(per_query) or 0.0
    return Gain(
        comparison=comparison,
        cell=cell,
        benchmark=benchmark,
        cw=cw,
        points=points,
        low=low,
        high=high,
        p=p,
        p_holm=p,
        n_queries=len(per_query),
        n_seeds=len(by_seed),
        seed_sd=float(np.std(by_seed, ddof=1)) if spread else None,
        seeds_agree=all(value * points > 0 for value in by_seed),
        by_seed=tuple(by_seed),
    )


def read_scores(
    records: Iterable[Mapping[str, Any]], name_of: Mapping[str, str]
) -> tuple[dict[Cell, dict[str, dict[int, NDArray[np.float64]]]], dict[Cell, list[Mapping[str, Any]]]]:
    """Finished records as (scores by cell, benchmark and seed; the records of each cell). ``name_of`` maps the key
    of a record's evaluation to the benchmark's name. Queries are put into one order by their ids."""
    scores: dict[Cell, dict[str, dict[int, NDArray[np.float64]]]] = {}
    behind: dict[Cell, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.get("failure"):
            continue
        about = record["condition"]
        if about is None:
            cell, seed = Cell(str(record["retriever"]), HYBRID if record.get("hybrid") else UNTRAINED), 0
        else:
            cell, seed = Cell(**{name: about[name] for name in Cell._fields if name in about}), int(about["seed"])
        for key, name in name_of.items():
            evaluation = record["evaluations"].get(key)
            if evaluation is not None:
                order = np.argsort(np.asarray(evaluation["query_ids"]), kind="stable")
                values = 100 * np.asarray(evaluation["ndcg@10"], dtype=np.float64)[order]
                scores.setdefault(cell, {}).setdefault(name, {})[seed] = values
        behind.setdefault(cell, []).append(record)
    return scores, behind
