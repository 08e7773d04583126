"""Corpus, queries and qrels of a BEIR folder, read strictly by line: every bad line is found, the first twenty named.

``corpus.jsonl`` and ``queries.jsonl``: one JSON object per line with ``_id`` (or ``id``), ``text``, and for documents
an optional ``title``. ``qrels/<split>.tsv``: a header ``query-id  corpus-id  score``, then three tab-separated columns;
TREC's four columns (``query 0 document grade``, any white space) are read as well. Each file may end in ``.gz``.
"""

from __future__ import annotations

import bisect
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from cdp.base.errors import SHOWN_PROBLEMS, InputError
from cdp.base.records import Document
from cdp.base.text import capital
from cdp.corpus.checks import GUESSES, checked_title, column_named, ids_in, storable
from cdp.corpus.collector import SeenIds
from cdp.corpus.grades import A_GRADE, grade_of
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import BadRow, Row
from cdp.corpus.readers.jsonl import json_rows
from cdp.corpus.sources import Budget, Source, numbered_lines, open_text

# Bytes a compressed file may unpack to: 1 TB, more than any public benchmark.
UNPACKED_LIMIT = 1 << 40


class Problems:
    """Bad lines of one file: the first twenty with their reason, all counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.first: list[tuple[int, str]] = []

    def add(self, line: int, what: str) -> None:
        self.count += 1
        bisect.insort(self.first, (line, what))
        del self.first[SHOWN_PROBLEMS:]

    def raise_if_any(self, hint: str) -> None:
        """InputError for everything that was added; a single problem carries its line."""
        if self.count == 1:
            raise InputError(self.first[0][1], hint=hint, file=self.file, line=self.first[0][0])
        if self.count:
            shown = "; ".join(f"line {line}: {what}" for line, what in self.first)
            more = f"; and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
            raise InputError(f"{self.count:,} lines cannot be used. {shown}{more}", hint=hint, file=self.file)


def source_of(path: Path) -> Source:
    """Return a file's content, compressed or not."""
    return Source.of_file(path, path.name, Budget.of(path, UNPACKED_LIMIT))


def lines_of(path: Path) -> Iterator[tuple[int, str | None]]:
    """Yield (number, line) of every line that is not blank; None for one that is too long to be held.

    InputError for bytes that are not UTF-8.
    """
    with open_text(source_of(path), "utf-8") as text:
        for number, line in numbered_lines(text):
            if line is None or line.strip():
                yield number, line


# (line, id, fields) of one line of a JSONL file.
LineEntry = tuple[int, str, Mapping[str, Any]]

# Lines whose ids are looked up together.
BATCH = 4096


def _entries(path: Path, problems: Problems) -> Iterator[LineEntry]:
    """The usable lines of a JSONL file, each id once; the others go to ``problems``. Memory: 24 bytes per line."""
    seen = SeenIds()
    rows = json_rows(source_of(path), ReadOptions(encoding="utf-8"))
    while batch := list(islice(rows, BATCH)):
        entries = list(filter(None, (_entry(row, problems) for row in batch)))
        lines, ids = list(map(itemgetter(0), entries)), list(map(itemgetter(1), entries))
        earlier = seen.add(ids, lines, [0] * len(entries))

        for i, (line, identifier, fields) in enumerate(entries):
            if i in earlier:
                problems.add(line, f"The id {identifier!r} was already used in line {earlier[i].place}.")
            else:
                yield line, identifier, fields


def _entry(row: Row | BadRow, problems: Problems) -> LineEntry | None:
    """Return a line that has an id and a text; None for any other, which goes to ``problems``."""
    number = row.line or 0
    if isinstance(row, BadRow):
        problems.add(number, f"{capital(row.kind)}: {row.reason}.")
        return None

    fields = row.values
    identifier = fields.get("_id", fields.get("id"))
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        identifier = str(identifier)
    if not isinstance(identifier, str) or not identifier.strip():
        problems.add(number, 'There is no "_id".')
    elif storable(identifier)[1]:
        problems.add(number, "The _id holds NUL or half of a surrogate pair.")
    elif not isinstance(fields.get("text"), str):
        problems.add(number, f'{identifier!r} has no "text".')
    elif type(fields.get("title")) not in (str, int, float, type(None)):
        problems.add(number, f"The title of {identifier!r} is not text.")
    else:
        return number, identifier, fields
    return None


_SHOWN_EMPTY = 3
_JSONL_HINT = "Correct the file: one JSON object per line, with an _id of its own and a text."


def iter_corpus(path: Path, warnings: list[str] | None = None) -> Iterator[Document]:
    """The documents one after the other; what is odd about them goes to ``warnings`` after the last one.

    InputError after the last one, naming every bad line, or for a file without documents.
    """
    problems, n, n_empty, empty, n_repaired = Problems(path.name), 0, 0, [], 0
    for _, identifier, fields in _entries(path, problems):
        title = fields.get("title")
        text, text_repaired = storable(fields["text"])
        title, title_repaired = storable(checked_title(title, "title"))
        n_repaired += text_repaired or title_repaired
        document = Document(identifier, text, title)
        n += 1

        if not document.content.strip():
            n_empty += 1
            if n_empty <= _SHOWN_EMPTY:
                empty.append(identifier)

        yield document

    problems.raise_if_any(_JSONL_HINT)

    if not n:
        raise InputError("There is no document in it.", hint=_JSONL_HINT, file=path.name)
    if n_repaired and warnings is not None:
        warnings.append(f"Documents with NUL or half of a surrogate pair, replaced by U+FFFD: {n_repaired:,}.")

    if n_empty and warnings is not None:
        what = "document has" if n_empty == 1 else "documents have"
        warnings.append(f"{n_empty:,} {what} neither title nor text (first: {', '.join(empty)}).")


@dataclass(frozen=True)
class QueryLine:
    """One line of queries.jsonl. ``excluded`` documents never count as retrieved for it (BRIGHT's excluded_ids)."""

    text: str
    excluded: tuple[str, ...] = ()


def _excluded(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """BRIGHT's ``excluded_ids``, at the top or in ``metadata``; it writes ["N/A"] for none."""
    metadata, value = fields.get("metadata"), fields.get("excluded_ids")
    if not value and isinstance(metadata, dict):
        value = metadata.get("excluded_ids")
    if not isinstance(value, list):
        return ()
    return tuple(str(d) for d in value if not isinstance(d, (dict, list)) and d != "N/A")


def read_queries(path: Path) -> dict[str, QueryLine]:
    """{query id: its line}. InputError naming every bad line, and for a file without queries."""
    problems, queries = Problems(path.name), {}
    for line, identifier, fields in _entries(path, problems):
        if not fields["text"].strip():
            problems.add(line, f"The text of query {identifier!r} is empty.")
        elif storable(fields["text"])[1]:
            problems.add(line, f"The text of query {identifier!r} holds NUL or half of a surrogate pair.")
        queries[identifier] = QueryLine(fields["text"], _excluded(fields))
    problems.raise_if_any(_JSONL_HINT)
    if not queries:
        raise InputError("There is no query in it.", hint=_JSONL_HINT, file=path.name)
    return queries


@dataclass
class Judgments:
    """The judgments of one qrels file, and the line where each query and each document first appears."""

    file: str
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    query_lines: dict[str, int] = field(default_factory=dict)
    document_lines: dict[str, int] = field(default_factory=dict)
    repeated: int = 0


_QRELS_HINT = (
    "A line is: query id, tab, document id, tab, a whole number (or TREC's four columns); "
    "the first may be: query-id, tab, corpus-id, tab, score."
)


def _columns(line: str) -> list[str]:
    parts = line.rstrip("\r\n").split("\t")
    if len(parts) < 3:
        parts = line.split()
    return list(map(str.strip, parts))


# The places of query, document and grade without a header; of TREC's four columns the second means nothing.
_PLACES = {3: (0, 1, 2), 4: (0, 2, 3)}
# What it usually holds.
_NOTHING = ("0", "Q0")


def _header(columns: list[str]) -> tuple[int, int, int] | None:
    """The places of query, document and grade by the names of a header; None where a line is none."""
    grade = column_named(columns, GUESSES["grade"])
    others = [name for name in columns if name != grade]

    document = column_named(others, GUESSES["document"])
    query = column_named([name for name in others if name != document], GUESSES["query-id"])
    # "relevant" is a name and a grade: beside it one of the others is known, too.
    if grade is None or (grade_of(grade) is not None and not (query or document)):
        return None
    if query and document:
        return columns.index(query), columns.index(document), columns.index(grade)
    if len(columns) not in _PLACES:
        return None

    first, second, last = _PLACES[len(columns)]

    if len(columns) == 3:  # what is not named is what is left
        rest = [at for at in range(3) if columns[at] not in (query, document, grade)]
        first = columns.index(query) if query else rest.pop(0)
        second = columns.index(document) if document else rest.pop(0)
        last = columns.index(grade)

    return first, second, last


def digest_of_qrels(path: Path) -> str:
    """Return the hex SHA-256 of a file of judgments as text, compressed or not, with line breaks normalised.

    It says so where the header names another order than the usual: such files were read by position before, so results
    from then are those of other judgments.
    """
    digest = hashlib.sha256()
    columns: list[str] | None = None
    for _, line in lines_of(path):
        text = line or ""
        if columns is None:
            columns = _columns(text)
        digest.update(text.rstrip("\r\n").encode("utf-8", "surrogatepass") + b"\n")

    places = _header(columns or [])
    if places is None or places == _PLACES.get(len(columns or [])):
        return digest.hexdigest()
    return f"{digest.hexdigest()} by {places}"


def read_qrels(path: Path) -> Judgments:
    """The judgments of one split. InputError naming every bad line, and for a file without judgments.

    A first line is a header if one of its columns is called a grade; then the names say which column holds what.
    """
    problems, judgments = Problems(path.name), Judgments(path.name)
    first, places, n_columns = True, None, 0
    for number, line in lines_of(path):
        columns = _columns(line) if line is not None else []

        if first:
            first, places, n_columns = False, _header(columns), len(columns)
            if places:
                continue
            if (
                n_columns == 4
                and columns[3] in _NOTHING
                and columns[1] not in _NOTHING
                and grade_of(columns[2]) is not None
            ):
                places = (0, 1, 2)  # as ir_datasets exports them

        if places and len(columns) == n_columns:
            columns = list(itemgetter(*places)(columns))
        elif len(columns) in _PLACES:
            columns = list(itemgetter(*_PLACES[len(columns)])(columns))

        grade = grade_of(columns[2]) if len(columns) == 3 else None

        if len(columns) != 3 or not columns[0] or not columns[1]:
            problems.add(number, "This is not a query id, a document id and a grade.")
            continue

        if grade is None:
            problems.add(number, f"The grade {columns[2]!r} is not {A_GRADE}.")
            continue

        query, documents = columns[0], [columns[1]]
        if columns[1].startswith("["):
            try:
                documents = ids_in(columns[1])
            except ValueError as error:
                problems.add(number, f"The documents: {error}.")
                continue

        grades = judgments.grades.setdefault(query, {})
        for document in documents:
            if document in grades:
                if grades[document] != grade:
                    was = f"{query!r} and {document!r} were judged {grades[document]} before"
                    problems.add(number, f"{was}, here {grade}.")
                judgments.repeated += 1
                continue

            grades[document] = grade
            judgments.query_lines.setdefault(query, number)
            judgments.document_lines.setdefault(document, number)

    problems.raise_if_any(_QRELS_HINT)

    if not judgments.grades:
        raise InputError("There is no judgment in it.", hint=_QRELS_HINT, file=path.name)

    return judgments


# {split: {query id: {document id: grade}}}
SplitJudgments = Mapping[str, Mapping[str, Mapping[str, int]]]


def json_line(value: Mapping[str, Any]) -> str:
    """Return a line of a JSONL file."""
    return json.dumps(value, ensure_ascii=False) + "\n"


def write_beir(
    folder: Path, documents: Iterable[Document], queries: Iterable[Mapping[str, Any]], judged: SplitJudgments
) -> None:
    """Write the three kinds of file into a folder that holds none yet; ``queries`` are lines with ``_id`` and ``text``,
    judgments stand in the order of the file."""
    (folder / "qrels").mkdir(parents=True)
    records = ({"_id": document.id, "title": document.title, "text": document.text} for document in documents)
    for name, lines in (("corpus", records), ("queries", queries)):
        with open(folder / f"{name}.jsonl", "x", encoding="utf-8") as file:
            file.writelines(map(json_line, lines))

    for split, qrels in judged.items():
        with open(folder / "qrels" / f"{split}.tsv", "x", encoding="utf-8") as file:
            file.write("query-id\tcorpus-id\tscore\n")
            for query, grades in qrels.items():
                file.writelines(f"{query}\t{document}\t{grade}\n" for document, grade in grades.items())
