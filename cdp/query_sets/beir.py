"""Queries in BEIR layout, in a folder or a zip of one: each query for each document judged relevant to it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from cdp.base.errors import InputError, offer
from cdp.corpus.decoding import numbered_lines, open_text
from cdp.corpus.sources import DAMAGED, Budget, Source, shown_name
from cdp.query_sets.options import ImportOptions
from cdp.query_sets.rows import QueryRow, json_rows

QUERIES = ("queries.jsonl", "queries.jsonl.gz")
QRELS = re.compile(r"qrels/[^/]+\.tsv")
TEST = "test"
WHOLE = re.compile(r"-?[0-9]{1,9}")
"""A grade. ``str.isdigit`` takes more for digits than ``int`` does."""


def beir_rows(path: Path, options: ImportOptions, budget: Budget) -> Iterator[QueryRow]:
    """The rows of a BEIR folder or zip; their lines are those of the qrels. InputError where it is none."""
    with _files(path, budget) as files:
        queries = next((files[name] for name in QUERIES if name in files), None)
        splits = {name[6:-4]: files[name] for name in sorted(files) if QRELS.fullmatch(name)}
        if queries is None or not splits:
            missing = QUERIES[0] if queries is None else "qrels/*.tsv"
            raise InputError(f"There is no {missing} in it.", hint="Is it in BEIR layout?", file=path)
        chosen, _ = _chosen(path, list(splits), options.split)
        texts: dict[str, str] = {}
        own = ImportOptions(query_field="text", document_field="_id", encoding=options.encoding)
        for row in json_rows(queries, own):
            if row.reason:
                yield QueryRow(row.line, reason=f"{queries.name}: {row.reason}")
            else:
                texts[row.document_id] = row.queries[0]
        for split in chosen:
            yield from _judged(splits[split], texts, options.encoding)


def splits_of(path: Path, options: ImportOptions, budget: Budget) -> tuple[list[str], list[str]]:
    """(the splits that are taken, those that are left out because nobody named them)."""
    with _files(path, budget) as files:
        return _chosen(path, [name[6:-4] for name in sorted(files) if QRELS.fullmatch(name)], options.split)


def all_splits(path: Path, budget: Budget) -> list[str]:
    """The splits of a folder or a zip in BEIR layout; none where it is something else."""
    with _files(path, budget) as files:
        if not any(name in files for name in QUERIES):
            return []
        return [name[6:-4] for name in sorted(files) if QRELS.fullmatch(name)]


def _chosen(path: Path, splits: list[str], wanted: str) -> tuple[list[str], list[str]]:
    if wanted:
        if wanted not in splits:
            raise InputError(f"It has no split {wanted!r}.", hint=offer(wanted, splits), file=path)
        return [wanted], []
    usable = [split for split in splits if split != TEST]
    if splits and not usable:
        raise InputError(
            "It has no split but test, which is for measuring: who trains on it cannot be evaluated on it any more.",
            hint=f"Add it as a benchmark. Or name the split to import it as queries all the same: split {TEST}.",
            file=path,
        )
    return usable, [split for split in splits if split not in usable]


def _judged(source: Source, texts: dict[str, str], encoding: str) -> Iterator[QueryRow]:
    with open_text(source, encoding) as text:
        for number, line in numbered_lines(text):
            cells = (line or "").rstrip("\r\n").split("\t")
            score = WHOLE.fullmatch(cells[-1].strip())
            if number == 1 and not score:
                continue
            if len(cells) not in (3, 4) or not score:
                yield QueryRow(number, reason=f"{source.name}: this is not query id, document id and score")
            elif int(score[0]) > 0:
                query, document_id = texts.get(cells[0]), cells[-2]
                reason = "" if query is not None else f"{source.name}: there is no query {cells[0]!r}"
                yield QueryRow(number, document_id, (query or "",), reason)


@contextmanager
def _files(path: Path, budget: Budget) -> Iterator[dict[str, Source]]:
    """The files below the folder that holds the queries, by their paths relative to it. A zip is not unpacked."""
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
        yield {file.relative_to(path).as_posix(): Source.of_file(file, file.name, budget) for file in files}
        return
    try:
        archive = zipfile.ZipFile(path)
    except (*DAMAGED, OSError) as error:
        problem = shown_name(str(error))
        raise InputError(f"It cannot be opened as a zip: {problem}.", hint="Make it anew.", file=path) from error
    with archive:
        names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
        tops = [PurePosixPath(name).parent for name in names if PurePosixPath(name).name in QUERIES]
        top = min(tops, key=lambda folder: len(folder.parts), default=PurePosixPath())
        yield {
            PurePosixPath(name).relative_to(top).as_posix(): Source(
                shown_name(PurePosixPath(name).name), partial(_opened, archive, name), budget
            )
            for name in names
            if PurePosixPath(name).is_relative_to(top)
        }


def _opened(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    return cast(BinaryIO, archive.open(name))
