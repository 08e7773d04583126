"""Query sets: preview, import, best by log-probability, leaving out judged queries, batch files, exports, deletion."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base import permission
from cdp.base.config import SynthesisConfig
from cdp.base.errors import SHOWN_PROBLEMS, CdpError, ConfigError
from cdp.base.failures import FailedItems
from cdp.base.permission import Action, require
from cdp.base.text import checked_title
from cdp.base.workspace import ANSWERS, Workspace, disk_faults_told
from cdp.complexity import count_content_words
from cdp.corpus import ReadOptions, list_corpora, looking, resolve_corpus
from cdp.corpus.looking import FilePreview, look
from cdp.corpus.options import AUTO
from cdp.llm.answers import Usage
from cdp.llm.prices import price_of
from cdp.metrics import self_bleu
from cdp.query_sets import ImportOptions, QuerySet, deriving, exports
from cdp.query_sets.exports import EXPORTS, Export
from cdp.query_sets.store import DocumentQueries
from cdp.retrievers import leakage
from cdp.services import access, completeness, metrics, projects
from cdp.synthesis import batch
from cdp.synthesis.batch import BatchResult
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import METHODS, OWN
from cdp.synthesis.preview import Shown, needs_process, previews, previews_in_process, problems
from cdp.synthesis.pricing import resolved


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

    @property
    def mean_cw(self) -> float | None:
        """Content words per query; None without queries."""
        return sum(self.cw) / len(self.cw) if self.cw else None


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
    config = config.replace(base_url=endpoint.url or config.endpoint.base_url)
    document = looking.document(workspace, manifest.id, document_id)
    ask = previews_in_process if needs_process(config, methods) else previews

    price = None
    if GENERATORS[generator].endpoint:
        price = price_of(workspace, config.endpoint.model_name)

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


@access.reads
def of_people(workspace: Workspace, corpus: str, document_id: str) -> Preview | None:
    """Return the queries that people wrote for a document, in the form of a preview; None where there are none."""

    def read(query_set: str) -> list[str]:
        lines = query_sets.read_queries(workspace, query_set)
        return next((line.queries for line in lines if line.document_id == document_id), [])

    found: list[str] = []
    for q in query_sets.list_query_sets(workspace):
        if q.kind == "human" and q.corpus_id == corpus:
            path = query_sets.files(workspace, q.id).queries
            found += ANSWERS.get(path, ("of document", document_id), partial(read, q.id))
    if not found:
        return None

    cw = count_content_words(found, resolve_corpus(workspace, corpus).counted_language).tolist()
    bleu = self_bleu(found) if len(found) > 1 else None
    return Preview(queries=found, method="human", cw=cw, self_bleu=bleu, problems=[], cost=None)


@access.reads
def examine(workspace: Workspace, path: str | Path, encoding: str = "", header: bool = True) -> FilePreview:
    """Return the first rows of a file of queries, with the role that each column seems to have. Nothing is stored."""
    numbered = {} if header else {"header": False, "text_field": "1"}
    return look(permission.to_read(workspace, path), ReadOptions.from_dict({"encoding": encoding or AUTO, **numbered}))


@access.writes
def import_file(
    workspace: Workspace, path: str | Path, corpus: str, *, name: str = "", options: ImportOptions | None = None
) -> query_sets.ImportedQueries:
    """Import and measure the queries of a JSONL, JSON, CSV or TSV file; ``options`` say which fields hold what."""
    manifest = resolve_corpus(workspace, corpus)
    with disk_faults_told("The import"):
        source = permission.to_read(workspace, path)
        return take(workspace, source, manifest.id, checked_title(name), options=options)


@access.writes
def take(
    workspace: Workspace,
    source: Path | Iterable[tuple[str, str | Iterable[str]]],
    corpus_id: str,
    name: str,
    *,
    options: ImportOptions | None = None,
    facts: Mapping[str, Any] | None = None,
) -> query_sets.ImportedQueries:
    """Store what was brought as a query set and measure it: a file, or (document id, query or queries) pairs.

    ``facts`` join the set's parameters. Raises as ``query_sets.import_queries``. A set that cannot be measured is
    stored all the same; its page says why.
    """
    done = query_sets.import_queries(source, workspace, corpus_id, name, options=options)
    if facts:
        query_sets.update(workspace, done.query_set.id, parameters={**done.query_set.parameters, **facts})

    with contextlib.suppress(CdpError):
        metrics.quick(workspace, done.query_set.id)
    return done


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
        for n, value in enumerate(logprobs, 1):
            if value is not None:
                of_query[query_sets.query_id(line["document_id"], n)] = value

    if not of_query:
        raise ConfigError(
            f"No query of {source.name} has a log-probability, so they cannot be ranked.",
            hint="Write them with logprobs=yes, at an endpoint that gives log-probabilities; some leave them out.",
        )
    if not 1 <= keep <= len(of_query):
        raise ConfigError(f"{keep:,} queries cannot be kept of {len(of_query):,} that have a log-probability.")
    chosen = set(sorted(of_query, key=of_query.__getitem__, reverse=True)[:keep])

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
    wanted = set(corpus_ids)
    known = {manifest.id: manifest.unit for manifest in list_corpora(workspace) if manifest.id in wanted}
    units = {*known.values()}
    if wanted - known.keys():  # deleted
        units.add("document")

    return " or ".join(sorted(units)) or "document"


def list_query_sets(workspace: Workspace, *, corpus: str = "") -> list[QuerySet]:
    """Return all query sets, newest first; only those of one corpus if its id, name or unique prefix is given."""
    listed = [completeness.check(workspace, q).query_set for q in query_sets.list_query_sets(workspace)]
    # An id in use needs no corpus: the sets of a deleted one are still listed.
    if corpus and all(q.corpus_id != corpus for q in listed):
        corpus = resolve_corpus(workspace, corpus).id
    return [q for q in listed if corpus in ("", q.corpus_id)]


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


@dataclass(frozen=True)
class Exported:
    """The ``n`` queries (or requests) that were written, and where; ``note`` says what the set lacks, or the format."""

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
        notes = [] if resolved_set.complete else [completeness.check(workspace, resolved_set).sentence]
        n = exports.export(workspace, resolved_set.id, form, path, per_doc=per_doc, notes=notes)
        return Exported(n, (path,), " ".join(notes))

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
