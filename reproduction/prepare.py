"""Bringing the data into a workspace: benchmarks as they are, harder ones derived from them, and queries to train on.

Where a set has several human queries per document, a part of its documents is held out: their queries are an in-domain
benchmark, the others are trained on. Which ones is decided by a hash of their ids, so it is the same everywhere.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.errors import InputError
from cdp.base.locks import staging
from cdp.base.records import Document
from cdp.base.workspace import REPOSITORY, Workspace, read_jsonl
from cdp.benchmarks import add_benchmark, library, manifests, subsets
from cdp.benchmarks.beir_files import iter_corpus, read_queries
from cdp.benchmarks.benchmark import part
from cdp.corpus import ReadOptions, list_corpora, read_documents, store
from cdp.query_sets import ImportOptions
from cdp.retrievers import leakage
from cdp.services import demo
from reproduction import derive
from reproduction.stages import RECORDED

RECORDED_QUERIES = REPOSITORY / "data" / "recorded" / "diverse.jsonl"

BENCHMARKS = {
    "hotpotqa_sample": "en", "2wikimultihopqa_sample": "en", "musique_sample": "en", "scifact": "en",
    "chroma_llm_en": "en", "jsquad_ja": "ja", "xquad_ar": "ar", "xquad_zh": "zh",
}  # fmt: skip

# Judged sets that are divided at so many content words: natural queries on both sides.
DIVIDED = ("hotpotqa_sample", "2wikimultihopqa_sample", "musique_sample", "scifact", "chroma_llm_en", "demo",
           "xquad_en_heldout", "fairytaleqa_train_en_heldout")  # fmt: skip
HARD = 9

# {collection of the recorded queries: folder of the data}.
CONTRAST = {
    "fairytaleqa": "fairytaleqa", "scifact": "scifact", "musique": "musique_sample",
    "2wikimultihopqa": "2wikimultihopqa_sample",
}  # fmt: skip


@dataclass(frozen=True)
class HumanSet:
    """A file of ``multiquery/``: only documents with ``least`` queries are trained on; ``held_out`` of all documents
    give an in-domain benchmark."""

    file: str
    name: str
    language: str
    licence: str
    least: int
    held_out: float = 0.0


HUMAN = (
    HumanSet("fairytaleqa_train_en", "fairytaleqa", "en", "Apache 2.0; Gutenberg texts", 1, 0.2),
    HumanSet("fairytaleqa_train_en", "fairytaleqa5", "en", "Apache 2.0; Gutenberg texts", 5, 0.2),
    HumanSet("xquad_en", "xquad", "en", "CC BY-SA 4.0", 3, 0.5),
    HumanSet("piaf_fr", "piaf", "fr", "MIT; Wikipedia text CC BY-SA 3.0", 3, 0.5),
    HumanSet("strategyqa_ko", "strategyqa", "ko", "Apache 2.0; instances MIT", 2, 0.5),
    HumanSet("jaquad_ja", "jaquad", "ja", "CC BY-SA 3.0", 3),
    HumanSet("cmrc2018_zh", "cmrc", "zh", "CC BY-SA 4.0", 3),
    HumanSet("drcd_zh_hant", "drcd", "zh", "CC BY-SA 3.0", 3),
    HumanSet("arcd_ar", "arcd", "ar", "MIT; Wikipedia text CC BY-SA", 3),
    HumanSet("xquad_ru", "xquad-ru", "ru", "CC BY-SA 4.0", 3, 0.5),
)


@dataclass
class Prepared:
    """What there is, in lines, and what there is not."""

    lines: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def small(workspace: Workspace) -> Prepared:
    """The demo, and its judged queries by content words: three benchmarks without any download."""
    demo.load(workspace)
    parts = derive.by_content_words(workspace, "demo", 7, split="test")
    return Prepared([f"{info.name}: {info.n_queries} queries" for info in parts])


def everything(workspace: Workspace, data: Path) -> Prepared:
    """All of the data; InputError where it is not there."""
    if not (data / "multiquery").is_dir():
        raise InputError(f"There is no benchmark data in {data}.", hint="Name its folder: --data DIR")

    done = Prepared()
    demo.load(workspace)

    there = set(library.list_names(workspace))
    for name, language in BENCHMARKS.items():
        if name not in there:
            add_benchmark(data / name, workspace, name, language)

    for human in HUMAN:
        _held_out(workspace, data, human)

    # Chooses checkpoints: its queries judge nothing, and a part of the documents is enough for it.
    subsets.sample("hotpotqa_sample", workspace, queries=100, documents=2000, split="train", called="hotpotqa-dev")
    derived = [info for name in DIVIDED for info in derive.by_content_words(workspace, name, HARD)]
    done.lines += [f"benchmark {info.name}: {info.n_queries} queries" for info in derived]

    judged = judged_keys(workspace)
    for human in HUMAN:
        done.lines.append(_human(workspace, data, human, judged))

    done.lines += _contrast(workspace, data, done.missing)
    _more_passages(workspace, data)
    _reasoning(workspace)

    return done


def held_out(identifier: str, share: float) -> bool:
    """Whether a document's queries judge instead of teaching: by a hash of its id."""
    digest = hashlib.sha256(f"held out\0{identifier}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def _rows(data: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(data / "multiquery" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def judged_keys(workspace: Workspace) -> set[int]:
    """What every query of every benchmark here is recognised by, reworded ones too: none of them is trained on."""
    folders = [library.resolve_benchmark(name, workspace) for name in library.list_names(workspace)]
    queries = (read_queries(part(folder, "queries")) for folder in folders)
    return {key for of in queries for key in leakage.keys(line.text for line in of.values()).ravel().tolist()}


def unjudged(queries: list[str], judged: Set[int]) -> list[str]:
    """The queries that no benchmark here judges."""
    return [text for text, keys in zip(queries, leakage.keys(queries).tolist(), strict=True) if not judged & {*keys}]


def _held_out(workspace: Workspace, data: Path, human: HumanSet) -> None:
    """The benchmark of the queries whose documents are held out, where some are."""
    rows = _rows(data, human.file)
    judging = [row for row in rows if held_out(row["doc_id"], human.held_out)]
    name = f"{human.file}_heldout"
    if judging and name not in library.list_names(workspace):
        _judged(workspace, name, rows, judging, human)


def _human(workspace: Workspace, data: Path, human: HumanSet, judged: Set[int]) -> str:
    """A corpus of the documents that are trained on, with their queries but for those that a benchmark judges."""
    rows = [row for row in _rows(data, human.file) if not held_out(row["doc_id"], human.held_out)]
    written = sum(len(row["queries"]) for row in rows)
    rows = [{**row, "queries": unjudged(row["queries"], judged)} for row in rows]
    leaked = written - sum(len(row["queries"]) for row in rows)
    kept = [row for row in rows if len(row["queries"]) >= human.least]
    corpus = _corpus(workspace, human.name, [_document(row) for row in kept], human.licence)
    name = f"{human.name} human"
    if name not in {q.name for q in query_sets.list_query_sets(workspace)}:
        options = ImportOptions.from_dict({"origin": "human", "licence": human.licence})
        pairs = [(row["doc_id"], row["queries"]) for row in kept]
        query_sets.import_queries(pairs, workspace, corpus, name, language=human.language, options=options)
    n = sum(len(row["queries"]) for row in kept)
    return f"{name}: {n:,} queries of {len(kept):,} documents; {leaked:,} that a benchmark judges are left out"


def _judged(
    workspace: Workspace, name: str, rows: list[dict[str, Any]], judging: list[dict[str, Any]], human: HumanSet
) -> None:
    queries, qrels = {}, {}
    asked: set[str] = set()
    for row in judging:
        for number, text in enumerate(row["queries"], 1):
            if text not in asked:  # the same words on two documents judge neither
                asked.add(text)
                queries[f"{row['doc_id']}-{number}"] = text
                qrels[f"{row['doc_id']}-{number}"] = {row["doc_id"]: 1}

    judges = {row["doc_id"] for row in judging}
    taught = {text for row in rows if row["doc_id"] not in judges for text in row["queries"]}
    queries = {query: text for query, text in queries.items() if text not in taught}
    qrels = {query: qrels[query] for query in queries}
    source = {"kind": "held out", "of": f"{human.file}.jsonl.gz", "share": human.held_out, "licence": human.licence}
    manifest = manifests.Manifest(language=human.language, source=source)
    library.make(workspace, name, [_document(row) for row in rows], queries, {"test": qrels}, manifest)


def _document(row: Mapping[str, Any]) -> Document:
    return Document(row["doc_id"], row["text"], row.get("title") or "")


def _corpus(workspace: Workspace, name: str, documents: Iterable[Document], licence: str) -> str:
    """The id of the corpus of that name, stored where it is not there."""
    there = next((c.id for c in list_corpora(workspace) if c.name == name), "")
    if there:
        return there
    with staging(workspace.corpora) as scratch:
        file = scratch / "documents.jsonl"
        with open(file, "w", encoding="utf-8") as out:
            for d in documents:
                out.write(json.dumps({"_id": d.id, "title": d.title, "text": d.text}, ensure_ascii=False) + "\n")
        options = ReadOptions.from_dict({"id_field": "_id", "text_field": "text", "title_field": "title"})
        with read_documents(file, options=options, scratch=scratch) as result:
            return store(result, name, workspace, source=name, licence=licence).id


def _contrast(workspace: Workspace, data: Path, missing: set[str]) -> Iterator[str]:
    """The passages that an LLM's queries are recorded for, a corpus ``contrast-<collection>`` each: the study has them
    written by the generators ``recorded`` and ``template``."""
    recorded: dict[str, set[str]] = {}
    for line in read_jsonl(RECORDED_QUERIES):
        recorded.setdefault(str(line["collection"]), set()).add(str(line["document_id"]))
    for name, folder in CONTRAST.items():
        documents = _passages(data, folder)
        wanted = sorted(recorded.get(name, set()) & set(documents))
        if not wanted:
            missing.add(RECORDED)
            yield f"contrast-{name}: no queries are recorded for it"
            continue
        _corpus(workspace, f"contrast-{name}", [documents[i] for i in wanted], "")
        yield f"contrast-{name}: {len(wanted):,} passages"


def _more_passages(workspace: Workspace, data: Path) -> None:
    """The passages that templates write for besides."""
    _corpus(workspace, "contrast-chroma", iter_corpus(part(data / "chroma_llm_en", "corpus")), "MIT")
    _corpus(workspace, "contrast-xquad", map(_document, _rows(data, "xquad_en")), "CC BY-SA 4.0")


def _passages(data: Path, name: str) -> dict[str, Document]:
    """The documents of a collection by id."""
    if name == "fairytaleqa":
        return {row["doc_id"]: _document(row) for row in _rows(data, "fairytaleqa_train_en")}
    return {document.id: document for document in iter_corpus(part(data / name, "corpus"))}


def _reasoning(workspace: Workspace) -> None:
    """The reasoned forms of FairytaleQA's questions by template, for RI: the template stands in for an LLM."""
    from cdp.base.config import SynthesisConfig
    from cdp.services import jobs

    sets = {q.name: q for q in query_sets.list_query_sets(workspace)}
    source = sets["fairytaleqa5 human"]
    if any(q.method == "reasoning" and q.parameters.get("source") == source.id for q in sets.values()):
        return
    config = SynthesisConfig.from_dict(
        {"corpus": source.corpus_id, "method": "reasoning", "generator": "template", "source": source.id,
         "name": "fairytaleqa5 reasoned", "per_doc": source.per_doc}
    )  # fmt: skip
    jobs.wait(workspace, jobs.start(workspace, "synthesis", config))
