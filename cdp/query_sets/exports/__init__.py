"""Query sets in the formats of other tools, written whole. Adding one is adding a file that declares an ``Export``.

Each export streams over corpus and query set side by side (both are in corpus order) and appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cdp.base.errors import ConfigError, InputError, WorkspaceError
from cdp.base.locks import staging
from cdp.base.records import Document
from cdp.base.registry import Registered, Registry
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


EXPORTS: Registry[Export] = Registry("export format", Export, __name__)


def export(workspace: Workspace, query_set_id: str, form: str, target: Path, *, per_doc: int | None = None) -> int:
    """Write a query set to ``target`` in a registered format; returns the number of queries written.

    InputError where ``target`` is there already: nothing is overwritten. ``per_doc`` keeps the first so many queries of
    each document; ConfigError below 1.
    """
    if per_doc is not None and per_doc < 1:
        raise ConfigError(f"At least 1 query per document must be exported, not {per_doc}.")
    write = EXPORTS.named(form).write
    if write is None:
        raise ConfigError(f"{form} holds requests, which synthesis writes.", hint="Choose another format.")
    _check_new(target)
    load(workspace, query_set_id)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging(target.parent) as folder:
            n = write(ExportSelection(workspace, query_set_id, per_doc), folder / target.name)
            _check_new(target)
            os.rename(folder / target.name, target)
    except OSError as error:
        raise WorkspaceError(
            f"{target} cannot be written: {error.strerror or error}.", hint="Choose another place, or make room there."
        ) from error
    return n


def _check_new(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{target} is there already.", hint="Choose another name or remove it.")
