"""What a study would run: missing query sets, drawing dev and test, checks, facts of benchmarks, learning-rate sweep.

Nothing is started. A learning-rate sweep is such a study as well.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.condition import BY, ON, method_of
from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.benchmarks import BenchmarkInfo, choose_split, describe, load_benchmark, resolve_benchmark, subsets
from cdp.benchmarks.judged import answered_key
from cdp.complexity import count_content_words
from cdp.corpus import resolve_corpus
from cdp.query_sets import QuerySet
from cdp.retrievers import PRESETS, leakage, resolve
from cdp.studies import records
from cdp.studies.config import DEV_SPLITS, StudyConfig, loss_of, reported_split
from cdp.studies.estimate import PlannedGeneration, StudyPlan, estimate
from cdp.studies.plan import (
    StudySource,
    check_axes,
    counted,
    cut_to_common,
    loop_of,
    needs_reasoning,
    places,
    problems_of_budget,
    told_apart,
    with_kappa,
)
from cdp.synthesis import pricing
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import get_method
from cdp.training.plan import Speed, complete
from cdp.training.reasoning import check_reasoned
from cdp.training.weightings import WEIGHTINGS


def sources_of(workspace: Workspace, config: StudyConfig) -> tuple[list[StudySource], list[PlannedGeneration]]:
    """What is trained on, and what has to be written for it first."""
    found: list[tuple[StudySource, QuerySet | None]] = []
    found += [_named_source(workspace, config, name) for name in config.query_sets]
    if config.methods:
        for corpus in config.corpus:
            found += _method_sources(workspace, config, corpus)

    sources = cut_to_common(workspace, [source for source, _ in found], told_apart(config))
    told = _disambiguate(workspace, config, sources, [query_set for _, query_set in found])
    return told, [_generation(workspace, config, source) for source in told if not source.query_set]


def _named_source(workspace: Workspace, config: StudyConfig, name: str) -> tuple[StudySource, QuerySet]:
    query_set = query_sets.resolve_query_set(workspace, name)
    kind = "human" if query_set.kind == "human" else query_set.method
    label = query_set.name if kind in ("", "imported") else kind  # which would tell two of them from nothing
    reasoning = _reasoning(workspace, config, query_set)

    source = counted(workspace, StudySource(label, kind, query_set.id, reasoning=reasoning))
    if not source.n_documents:
        raise InputError(f"The query set {query_set.name} has no queries to train on.")

    return source, query_set


def _method_sources(
    workspace: Workspace, config: StudyConfig, corpus: str
) -> Iterator[tuple[StudySource, QuerySet | None]]:
    """What each method writes for a corpus, with its query set where that is written already."""
    manifest = resolve_corpus(workspace, corpus)
    n_documents = min(manifest.n_documents, _documents_needed(config) or manifest.n_documents)

    for method in config.methods:
        get_method(method)
        existing_set = _existing_set(workspace, manifest.id, method, config, max(config.per_doc))

        if existing_set is not None:
            reasoning = _reasoning(workspace, config, existing_set)
            source = StudySource(method, method, existing_set.id, reasoning=reasoning)
            yield counted(workspace, source), existing_set
            continue

        if needs_reasoning(config):
            raise ConfigError(
                "RI and training on reasoned forms need reasoned forms of queries that are there.",
                hint="Write the queries and their reasoned forms first, and name both as query sets.",
            )

        language = manifest.counted_language
        yield StudySource(method, method, "", "", n_documents, language=language, corpus=manifest.id), None


def _disambiguate(
    workspace: Workspace, config: StudyConfig, sources: Sequence[StudySource], sets: Sequence[QuerySet | None]
) -> list[StudySource]:
    """The sources with labels of their own: with the corpus where there are several, with the generator where a method
    is there by several, and by name or id where that is not enough. ``sets`` are their query sets as far as there."""
    corpora = {source.corpus for source in sources}
    written_by = [_generator_of(query_set, config) for query_set in sets]
    generators: dict[str, set[str]] = defaultdict(set)
    for source, by in zip(sources, written_by, strict=True):
        if by:
            generators[source.label].add(by)

    used: set[str] = set()
    told = []
    for source, query_set, by in zip(sources, sets, written_by, strict=True):
        label = source.label
        if by and len(generators[source.label]) > 1:
            label += f"{BY}{by}"
        if len(corpora) > 1:
            label += f"{ON}{resolve_corpus(workspace, source.corpus).name}"
        if label in used and query_set is not None:
            label = query_set.id if query_set.name in used else query_set.name

        used.add(label)
        told.append(dataclasses.replace(source, label=label))

    return told


def _generator_of(query_set: QuerySet | None, config: StudyConfig) -> str:
    """The generator that wrote a set, or will write one that is missing; empty for an imported one."""
    if query_set is None:
        return config.endpoint.generator
    return "" if query_set.imported else query_set.generator


def _reasoning(workspace: Workspace, config: StudyConfig, query_set: QuerySet) -> str:
    """The set of reasoned forms for a set to train on, where a weighting needs one; ConfigError where none fits."""
    if not needs_reasoning(config):
        return ""

    named = [query_sets.resolve_query_set(workspace, name) for name in config.reasoning]
    fitting = [q for q in named if q.parameters.get("source") == query_set.id]
    if not fitting:  # imported ones do not say which set they are of
        fitting = [q for q in named if not q.parameters.get("source") and q.corpus_id == query_set.corpus_id]

    problem = ""
    if not fitting:
        problem = "no query set"
    elif len(fitting) > 1:
        problem = "several"
    elif fitting[0].id == query_set.id:
        problem = "the set itself"
    if problem:
        raise ConfigError(
            f"The plan needs the reasoned forms of {query_set.name}, and 'reasoning' names {problem} for it.",
            hint="Name one set for each query set: written with the method reasoning from it, or imported.",
        )

    check_reasoned(TrainingConfig(query_set=query_set.id, weighting="ri", reasoning=fitting[0].id), query_set.method)
    return fitting[0].id


def _generation(workspace: Workspace, config: StudyConfig, source: StudySource) -> PlannedGeneration:
    """What it takes to have the queries of a source written, counted on a sample of the documents."""
    generator = config.endpoint.generator
    if not GENERATORS[generator].endpoint:
        return PlannedGeneration(source.label, generator)

    e = pricing.estimate(workspace, synthesis_of(config, source))
    return PlannedGeneration(source.label, generator, e.requests, e.input_tokens, e.output_tokens, e.cost)


def _existing_set(workspace: Workspace, corpus_id: str, method: str, config: StudyConfig, most: int) -> QuerySet | None:
    """The newest complete set of this method and generator with enough queries per document for all documents; one for
    the corpus's first documents only where there is none of a draw or of all."""
    needed = _documents_needed(config)
    first: QuerySet | None = None
    for query_set in query_sets.list_query_sets(workspace):
        same = (
            query_set.corpus_id == corpus_id
            and query_set.method == method
            and query_set.generator == config.endpoint.generator
            and (not GENERATORS[config.endpoint.generator].is_llm or query_set.model == config.model_name)
        )
        limit = query_set.parameters.get("limit")
        enough = query_set.per_doc >= most and (limit is None or (needed is not None and limit >= needed))
        # A copy without some of its queries says the same of method and Q/Doc: it is not what the method wrote.
        if same and enough and query_set.complete and not query_set.parameters.get("made_from"):
            if limit is None or query_set.parameters.get("draw") is not None:
                return query_set
            first = first or query_set

    return first


def _documents_needed(config: StudyConfig) -> int | None:
    """How many documents the study looks at; None for all."""
    if config.budget is None:
        return config.max_documents
    most = max(2, config.budget // min(config.per_doc))
    return most if config.max_documents is None else min(most, config.max_documents)


def synthesis_of(config: StudyConfig, source: StudySource) -> SynthesisConfig:
    """The job that writes a source's queries."""
    n = len(config.methods) * len(config.corpus)
    return SynthesisConfig.from_dict(
        {
            "corpus": source.corpus,
            "method": method_of(source.label),
            "per_doc": max(config.per_doc),
            "endpoint": config.endpoint,
            "limit": _documents_needed(config),
            "draw": config.seeds[0],
            "budget": config.spend / n if config.spend else None,
        }
    )


# Of the judged queries of a benchmark with one split, the part that becomes dev; more choose no better.
DEV_SHARE, MAX_DEV = 1 / 3, 150


@dataclass(frozen=True)
class Splits:
    """The two splits of a benchmark that choose checkpoints (``dev``) and are reported (``test``), with their queries.
    Where it has to be drawn first, ``of`` is the benchmark that it is drawn from, ``test_from`` and ``dev_from`` its
    splits (empty: the same). ``shared`` queries of its own dev are reported too: they leave dev."""

    benchmark: str
    n_test: int
    n_dev: int
    n_documents: int
    test: str = "test"
    dev: str = "dev"
    of: str = ""
    test_from: str = ""
    dev_from: str = ""
    shared: int = 0

    @property
    def sources(self) -> list[tuple[str, str]]:
        """(benchmark, split) of the test and the dev queries: those that they are drawn from, until they are drawn."""
        if not self.of:
            return [(self.benchmark, self.test), (self.benchmark, self.dev)]
        return [(self.of, self.test_from), (self.of, self.dev_from or self.test_from)]

    @property
    def shared_note(self) -> str:
        """What has to be said first of splits that overlap; empty where they do not."""
        if not self.shared:
            return ""
        return f"Of the dev queries {self.shared:,} are reported too: they choose no checkpoint here."


def splits_of(
    workspace: Workspace, info: BenchmarkInfo, split: str = "", *, queries: int | None = None,
    documents: int | None = None,
) -> Splits:  # fmt: skip
    """Test and dev of a benchmark: its own, else drawn from the one split, by a hash of the queries' ids. At most so
    many test ``queries`` and ``documents``. InputError where there are too few queries to split."""
    test = choose_split(info, split or reported_split(info.splits))
    judged = info.judged[test]
    whole, n_documents = min(judged, queries or judged), min(info.n_documents, documents or info.n_documents)
    source = info.name if Path(info.folder).parent == workspace.benchmarks else info.folder

    dev = next((name for name in DEV_SPLITS if name in info.splits and name != test), "")
    shared = left = 0
    if dev:
        shared = leakage.shared(workspace, (source, dev), (source, test))
        left = max(0, info.judged[dev] - shared)
        if not shared and (whole, n_documents) == (judged, info.n_documents):
            return Splits(info.name, judged, info.judged[dev], info.n_documents, test, dev)

    # Fewer than were judged: a query without a relevant document neither reports nor chooses.
    answered, _ = subsets.sizes(workspace, source, queries=judged, split=test)
    if left:
        n_dev = min(MAX_DEV, left)
        n_test = min(whole, answered)
    else:
        dev = ""
        n_dev = min(MAX_DEV, int(answered * DEV_SHARE))
        n_test = min(whole, answered - n_dev)

    if n_dev:
        n_test, n_dev = subsets.sizes(
            workspace, source, queries=n_test, split=test, dev=n_dev, dev_split=dev, repeats=leakage.repeats
        )

    if not n_dev:
        raise InputError(
            f"{info.name} {test} has {judged} judged queries, too few to choose checkpoints by some and report others.",
            hint="At least 3 are needed, and 50 for an answer worth having: add queries with the IDs of the documents "
            "that answer them, or name another benchmark.",
        )

    called = subsets.name_of(info.name, n_test, n_documents, test, dev=n_dev)
    if labelled := answered_key(Path(info.folder)):
        called += f"-{labelled}"
    of = "" if (workspace.benchmarks / called).is_dir() else source
    return Splits(called, n_test, n_dev, n_documents, of=of, test_from=test, dev_from=dev, shared=shared)


def draw(workspace: Workspace, splits: Splits) -> None:
    """Make the benchmark of these splits, where it is not there yet."""
    if splits.of:
        subsets.sample(
            splits.of, workspace, queries=splits.n_test, documents=splits.n_documents, split=splits.test_from,
            called=splits.benchmark, dev=splits.n_dev, dev_split=splits.dev_from,
            repeats=leakage.repeats,
        )  # fmt: skip


def with_dev(workspace: Workspace, config: StudyConfig) -> tuple[StudyConfig, list[Splits]]:
    """A plan that names its dev splits; with the splits of its first benchmarks where they were found here."""
    if config.dev:
        return config, []

    # One dev split for each language; else that of the first benchmark chooses for all.
    needing = places(config) if config.same_language else places(config)[:1]
    found = []
    for name, split in needing:
        info = describe(resolve_benchmark(name, workspace), workspace)
        found.append(splits_of(workspace, info, split))

    test = [f"{splits.benchmark}:{splits.test}" for splits in found]
    dev = [f"{splits.benchmark}:{splits.dev}" for splits in found]
    return config.replace(benchmarks=[*test, *config.benchmarks[len(found) :]], dev=dev), found


def planned_facts(workspace: Workspace, config: StudyConfig, splits: Splits) -> dict[str, Any]:
    """The facts of a benchmark that is still to be drawn, from the one that it is drawn from."""
    whole = _benchmark(workspace, config, splits.of, splits.test_from)
    place = f"{splits.benchmark}/test/{config.protocol}"
    return {**whole, "name": splits.benchmark, "split": "test", "place": place, "n_queries": splits.n_test,
            "n_documents": splits.n_documents}  # fmt: skip


def plan(
    workspace: Workspace,
    config: StudyConfig,
    measured: Mapping[str, Speed],
    *,
    incomplete: Sequence[str] = (),
    known: Mapping[str, Any] | None = None,
    dev_texts: int = 0,
) -> StudyPlan:
    """What a study would run, cost and take. Everything that can be wrong is found here; nothing is started.

    ``measured`` is how fast retrievers were here; ``incomplete`` says which query sets are not whole.
    ``known`` are the facts of its first benchmark where it is not in the workspace yet, and ``dev_texts`` the texts of
    its dev split.
    """
    check_axes(config)
    _check_untrained(workspace, config)
    sources, missing = sources_of(workspace, config)
    config, splits = with_dev(workspace, config)
    drawn = {each.benchmark: each for each in splits if each.of}
    benchmarks = _planned_benchmarks(workspace, config, drawn, known)
    stored = not known and not drawn  # everything that judges is in the workspace

    benchmark_splits = [(b["name"], b["split"]) for b in benchmarks]
    if len(set(benchmark_splits)) < len(benchmark_splits):
        raise ConfigError("A benchmark is named twice.", hint="Name each benchmark and split once.")
    if splits:
        dev_texts = max(each.n_dev + each.n_documents for each in splits)
    if stored:
        dev_texts = _dev_texts(workspace, config, benchmark_splits)

    _check_weightings(config)
    settings = {}
    for name in config.retrievers:
        training = TrainingConfig(query_set="any", loop=loop_of(config, name))
        settings[name] = complete(training, resolve(name, workspace))

    for source in sources:
        problem = problems_of_budget(config, source)
        if problem:
            raise ConfigError(problem, hint="Lower the budget, leave out the highest Q/Doc, or use equal documents.")

    study_plan = estimate(
        config,
        sources,
        benchmarks,
        settings=settings,
        speeds=measured,
        generations=missing,
        dev_texts=dev_texts,
    )

    notes = [each.shared_note for each in splits]
    if stored:
        notes += _overlaps(workspace, config, benchmark_splits)

    notes += incomplete
    notes += [_of_first_documents(workspace, source) for source in sources]
    for each in drawn.values():
        notes.append(
            f"No dev split: {each.n_dev:,} judged queries of {each.of} choose the checkpoints, and {each.n_test:,} "
            f"others are reported ({each.benchmark})."
        )

    if stored:
        # What a method writes, for this study or before, and no set that the plan names.
        written = [source for source in sources if method_of(source.label) in config.methods]
        notes += map(left_out, leaks_of(workspace, config, stored_sets(written)))

    return dataclasses.replace(study_plan, notes=(*filter(None, notes), *study_plan.notes))


def _planned_benchmarks(
    workspace: Workspace, config: StudyConfig, drawn: Mapping[str, Splits], known: Mapping[str, Any] | None
) -> list[Mapping[str, Any]]:
    """The facts of each benchmark: as ``known``, of one that is still to be ``drawn``, or of one that is there."""
    benchmarks: list[Mapping[str, Any]] = []
    for name, split in places(config):
        if known is not None and known["name"] == name:
            benchmarks.append(known)
        elif name in drawn:
            benchmarks.append(planned_facts(workspace, config, drawn[name]))
        else:
            benchmarks.append(_benchmark(workspace, config, name, split))

    return benchmarks


def _check_untrained(workspace: Workspace, config: StudyConfig) -> None:
    """Raise ConfigError where a preset that finds nothing before a training is named for its untrained score."""
    named = config.untrained
    if config.choose:
        named += config.retrievers

    for name in named:
        if name in PRESETS and PRESETS[name].trained_only:
            resolve(name, workspace).require_ready()


def _check_weightings(config: StudyConfig) -> None:
    able = [name for name, weighting in WEIGHTINGS.items() if weighting.needs != "column"]
    for weighting in config.weightings:
        name, _ = with_kappa(weighting)
        if name not in able:
            raise NotFoundError("weighting", weighting, known=able)


def _of_first_documents(workspace: Workspace, source: StudySource) -> str:
    """What has to be said of a set that was written for the first documents of its corpus alone; empty of others."""
    if not source.query_set:
        return ""
    query_set = query_sets.load(workspace, source.query_set)
    limit = query_set.parameters.get("limit")
    if query_set.parameters.get("draw") is not None or not isinstance(limit, int):
        return ""
    if limit >= resolve_corpus(workspace, query_set.corpus_id).n_documents:
        return ""
    return (
        f"{query_set.name} has queries for the first {limit:,} documents of its corpus alone: what holds for them may "
        "not hold for the others."
    )


def stored_sets(sources: Sequence[StudySource]) -> list[str]:
    return [source.query_set for source in sources if source.query_set]


def left_out(leak: leakage.Leak) -> str:
    """Of queries that a method wrote, those that a benchmark judges are not trained on: how many, in a sentence."""
    reworded = f" ({leak.near:,} of them reworded)" if leak.near else ""
    return (
        f"{leak.source}: queries that {leak.benchmark} {leak.split} judges too, {leak.queries:,} of its "
        f"{leak.judged:,}{reworded}, are left out of the training."
    )


def _overlaps(workspace: Workspace, config: StudyConfig, reported: Sequence[tuple[str, str]]) -> list[str]:
    """What has to be said of named dev splits that hold reported queries, by words or content words."""
    found = []
    for dev in places(config, "dev"):
        for place in reported:
            if shared := leakage.shared(workspace, dev, place):
                found.append(
                    f"Of the queries of {':'.join(dev)}, which choose the checkpoints, {shared:,} are reported on "
                    f"{':'.join(place)} too: no answer is settled by them."
                )
    return found


def _dev_texts(workspace: Workspace, config: StudyConfig, benchmark_splits: Sequence[tuple[str, str]]) -> int:
    """The most texts of a dev split; ConfigError for one that is also reported: its scores would be selected."""
    texts = 0
    for name, split in places(config, "dev"):
        info = describe(resolve_benchmark(name, workspace), workspace)
        chosen = choose_split(info, split)
        if (info.name, chosen) in benchmark_splits:
            raise ConfigError(
                f"{info.name}:{chosen} cannot both choose the checkpoints and be reported on: its scores would be too "
                "high.",
                hint="Name another split or benchmark as 'dev'.",
            )
        texts = max(texts, info.judged[chosen] + info.n_documents)
    return texts


def leaks_of(workspace: Workspace, config: StudyConfig, sets: Sequence[str] | None = None) -> list[leakage.Leak]:
    """The judged queries among those of ``sets``; without these, of the query sets that the plan names."""
    if sets is None:
        sets = config.query_sets
    return leakage.find_leaks(workspace, sets, places(config) + places(config, "dev"))


def sweep(workspace: Workspace, config: TrainingConfig, rates: Sequence[float]) -> StudyConfig:
    """The study that a learning-rate sweep is: this training at each rate, chosen by the dev split of its benchmark.

    The split that ``config`` names chooses, or the benchmark's dev; other queries are reported. ConfigError for fewer
    than two rates, or without a benchmark.
    """
    if len(set(rates)) < 2:
        raise ConfigError("A sweep needs at least two learning rates.", hint="Write them as 2e-7,5e-7,1e-6.")
    if not config.dev.benchmark:
        raise ConfigError("A sweep needs a dev benchmark to choose by.", hint="Set benchmark, as --benchmark NAME.")

    info = describe(resolve_benchmark(config.dev.benchmark, workspace), workspace)
    others = [name for name in info.splits if name != config.dev.split]
    splits = {}

    if config.dev.split and others and choose_split(info, config.dev.split):
        name = config.dev.benchmark
        splits = {"dev": f"{name}:{config.dev.split}", "benchmarks": f"{name}:{reported_split(others)}"}

    query_set = counted(workspace, StudySource("", "", query_sets.resolve_query_set(workspace, config.query_set).id))
    weighting = config.weighting
    if config.kappa != config.settings()["kappa"].default:
        weighting += f"@{config.kappa:g}"

    return StudyConfig.from_dict(
        {
            "benchmarks": config.dev.benchmark,
            "query_sets": config.query_set,
            "retrievers": config.retriever,
            "per_doc": config.per_doc or max(1, len(query_set.counts)),
            "weightings": weighting,
            "losses": loss_of(config.loop.hard_negatives, config.loop.distil),
            "query_sources": config.query_source,
            "seeds": config.seed,
            "learning_rate": sorted(rates),
            "training": config.loop,
            "name": config.name or f"{resolve(config.retriever, workspace).name}, learning rates",
            "max_documents": config.max_documents,
            "reasoning": config.reasoning,
            "gpus": config.gpus,
            "budget": config.pairs,
            **splits,
        }
    )  # fmt: skip


def _benchmark(workspace: Workspace, config: StudyConfig, name: str, split: str) -> dict[str, Any]:
    folder = resolve_benchmark(name, workspace)
    info = describe(folder, workspace)
    chosen = choose_split(info, split)
    loaded = load_benchmark(folder, chosen)
    place = records.evaluation_key(loaded.hash, chosen, config.protocol)
    language = loaded.counted_language
    return benchmark_facts(info.name, chosen, place, loaded.queries, loaded.n_documents, language)


def benchmark_facts(
    name: str, split: str, place: str, queries: Sequence[str], n_documents: int, language: str
) -> dict[str, Any]:
    """Return what a plan needs of a benchmark: sizes, language, mean CW, and the share of queries without any."""
    cw = count_content_words(queries, language)
    mean, empty = (float(cw.mean()), float((cw == 0).mean())) if len(cw) else (0.0, 0.0)
    sizes = {"n_queries": len(cw), "n_documents": n_documents}
    return {"name": name, "split": split, "place": place, **sizes, "language": language, "cw": mean, "empty": empty}
