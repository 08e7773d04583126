"""A file of queries with the documents that answer them; split names, dividing off dev."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.records import place_of
from cdp.base.settings import Config, altered, option
from cdp.base.workspace import shuffle_key, slug
from cdp.corpus import ReadOptions
from cdp.corpus.checks import id_in, not_taken, queries_of
from cdp.corpus.grades import Grades, grade_columns
from cdp.corpus.looking import FilePreview, iter_rows, look
from cdp.corpus.readers import Row
from cdp.query_sets.imports import ImportOptions
from cdp.query_sets.origins import ORIGINS

TEST, DEV, TRAIN = "test", "dev", "train"
SPLIT_NAMES = {"validation": DEV, "valid": DEV, "val": DEV, "development": DEV, "training": TRAIN, "testing": TEST}

# With fewer documents that have queries, none are held out: nothing could be told from so few.
FEWEST = 10

# Documents: more queries make no difference to an interval that is a tenth of a point wide.
MAX_HELD_OUT = 2_000

# {query: {document: grade}}
Answers = dict[str, dict[str, int]]


class AddOptions(Config):
    """The role of each column, and how queries are divided. Columns left out are found by their names."""

    id_field: str | None = altered(ReadOptions, "id_field", help="The column with a document's id; - numbers the rows.")
    title_field: str | None = altered(ReadOptions, "title_field", help="The column with the title; - leaves it out.")
    text_field: str | None = altered(ReadOptions, "text_field", help="The column with a document's text.")
    query_field: str | None = altered(ReadOptions, "query_field", help="The column with queries, in either file.")
    document_field: str | None = altered(ImportOptions, "document_field", help="Of a file of queries: documents' ids.")
    split_field: str | None = option(None, "In a file of queries: the column that names the split of each.")
    grade_field: str | None = option(
        None, "The column with the grade of the judgment: numbers, yes/no, true/false, relevant/not relevant. 0, below "
        "and no are judged not relevant.",
    )  # fmt: skip
    with_queries: bool = option(True, "Whether queries that stand beside the text are taken.")
    origin: str = option("human", "Who wrote the queries.", choices=ORIGINS)
    held_out: float = option(
        0.2, "Of the documents with queries, the share whose queries become the split dev of a benchmark, where no "
        "column names splits.", minimum=0.0, maximum=0.9,
    )  # fmt: skip
    seed: int = option(0, "What draws these documents.", minimum=0)

    def reading(self, how: ReadOptions) -> ReadOptions:
        """Return ``how``, with the columns that are named here."""
        names = ("id_field", "title_field", "text_field", "query_field", "grade_field")
        return how.replace(**{name: value for name in names if (value := getattr(self, name)) is not None})


@dataclass
class GivenQueries:
    """Queries with the documents that answer them: {split: {text: {document: grade}}}; ``named`` by the source."""

    splits: dict[str, Answers] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    named: bool = False
    notes: list[str] = field(default_factory=list)

    def add(self, split: str, text: str, document: str, grade: int) -> None:
        self.splits.setdefault(split, {}).setdefault(" ".join(text.split()), {})[document] = grade


def columns_of(path: Path, options: AddOptions, encoding: str) -> tuple[FilePreview, str, str, str | None]:
    """Return a look at a file of queries, and its columns of queries, documents' ids and splits. InputError where a
    needed one is unknown."""
    seen = look(path, ReadOptions.from_dict({"encoding": encoding}))
    text_field, document_field = options.query_field or seen.asked, options.document_field or seen.document_id
    for content, column in (("the queries", text_field), ("their documents' ids", document_field)):
        if column is None or (seen.columns and column not in seen.columns):
            raise InputError(
                f"No column of queries is called {column!r}."
                if column
                else f"No column is known by its name to hold {content}.",
                hint=f"Choose the column with {content} among {', '.join(seen.columns[:20])}.",
                file=path,
            )
    return seen, str(text_field), str(document_field), options.split_field or seen.guess("split")


def read_file(path: Path, known: Collection[str], options: AddOptions, encoding: str) -> GivenQueries:
    """Read a file of queries: a row each, with the id of a ``known`` document, maybe a split and a grade."""
    seen, text_field, document_field, split_field = columns_of(path, options, encoding)
    used = (text_field, document_field, split_field)

    grades = Grades(grade_columns(seen.rows, options.grade_field, used))
    judged = GivenQueries(named=split_field is not None)
    files = {place_of(id)[0] for id in known if "#" in id}
    for row in iter_rows(path, ReadOptions.from_dict({"encoding": encoding})):
        if not isinstance(row, Row):
            judged.left_out["rows of queries that cannot be read"] += 1
            continue

        texts, unusable, _ = queries_of(row.values.get(text_field))
        document = row.values.get(document_field)
        if not (isinstance(document, str) and document in known):
            document = id_in(document.strip() if isinstance(document, str) else document)

        grade = grades.of(row.values)
        split = slug(str(row.values.get(split_field) or ""), fallback=TRAIN) if split_field else ""
        judged.left_out["rows without a query"] += not texts
        judged.left_out["entries among queries that are no text"] += unusable if texts else 0

        if document not in known:
            cut = document in files
            reason = "that was cut into passages (keep files whole for them)" if cut else "that is not here"
            judged.left_out[f"queries for a document {reason}"] += len(texts)
        elif grade is None:
            judged.left_out["judgments without a grade"] += len(texts)
        else:
            for text in texts:
                judged.add(SPLIT_NAMES.get(split, split), text, document, grade)

    unused = [name for name in seen.columns if name not in (*used, *grades.columns)]
    judged.notes += [f"{path.name}: {note}" for note in (grades.sentence(), not_taken(unused)) if note]

    return judged


def divided(texts: Answers, options: AddOptions) -> tuple[dict[str, Answers], dict[str, Any], str]:
    """Divide queries without splits by documents drawn at random: ({split: queries}, facts, sentence)."""
    documents = sorted({document for grades in texts.values() for document, grade in grades.items() if grade > 0})
    n = min(round(options.held_out * len(documents)), MAX_HELD_OUT)
    if len(documents) < FEWEST or not n:
        few = f"{len(documents)} documents have some, and at least {FEWEST} are needed"
        return {TRAIN: texts}, {}, f"No queries were held out: {few}." if options.held_out else ""

    drawn = set(sorted(documents, key=lambda document: shuffle_key(options.seed, "held out", document))[:n])
    # A query that also belongs to a document that was not drawn is measured with, not trained on.
    held = {text: grades for text, grades in texts.items() if drawn & set(grades)}
    rest = {text: grades for text, grades in texts.items() if text not in held}
    sentence = (
        f"The {len(held):,} queries of {n:,} documents, of {len(documents):,} that have some, are the split dev of "
        f"the benchmark (drawn with seed {options.seed}); those of the others are the training queries."
    )

    facts = {"held_out": {"by": "documents", "documents": n, "share": options.held_out, "seed": options.seed}}
    return {DEV: held, TRAIN: rest}, facts, sentence
