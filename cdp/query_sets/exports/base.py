"""What an export is: a format that another program reads, and the function that writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cdp.base.records import Document
from cdp.base.registry import Registered
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents
from cdp.query_sets import iter_lines, load


@dataclass(frozen=True)
class ExportSelection:
    """What is exported: the first ``per_doc`` queries of each document of a query set, or all."""

    workspace: Workspace
    query_set: str
    per_doc: int | None = None

    def pairs(self) -> Iterator[tuple[Document, list[str]]]:
        """Each document that has queries with its queries, in the order of the corpus; streams over both."""
        documents = enumerate(iter_documents(self.workspace, load(self.workspace, self.query_set).corpus_id))
        for line in iter_lines(self.workspace, self.query_set):
            for position, document in documents:
                if position == line["position"]:
                    yield document, line["queries"][: self.per_doc]
                    break


@dataclass(frozen=True)
class Export(Registered):
    """One export. ``write(selection, target)`` writes a file or folder and returns the number of queries written.

    ``suffix`` ends the name of what is written. One without ``write`` holds the requests behind a query set, which
    synthesis writes and not this room.
    """

    suffix: str
    write: Callable[[ExportSelection, Path], int] | None = None
