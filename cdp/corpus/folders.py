"""Which files of a path are read: one file, a folder, a BEIR folder or a zip; notes on those left out.

Of a zip nothing is unpacked to disk under a name that the archive chose.
"""

from __future__ import annotations

import itertools
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from cdp.base.errors import InputError, some
from cdp.base.text import counted
from cdp.corpus.checks import UNREADABLE, Rejected
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import READERS, file_suffixes
from cdp.corpus.sources import Budget, Source, existing, open_zip, shown_name, zip_member

BEIR_CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
_BEIR_PARTS = re.compile(r"queries\.jsonl(\.gz)?|qrels/[^/]+\.tsv|manifest\.json")
_SHOWN = 5
UNKNOWN_FORMAT = "unknown format"
# Formats that are not read, and what their programs save besides.
NEWER = {
    ".doc": ".docx", ".rtf": ".docx", ".pages": ".docx", ".ppt": ".pptx", ".odp": ".pptx", ".key": ".pptx",
    ".xls": ".xlsx", ".ods": ".xlsx", ".numbers": ".xlsx", ".mobi": ".epub",
    ".arrow": ".parquet",
}  # fmt: skip


@dataclass
class FileList:
    """The files to read, those that cannot be read, and notes on those left out; opened zips of a folder by name."""

    sources: list[Source] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    archives: dict[str, Path] = field(default_factory=dict)


def is_single(path: Path) -> bool:
    """Return True if ``path`` is one file, no folder and no zip."""
    return not path.is_dir() and path.suffix.lower() != ".zip"


@contextmanager
def contents_of(path: Path, options: ReadOptions) -> Iterator[FileList]:
    """The files of ``path``; those of a zip can be read until ``with`` ends. InputError where there is nothing."""
    budget = Budget.of(existing(path))
    if is_single(path):
        yield FileList([Source.of_file(path, path.name, budget)])
    elif path.is_dir():
        with ExitStack() as opened:
            yield _of_folder(path, options, budget, opened)
    else:
        with open_zip(path) as archive:
            yield _of_zip(archive, options, budget)


def natural(name: str) -> list[tuple[str, int]]:
    """A sort key under which ``2.txt`` comes before ``10.txt``."""
    return [(text.lower(), int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,18})", name)]


def hidden(name: str) -> bool:
    """Files that operating systems leave in folders: dot files and ``__MACOSX``."""
    parts = PurePosixPath(name).parts
    if any(part == "__MACOSX" or (part.startswith(".") and part != "..") for part in parts):
        return True
    return bool(parts) and parts[-1] in ("Thumbs.db", "desktop.ini")


def _choose(names: Sequence[str], options: ReadOptions, contents: FileList, source: Callable[[str], Source]) -> None:
    """Add the files to read to ``contents`` in natural order, and say what was left out.

    Where a ``corpus.jsonl[.gz]`` is found, the folder is taken for BEIR: its queries and qrels are no documents.
    Otherwise every file whose ending is known, or, with a format chosen by the user, every file.
    """
    visible = sorted(itertools.filterfalse(hidden, names), key=natural)
    contents.notes += _left_out(list(filter(hidden, names)), "hidden or made by the system")

    chosen = _beir(visible)
    if chosen:
        tops = [PurePosixPath(name).parent for name in chosen]
        parts: list[str] = []
        others: list[str] = []
        for name in visible:
            if name not in chosen:
                (parts if any(_is_part(name, top) for top in tops) else others).append(name)
        contents.notes += _left_out(parts, "not the corpus of a BEIR folder")
        contents.notes += _left_out(others, "no part of the BEIR layout")
        if any(name.endswith("-queries.jsonl") for name in others):
            contents.notes.append(
                "Generated queries (of BEIR or GPL) are taken once their files are called queries.jsonl and "
                "qrels/train.tsv."
            )
    elif options.format in READERS:
        chosen = visible
    else:
        for name in visible:
            if (suffix := _suffix(name)) in file_suffixes():
                chosen.append(name)
            else:
                contents.rejected.append(Rejected(shown_name(name), None, UNKNOWN_FORMAT, _unread(suffix)))

    contents.sources = list(map(source, chosen))


def _unread(suffix: str) -> str:
    """Why a file with this ending is not read."""
    if suffix in _ARCHIVES:
        return "an archive inside the folder is not opened; unpack it first"
    newer = NEWER.get(suffix)
    return "this format is not read" + (f"; save it as {newer}" if newer else "")


def _beir(names: Sequence[str]) -> list[str]:
    """One corpus file per folder that has any."""
    by_folder: dict[str, str] = {}
    for wanted in BEIR_CORPUS:
        for name in names:
            path = PurePosixPath(name)
            if path.name == wanted:
                by_folder.setdefault(str(path.parent), name)
    return list(by_folder.values())


def _is_part(name: str, top: PurePosixPath) -> bool:
    path = PurePosixPath(name)
    return path.is_relative_to(top) and _BEIR_PARTS.fullmatch(path.relative_to(top).as_posix()) is not None


def _suffix(name: str) -> str:
    lowered = name.lower()
    return PurePosixPath(lowered[:-3] if lowered.endswith(".gz") else lowered).suffix


def _left_out(names: Sequence[str], why: str) -> list[str]:
    if not names:
        return []
    return [f"{counted(len(names), 'file')} left out, {why}: {some([*map(shown_name, names)], _SHOWN)}."]


def _of_folder(path: Path, options: ReadOptions, budget: Budget, opened: ExitStack) -> FileList:
    """Every readable file, in natural order of the relative paths; links to folders are not followed.

    Zips among them are ``opened``; their files stand under the zip's name.
    """
    closed: list[OSError] = []
    names: list[str] = []
    for folder, _, files in os.walk(path, onerror=closed.append):
        base = Path(folder)
        for file in files:
            try:
                if (base / file).is_file():
                    names.append((base / file).relative_to(path).as_posix())
            except OSError as error:  # a link that may not be followed, or that leads to no possible name
                closed.append(error)

    contents = FileList()
    for fault in closed:
        name = shown_name(os.path.relpath(fault.filename or path, path))
        contents.rejected.append(Rejected(name, None, UNREADABLE, f"{fault.strerror}"))

    members: dict[str, Source] = {}
    for name in [name for name in names if _suffix(name) == ".zip" and not hidden(name)]:
        try:
            archive = opened.enter_context(open_zip(path / name))
        except InputError as error:
            reason = error.message.removeprefix(f"{PurePosixPath(name).name}: ")
            contents.rejected.append(Rejected(shown_name(name), None, UNREADABLE, reason))
        else:
            contents.archives[name] = path / name
            members |= _members(archive, contents, budget, f"{name}/")

        names.remove(name)

    _choose([*names, *members], options, contents, lambda n: members.get(n) or Source.of_file(path / n, n, budget))
    return contents


_ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")


def _of_zip(archive: zipfile.ZipFile, options: ReadOptions, budget: Budget) -> FileList:
    """The members as streams. The bytes that really come out are counted, not what the archive's index says."""
    contents = FileList()
    members = _members(archive, contents, budget)
    _choose(list(members), options, contents, members.__getitem__)
    return contents


def _members(archive: zipfile.ZipFile, contents: FileList, budget: Budget, prefix: str = "") -> dict[str, Source]:
    """The members that can be read, by ``prefix`` and name; the others are rejected."""
    members: dict[str, Source] = {}
    for info in archive.infolist():
        name = prefix + info.filename
        problem = "" if hidden(info.filename) else _unreadable(info)
        if name in members:
            problem = "the archive holds another file of the same name, which was read"
        if problem:
            name = prefix + (shown_name(info.filename) or "(a file without a name)")
            contents.rejected.append(Rejected(name, None, UNREADABLE, problem))
        elif not info.is_dir():
            members[name] = zip_member(archive, info, budget, prefix)
    return members


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
