"""Whose judged queries decide a test: a benchmark's of the project, else people's of the corpus, else template queries.

Of the last two a small benchmark is made first: the corpus's documents, or a sample of them, and queries that nothing
is trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from cdp import jobs, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.records import Document
from cdp.base.text import counted
from cdp.base.workspace import Workspace, disk_faults_told, slug
from cdp.benchmarks import (
    BenchmarkInfo,
    choose_split,
    describe,
    library,
    list_benchmarks,
    load_benchmark,
    manifests,
    resolve_benchmark,
    subsets,
)
from cdp.complexity import LANGUAGES
from cdp.corpus import CorpusManifest, iter_documents, resolve_corpus
from cdp.corpus.documents import permutation
from cdp.jobs import JobView
from cdp.query_sets import QuerySet
from cdp.retrievers import PRESETS, resolve
from cdp.services import access, commands, job_words, leakage, projects, queries, studies
from cdp.services.synthesis import siblings
from cdp.studies.config import StudyConfig
from cdp.studies.estimate import DEFAULT_SPEEDS, SLOW, TYPICAL_CHARACTERS, Speed, StudyPlan
from cdp.studies.trial import Size, TrialConfig, judging_split, sized, study_of
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.training.plan import complete

BENCHMARK, HUMAN, TEMPLATE = "benchmark", "human", "template"

# Of larger benchmarks a sample judges: every training of a test encodes all of its texts.
MOST_QUERIES, MOST_DOCUMENTS = 300, 2_000

# At most this part of a corpus is held out for template queries.
HELD_OUT = 0.25

# Documents whose length is looked at.
SAMPLE = 200

# The training queries are written with seed 0.
SEED = 1

# The first seed of a test: it draws the documents that are trained on from its beginning.
DRAW = 0


@dataclass(frozen=True)
class JudgedBy:
    """What decides a test. ``kind`` is BENCHMARK, HUMAN or TEMPLATE; ``benchmark`` its name, ``there`` whether it is in
    the workspace already. ``of`` is the benchmark that it is a sample of, or the query set that its queries are from.
    The last ``held_out`` documents of the corpus's draw with ``DRAW`` are not trained on. ``notes`` say what has to be
    known, in sentences."""

    kind: str
    benchmark: str
    split: str
    n_queries: int
    n_documents: int
    there: bool
    of: str = ""
    held_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As a plan names it."""
        return f"{self.benchmark}:{self.split}"


def judged_by(workspace: Workspace, manifest: CorpusManifest, benchmark: str = "", split: str = "") -> JudgedBy:
    """What decides a test on a corpus. InputError for a benchmark that cannot be used."""
    info = _named(workspace, benchmark) if benchmark else _of_project(workspace, manifest)
    if info is not None:
        return _benchmark(info, split)
    human = _human(workspace, manifest)
    if human is not None:
        return _made(
            workspace,
            manifest,
            HUMAN,
            min(human.n_documents, MOST_QUERIES),
            of=human.id,
            note=f"No judged queries are there: {min(human.n_documents, MOST_QUERIES):,} of people's queries in "
            f"{human.name} are split off and decide. Do not train on them later.",
        )
    held_out = min(MOST_QUERIES, int(manifest.n_documents * HELD_OUT))
    if held_out < 2:
        raise ConfigError(
            f"{manifest.name} has {counted(manifest.n_documents, 'document')}, too few for a test without judgments.",
            hint="Bring a benchmark, or queries that people wrote for these documents.",
        )
    return _made(
        workspace,
        manifest,
        TEMPLATE,
        held_out,
        held_out=held_out,
        note=f"Neither judged queries nor people's are there, so template queries of {held_out:,} held-out documents "
        "decide. They are made of the documents' own words: the test shows that training works and what it takes, and "
        "says little of what people will ask.",
    )


def _named(workspace: Workspace, name: str) -> BenchmarkInfo:
    info = describe(resolve_benchmark(access.benchmark(workspace, name), workspace), workspace)
    if info.problem:
        raise InputError(f"{info.name} cannot be used: {info.problem}")
    return info


def _of_project(workspace: Workspace, manifest: CorpusManifest) -> BenchmarkInfo | None:
    """The benchmark of the corpus's project that has a dev split, else its first; of no project's one of the corpus's
    name."""
    index = projects.Index(workspace)
    own = {name for project in index.projects if manifest.id in project.corpora for name in project.benchmarks}
    usable = [info for info in list_benchmarks(workspace) if info.splits and not info.problem and not info.subset_of]
    candidates = [info for info in usable if info.name in own]
    candidates = candidates or [info for info in usable if slug(info.name) == slug(manifest.name)]
    made = {_name(manifest, kind) for kind in (HUMAN, TEMPLATE)}
    ranked = sorted(candidates, key=lambda info: (info.name in made, "dev" not in info.splits))
    # What was made for a test is no reason to pass over people's queries that came later.
    return next((info for info in ranked if info.name not in made), None)


def _benchmark(info: BenchmarkInfo, asked: str) -> JudgedBy:
    split, note = judging_split(info.splits, asked)
    split = choose_split(info, split)
    notes = [note] if note else []
    queries, documents = info.judged[split], info.n_documents
    if queries + documents <= MOST_QUERIES + MOST_DOCUMENTS or info.subset_of:
        return JudgedBy(BENCHMARK, info.name, split, queries, documents, True, notes=tuple(notes))
    n_queries, n_documents = min(queries, MOST_QUERIES), min(documents, MOST_DOCUMENTS)
    notes.append(
        f"A sample of {info.name} decides: {n_queries:,} of {queries:,} judged queries on {n_documents:,} of "
        f"{documents:,} documents. Scores are higher than on the whole; differences are what counts."
    )
    name = subsets.name_of(info.name, n_queries, n_documents, split)
    return JudgedBy(BENCHMARK, name, split, n_queries, n_documents, False, of=info.name, notes=tuple(notes))


def _human(workspace: Workspace, manifest: CorpusManifest) -> QuerySet | None:
    sets = query_sets.list_query_sets(workspace)
    return next((q for q in sets if q.corpus_id == manifest.id and q.kind == "human" and q.n_documents > 1), None)


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
    there = (workspace.benchmarks / name).is_dir()
    documents = min(manifest.n_documents, MOST_DOCUMENTS)
    return JudgedBy(kind, name, "dev", queries, documents, there, of, held_out, (note,))


def facts(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, protocol: str) -> dict[str, Any] | None:
    """What a plan needs to know of a benchmark that is not there yet; None for one that is."""
    if judged.there:
        return None
    if judged.kind == BENCHMARK:
        whole = load_benchmark(resolve_benchmark(judged.of, workspace), judged.split)
        texts, language = whole.queries[: judged.n_queries], whole.counted_language
    else:
        texts = [text for _, text in _queries(workspace, manifest, judged)]
        language = manifest.counted_language
    place = f"{judged.benchmark}/{judged.split}/{protocol}"
    return studies.benchmark_facts(judged.benchmark, judged.split, place, texts, judged.n_documents, language)


def leaks(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, sets: Sequence[str]) -> list[leakage.Leak]:
    """``leakage.find_leaks`` for what a test would be judged by, whether it is there or still to be made."""
    if judged.there or judged.kind == BENCHMARK:
        return leakage.find_leaks(workspace, sets, [(judged.of or judged.benchmark, judged.split)])
    texts = [text for _, text in _queries(workspace, manifest, judged)]
    return leakage.among(workspace, sets, texts, judged.benchmark, judged.split)


@access.writes
def make(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy) -> str:
    """Make the benchmark that decides, if it is not there, and take it into the corpus's project; its name."""
    if judged.there:
        return judged.benchmark
    if judged.kind == BENCHMARK:
        sizes = {"queries": judged.n_queries, "documents": judged.n_documents}
        subsets.sample(judged.of, workspace, **sizes, split=judged.split, called=judged.benchmark)
    else:
        pairs = list(_queries(workspace, manifest, judged))
        if len(pairs) < 2:
            raise InputError(f"{manifest.name} gives {len(pairs)} queries to decide by, too few for a test.")
        texts = {f"q{number}": text for number, (_, text) in enumerate(pairs)}
        qrels = {judged.split: {f"q{number}": {identifier: 1} for number, (identifier, _) in enumerate(pairs)}}
        documents = _documents(workspace, manifest, {identifier for identifier, _ in pairs}, judged.n_documents)
        about = manifests.Manifest(
            title=f"{manifest.name}, {judged.kind} queries",
            language=manifest.counted_language,
            source={"kind": "test", "queries": judged.kind, "corpus": manifest.id, "of": judged.of},
        )
        with disk_faults_told("The test's benchmark"):
            library.make(workspace, judged.benchmark, documents, texts, qrels, about)
    for project in projects.projects_of(workspace, "corpus", manifest.id):
        projects.add_members(workspace, project.id, benchmarks=[judged.benchmark])
    return judged.benchmark


def _documents(workspace: Workspace, manifest: CorpusManifest, wanted: Set[str], n: int) -> Iterator[Document]:
    """The wanted documents and the first others, ``n`` in all, in the corpus's order."""
    others = n - len(wanted)
    for document in iter_documents(workspace, manifest.id):
        if document.id not in wanted:
            others -= 1
            if others < 0:
                continue
        yield document


def _queries(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy) -> Iterator[tuple[str, str]]:
    """(document, query) of a benchmark that is to be made, one query of a document."""
    if judged.kind == HUMAN:
        lines = [(line["document_id"], line["queries"]) for line in query_sets.iter_lines(workspace, judged.of)]
        drawn = sorted((line for line in lines if line[1]), key=lambda line: _order(line[0]))[: judged.n_queries]
        yield from ((identifier, str(written[-1])) for identifier, written in drawn)
        return
    generator = TemplateGenerator(SEED)
    held_out = frozenset(permutation(manifest.n_documents, DRAW)[manifest.n_documents - judged.held_out :].tolist())
    for position, document in enumerate(iter_documents(workspace, manifest.id)):
        if position not in held_out:
            continue
        answer = generator.generate("", document, METHODS["diverse"], 1)
        if answer.queries:
            yield document.id, answer.queries[0]


def _order(identifier: str) -> bytes:
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class Trial:
    """A test before its start. ``seconds`` is all of it but an endpoint's answers, of which ``requests`` are needed;
    ``cost`` in US dollars, None where the model's price is not known. ``notes`` say what has to be known first."""

    config: TrialConfig
    size: Size
    judged: JudgedBy
    plan: StudyPlan
    seconds: float
    measured: bool
    requests: int
    cost: float | None
    notes: tuple[str, ...]
    documents_there: int

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "seconds": self.seconds,
            "measured": self.measured,
            "requests": self.requests,
            "cost": self.cost,
            "documents": self.size.documents,
            "judged_by": self.judged.name,
            "judged_kind": self.judged.kind,
            "notes": list(self.notes),
            "plan": self.plan.to_dict(),
        }


def last_generator(workspace: Workspace, corpus: str) -> dict[str, str]:
    """The generator that was used last for a corpus, else in its projects, else in the workspace, with its model and
    address; settings of ``TrialConfig``. Recorded queries come first: they are there. Empty where nothing was ever
    written."""
    offered = TrialConfig.settings()["generator"].choices
    if any(q.generator == "recorded" for q in queries.list_query_sets(workspace, corpus=corpus)):
        return {"generator": "recorded"}
    written = [view.config for view in jobs.list_jobs(workspace, ["synthesis"])]
    related = siblings(workspace, corpus)
    for config in sorted(written, key=lambda c: (c.get("corpus") != corpus, c.get("corpus") not in related)):
        if config.get("generator") in offered:
            return {name: str(config.get(name) or "") for name in ("generator", "model", "base_url")}
    return {}


@access.reads
def plan(workspace: Workspace, config: TrialConfig) -> Trial:
    """What the test would take: everything that can be wrong is found here, and nothing is started."""
    manifest = resolve_corpus(workspace, config.corpus)
    config = config.replace(corpus=manifest.id)
    judged = judged_by(workspace, manifest, config.benchmark, config.split)
    speed, epochs, measured = _pace(workspace, config.retriever)
    documents = manifest.n_documents - judged.held_out
    if documents < 2:
        raise ConfigError(f"{manifest.name} has {counted(manifest.n_documents, 'document')}, too few for a test.")
    there = GENERATORS[config.generator].endpoint or config.generator == "recorded"
    texts = judged.n_queries + judged.n_documents
    if not measured:  # the default speeds are those of a paragraph
        lengths = [len(document.content) for document in iter_documents(workspace, manifest.id, limit=SAMPLE)]
        length = max(1.0, sum(lengths) / len(lengths) / TYPICAL_CHARACTERS)
        speed = Speed(speed.pairs_per_second / length, speed.texts_per_second / length)
    size = sized(config, documents=documents, texts=texts, speed=speed, epochs=epochs, there=there)
    known = facts(workspace, manifest, judged, "published")
    study = _study(config, manifest, judged, size)
    study_plan = studies.plan(workspace, study, known=[known] if known else None)
    cost, requests = _cost(study_plan)
    notes = [*_foreign(manifest, config.retriever), *judged.notes]
    if cost is not None and cost > config.spend:
        fewer = max(2, int(size.documents * config.spend / cost * 0.95))
        size = replace(size, documents=fewer)
        study_plan = studies.plan(workspace, _study(config, manifest, judged, size), known=[known] if known else None)
        cost, requests = _cost(study_plan)
        notes.append(f"{fewer:,} documents are what {config.spend:g} US dollars allow.")
    if cost is None:
        notes.append(
            f"The price of {study.model_name} is not known here, so no budget can be kept: see the price table."
        )
    if requests:
        notes.append("The time of the endpoint's answers comes on top.")
    if not size.fits:
        notes.append(
            f"It does not fit into {config.minutes:g} minutes: every training is evaluated on {texts:,} texts."
        )
    if config.generator == "template":
        notes.append("The template generator stands in for an LLM: what a model's queries would gain may differ.")
    seconds = size.seconds if not study_plan.reused else min(size.seconds, study_plan.seconds or size.seconds)
    return Trial(
        config=config,
        size=size,
        judged=judged,
        plan=study_plan,
        seconds=seconds,
        measured=measured,
        requests=requests,
        cost=cost,
        notes=(*notes, *_of_queries(workspace, manifest, judged, study_plan)),
        documents_there=documents,
    )


def _of_queries(
    workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, study_plan: StudyPlan
) -> Iterator[str]:
    """What has to be known of the queries that are trained on: which documents they are for, and what is left out."""
    told = ("Queries that are missing", "has queries for the first", "are left out of the training")
    yield from (note for note in study_plan.notes if any(words in note for words in told))
    there = [source.query_set for source in study_plan.sources if source.query_set]
    if not judged.there:
        yield from map(studies.left_out, leaks(workspace, manifest, judged, there))
    if judged.held_out and there:
        yield (
            "Queries of earlier jobs are trained on, among them perhaps some for the documents that decide: such "
            "results are marked in-domain."
        )


def _foreign(manifest: CorpusManifest, retriever: str) -> Iterator[str]:
    """What has to be said of a retriever that never saw the corpus's language: its gains say little of another one."""
    preset = PRESETS.get(retriever)
    if preset is None or not preset.languages or manifest.main_language in (*preset.languages, "unknown"):
        return
    known, here = (
        LANGUAGES[code].name if code in LANGUAGES else code for code in (preset.languages[0], manifest.main_language)
    )
    yield (
        f"{retriever} was trained on {known} text alone and these documents are {here}: its scores will be low "
        "whatever it is trained on. For an answer that holds, choose a retriever that knows the language."
    )


def _study(
    config: TrialConfig, manifest: CorpusManifest, judged: JudgedBy, size: Size, priced: bool = False
) -> StudyConfig:
    return study_of(config, judged.name, size, name=f"Test on {manifest.name}", spend=priced)


def _cost(study_plan: StudyPlan) -> tuple[float | None, int]:
    costs = [generation.cost for generation in study_plan.generations]
    requests = sum(generation.requests for generation in study_plan.generations)
    return None if None in costs else sum(cost or 0.0 for cost in costs), requests


def _pace(workspace: Workspace, retriever: str) -> tuple[Speed, int, bool]:
    """(speed, epochs, whether the speed was measured here)."""
    resolved = resolve(access.model(workspace, retriever), workspace)
    epochs = complete(TrainingConfig.from_dict({"query_set": "any"}), resolved).epochs or 1
    own = studies.speeds(workspace).get(retriever)
    return own or DEFAULT_SPEEDS.get(retriever, SLOW), epochs, own is not None


@access.runs
def start(
    workspace: Workspace, config: TrialConfig, *, api_key: str = "", allow_leakage: bool = False
) -> studies.StudyStart:
    """Start the test as one study, after the jobs that write the queries it lacks. What decides is made first."""
    trial = plan(workspace, config)
    manifest = resolve_corpus(workspace, config.corpus)
    make(workspace, manifest, trial.judged)
    priced = bool(trial.requests) and trial.cost is not None
    study = _study(trial.config, manifest, trial.judged, trial.size, priced)
    return studies.run(workspace, study, api_key=api_key, allow_leakage=allow_leakage)


def trouble(workspace: Workspace, study: JobView) -> tuple[str, str]:
    """Return why a study that failed has no answer, or only a part of one, and what to do about it, in sentences."""
    try:
        report = studies.report(workspace, study.id)
    except CdpError:
        what, next_step, _ = job_words.failure(study)
        return what or "The test was cut off before its first training.", next_step or "Resume its job."
    first = f" The first failure: {report.failures[0][1]}" if report.failures else ""
    return (
        f"{report.finished:,} of {report.planned:,} trainings are done.{first}",
        "Resume its job to try the others again, or test with another model or fewer queries per document.",
    )


def running(workspace: Workspace, corpus: str) -> JobView | None:
    """The study of a corpus that is at work or waits, the newest; None without one."""
    at_work = [view for view in jobs.list_active(workspace) if view.kind == "study"]
    return next((view for view in at_work if view.config.get("corpus") == corpus), None)


def at_work(workspace: Workspace, study: JobView) -> JobView:
    """The job of a test that is at work: one that writes its queries, or the study itself."""
    before = jobs.load_spec(workspace, study.id).after
    return next((view for view in jobs.list_active(workspace) if view.id in before), study)


def command(config: TrialConfig) -> str:
    """``study test`` as it does the same."""
    values = {
        name: getattr(config, name)
        for name, setting in config.settings().items()
        if getattr(config, name) not in ("", setting.default)
    }
    return commands.line("study", "test", **values, yes=True, wait=True)
