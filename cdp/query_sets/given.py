"""A file of queries with the documents that answer them; split names, dividing off dev."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.records import place_of
from cdp.base.settings import Config, altered, option
from cdp.base.workspace import shuffle_key, slug
from cdp.corpus import ReadOptions, looking
from cdp.corpus.checks import GUESSES, column_named, storable
from cdp.corpus.options import AUTO
from cdp.corpus.readers import Row
from cdp.query_sets.imports import LOOKED_AT, OWN_TEXT, DocumentFinder, ImportOptions, QueryRow, read_path
from cdp.query_sets.origins import HUMAN, ORIGINS

TEST, DEV, TRAIN = "test", "dev", "train"
SPLIT_NAMES = {"validation": DEV, "valid": DEV, "val": DEV, "development": DEV, "training": TRAIN, "testing": TEST}

# With fewer documents that have queries, none are held out: nothing could be told from so few.
FEWEST = 10

# Without a stated share, a fifth of the documents is held out; where people asked, at least so many: their queries are
# worth more as judges than for training, and with fewer there is no first answer.
SHARE, ENOUGH = 0.2, 50

# Rows of a table of documents whose texts are compared with those that a file of queries names.
MOST_COMPARED = 200_000

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
    document_field: str | None = altered(
        ImportOptions, "document_field", help="In a file of queries: the column with the ids or texts of documents."
    )
    split_field: str | None = option(None, "In a file of queries: the column that names the split of each.")
    grade_field: str | None = altered(ImportOptions, "grade_field")
    with_queries: bool = option(True, "Whether queries that stand beside the text are taken.")
    origin: str = option(HUMAN, "Who wrote the queries.", choices=ORIGINS)
    held_out: float | None = option(
        None, "Of the documents with queries, the share whose queries become the split dev of a benchmark, where no "
        f"column names splits. Without: a fifth; of people's queries at least {ENOUGH} documents, or all of fewer.",
        minimum=0.0, maximum=1.0,
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


def check_file(path: Path, options: AddOptions, encoding: str) -> None:
    """Raise InputError for a file of queries of whose first rows none can be taken."""
    rows = list(islice(_rows(path, options, encoding), LOOKED_AT))
    if all(row.reason for row in rows):
        why = rows[0].reason if rows else "the file is empty"
        hint = "Choose the columns of the queries and of their documents."
        raise InputError(f"No row of queries can be taken: {why}.", hint=hint, file=path)


def names_texts_of(path: Path, others: Sequence[Path]) -> bool:
    """Return True if the first rows of a file are queries, at least half of them for texts of these tables; also where
    they name their documents by id alone."""
    rows: list[QueryRow] = []
    with suppress(InputError):
        rows += [row for row in islice(read_path(path, ImportOptions()), LOOKED_AT) if row.queries and not row.unsure]

    wanted = {" ".join(row.document.text.split()) for row in rows} - {""}
    if rows and not wanted:  # an id names each document, whose text may stand beside it
        wanted = set(islice(_texts_of(path), LOOKED_AT))
        if not wanted:
            return True

    missing = set(wanted)
    for other in others if wanted else ():
        for text in islice(_texts_of(other), MOST_COMPARED):
            missing.discard(text)
            if 2 * len(missing) <= len(wanted):
                return True

    return False


def _texts_of(path: Path) -> Iterator[str]:
    """Yield the documents' texts of a table; none of any other file, and up to a fault."""
    with suppress(InputError):
        for row in looking.iter_rows(path):
            values = row.values if isinstance(row, Row) else {}
            column = column_named(tuple(values), GUESSES["text"])
            if column and isinstance(values[column], str):
                yield " ".join(values[column].split())


def read_file(path: Path, documents: DocumentFinder, options: AddOptions, encoding: str) -> GivenQueries:
    """Read a file of queries as ``queries import`` does, with the split that a column names."""
    judged = GivenQueries()
    notes: list[str] = []
    files = {place_of(id)[0] for id in documents.positions if "#" in id}
    for row in _rows(path, options, encoding, notes):
        if row.reason:
            reason = row.reason.partition(" (")[0].partition(": ")[0]
            judged.left_out[f"rows of queries not taken ({reason})"] += 1
            continue

        document = documents.find(row.document)
        texts = list(filter(str.strip, row.queries))
        judged.left_out["queries without a text"] += len(row.queries) - len(texts)
        judged.left_out["hard negatives, which queries import takes"] += sum(map(len, row.negatives))
        if document is None:
            cut = row.document.id in files
            reason = "that was cut into passages (keep files whole for them)" if cut else "that is not here"
            judged.left_out[f"queries for a document {reason}"] += len(texts)
            continue

        split = slug(row.split, fallback="")
        for text in texts:
            if row.unsure and documents.is_text(document, text):
                judged.left_out[f"rows of queries not taken ({OWN_TEXT.partition(' (')[0]})"] += 1
                continue
            judged.add(SPLIT_NAMES.get(split, split), storable(text)[0], document, row.grade)

    judged.named = bool(judged.splits.keys() - {""})
    if judged.named and "" in judged.splits:
        for text, grades in judged.splits.pop("").items():
            judged.splits.setdefault(TRAIN, {}).setdefault(text, {}).update(grades)

    judged.notes += [f"{path.name}: {note}" for note in (*notes, documents.note) if note]
    return judged


def _rows(path: Path, options: AddOptions, encoding: str, notes: list[str] | None = None) -> Iterator[QueryRow]:
    columns = {name: getattr(options, name) for name in ("query_field", "document_field", "grade_field")}
    how = ImportOptions.from_dict({**columns, "encoding": encoding})
    return read_path(path, how, notes, split=options.split_field or AUTO)


def divided(texts: Answers, options: AddOptions) -> tuple[dict[str, Answers], dict[str, Any], str]:
    """Divide queries without splits by documents drawn at random: ({split: queries}, facts, sentence)."""
    documents = sorted({document for grades in texts.values() for document, grade in grades.items() if grade > 0})
    share = options.held_out
    if share is None:
        least = min(ENOUGH, len(documents)) if options.origin == HUMAN else 0
        n = max(round(SHARE * len(documents)), least)
        share = n / max(1, len(documents))
    n = min(round(share * len(documents)), MAX_HELD_OUT)

    too_few = len(documents) < FEWEST and options.held_out != 1
    if too_few or not n:
        few = f"{len(documents)} documents have some, and at least {FEWEST} are needed"
        return {TRAIN: texts}, {}, f"No queries were held out: {few}." if share else ""
    if n == len(documents):
        return {DEV: texts}, {}, f"All {len(texts):,} queries are for measuring: the split dev of the benchmark."

    drawn = set(sorted(documents, key=lambda document: shuffle_key(options.seed, "held out", document))[:n])
    # A query that also belongs to a document that was not drawn is measured with, not trained on.
    held = {text: grades for text, grades in texts.items() if drawn & set(grades)}
    rest = {text: grades for text, grades in texts.items() if text not in held}
    sentence = (
        f"The {len(held):,} queries of {n:,} documents, of {len(documents):,} that have some, are the split dev of "
        f"the benchmark (drawn with seed {options.seed}); those of the others are the training queries."
    )

    facts = {"held_out": {"by": "documents", "documents": n, "share": share, "seed": options.seed}}
    return {DEV: held, TRAIN: rest}, facts, sentence
