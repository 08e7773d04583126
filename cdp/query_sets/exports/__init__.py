"""Query sets in the formats of other tools, written whole. Adding one is adding a file that declares an ``Export``.

Each export streams over corpus and query set side by side (both are in corpus order) and appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from cdp.base.errors import ConfigError, InputError, WorkspaceError
from cdp.base.locks import appearing
from cdp.base.records import Document
from cdp.base.registry import Registered, Registry
from cdp.base.text import counted
from cdp.base.workspace import Workspace
from cdp.corpus import open_corpus
from cdp.query_sets import files, iter_lines, load
from cdp.query_sets.store import beside_documents, document_queries, scan

# Lines of a set whose hard negatives are fetched together.
BLOCK = 512


@dataclass(frozen=True)
class Example:
    """One query as trainers read it: the documents that answer it, then its hard negatives.

    ``scores`` are a teacher's, of the positive and of each negative; empty where the set has none.
    """

    id: str
    query: str
    positives: Sequence[Document]
    negatives: Sequence[Document] = ()
    scores: Sequence[float] = ()


@dataclass(frozen=True)
class ExportSelection:
    """What is exported: the first ``per_doc`` queries of each document of a query set, or all.

    ``notes`` takes sentences on what the format could not hold.
    """

    workspace: Workspace
    query_set: str
    per_doc: int | None = None
    notes: list[str] = field(default_factory=list)

    def examples(self) -> Iterator[Example]:
        """Yield each query with its document and hard negatives, in the order of the corpus; streams over both."""
        lines = beside_documents(self.workspace, self.query_set)
        pairs = ((document, document_queries(line)) for line, document in lines)
        while block := list(islice(pairs, BLOCK)):
            documents = self._documents(name for _, line in block for names in line.negatives for name in names)
            for document, line in block:
                for at, (query_id, text) in enumerate(line.with_ids(self.per_doc)):
                    names = line.negatives[at] if line.negatives else []
                    scores = line.teacher[at] if line.teacher else []
                    negatives = [documents[name] for name in names]
                    fit = len(scores) == 1 + len(negatives)
                    yield Example(query_id, text, [document], negatives, scores if fit else ())

    def ranked(self) -> Iterator[Example]:
        """Yield a query per teacher and sentence of a set whose sentences were ranked; of any other its examples."""
        rankings = files(self.workspace, self.query_set).rankings
        if not rankings.exists():
            yield from self.examples()
            return
        records = ((number, record) for number, (_, _, record) in enumerate(scan(rankings), start=1))
        while block := list(islice(records, BLOCK)):
            documents = self._documents(n for _, record in block for n in (*record["positives"], *record["negatives"]))
            for number, record in block:
                positives, negatives = ([documents[n] for n in record[of]] for of in ("positives", "negatives"))
                yield Example(f"ranked-{number}", record["query"], positives, negatives)

    def widest(self) -> tuple[int, bool]:
        """Return the most hard negatives that a query has, and whether a teacher scored any."""
        most, scored = 0, False
        for line in map(document_queries, iter_lines(self.workspace, self.query_set)):
            most = max(most, *map(len, line.negatives[: self.per_doc]), 0)
            scored = scored or any(line.teacher[: self.per_doc])
        return most, scored

    def note(self, n: int, sentence: str) -> None:
        """Add a sentence that ends with its number of queries, if there are any."""
        if n:
            self.notes.append(f"{sentence}: {counted(n, 'query', 'queries')}.")

    def _documents(self, names: Iterator[str]) -> dict[str, Document]:
        wanted = list(dict.fromkeys(names))
        found = open_corpus(self.workspace, self._corpus).get(wanted) if wanted else {}
        if len(found) < len(wanted):
            missing = next(name for name in wanted if name not in found)
            raise InputError(f"The hard negative {missing!r} is no document of {self._corpus}.")
        return found

    @property
    def _corpus(self) -> str:
        return load(self.workspace, self.query_set).corpus_id


@dataclass(frozen=True)
class Export(Registered):
    """One export. ``write(selection, target)`` writes a file or folder and returns the number of queries written.

    ``suffix`` ends the name of what is written, ``alone`` is said of a set without hard negatives. One without
    ``write`` holds the requests behind a query set, which synthesis writes and not this room.
    """

    suffix: str
    write: Callable[[ExportSelection, Path], int] | None = None
    alone: str = ""


EXPORTS: Registry[Export] = Registry("export format", Export, __name__)


def export(
    workspace: Workspace,
    query_set_id: str,
    form: str,
    target: Path,
    *,
    per_doc: int | None = None,
    notes: list[str] | None = None,
) -> int:
    """Write a query set to ``target`` in a registered format; returns the number of queries written.

    InputError where ``target`` is there already: nothing is overwritten. ``per_doc`` keeps the first so many queries of
    each document; ConfigError below 1. What the format could not hold goes to ``notes``, in sentences.
    """
    if per_doc is not None and per_doc < 1:
        raise ConfigError(f"At least 1 query per document must be exported, not {per_doc}.")

    kind = EXPORTS.named(form)

    write = kind.write
    if write is None:
        raise ConfigError(f"{form} holds requests, which synthesis writes.", hint="Choose another format.")

    query_set = load(workspace, query_set_id)
    selection = ExportSelection(workspace, query_set_id, per_doc, [] if notes is None else notes)

    if kind.alone and not query_set.hard_negatives and not files(workspace, query_set_id).rankings.exists():
        selection.notes.append(f"The set has no hard negatives (queries mine adds them): {kind.alone}.")

    try:
        with appearing(target) as place:
            return write(selection, place)
    except OSError as error:
        raise WorkspaceError(
            f"{target} cannot be written: {error.strerror or error}.", hint="Choose another place, or make room there."
        ) from error
