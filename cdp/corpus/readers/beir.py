"""A BEIR folder: ``corpus.jsonl[.gz]`` beside queries and qrels, which are a benchmark's and not read here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdp.base.errors import InputError
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import Container, ContainerContents
from cdp.corpus.readers.folder import contents as folder_contents
from cdp.corpus.readers.members import BEIR_CORPUS
from cdp.corpus.sources import Budget


def is_beir(path: Path) -> bool:
    """Whether a folder has a BEIR corpus at its top."""
    return any((path / name).is_file() for name in BEIR_CORPUS)


@contextmanager
def contents(path: Path, options: ReadOptions, suffixes: Sequence[str], budget: Budget) -> Iterator[ContainerContents]:
    if not is_beir(path):
        raise InputError("The folder has no corpus.jsonl or corpus.jsonl.gz.", hint="Is it a BEIR folder?", file=path)
    with folder_contents(path, options, suffixes, budget) as corpus_files:
        yield corpus_files


CONTAINER = Container("beir", "BEIR folder", "a BEIR folder (corpus.jsonl[.gz])", (), is_beir, contents, order=80)
