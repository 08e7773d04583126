"""Files as people's programs write them: each must give what a person sees in it, word for word.

``make writers`` installs the programs (Debian: LibreOffice, pandoc) and runs this; without them the tests skip.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import READERS, DocumentFormat, Report, words
from tests.support import REPOSITORY
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


def found_in(path: Path) -> tuple[list[str], Report]:
    """The lines of a file; nothing of it may be missing."""
    reader = next(r for r in READERS.values() if isinstance(r, DocumentFormat) and path.suffix in r.suffixes)
    report = Report()
    with reading_process():
        blocks = list(blocks_of(reader.name, path, report))
    assert not report.missing
    return [line for block in blocks for line in block.text.split("\n")], report


def skip_without(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: make writers")


@pytest.mark.parametrize("written", TABLE, ids=lambda w: "-".join([w.source, *(f"{p}.{e}" for p, e in w.steps)]))
def test_a_person_sees(written: Written, tmp_path: Path) -> None:
    skip_without(*(program for program, _ in written.steps))
    path = tmp_path / written.source
    path.write_text(written.text, encoding="utf-8")
    for number, (program, ending) in enumerate(written.steps):
        path = write(path, program, ending, tmp_path / str(number))

    found, report = found_in(path)
    assert found == [line for line in written.lines if line not in written.apart]
    assert not [text for text in sources.UNSEEN if text in "\n".join([*found, report.title])]


def test_a_long_manual_has_the_same_words_whoever_wrote_the_file(tmp_path: Path) -> None:
    skip_without(PANDOC, LIBREOFFICE)
    manual = REPOSITORY / "docs" / "METHODS.md"
    docx = write(manual, PANDOC, "docx", tmp_path / "docx")
    odt = write(manual, PANDOC, "odt", tmp_path / "odt")
    files = [docx, odt, write(docx, LIBREOFFICE, "odt", tmp_path / "to_odt")]
    files += [write(odt, LIBREOFFICE, "docx", tmp_path / "to_docx"), write(manual, PANDOC, "pptx", tmp_path / "pptx")]

    first, *others = (Counter(words("\n".join(found_in(path)[0]))) for path in files)
    assert first.total() > 3000
    assert others == [first] * len(others)
