"""Queries for documents: a preview of one document, a run over the corpus, import of what exists."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from cdp import jobs, query_sets
from cdp.base.config import BM25, FilterConfig, MiningConfig, RoundTripConfig, SynthesisConfig
from cdp.base.errors import SHOWN_PROBLEMS, CdpError, ConfigError
from cdp.base.failures import Failures
from cdp.base.text import checked_title
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.complexity import count_content_words
from cdp.corpus import load_manifest, resolve_corpus
from cdp.corpus.origin import KIND_OF, described
from cdp.evaluation import bm25
from cdp.jobs import DeviceRequest, JobView
from cdp.llm.answers import Usage
from cdp.llm.prices import Price, load_price, price_file
from cdp.metrics import self_bleu
from cdp.query_sets import ImportOptions, QuerySet, measured
from cdp.query_sets.measured import QueryScores
from cdp.query_sets.nonsense import format_mix, query_format
from cdp.retrievers import resolve
from cdp.services import access, clusters, completeness, corpora, evaluation, metrics, projects, synthesis
from cdp.services.access import Action, require
from cdp.synthesis.generators import GENERATORS, make_generator
from cdp.synthesis.methods import METHODS, method_of
from cdp.synthesis.preview import Shown, needs_process, previews, previews_in_process

WORKER = "cdp.workers.synthesis"


@dataclass(frozen=True)
class Preview:
    """The queries that one method gives for one document, and what they look like.

    ``self_bleu`` is None for fewer than two queries. ``problems`` are sentences on what was wrong with the answer.
    ``cost`` is in US dollars, None where the model has no price. ``sources`` are the queries behind those of a
    reasoning method. ``error`` says why this method failed on this document, ``traceback`` where in our code.
    """

    method: str
    queries: list[str]
    cw: list[int]
    self_bleu: float | None
    problems: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    prompt: str = ""
    formats: list[str] = field(default_factory=list)
    mix: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cost: float | None = None
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    error: str = ""
    traceback: str = ""

    @property
    def tokens_per_query(self) -> float | None:
        """Output tokens as the endpoint counted them; None where nothing was asked."""
        tokens = self.usage.get("output_tokens", 0)
        return tokens / len(self.queries) if tokens and self.queries else None

    @property
    def latency_s(self) -> float | None:
        """Seconds per request; None where nothing was asked."""
        requests = self.usage.get("requests", 0)
        return self.seconds / requests if requests else None


def preview(
    workspace: Workspace,
    corpus: str,
    document_id: str,
    *,
    methods: Sequence[str] = ("diverse", "paraphrase"),
    per_doc: int = 5,
    generator: str = "template",
    api_key: str = "",
    **settings: Any,
) -> dict[str, Preview]:
    """The queries of each method for one document, without storing anything.

    ``settings`` are further fields of SynthesisConfig (model, base_url, temperature …). What needs torch runs in a
    process of its own, whose model is loaded for this call and gone after it.
    """
    if not methods:
        raise ConfigError("No method is named.", hint=f"There is: {', '.join(METHODS)}.")
    manifest = resolve_corpus(workspace, corpus)
    values = {**settings, "corpus": manifest.id, "per_doc": per_doc, "generator": generator, "method": methods[0]}
    config = access.checked(workspace, SynthesisConfig.from_dict(values))
    if GENERATORS[generator].is_llm or needs_process(config, methods):
        require(Action.ASK)
    endpoint = access.endpoint_for(config.to_dict(), api_key)
    config = config.replace(base_url=endpoint.url or config.base_url)
    document = corpora.document(workspace, manifest.id, document_id)
    ask = previews_in_process if needs_process(config, methods) else previews
    price = load_price(config.model_name, price_file(workspace)) if GENERATORS[generator].endpoint else None
    shown = ask(workspace, config, methods, document.id, api_key=endpoint.key)
    language = manifest.counted_language
    described = {}
    for name, answer in shown.items():
        template = name if generator == "template" and not answer.sources else ""
        with Failures(unit="method").item(name, "\n".join(answer.queries)) as attempt:
            problem_notes = synthesis.problems(
                answer.problems, queries=len(answer.queries), template=template, document=document
            )
            method = METHODS.get(name)
            prompt = method.template if method is not None else config.prompt
            problem_notes += synthesis.flagged(answer.queries, document.content, prompt)
            described[name] = _described(name, answer, language, price, problem_notes)
        if attempt.failed:
            n = len(answer.queries)
            described[name] = Preview(name, answer.queries, [0] * n, None, formats=["?"] * n, error=attempt.reason)
    return described


def _described(name: str, shown: Shown, language: str, price: Price | None, problems: list[str]) -> Preview:
    """What came out, with what can be told of it at once."""
    queries = shown.queries
    return Preview(
        method=name,
        queries=queries,
        cw=count_content_words(queries, language).tolist() if queries else [],
        self_bleu=self_bleu(queries) if len(queries) > 1 else None,
        problems=problems,
        usage=shown.usage,
        prompt=shown.prompt,
        formats=[query_format(query) for query in queries],
        mix=format_mix(queries),
        seconds=shown.seconds,
        cost=price.cost(Usage(**shown.usage)) if price and shown.usage.get("requests") else None,
        notes=shown.notes,
        sources=shown.sources,
        error=shown.error,
        traceback=shown.traceback,
    )


@access.runs
def generate(
    workspace: Workspace,
    config: SynthesisConfig,
    *,
    api_key: str = "",
    tokens_per_query: float | None = None,
    latency_s: float | None = None,
) -> str:
    """Start writing queries for a corpus; the job's id. The key travels in the worker's environment only.

    What the run is expected to cost is kept with the job, to stand beside what it did cost.
    """
    checked = synthesis.resolved(workspace, config)
    manifest = load_manifest(workspace, checked.corpus)
    method = method_of(checked)
    endpoint = access.endpoint_for(checked.to_dict(), api_key)
    # The job's record says where its documents were sent.
    checked = checked.replace(base_url=endpoint.url or config.base_url)
    make_generator(checked, api_key=endpoint.key)
    expected = synthesis.estimate(workspace, checked, tokens_per_query=tokens_per_query, latency_s=latency_s)
    local = bool(method.generator) or GENERATORS[checked.generator].local
    return jobs.submit(
        workspace,
        kind="synthesis",
        name=checked.name or f"{manifest.name} {method.name} {checked.per_doc}",
        module=WORKER,
        config=checked.to_dict(),
        inputs={
            "corpus": manifest.id,
            "corpus_hash": manifest.content_hash,
            "prompt_hash": method.prompt_hash,
            "estimate": synthesis.for_spec(expected),
            **({"source": checked.source} if checked.source else {}),
        },
        device=clusters.request(workspace, checked.gpus) if local else jobs.DeviceRequest.light(),
        env_secrets=endpoint.environment,
    )


@access.writes
def import_file(
    workspace: Workspace, path: str | Path, corpus: str, *, name: str = "", options: ImportOptions | None = None
) -> query_sets.ImportedQueries:
    """Import queries that exist: JSONL, JSON, CSV, TSV, or a BEIR folder whose qrels lead to the corpus's documents.

    ``options`` say which fields hold what, the encoding, and which split of a BEIR folder is meant. The set is
    measured too: a large one in the background.
    """
    manifest = resolve_corpus(workspace, corpus)
    with disk_faults_told("The import"):
        source = access.to_read(workspace, path)
        done = query_sets.import_queries(source, workspace, manifest.id, name=checked_title(name), options=options)
    measure(workspace, done.query_set.id)
    return done


@access.writes
def measure(workspace: Workspace, query_set: str) -> None:
    """Measure a set that was imported, a large one in the background. What cannot be measured is imported all the same,
    and the page says why."""
    with contextlib.suppress(CdpError):
        if metrics.quick_at_once(workspace, query_set) is None:
            metrics.start_quick(workspace, query_set)


@access.writes
def describe(
    workspace: Workspace, query_set: str, origin: str, *, model: str = "", prompt: str = "", licence: str = ""
) -> QuerySet:
    """Say who wrote an imported set: human, llm (with its model and prompt) or unknown, and under which licence.

    ConfigError for a set that was written here: what wrote it is known.
    """
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    if not resolved_set.imported:
        raise ConfigError(
            f"{resolved_set.name} was not imported: it was written by {resolved_set.written_by}.",
            hint="Only of imported queries is it not known here who wrote them.",
        )
    return query_sets.update(
        workspace, resolved_set.id, **described(origin, model, prompt, licence, resolved_set.parameters)
    )


@access.writes
def best(workspace: Workspace, query_set: str, keep: int, *, name: str = "") -> tuple[QuerySet, int]:
    """InPars' filter: a new set of the ``keep`` queries of the highest mean token log-probability, over all documents;
    and how many queries had none and could not take part.

    Equal ones are taken in the corpus's order. ConfigError where no query has a log-probability, or there are fewer.
    """
    source = query_sets.resolve_query_set(workspace, query_set)
    ranked: list[tuple[float, int, int]] = []
    without = 0
    for at, line in enumerate(query_sets.iter_lines(workspace, source.id)):
        logprobs = line.get("logprobs") or [None] * len(line["queries"])
        ranked += [(-value, at, position) for position, value in enumerate(logprobs) if value is not None]
        without += sum(value is None for value in logprobs)
    if not ranked:
        raise ConfigError(
            f"No query of {source.name} has a log-probability, so the best cannot be told.",
            hint="Write them with logprobs=yes, at an endpoint that gives log-probabilities; some leave them out.",
        )
    if not 1 <= keep <= len(ranked):
        raise ConfigError(f"{keep:,} queries cannot be kept of {len(ranked):,} that have a log-probability.")
    chosen = {(at, position) for _, at, position in sorted(ranked)[:keep]}
    selected = (
        (line["document_id"], [text for position, text in enumerate(line["queries"]) if (at, position) in chosen])
        for at, line in enumerate(query_sets.iter_lines(workspace, source.id))
    )
    title = name or f"{source.name}, best {keep}"
    with disk_faults_told("The selection"):
        selection = query_sets.import_queries(
            ((document, texts) for document, texts in selected if texts),
            workspace,
            source.corpus_id,
            title,
            kind=source.kind,
            method=source.method,
            language=source.language,
        ).query_set
    changes = {"generator": source.generator, "model": source.model, "prompt_hash": source.prompt_hash}
    parameters = {**source.parameters, "best_of": source.id, "kept": keep}
    return query_sets.update(workspace, selection.id, **changes, licence=source.licence, parameters=parameters), without


def origin_of(query_set: QuerySet) -> str:
    """What ``describe`` would be told to leave an imported set as it is: human, llm or unknown."""
    return {kind: origin for origin, kind in KIND_OF.items()}[query_set.kind]


def references(sets: Sequence[QuerySet]) -> dict[str, str]:
    """What may serve as the human queries of a comparison, by id, with a name that says what is not known: sets by
    people first, then those of unknown origin."""
    human = {q.id: q.name for q in sets if q.kind == "human"}
    return human | {q.id: f"{q.name} (origin unknown)" for q in sets if q.kind == "unknown" and q.method != "reasoning"}


def list_query_sets(workspace: Workspace, *, corpus: str = "") -> list[QuerySet]:
    """All query sets, newest first; only those of one corpus if it is named, by its id, name or unique beginning."""
    counted_sets = [completeness.with_counts(workspace, q) for q in query_sets.list_query_sets(workspace)]
    if not corpus or any(q.corpus_id == corpus for q in counted_sets):
        return [q for q in counted_sets if corpus in ("", q.corpus_id)]
    only = resolve_corpus(workspace, corpus).id
    return [q for q in counted_sets if q.corpus_id == only]


def show(workspace: Workspace, query_set: str) -> QuerySet:
    """The query set of that id, name or unique beginning; of one that is not whole, with what is there now."""
    return completeness.with_counts(workspace, query_sets.resolve_query_set(workspace, query_set))


@dataclass(frozen=True)
class QuerySetFailures:
    """What a query set lacks: how many documents without queries or with too few (of an import: rejected rows), and
    the first 20 of them, each with its ``reason`` and, where an LLM was asked, its ``raw`` answers."""

    n: int
    first: list[dict[str, Any]]


def failures(workspace: Workspace, query_set: str) -> QuerySetFailures:
    """What went wrong for a query set; NotFoundError if there is no such set."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    lines = query_sets.iter_failures(workspace, resolved_set.id)
    first = list(islice(lines, SHOWN_PROBLEMS))
    return QuerySetFailures(len(first) + sum(1 for _ in lines), first)


def page(workspace: Workspace, query_set: str, offset: int = 0, limit: int = 20) -> list[tuple[str, list[str]]]:
    """Documents and their queries, ``limit`` of them from the one at ``offset``."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    lines = islice(query_sets.iter_lines(workspace, resolved_set.id), offset, offset + limit)
    return [(line["document_id"], line["queries"]) for line in lines]


@access.writes
def delete(workspace: Workspace, query_set: str) -> None:
    """Remove a query set. What was trained on it stays. ConfigError while a job writes it or needs it."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    projects.check_unused(workspace, f"The query set {resolved_set.name}", resolved_set.id)
    query_sets.delete(workspace, resolved_set.id)


RANK_WORKER, RANK_KIND = "cdp.workers.round_trip", "round-trip"
MINING_WORKER, MINING_KIND = "cdp.workers.mining", "mining"
FILTER_WORKER, FILTER_KIND = "cdp.workers.filtering", "filter"


@access.runs
def start_round_trip(workspace: Workspace, query_set: str, by: str = BM25, *, gpus: int | None = None) -> str:
    """Measure at which rank each query finds its document; the job's id, that of one at work on it where there is one.

    ``by`` is bm25, bm25:<language> or a retriever. NotFoundError for a set or model that there is not.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    values = {"query_set": named.id, "by": by, "gpus": gpus}
    config = access.checked(workspace, RoundTripConfig.from_dict(values))
    _check_model(workspace, config.by)
    running = measuring(workspace, named.id, config.by)
    if running is not None and running.active:
        return running.id
    return jobs.submit(
        workspace,
        kind=RANK_KIND,
        name=f"Round trip of {named.name} by {config.by}",
        module=RANK_WORKER,
        config=config.to_dict(),
        inputs={"query_set": named.id, "query_set_hash": query_sets.state(workspace, named)},
        device=_device(workspace, config.by, config.gpus),
    )


def measuring(workspace: Workspace, query_set: str, by: str) -> JobView | None:
    """The newest job that was started to measure the ranks of this set by this; None if there was none."""
    views = jobs.list_jobs(workspace, [RANK_KIND])
    wanted = (query_set, by)
    return next((v for v in views if (v.config.get("query_set"), v.config.get("by")) == wanted), None)


def round_trips(workspace: Workspace, query_set: QuerySet) -> dict[str, QueryScores]:
    """The round-trip ranks of the set as it is now, by what looked for the documents, BM25 first, then the newest."""
    scores = measured.list_scores(workspace, query_set, measured.ROUND_TRIP)
    by = {item.by: item for item in scores}
    return {name: by[name] for name in sorted(by, key=lambda name: name != BM25)}


def made_from(workspace: Workspace, query_set: QuerySet) -> list[QuerySet]:
    """The sets that were made from this one, the newest first."""
    return [q for q in query_sets.list_query_sets(workspace) if q.parameters.get("made_from") == query_set.id]


@access.runs
def start_filter(workspace: Workspace, config: FilterConfig) -> str:
    """Make a set without the queries that fail the filter's tests; the job's id. ConfigError for an incomplete set."""
    named = _whole(workspace, config.query_set, "A filter takes whole sets.")
    config = checked(workspace, config.replace(query_set=named.id))
    return jobs.submit(
        workspace,
        kind=FILTER_KIND,
        name=f"Filter {named.name}: {config.text}",
        module=FILTER_WORKER,
        config=config.to_dict(),
        inputs={"query_set": config.query_set},
        device=_device(workspace, "" if config.cross_encoder else config.by, config.gpus),
    )


@access.runs
def start_mining(workspace: Workspace, config: MiningConfig) -> str:
    """Make a copy of a set that names hard negatives for its queries; the job's id.

    ConfigError for a set that is not whole, or a model that does not fit its role.
    """
    named = _whole(workspace, config.query_set, "Hard negatives are mined for whole sets.")
    if find_spec("datasets") is None:
        raise ConfigError("Mining hard negatives needs datasets, which is not installed.", hint="pip install datasets")
    config = config.replace(query_set=named.id)
    resolve(access.model(workspace, config.retriever), workspace)
    if config.cross_encoder:
        evaluation.check_cross_encoder(workspace, config.cross_encoder)
    return jobs.submit(
        workspace,
        kind=MINING_KIND,
        name=f"Hard negatives for {named.name}",
        module=MINING_WORKER,
        config=config.to_dict(),
        inputs={"query_set": named.id},
        device=_device(workspace, config.retriever, config.gpus),
    )


def checked(workspace: Workspace, config: FilterConfig) -> FilterConfig:
    """The filter, whose models are there and may be used. NotFoundError or ConfigError where they are not."""
    config = access.checked(workspace, config)
    if config.round_trip_rank is not None:
        _check_model(workspace, config.by)
    if config.cross_encoder:
        evaluation.check_cross_encoder(workspace, config.cross_encoder)
    return config


def _whole(workspace: Workspace, name: str, why: str) -> QuerySet:
    """The query set of this id or name; ConfigError with ``why`` unless it is whole."""
    query_set = query_sets.resolve_query_set(workspace, name)
    lacking = completeness.check(workspace, query_set)
    if not lacking.complete:
        raise ConfigError(f"{lacking.sentence} {why}", hint=lacking.next_step)
    return query_set


def _check_model(workspace: Workspace, by: str) -> None:
    """NotFoundError or ConfigError for what cannot look for documents."""
    language = bm25.language_in(by)
    if language is None:
        resolve(access.model(workspace, by), workspace)
    else:
        bm25.check_language(language)


def _device(workspace: Workspace, by: str, gpus: int | None) -> DeviceRequest:
    """BM25 keeps no device busy for long; a model takes a GPU where there is one."""
    lexical = bm25.language_in(by) is not None
    return DeviceRequest.light() if lexical else clusters.request(workspace, gpus, at_most=1)
