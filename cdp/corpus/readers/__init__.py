"""One reader per format, one file each, in one table from which forms, options and docs are made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdp.base.errors import InputError
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import beir, csv, folder, jsonl, markdown, parquet, text, tsv, zip
from cdp.corpus.readers.base import BadRow, Container, Contents, Row, RowFormat
from cdp.corpus.sources import Source

READERS: Mapping[str, RowFormat | Container] = {
    reader.name: reader
    for reader in (
        jsonl.FORMAT,
        csv.FORMAT,
        tsv.FORMAT,
        parquet.FORMAT,
        text.FORMAT,
        markdown.FORMAT,
        zip.CONTAINER,
        beir.CONTAINER,
        folder.CONTAINER,
    )
}


def row_suffixes() -> tuple[str, ...]:
    """The endings of files that hold documents, without ``.gz``."""
    return tuple(suffix for reader in READERS.values() if isinstance(reader, RowFormat) for suffix in reader.suffixes)


def container_of(path: Path, options: ReadOptions) -> Container | None:
    """The container that opens ``path``, or None for a single file. InputError where the two do not fit."""
    chosen = READERS.get(options.format)
    if path.is_dir():
        if isinstance(chosen, Container):
            if chosen is zip.CONTAINER:
                raise InputError("It is a folder, not a zip.", file=path)
            return chosen
        return beir.CONTAINER if beir.is_beir(path) else folder.CONTAINER
    if chosen is zip.CONTAINER or path.suffix.lower() in zip.CONTAINER.suffixes:
        return zip.CONTAINER
    if isinstance(chosen, Container):
        raise InputError("It is a file, not a folder.", hint="Give the folder's path.", file=path)
    return None


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
    "Contents",
    "Row",
    "RowFormat",
    "container_of",
    "row_format_of",
    "row_suffixes",
]
