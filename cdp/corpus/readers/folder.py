"""A folder of files, with those in folders below it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdp.corpus.checks import UNREADABLE, Rejected
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import Container, ContainerContents
from cdp.corpus.readers.members import choose
from cdp.corpus.sources import Budget, Source, shown_name


@contextmanager
def contents(path: Path, options: ReadOptions, suffixes: Sequence[str], budget: Budget) -> Iterator[ContainerContents]:
    """Every readable file, in natural order of the relative paths; links to folders are not followed."""
    closed: list[OSError] = []
    names: list[str] = []
    for folder, _, files in os.walk(path, onerror=closed.append):
        base = Path(folder)
        for file in files:
            try:
                if (base / file).is_file():
                    names.append((base / file).relative_to(path).as_posix())
            except OSError as error:  # a link that nobody may follow, or that leads to no possible name
                closed.append(error)
    chosen, notes = choose(names, options, suffixes)
    yield ContainerContents(
        [Source.of_file(path / name, name, budget) for name in chosen],
        [
            Rejected(shown_name(os.path.relpath(error.filename or path, path)), None, UNREADABLE, f"{error.strerror}")
            for error in closed
        ],
        notes,
    )


CONTAINER = Container("folder", "Folder", "a folder of such files", (), Path.is_dir, contents, order=90)
