"""From a published benchmark to the BEIR layout of the workspace, as a stream.

The judgments come first, then the queries that they name, then the documents one by one: memory holds the judgments,
and 24 bytes per document to detect repeated ids. Nothing is left out in silence: ``Counts`` has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cdp.base.errors import InputError
from cdp.benchmarks.beir_files import batched
from cdp.benchmarks.schemas import Contents
from cdp.corpus.checks import storable
from cdp.corpus.collector import SeenIds

BATCH = 4096
_NO_ID = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

# Called with a phase, what is done and the total (0 where it is unknown).
Progress = Callable[[str, int, int], None]


class StoppedError(Exception):
    """A stop was requested; what was fetched stays, to go on from."""


@dataclass
class Counts:
    """Counts of a conversion. ``repeated_documents`` had the id of an earlier one and were left out,
    ``conflicting_documents`` of them with another text; queries without a judgment, and repeated ones, were left out;
    ``unknown`` judgments name a document or query that is not there; ``repaired`` texts held NUL or half of a surrogate
    pair, which became U+FFFD."""

    documents: int = 0
    queries: int = 0
    judgments: int = 0
    repeated_documents: int = 0
    conflicting_documents: int = 0
    repeated_judgments: int = 0
    repeated_queries: int = 0
    unjudged_queries: int = 0
    unknown_documents: int = 0
    unknown_queries: int = 0
    exclusions: int = 0
    repaired: int = 0


def write_layout(
    folder: Path,
    contents: Contents,
    split: str,
    *,
    expected: int = 0,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Counts:
    """Write ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv`` into an empty folder.

    ``expected`` documents are what the progress is measured against. InputError where there are no judgments, no
    judged queries or no documents; StoppedError once ``should_stop`` says so.
    """
    counts = Counts()
    (folder / "qrels").mkdir(parents=True)
    qrels = _judgments(contents, counts)
    with open(folder / "qrels" / f"{split}.tsv", "x", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query, grades in qrels.items():
            file.writelines(f"{query}\t{document}\t{grade}\n" for document, grade in grades.items())
    with open(folder / "queries.jsonl", "x", encoding="utf-8") as file:
        _queries(file, contents, qrels, counts)
    wanted = {document for grades in qrels.values() for document in grades}
    with open(folder / "corpus.jsonl", "x", encoding="utf-8") as file:
        _documents(file, contents, wanted, counts, expected, progress, should_stop)
    return counts


def _judgments(contents: Contents, counts: Counts) -> dict[str, dict[str, int]]:
    """Return {query: {document: grade}} in the order of the source; of repeated ones the highest grade counts."""
    qrels: dict[str, dict[str, int]] = {}
    for qrel in contents.judgments():
        grades = qrels.setdefault(_checked_id(qrel.query_id), {})
        counts.repeated_judgments += _checked_id(qrel.document_id) in grades
        grades[qrel.document_id] = max(qrel.score, grades.get(qrel.document_id, qrel.score))
    if not qrels:
        raise InputError("There are no judgments in the source.", hint="Is it the right split, and the whole download?")
    counts.judgments = sum(map(len, qrels.values()))
    return qrels


def _checked_id(identifier: str) -> str:
    """Return the id; InputError for one that the lines of a qrels file cannot hold."""
    if not identifier.strip() or _NO_ID.search(identifier):
        raise InputError(
            f"The source has an id that cannot be stored: {identifier[:80]!r}.",
            hint="Ids are not empty and hold neither tabs, line breaks nor control characters.",
        )
    return identifier


def _queries(file: TextIO, contents: Contents, qrels: dict[str, dict[str, int]], counts: Counts) -> None:
    """Write the judged queries, each id once."""
    written: set[str] = set()
    for query in contents.queries():
        if query.id not in qrels:
            counts.unjudged_queries += 1
        elif query.id in written:
            counts.repeated_queries += 1
        else:
            written.add(query.id)
            text, changed = storable(query.text)
            counts.repaired += changed
            counts.exclusions += len(query.excluded)
            excluded = [storable(document)[0] for document in query.excluded]
            _line(file, {"_id": query.id, "text": text, **({"excluded_ids": excluded} if excluded else {})})
    if not written:
        raise InputError("Not one query of the source is judged.", hint="Do queries and judgments belong together?")
    counts.queries = len(written)
    counts.unknown_queries = len(qrels) - len(written)


def _documents(
    file: TextIO,
    contents: Contents,
    wanted: set[str],
    counts: Counts,
    expected: int,
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> None:
    """Write the documents, each id once, and count the judged ones that are missing."""
    seen, judged, read = SeenIds(), 0, 0
    for batch in batched(contents.documents(), BATCH):
        if should_stop is not None and should_stop():
            raise StoppedError
        hashes = [hash((document.title, document.text)) for document in batch]
        earlier = seen.add([document.id for document in batch], range(len(batch)), hashes)
        for i, document in enumerate(batch):
            if i in earlier:
                counts.repeated_documents += 1
                counts.conflicting_documents += earlier[i].content != hashes[i]
                continue
            (title, title_changed), (text, text_changed) = storable(document.title), storable(document.text)
            counts.repaired += title_changed or text_changed
            _line(file, {"_id": _checked_id(document.id), **({"title": title} if title else {}), "text": text})
            judged += document.id in wanted
        read += len(batch)
        if progress is not None:
            progress("writing documents", read, max(expected, read))
    counts.documents = read - counts.repeated_documents
    counts.unknown_documents = len(wanted) - judged
    if not counts.documents:
        raise InputError("There are no documents in the source.", hint="Is the download whole?")


def _line(file: TextIO, record: dict[str, object]) -> None:
    file.write(json.dumps(record, ensure_ascii=False) + "\n")
