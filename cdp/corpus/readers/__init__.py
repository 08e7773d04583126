"""One reader per format, one file each. Adding one is adding a file that declares a ``RowFormat`` or ``Container``."""

from __future__ import annotations

from pathlib import Path

from cdp.base.errors import InputError
from cdp.base.registry import Registry
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import BadRow, Container, ContainerContents, Row, RowFormat, RowsByFields
from cdp.corpus.sources import Source

READERS: Registry[RowFormat | Container] = Registry("corpus format", (RowFormat, Container), __name__)


def row_suffixes() -> tuple[str, ...]:
    """The endings of files that hold documents, without ``.gz``."""
    return tuple(suffix for reader in READERS.values() if isinstance(reader, RowFormat) for suffix in reader.suffixes)


def container_of(path: Path, options: ReadOptions) -> Container | None:
    """The container that opens ``path``, or None for a single file. InputError where the two do not fit."""
    chosen = READERS.get(options.format)
    by_path = next((r for r in READERS.values() if isinstance(r, Container) and r.fits(path)), None)
    if not isinstance(chosen, Container):
        return by_path
    if path.is_dir() and chosen.suffixes:
        raise InputError(f"It is a folder, not a {chosen.name}.", file=path)
    if path.is_dir() or chosen.suffixes:
        return chosen
    if by_path is None:
        raise InputError("It is a file, not a folder.", hint="Give the folder's path.", file=path)
    return by_path


def row_format_of(source: Source, options: ReadOptions) -> RowFormat:
    """The format chosen by the user, else the one of the file's ending. InputError for an unknown ending."""
    chosen = READERS.get(options.format)
    if isinstance(chosen, RowFormat):
        return chosen
    for reader in READERS.values():
        if isinstance(reader, RowFormat) and source.suffix in reader.suffixes:
            return reader
    ending = f"The ending {source.suffix!r}" if source.suffix else "A name without an ending"
    raise InputError(
        f"{ending} does not tell the format.",
        hint=f"Known endings: {', '.join(row_suffixes())}, .zip; or set the format.",
        file=source.name,
    )


__all__ = [
    "READERS",
    "BadRow",
    "Container",
    "ContainerContents",
    "Row",
    "RowFormat",
    "RowsByFields",
    "container_of",
    "row_format_of",
    "row_suffixes",
]
