"""Which of the many files in a folder or a zip are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import READERS, RowFormat
from cdp.corpus.sources import shown_name

BEIR_CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
_BEIR_PARTS = re.compile(r"queries\.jsonl(\.gz)?|qrels/[^/]+\.tsv")
_SHOWN = 5


def natural(name: str) -> list[tuple[str, int]]:
    """A sort key under which ``2.txt`` comes before ``10.txt``."""
    return [(text.lower(), int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,18})", name)]


def hidden(name: str) -> bool:
    """Files that operating systems leave in folders: dot files and ``__MACOSX``."""
    parts = PurePosixPath(name).parts
    if any(part == "__MACOSX" or (part.startswith(".") and part != "..") for part in parts):
        return True
    return bool(parts) and parts[-1] in ("Thumbs.db", "desktop.ini")


def choose(names: Sequence[str], options: ReadOptions, known_suffixes: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the files to read in natural order, notes about those left out).

    Where a ``corpus.jsonl[.gz]`` is found, the folder is taken for BEIR: its queries and qrels are no documents.
    Otherwise every file whose ending is known, or, with a row format chosen by the user, every file.
    """
    visible = sorted((name for name in names if not hidden(name)), key=natural)
    notes = _left_out([name for name in names if hidden(name)], "hidden or made by the system")
    if options.format != "folder" and (beir := _beir(visible)):
        tops = [PurePosixPath(name).parent for name in beir]
        others = sorted(set(visible) - set(beir), key=natural)
        parts = [name for name in others if any(_is_part(name, top) for top in tops)]
        notes += _left_out(parts, "not the corpus of a BEIR folder")
        return beir, notes + _left_out([name for name in others if name not in parts], "no part of the BEIR layout")
    if isinstance(READERS.get(options.format), RowFormat):
        return visible, notes
    unknown = [name for name in visible if _suffix(name) not in known_suffixes]
    readable = [name for name in visible if _suffix(name) in known_suffixes]
    return readable, notes + _left_out(unknown, "of no known format")


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
