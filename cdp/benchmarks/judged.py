"""A benchmark that was judged here, by a model or people alone: pool, grades, labels, order of labelling.

::

    pool.jsonl     one query per line: its documents with each retriever's rank
    grades.jsonl   one pair per line: the model's grade and reason
    labels.jsonl   append-only, one action of a person per line; the last one of a pair counts

Grades are 0 (not related) to 3 (answers it), after UMBRELA (arXiv 2406.06519); 2 and 3 count as relevant. Where people
alone judge, ``judge`` of the manifest is empty, and the grades are their labels of the queries labelled as a whole.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Annotated, TypeVar

from pydantic import Field

from cdp.base import actions
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.locks import appearing, locked
from cdp.base.records import Count, Document, fields, lines
from cdp.base.workspace import (
    ANSWERS,
    RECORDS,
    Workspace,
    is_name,
    now,
    sha256_text,
    shuffle_key,
    write_bytes,
    write_jsonl,
)
from cdp.benchmarks import manifests
from cdp.benchmarks.beir_files import iter_corpus, read_qrels, write_beir
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.benchmarks.library import resolve_benchmark

KIND = "judged"
SPLIT = "test"
GRADES = (0, 1, 2, 3)
RELEVANT_FROM = 2
# What people label of a query: the first ten of every system, which are what NDCG@10 reads.
FIRST = 10
# Queries that every person labels, for their agreement; after them each gets queries that no one has finished.
SHARED = 10
# Seconds after which a person has paused; so many labels tell how fast people are.
SITTING, PACED = 300, 5

# Runs that were judged later stand in the pool by the id of their job.
_RUN = re.compile(r"(?:answer|evaluation|study|import)-\d{8}-\d{6}-")

# {query: {document: grade}}
QueryGrades = Mapping[str, Mapping[str, float]]

# {query: {document: {retriever: rank from 1}}}
Pool = dict[str, dict[str, dict[str, int]]]


T = TypeVar("T")
_GRADE = Annotated[int, Field(ge=0, le=3)]


@dataclass(frozen=True, slots=True)
class Grade:
    """The model's grade of one pair."""

    query: str
    document: str
    grade: _GRADE
    reason: str = ""


_POOL_LINE = fields({"query": str, "documents": dict[str, Annotated[dict[str, Count], Field(min_length=1)]]})
_LABEL_LINE = fields({"action": str, "query": str, "grades": dict[str, _GRADE | None], "by": str})


@dataclass(frozen=True, slots=True)
class Label:
    """A person's grade of one pair; ``grade`` None: unsure."""

    query: str
    document: str
    grade: int | None
    by: str


def begin(
    folder: Path, documents: Iterable[Document], queries: Mapping[str, str], pool: Pool, manifest: manifests.Manifest
) -> None:
    """Store a benchmark that people alone judge: it has no judgments before a query is labelled as a whole.
    InputError where something has its name."""
    with appearing(folder) as made:
        query_lines = ({"_id": query, "text": text} for query, text in queries.items())
        write_beir(made, documents, query_lines, {})
        manifests.write(made, replace(manifest, created=now()))
        write_pool(made, pool)


def write_pool(folder: Path, pool: Pool) -> None:
    """Store a pool, replacing the one that is there."""
    records = ({"query": query, "documents": documents} for query, documents in pool.items())
    write_jsonl(folder / "pool.jsonl", records)


def read_pool(folder: Path, problems: list[str] | None = None) -> Pool:
    """Return the pool; empty for a benchmark that was not judged here. ``problems`` as in ``records.lines``."""
    return {line["query"]: line["documents"] for line in lines(_POOL_LINE, folder / "pool.jsonl", problems)}


def pool_of(rankings: Mapping[str, Mapping[str, Sequence[str]]], depth: int) -> Pool:
    """Merge the first ``depth`` documents of {retriever: {query: documents, best first}}."""
    pool: Pool = {}
    for retriever, ranked in rankings.items():
        for query, documents in ranked.items():
            of_query = pool.setdefault(query, {})
            for rank, document in enumerate(documents[:depth], start=1):
                of_query.setdefault(document, {})[retriever] = rank
    return pool


def merged(pool: Pool, other: Pool) -> Pool:
    """Return both pools as one."""
    both: Pool = {}
    for one in (pool, other):
        for query, documents in one.items():
            of_query = both.setdefault(query, {})
            for document, ranks in documents.items():
                of_query[document] = of_query.get(document, {}) | ranks

    return both


def write_grades(folder: Path, grades: Iterable[Grade]) -> None:
    """Store grades as ``grades.jsonl`` and as the judgments of the split ``test``."""
    listed = list(grades)
    rows = "".join(f"{grade.query}\t{grade.document}\t{grade.grade}\n" for grade in listed)
    write_bytes(_qrels(folder), f"query-id\tcorpus-id\tscore\n{rows}".encode())
    # Last: where a process ends between the two, ``publish`` sees that they differ from the labels.
    write_jsonl(folder / "grades.jsonl", map(asdict, listed))


def _qrels(folder: Path) -> Path:
    return folder / "qrels" / f"{SPLIT}.tsv"


def publish(folder: Path) -> None:
    """Make people's labels the judgments, where they alone judge: of the queries labelled as a whole, the mean grade,
    rounded; between two grades the lower one."""
    if not by_people(folder):
        return

    # Of two people at once, the last one to get here reads the labels of both.
    with locked(folder / "labels.lock", "The labels"):
        known = people_grades(read_pool(folder), read_labels(folder))
        grades = []
        for query, of_query in known.items():
            grades += [Grade(query, document, math.ceil(mean - 0.5)) for document, mean in of_query.items()]

        if grades and grades != read_grades(folder):
            write_grades(folder, grades)
        if not grades:
            (folder / "grades.jsonl").unlink(missing_ok=True)
            _qrels(folder).unlink(missing_ok=True)


def read_grades(folder: Path, problems: list[str] | None = None) -> list[Grade]:
    """Return the judge's grades."""
    return list(lines(Grade, folder / "grades.jsonl", problems))


def grades_of(folder: Path) -> QueryGrades:
    """Return the model's grades as {query: {document: grade}}; kept while the file is unchanged."""

    return ANSWERS.get(folder / "grades.jsonl", "grades", lambda: by_query(read_grades(folder)))


def grades_now(folder: Path, split: str) -> QueryGrades:
    """Return the judgments of a split with all that the model judged until now, {query: {document: grade}}.

    A subset keeps the judgments of when it was drawn: those of its documents that came later are added. KeyError for an
    unknown split.
    """
    path, of_whole = qrels_files(folder)[split], whole(folder) / "grades.jsonl"
    question = ("grades now", split, version(folder, split))

    def load() -> QueryGrades:
        later, drawn = grades_of(of_whole.parent), read_qrels(path).grades
        if of_whole.parent == folder:
            return drawn

        there = {document.id for document in iter_corpus(part(folder, "corpus"))}
        now: dict[str, Mapping[str, float]] = {}
        for query, known in drawn.items():
            added = {document: grade for document, grade in later.get(query, {}).items() if document in there}
            now[query] = known | added

        return now

    return ANSWERS.get(path, question, load)


def judged_here(workspace: Workspace, benchmark: str, split: str) -> tuple[Path, QueryGrades] | None:
    """Return (a benchmark's folder, its ``grades_now``); None where it was not judged here, or cannot be read."""
    with suppress(CdpError, KeyError, OSError):
        folder = resolve_benchmark(benchmark, workspace)
        if is_judged(whole(folder)):
            return folder, grades_now(folder, split)
    return None


def version(folder: Path, split: str = SPLIT) -> str:
    """Return a hash of all that people and the model say of a split as it is now: what is kept of it is kept under it.

    ``folder`` is a benchmark's or a subset's, which has its own judgments and the labels, grades and pool of the whole.
    """
    there, judgments = whole(folder), qrels_files(folder).get(split)
    digests = [RECORDS.digest(judgments) if judgments else ""]
    for name in ("grades.jsonl", "labels.jsonl", "pool.jsonl"):
        digests.append(RECORDS.digest(there / name))

    return sha256_text(*digests)


def answered_key(folder: Path) -> str:
    """Return a short hash of the queries with a relevant document where people alone judge; empty elsewhere."""
    # A sample is called by it: labels come and go, and as many queries may be other ones.
    if not by_people(folder):
        return ""

    answered = (query for query, grades in grades_of(whole(folder)).items() if max(grades.values()) > 0)
    return sha256_text(*sorted(answered))[:6]


def by_query(grades: Iterable[Grade]) -> dict[str, dict[str, int]]:
    """Return {query: {document: grade}}."""
    found: dict[str, dict[str, int]] = {}
    for grade in grades:
        found.setdefault(grade.query, {})[grade.document] = grade.grade
    return found


def by_pair(grades: Iterable[Grade]) -> dict[tuple[str, str], Grade]:
    """Return {(query, document): its last grade}."""
    return {(grade.query, grade.document): grade for grade in grades}


def missing(grades: Mapping[str, Collection[str]], *runs: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    """Return the pairs (query, document) of these first tens that have no grade; of a pool, those that it lacks."""
    return {(query, document) for query, document in _pairs(runs) if document not in grades.get(query, ())}


def _pairs(runs: Iterable[Mapping[str, Sequence[str]]]) -> Iterator[tuple[str, str]]:
    for run in runs:
        for query, documents in run.items():
            yield from zip(repeat(query), documents, strict=False)


def unjudged_share(grades: QueryGrades, *runs: Mapping[str, Sequence[str]]) -> float:
    """Return the share of the documents of these first tens that the model did not grade."""
    graded = [document in grades.get(query, ()) for query, document in _pairs(runs)]
    return graded.count(False) / max(1, len(graded))


def all_relevant(grades: QueryGrades, pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """Return the grades with these pairs (query, document) of the top grade: the other bound of what is unjudged."""
    found = {query: dict(known) for query, known in grades.items()}
    for query, document in pairs:
        found.setdefault(query, {})[document] = max(GRADES)
    return found


def add_labels(folder: Path, query: str, grades: Mapping[str, int | None], by: str) -> None:
    """Append one action of a person: the grades of one query's documents. ConfigError for what is no grade."""
    if any(grade is not None and grade not in GRADES for grade in grades.values()):
        raise ConfigError("A grade is 0, 1, 2 or 3.")
    actions.add(folder / "labels.jsonl", by, query=query, grades=dict(grades))
    publish(folder)


def pace(folder: Path) -> float | None:
    """Return the median seconds between two labels of a person in one sitting; None before there are ``PACED``."""
    last: dict[str, datetime] = {}
    took = []
    for line in actions.read(folder / "labels.jsonl", _LABEL_LINE):
        with suppress(KeyError, TypeError, ValueError):  # only what is shown depends on it
            at = datetime.fromisoformat(line["created"])
            seconds = (at - last.get(line["by"], at)).total_seconds()
            last[line["by"]] = at
            if 0 < seconds < SITTING:
                took.append(seconds / len(line["grades"]))

    return median(took) if len(took) >= PACED else None


def undo(folder: Path, by: str) -> str:
    """Take back a person's last action; return its query, empty if there is none."""
    last = actions.undo(folder / "labels.jsonl", by, _LABEL_LINE)
    publish(folder)
    return "" if last is None else str(last["query"])


def read_labels(folder: Path, problems: list[str] | None = None) -> list[Label]:
    """Return people's labels: the last of each person for each pair."""
    labels: dict[tuple[str, str, str], Label] = {}
    for line in actions.read(folder / "labels.jsonl", _LABEL_LINE, problems):
        query, by = line["query"], line["by"]
        for document, grade in line["grades"].items():
            labels[query, document, by] = Label(query, document, grade, by)

    return list(labels.values())


def to_label(pool: Pool, query: str) -> list[str]:
    """Return the documents of a query that people label, in a random order."""
    # By hash: the rank, and so the system, must not be seen.
    return sorted(_proposed(pool, query, later=True), key=lambda document: shuffle_key(query, document))


def _proposed(pool: Pool, query: str, *, later: bool) -> set[str]:
    """Return the first ten of every system; with ``later`` also of the runs that were judged after the benchmark was
    made."""

    def rank(ranks: Mapping[str, int]) -> int:
        return min((at for name, at in ranks.items() if later or not _RUN.match(name)), default=FIRST + 1)

    return {document for document, ranks in pool.get(query, {}).items() if rank(ranks) <= FIRST}


def carry(folder: Path, target: Path, kept: Mapping[str, str], queries: Collection[str]) -> None:
    """Carry pool, grades and labels of these ``queries`` over to a benchmark of the documents ``kept`` {id: new id};
    nothing where there is no pool."""
    pool = {query: documents for query, documents in read_pool(folder).items() if query in queries}
    if not pool:
        return

    write_pool(target, {query: _renamed(documents, kept) for query, documents in pool.items()})
    grades = [grade for grade in read_grades(folder) if grade.query in queries and grade.document in kept]
    write_grades(target, (replace(grade, document=kept[grade.document]) for grade in grades))

    labels = [line for line in actions.read(folder / "labels.jsonl", _LABEL_LINE) if line["query"] in queries]
    write_jsonl(target / "labels.jsonl", ({**line, "grades": _renamed(line["grades"], kept)} for line in labels))
    publish(target)


def _renamed(of_documents: Mapping[str, T], kept: Mapping[str, str]) -> dict[str, T]:
    return {kept[document]: value for document, value in of_documents.items() if document in kept}


def sampled(pool: Pool) -> list[str]:
    """Return all queries in a random order that never changes: its beginning is a random sample of whole queries."""
    return sorted(pool, key=lambda query: shuffle_key("sample", query))


def finished(pool: Pool, labels: Iterable[Label], by: str = "", *, later: bool = False) -> list[str]:
    """Return the queries of which someone (or this person) labelled every proposed document, in sampling order.

    Documents of runs that were judged ``later`` undo nothing: they count where that is said.
    """
    listed = [label for label in labels if not by or label.by == by]
    begun, left = {label.query for label in listed}, unlabelled(pool, listed, later=later)
    return [query for query in sampled(pool) if query in begun and not left[query]]


def unlabelled(pool: Pool, labels: Iterable[Label], *, later: bool = True) -> dict[str, int]:
    """Return {query: how many of its proposed documents are left to the person who labelled most of them}."""
    people: dict[str, dict[str, set[str]]] = {}
    for label in labels:
        people.setdefault(label.query, {}).setdefault(label.by, set()).add(label.document)

    left = {}
    for query in pool:
        proposed = _proposed(pool, query, later=later)
        of_people = people.get(query, {}).values()
        left[query] = min((len(proposed - done) for done in of_people), default=len(proposed))

    return left


def next_query(pool: Pool, labels: Sequence[Label], by: str) -> str:
    """Return the query that this person labels next; empty when there is none.

    A query that was begun comes first, also where a later retriever added documents to it; last come those that others
    finished before a later run added documents.
    """
    own, any_one = set(finished(pool, labels, by, later=True)), set(finished(pool, labels))
    order = sampled(pool)
    begun = {label.query for label in labels if label.by == by}
    extended = any_one - set(finished(pool, labels, later=True))
    for wanted in (begun, set(order[:SHARED]), set(order) - any_one, extended):
        for query in order:
            if query in wanted and query not in own and to_label(pool, query):
                return query

    return ""


def people_grades(pool: Pool, labels: Sequence[Label]) -> dict[str, dict[str, float]]:
    """Return {query: {document: mean grade of people}} of the queries that are labelled as a whole.

    Unsure counts as 0: a person who cannot say found no answer.
    """
    given: dict[str, dict[str, list[int]]] = {query: defaultdict(list) for query in finished(pool, labels)}
    for label in labels:
        if label.query in given:
            given[label.query][label.document].append(label.grade or 0)

    means: dict[str, dict[str, float]] = {}
    for query, of_query in given.items():
        means[query] = {document: sum(grades) / len(grades) for document, grades in of_query.items()}

    return means


def whole(folder: Path) -> Path:
    """Return the folder with pool, grades and labels: a subset has those of the benchmark that it was drawn from."""
    subset = manifests.read(folder).subset
    # Labels are written there: a stranger's manifest may name a folder, which is no name.
    if subset is None or not is_name(subset.of):
        return folder
    return folder.parent / subset.of


def judge_of(folder: Path) -> str:
    """Return the model that judged a benchmark; empty where people did."""
    return str(manifests.read(folder).source.get("judge") or "")


def by_people(folder: Path) -> bool:
    """Return True for a benchmark, or a sample of one, with a pool that people alone judge."""
    # An exported one comes back without its pool: its judgments are not to be made of labels.
    return manifests.read(folder).source.get("judge") == "" and (whole(folder) / "pool.jsonl").is_file()


def is_judged(folder: Path) -> bool:
    """Return True for a benchmark whose pool was judged, by a model or people."""
    with suppress(InputError):  # nothing is labelled yet
        return "judge" in manifests.read(folder).source and SPLIT in qrels_files(folder)
    return False
