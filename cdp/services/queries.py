"""Query sets: preview, start of writing, import, round trips, filter, mining, best by log-probability, leaving out
judged queries, batch files, exports, deletion."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cdp import jobs, query_sets
from cdp.base import permission
from cdp.base.config import BM25, FilterConfig, MiningConfig, RoundTripConfig, SynthesisConfig
from cdp.base.errors import SHOWN_PROBLEMS, CdpError, ConfigError
from cdp.base.failures import FailedItems
from cdp.base.permission import Action, require
from cdp.base.text import checked_title
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.complexity import count_content_words
from cdp.corpus import load_manifest, looking, resolve_corpus
from cdp.llm.answers import Usage
from cdp.llm.prices import price_of
from cdp.metrics import self_bleu
from cdp.query_sets import ImportOptions, QuerySet, deriving, exports
from cdp.query_sets.exports import EXPORTS, Export
from cdp.query_sets.store import DocumentQueries
from cdp.retrievers import api, bm25, leakage, resolve
from cdp.services import access, clusters, completeness, corpora, evaluation, metrics, projects
from cdp.synthesis import batch, pricing
from cdp.synthesis.batch import BatchResult
from cdp.synthesis.generators import GENERATORS, make_generator
from cdp.synthesis.methods import METHODS, OWN, method_of
from cdp.synthesis.preview import Shown, needs_process, previews, previews_in_process, problems
from cdp.synthesis.pricing import resolved
from cdp.synthesis.ranking import teachers_of


@dataclass(frozen=True)
class Preview(Shown):
    """The queries of one method for one document, with their measures.

    ``self_bleu`` is None for fewer than two queries, ``cost`` (US dollars) for a model without a price. ``problems``
    are sentences on the answer's faults.
    """

    method: str = ""
    cw: list[int] = field(default_factory=list)
    self_bleu: float | None = None
    problems: list[str] = field(default_factory=list)
    cost: float | None = None


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
    """Return the queries of each method for one document, without storing anything.

    ``settings`` are further fields of SynthesisConfig (model, base_url, temperature …). A generator that needs torch
    runs in a process of its own, with its model loaded for this call.
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
    document = looking.document(workspace, manifest.id, document_id)
    ask = previews_in_process if needs_process(config, methods) else previews
    price = price_of(workspace, config.model_name) if GENERATORS[generator].endpoint else None
    shown = ask(workspace, config, methods, document.id, api_key=endpoint.key)
    language = manifest.counted_language
    described = {}
    for name, answer in shown.items():
        queries = answer.queries
        template = name if generator == "template" and not answer.sources else ""
        described[name] = Preview(
            **vars(answer),
            method=name,
            cw=count_content_words(queries, language).tolist() if queries else [],
            self_bleu=self_bleu(queries) if len(queries) > 1 else None,
            problems=problems(answer.faults, queries=len(queries), document=document, template=template),
            cost=price.cost(Usage(**answer.usage)) if price and answer.usage.get("requests") else None,
        )
    return described


@access.runs
def generate(workspace: Workspace, config: SynthesisConfig, *, api_key: str = "") -> str:
    """Start writing queries for a corpus; return the job's id. The key travels in the worker's environment only.

    The expected cost is stored with the job, to be compared with the actual cost.
    """
    checked = pricing.resolved(workspace, config)
    manifest = load_manifest(workspace, checked.corpus)
    method = method_of(checked)
    endpoint = access.endpoint_for(checked.to_dict(), api_key)
    # The job's record says where its documents were sent.
    checked = checked.replace(base_url=endpoint.url or config.base_url)
    if method.generator == "ranking":
        teachers_of(checked)
    make_generator(checked, api_key=endpoint.key)
    expected = pricing.estimate(workspace, checked)
    local = bool(method.generator) or GENERATORS[checked.generator].local
    return jobs.submit(
        workspace,
        kind="synthesis",
        name=checked.name or f"{manifest.name} {method.name} {checked.per_doc}",
        module="cdp.workers.synthesis",
        config=checked.to_dict(),
        inputs={
            "corpus": manifest.id,
            "corpus_hash": manifest.content_hash,
            "prompt_hash": method.prompt_hash,
            "estimate": {n: getattr(expected, n) for n in ("requests", "input_tokens", "output_tokens", "cost")},
            **({"source": checked.source} if checked.source else {}),
        },
        device=clusters.request(workspace, checked.gpus) if local else jobs.DeviceRequest.light(),
        env_secrets=access.environment_for(checked.to_dict(), api_key),
    )


@access.writes
def import_file(
    workspace: Workspace, path: str | Path, corpus: str, *, name: str = "", options: ImportOptions | None = None
) -> query_sets.ImportedQueries:
    """Import and measure the queries of a JSONL, JSON, CSV or TSV file; ``options`` say which fields hold what."""
    manifest = resolve_corpus(workspace, corpus)
    with disk_faults_told("The import"):
        source = permission.to_read(workspace, path)
        done = query_sets.import_queries(source, workspace, manifest.id, name=checked_title(name), options=options)
    measure(workspace, done.query_set.id)
    return done


@access.writes
def measure(workspace: Workspace, query_set: str) -> None:
    """Measure a set that was imported. A set that cannot be measured is imported all the same; its page says why."""
    with contextlib.suppress(CdpError):
        metrics.quick(workspace, query_set)


@access.writes
def best(workspace: Workspace, query_set: str, keep: int, *, name: str = "") -> tuple[QuerySet, int]:
    """Make a set of the ``keep`` queries of the highest mean token log-probability (InPars' filter); return it and the
    number of queries without one.

    Ties are broken by the corpus's order. ConfigError if fewer queries have a log-probability.
    """
    source = query_sets.resolve_query_set(workspace, query_set)
    of_query: dict[str, float] = {}
    without = 0
    for line in query_sets.iter_lines(workspace, source.id):
        logprobs = line.get("logprobs") or [None] * len(line["queries"])
        without += logprobs.count(None)
        ids = (query_sets.query_id(line["document_id"], n) for n in range(1, len(logprobs) + 1))
        of_query |= {query: value for query, value in zip(ids, logprobs, strict=True) if value is not None}
    if not of_query:
        raise ConfigError(
            f"No query of {source.name} has a log-probability, so they cannot be ranked.",
            hint="Write them with logprobs=yes, at an endpoint that gives log-probabilities; some leave them out.",
        )
    if not 1 <= keep <= len(of_query):
        raise ConfigError(f"{keep:,} queries cannot be kept of {len(of_query):,} that have a log-probability.")
    chosen = set(sorted(of_query, key=lambda query: -of_query[query])[:keep])

    def stays(document: DocumentQueries) -> list[str | None]:
        return [text if query in chosen else None for query, text in document.with_ids()]

    facts = {"without": {"filter": f"best {keep} by log-probability", "queries": len(of_query) + without - keep}}
    with disk_faults_told("The selection"):
        made = deriving.derive(workspace, source, stays, name or f"{source.name}, best {keep}", facts)
    return made.query_set, without


@access.writes
def leave_out(
    workspace: Workspace, name: str, benchmark_splits: Iterable[tuple[str, str]], *, called: str = ""
) -> tuple[QuerySet, int]:
    """Return a copy of a query set without the queries that these (benchmark, split) places judge, and their number;
    the set itself and 0 if there are none."""
    # A model sometimes writes a benchmark's own query by chance: a few short ones in thousands.
    query_set = query_sets.resolve_query_set(workspace, name)
    chosen = [leakage.place(workspace, benchmark, split) for benchmark, split in dict.fromkeys(benchmark_splits)]
    judged = np.unique(np.concatenate([leakage.judged_keys(folder, split) for folder, split in chosen]))
    return query_sets.leave_out(
        workspace,
        query_set,
        lambda texts: leakage.any_known(leakage.keys(texts), judged).tolist(),
        called or f"{query_set.name} without judged queries",
        {"judged_by": [f"{folder.name}:{split}" for folder, split in chosen]},
    )


def unit(workspace: Workspace, corpus_ids: Iterable[str]) -> str:
    """Return what Q/Doc counts in these corpora: ``passage`` where files were cut, ``document`` elsewhere."""
    known = {manifest.id: manifest.unit for manifest in corpora.list_corpora(workspace)}
    return " or ".join(sorted({known.get(corpus, "document") for corpus in corpus_ids})) or "document"


def list_query_sets(workspace: Workspace, *, corpus: str = "") -> list[QuerySet]:
    """Return all query sets, newest first; only those of one corpus if its id, name or unique prefix is given."""
    listed = [completeness.check(workspace, q).query_set for q in query_sets.list_query_sets(workspace)]
    # An id in use needs no corpus: the sets of a deleted one are still listed.
    only = corpus if not corpus or any(q.corpus_id == corpus for q in listed) else resolve_corpus(workspace, corpus).id
    return [q for q in listed if only in ("", q.corpus_id)]


def show(workspace: Workspace, query_set: str) -> QuerySet:
    """Return the query set of that id, name or unique prefix; an incomplete one with its current counts."""
    return completeness.check(workspace, query_sets.resolve_query_set(workspace, query_set)).query_set


def failures(workspace: Workspace, query_set: str) -> FailedItems:
    """Return how many documents have no queries or too few (of an import: rejected rows), and the first of them.

    Each line has its ``reason`` and, if an LLM was asked, its ``raw`` answers. NotFoundError if there is no such set.
    """
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    lines = query_sets.iter_failures(workspace, resolved_set.id)
    first = tuple(islice(lines, SHOWN_PROBLEMS))
    return FailedItems(len(first) + sum(1 for _ in lines), {}, first)


def page(workspace: Workspace, query_set: str, offset: int = 0, limit: int = 20) -> list[tuple[str, list[str]]]:
    """Return ``limit`` documents with their queries, from the one at ``offset``."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    lines = islice(query_sets.iter_lines(workspace, resolved_set.id), offset, offset + limit)
    return [(line["document_id"], line["queries"]) for line in lines]


@access.writes
def delete(workspace: Workspace, query_set: str) -> None:
    """Delete a query set. Models trained on it stay. ConfigError while a job writes or needs it."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    projects.check_unused(workspace, f"The query set {resolved_set.name}", resolved_set.id)
    query_sets.delete(workspace, resolved_set.id)


RANK_KIND, FILTER_KIND = "round-trip", "filter"


@access.runs
def start_round_trip(workspace: Workspace, query_set: str, by: str = BM25, *, gpus: int | None = None) -> str:
    """Measure at which rank each query finds its document; return the job's id, or that of an active one.

    ``by`` is bm25, bm25:<language> or a retriever. Raises NotFoundError for an unknown set or model.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    config = access.checked(workspace, RoundTripConfig.from_dict({"query_set": named.id, "by": by, "gpus": gpus}))
    _check_retriever(workspace, config.by)
    for view in jobs.list_jobs(workspace, [RANK_KIND]):
        if view.active and (view.config.get("query_set"), view.config.get("by")) == (named.id, config.by):
            return view.id
    name, inputs = f"Round trip of {named.name} by {config.by}", {"query_set_hash": query_sets.state(workspace, named)}
    return _submit(workspace, RANK_KIND, "round_trip", name, config, config.by, inputs)


@access.runs
def start_filter(workspace: Workspace, config: FilterConfig) -> str:
    """Start a job that makes a set without the queries that fail the filter's tests; return its id.

    Raises ConfigError for an incomplete set, NotFoundError or ConfigError for an unfit model.
    """
    named = _whole(workspace, config.query_set, "A filter takes whole sets.")
    config = config.replace(query_set=named.id)
    if config.round_trip_rank is not None:
        _check_retriever(workspace, config.by)
    if config.cross_encoder:
        evaluation.check_cross_encoder(workspace, config.cross_encoder)
    by = "" if config.cross_encoder else config.by
    return _submit(workspace, FILTER_KIND, "filtering", f"Filter {named.name}: {config.text}", config, by)


@access.runs
def start_mining(workspace: Workspace, config: MiningConfig) -> str:
    """Start a job that makes a copy of a set with hard negatives for its queries; return its id.

    Raises ConfigError for an incomplete set, or a model that does not fit its role.
    """
    named = _whole(workspace, config.query_set, "Hard negatives are mined for whole sets.")
    config = config.replace(query_set=named.id)
    resolve(access.retriever(workspace, config.retriever), workspace)
    if config.cross_encoder:
        evaluation.check_cross_encoder(workspace, config.cross_encoder)
    loaded = [name for name in (config.retriever, config.teacher) if name and api.parse(name) is None]
    by = next(iter([*loaded, config.cross_encoder]), "") or config.retriever
    return _submit(workspace, "mining", "mining", f"Hard negatives for {named.name}", config, by)


def _submit(
    workspace: Workspace,
    kind: str,
    module: str,
    name: str,
    config: RoundTripConfig | FilterConfig | MiningConfig,
    by: str,
    inputs: Mapping[str, Any] | None = None,
) -> str:
    """Submit a job on a query set. BM25 and an API (as ``by``) keep no device busy; a model takes a GPU if present."""
    elsewhere = bm25.language_in(by) is not None or api.parse(by) is not None
    return jobs.submit(
        workspace,
        kind=kind,
        name=name,
        module=f"cdp.workers.{module}",
        config=config.to_dict(),
        inputs={"query_set": config.query_set, **(inputs or {})},
        device=jobs.DeviceRequest.light() if elsewhere else clusters.request(workspace, config.gpus, at_most=1),
        env_secrets=access.environment_for(config.to_dict()),
    )


def _whole(workspace: Workspace, name: str, why: str) -> QuerySet:
    """Return the query set of this id or name; ConfigError with ``why`` for an incomplete one."""
    query_set = query_sets.resolve_query_set(workspace, name)
    lacking = completeness.check(workspace, query_set)
    if not lacking.complete:
        raise ConfigError(f"{lacking.sentence} {why}", hint=lacking.next_step)
    return query_set


def _check_retriever(workspace: Workspace, by: str) -> None:
    language = bm25.language_in(by)
    if language is None:
        resolve(access.model(workspace, by), workspace)
    else:
        bm25.check_language(language)


@dataclass(frozen=True)
class Exported:
    """The ``n`` queries (or requests) that were written, and where; ``note`` says what an incomplete set lacks."""

    n: int
    paths: tuple[Path, ...]
    note: str = ""


@access.writes
def batch_write(workspace: Workspace, config: SynthesisConfig, folder: str | Path) -> Exported:
    """Write the requests of a job without a cached answer as OpenAI Batch JSONL."""
    return _written(batch.write_batch(workspace, resolved(workspace, config), permission.to_write(folder), "batch"))


@access.writes
def batch_read(workspace: Workspace, path: str | Path) -> BatchResult:
    """Cache the answers of a batch's output file; the same job, started as usual, then finds them."""
    return batch.read_batch(workspace, permission.to_read(workspace, path))


def export_formats(query_set: QuerySet) -> dict[str, Export]:
    """Return the formats that this set can be written in: requests only for a set with a prompt."""
    return {name: kind for name, kind in EXPORTS.items() if kind.write is not None or not query_set.imported}


@access.writes
def export(
    workspace: Workspace, query_set: str, form: str, target: str | Path, *, per_doc: int | None = None, model: str = ""
) -> Exported:
    """Write a query set to ``target`` in a registered format: its queries, or the requests behind it."""
    return _export(workspace, query_set, form, permission.to_write(target), per_doc, model)


@access.reads
def download(workspace: Workspace, query_set: str, form: str) -> bytes:
    """Return the file that ``export`` writes, or a zip of its folder."""
    with tempfile.TemporaryDirectory(prefix="cdp-") as folder:
        path = Path(folder) / "export"
        _export(workspace, query_set, form, path)
        if path.is_dir():
            path = Path(shutil.make_archive(str(path), "zip", path))
        return path.read_bytes()


def _export(
    workspace: Workspace, query_set: str, form: str, path: Path, per_doc: int | None = None, model: str = ""
) -> Exported:
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    if EXPORTS.named(form).write is not None:
        note = "" if resolved_set.complete else completeness.check(workspace, resolved_set).sentence
        return Exported(exports.export(workspace, resolved_set.id, form, path, per_doc=per_doc), (path,), note)
    if resolved_set.method not in (*METHODS, OWN):
        raise ConfigError(
            f"{resolved_set.name} was imported: there is no prompt behind it.", hint="Choose another format."
        )
    settings = SynthesisConfig.settings()
    own = {name: value for name, value in resolved_set.parameters.items() if name in settings and value is not None}
    values = {
        **own,
        "corpus": resolved_set.corpus_id,
        "method": resolved_set.method,
        "per_doc": per_doc or resolved_set.per_doc,
        "generator": "openai",
        "model": model or (resolved_set.model if resolved_set.generator == "openai" else ""),
    }
    return _written(batch.write_batch(workspace, SynthesisConfig.from_dict(values), path, "batch", whole=True))


def _written(files: list[Path]) -> Exported:
    return Exported(sum(path.read_bytes().count(b"\n") for path in files), tuple(files))
