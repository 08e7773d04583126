""" "Test it on my data": whose queries judge (a benchmark's, people's, templates'), held-out share, plan, time, price.

Of the last two a small benchmark is made first: the corpus's documents, or a sample of them, and queries that nothing
is trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.records import JOB_FACTS, whole
from cdp.base.text import counted, duration
from cdp.base.workspace import Workspace, shuffle_key, slug
from cdp.benchmarks import BenchmarkInfo, describe, resolve_benchmark
from cdp.benchmarks.judged import judge_of
from cdp.corpus import CorpusManifest, iter_documents, resolve_corpus
from cdp.corpus.documents import permutation
from cdp.llm.prices import dollars
from cdp.principle.evidence import trained_name
from cdp.query_sets import QuerySet
from cdp.retrievers import DENSE, PRESETS, api, in_cache, leakage, sending
from cdp.retrievers.presets import foreign
from cdp.retrievers.resolve import has_model
from cdp.studies import planning
from cdp.studies.config import OWN_DATA, StudyConfig, TrialConfig, read_plan
from cdp.studies.estimate import StudyPlan, only, price_text, sum_if_known
from cdp.studies.plan import Alike, alike, coincide, is_static
from cdp.studies.planning import Splits
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.training.plan import Speed

BENCHMARK, HUMAN, TEMPLATE = "benchmark", "human", "template"

# Said where an LLM's queries are missing and none is named.
BY_TEMPLATES = "No LLM is named, so templates write the training queries: what a model's queries would gain may differ."

# What decides is still to be judged by a model: ``JudgedBy.queries`` are the queries as far as they are known.
TO_JUDGE = "judged"

# The stages from documents to the answer, each with what it was promised to take in its job's inputs.
JUDGING, WRITING, TESTING, CLOSING = "judging", "writing queries", "testing", "judging what is new"

# Documents whose template queries tell, before a test, whether those of the two methods differ.
TRIED = 50

# Of larger benchmarks a sample judges: every training of a test encodes all of its texts.
MAX_DOCUMENTS = 2_000

# Documents that are trained on where nothing is said.
MAX_TRAINED = 1_000

# At most this part of a corpus is held out for template queries.
HELD_OUT = 0.25

# Where no preset is at hand.
DEFAULT = str(TrainingConfig.settings()["retriever"].default)

# Tokens of a query that goes to an API, for its price.
QUERY_TOKENS = 20.0

# The training queries are written with seed 0.
SEED = 1

# The first seed of a test: it draws the documents that are trained on from its beginning.
DRAW = 0


@dataclass(frozen=True)
class JudgedBy:
    """What decides a test. ``kind`` is BENCHMARK, HUMAN or TEMPLATE; ``of`` the query set that its queries are from.
    ``there``: nothing is to be made. The last ``held_out`` documents of the corpus's draw with ``DRAW`` are not trained
    on. ``notes`` say what has to be known, in sentences, ``judge`` which model judged (empty: people)."""

    kind: str
    splits: Splits
    there: bool
    of: str = ""
    held_out: int = 0
    notes: tuple[str, ...] = ()
    judge: str = ""
    queries: tuple[str, ...] = ()

    @property
    def benchmark(self) -> str:
        return self.splits.benchmark

    @property
    def texts(self) -> int:
        """The test queries and the documents."""
        return self.splits.n_test + self.splits.n_documents


def to_be_judged(
    manifest: CorpusManifest, name: str, queries: Sequence[str], n: int, judge: str, config: TrialConfig
) -> JudgedBy:
    """What will decide a test after ``judge`` judged ``n`` queries, of which ``queries`` are known. Splits as then."""
    n_dev = max(1, min(planning.MAX_DEV, int(n * planning.DEV_SHARE)))
    n_test = max(1, min(config.queries, n - n_dev))
    splits = Splits(name, n_test, n_dev, min(manifest.n_documents, MAX_DOCUMENTS))
    return JudgedBy(TO_JUDGE, splits, False, judge=judge, queries=tuple(queries[:n_test]))


def judged_by(
    workspace: Workspace, manifest: CorpusManifest, config: TrialConfig, own: Sequence[BenchmarkInfo]
) -> JudgedBy:
    """What decides a test on a corpus, of whose project ``own`` are. InputError for a benchmark that cannot be used."""
    info = _named(workspace, config.judged.benchmark) if config.judged.benchmark else best_of(manifest, own)
    if info is not None:
        return _benchmark(workspace, info, config)

    human = _human(workspace, manifest)
    if human is not None:
        n = min(human.n_documents, config.queries + planning.MAX_DEV)
        note = (
            f"No judged queries are there: people's queries in {human.name} are split off and decide. Do not train on "
            "them later."
        )
        return _made(workspace, manifest, HUMAN, n, of=human.id, note=note)

    held_out = min(config.queries, int(manifest.n_documents * HELD_OUT))
    if held_out < 3:
        raise ConfigError(
            f"{manifest.name} has {counted(manifest.n_documents, 'document')}, too few for a test without judgments.",
            hint="Bring a benchmark, or queries that people wrote for these documents.",
        )

    note = (
        f"No judged queries and no human queries: template queries of {held_out:,} held-out documents decide. They "
        "reuse the documents' own words, so the test shows that training works, and little about real queries."
    )
    return _made(workspace, manifest, TEMPLATE, held_out, held_out=held_out, note=note)


def _named(workspace: Workspace, name: str) -> BenchmarkInfo:
    info = describe(resolve_benchmark(name, workspace), workspace)
    if info.problem:
        raise InputError(f"{info.name} cannot be used: {info.problem}")
    return info


def best_of(manifest: CorpusManifest, own: Sequence[BenchmarkInfo]) -> BenchmarkInfo | None:
    """The benchmark of a corpus's project that has a dev split, else its first; None where only tests made some."""
    # What was made for a test is no reason to pass over people's queries that came later.
    made = (_name(manifest, HUMAN), _name(manifest, TEMPLATE))
    # Nor is what an earlier test drew from one of these: the whole may have more queries by now.
    names = {info.name for info in own}
    brought = [info for info in own if info.name not in made and info.subset_of not in names]

    # People's judgments come before a model's.
    return min(brought, key=lambda info: (judge_of(Path(info.folder)) != "", "dev" not in info.splits), default=None)


def _benchmark(workspace: Workspace, info: BenchmarkInfo, config: TrialConfig) -> JudgedBy:
    splits = planning.splits_of(workspace, info, config.judged.split, queries=config.queries, documents=MAX_DOCUMENTS)
    notes = []
    if splits.benchmark != info.name:
        queries = f"{splits.n_test:,} of {info.judged[splits.test_from]:,} judged queries are reported and "
        others = "1 other chooses" if splits.n_dev == 1 else f"{splits.n_dev:,} others choose"
        notes.append(f"{queries}{others} the checkpoints ({splits.benchmark}).")
    if splits.n_documents < info.n_documents:
        notes.append(
            f"They search {splits.n_documents:,} of {info.n_documents:,} documents of {info.name}. Scores are higher "
            "than on all; differences are what counts."
        )
    judge = judge_of(Path(info.folder))
    return JudgedBy(BENCHMARK, splits, not splits.of, notes=tuple(notes), judge=judge)


def _human(workspace: Workspace, manifest: CorpusManifest) -> QuerySet | None:
    for q in query_sets.list_query_sets(workspace):
        if q.corpus_id == manifest.id and q.kind == "human" and q.n_documents > 1:
            return q
    return None


def _name(manifest: CorpusManifest, kind: str) -> str:
    return f"{slug(manifest.name, fallback='corpus')[:60]}-{manifest.id[-8:]}-{kind}"


def _made(
    workspace: Workspace,
    manifest: CorpusManifest,
    kind: str,
    queries: int,
    *,
    note: str,
    of: str = "",
    held_out: int = 0,
) -> JudgedBy:
    name = _name(manifest, kind)
    n_dev = max(1, min(planning.MAX_DEV, int(queries * planning.DEV_SHARE)))
    splits = Splits(name, queries - n_dev, n_dev, min(manifest.n_documents, MAX_DOCUMENTS))
    judged = JudgedBy(kind, splits, (workspace.benchmarks / name).is_dir(), of, held_out, (note,))
    # Some documents give no query: what is said is what the benchmark will hold.
    n = queries if judged.there else len(queries_of(workspace, manifest, judged))
    if n != queries:
        return _made(workspace, manifest, kind, n, note=note, of=of, held_out=held_out)

    return judged


def facts(
    workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, study: StudyConfig
) -> dict[str, Any] | None:
    """What a plan needs to know of a benchmark that is not there yet; None for one that is."""
    if judged.there:
        return None
    if judged.kind == BENCHMARK:
        return planning.planned_facts(workspace, study, judged.splits)

    # Of queries that a model will write, the number is known.
    n = judged.splits.n_test
    texts = _texts_of(workspace, manifest, judged)[:n] or [manifest.name] * n
    place = f"{judged.benchmark}/test/{study.protocol}"
    language = manifest.counted_language
    return planning.benchmark_facts(judged.benchmark, "test", place, texts, judged.splits.n_documents, language)


def leaks(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, sets: Sequence[str]) -> list[leakage.Leak]:
    """``leakage.find_leaks`` for what a test would be judged by, whether it is there or still to be made."""
    splits = judged.splits
    if judged.there or judged.kind == BENCHMARK:
        return leakage.find_leaks(workspace, sets, sorted(set(splits.sources)))
    return leakage.among(workspace, sets, _texts_of(workspace, manifest, judged), judged.benchmark, "test")


def _texts_of(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy) -> list[str]:
    """The queries of a benchmark that is to be made, as far as they are known."""
    if judged.kind == TO_JUDGE:
        return list(judged.queries)
    return [text for _, text in queries_of(workspace, manifest, judged)]


def queries_of(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy) -> list[tuple[str, str]]:
    """(document, query) of a benchmark that is to be made, one query of a document, in an order drawn by hash."""
    written: list[tuple[str, str]] = []
    if judged.kind == HUMAN:
        for line in query_sets.iter_lines(workspace, judged.of):
            if line["queries"]:
                written.append((line["document_id"], str(line["queries"][-1])))
    else:
        generator = TemplateGenerator(SEED)
        order = permutation(manifest.n_documents, DRAW)[manifest.n_documents - judged.held_out :]
        held_out = frozenset(order.tolist())
        for position, document in enumerate(iter_documents(workspace, manifest.id)):
            if position in held_out and (queries := generator.generate("", document, METHODS["diverse"], 1).queries):
                written.append((document.id, queries[0]))

    written.sort(key=lambda pair: shuffle_key(pair[0]))
    return written[: judged.splits.n_test + judged.splits.n_dev]


@dataclass(frozen=True)
class Trial:
    """A test before its start. ``plan`` has its time, without an endpoint's answers. ``cost`` is theirs and that of
    vectors from an API, in US dollars, None where a price is not known. ``notes`` say what has to be known first.

    ``problem`` says that it takes longer or costs more than allowed, empty where it does not; ``fitting`` is then the
    number of documents that is allowed, 0 where none is.
    """

    config: TrialConfig
    judged: JudgedBy
    plan: StudyPlan
    notes: tuple[str, ...]
    documents: int
    documents_there: int
    unit: str
    cost: float | None = 0.0
    problem: str = ""
    fitting: int = 0

    @property
    def price(self) -> str:
        """``free``, ``$1.20`` or ``not known``: of the missing queries and of vectors from an API."""
        return price_text(self.cost, free=not (self.cost or self.plan.requests))

    @property
    def trained(self) -> str:
        """What is trained, or among what the test chooses: ``static-minilm or minilm, the best untrained on dev``."""
        study = self.plan.config
        named = []
        for name in study.retrievers:
            layers = 0 if is_static(name) else study.training.trained_layers
            named.append(trained_name(name, layers or 0))

        text = " or ".join(named)
        return f"{text}, the best untrained on dev" if study.choose else text

    @property
    def by_templates(self) -> bool:
        """Whether templates write the missing training queries, for no LLM is named."""
        return BY_TEMPLATES in self.notes

    @property
    def starting(self) -> str:
        """What the start does first: where nothing ran here it times some steps, for a minute on a slow machine."""
        return "Starting" if self.plan.measured else "Timing a few steps of training on this machine before the start"

    @property
    def beside(self) -> str:
        """The untrained retrievers."""
        return ", ".join(dict.fromkeys((*self.plan.config.retrievers, *self.plan.config.untrained)))

    @property
    def told(self) -> dict[str, Any]:
        """What the test takes, in words by name; empty ones do not apply."""
        plan, splits = self.plan, self.judged.splits
        steps = " or ".join(f"{n:,}" for n in dict.fromkeys(plan.steps.values()))
        basis = "from earlier runs here" if plan.measured else "a guess: nothing was run here yet"

        price, problem = self.price, self.problem
        if plan.requests:
            price += f" for {plan.requests:,} requests"
        if problem:
            fewer = f", or test on fewer documents: --documents {self.fitting}" if self.fitting else ""
            problem += f" Allow more with --minutes or --spend{fewer}."

        return {
            "overlap": splits.shared_note,
            "trainings": f"{plan.trainings} of {self.trained}: {self.config.numbers} "
            f"diverse queries and paraphrases per {self.unit}, {counted(self.config.seeds, 'seed')}",
            "beside": f"BM25, {self.beside}, each also fused with BM25",
            f"{self.unit}s": f"{self.documents:,} of {self.documents_there:,}",
            "steps": f"{steps} for every training; the best NDCG@10 on {splits.n_dev:,} dev queries chooses the "
            "checkpoint",
            "reported on": f"{self.judged.benchmark}:{splits.test}, {splits.n_test:,} other queries on "
            f"{splits.n_documents:,} documents",
            "time": f"about {duration(plan.seconds)} ({basis})",
            "price": price,
            "problem": problem,
            "note": self.notes,
        }

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        splits = self.judged.splits

        return {
            "seconds": self.plan.seconds,
            "measured": self.plan.measured,
            "requests": self.plan.requests,
            "cost": self.cost,
            "trained": self.trained,
            "documents": self.documents,
            "judged_by": f"{splits.benchmark}:{splits.test}",
            "judged_kind": self.judged.kind,
            "problem": self.problem,
            "fitting_documents": self.fitting,
            "overlap": splits.shared_note,
            "notes": list(self.notes),
            "plan": self.plan.to_dict(),
        }


def last_generator(workspace: Workspace, corpus: str) -> dict[str, str]:
    """The generator of the newest queries for a corpus, else of any corpus, with its model and address; settings of
    ``TrialConfig``. Recorded queries come first: they are there. Empty where nothing was ever written."""
    offered = TrialConfig.settings()["generator"].choices or ()
    written = [q for q in query_sets.list_query_sets(workspace) if q.generator in offered]
    if not written:
        return {}
    last = max(written, key=lambda q: (q.corpus_id == corpus, q.generator == "recorded", q.created))
    if not GENERATORS[last.generator].is_llm or last.generator == "recorded":
        return {"generator": last.generator}
    return {"generator": last.generator, "model": last.model, "base_url": str(last.parameters.get("base_url") or "")}


def plan_test(
    workspace: Workspace, config: TrialConfig, own: Sequence[BenchmarkInfo], measured: Mapping[str, Speed],
    gpu: bool = False, judged: JudgedBy | None = None,
) -> Trial:  # fmt: skip
    """What the test would take: everything that can be wrong is found here, and nothing is started.

    ``own`` are the benchmarks of the corpus's project; ``measured`` is how fast retrievers were here, ``gpu`` whether
    they train on one. ``judged`` is what will decide, where that is still to be judged.
    """
    manifest = resolve_corpus(workspace, config.corpus)
    config = config.replace(corpus=manifest.id)
    judged = judged or judged_by(workspace, manifest, config, own)

    available = manifest.n_documents - judged.held_out
    if available < 2:
        few = counted(manifest.n_documents, "document")
        raise ConfigError(f"{manifest.name} has {few}, too few for a test.", hint="Add more documents to it.")

    documents = min(available, config.documents or MAX_TRAINED)
    trained, note = _trained_human(workspace, manifest, judged, documents)

    if config.trained_layers is None:
        config = config.replace(trained_layers=0 if gpu else UPPER_LAYERS)

    study = study_of_test(config, judged.splits, documents, trained, manifest.name, beside=at_hand(workspace, manifest))
    study_plan = planning.plan(
        workspace, study, measured, known=facts(workspace, manifest, judged, study),
        dev_texts=judged.splits.n_dev + judged.splits.n_documents,
    )  # fmt: skip

    if study.choose:
        study_plan = only(study_plan, _allowed(study_plan, config.minutes))
    same = list(alike(workspace, study_plan.sources, max(study.per_doc)).values())
    if len(study_plan.generations) > 1 and config.endpoint.generator == TEMPLATE:
        same.append(_alike_by_templates(workspace, manifest, max(study.per_doc)))
    for found in same:
        if found.refused:
            hint = "Have an LLM write them (generator openai), or import sets that differ."
            raise ConfigError(found.sentence, hint=hint)

    study = study_plan.config
    sent = _sendings(workspace, manifest, study, judged)
    cost = sum_if_known([study_plan.cost, *(s.cost for s in sent)])
    notes = [*foreign(study.retrievers[0], manifest.main_language), *_first_look(study), *judged.notes, *note]
    notes += [s.sentence for s in sent]
    notes += [found.sentence for found in same if found.sentence]
    notes += _of_generator(config, study_plan)
    notes += _of_queries(workspace, manifest, judged, study_plan)

    return Trial(
        config=config,
        judged=judged,
        plan=study_plan,
        notes=tuple(notes),
        documents=documents,
        documents_there=available,
        unit=manifest.unit,
        cost=cost,
        problem=_problem(config, study_plan.seconds, cost, "queries and vectors" if sent else "queries"),
        fitting=_fitting(config, study_plan, cost, documents),
    )


def _alike_by_templates(workspace: Workspace, manifest: CorpusManifest, per_doc: int) -> Alike:
    """Return on which of the first documents the queries that templates would write coincide."""
    generator = TemplateGenerator(SEED)
    written: dict[str, dict[str, frozenset[str]]] = {"diverse": {}, "paraphrase": {}}
    for document in islice(iter_documents(workspace, manifest.id), TRIED):
        for method, queries in written.items():
            queries[document.id] = frozenset(map(str.casefold, generator.queries(document, method, per_doc)))

    return replace(coincide(written["diverse"], written["paraphrase"]), sample=True)


def _of_generator(config: TrialConfig, study_plan: StudyPlan) -> Iterator[str]:
    """What has to be known of the model that writes missing queries."""
    if study_plan.cost is None:
        name = study_plan.config.model_name
        yield f"The price of {name} is not known here, so no budget can be kept: see the price table."
    if study_plan.requests:
        yield "The time of the endpoint's answers comes on top."
    if study_plan.generations and config.endpoint.generator == TEMPLATE:
        yield BY_TEMPLATES


def _problem(config: TrialConfig, seconds: float, cost: float | None, what: str) -> str:
    """Why a test is not started: it takes longer or costs more than allowed; empty where it does not."""
    if seconds > 60 * config.minutes:
        return f"The test takes about {duration(seconds)} here, more than the {config.minutes:g} minutes allowed."
    if cost is not None and cost > config.spend:
        return f"The {what} cost about {dollars(cost)}, more than the {config.spend:g} US dollars allowed."
    return ""


# A test on fewer documents shows nothing.
FEWEST_DOCUMENTS = 20


def _fitting(config: TrialConfig, study_plan: StudyPlan, cost: float | None, documents: int) -> int:
    """The number of documents that time and money allow; 0 where all are allowed, or too few."""
    seconds = study_plan.seconds
    over = max(seconds / (60 * config.minutes), (cost or 0.0) / config.spend)
    if over <= 1:
        return 0

    # What does not depend on the documents keeps its time, so the number that fits is found by their share.
    fixed = study_plan.fixed
    share = min((60 * config.minutes - fixed) / max(1.0, seconds - fixed), 1 / over)
    fitting = int(0.95 * documents * share)
    return fitting if fitting >= FEWEST_DOCUMENTS else 0


# Trained layers of a test without a GPU.
UPPER_LAYERS = 2

# The newest trainings of the project's own that stand beside the others.
MAX_OWN = 3


def at_hand(workspace: Workspace, manifest: CorpusManifest) -> list[str]:
    """The retrievers that a test can load without a download: presets that read the language (without one, those that
    come with the installation), then the newest trained on the corpus's queries."""
    reading: list[str] = []
    embedded: list[str] = []
    for preset in PRESETS.values():
        there = preset.embedded or Path(preset.source).is_dir() or in_cache(preset.source)
        if preset.kind != DENSE or not there:
            continue
        if preset.embedded:
            embedded.append(preset.name)
        if preset.reads(manifest.main_language):
            reading.append(preset.name)

    own: list[str] = []
    for folder in sorted(workspace.jobs.glob("training-*"), reverse=True):
        config = (whole(JOB_FACTS, folder / "spec.json") or {}).get("config") or {}
        with suppress(CdpError):
            if has_model(folder) and query_sets.load(workspace, config["query_set"]).corpus_id == manifest.id:
                own.append(folder.name)

    return (reading or embedded) + own[:MAX_OWN]


def _allowed(study_plan: StudyPlan, minutes: float) -> list[str]:
    """The retrievers whose trainings fit the time; the fastest where none does."""
    took = {name: study_plan.work[name] for name in study_plan.config.retrievers}
    room = 60 * minutes - study_plan.fixed
    return [name for name in took if took[name] <= room] or [min(took, key=lambda name: took[name])]


def _first_look(study: StudyConfig) -> Iterator[str]:
    if all(map(is_static, study.retrievers)):
        yield f"A first look: {study.retrievers[0]} is made for trying things out, and answers for no other retriever."


def _sendings(
    workspace: Workspace, manifest: CorpusManifest, study: StudyConfig, judged: JudgedBy
) -> list[sending.Sending]:
    """What goes to retrievers behind an API: the documents and queries of both splits, of what decides or will."""
    if not any(map(api.parse, study.untrained)):
        return []

    splits = judged.splits
    if judged.there:
        documents = sending.of_benchmark(workspace, resolve_benchmark(splits.benchmark, workspace))
    elif judged.kind == BENCHMARK:
        documents = sending.of_benchmark(workspace, resolve_benchmark(splits.of, workspace))
    else:
        documents = sending.of_corpus(workspace, manifest.id)

    queries = sending.Texts(splits.n_test + splits.n_dev, QUERY_TOKENS)
    return sending.sendings(workspace, study.untrained, [replace(documents, n=splits.n_documents), queries])


def _trained_human(
    workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, documents: int
) -> tuple[str, tuple[str, ...]]:
    """(the query set of people to train on beside what a model writes, notes): one that covers the test's documents."""
    human = _human(workspace, manifest)
    if human is None or judged.kind == HUMAN:
        return "", ()
    if human.n_documents >= manifest.n_documents - judged.held_out and documents <= human.n_documents:
        return human.id, ()
    return "", (
        f"{human.name} has queries for {human.n_documents:,} of {manifest.n_documents:,} documents only, so people's "
        "queries are not among the trainings.",
    )


def _of_queries(
    workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, study_plan: StudyPlan
) -> Iterator[str]:
    """What has to be known of the queries that are trained on: which documents they are for, and what is left out."""
    for note in study_plan.notes:
        if "has queries for the first" in note or "are left out of the training" in note:
            yield note

    there = planning.stored_sets(study_plan.sources)
    if not judged.there:
        yield from map(planning.left_out, leaks(workspace, manifest, judged, there))
    if judged.held_out and there:
        yield (
            "Queries of earlier jobs are trained on, among them perhaps some for the documents that decide: such "
            "results are marked in-domain."
        )


def study_of_test(
    config: TrialConfig, splits: Splits, documents: int, human: str | Sequence[str], title: str,
    beside: Sequence[str] = (),
) -> StudyConfig:  # fmt: skip
    """Return the plan ``own-data`` as a test on so many documents of the corpus ``title``.

    ``human`` are query sets of people that are trained on too, ``beside`` the retrievers at hand: the study chooses
    among the presets where none is named.
    """
    trained = [name for name in beside if name in PRESETS] or [DEFAULT]
    if config.retriever:
        trained = [config.retriever]

    further = dict.fromkeys((*beside, *config.untrained))
    changes = {
        "benchmarks": f"{splits.benchmark}:{splits.test}",
        "dev": f"{splits.benchmark}:{splits.dev}",
        "query_sets": human,
        "corpus": config.corpus,
        "endpoint": config.endpoint,
        "per_doc": (1, *config.per_doc),
        "max_documents": documents,
        "retrievers": trained,
        "choose": len(trained) > 1,
        "untrained": [name for name in further if name not in trained],
        "trained_layers": config.trained_layers or None,
        "seeds": (*range(config.seeds),),
        "keep": config.keep,
        "name": f"Test on {title}",
    }

    return read_plan(OWN_DATA, changes)
