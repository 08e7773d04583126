"""Target queries of a task from text, file, query set or benchmark: their content words (CW), doubt, advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cdp import benchmarks, complexity, principle, query_sets
from cdp import corpus as corpus_room
from cdp.base import permission
from cdp.base.errors import InputError
from cdp.base.text import capital
from cdp.base.workspace import ANSWERS, RECORDS, Workspace
from cdp.benchmarks import manifests, registry
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.complexity import CwProfile
from cdp.corpus.checks import GUESSES, column_named, columns_named, listed
from cdp.corpus.looking import FilePreview, iter_rows, look
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import READERS, BadRow, Row, RowFormat
from cdp.corpus.sources import ROW_BYTES, Budget, Source, existing, numbered_lines, open_text
from cdp.principle import Recommendation, kinds_of_datasets
from cdp.studies.config import DOUBTFUL, reported_split

# Target queries are held in memory: so many bytes, with ``ROW_BYTES`` for each.
MAX_BYTES = 2**29
# Files whose rows have columns.
ROW_SUFFIXES = tuple(s for reader in READERS.values() if isinstance(reader, RowFormat) for s in reader.suffixes)


# Names of the field or column that holds a query, in the order in which they are looked for.
FIELDS = ("query", "text", *(name for name in GUESSES["question"] if name != "query"))
PLAIN = "Give a text file with one query per line, or a table or JSON Lines with a column named query."


def columns_of(workspace: Workspace, path: str | Path) -> FilePreview | None:
    """Return the first rows of a table or JSON Lines with target queries; None for a text file."""
    file = permission.to_read(workspace, path)
    return look(file) if _has_columns(file) else None


def query_column(names: Sequence[str]) -> str | None:
    """Return the column that holds queries by its name, or None."""
    return column_named(names, FIELDS)


def _has_columns(file: Path) -> bool:
    return file.name.lower().removesuffix(".gz").endswith(ROW_SUFFIXES)


def read_queries(path: str | Path, column: str = "") -> list[str]:
    """Return the queries of a file in its order: one per line, or in a ``column``, by default one called ``query``,
    ``text``, ``question`` or the like.

    InputError names what cannot be read and its line.
    """
    file = permission.to_read(Workspace.default(), path)
    if existing(file, "file").is_dir():
        raise InputError("It is a folder.", file=file, hint=PLAIN)

    queries: list[str] = []
    size = 0
    for line in _lines(file, column):
        size += len(line) + ROW_BYTES
        if size > MAX_BYTES:
            problem = f"It holds more than {len(queries):,} queries, too many to hold in memory ({MAX_BYTES:,} bytes)."
            raise InputError(problem, file=file, hint="Give a sample of them.")
        if query := line.strip():
            queries.append(query)

    if not queries:
        raise InputError("It holds no query.", file=file, hint=PLAIN)

    return queries


def _lines(file: Path, column: str) -> Iterator[str]:
    """The queries of a file, some of them blank."""
    if _has_columns(file):
        yield from map(partial(_query, file, column), iter_rows(file))
        return
    source = Source.of_file(file, file.name, Budget.of(file))
    with open_text(source, ReadOptions().encoding, newline="") as text:
        for number, line in numbered_lines(text):
            if line is None:
                raise InputError("The line is too long for a query.", file=file, line=number, hint=PLAIN)
            yield from line.splitlines()


def _query(file: Path, column: str, row: Row | BadRow) -> str:
    """The query in a row; InputError for one without, or that its format cannot parse."""
    if isinstance(row, BadRow):
        problem = f"{capital(row.kind)}: {row.reason}."
        raise InputError(problem, file=file, line=row.line, hint=f"Correct the row or leave it out. {PLAIN}")

    values = row.values
    names = tuple(values)
    wanted = columns_named(names, (column.strip().lower(),) if column else FIELDS)
    query = next(filter(None, map(values.get, wanted)), "")
    if wanted and isinstance(query, str):
        return query

    hint = f"Choose the column with the queries among {listed(names)}." if values else PLAIN
    problem = f"The row has no text in a column called {column or 'query, text or question'}."
    raise InputError(problem, file=file, line=row.line, hint=hint)


TRAINING_CAVEAT = (
    "These are synthetic training queries. The rule is about the queries of your task: give some of those for an "
    "answer."
)


# A language is guessed from so many queries.
GUESSED_FROM = 1000


@dataclass(frozen=True)
class Profiled:
    """Queries with their content words: ``cw`` has shape (n,), in the order of ``texts``.

    ``for_training`` marks queries that were written to train on. ``benchmark`` (``name:split``) or ``query_set`` (its
    id) is where they are from; ``task`` is the kind of task of a published dataset (empty: none of them).
    """

    name: str
    language: str
    texts: list[str]
    cw: NDArray[np.int64]
    profile: CwProfile
    for_training: bool = False
    benchmark: str = ""
    query_set: str = ""
    task: str = ""

    @property
    def doubt(self) -> str:
        """What makes the count doubtful, in a sentence; empty if nothing does."""
        empty = float((self.cw == 0).mean())
        if empty < DOUBTFUL:
            return ""
        name = complexity.language_of(self.language).name
        return f"{empty:.0%} of the queries have no content word when counted as {name}: is that their language?"

    def recommend(self, *, domain: str = "ood", task: str = "") -> Recommendation:
        """Return what to do for these as target queries; ``task`` is their own if it is empty.

        InputError where no query has a content word. Where many have none, the advice says so and gives no number.
        """
        if not self.cw.any():
            name = complexity.language_of(self.language).name
            raise InputError(
                f"No query here has a content word when counted as {name}, so nothing follows from them.",
                hint="Check that they are queries, and name their language if it is another one.",
            )

        recommendation = principle.recommend(self.cw, language=self.language, domain=domain, task=task or self.task)
        caveats = recommendation.caveats
        if self.for_training:
            caveats = (TRAINING_CAVEAT, *caveats)
        if self.doubt:
            # A count in the wrong language is no CW: nothing of the line may be read off at it.
            caveats = (self.doubt, *caveats)
            scope = replace(recommendation.scope, outside=(self.doubt.rstrip("?."), *recommendation.scope.outside))
            recommendation = replace(recommendation, scope=scope, advice=self.doubt, prior=())

        return replace(recommendation, caveats=caveats)


def profile_texts(texts: Sequence[str], *, language: str = "en", name: str = "pasted queries") -> Profiled:
    """Profile queries that were pasted or read from a file; ``language`` is guessed if it is empty."""
    queries = [text.strip() for text in texts if text.strip()]
    if not queries:
        raise InputError("There are no queries.", hint="Give one query per line.")
    language = language or guess_language(queries)
    cw = complexity.count_content_words(queries, language)
    return Profiled(name, language, queries, cw, complexity.profile(cw))


def profile_query_set(workspace: Workspace, query_set: str, *, language: str = "") -> Profiled:
    """Profile the queries of a query set, in its corpus's language unless another is named."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    code = language or corpus_room.load_manifest(workspace, resolved_set.corpus_id).counted_language

    def measure() -> Profiled:
        texts: list[str] = []
        for line in query_sets.iter_lines(workspace, resolved_set.id):
            texts += line["queries"]
        if not texts:
            raise InputError(
                f"The query set {resolved_set.id} has no queries yet.", hint="Generate or import some first."
            )
        profiled = profile_texts(texts, language=code, name=resolved_set.name)
        return replace(profiled, for_training=resolved_set.kind == "synthetic", query_set=resolved_set.id)

    return ANSWERS.get(query_sets.files(workspace, resolved_set.id).queries, ("profile", code), measure)


def profile_benchmark(workspace: Workspace, benchmark: str, *, split: str = "", language: str = "") -> Profiled:
    """Profile the queries of one split of a benchmark, in the benchmark's own language if none is named.

    Without a ``split`` it is test, or the only one; of several others that which would decide a test.
    """
    folder = benchmarks.resolve_benchmark(benchmark, workspace)
    if not split:
        splits = benchmarks.describe(folder, workspace).splits
        if len(splits) > 1 and "test" not in splits:
            split = reported_split(splits)

    def measure() -> Profiled:
        loaded = benchmarks.load_benchmark(folder, split)
        code = language or loaded.counted_language
        profiled = profile_texts(loaded.queries, language=code, name=f"{loaded.name} ({loaded.split})")
        entry = registry.find(loaded.name)
        task = kinds_of_datasets().get(entry.paper or "", "") if entry is not None else ""
        return replace(profiled, benchmark=f"{loaded.name}:{loaded.split}", task=task)

    # Which of the queries are judged, and in which language.
    files = [*qrels_files(folder).values(), folder / manifests.NAME]
    question = ("profile", split, language, *map(RECORDS.digest, files))
    return ANSWERS.get(part(folder, "queries"), question, measure)


def guess_language(texts: Sequence[str]) -> str:
    """The language that most of the queries seem to be in, English where it cannot be told."""
    guessed = corpus_room.guess_language("\n".join(texts[:GUESSED_FROM]))
    return "en" if guessed == "unknown" else guessed
