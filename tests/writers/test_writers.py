"""Files as people's programs write them: each must give what a person sees in it, word for word.

``make writers`` installs the programs (Debian: LibreOffice, pandoc) and runs this; without them the tests skip.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import READERS, Block, DocumentFormat, Report
from tests.writers import sources

pytestmark = pytest.mark.slow


class Written(NamedTuple):
    """A source, the endings that one program after the other writes of it, and the lines that come out.

    ``apart`` are lines that this writer puts elsewhere or leaves out.
    """

    source: str
    text: str
    steps: Sequence[tuple[str, str]]
    lines: Sequence[str]
    apart: Sequence[str] = ()


LIBREOFFICE, PANDOC = "soffice", "pandoc"
NOTE = "Since May of that year."
TABLE = [
    Written("report.fodt", sources.REPORT_FODT, [(LIBREOFFICE, "odt")], sources.REPORT),
    Written("report.fodt", sources.REPORT_FODT, [(LIBREOFFICE, "docx")], sources.REPORT),
    Written("report.fodt", sources.REPORT_FODT, [(LIBREOFFICE, "docx"), (LIBREOFFICE, "odt")], sources.REPORT),
    Written("book.fods", sources.BOOK_FODS, [(LIBREOFFICE, "xlsx")], sources.BOOK),
    Written("note.md", sources.NOTE_MD, [(PANDOC, "docx")], sources.NOTE),
    Written("note.md", sources.NOTE_MD, [(PANDOC, "odt")], sources.NOTE),
    Written("note.md", sources.NOTE_MD, [(PANDOC, "odt"), (LIBREOFFICE, "docx")], sources.NOTE),
    Written("note.md", sources.NOTE_MD, [(PANDOC, "docx"), (LIBREOFFICE, "docx")], sources.NOTE),
    Written("deck.md", sources.DECK_MD, [(PANDOC, "pptx")], sources.DECK),
    Written("deck.md", sources.DECK_MD, [(PANDOC, "pptx"), (LIBREOFFICE, "odp"), (LIBREOFFICE, "pptx")], sources.DECK),
]


def write(source: Path, program: str, ending: str, folder: Path) -> Path:
    """Return the file that a program writes of another."""
    folder.mkdir()
    made = folder / f"{source.stem}.{ending}"
    command = [PANDOC, str(source), "--output", str(made)]
    if program == LIBREOFFICE:
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        command = [LIBREOFFICE, profile, "--headless", "--convert-to", ending, "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return made


def lines(blocks: Sequence[Block]) -> list[str]:
    return [line for block in blocks for line in block.text.split("\n")]


@pytest.mark.parametrize("written", TABLE, ids=lambda w: "-".join([w.source, *(f"{p}.{e}" for p, e in w.steps)]))
def test_a_person_sees(written: Written, tmp_path: Path) -> None:
    missing = [program for program, _ in written.steps if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: make writers")

    path = tmp_path / written.source
    path.write_text(written.text, encoding="utf-8")
    for number, (program, ending) in enumerate(written.steps):
        path = write(path, program, ending, tmp_path / str(number))

    reader = next(r for r in READERS.values() if isinstance(r, DocumentFormat) and path.suffix in r.suffixes)
    report = Report()
    with reading_process():
        found = lines(list(blocks_of(reader.name, path, report)))
    assert not report.missing
    assert found == [line for line in written.lines if line not in written.apart]
    assert not [text for text in sources.UNSEEN if text in "\n".join([*found, report.title])]
