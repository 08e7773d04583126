"""Uploaded files on disk for as long as they are read: in the folders they came in, a BEIR layout put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cdp.base.errors import InputError
from cdp.base.staging import keep_upload, staging
from cdp.base.text import counted
from cdp.base.workspace import Workspace
from cdp.corpus.looking import look
from cdp.corpus.readers import row_suffixes
from cdp.corpus.readers.folders import BEIR_CORPUS, hidden
from cdp.query_sets.rows import QUERIES, beir_layout
from cdp.services.sharing import access

DEEPEST = 3
"""Folders below the one that was given in which a BEIR layout is looked for."""

SHOWN = 5
"""Files that are named; of more the number is said."""


@access.writes
@contextmanager
def received(workspace: Workspace, uploads: Sequence[tuple[str, BinaryIO]]) -> Iterator[tuple[Path, Path | None]]:
    """Uploaded files (name and content) on disk for as long as they are read: (the documents, a file of queries).

    One file is itself. Files of a folder, whose names are paths, keep their places in it. Judgments that lie beside
    the corpus and queries of a BEIR layout are put where it has them; of several other files, one whose rows are
    queries for documents that stand elsewhere is the file of queries.
    """
    with staging(workspace.uploads) as folder:
        documents = folder / "documents"
        names = [_inside(name) for name, _ in uploads]
        tops = {name.parent for name in names if name.name in BEIR_CORPUS}
        tops &= {name.parent for name in names if name.name in QUERIES}
        for name, (_, data) in zip(names, uploads, strict=True):
            judgments = name.parent in tops and name.suffix == ".tsv"
            target = documents / (name.parent / "qrels" / name.name if judgments else name)
            target.parent.mkdir(parents=True, exist_ok=True)
            _keep(target, data)
        if tops:
            yield documents, None
            return
        files = [file for file in sorted(documents.rglob("*")) if file.is_file()]
        asked = [file for file in files if len(files) > 1 and _of_queries(file)]
        if len(asked) == 1:
            files.remove(asked[0])
            asked = [asked[0].rename(folder / asked[0].name)]
        alone = len(uploads) - len(asked) == 1
        yield (files[0] if alone else documents), (asked[0] if len(asked) == 1 else None)


def _inside(name: str) -> Path:
    """An uploaded file's name as a path that stays in the folder that it is written to."""
    parts = [part for part in name.replace("\\", "/").replace("\0", "").split("/") if part not in ("", ".", "..")]
    return Path(*parts) if parts else Path("upload")


def _keep(target: Path, data: BinaryIO) -> None:
    """Write an upload; of two files of one name the second gets a number."""
    free, number = target, 2
    while free.exists():
        free, number = target.with_name(f"{number}-{target.name}"), number + 1
    keep_upload(free, data)


def _of_queries(path: Path) -> bool:
    if path.name.lower().removesuffix(".gz").endswith(row_suffixes()):
        try:
            return look(path).of_queries
        except InputError:
            pass
    return False


def folder_of(source: Path) -> Path:
    """The folder itself, or the only one in it, as a zip that was unpacked often looks; else the only one below it that
    is in BEIR layout, whatever lies beside that."""
    while source.is_dir() and not beir_layout(source):
        inside = [path for path in source.iterdir() if not path.name.startswith((".", "__"))]
        if len(inside) == 1 and inside[0].is_dir():
            source = inside[0]
            continue
        below = [path.parent for name in BEIR_CORPUS for path in source.rglob(name)]
        near = {path for path in below if len(path.relative_to(source).parts) <= DEEPEST and beir_layout(path)}
        return near.pop() if len(near) == 1 else source
    return source


def beside(given: Path, source: Path) -> list[str]:
    """The files of the folder that was given which do not lie in the one that is read, in a sentence."""
    if given == source or not given.is_dir():
        return []
    paths = (path for path in sorted(given.rglob("*")) if path.is_file() and not path.is_relative_to(source))
    names = [name for name in (path.relative_to(given).as_posix() for path in paths) if not hidden(name)]
    if not names:
        return []
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return [f"{counted(len(names), 'file')} beside {source.name} left out: {', '.join(names[:SHOWN])}{more}."]
