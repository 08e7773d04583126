"""From kept scores to the figure that a criterion asks for: a mean gain or its slope on content words, with its error.

Observations are differences of two conditions on a judged set. Those of judged sets that share documents or queries
hang together, and so do those of trainings on documents of one source: errors are robust for both at once
(``cdp.studies.gains``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cdp.base.condition import EQUAL_DOCUMENTS, HYBRID, UNTRAINED, Condition
from cdp.base.errors import InputError
from cdp.base.statistics import Coefficient, cluster_regression, stdtrit, two_level_test
from cdp.base.text import counted
from cdp.studies.gains import MEAN as MEAN_TERM
from cdp.studies.gains import Floats, Observation, over_datasets
from cdp.studies.report import FAMILIES_PER_COVARIATE, BenchmarkFacts
from reproduction.criteria import CORPUS, FREE, IN, METHOD, QUERIES, SLOPE, Criterion, wanted
from reproduction.kept import Kept


@dataclass(frozen=True)
class Difference:
    """What a condition scores above its control on one judged set: ``by_seed`` has a difference for each query,
    (n_queries,) in points, for each seed that both were trained with."""

    kept: Kept
    condition: Condition
    judged: BenchmarkFacts
    by_seed: Sequence[Floats]

    @property
    def seeds(self) -> tuple[float, ...]:
        return tuple(float(values.mean()) for values in self.by_seed)


@dataclass(frozen=True)
class Figure:
    """A coefficient, or the ``problem`` that there is none, and the means of the judged sets that it rests on:
    ``sets`` as (name, mean CW, points), by CW."""

    coefficient: Coefficient | None = None
    problem: str = ""
    sets: tuple[tuple[str, float, float], ...] = ()
    n_families: int = 0
    n_corpora: int = 0
    seed_sd: float | None = None
    """The median over conditions and judged sets of the standard deviation over seeds."""

    @property
    def ninety(self) -> tuple[float, float]:
        """The 90% interval: inside a margin, both one-sided tests at 5% reject what lies beyond it."""
        assert self.coefficient is not None
        reach = float(stdtrit(self.coefficient.degrees, 0.95)) * self.coefficient.error
        return self.coefficient.value - reach, self.coefficient.value + reach


def figure(criterion: Criterion, studies: Mapping[str, Kept]) -> Figure:
    """The figure of a criterion over the studies that it names, as far as they are there."""
    there = [studies[name] for name in criterion.studies if name in studies]
    found = list(_distinct(d for kept in there for d in differences(kept, criterion)))
    if not found:
        return Figure(problem="no two conditions differ as it asks for, on such judged sets")

    family_of, corpus_of = groups(there)

    points: dict[tuple[str, float], list[float]] = {}
    for d in found:
        points.setdefault((d.judged.name, d.judged.cw), []).append(float(np.mean(d.seeds)))

    spreads = [float(np.std(d.seeds, ddof=1)) for d in found if len(d.seeds) > 1]
    known: dict[str, Any] = {
        "sets": tuple((*name, float(np.mean(p))) for name, p in sorted(points.items(), key=lambda item: item[0][1])),
        "n_families": len({family_of[d.judged.name] for d in found}),
        "n_corpora": len({corpus_of[_corpus(d.kept, d.condition)] for d in found}),
        "seed_sd": float(np.median(spreads)) if spreads else None,
    }

    names = ["cw", *criterion.beside] if criterion.figure == SLOPE else list(criterion.beside)

    if criterion.over == QUERIES and criterion.figure != SLOPE:
        return _of_one_set(found, known)

    # Within the sets queries differ in every covariate: only between the sets each asks for families of its own.
    needed = FAMILIES_PER_COVARIATE * (1 if criterion.over == QUERIES else max(1, len(names)))
    if known["n_families"] < needed:
        problem = f"{counted(known['n_families'], 'judged family', 'judged families')} of the {needed} that it needs"
        return Figure(problem=problem, **known)

    if criterion.over == QUERIES:
        return _over_queries(found, names, family_of, corpus_of, known)

    pooled = over_datasets("", [_observation(d, family_of, corpus_of) for d in found], names)
    return Figure(pooled.term("cw" if names else MEAN_TERM), pooled.problem, **known)


def differences(kept: Kept, criterion: Criterion) -> Iterator[Difference]:
    """Each condition that ``of`` selects against its control, on each judged set that the criterion is about."""
    scores = kept.scores.scores
    for condition in scores:
        if not _selected(kept, condition, criterion.of):
            continue

        weights = {condition: 1.0, _control(kept, condition, criterion.against): -1.0}
        if criterion.interaction:
            weights |= {_control(kept, c, criterion.interaction): -w for c, w in tuple(weights.items())}

        for judged in kept.scores.benchmarks:
            if len(weights) < (4 if criterion.interaction else 2) or not _about(judged, condition, criterion):
                continue

            parts = {c: scores.get(c, {}).get(judged.name, {}) for c in weights}
            # The untrained retriever has no seeds of its own: it is compared with every seed.
            once = {c: p[min(p)] for c, p in parts.items() if c.source in (UNTRAINED, HYBRID) and p}
            seeds = set.intersection(*(set(p) for c, p in parts.items() if c not in once))

            by_seed = [
                np.sum([w * (once[c] if c in once else parts[c][seed]) for c, w in weights.items()], axis=0)
                for seed in sorted(seeds)
            ]
            if by_seed:
                yield Difference(kept, condition, judged, by_seed)


def _selected(kept: Kept, condition: Condition, of: Mapping[str, Any]) -> bool:
    """Whether a condition has the facts that are asked for: of those not named, what its whole study has, or else the
    defaults. A plan that trains all layers throughout compares none."""
    facts = {**_facts(kept, condition), METHOD: None, "source": None}
    asked = {**_unnamed(kept), "held": (EQUAL_DOCUMENTS,), **{name: wanted(value) for name, value in of.items()}}
    methods = asked.pop(METHOD, None)
    if condition.source in (UNTRAINED, HYBRID):
        return False
    if methods is not None and not _methods(kept, condition) & set(methods):
        return False
    return all(facts[name] in values for name, values in asked.items())


def _unnamed(kept: Kept) -> dict[str, tuple[Any, ...]]:
    """{fact: its values} of the conditions that a criterion means that does not name the fact."""
    trained = [condition for condition in kept.scores.scores if condition.source not in (UNTRAINED, HYBRID)]

    asked = {}
    for name, default in Condition._field_defaults.items():
        if name not in (*FREE, "source"):
            there = {getattr(condition, name) for condition in trained}
            asked[name] = tuple(there) if len(there) == 1 else (default,)

    return asked


def _facts(kept: Kept, condition: Condition) -> dict[str, Any]:
    return {**condition._asdict(), "held": condition.held or kept.scores.design, CORPUS: _corpus(kept, condition)}


def _methods(kept: Kept, condition: Condition) -> set[str]:
    """What a condition's queries go by: what kind they are, and the name in their label."""
    return {kept.sources[condition.source].kind, condition.method}


def _corpus(kept: Kept, condition: Condition) -> str:
    return kept.corpora.get(condition.source, condition.source)


def _control(kept: Kept, condition: Condition, against: Mapping[str, Any]) -> Condition:
    """The condition with some facts replaced; the untrained retriever where these name it."""
    changed = {name: value for name, value in against.items() if name != METHOD}
    method = against.get(METHOD)
    if method == UNTRAINED:
        return Condition(str(changed.get("retriever", condition.retriever)))
    if method is not None:
        # The same corpus and generator: what stands behind the method in the label.
        changed["source"] = str(method) + condition.source[len(condition.method) :]
    if "held" in changed:
        changed["held"] = "" if changed["held"] == kept.scores.design else changed["held"]
    control = condition._replace(**changed)
    # At one query each, equal documents are equal pairs.
    return control._replace(held="") if control.per_doc == 1 else control


def _about(judged: BenchmarkFacts, condition: Condition, criterion: Criterion) -> bool:
    in_domain = judged.in_domain or condition.source in judged.in_domain_of
    return (
        criterion.domain in ("any", IN if in_domain else "out")
        and (criterion.cw is None or criterion.cw[0] <= judged.cw < criterion.cw[1])
        and (not criterion.languages or (judged.language or "en") in criterion.languages)
        and (not criterion.judged or judged.name in criterion.judged)
    )


def _distinct(found: Iterable[Difference]) -> Iterator[Difference]:
    """Trainings that two studies share count once."""
    seen = set()
    for d in found:
        key = (d.judged.name, tuple(values.tobytes() for values in d.by_seed))
        if key not in seen:
            seen.add(key)
            yield d


def groups(studies: Sequence[Kept]) -> tuple[dict[str, str], dict[str, str]]:
    """({judged set: its family}, {training corpus: its source}) over several studies.

    A set's families in two studies are one. Corpora of which documents are in the same judged family are one, unless a
    plan calls that family in-domain for all that it trains on.
    """
    pairs = [(f"set {b.name}", f"family {b.family or b.name}") for kept in studies for b in kept.scores.benchmarks]
    family = _joined(pairs)
    links = [
        (f"corpus {kept.corpora.get(label, label)}", f"judged {family[f'set {b.name}']}")
        for kept in studies
        for b in kept.scores.benchmarks
        for label in b.in_domain_of
        if len({kept.corpora.get(s, s) for s in b.in_domain_of}) < len(set(kept.corpora.values()))
        or len(kept.corpora) == 1
    ]

    names = {kept.corpora.get(label, label) for kept in studies for label in kept.sources}
    corpus = _joined([*links, *((f"corpus {name}", f"corpus {name}") for name in names)])
    sets = {b.name for kept in studies for b in kept.scores.benchmarks}

    return {name: family[f"set {name}"] for name in sets}, {name: corpus[f"corpus {name}"] for name in names}


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """{name: the first of all names that pairs connect it with}."""
    of: dict[str, str] = {}
    for first, second in pairs:
        one, other = of.setdefault(first, first), of.setdefault(second, second)
        for name, root in of.items():
            if root == other:
                of[name] = one
    return of


def _observation(d: Difference, family_of: Mapping[str, str], corpus_of: Mapping[str, str]) -> Observation:
    tested = two_level_test(d.by_seed)
    return Observation(
        study=d.kept.scores.study,
        family=family_of[d.judged.name],
        benchmark=d.judged.name,
        points=tested.value,
        variance=max(1e-6, ((tested.high - tested.low) / (2 * 1.96)) ** 2),
        by_seed=d.seeds,
        covariates={**d.judged.facts, "cw": d.judged.cw},
        corpus=corpus_of[_corpus(d.kept, d.condition)],
    )


def _of_one_set(found: Sequence[Difference], known: Mapping[str, Any]) -> Figure:
    """The mean over the conditions on a single judged set, over its queries and seeds: it speaks of that set alone."""
    if len(known["sets"]) > 1:
        return Figure(problem="a mean over queries is of one judged set, and there are several", **known)
    tested = two_level_test([np.mean(values, axis=0) for values in zip(*(d.by_seed for d in found), strict=False)])
    return Figure(replace(tested, name=MEAN_TERM), **known)


def _over_queries(
    found: Sequence[Difference],
    names: Sequence[str],
    family_of: Mapping[str, str],
    corpus_of: Mapping[str, str],
    known: Mapping[str, Any],
) -> Figure:
    """The slope over the queries within judged sets: each set and training corpus counts the same, its mean removed."""
    members: dict[tuple[str, str], list[Difference]] = {}
    for d in found:
        members.setdefault((d.judged.name, corpus_of[_corpus(d.kept, d.condition)]), []).append(d)

    ys, xs, weights, families, corpora = [], [], [], [], []
    for (judged, corpus), group in members.items():
        y = np.mean([np.mean(d.by_seed, axis=0) for d in group], axis=0)
        of_queries = group[0].kept.of_queries(judged)
        x = np.column_stack([of_queries[name] for name in names])

        rows = np.isfinite(x).all(axis=1)
        if rows.sum() < 3:
            continue

        ys.append(y[rows] - y[rows].mean())
        xs.append(x[rows] - x[rows].mean(axis=0))
        weights.append(np.full(rows.sum(), 1 / rows.sum()))
        families += [family_of[judged]] * int(rows.sum())
        corpora += [corpus] * int(rows.sum())

    if not ys:
        return Figure(problem="the content words of its queries are not known", **known)

    columns = dict(zip(names, np.concatenate(xs).T, strict=True))

    try:
        terms = cluster_regression(np.concatenate(ys), columns, families, np.concatenate(weights), crossed=corpora)
    except InputError as error:
        return Figure(problem=error.message, **known)

    return Figure(next(term for term in terms if term.name == "cw"), **known)
