"""What a study takes before it starts: trainings, pairs, texts, LLM requests, time, price; speeds; what it cannot tell.

Time comes from earlier runs of the same retrievers on this machine, else from a measurement of the embedded one
elsewhere, or the guess for a small transformer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from operator import attrgetter
from statistics import median
from typing import Any

from cdp.base.condition import EQUAL_DOCUMENTS, EQUAL_PAIRS, UNTRAINED
from cdp.base.config import TrainingConfig
from cdp.llm.prices import dollars
from cdp.retrievers import bm25
from cdp.studies.config import BOTH, DOUBTFUL, StudyConfig
from cdp.studies.plan import (
    PlannedTraining,
    StudySource,
    conditions,
    evaluated_on,
    loop_of,
    pairs_of,
    steps_of,
    untrained,
)
from cdp.training.plan import DEFAULT_SPEEDS, EVALUATIONS, STARTING_S, Speed

# A guess for a small transformer that has not run here.
SLOW = Speed(25.0, 60.0)


def speed_key(retriever: str, layers: int | None) -> str:
    """Return the name under which the speed of a training is kept: ``minilm``, ``minilm/2`` with two trained layers."""
    return f"{retriever}/{layers}" if layers else retriever


def of_speed_key(key: str) -> tuple[str, int | None]:
    """Return the retriever and the trained layers of a ``speed_key``; a retriever's own name may hold a slash."""
    name, _, layers = key.rpartition("/")
    return (name, int(layers)) if name and layers.isdecimal() else (key, None)


def untrained_kind(retriever: str) -> str:
    """The kind of work that evaluating a retriever untrained is."""
    return f"{UNTRAINED} {retriever}"


def speed_of(key: str, measured: Mapping[str, Speed]) -> Speed:
    """Return the speed of ``speed_key`` as ``measured`` here, else a guess."""
    if key in measured:
        return measured[key]

    name, layers = of_speed_key(key)
    whole = DEFAULT_SPEEDS.get(name, SLOW)
    if not layers:
        return whole

    # What two of six layers were measured to bring.
    return Speed(3 * whole.pairs_per_second, 4 * whole.texts_per_second)


# What a design leaves mixed with Q/Doc.
CONFOUNDS = {
    EQUAL_DOCUMENTS: "Equal documents and steps: at fewer queries per document each pair is seen more often, and "
    "there are fewer different ones. equal pairs holds their number fixed.",
    EQUAL_PAIRS: "Equal pairs and steps: more queries per document come from fewer documents, so a loss may come "
    "from these. equal documents holds them fixed.",
    BOTH: "Equal documents and equal pairs, side by side, at equal steps: a gain at equal documents "
    "alone may come from more pairs; one at equal pairs too comes from the queries.",
}


def limits_of_design(config: StudyConfig, sources: Sequence[StudySource]) -> list[str]:
    """What a study cannot tell by its design: said before the start, and in the report."""
    sentences = [CONFOUNDS[config.held_equal]]

    if len(config.seeds) == 1:
        sentences.append(
            "With one seed the spread between trainings is unknown: a significant difference over the queries may "
            "still be luck of one training."
        )

    most = max(config.per_doc)
    for source in sources:
        reached = source.n_with(most)
        if source.counts and reached < source.n_documents and config.budget is None:
            sentences.append(
                f"{source.label}: only {reached:,} of {source.n_documents:,} documents have {most} queries, so Q/Doc "
                f"{most} is {source.pairs(most) / max(1, source.n_documents):.1f} per document on average."
            )

        if source.kind == "human":
            sentences.append(
                f"{source.label}: human queries were not written to differ by format; the published rule is about "
                "queries that were."
            )

    return sentences


@dataclass(frozen=True, slots=True)
class PlannedGeneration:
    """Queries that a study has to have written first. ``cost`` in US dollars: 0 without an LLM, None for a model that
    the price table lacks."""

    method: str
    generator: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


def sum_if_known(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None where one is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost

    return total


def price_text(cost: float | None, *, free: bool) -> str:
    """Return ``free``, ``$1.20`` or ``not known``."""
    if cost is None:
        return "not known"
    return "free" if free else dollars(cost)


@dataclass(frozen=True)
class StudyPlan:
    """What a study would run. ``seconds`` is a guess where not all retrievers were ``measured`` here.
    ``notes`` say what is worth knowing before the start. ``pairs`` are by condition, ``steps`` by retriever: all of its
    trainings take as many. ``work`` has the seconds of each retriever's trainings, and of evaluating it untrained
    (``untrained_kind``); where the study chooses among the retrievers, ``seconds`` has the trainings of the slowest."""

    config: StudyConfig
    sources: tuple[StudySource, ...]
    conditions: tuple[PlannedTraining, ...]
    benchmarks: tuple[Mapping[str, Any], ...]
    pairs: Mapping[str, int]
    generations: tuple[PlannedGeneration, ...]
    seconds: float
    measured: bool
    steps: Mapping[str, int]
    notes: tuple[str, ...] = ()
    work: Mapping[str, float] = field(default_factory=dict)
    speed_keys: tuple[str, ...] = ()

    @property
    def trainings(self) -> int:
        """How many trainings will be run: where the study chooses, those of one retriever."""
        if not self.config.choose:
            return len(self.conditions)
        return len(self.conditions) // len(self.config.retrievers)

    @property
    def of_baselines(self) -> dict[str, float]:
        """The seconds of each kind of work that is no training."""
        return {kind: took for kind, took in self.work.items() if kind not in self.config.retrievers}

    @property
    def fixed(self) -> float:
        """The seconds of the start and of what is not trained."""
        return STARTING_S + sum(self.of_baselines.values())

    @property
    def promise(self) -> dict[str, Any]:
        """What a study's job is told of the time, for ``Remaining``."""
        return {"seconds": round(self.seconds, 1), "work": dict(self.work)}

    @property
    def requests(self) -> int:
        """How many requests the missing queries take."""
        return sum(map(attrgetter("requests"), self.generations))

    @property
    def cost(self) -> float | None:
        """What they cost in US dollars; None where a price is not known."""
        return sum_if_known(map(attrgetter("cost"), self.generations))

    @property
    def price(self) -> str:
        return price_text(self.cost, free=not self.requests)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.config.name,
            "trainings": self.trainings,
            "evaluations": (self.trainings + len(untrained(self.config))) * len(self.benchmarks),
            "seconds": self.seconds,
            "measured": self.measured,
            "pairs": self.pairs,
            "steps": self.steps,
            "benchmarks": self.benchmarks,
            "notes": self.notes,
            "sources": list(map(asdict, self.sources)),
            "generations": list(map(asdict, self.generations)),
            "config": self.config.recorded(),
        }


def estimate(
    config: StudyConfig,
    sources: Sequence[StudySource],
    benchmarks: Sequence[Mapping[str, Any]],
    *,
    settings: Mapping[str, TrainingConfig],
    speeds: Mapping[str, Speed],
    generations: Sequence[PlannedGeneration] = (),
    dev_texts: int = 0,
) -> StudyPlan:
    """The plan with its cost. ``benchmarks`` have ``name``, ``split``, ``n_queries``, ``n_documents`` and ``cw``;
    ``settings`` are each retriever's complete ones, ``dev_texts`` the queries and documents of the dev benchmark.
    ``speeds`` were measured here."""
    planned = conditions(config, sources)
    by_label = {source.label: source for source in sources}
    pairs = {str(c): pairs_of(c, by_label[c.condition.source]) for c in planned}
    steps: dict[str, int] = {}
    if planned:
        steps = {name: steps_of(config, sources, of_retriever) for name, of_retriever in settings.items()}

    keys: dict[PlannedTraining, str] = {}
    for c in planned:
        loop = loop_of(config, c.condition.retriever, c.condition.layers)
        keys[c] = speed_key(c.condition.retriever, loop.trained_layers)

    texts = sum(int(b["n_queries"]) + int(b["n_documents"]) for b in benchmarks)
    if config.choose or config.fusion:
        texts += dev_texts

    alone = {condition.retriever for condition in untrained(config)} - {bm25.NAME}
    work = {untrained_kind(name): speed_of(name, speeds).encoding_seconds(texts) for name in alone}
    fixed = STARTING_S + sum(work.values())

    # What the frozen layers give is computed once for all trainings.
    once = max(pairs.values(), default=0) + sum(map(attrgetter("n_documents"), sources)) + dev_texts + texts
    for c, key in keys.items():
        if key != c.condition.retriever:
            work[c.condition.retriever] = speed_of(c.condition.retriever, speeds).encoding_seconds(once)

    for c in planned:
        name = c.condition.retriever
        speed = speed_of(keys[c], speeds)
        batch = _documents_of_a_batch(settings[name].loop.batch_size or 1, pairs[str(c)], c.condition.per_doc)
        encoded = _encoded(config, by_label[c.condition.source], benchmarks)

        took = speed.training_seconds(steps[name] * batch)
        took += speed.encoding_seconds(encoded + EVALUATIONS * dev_texts)
        work[name] = work.get(name, 0.0) + took

    of_trainings = [seconds for kind, seconds in work.items() if kind in config.retrievers]
    training = sum(of_trainings)
    if config.choose:
        training = max(of_trainings, default=0.0)

    used = dict.fromkeys([*keys.values(), *config.retrievers])
    plan = StudyPlan(
        config=config,
        sources=tuple(sources),
        conditions=tuple(planned),
        benchmarks=tuple(benchmarks),
        pairs=pairs,
        steps=steps,
        generations=tuple(generations),
        seconds=fixed + training,
        measured=used.keys() <= speeds.keys(),
        work=work,
        speed_keys=tuple(used),
    )

    return replace(plan, notes=tuple(_notes(plan)))


def _encoded(config: StudyConfig, source: StudySource, benchmarks: Sequence[Mapping[str, Any]]) -> int:
    """How many texts a training on a source is evaluated on."""
    judged = evaluated_on(config, source, [str(b.get("language", "")) for b in benchmarks])
    searched = {place.rpartition(":")[0] or place for place in config.dev}

    texts = 0
    for b in compress(benchmarks, judged):
        texts += int(b["n_queries"])
        # Documents that the dev split shares have the vectors of the best checkpoint already.
        if b["name"] not in searched:
            texts += int(b["n_documents"])

    return texts


def only(plan: StudyPlan, retrievers: Sequence[str]) -> StudyPlan:
    """The plan with these of the retrievers that a study may choose to train; the others are evaluated untrained."""
    others = [name for name in plan.config.retrievers if name not in retrievers]
    kept = {name: took for name, took in plan.work.items() if name in retrievers}

    return replace(
        plan,
        config=plan.config.replace(retrievers=retrievers, untrained=[*plan.config.untrained, *others]),
        conditions=tuple(c for c in plan.conditions if c.condition.retriever in retrievers),
        steps={name: n for name, n in plan.steps.items() if name in retrievers},
        work={**plan.of_baselines, **kept},
        seconds=plan.fixed + max(kept.values(), default=0.0),
    )


def _documents_of_a_batch(batch_size: int, pairs: int, per_doc: int) -> float:
    """The different documents of a batch, on average: one that stands in several pairs is encoded once."""
    batch, each = min(batch_size, pairs), max(1, per_doc)
    if not pairs:
        return 0.0
    return pairs / each * (1 - (1 - batch / pairs) ** each)


# Of a training's steps, the share after which its pace alone says how long the whole takes.
TRUSTED = 0.25

# An estimate that grows by less than this factor and so many seconds is kept: it would go up and down with the load of
# the machine.
STANDS_STILL, STANDS_STILL_S = 1.2, 5.0


class Remaining:
    """The seconds that a study has left, by kind of work: what is evaluated untrained, and each retriever's trainings.

    ``kinds`` has one entry per step; a step of a kind takes the median of those that were done, before the first of
    them what was ``promised`` (``StudyPlan.work``), corrected by the pace of the one at work. Steps that were found
    done took no time and say nothing.
    """

    def __init__(self, kinds: Sequence[str], promised: Mapping[str, float]) -> None:
        self._left = Counter(kinds)
        self._each = {kind: promised[kind] / n for kind, n in self._left.items() if kind in promised}
        self._took: dict[str, list[float]] = {}
        self._told = math.inf
        self._first: tuple[float, float] | None = None  # (share, seconds) as the step at work first told its share

    def done(self, kind: str, seconds: float | None) -> None:
        """Count a step of a kind as done; ``seconds`` is None where its result was there already."""
        self._left[kind] -= 1
        self._first = None
        if seconds is not None:
            self._took.setdefault(kind, []).append(seconds)
            self._each[kind] = median(self._took[kind])

    def seconds(self, kind: str = "", spent: float = 0.0, share: float = 0.0) -> float | None:
        """Return what is left, ``spent`` seconds into a step of ``kind`` of which a ``share`` is done; None where a
        kind was neither promised nor done."""
        each = {**self._each, **self._paced(kind, spent, share)}
        total = 0.0
        for name, n in self._left.items():
            if n and name not in each:
                return None
            total += n * each.get(name, 0.0)

        done = min(spent, each.get(kind, 0.0))
        if share:
            done = share * each.get(kind, 0.0)

        total -= done
        if total < self._told or total > STANDS_STILL * self._told + STANDS_STILL_S:
            self._told = max(0.0, total)
        return self._told

    def _paced(self, kind: str, spent: float, share: float) -> dict[str, float]:
        """What a step of the kind at work takes by its pace since it told its share first, as soon as that can be
        told; nothing where steps of the kind were done, which tell more."""
        if not share or kind in self._took:
            return {}
        if self._first is None:
            self._first = (share, spent)

        share_before, spent_before = self._first
        known = (share - share_before) / TRUSTED
        if known <= 0.1:
            return {}

        whole = (spent - spent_before) / (share - share_before)
        promised = self._each.get(kind, whole)
        return {kind: promised + min(1.0, known) * (whole - promised)}


def measured_speeds(records: Iterable[Mapping[str, Any]]) -> dict[str, Speed]:
    """How fast each retriever was in a study by ``speed_key``, from the medians over its conditions."""
    pairs: dict[str, list[float]] = {}
    texts: dict[str, list[float]] = {}
    for record in records:
        if record.get("failure") or not record.get("training"):
            continue

        evaluations = record["evaluations"].values()
        if not all("seconds" in e and "n_texts" in e for e in evaluations):
            continue

        settings, training = record.get("settings") or {}, record["training"]
        name = speed_key(str(record["retriever"]), settings.get("trained_layers"))
        epochs = settings.get("epochs") or 1
        pairs_seen = training.get("pairs_seen") or epochs * training["pairs"]
        took, n = 0.0, 0
        for e in evaluations:
            took += sum(e["seconds"].values())
            n += e["n_texts"]
            for reused in ("embeddings_reused", "query_embeddings_reused"):  # their vectors were there
                n -= int(e.get("counts", {}).get(reused, 0))

        # Records hold whole milliseconds, of which a tiny study may take none.
        pairs.setdefault(name, []).append(pairs_seen / max(training["seconds"], 0.001))
        texts.setdefault(name, []).append(n / max(took, 0.001))

    return {name: Speed(median(pairs[name]), median(texts[name])) for name in pairs}


def _notes(plan: StudyPlan) -> Iterator[str]:
    config, benchmarks = plan.config, plan.benchmarks
    for b in benchmarks:
        if b.get("empty", 0.0) >= DOUBTFUL:
            yield f"{b['name']}: {b['empty']:.0%} of the queries have no content word when counted as {b['language']}."

    yield from limits_of_design(config, plan.sources)

    if plan.generations and (config.budget is not None or config.max_documents is not None):
        seed = config.seeds[0]
        yield (
            f"Missing queries are written for documents drawn at random (seed {seed}); every training draws from these."
        )
    if 1 not in config.per_doc:
        yield "Without Q/Doc 1 there is nothing to compare more queries per document with."
