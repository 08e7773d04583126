"""A zip of files, nested folders included. Nothing is unpacked to disk under a name that the archive chose."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from cdp.base.errors import InputError
from cdp.corpus.checks import UNREADABLE, Rejected
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import Container, ContainerContents
from cdp.corpus.readers.members import choose, hidden
from cdp.corpus.sources import DAMAGED, Budget, Source, shown_name

CHECK_EVERY = 1024
"""Members between two looks at the time."""

_ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")


@contextmanager
def contents(path: Path, options: ReadOptions, suffixes: Sequence[str], budget: Budget) -> Iterator[ContainerContents]:
    """The members as streams. The bytes that really come out are counted, whatever the archive's index says."""
    try:
        archive = zipfile.ZipFile(path)
    except (*DAMAGED, OSError) as error:
        problem = shown_name(str(error))
        raise InputError(f"It cannot be opened as a zip: {problem}.", hint="Make it anew.", file=path) from error
    with archive:
        archived = ContainerContents([])
        members: dict[str, zipfile.ZipInfo] = {}
        for number, info in enumerate(archive.infolist()):
            if number % CHECK_EVERY == 0:
                budget.check()
            problem = "" if hidden(info.filename) else _unreadable(info)
            if info.filename in members:
                problem = "the archive holds another file of the same name, which was read"
            if problem:
                name = shown_name(info.filename) or "(a file without a name)"
                archived.rejected.append(Rejected(name, None, UNREADABLE, problem))
            elif not info.is_dir():
                members[info.filename] = info
        chosen, archived.notes = choose(list(members), options, suffixes)
        archived.sources = [_source(archive, members[name], budget) for name in chosen]
        yield archived


def _source(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> Source:
    return Source(shown_name(info.filename), lambda: cast(BinaryIO, archive.open(info)), budget)


def _unreadable(info: zipfile.ZipInfo) -> str:
    """Why a member is not even tried, or an empty text."""
    if not info.filename:
        return "it has no name"
    parts = PurePosixPath(info.filename.replace("\\", "/")).parts
    if info.filename.startswith(("/", "\\")) or ".." in parts or re.match(r"[A-Za-z]:", info.filename):
        return "its path leads out of the archive"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    if PurePosixPath(info.filename).suffix.lower() in _ARCHIVES:
        return "an archive inside the archive is not opened; unpack it first"
    return ""


def fits(path: Path) -> bool:
    """Whether the file is called a zip."""
    return path.suffix.lower() == ".zip" and not path.is_dir()


CONTAINER = Container("zip", "Zip", "a zip of such files", (".zip",), fits, contents, order=70)
