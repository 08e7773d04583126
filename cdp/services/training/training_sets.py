"""The judged queries of benchmarks as training data: a corpus of what answers them, and their queries as a query set.

MIRACL's training topics are such benchmarks, one per language. Of one language they train a retriever that is judged
on the others (cross-lingual); of several they are mixed, each query with its language, so that content words are
counted by that language's rules.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.benchmarks import library, registry
from cdp.benchmarks.beir_files import iter_corpus, read_qrels, read_queries
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.corpus import CorpusManifest, ReadOptions, read_documents, store
from cdp.query_sets import ImportOptions, QuerySet
from cdp.services.sharing import access

TRAIN = "train"


@dataclass(frozen=True)
class TrainingSet:
    """What was made. ``languages`` maps each language to its queries; ``left_out`` counts by reason what was not taken:
    queries without an answer here, and documents that could not be stored."""

    corpus: CorpusManifest
    query_set: QuerySet
    languages: dict[str, int]
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass
class _Gathered:
    """Of one benchmark: the relevant documents, and their queries by document."""

    name: str
    language: str
    licence: str
    queries: dict[str, list[str]]
    unanswered: int
    folder: Path


@access.writes
def from_benchmarks(
    workspace: Workspace, names: Sequence[str], *, split: str = "", name: str = "", origin: str = "human"
) -> TrainingSet:
    """A corpus of the documents that answer the queries of these benchmarks (``train``, or their only split), and a
    query set of those queries, written by people unless ``origin`` says otherwise.

    Several are mixed: ids begin with the benchmark's name. Never trained on is what is reported: InputError for a split
    called dev or test, unless it is named. ConfigError where languages are mixed that are not recorded.
    """
    if not names:
        raise ConfigError("No benchmark is named.", hint="Name at least one, such as miracl-ja-train.")
    gathered = [_gather(workspace, benchmark_name, split) for benchmark_name in dict.fromkeys(names)]
    several = len(gathered) > 1
    if several and not all(benchmark.language for benchmark in gathered):
        unknown = next(benchmark.name for benchmark in gathered if not benchmark.language)
        raise ConfigError(f"The language of {unknown} is not recorded, so its content words cannot be counted.")
    label = name or (f"{gathered[0].name} mixed with {len(gathered) - 1} more" if several else gathered[0].name)
    queries: list[tuple[str, list[str]]] = []
    with disk_faults_told("The import"), staging(workspace.corpora) as scratch:
        file = scratch / "documents.jsonl"
        with open(file, "w", encoding="utf-8") as out:
            for benchmark in gathered:
                for document in iter_corpus(part(benchmark.folder, "corpus")):
                    if document.id in benchmark.queries:
                        identifier = f"{benchmark.name}:{document.id}" if several else document.id
                        row = {"_id": identifier, "title": document.title, "text": document.text}
                        out.write(json.dumps(row, ensure_ascii=False) + "\n")
                        queries.append((identifier, benchmark.queries[document.id]))
        licence = "; ".join(dict.fromkeys(benchmark.licence for benchmark in gathered if benchmark.licence))
        options = ReadOptions.from_dict({"id_field": "_id", "text_field": "text", "title_field": "title"})
        with read_documents(file, options=options, scratch=scratch) as result:
            corpus = store(result, label, workspace, source=", ".join(names), licence=licence)
            n_rejected = result.n_rejected
    done = query_sets.import_queries(
        queries,
        workspace,
        corpus.id,
        f"{label} queries",
        language=gathered[0].language,
        options=ImportOptions.from_dict({"origin": origin, "licence": licence}),
    )
    stored = done.query_set
    if several:
        by_name = {benchmark.name: benchmark.language for benchmark in gathered}
        stored = query_sets.update(workspace, stored.id, parameters={**stored.parameters, "languages": by_name})
    languages: dict[str, int] = {}
    for benchmark in gathered:
        languages[benchmark.language] = languages.get(benchmark.language, 0) + sum(map(len, benchmark.queries.values()))
    left_out = {
        "queries without an answer here": sum(benchmark.unanswered for benchmark in gathered),
        "documents that could not be stored": n_rejected,
        "queries that could not be stored": done.n_rejected,
    }
    return TrainingSet(corpus, stored, languages, {reason: count for reason, count in left_out.items() if count})


def _gather(workspace: Workspace, name: str, split: str) -> _Gathered:
    folder = library.resolve_benchmark(access.benchmark(workspace, name), workspace)
    info = library.describe(folder, workspace)
    chosen = split or (TRAIN if TRAIN in info.splits else library.choose_split(info))
    if not split and chosen != TRAIN:
        raise InputError(
            f"{info.name} has no training split, only {', '.join(info.splits)}: what is trained on cannot be reported.",
            hint="Name the split where that is meant.",
        )
    if chosen not in info.splits:
        raise InputError(f"{info.name} has no split {chosen!r}.", hint=f"It has {', '.join(info.splits)}.")
    entry = registry.find(info.entry or info.name)
    texts = read_queries(part(folder, "queries"))
    relevant = read_qrels(qrels_files(folder)[chosen]).grades
    wanted = {d for grades in relevant.values() for d, grade in grades.items() if grade > 0}
    present_ids = {document.id for document in iter_corpus(part(folder, "corpus")) if document.id in wanted}
    queries_by_document: dict[str, list[str]] = {}
    unanswered = 0
    for query, grades in relevant.items():
        answers = [d for d, grade in grades.items() if grade > 0 and d in present_ids]
        if query not in texts or not answers:
            unanswered += 1
            continue
        for document in answers:
            queries_by_document.setdefault(document, []).append(texts[query].text)
    if not queries_by_document:
        raise InputError(f"No query of {info.name}, split {chosen}, has an answer among its documents.")
    language = info.language or (entry.language if entry is not None else "")
    return _Gathered(info.name, language, info.licence, queries_by_document, unanswered, folder)
