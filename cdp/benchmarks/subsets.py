"""A sample of a benchmark: which queries and documents, its name; judgments carried to documents added again.

Scores on a subset are higher than on the whole, for there are fewer documents to confuse the right ones with. Its
manifest says what it was drawn from, its name says how large it is, and every result on it carries a note.
"""

from __future__ import annotations

import dataclasses
import heapq
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cdp.base.errors import CdpError, ConfigError, InputError, WorkspaceError
from cdp.base.locks import staging
from cdp.base.text import counted
from cdp.base.workspace import ANSWERS, RECORDS, Workspace, checked_name, now, shuffle_key, slug
from cdp.benchmarks import beir_files, judged, library, manifests
from cdp.benchmarks.beir_files import iter_corpus, write_beir
from cdp.benchmarks.benchmark import Parts, part, qrels_files, read_parts, split_of
from cdp.benchmarks.library import BenchmarkInfo
from cdp.benchmarks.manifests import Subset
from cdp.corpus import CorpusManifest, iter_documents
from cdp.corpus.storage import CorpusUpdate

# How much is drawn if nothing else is said: NanoBEIR's 50 queries, with somewhat fewer documents.
QUERIES, DOCUMENTS = 50, 2000


# Whether each text asks the same as one of the others.
Repeats = Callable[[Sequence[str], Sequence[str]], Iterable[bool]]


def sample(
    name: str,
    workspace: Workspace,
    *,
    queries: int = QUERIES,
    documents: int = DOCUMENTS,
    split: str = "",
    seed: int = 0,
    called: str = "",
    dev: int = 0,
    dev_split: str = "",
    repeats: Repeats | None = None,
) -> tuple[BenchmarkInfo, bool]:
    """Draw a subset of a benchmark of the workspace and store it: (what it is, whether it was there already).

    ``queries`` are drawn from those with a relevant document, ``documents`` are all documents that are relevant for
    them and others up to that number. Queries and documents are chosen by a hash of their ids and the ``seed``: the
    same benchmark always gives the same subset, and a larger one holds the smaller one's queries. A benchmark with
    fewer is taken whole. With ``dev`` the queries become the split test, and so many others, of ``dev_split`` or of the
    same split, the split dev: no query is in both, nor one that ``repeats`` it in other words. ConfigError where the
    relevant documents alone are more than ``documents``, or the name is taken.
    """
    source = library.resolve_benchmark(name, workspace)
    info = library.describe(source, workspace)
    split = library.choose_split(info, split)

    manifest = manifests.read(source)
    if manifest.subset is not None and not dev:
        raise ConfigError(f"{info.name} is a subset itself.", hint=f"Draw from {manifest.subset.of}.")

    parts = read_parts(source)
    drawn, qrels, relevant_for = _divided(
        source, parts, queries, split, seed=seed, dev=dev, dev_split=dev_split, repeats=repeats
    )
    every = set[str]().union(*drawn.values())
    chosen = [query for query in qrels if query in every]
    relevant = set[str]().union(*map(relevant_for.__getitem__, chosen))
    total = min(documents, info.n_documents)
    called = checked_name(called or name_of(info.name, len(chosen), total, split, seed))

    subset = Subset(info.name, info.content_hash, split, len(chosen) - len(drawn.get("dev", ())), total, seed,
                    len(drawn.get("dev", ())), info.n_documents)  # fmt: skip
    target = workspace.benchmarks / called
    if target.exists():
        return _stored(target, subset, workspace), True

    if len(relevant) > documents:
        raise ConfigError(
            f"{len(relevant):,} documents are relevant for these queries, more than the {documents:,} asked for.",
            hint=f"Ask for at least {len(relevant):,} documents, or for fewer queries.",
        )

    rest = ((shuffle_key(seed, "document", name), name) for name in parts.document_ids if name not in relevant)
    ids = relevant | {name for _, name in heapq.nsmallest(documents - len(relevant), rest)}

    lines: list[dict[str, object]] = []
    for query in chosen:
        line = parts.queries[query]
        lines.append({"_id": query, "text": line.text})
        if line.excluded:
            lines[-1]["excluded_ids"] = list(line.excluded)

    # Judgments of documents that were not drawn are left out.
    of_splits: dict[str, dict[str, dict[str, int]]] = {}
    for drawn_for, of_split in drawn.items():
        of_splits[drawn_for] = {query: _of_documents(qrels[query], ids) for query in chosen if query in of_split}

    # Protocol and licence stay, the source is the whole one.
    origin = {key: manifest.source[key] for key in ("judge", "written_by") if key in manifest.source}
    if manifest.of_passages:
        origin["unit"] = "passage"
    origin |= {"kind": "subset", "of": info.name, "hash": info.content_hash, "commits": manifest.commits}
    described = replace(
        manifest,
        title=f"{manifest.title or info.name}, a subset",
        licence=manifest.licence or info.licence,
        source=origin, files=(), counts={}, subset=subset, notes=(), created=now(),
    )  # fmt: skip

    try:
        with staging(workspace.benchmarks) as incoming:
            folder = incoming / "subset"
            texts = (document for document in iter_corpus(part(source, "corpus")) if document.id in ids)
            write_beir(folder, texts, lines, of_splits)
            manifests.write(folder, described)
            made = library.install(library.survey(folder, allow_unknown=False), target, workspace)
    except OSError as error:
        raise WorkspaceError(f"The subset could not be written: {error.strerror or error}.") from error

    # None where another process drew the same subset at the same time.
    return (_stored(target, subset, workspace), True) if made is None else (made, False)


def _divided(
    source: Path,
    parts: Parts,
    queries: int,
    split: str,
    *,
    seed: int,
    dev: int,
    dev_split: str,
    repeats: Repeats | None,
) -> tuple[dict[str, set[str]], dict[str, dict[str, int]], dict[str, set[str]]]:
    """Return the queries that ``sample`` draws by the name of their split, all judgments, and the relevant documents of
    each query."""
    sources = {split: split_of(parts, split, allow_unknown=True).qrels}
    if dev and dev_split not in ("", split):
        sources[dev_split] = split_of(parts, dev_split, allow_unknown=True).qrels

    qrels: dict[str, dict[str, int]] = {}
    for of_split in sources.values():
        qrels |= of_split

    named = set[str]().union(*qrels.values())
    known = named.intersection(parts.document_ids)
    relevant_for = {}
    for query, grades in qrels.items():
        relevant_for[query] = {document for document, grade in grades.items() if grade > 0 and document in known}

    answered = {name: list(filter(relevant_for.__getitem__, of_split)) for name, of_split in sources.items()}
    if not answered[split]:
        raise InputError(f"No query of the split {split} has a relevant document.")

    # Of a model's judgments the queries that people label first are reported, and dev is from the others: all labels
    # count, and are a random sample of what is reported.
    labelled_first = {query: at for at, query in enumerate(judged.sampled(judged.read_pool(source)))}

    def order(query: str) -> tuple[int, bytes]:
        return labelled_first.get(query, 0), shuffle_key(seed, "query", query)

    reported = set(heapq.nsmallest(queries, answered[split], key=order))
    if not dev:
        return {split: reported}, qrels, relevant_for

    others = [query for query in answered[dev_split or split] if query not in reported]
    if repeats is not None:
        same = repeats(_texts(parts, others), _texts(parts, reported))
        others = [query for query, repeated in zip(others, same, strict=True) if not repeated]

    return {"test": reported, "dev": set(heapq.nsmallest(dev, others, key=order))}, qrels, relevant_for


def _texts(parts: Parts, queries: Iterable[str]) -> list[str]:
    return [parts.queries[query].text for query in queries]


def sizes(
    workspace: Workspace, name: str, *, queries: int, split: str, dev: int = 0, dev_split: str = "",
    repeats: Repeats | None = None,
) -> tuple[int, int]:  # fmt: skip
    """Return how many queries ``sample`` would draw for test and dev, fewer than asked for where not so many have a
    relevant document, or repeat each other. Kept while the benchmark is unchanged."""
    source = library.resolve_benchmark(name, workspace)
    content = library.describe(source, workspace).content_hash
    question = ("sizes", content, RECORDS.digest(source / "pool.jsonl"), queries, split, dev, dev_split)

    def load() -> tuple[int, int]:
        parts = read_parts(source)
        drawn, _, _ = _divided(source, parts, queries, split, seed=0, dev=dev, dev_split=dev_split, repeats=repeats)
        first, *others = drawn.values()
        return len(first), sum(map(len, others))

    return ANSWERS.get(part(source, "queries"), question, load)


def _of_documents(grades: Mapping[str, int], documents: Container[str]) -> dict[str, int]:
    """Return the judgments of these documents."""
    return {document: grade for document, grade in grades.items() if document in documents}


def _stored(target: Path, subset: Subset, workspace: Workspace) -> BenchmarkInfo:
    """The subset that is there already; ConfigError where something else has its name."""
    if manifests.read(target).subset != subset:
        raise ConfigError(
            f"The workspace has another benchmark called {target.name!r}.", hint="Give this one another name."
        )
    return library.describe(target, workspace)


def name_of(name: str, queries: int, documents: int, split: str, seed: int = 0, dev: int = 0) -> str:
    """``scifact-sample-300q-2000d``: the default name of a subset. Another split than test is named."""
    words = [name, "sample", f"{queries}q", f"{documents}d"]
    if split not in ("", "test"):
        words.append(split)
    if seed:
        words.append(f"s{seed}")
    if dev:
        words.append(f"{dev}dev")

    return "-".join(words)


def carry_benchmarks(workspace: Workspace, growth: CorpusUpdate, corpus: CorpusManifest) -> tuple[list[str], list[str]]:
    """Carry over the benchmarks made of the earlier version: (their names, a sentence for each).

    A query stays if all documents that answer it do. New documents are not judged yet. What was judged here keeps its
    pool, grades and labels, and people go on with the queries that they have not labelled.
    """
    names, said = [], []
    for name in library.list_names(workspace):
        folder = workspace.benchmark(name)
        with suppress(CdpError):
            manifest = manifests.read(folder)
            if manifest.source.get("corpus") != growth.previous.id:
                continue

            lines = beir_files.read_queries(part(folder, "queries"))
            before: set[str] = set()
            of_splits: dict[str, dict[str, dict[str, int]]] = {}
            for split, file in qrels_files(folder).items():
                of_splits[split] = {}
                for query, grades in beir_files.read_qrels(file).grades.items():
                    before.add(query)
                    answers = [document for document, grade in grades.items() if grade >= manifest.relevant_from]
                    if growth.kept.keys() >= set(answers):
                        stayed = _of_documents(grades, growth.kept)
                        of_splits[split][query] = {growth.kept[document]: grade for document, grade in stayed.items()}

            kept = set[str]().union(*of_splits.values())
            if not kept:
                continue

            open_queries = judged.read_pool(folder).keys() - before

            taken, stem = set(library.list_names(workspace)), re.sub(r"-v\d+$", "", slug(name))
            numbers = range(growth.number, growth.number + len(taken) + 1)
            free = next(f"{stem}-v{n}" for n in numbers if f"{stem}-v{n}" not in taken)
            facts = {**manifest.source, "corpus": corpus.id, "unit": corpus.unit, "grown_from": name}
            made = library.make(
                workspace, free, iter_documents(workspace, corpus.id), {q: lines[q].text for q in kept | open_queries},
                of_splits, dataclasses.replace(manifest, source=facts, counts={}, files=()),
            )  # fmt: skip
            judged.carry(folder, workspace.benchmark(made), growth.kept, kept | open_queries)
            names.append(made)
            carried = f"Benchmark {made}: {counted(len(kept), 'judged query', 'judged queries')} carried over"
            if len(kept) < len(before):
                carried += f"; {len(before) - len(kept):,} are stale"
            carried += "."
            if growth.n_new:
                carried += f" Not judged yet: {counted(growth.n_new, f'new {corpus.unit}')}."
            said.append(carried)

    return names, said
