"""From a published benchmark to the BEIR layout of the workspace, as a stream.

The judgments come first, then the queries that they name, then the documents one by one: what is held in memory is the
judgments, and 24 bytes per document to know an id that comes twice. Nothing is left out in silence: ``Counts`` has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cdp.base.errors import InputError
from cdp.base.records import Document
from cdp.benchmarks.beir_files import batched
from cdp.benchmarks.schemas import Contents
from cdp.corpus.checks import storable
from cdp.corpus.seen import SeenIds

BATCH = 4096
_NO_ID = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

Progress = Callable[[str, int, int], None]
"""Called with a phase, what is done and the total (0 where it is unknown)."""


class StoppedError(Exception):
    """Someone asked for a stop; what was fetched stays, to go on from."""


@dataclass(frozen=True)
class Counts:
    """What came of a conversion. ``repeated`` documents had the id of an earlier one and were left out, ``conflicting``
    of them with another text; ``unjudged`` queries were left out, and ``repeated`` ones, of which the first stands;
    ``unknown`` judgments name a document or query that is not there; ``repaired`` texts held NUL or half of a surrogate
    pair, which became U+FFFD."""

    documents: int
    queries: int
    judgments: int
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
    (folder / "qrels").mkdir(parents=True)
    qrels, repeated = _judgments(contents)
    with open(folder / "qrels" / f"{split}.tsv", "x", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query, grades in qrels.items():
            file.writelines(f"{query}\t{document}\t{grade}\n" for document, grade in grades.items())
    with open(folder / "queries.jsonl", "x", encoding="utf-8") as file:
        written, again, unjudged, exclusions, repaired = _queries(file, contents, qrels)
    wanted = {document for grades in qrels.values() for document in grades}
    with open(folder / "corpus.jsonl", "x", encoding="utf-8") as file:
        tally = _documents(file, contents, wanted, expected, progress, should_stop)
    return Counts(
        documents=tally.written,
        queries=len(written),
        judgments=sum(map(len, qrels.values())),
        repeated_documents=tally.repeated,
        conflicting_documents=tally.conflicting,
        repeated_judgments=repeated,
        repeated_queries=again,
        unjudged_queries=unjudged,
        unknown_documents=len(wanted) - tally.judged,
        unknown_queries=len(qrels) - len(written),
        exclusions=exclusions,
        repaired=repaired + tally.repaired,
    )


def _judgments(contents: Contents) -> tuple[dict[str, dict[str, int]], int]:
    """({query: {document: grade}} in the order of the source, judgments that came again; the highest grade counts)."""
    qrels: dict[str, dict[str, int]] = {}
    repeated = 0
    for qrel in contents.judgments():
        checked_id(qrel.query_id)
        checked_id(qrel.document_id)
        grades = qrels.setdefault(qrel.query_id, {})
        repeated += qrel.document_id in grades
        grades[qrel.document_id] = max(qrel.score, grades.get(qrel.document_id, qrel.score))
    if not qrels:
        raise InputError("There are no judgments in the source.", hint="Is it the right split, and the whole download?")
    return qrels, repeated


def checked_id(identifier: str) -> str:
    """The id itself; InputError for one that the lines of a qrels file cannot hold."""
    if not identifier.strip() or _NO_ID.search(identifier):
        raise InputError(
            f"The source has an id that cannot be stored: {identifier[:80]!r}.",
            hint="Ids are not empty and hold neither tabs, line breaks nor control characters.",
        )
    return identifier


def _queries(file: TextIO, contents: Contents, qrels: dict[str, dict[str, int]]) -> tuple[set[str], int, int, int, int]:
    """Write the judged queries: (their ids, left out as repeated, as not judged, documents they exclude, repaired)."""
    written: set[str] = set()
    repeated = unjudged = exclusions = n_repaired = 0
    for query in contents.queries():
        if query.id not in qrels:
            unjudged += 1
        elif query.id in written:
            repeated += 1
        else:
            written.add(query.id)
            exclusions += len(query.excluded)
            text, changed = storable(query.text)
            n_repaired += changed
            record = {"_id": query.id, "text": text}
            if query.excluded:
                _line(file, {**record, "excluded_ids": [storable(document)[0] for document in query.excluded]})
            else:
                _line(file, record)
    if not written:
        raise InputError("Not one query of the source is judged.", hint="Do queries and judgments belong together?")
    return written, repeated, unjudged, exclusions, n_repaired


@dataclass
class _Tally:
    written: int = 0
    repeated: int = 0
    conflicting: int = 0
    judged: int = 0
    repaired: int = 0


def _documents(
    file: TextIO,
    contents: Contents,
    wanted: set[str],
    expected: int,
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> _Tally:
    """Write the documents, each id once, and count those that are judged."""
    tally, seen = _Tally(), SeenIds()
    for batch in batched(contents.documents(), BATCH):
        if should_stop is not None and should_stop():
            raise StoppedError
        for document in _new(batch, seen, tally):
            (title, title_changed), (text, text_changed) = storable(document.title), storable(document.text)
            tally.repaired += title_changed or text_changed
            record = {"_id": checked_id(document.id), "title": title, "text": text}
            _line(file, record if title else {"_id": document.id, "text": text})
            tally.judged += document.id in wanted
        tally.written += len(batch)
        if progress is not None:
            progress("writing documents", tally.written, max(expected, tally.written))
    tally.written -= tally.repeated
    if not tally.written:
        raise InputError("There are no documents in the source.", hint="Is the download whole?")
    return tally


def _new(batch: list[Document], seen: SeenIds, tally: _Tally) -> Iterator[Document]:
    """The documents of a batch whose id did not come before."""
    contents = [hash((document.title, document.text)) for document in batch]
    earlier = seen.add([document.id for document in batch], range(len(batch)), contents)
    for i, document in enumerate(batch):
        if i not in earlier:
            yield document
            continue
        tally.repeated += 1
        tally.conflicting += earlier[i].content != contents[i]


def _line(file: TextIO, record: Mapping[str, object]) -> None:
    file.write(json.dumps(record, ensure_ascii=False) + "\n")
