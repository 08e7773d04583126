"""What a study takes before it starts: trainings, pairs, texts, LLM requests, time, price; speeds; what it cannot tell.

Time comes from earlier runs of the same retrievers on this machine, else from a measurement of the embedded one
elsewhere, or the guess for a small transformer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from cdp.base.config import TrainingConfig
from cdp.llm.prices import dollars
from cdp.studies.config import StudyConfig
from cdp.studies.plan import Condition, StudySource, conditions, evaluated_on, pairs_of, steps_of
from cdp.training.plan import DEFAULT_SPEEDS, EVALUATIONS, STARTING_S, Speed

# A guess for a small transformer that has not run here.
SLOW = Speed(60.0, 60.0)


def speed_of(retriever: str, measured: Mapping[str, Speed]) -> Speed:
    """Return a retriever's speed as ``measured`` here, else a guess."""
    return measured.get(retriever) or DEFAULT_SPEEDS.get(retriever, SLOW)


# Where so many queries have no content word, the language is probably another one.
DOUBTFUL = 0.5

# What a design leaves mixed with Q/Doc.
CONFOUNDS = {
    "equal documents": "Equal documents and steps: at fewer queries per document each pair is seen more often, and "
    "there are fewer different ones. equal pairs holds their number fixed.",
    "equal pairs": "Equal pairs and steps: more queries per document come from fewer documents, so a loss may come "
    "from these. equal documents holds them fixed.",
    "documents and pairs": "Equal documents and equal pairs, side by side, at equal steps: a gain at equal documents "
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


@dataclass(frozen=True)
class StudyPlan:
    """What a study would run. ``seconds`` is a guess where not all retrievers were ``measured`` here.
    ``notes`` say what is worth knowing before the start. ``pairs`` are by condition, ``steps`` by retriever: all of its
    trainings take as many."""

    config: StudyConfig
    sources: tuple[StudySource, ...]
    conditions: tuple[Condition, ...]
    benchmarks: tuple[Mapping[str, Any], ...]
    pairs: Mapping[str, int]
    generations: tuple[PlannedGeneration, ...]
    seconds: float
    measured: bool
    steps: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """How many requests the missing queries take."""
        return sum(generation.requests for generation in self.generations)

    @property
    def cost(self) -> float | None:
        """What they cost in US dollars; None where a price is not known."""
        costs = [generation.cost for generation in self.generations]
        return None if None in costs else sum(cost or 0.0 for cost in costs)

    @property
    def price(self) -> str:
        """``free``, ``$1.20`` or ``not known``."""
        return "free" if not self.requests else "not known" if self.cost is None else dollars(self.cost)

    def to_dict(self) -> dict[str, Any]:
        plain = ("seconds", "measured", "pairs", "steps", "benchmarks", "notes")
        return {
            "name": self.config.name,
            "trainings": len(self.conditions),
            "evaluations": (len(self.conditions) + len(self.config.retrievers)) * len(self.benchmarks),
            **{name: getattr(self, name) for name in plain},
            "sources": [asdict(s) for s in self.sources],
            "generations": [asdict(g) for g in self.generations],
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
    pairs = {str(c): pairs_of(c, by_label[c.cell.source]) for c in planned}
    steps = (
        {name: steps_of(config, sources, of_retriever) for name, of_retriever in settings.items()} if planned else {}
    )
    texts = sum(map(_texts, benchmarks))
    names = config.retrievers
    seconds = STARTING_S + sum(speed_of(name, speeds).encoding_seconds(texts) for name in names)
    for condition in planned:
        speed = speed_of(condition.cell.retriever, speeds)
        judged = evaluated_on(config, by_label[condition.cell.source], [str(b.get("language", "")) for b in benchmarks])
        encoded = sum(_texts(b) for b, there in zip(benchmarks, judged, strict=True) if there)
        batch = min(settings[condition.cell.retriever].loop.batch_size or 1, pairs[str(condition)])
        seconds += speed.training_seconds(steps[condition.cell.retriever] * batch)
        seconds += speed.encoding_seconds(encoded + EVALUATIONS * dev_texts)
    plan = StudyPlan(
        config=config,
        sources=tuple(sources),
        conditions=tuple(planned),
        benchmarks=tuple(benchmarks),
        pairs=pairs,
        steps=steps,
        generations=tuple(generations),
        seconds=seconds,
        measured=all(name in speeds for name in names),
    )
    return replace(plan, notes=tuple(_notes(plan)))


def _texts(benchmark: Mapping[str, Any]) -> int:
    return int(benchmark["n_queries"]) + int(benchmark["n_documents"])


def measured_speeds(records: Iterable[Mapping[str, Any]]) -> dict[str, Speed]:
    """How fast each retriever was in a study, from the medians over its conditions."""
    pairs: dict[str, list[float]] = {}
    texts: dict[str, list[float]] = {}
    for record in records:
        if record.get("failure") or not record.get("training"):
            continue
        evaluations = record["evaluations"].values()
        if not all("seconds" in e and "n_texts" in e for e in evaluations):
            continue
        name, training = str(record["retriever"]), record["training"]
        epochs = (record.get("settings") or {}).get("epochs") or 1
        pairs_seen = training.get("pairs_seen") or epochs * training["pairs"]
        took = [sum(e["seconds"].values()) for e in evaluations]
        n = sum(e["n_texts"] - _reused(e.get("counts", {})) for e in evaluations)
        # Records hold whole milliseconds, of which a tiny study may take none.
        pairs.setdefault(name, []).append(pairs_seen / max(training["seconds"], 0.001))
        texts.setdefault(name, []).append(n / max(sum(took), 0.001))
    return {name: Speed(median(pairs[name]), median(texts[name])) for name in pairs}


def _reused(counts: Mapping[str, Any]) -> int:
    """Return how many texts of an evaluation were not encoded: their vectors were there."""
    return int(counts.get("embeddings_reused", 0)) + int(counts.get("query_embeddings_reused", 0))


def _notes(plan: StudyPlan) -> Iterator[str]:
    """What is worth knowing before the start."""
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
