"""Judging by a model or people: settings, price and sentence before, who writes target queries, judging again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base import actions
from cdp.base.config import PEOPLE, EndpointSettings, Judge, JudgeConfig
from cdp.base.errors import CdpError, ConfigError, InputError, NotFoundError
from cdp.base.records import fields, whole
from cdp.base.text import counted, duration, estimate_tokens
from cdp.base.workspace import Workspace, checked_name, sha256_text, slug, write_json
from cdp.benchmarks import judged, manifests, resolve_benchmark
from cdp.benchmarks.beir_files import read_queries
from cdp.benchmarks.benchmark import part
from cdp.complexity import query_log
from cdp.complexity.query_log import QueryLog
from cdp.corpus import resolve_corpus
from cdp.evaluation import judging
from cdp.evaluation.labelling import ANSWERS_OF, NOTHING, PACE, UNDO, LabelTask, pool_of
from cdp.llm import address
from cdp.llm.answers import Usage
from cdp.llm.prices import Price, dollars, price_of, priced
from cdp.retrievers import bm25, sending
from cdp.retrievers.sending import Sending
from cdp.services import access, decide, jobs
from cdp.studies import records, target_queries
from cdp.synthesis import targets
from cdp.synthesis.methods import own_method
from cdp.synthesis.pricing import Estimate, estimate

# Of a target query before it is written: the prompt's three kinds have 12 words on average.
TARGET_TOKENS = 20


@dataclass(frozen=True)
class JudgePlan:
    """What a judge's job will send, before it starts. ``cost`` is an upper bound; None: the model has no price.

    ``queries`` is empty where a model writes them, which ``writing`` estimates; ``embedding`` is what retrievers behind
    an API are sent.
    """

    config: JudgeConfig
    n_queries: int
    queries: tuple[str, ...]
    log: QueryLog | None
    pairs: int
    price: Price | None
    cost: float | None
    warnings: tuple[str, ...]
    writing: Estimate | None = None
    embedding: tuple[Sending, ...] = ()

    @property
    def sentence(self) -> str:
        """Which text goes where, at which price."""
        queries = counted(self.n_queries, "query", "queries")
        writes = f"{writer_of(self.config)} writes {queries}"
        judges = f"{self.config.endpoint.model_name} judges at most {self.pairs:,} pairs"
        place, writing = "stay on this machine", self.writing
        if self.config.endpoint.by_people:
            takes = f"{duration(self.pairs * PACE)} at {PACE} s each"
            judges = f"people label at most {self.pairs:,} pairs, {takes}, in as many sittings as they like"
        if not self.config.endpoint.local:
            place = f"are sent to {self.config.endpoint.base_url}"
            judges += f", {priced(self.cost, self.price, 'at most')}"
            if writing is not None:
                writes += f", {priced(writing.cost, writing.price, 'about')}"

        parts = [sending.sentence for sending in self.embedding]
        if writing is not None:
            parts.insert(0, f"{counted(writing.n_documents, 'document')} {place}: {writes}.")

        return " ".join([*parts, f"The {queries} and the passages found for each {place}: {judges}."])


def writer_of(config: JudgeConfig) -> str:
    """Return the model that writes the target queries where none are given."""
    return config.writer or config.endpoint.model_name


@access.reads
def plan(workspace: Workspace, config: JudgeConfig, api_key: str = "") -> JudgePlan:
    """Return what a job with these settings sends where. Raises ConfigError and InputError as the job would."""
    config, queries, log = _resolved(workspace, config)
    endpoint = access.endpoint_for(config.to_dict(), api_key)
    config = config.replace(base_url=endpoint.url or config.endpoint.base_url)
    n, writing, sent = len(queries), None, list[Sending]()
    length = float(np.mean([estimate_tokens(query) for query in queries])) if queries else TARGET_TOKENS

    if config.benchmark:
        folder = _judged_folder(workspace, config.benchmark)
        documents = sending.of_benchmark(workspace, folder, config.endpoint.max_document_tokens)
        pairs = len(to_judge(workspace, config))
    else:
        documents = sending.of_corpus(workspace, config.corpus, config.endpoint.max_document_tokens)
        retrievers = config.retrievers
        dense = sum(bm25.language_in(name) is None for name in retrievers)
        # Each dense retriever is also fused where BM25 is there.
        rankings = len(retrievers)
        if dense < rankings:
            rankings += dense

        if config.writes:
            n = min(config.limit or 0, targets.KINDS * documents.n)
            asked = targets.documents_for(config.limit or documents.n, documents.n)
            writing = estimate(workspace, config.writing(targets.PROMPT, targets.KINDS, asked))

        pairs = n * min(config.depth * rankings, documents.n)
        sent = sending.sendings(workspace, retrievers, [documents, sending.Texts(n, length)])

    read = round(pairs * (estimate_tokens(judging.TEMPLATE) + length + documents.mean))
    usage, model = Usage(read, pairs * judging.ANSWER_TOKENS, pairs), config.endpoint.model_name
    local = config.endpoint.local
    price = None if local else price_of(workspace, model)
    cost = price.cost(usage) if price else None
    if local:
        cost = 0.0
    warnings = tuple(_warnings(workspace, config, model, log))

    return JudgePlan(config, n, tuple(queries), log, pairs, price, cost, warnings, writing, tuple(sent))


def to_judge(workspace: Workspace, config: JudgeConfig) -> set[tuple[str, str]]:
    """Return the pairs (query, document) that a benchmark which was judged before still lacks: those of the first ten
    of evaluations and studies, and the pool's where people alone judged it and a model is to."""
    folder = _judged_folder(workspace, config.benchmark)
    found = [run for name in config.runs for run in records.retrieved(workspace.job(name), folder)]
    if not judged.by_people(folder):
        return judged.missing(judged.grades_of(folder), *found)

    pool = judged.read_pool(folder)
    lacking = judged.missing(pool, *found)
    if not config.endpoint.by_people:
        lacking.update((query, document) for query, documents in pool.items() for document in documents)
    return lacking


def _warnings(workspace: Workspace, config: JudgeConfig, model: str, log: QueryLog | None) -> list[str]:
    found = []
    by = config.written_by
    if by == model != PEOPLE:
        wrote = "writes these queries and judges" if config.writes else "wrote these queries and judges"
        found.append(f"{model} {wrote} them: it may prefer the documents it wrote them from.")

    own = own_method(targets.PROMPT).prompt_hash
    sets = query_sets.list_query_sets(workspace) if config.writes else []

    trained = [q.name for q in sets if (q.corpus_id, q.model) == (config.corpus, by) and q.prompt_hash != own]
    if trained:
        found.append(
            f"{by} also wrote training queries of these documents ({', '.join(trained[:3])}): what is trained on them "
            "has an advantage here. Set writer to another model."
        )

    if log is not None and log.personal:
        kinds = ", ".join(f"{n:,} × {kind}" for kind, n in Counter(log.personal.values()).items())
        found.append(f"Hints of personal data in the queries ({kinds}): {', '.join(list(log.personal)[:3])}.")

    return found


def _resolved(workspace: Workspace, config: JudgeConfig) -> tuple[JudgeConfig, list[str], QueryLog | None]:
    """Return the settings with ids and names, the target queries, and the log that they were drawn from."""
    if config.benchmark:
        folder = _judged_folder(workspace, config.benchmark)
        alone, model = judged.by_people(folder), judged.judge_of(folder)
        if config.runs and config.endpoint == Judge():  # nothing is said of the judge
            config = config.replace(**_judge_before(folder))
        if config.endpoint.by_people and not alone:
            raise ConfigError(f"{model} judged {folder.name}.", hint=f"Label its queries: {_label(folder.name)}.")

        if not (lacking := {query for query, _ in to_judge(workspace, config)}):
            hint = f"Label what is left: {_label(folder.name)}." if alone else "There is nothing to judge."
            raise ConfigError(f"Every document of their first ten is {'pooled' if alone else 'judged'}.", hint=hint)

        queries = [line.text for query, line in read_queries(part(folder, "queries")).items() if query in lacking]
        name = folder.name
        if alone and not config.endpoint.by_people:  # what people judged alone stays as it is
            own = config.name if config.name != folder.name else ""
            name = checked_name(own or f"{folder.name}-{slug(config.endpoint.model_name)}")
        return config.replace(benchmark=folder.name, name=name), queries, None

    corpus = resolve_corpus(workspace, config.corpus)
    name = checked_name(config.name or f"{slug(corpus.name, fallback='documents')}-judged")

    config = config.replace(corpus=corpus.id, name=name)
    if config.writes:
        return config.replace(written_by=writer_of(config)), [], None

    texts, writer = _queries(workspace, config.queries, config.query_field)

    log = query_log.distinct(texts)
    if not log.queries:
        raise InputError("There is no query in it.", hint=target_queries.PLAIN)

    language, limit = corpus.counted_language, config.limit or len(log.queries)
    queries = query_log.sample(log.queries, limit, language=language, seed=config.seed)

    return config.replace(written_by=config.written_by or writer), queries, log


def _queries(workspace: Workspace, source: str, column: str) -> tuple[list[str], str]:
    """Return the texts of a file or a query set, and who wrote them."""
    try:
        found = query_sets.resolve_query_set(workspace, source)
    except NotFoundError:
        found = None
    # A file wins: the beginning of a set's id would be enough to name that.
    if found is None or (source != found.id and Path(source).is_file()):
        return target_queries.read_queries(source, column), PEOPLE
    texts: list[str] = []
    for document in query_sets.read_queries(workspace, found.id):
        texts += document.queries

    return texts, found.model or found.generator or PEOPLE


def _judged_folder(workspace: Workspace, name: str) -> Path:
    folder = judged.whole(resolve_benchmark(name, workspace))
    by_model = judged.judge_of(folder) and judged.is_judged(folder)
    if not (by_model or judged.by_people(folder)):
        raise ConfigError(f"{name} was not judged here.", hint="Make one: benchmarks judge --corpus ID.")
    return folder


def _label(name: str) -> str:
    """The command that labels a benchmark."""
    return f"benchmarks label {name} --by YOU"


@access.runs
def start(workspace: Workspace, config: JudgeConfig, *, api_key: str = "", after: Sequence[str] = ()) -> str:
    """Submit a judging job; return its id. ConfigError for a name that another benchmark has.

    ``after`` are runs that end first: only then is known what is to be judged.
    """
    if after:
        return jobs.start(workspace, "judging", config, api_key=api_key, after=after)
    planned = plan(workspace, config, api_key)
    config = planned.config
    inputs: dict[str, Any] = {"estimate": {"cost": planned.cost, "pairs": planned.pairs}}
    if planned.queries:
        inputs["queries"] = sha256_text(*planned.queries)
    if planned.queries and not config.benchmark:
        config = config.replace(queries=keep_queries(workspace, config.corpus, planned.queries))
    return jobs.start(workspace, "judging", config, api_key=api_key, inputs=inputs)


_LAST_GIVEN = fields(queries=str)


@access.writes
def keep_queries(workspace: Workspace, corpus: str, queries: Sequence[str]) -> str:
    """Keep the drawn target queries, also as those that were last given for a corpus; return their file."""
    # By the hash of their text: a file that changes meanwhile changes no job.
    saved = decide.save(workspace, "\n".join(queries))
    write_json(workspace.root / decide.FOLDER / f"{corpus}.json", {"queries": saved})
    return str(workspace.root / decide.FOLDER / f"{saved}.txt")


def given_before(workspace: Workspace, corpus: str) -> tuple[str, list[str]]:
    """Return the file of the target queries that were last given for a corpus, and these; ("", []) without any."""
    last = whole(_LAST_GIVEN, workspace.root / decide.FOLDER / f"{corpus}.json") or {}
    text = decide.load(workspace, str(last.get("queries", "")))
    if not text:
        return "", []

    return str(workspace.root / decide.FOLDER / f"{last['queries']}.txt"), text.splitlines()


def judged_name(workspace: Workspace, name: str) -> str:
    """Return the benchmark that was judged here of which this is one or a sample; empty where there is none."""
    with suppress(CdpError):
        return _judged_folder(workspace, name).name
    return ""


def repeated(workspace: Workspace, name: str, runs: Sequence[str]) -> JudgeConfig:
    """Return the settings that judge what further runs found, or pool it for people, as the benchmark was judged."""
    folder = _judged_folder(workspace, name)
    named = {"name": folder.name, "benchmark": folder.name, "runs": [*runs]}
    return JudgeConfig.from_dict({**_judge_before(folder), **named})


def _judge_before(folder: Path) -> dict[str, Any]:
    """The settings of who judged a benchmark."""
    source = manifests.read(folder).source
    return {key: source[key] for key in ("generator", "model", "base_url", "depth") if source.get(key)}


@dataclass(frozen=True)
class Closing:
    """How what a test newly finds is judged after it: its settings and key, or None and why people have to start it."""

    sentence: str
    config: JudgeConfig | None = None
    key: str = ""


@access.reads
def closing(
    workspace: Workspace, name: str, left: float, writer: EndpointSettings, key: str = "", run: str = "later"
) -> Closing:
    """Return how the documents that a test ``run`` finds beyond this benchmark's pool are judged, for at most ``left``
    US dollars. ``key`` was typed for the endpoint of ``writer``."""
    config = repeated(workspace, name, [run])
    judge = config.endpoint.model_name
    if config.endpoint.by_people:
        return Closing(
            "What the trainings newly find joins the pool: people label it before the answer is whole.", config
        )
    if config.endpoint.local:
        return Closing(f"{judge} then judges here what the trainings newly find.", config)

    unasked = f"What the trainings newly find is not judged unasked: {judge}"
    if left <= 0:
        return Closing(f"{unasked} has no budget left.")
    if price_of(workspace, judge) is None:
        return Closing(f"{unasked} has no price here, so no budget can be kept.")
    try:
        same = address.same(address.address(writer.base_url), address.address(config.endpoint.base_url))
        endpoint = access.endpoint_for(config.to_dict(), key if same else "")
    except CdpError as error:
        return Closing(f"{unasked} cannot be asked. {error.message}")
    sentence = f"{judge} then judges what the trainings newly find, at {endpoint.url}, for at most {dollars(left)}."
    return Closing(sentence, config.replace(budget=left), key if same else "")


@access.writes
def label(workspace: Workspace, name: str, query: str, answers: Mapping[str, str], by: str) -> None:
    """Store a person's answers {document: word of ``ANSWERS_OF``} for one query: one action, which undo takes back."""
    folder, pool = pool_of(workspace, name)
    for document, answer in answers.items():
        if document not in pool.get(query, {}):
            raise ConfigError(f"{document} is not in the pool of {query}.")
        if answer not in ANSWERS_OF:
            raise ConfigError(f"{answer!r} is no answer.", hint=f"There is: {', '.join(ANSWERS_OF)}.")

    grades = {document: ANSWERS_OF[answer] for document, answer in answers.items()}
    judged.add_labels(folder, query, grades, actions.person(by))


@access.writes
def answer(workspace: Workspace, name: str, by: str, shown: LabelTask, word: str) -> None:
    """Store an answer about the first open document; ``NOTHING`` grades all open ones 0, ``UNDO`` takes back the last
    action."""
    if word == UNDO:
        undo(workspace, name, by)
    elif word == NOTHING:
        label(workspace, name, shown.query, {passage.id: "0" for passage in shown.open}, by)
    else:
        label(workspace, name, shown.query, {passage.id: word for passage in shown.open[:1]}, by)


@access.writes
def undo(workspace: Workspace, name: str, by: str) -> str:
    """Take back this person's last action; return its query, empty if there is none."""
    return judged.undo(pool_of(workspace, name)[0], actions.person(by))
