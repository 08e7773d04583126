"""Whose judged queries decide a test: a benchmark's of the project, else people's of the corpus, else template queries.

Of the last two a small benchmark is made first: the corpus's documents, or a sample of them, and queries that nothing
is trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Document
from cdp.base.staging import staging
from cdp.base.text import counted
from cdp.base.workspace import Workspace, disk_faults_told, now, slug
from cdp.benchmarks import (
    BenchmarkInfo,
    add_benchmark,
    choose_split,
    describe,
    list_benchmarks,
    load_benchmark,
    manifests,
    resolve_benchmark,
    subsets,
)
from cdp.benchmarks.beir_writing import write_beir
from cdp.complexity import count_content_words
from cdp.corpus import CorpusManifest, iter_documents
from cdp.corpus.documents import permutation
from cdp.query_sets import QuerySet
from cdp.services import corpora, projects
from cdp.services.sharing import access
from cdp.services.training import leakage
from cdp.studies.trial import judging_split
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS

BENCHMARK, HUMAN, TEMPLATE = "benchmark", "human", "template"

MOST_QUERIES, MOST_DOCUMENTS = 300, 2_000
"""Of larger benchmarks a sample judges: every training of a test encodes all of its texts."""

HELD_OUT = 0.25
"""At most this part of a corpus is held out for template queries."""

SEED = 1
"""The training queries are written with seed 0."""

DRAW = 0
"""The first seed of a test: it draws the documents that are trained on from its beginning."""


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
        language = corpora.cw_language(manifest)
    cw = count_content_words(texts, language)
    return {
        "name": judged.benchmark,
        "split": judged.split,
        "place": f"{judged.benchmark}/{judged.split}/{protocol}",
        "n_queries": judged.n_queries,
        "n_documents": judged.n_documents,
        "language": language,
        "cw": float(cw.mean()) if len(cw) else 0.0,
        "empty": float((cw == 0).mean()) if len(cw) else 0.0,
    }


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
        subsets.sample(
            judged.of,
            workspace,
            queries=judged.n_queries,
            documents=judged.n_documents,
            split=judged.split,
            called=judged.benchmark,
        )
    else:
        with disk_faults_told("The test's benchmark"), staging(workspace.benchmarks) as incoming:
            folder = incoming / judged.benchmark
            _write(workspace, manifest, judged, folder)
            add_benchmark(folder, workspace, judged.benchmark)
    for project in projects.projects_of(workspace, "corpus", manifest.id):
        projects.add_members(workspace, project.id, benchmarks=[judged.benchmark])
    return judged.benchmark


def _write(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, folder: Path) -> None:
    pairs = list(_queries(workspace, manifest, judged))
    if len(pairs) < 2:
        raise InputError(f"{manifest.name} gives {len(pairs)} queries to decide by, too few for a test.")
    lines = [{"_id": f"q{number}", "text": text} for number, (_, text) in enumerate(pairs)]
    qrels = {f"q{number}": {identifier: 1} for number, (identifier, _) in enumerate(pairs)}
    documents = _documents(workspace, manifest, {identifier for identifier, _ in pairs}, judged.n_documents)
    write_beir(folder, judged.split, documents, lines, qrels)
    source = {"kind": "test", "queries": judged.kind, "corpus": manifest.id, "of": judged.of}
    language = corpora.cw_language(manifest)
    manifests.write(
        folder, manifests.Manifest(title=f"{manifest.name}, {judged.kind} queries", language=language, source=source,
                                   created=now())
    )  # fmt: skip


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
