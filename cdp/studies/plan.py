"""Which conditions in which order: equal steps, documents and pairs per Q/Doc, budget, dev for a language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from cdp import query_sets
from cdp.base.condition import EQUAL_PAIRS, HYBRID, INFONCE, QUERY_ONLY, Condition
from cdp.base.config import Loop, TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.failures import Failures
from cdp.base.text import name_and_split
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import Benchmark, choose_split, describe, load_benchmark, resolve_benchmark
from cdp.retrievers import PRESETS, bm25
from cdp.studies.config import BOTH, DISTIL, NONE, StudyConfig
from cdp.training.pairs import PairSet, draw_pairs
from cdp.training.plan import order_of
from cdp.training.reasoning import with_reasoned
from cdp.training.weightings import WEIGHTINGS

# Hard negatives per query with the losses that take some: with its document, a list of eight for the teacher to rank.
MAX_NEGATIVES = 7

# Steps of a training at least. On 745 documents static-minilm's one-query arm gained 4 points from step 15 to step 87;
# where so many are too many, the dev split keeps an earlier checkpoint.
LEAST_STEPS = 90


@dataclass(frozen=True, slots=True)
class StudySource:
    """What is trained on: ``label`` names it in the report, ``kind`` is the method, or "human" for human queries.

    ``query_set`` is its id; empty while the job ``job_id`` still has to write it. ``n_documents`` and ``counts`` (how
    many documents have at least 1, 2, 3 … queries) are known for a set that is there.
    """

    label: str
    kind: str
    query_set: str = ""
    job_id: str = ""
    n_documents: int = 0
    counts: tuple[int, ...] = ()
    reasoning: str = ""
    """The query set with the reasoned forms of its queries, where RI needs them."""
    language: str = ""
    """The language of its queries; empty where the set does not say."""
    corpus: str = ""
    """The id of the corpus that its queries are of."""
    written_by: str = ""
    """Who wrote its queries, in words, as its manifest says."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The source that was written down as JSON."""
        known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        return cls(**{**known, "counts": tuple(values.get("counts", ()))})

    def n_with(self, per_doc: int) -> int:
        """How many documents have at least so many queries."""
        return self.counts[per_doc - 1] if per_doc <= len(self.counts) else 0

    def pairs(self, per_doc: int, max_documents: int | None = None) -> int:
        """Roughly how many training pairs the first ``per_doc`` queries of so many documents give."""
        total = sum(self.counts[:per_doc]) if self.counts else self.n_documents * per_doc
        if max_documents is None or not self.n_documents:
            return total
        return round(total * min(1.0, max_documents / self.n_documents))


@dataclass(frozen=True, slots=True)
class PlannedTraining:
    """One training of the study. ``max_documents`` are drawn by the seed, None for all; ``budget`` is the exact number
    of pairs where there is one, the last document giving what is left of it."""

    condition: Condition
    seed: int
    max_documents: int | None = None
    budget: int | None = None

    @property
    def needs_reasoning(self) -> bool:
        """Return True if its queries' reasoned forms are weighted by or trained on."""
        return self.condition.query_source != QUERY_ONLY or weighs_reasoning(self.condition.weighting)

    def __str__(self) -> str:
        return f"{self.condition.name}, seed {self.seed}"


def conditions(config: StudyConfig, sources: Sequence[StudySource]) -> list[PlannedTraining]:
    """Every training of the study. Those on the same pairs follow each other, so that their tokens are shared. A source
    without a document that has so many queries is left out at that Q/Doc."""
    if len({source.label for source in sources}) < len(sources):
        raise ConfigError("Two query sets of the study have the same name.", hint="Name them by their ids.")

    return [
        PlannedTraining(
            Condition(retriever, source.label, per_doc, weighting, held, peak, loss, query_source, layers),
            seed, documents, budget,
        )
        for retriever in config.retrievers
        for source in sources
        for per_doc in config.per_doc
        if config.budget is not None or not source.counts or source.n_with(per_doc)
        for documents, budget, held in _sizes(config, source, per_doc)
        for query_source in config.query_sources
        for loss in config.losses
        for weighting in config.weightings
        for peak in config.rates
        for layers in config.layers or (None,)
        for seed in config.seeds
    ]  # fmt: skip


def _sizes(config: StudyConfig, source: StudySource, per_doc: int) -> list[tuple[int | None, int | None, str]]:
    """(documents, budget, what is held) of the conditions at a Q/Doc. At one query each, equal documents are equal
    pairs."""
    sizes = [(documents_at(config, per_doc), config.budget, "")]
    if config.held_equal == BOTH and per_doc > 1 and _meets(config, source, per_doc):
        pairs = pairs_held(config, source)
        sizes.append((max(2, -(-pairs // per_doc)), pairs, EQUAL_PAIRS))
    return sizes


def pairs_held(config: StudyConfig, source: StudySource) -> int:
    """The pairs of ``BOTH``'s equal half: one of each document, as far as the set has so many."""
    documents = config.max_documents or source.n_documents
    if source.counts:
        documents = min(documents, source.n_with(1))
    return documents


def documents_at(config: StudyConfig, per_doc: int) -> int | None:
    """How many documents a Q/Doc takes: those that the budget needs, else at most ``max_documents``. None: all."""
    if config.budget is None:
        return config.max_documents
    return max(2, -(-config.budget // per_doc))


def evaluated_on(config: StudyConfig, source: StudySource, languages: Sequence[str]) -> list[bool]:
    """For each benchmark, by its language, whether what is trained on a source is evaluated on it."""
    if not config.same_language or not source.language:
        return [True] * len(languages)
    return [(language or "en") == source.language for language in languages]


def problems_of_budget(config: StudyConfig, source: StudySource) -> str:
    """Why a set cannot meet the budget at every Q/Doc, in a sentence; empty where it can, or is not there yet."""
    if not source.counts or config.budget is None:
        return ""
    for per_doc in config.per_doc:
        needed = documents_at(config, per_doc) or 0
        available = source.n_with(per_doc)
        if config.max_documents is not None:
            available = min(available, config.max_documents)
        if available < needed:
            return (
                f"{source.label}: {config.budget:,} pairs at Q/Doc {per_doc} take {needed:,} documents with {per_doc} "
                f"queries each, and there are {available:,}."
            )
    return ""


def _meets(config: StudyConfig, source: StudySource, per_doc: int) -> bool:
    """Whether enough documents have so many queries for ``BOTH``'s equal half. The documents are drawn first: of these,
    only the set's share has them."""
    pairs = pairs_held(config, source)
    available = source.n_with(per_doc) * min(pairs, source.n_documents) // max(1, source.n_documents)
    return not source.counts or available >= -(-pairs // per_doc)


def with_kappa(entry: str) -> tuple[str, float | None]:
    """(weighting, its κ or None for the standard one) of an entry such as ``cw`` or ``cw@6``; ConfigError for a κ that
    is no number above 0, or of a weighting that has none."""
    name, sign, text = entry.partition("@")
    if not sign:
        return entry, None
    try:
        kappa = float(text)
    except ValueError:
        kappa = 0.0
    if not 0 < kappa < 1e6 or (name in WEIGHTINGS and "kappa" not in WEIGHTINGS[name].settings):
        raise ConfigError(f"{entry!r} is no weighting with a cap.", hint="For example cw@6: content words up to 6.")
    return name, kappa


def weighs_reasoning(weighting: str) -> bool:
    """Return True if a weighting compares each query with its reasoned form."""
    name, _ = with_kappa(weighting)
    return name in WEIGHTINGS and WEIGHTINGS[name].needs == "reasoning"


def needs_reasoning(config: StudyConfig) -> bool:
    """Return True if some condition reads the reasoned forms of queries."""
    return config.query_sources != (QUERY_ONLY,) or any(map(weighs_reasoning, config.weightings))


def check_axes(config: StudyConfig) -> None:
    """Raise ConfigError for distillation from reasoned queries."""
    if DISTIL in config.losses and config.query_sources != (QUERY_ONLY,):
        raise ConfigError(
            "A teacher's scores are of the queries themselves, not of their reasoned forms.",
            hint="Compare distil and query_sources in two studies.",
        )


def pairs_of(planned: PlannedTraining, source: StudySource) -> int:
    """How many pairs a condition trains on, by the counts of its source."""
    return planned.budget or source.pairs(planned.condition.per_doc, planned.max_documents)


def steps_of(config: StudyConfig, sources: Sequence[StudySource], settings: TrainingConfig) -> int:
    """The steps of every training of a retriever with these complete ``settings``.

    Those that the training with the most pairs takes for its epochs, and never fewer than ``LEAST_STEPS``: with more
    steps for more pairs, a study would measure the length of training.
    """
    if config.training.steps is not None:
        return config.training.steps
    by_label = {source.label: source for source in sources}
    largest = max(pairs_of(c, by_label[c.condition.source]) for c in conditions(config, sources))
    return max(LEAST_STEPS, order_of(settings.replace(steps=None), max(2, largest)).steps)


def loop_of(config: StudyConfig, retriever: str, layers: int | None = None) -> Loop:
    """The loop of a retriever's trainings. A static one has no layers, so it trains what it has."""
    chosen = config.training.trained_layers if layers is None else layers
    return config.training.replace(trained_layers=None if is_static(retriever) else chosen or None)


def is_static(retriever: str) -> bool:
    """Return True for a preset without layers."""
    return retriever in PRESETS and PRESETS[retriever].architecture == "static"


def training_config(
    config: StudyConfig, planned: PlannedTraining, query_set: str, reasoning: str = ""
) -> TrainingConfig:
    """Return the settings of a condition's training, except its steps (``steps_of``)."""
    condition = planned.condition
    weighting, kappa = with_kappa(condition.weighting)
    values: dict[str, Any] = {
        "loop": loop_of(config, condition.retriever, condition.layers),
        "query_set": query_set,
        "retriever": condition.retriever,
        "weighting": weighting,
        "kappa": kappa,
        "query_source": condition.query_source,
        "per_doc": condition.per_doc,
        "max_documents": config.max_documents,
        "pairs": planned.budget,
        "seed": planned.seed,
        "learning_rate": condition.rate,
        "hard_negatives": 0,
        "distil": 0.0,
        "gpus": config.gpus,
    }

    if planned.needs_reasoning:
        values["reasoning"] = reasoning
    # What a plan sets of the two is for the conditions of that loss alone.
    if condition.loss != INFONCE:
        given = config.training.hard_negatives
        values["hard_negatives"] = MAX_NEGATIVES if given is None else given
    if condition.loss == DISTIL:
        values["distil"] = config.training.distil or 1.0

    return TrainingConfig.from_dict({name: value for name, value in values.items() if value is not None})


def places(config: StudyConfig, field: str = "benchmarks") -> list[tuple[str, str]]:
    """(benchmark, split) of each entry of ``benchmarks`` or ``dev``; the split is empty where none is named."""
    return [name_and_split(entry) for entry in getattr(config, field)]


# A training, or what is evaluated untrained: a retriever, BM25 or a hybrid.
Step = PlannedTraining | Condition

# A batch or a search may take this long without a heartbeat.
STEP_S = 300.0


def untrained(config: StudyConfig) -> list[Condition]:
    """What is evaluated without training, in the order of the report."""
    # In this order a choice among the retrievers, which puts the others before it, changes nothing.
    named = dict.fromkeys((*config.untrained, *config.retrievers))
    names = [name for name in named if not (name in PRESETS and PRESETS[name].trained_only)]
    found = list(map(Condition, names))
    if config.bm25:
        found.insert(0, Condition(bm25.NAME))
    if config.hybrid or config.fusion:
        found += [Condition(name, HYBRID) for name in names]

    return found


# What a study writes of its choice among its retrievers: ``results/chosen.json``.
CHOSEN = "chosen"


def after_choice(config: StudyConfig, chosen: str) -> StudyConfig:
    """The plan once the retriever to train is known: the others are evaluated untrained."""
    names = dict.fromkeys((*config.untrained, *config.retrievers))
    return config.replace(choose=False, retrievers=chosen, untrained=[*names])


def written(workspace: Workspace, source: StudySource) -> StudySource:
    """Return the source with its query set, found by the job that wrote it, and the counts of its queries."""
    if not source.query_set:
        listed = query_sets.list_query_sets(workspace)
        # A copy with fewer queries names the job too: it is not what the job wrote.
        sets = [q for q in listed if q.job_id == source.job_id and not q.parameters.get("made_from")]
        if not sets:
            raise ConfigError(f"The queries of {source.label} were not written.", hint="See the job that writes them.")
        source = replace(source, query_set=sets[0].id)
    return counted(workspace, source)


# Of the documents, the share with the same queries in both sets that a comparison of the two bears. With a larger one
# these documents are left out, and above the second nothing is compared.
MAX_ALIKE, MOST_ALIKE = 0.1, 0.5


@dataclass(frozen=True)
class Alike:
    """Of the documents that both sets, diverse and paraphrase, have queries for, those with the same in both; a
    ``sample`` is of the first documents."""

    documents: frozenset[str]
    of: int
    sample: bool = False

    @property
    def refused(self) -> bool:
        """Return True if too few documents differ for a comparison."""
        return len(self.documents) > MOST_ALIKE * self.of

    @property
    def left_out(self) -> frozenset[str]:
        """The documents that are left out of both sets."""
        few = len(self.documents) <= MAX_ALIKE * self.of
        return frozenset() if few or self.refused else self.documents

    @property
    def sentence(self) -> str:
        """What that means for a test; empty where nothing has to be said."""
        of = f"Of {'the first ' * self.sample}{self.of:,} documents {len(self.documents):,}"
        said = f"{of} have the same queries in both sets, diverse and paraphrase"
        if self.refused:
            return f"{said}: a test of one against the other would show nothing."
        return f"{said}: such documents are left out." if self.left_out else ""


def alike(workspace: Workspace, sources: Sequence[StudySource], per_doc: int) -> dict[str, Alike]:
    """Return {corpus: the documents on which its diverse queries and paraphrases coincide}.

    Two sets coincide on a document whose first ``per_doc`` queries are the same in both, in any order.
    """
    kept: dict[str, dict[str, dict[str, frozenset[str]]]] = {"diverse": {}, "paraphrase": {}}
    for source in sources:
        if source.query_set and source.kind in kept:
            kept[source.kind][source.corpus] = _first_queries(workspace, source.query_set, per_doc)

    found = {}
    for corpus, diverse in kept["diverse"].items():
        if corpus in kept["paraphrase"]:
            found[corpus] = coincide(diverse, kept["paraphrase"][corpus])

    return found


def coincide(diverse: Mapping[str, frozenset[str]], paraphrase: Mapping[str, frozenset[str]]) -> Alike:
    """The same of two sets, each {document: its queries, without regard to case}."""
    both = [document for document in diverse if paraphrase.get(document)]
    same = frozenset(document for document in both if diverse[document] == paraphrase[document])
    return Alike(same, len(both))


def told_apart(config: StudyConfig) -> int:
    """Return the Q/Doc at which diverse queries and paraphrases have to differ: 0 in a study that keeps no winner."""
    return 0 if config.keep == NONE else max(config.per_doc)


def _first_queries(workspace: Workspace, query_set: str, per_doc: int) -> dict[str, frozenset[str]]:
    """{document: its first queries, without regard to case}."""
    found = {}
    for line in query_sets.iter_lines(workspace, query_set):
        found[str(line["document_id"])] = frozenset(map(str.casefold, line["queries"][:per_doc]))

    return found


def common_documents(
    workspace: Workspace, sources: Sequence[StudySource], per_doc: int = 0
) -> dict[str, frozenset[str]]:
    """{corpus: the documents that have a query in every source on it}, of corpora with several sources; with a
    ``per_doc`` of ``told_apart`` without those that are left out as alike."""
    sets: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        if source.query_set:
            sets[source.corpus].add(source.query_set)

    common: dict[str, frozenset[str]] = {}
    for corpus, names in sets.items():
        if len(names) > 1:
            asked = [_asked_documents(workspace, name) for name in names]
            common[corpus] = frozenset.intersection(*asked)

    if per_doc:
        for corpus, found in alike(workspace, sources, per_doc).items():
            common[corpus] -= found.left_out

    return common


def _asked_documents(workspace: Workspace, query_set: str) -> frozenset[str]:
    lines = query_sets.iter_lines(workspace, query_set)
    return frozenset(str(line["document_id"]) for line in lines if line["queries"])


def cut_to_common(workspace: Workspace, sources: Sequence[StudySource], per_doc: int) -> list[StudySource]:
    """The sources with the counts of the documents of ``common_documents``. ConfigError where two corpora's sets share
    fewer than two documents."""
    common = common_documents(workspace, sources, per_doc)
    cut = []
    for source in sources:
        if source.query_set:
            source = counted(workspace, source, common.get(source.corpus))
        if source.query_set and source.n_documents < 2 and source.corpus in common:
            raise ConfigError(
                f"The query sets on {source.corpus} have {source.n_documents} documents in common, too few to compare.",
                hint="Compare sets with queries for the same documents.",
            )
        cut.append(source)

    return cut


def counted(workspace: Workspace, source: StudySource, among: Collection[str] | None = None) -> StudySource:
    """The source with how many documents (of ``among``) have at least 1, 2, 3 … queries."""
    counts: list[int] = []
    for line in query_sets.iter_lines(workspace, source.query_set):
        if among is not None and line["document_id"] not in among:
            continue
        n = len(line["queries"])
        counts += [0] * (n - len(counts))
        for i in range(n):
            counts[i] += 1

    query_set = query_sets.load(workspace, source.query_set)
    return replace(
        source,
        n_documents=counts[0] if counts else 0,
        counts=tuple(counts),
        language=query_set.language,
        corpus=query_set.corpus_id,
        written_by=query_set.written_by,
    )


def condition_pairs(
    workspace: Workspace,
    config: StudyConfig,
    source: StudySource,
    planned: PlannedTraining,
    failures: Failures | None = None,
    among: Collection[str] | None = None,
) -> PairSet:
    """The pairs that a condition trains on, as ``train`` draws them, of the documents ``among`` (None: all).

    Where the condition needs reasoned forms they have these; hard negatives are not among them. Raises as
    ``draw_pairs`` and ``with_reasoned`` do, and InputError where the set cannot meet the budget.
    """
    pairs = draw_pairs(
        workspace,
        source.query_set,
        planned.seed,
        per_doc=planned.condition.per_doc,
        documents=config.max_documents,
        budget=planned.budget,
        widest=max(config.per_doc),
        among=among,
        failures=failures,
    )
    if not planned.needs_reasoning:
        return pairs

    ri = weighs_reasoning(planned.condition.weighting)
    return with_reasoned(pairs, workspace, source.reasoning, planned.condition.query_source, ri=ri)


@dataclass(frozen=True)
class Inputs:
    """The plan, what is trained on, the conditions in their order, and what they are evaluated and chosen by."""

    config: StudyConfig
    sources: list[StudySource]
    conditions: list[PlannedTraining]
    benchmarks: list[Benchmark]
    dev: list[Benchmark]

    @property
    def steps(self) -> list[Step]:
        """All that is evaluated; what every condition is compared with comes first."""
        return [*untrained(self.config), *self.conditions]

    @classmethod
    def of(cls, job: Job) -> Self:
        """Read the inputs of a job. CdpError where something is missing."""
        config = StudyConfig.from_dict(job.config)
        chosen = read_json_or_none(job.results / f"{CHOSEN}.json")
        if config.choose and isinstance(chosen, dict):
            config = after_choice(config, str(chosen["retriever"]))

        given = map(StudySource.of, job.spec["inputs"]["sources"])
        found = [written(job.workspace, source) for source in given]
        sources = cut_to_common(job.workspace, found, told_apart(config))
        planned = conditions(config, sources)
        job.progress("reading benchmarks", 0, 0, "")
        benchmarks = [read_benchmark(job.workspace, *place) for place in places(config)]
        dev = [read_benchmark(job.workspace, *place) for place in places(config, "dev")]
        return cls(config, sources, planned, benchmarks, dev)


def read_benchmark(workspace: Workspace, name: str, split: str) -> Benchmark:
    """One split of a benchmark, by name or folder."""
    folder = resolve_benchmark(name, workspace)
    return load_benchmark(folder, choose_split(describe(folder, workspace), split))
