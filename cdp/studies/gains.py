"""What is compared with which control: differences with interval, p and spread over the seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.condition import HYBRID, INFONCE, QUERY_ONLY, UNTRAINED, UNWEIGHTED, Condition
from cdp.base.errors import InputError
from cdp.base.statistics import (
    FEWEST_CLUSTERS,
    Coefficient,
    Floats,
    cluster_regression,
    holm,
    paired_test,
    seed_spread,
    two_level_test,
)
from cdp.principle import PARAPHRASE, SCALING, WEIGHTING

TRAINING = "trained_minus_untrained"
LOSS = "loss_minus_infonce"
REASONED = "reasoned_minus_query"
WEIGHED = "weighted_minus_equal"
CW_BESIDE_RI = "ri_cw_minus_ri"

TITLES = {
    TRAINING: "Trained minus untrained",
    SCALING: "More queries per document minus one",
    PARAPHRASE: "Diverse minus paraphrase",
    WEIGHTING: "CW-weighted minus equal weights",
    WEIGHED: "Otherwise weighted minus equal weights",
    CW_BESIDE_RI: "RI × CW minus RI",
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
    nothing of training noise. Queries that share a relevant document are one of ``n_clusters``. ``p_holm`` is
    corrected over the benchmarks of the comparison. Where Decide states the difference too, its figures stand here
    (``stated``): corrected by people's labels, and the interval holds together with all others. ``seed_sd`` is the
    standard deviation over seeds (None without a spread) and ``seeds_agree`` whether all have its sign; ``by_seed`` are
    the differences of the single seeds.
    """

    comparison: str
    condition: Condition
    benchmark: str
    cw: float
    points: float
    low: float
    high: float
    p: float
    p_holm: float
    n_queries: int
    n_clusters: int
    n_seeds: int
    seed_sd: float | None
    seeds_agree: bool
    by_seed: tuple[float, ...] = ()
    stated: bool = False

    @property
    def significant(self) -> bool:
        """True for a difference beyond chance over ten or more clusters and the seeds, with one sign on all seeds."""
        shown = self.p_holm < SIGNIFICANT
        if self.stated:
            shown = self.low > 0 or self.high < 0

        return shown and self.seeds_agree and self.n_clusters >= FEWEST_CLUSTERS

    @property
    def way(self) -> str:
        """What the condition is besides Q/Doc: ``minilm · diverse · cw``."""
        return self.condition._replace(per_doc=0).name


def gains(
    scores: Mapping[Condition, Mapping[str, BySeed]],
    cw: Mapping[str, float],
    units: Mapping[str, Sequence[int]] | None = None,
) -> list[Gain]:
    """Every comparison that the conditions allow. ``cw`` is by benchmark, and ``units``, the cluster of each query, of
    those where queries share documents.

    A condition and its control are compared on the seeds that both have; the untrained retriever has none of its own
    and is compared with every seed.
    """
    compared: list[Gain] = []
    clusters = units or {}
    for condition, by_benchmark in scores.items():
        for comparison, control in controls(condition, scores):
            family: list[Gain] = []
            for name, by_seed in by_benchmark.items():
                against = scores[control].get(name)
                if against is None:
                    continue
                gain = _gain(comparison, condition, name, cw[name], by_seed, against, clusters.get(name, ()))
                if gain is not None:
                    family.append(gain)

            corrected = holm([gain.p for gain in family])
            for gain, p in zip(family, corrected, strict=True):
                compared.append(replace(gain, p_holm=p))

    order = list(TITLES)

    def shown_order(g: Gain) -> tuple[int, str, str, bool, str, str, str, int, float]:
        c = g.condition
        which = c.retriever, c.source, c.weighting != UNWEIGHTED, c.weighting, f"{c.query_source} {c.loss}", c.held
        return order.index(g.comparison), *which, c.per_doc, g.cw

    return sorted(compared, key=shown_order)


def controls(condition: Condition, among: Iterable[Condition]) -> list[tuple[str, Condition]]:
    """The controls of a condition that the study has."""
    if condition.source in (UNTRAINED, HYBRID) or condition.fused:
        return []

    name = condition.weighting.partition("@")[0]
    wanted = [
        (TRAINING, Condition(condition.retriever)),
        (SCALING, condition.single),
        (PARAPHRASE, condition.paraphrased),
        (WEIGHTING if name == "cw" else WEIGHED, condition.equally_weighted),
    ]
    if name == "ri-cw":
        wanted.append((CW_BESIDE_RI, condition._replace(weighting="ri")))

    if condition.loss != INFONCE:
        wanted.append((LOSS, condition._replace(loss=INFONCE)))
    if condition.query_source != QUERY_ONLY:
        wanted.append((REASONED, condition._replace(query_source=QUERY_ONLY)))

    present = set(among)
    return [(comparison, control) for comparison, control in wanted if control in present]


def _gain(
    comparison: str,
    condition: Condition,
    benchmark: str,
    cw: float,
    scores: BySeed,
    control: BySeed,
    clusters: Sequence[int],
) -> Gain | None:
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
    seed_sd = seed_spread(by_seed)
    alone = paired_test(per_query, clusters)
    low, high, p = alone.low, alone.high, alone.p_t
    if p is None:
        p = 1.0

    if seed_sd and len(per_query) > 1:
        tested = two_level_test(differences, clusters=clusters)
        low, high, p = tested.low, tested.high, tested.p

    return Gain(
        comparison=comparison,
        condition=condition,
        benchmark=benchmark,
        cw=cw,
        points=points,
        low=low,
        high=high,
        p=p,
        p_holm=p,
        n_queries=len(per_query),
        n_clusters=alone.n_clusters,
        n_seeds=len(by_seed),
        seed_sd=seed_sd,
        seeds_agree=all(value * points > 0 for value in by_seed),
        by_seed=tuple(by_seed),
    )


def read_scores(
    records: Iterable[Mapping[str, Any]], name_of: Mapping[str, str]
) -> tuple[dict[Condition, dict[str, dict[int, NDArray[np.float64]]]], dict[Condition, list[Mapping[str, Any]]]]:
    """Finished records as (scores by condition, benchmark and seed; records by condition). ``name_of`` maps the key of
    a record's evaluation to the benchmark's name. Queries are put into one order by their ids.

    Of a retriever's trainings only the best on dev is fused with BM25.
    """
    scores: dict[Condition, dict[str, dict[int, NDArray[np.float64]]]] = {}
    behind: dict[Condition, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.get("failure"):
            continue

        condition, seed = _condition_of(record)
        found = [(condition, record)]
        if fused := record.get("fused"):
            found.append((condition._replace(fused=True), {**record, "evaluations": fused["evaluations"]}))

        for of, scored in found:
            behind.setdefault(of, []).append(scored)
            for key, name in name_of.items():
                evaluation = scored["evaluations"].get(key)
                if evaluation is not None:
                    scores.setdefault(of, {}).setdefault(name, {})[seed] = _ordered(evaluation)

    best = best_fused(behind)
    for condition in list(behind):
        if condition.fused and condition.per_doc and condition not in best:
            scores.pop(condition, None)
            del behind[condition]

    return scores, behind


def _condition_of(record: Mapping[str, Any]) -> tuple[Condition, int]:
    """(what a record is of, its seed); 0 is the seed of what is not trained."""
    about = record["condition"]
    if about is None and record.get("hybrid"):
        return Condition(str(record["retriever"]), HYBRID), 0
    if about is None:
        return Condition(str(record["retriever"])), 0

    return Condition.of(about), int(about["seed"])


def _ordered(evaluation: Mapping[str, Any]) -> NDArray[np.float64]:
    """NDCG@10 in percent of each query, in the order of their ids."""
    order = np.argsort(np.asarray(evaluation["query_ids"]), kind="stable")
    return 100 * np.asarray(evaluation["ndcg@10"], dtype=np.float64)[order]


def best_fused(behind: Mapping[Condition, Iterable[Mapping[str, Any]]]) -> set[Condition]:
    """Return the fused condition of each retriever's training with the best NDCG@10 on dev, mean over the seeds. Of
    each record behind a condition its ``training`` is read."""
    on_dev: dict[str, dict[Condition, float]] = defaultdict(dict)
    for condition, records in behind.items():
        if not condition.fused or not condition.per_doc:
            continue

        best = []
        for record in records:
            curve = (record.get("training") or {}).get("evaluations") or []
            best.append(max((float(e["ndcg@10"]) for e in curve), default=0.0))
        on_dev[condition.retriever][condition] = float(np.mean(best))

    return {max(scores, key=scores.__getitem__) for scores in on_dev.values()}


# Gains of one study or several in one regression: how large they are, and whether they grow with CW.
#
# An observation is the gain of a condition on a benchmark, weighted by how well it is known (Hedges, Tipton & Johnson
# 2010, Res. Synth. Methods 1, 39–65). Errors are robust for two crossed kinds of clusters: benchmarks of one family,
# which share documents and queries, and all that was trained on one corpus. What seeds do to all datasets at once is
# added.

MEAN = "mean gain"

# Facts of a benchmark's queries that may explain a gain.
COVARIATES = {"cw": "content words", "words": "words of a query", "overlap": "words shared with the relevant documents"}


@dataclass(frozen=True, slots=True)
class Observation:
    """The gain of a condition on a benchmark (points) with its variance. ``by_seed`` the gains of the single seeds,
    ``covariates`` numbers by name; ``family`` is what was judged, ``corpus`` what was trained on: observations of one
    family, and of one corpus, are not independent."""

    study: str
    family: str
    benchmark: str
    points: float
    variance: float
    by_seed: tuple[float, ...]
    covariates: Mapping[str, float]
    corpus: str = ""


_FACTS = attrgetter("family", "benchmark", "points", "variance")


@dataclass(frozen=True, slots=True)
class Pooled:
    """A regression. ``terms`` are its coefficients, the mean gain (at the mean of the covariates) among them.

    ``n`` observations in ``n_families`` judged families; ``between`` is the standard deviation between datasets beyond
    chance. ``problem`` says why there is no regression."""

    title: str
    terms: tuple[Coefficient, ...] = ()
    n: int = 0
    n_datasets: int = 0
    n_families: int = 0
    between: float | None = None
    problem: str = ""

    def term(self, name: str) -> Coefficient | None:
        return next((term for term in self.terms if term.name == name), None)


def over_datasets(title: str, observations: Sequence[Observation], names: Sequence[str] = ()) -> Pooled:
    """The mean gain, and its slopes on the covariates ``names``. A covariate that is not known for an observation takes
    the observation out."""
    known = list(observations)
    for name in names:
        known = [o for o in known if np.isfinite(o.covariates.get(name, np.nan))]
    if not known:
        return Pooled(title, problem="there is no observation.")

    families, benchmarks, points, spreads = zip(*map(_FACTS, known), strict=True)
    n_datasets = len(set(benchmarks))
    pooled = Pooled(title, n=len(known), n_datasets=n_datasets, n_families=len(set(families)))

    y, variances = np.array(points), np.array(spreads)
    columns: dict[str, Floats] = {}
    for name in names:
        values = np.array([o.covariates[name] for o in known])
        if np.ptp(values) > 1e-9:
            columns[name] = values

    between = _between(y, variances, families, columns)
    weights = _weights(variances, families, between)
    centred = {name: values - np.average(values, weights=weights) for name, values in columns.items()}

    try:
        terms = cluster_regression(
            y, {MEAN: np.ones(len(y)), **centred}, families, weights,
            extra={MEAN: _of_seeds(known, weights)}, crossed=[o.corpus for o in known],
        )  # fmt: skip
    except InputError as error:
        return replace(pooled, problem=error.message)

    return replace(pooled, terms=tuple(terms), between=between)


def _weights(variances: Floats, families: Sequence[str], between: float) -> Floats:
    """How much each observation counts: by its family's mean variance, in equal parts among its members."""
    by_family: dict[str, list[float]] = defaultdict(list)
    for family, variance in zip(families, variances, strict=True):
        by_family[family].append(variance)

    each = {family: 1 / (len(members) * (np.mean(members) + between**2)) for family, members in by_family.items()}
    return np.array([each[family] for family in families])


def _between(y: Floats, variances: Floats, families: Sequence[str], columns: Mapping[str, Floats]) -> float:
    """The standard deviation between datasets beyond chance: by the moments of the residuals."""
    x = np.column_stack([np.ones(len(y)), *columns.values()])
    if len(set(families)) <= x.shape[1]:
        return 0.0
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    excess = float(residual @ residual) / max(1, len(y) - x.shape[1]) - float(variances.mean())
    return max(0.0, excess) ** 0.5


def _of_seeds(known: Sequence[Observation], weights: Floats) -> tuple[float, float]:
    """(variance of the mean gain by what a seed does to all datasets at once, its degrees of freedom).

    Conditions of a study share their seeds: the mean over them is taken per seed. It errs on the wide side, for what
    seeds do to single datasets is in it too.
    """
    by_study: dict[str, list[tuple[tuple[float, ...], float]]] = defaultdict(list)
    for o, weight in zip(known, weights, strict=True):
        by_study[o.study].append((o.by_seed, float(weight)))

    total, variance, degrees = float(weights.sum()), 0.0, 0.0
    for members in by_study.values():
        by_seed, own = zip(*members, strict=True)
        seeds = min(map(len, by_seed))
        if seeds < 2:
            continue

        share = sum(own) / total
        means = np.average([values[:seeds] for values in by_seed], axis=0, weights=own)
        part = share**2 * float(means.var(ddof=1)) / seeds
        variance += part
        degrees += part**2 / (seeds - 1)

    if degrees <= 0:
        return 0.0, 1.0
    return variance, variance**2 / degrees
