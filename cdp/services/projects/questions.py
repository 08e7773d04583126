"""Queries that come with documents: read with their splits and grades, divided where no splits are named."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.settings import Config, option
from cdp.base.workspace import slug
from cdp.corpus import ReadOptions
from cdp.corpus.checks import queries_of
from cdp.corpus.looking import DOCUMENTS, GRADES, SPLITS, iter_rows, look
from cdp.corpus.origin import ORIGINS
from cdp.corpus.readers import Row

Answers = dict[str, dict[str, int]]
"""{query: {document: grade}}"""

TEST, DEV, TRAIN = "test", "dev", "train"

SPLIT_NAMES = {"validation": DEV, "valid": DEV, "val": DEV, "development": DEV, "training": TRAIN, "testing": TEST}
"""What splits are also called."""

FEWEST = 10
"""Documents with queries below which none are held out: nothing could be told from so few."""

MOST_HELD_OUT = 2_000
"""Documents: more queries make no difference to an interval that is a tenth of a point wide."""


class AddOptions(Config):
    """Which column is what, and how queries are divided. Columns left out are found by their names."""

    id_field: str | None = option(None, "The column with a document's id; - numbers the rows.")
    title_field: str | None = option(None, "The column with a document's title; - leaves it out.")
    text_field: str | None = option(None, "The column with a document's text.")
    query_field: str | None = option(None, "The column with queries: beside the text, or in the file of queries.")
    document_field: str | None = option(None, "In a file of queries: the column with the id of the document.")
    split_field: str | None = option(None, "In a file of queries: the column that names the split of each.")
    grade_field: str | None = option(
        None, "In a file of queries: the column with the grade of the judgment; 0 is judged not relevant."
    )
    with_queries: bool = option(True, "Whether queries that stand beside the text are taken.")
    origin: str = option("human", "Who wrote the queries.", choices=ORIGINS)
    held_out: float = option(
        0.2,
        "Of the documents with queries, the share whose queries become the split dev of a benchmark, where no column "
        "names splits.",
        minimum=0.0,
        maximum=0.9,
    )
    seed: int = option(0, "What draws these documents.", minimum=0)

    def reading(self, how: ReadOptions) -> ReadOptions:
        """How the documents are read: ``how``, with the columns that are named here."""
        names = ("id_field", "title_field", "text_field", "query_field")
        return how.replace(**{name: value for name in names if (value := getattr(self, name)) is not None})


@dataclass
class Judged:
    """Queries with the documents that answer them, by split: {split: {text: {document: grade}}}."""

    splits: dict[str, Answers] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    named: bool = False
    """Whether the source names splits."""

    def add(self, split: str, text: str, document: str, grade: int) -> None:
        self.splits.setdefault(split, {}).setdefault(text, {})[document] = grade


def columns_of(path: Path, options: AddOptions, encoding: str) -> tuple[str, str, str | None, str | None]:
    """Return the columns with queries, documents' ids, splits and grades. InputError where one is not known."""
    seen = look(path, ReadOptions.from_dict({"encoding": encoding}))
    text_field = options.query_field or seen.queries or seen.guess(("text",))
    document_field = options.document_field or seen.guess((*DOCUMENTS, "_id", "id"))
    split_field = options.split_field or seen.guess(SPLITS)
    grade_field = options.grade_field or seen.guess(GRADES)
    columns = (("query_field", "the queries", text_field), ("document_field", "their documents' ids", document_field))
    for what, content, column in columns:
        if column is None or (seen.columns and column not in seen.columns):
            raise InputError(
                f"No column of queries is called {column!r}."
                if column
                else f"No column is known by its name to hold {content}.",
                hint=f"Set {what} to one of {', '.join(seen.columns[:20])}.",
                file=path,
            )
    return str(text_field), str(document_field), split_field, grade_field


def of_file(path: Path, known: Collection[str], options: AddOptions, encoding: str) -> Judged:
    """The queries of a file of their own: a row each, with the id of the document (among those ``known``), maybe a
    split and a grade."""
    text_field, document_field, split_field, grade_field = columns_of(path, options, encoding)
    reading = ReadOptions.from_dict({"encoding": encoding})
    judged = Judged(named=split_field is not None)
    for row in iter_rows(path, reading):
        if not isinstance(row, Row):
            judged.left_out["rows of queries that cannot be read"] += 1
            continue
        texts, unusable, _ = queries_of(row.values.get(text_field))
        value = row.values.get(document_field)
        document = value if isinstance(value, str) and value in known else _text(value)
        grade = _grade(row.values.get(grade_field)) if grade_field else 1
        split = _split_name(row.values.get(split_field)) if split_field else ""
        judged.left_out["rows without a query"] += not texts
        judged.left_out["entries among queries that are no text"] += unusable if texts else 0
        if texts and document not in known:
            judged.left_out["queries for a document that is not here"] += len(texts)
        elif texts and grade is None:
            judged.left_out["judgments without a whole number as their grade"] += len(texts)
        elif texts and grade is not None:
            for text in texts:
                judged.add(split, one_line(text), document, grade)
    return judged


def _text(value: Any) -> str:
    """An id as the reader of documents makes it: texts without blanks around them, whole numbers as they are."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _grade(value: Any) -> int | None:
    """A grade; None where it is no whole number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() and abs(number) < 1_000 else None


def _split_name(value: Any) -> str:
    name = slug(str(value or ""), fallback=TRAIN)
    return SPLIT_NAMES.get(name, name)


def one_line(text: str) -> str:
    return " ".join(text.split())


def divided(texts: Answers, options: AddOptions) -> tuple[dict[str, Answers], dict[str, Any], str]:
    """Queries without splits, divided by documents that are drawn: ({split: queries}, how, and in a sentence)."""
    documents = sorted({document for grades in texts.values() for document, grade in grades.items() if grade > 0})
    n = min(round(options.held_out * len(documents)), MOST_HELD_OUT)
    if len(documents) < FEWEST or not n:
        few = f"{len(documents)} documents have some, and at least {FEWEST} are needed"
        return {TRAIN: texts}, {}, f"No queries were held out: {few}." if options.held_out else ""
    drawn = set(sorted(documents, key=lambda document: _order(options.seed, document))[:n])
    # A query that also belongs to a document that was not drawn is measured with, not trained on.
    held = {text: grades for text, grades in texts.items() if drawn & set(grades)}
    rest = {text: grades for text, grades in texts.items() if text not in held}
    said = (
        f"The {len(held):,} queries of {n:,} documents, of {len(documents):,} that have some, are the split dev of "
        f"the benchmark (drawn with seed {options.seed}); those of the others are the training queries."
    )
    facts = {"held_out": {"by": "documents", "documents": n, "share": options.held_out, "seed": options.seed}}
    return {DEV: held, TRAIN: rest}, facts, said


def _order(seed: int, document: str) -> bytes:
    """Where a document stands in the draw: the same on every machine."""
    return hashlib.sha256(f"{seed}\0held out\0{document}".encode("utf-8", "surrogatepass")).digest()


def without(texts: Answers, measured: Mapping[str, Answers]) -> Answers:
    """Training queries without those that the benchmark asks too, whatever their case."""
    asked = {text.casefold() for split in measured.values() for text in split}
    return {text: grades for text, grades in texts.items() if text.casefold() not in asked}


def by_document(texts: Answers) -> dict[str, list[str]]:
    """The queries of each document that answers them."""
    pairs: dict[str, list[str]] = {}
    for text, grades in texts.items():
        for document, grade in grades.items():
            if grade > 0:
                pairs.setdefault(document, []).append(text)
    return pairs
