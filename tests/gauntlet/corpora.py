"""What ``../shared/data`` holds, found by its layout, so that a collection added there is taken up by itself."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The judgments to score by, where a benchmark has several: the first of these.
PREFERRED_SPLITS = ("test", "dev", "valid", "train")

# Documents that a sample keeps of the smallest corpus: two training pairs or more have to come of it.
LEAST_SAMPLED = 6


@dataclass(frozen=True, slots=True)
class Collection:
    """A corpus with what belongs to it. ``path`` is a BEIR folder, or a file of documents with their queries."""

    name: str
    path: Path
    language: str
    split: str = ""
    """The judged split; empty for a file of documents with queries, which has no judgments."""

    @property
    def judged(self) -> bool:
        return bool(self.split)


def language_of(name: str) -> str:
    """``jsquad_ja`` → ja, ``drcd_zh_hant`` → zh; names without a language are English."""
    known = {"ar", "en", "fr", "ja", "ko", "ru", "zh"}
    return next((part for part in name.split("_") if part in known), "en")


def collections(root: Path) -> list[Collection]:
    """The judged collections, then the multi-query sets, each group with the smallest file first."""
    judged = [
        Collection(folder.name, folder, language_of(folder.name), _split(folder))
        for folder in root.iterdir()
        if (folder / "corpus.jsonl.gz").is_file()
    ]
    several = [
        Collection(file.name.removesuffix(".jsonl.gz"), file, language_of(file.name.removesuffix(".jsonl.gz")))
        for file in (root / "multiquery").glob("*.jsonl.gz")
    ]
    return [
        *sorted(judged, key=lambda c: (c.path / "corpus.jsonl.gz").stat().st_size),
        *sorted(several, key=lambda c: c.path.stat().st_size),
    ]


def query_files(root: Path) -> list[tuple[str, Path]]:
    """(language, file) of every set of benchmark queries that comes without documents."""
    return [(language_of(file.parent.name), file) for file in sorted((root / "queries_only").glob("*/*.jsonl.gz"))]


def _split(folder: Path) -> str:
    stored = {file.stem for file in (folder / "qrels").glob("*.tsv")}
    return next(split for split in PREFERRED_SPLITS if split in stored)


def sampled(collection: Collection, in_a_hundred: int, target: Path) -> Collection:
    """The same collection with every so-many-th document, the queries that only those answer, and their judgments."""
    path = target / collection.path.name
    if not collection.judged:
        documents = list(_lines(collection.path))
        _write(path, documents[:: _step(len(documents), in_a_hundred)])
        return Collection(collection.name, path, collection.language)
    documents = list(_lines(collection.path / "corpus.jsonl.gz"))
    judgments = _judgments(collection)
    # Multi-hop queries have several documents: a plain draw would keep hardly a query. The draw begins with theirs.
    kept = {document["_id"]: document for document in documents[:: _step(len(documents), in_a_hundred)]}
    if not any(_answers(judgments, kept)):
        by_id = {document["_id"]: document for document in documents}
        wanted = [name for _, name, _ in judgments[:LEAST_SAMPLED]]
        complete = [row[1] for row in judgments if row[0] in {r[0] for r in judgments if r[1] in wanted}]
        kept |= {name: by_id[name] for name in complete}
    queries = _answers(judgments, kept)
    _write(path / "corpus.jsonl.gz", [document for document in documents if document["_id"] in kept])
    _write(path / "queries.jsonl.gz", [q for q in _lines(collection.path / "queries.jsonl.gz") if q["_id"] in queries])
    qrels = path / "qrels" / f"{collection.split}.tsv"
    qrels.parent.mkdir(parents=True, exist_ok=True)
    rows = ["\t".join(row) for row in judgments if row[0] in queries]
    qrels.write_text("\n".join(["query-id\tcorpus-id\tscore", *rows, ""]), encoding="utf-8")
    return Collection(collection.name, path, collection.language, collection.split)


def _judgments(collection: Collection) -> list[tuple[str, str, str]]:
    lines = (collection.path / "qrels" / f"{collection.split}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [(row[0], row[1], row[2]) for row in rows]


def _answers(judgments: Sequence[tuple[str, str, str]], kept: dict[str, Any]) -> set[str]:
    """The queries all of whose judged documents are kept."""
    lacking = {query for query, document, _ in judgments if document not in kept}
    return {query for query, _, _ in judgments} - lacking


def _step(n: int, in_a_hundred: int) -> int:
    return max(1, min(100 // in_a_hundred, n // LEAST_SAMPLED))


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


def _write(file: Path, records: Sequence[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
