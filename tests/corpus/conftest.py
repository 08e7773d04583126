"""One reading process for the tests that read office files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import pytest

from cdp.corpus import extraction, reading


@pytest.fixture(scope="session")
def reader() -> Iterator[extraction._Process]:
    """The process that reads PDF, Word, slides and web pages; to start one takes longer than what a test reads."""
    process = extraction._Process()
    yield process
    process.close()


@pytest.fixture(scope="module")
def one_reader(reader: extraction._Process) -> Iterator[None]:
    """Imports of this module share one reading process, unless they bring passwords."""
    fresh = extraction.reading_process

    @contextmanager
    def kept() -> Iterator[None]:
        token = extraction._documents.set(reader)
        try:
            yield
        finally:
            extraction._documents.reset(token)

    def reading_process(passwords: Sequence[str] = ()) -> AbstractContextManager[None]:
        return fresh(passwords) if passwords else kept()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "reading_process", reading_process)
        yield
