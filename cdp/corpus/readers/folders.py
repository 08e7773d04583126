"""Folders, BEIR folders and zips of files, and which of their files are read.

Of a zip nothing is unpacked to disk under a name that the archive chose.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cdp.base.errors import InputError
from cdp.corpus.checks import UNREADABLE, Rejected
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import READERS, Container, ContainerContents, FileFormat
from cdp.corpus.sources import Budget, Source, open_zip, shown_name, zip_member

BEIR_CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
_BEIR_PARTS = re.compile(r"queries\.jsonl(\.gz)?|qrels/[^/]+\.tsv")
_SHOWN = 5
UNKNOWN_FORMAT = "unknown format"
# Formats that are not read, and what their programs save besides.
NEWER = {
    ".doc": ".docx", ".odt": ".docx", ".rtf": ".docx", ".pages": ".docx", ".ppt": ".pptx", ".odp": ".pptx",
    ".key": ".pptx", ".xls": ".csv", ".xlsx": ".csv", ".ods": ".csv", ".numbers": ".csv", ".mobi": ".epub",
}  # fmt: skip


def natural(name: str) -> list[tuple[str, int]]:
    """A sort key under which ``2.txt`` comes before ``10.txt``."""
    return [(text.lower(), int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,18})", name)]


def hidden(name: str) -> bool:
    """Files that operating systems leave in folders: dot files and ``__MACOSX``."""
    parts = PurePosixPath(name).parts
    if any(part == "__MACOSX" or (part.startswith(".") and part != "..") for part in parts):
        return True
    return bool(parts) and parts[-1] in ("Thumbs.db", "desktop.ini")


def choose(
    names: Sequence[str], options: ReadOptions, known_suffixes: Sequence[str], into: ContainerContents
) -> list[str]:
    """The files to read in natural order. Those of unknown formats are rejected ``into``; notes are on all others.

    Where a ``corpus.jsonl[.gz]`` is found, the folder is taken for BEIR: its queries and qrels are no documents.
    Otherwise every file whose ending is known, or, with a row format chosen by the user, every file.
    """
    visible = sorted((name for name in names if not hidden(name)), key=natural)
    into.notes += _left_out([name for name in names if hidden(name)], "hidden or made by the system")
    if options.format != "folder" and (beir := _beir(visible)):
        tops = [PurePosixPath(name).parent for name in beir]
        others = sorted(set(visible) - set(beir), key=natural)
        parts = [name for name in others if any(_is_part(name, top) for top in tops)]
        into.notes += _left_out(parts, "not the corpus of a BEIR folder")
        into.notes += _left_out([name for name in others if name not in parts], "no part of the BEIR layout")
        return beir
    if isinstance(READERS.get(options.format), FileFormat):
        return visible
    unknown = [name for name in visible if _suffix(name) not in known_suffixes]
    for name in unknown:
        newer = NEWER.get(_suffix(name))
        reason = f"this format is not read; save it as {newer}" if newer else "this format is not read"
        into.rejected.append(Rejected(shown_name(name), None, UNKNOWN_FORMAT, reason))
    return [name for name in visible if _suffix(name) in known_suffixes]


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
    shown = ", ".join(map(shown_name, names[:_SHOWN])) + (
        f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    )
    return [f"{len(names):,} {'file' if len(names) == 1 else 'files'} left out, {why}: {shown}."]


@contextmanager
def folder_contents(
    path: Path, options: ReadOptions, known: Sequence[str], budget: Budget
) -> Iterator[ContainerContents]:
    """Every readable file, in natural order of the relative paths; links to folders are not followed."""
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
    contents = ContainerContents([])
    for fault in closed:
        name = shown_name(os.path.relpath(fault.filename or path, path))
        contents.rejected.append(Rejected(name, None, UNREADABLE, f"{fault.strerror}"))
    chosen = choose(names, options, known, contents)
    contents.sources = [Source.of_file(path / name, name, budget) for name in chosen]
    yield contents


FOLDER = Container("folder", "Folder", "a folder of such files", (), Path.is_dir, folder_contents, order=90)


def is_beir(path: Path) -> bool:
    """Return True if a folder has a BEIR corpus at its top."""
    return any((path / name).is_file() for name in BEIR_CORPUS)


@contextmanager
def beir_contents(
    path: Path, options: ReadOptions, known: Sequence[str], budget: Budget
) -> Iterator[ContainerContents]:
    if not is_beir(path):
        raise InputError("The folder has no corpus.jsonl or corpus.jsonl.gz.", hint="Is it a BEIR folder?", file=path)
    with folder_contents(path, options, known, budget) as corpus_files:
        yield corpus_files


BEIR = Container("beir", "BEIR folder", "a BEIR folder (corpus.jsonl[.gz])", (), is_beir, beir_contents, order=80)


_ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")


@contextmanager
def zip_contents(path: Path, options: ReadOptions, known: Sequence[str], budget: Budget) -> Iterator[ContainerContents]:
    """The members as streams. The bytes that really come out are counted, not what the archive's index says."""
    with open_zip(path) as archive:
        archived = ContainerContents([])
        members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            problem = "" if hidden(info.filename) else _unreadable(info)
            if info.filename in members:
                problem = "the archive holds another file of the same name, which was read"
            if problem:
                name = shown_name(info.filename) or "(a file without a name)"
                archived.rejected.append(Rejected(name, None, UNREADABLE, problem))
            elif not info.is_dir():
                members[info.filename] = info
        chosen = choose(list(members), options, known, archived)
        archived.sources = [zip_member(archive, members[name], budget) for name in chosen]
        yield archived


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


def is_zip(path: Path) -> bool:
    """Return True if the file is called a zip."""
    return path.suffix.lower() == ".zip" and not path.is_dir()


ZIP = Container("zip", "Zip", "a zip of such files", (".zip",), is_zip, zip_contents, order=70)
