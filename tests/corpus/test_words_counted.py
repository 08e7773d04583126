"""The words of a file are counted apart from reading it; what did not come out is said with its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Block, Report, missing, words
from cdp.corpus.readers import text as text_reader
from cdp.corpus.reading import FileRead
from tests.support import install_plugins

LOSSY = """
from cdp.corpus.passages import Block
from cdp.corpus.readers.files import office_format


def blocks(path, passwords, report):
    text = path.read_text()
    report.count(text)
    report.count("A note below the page.", "footnotes")
    report.count("Internal", "header")
    report.remove("Internal", "header")
    yield Block(text.replace("gone", ""))


LOSSY = office_format("lossy", "Lossy", "a reader that loses words", (".lossy",), blocks, 200)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The fee is 45 euros.", ["the", "fee", "is", "45", "euros"]),
        ("港口 crane", ["港", "口", "crane"]),
        ("co\u00adoperate ﬁle", ["cooperate", "file"]),
        ("snake_case", ["snake", "case"]),
        ("Café", ["café"]),
    ],
)
def test_a_word_is_a_run_of_letters_or_one_character_of_a_script_without_spaces(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_what_came_twice_makes_up_for_nothing_and_is_lost_where_most_of_it_is() -> None:
    inside = {"text": Counter(words("the fee is of the port")), "notes": Counter(words("the quay"))}
    came = Counter(words("the fee is of the port port port port"))
    assert missing(inside, came) == {"notes": 2}


@pytest.mark.parametrize(
    ("n_words", "lost", "said"),
    [(8, {"notes": 2}, "2 of 8 words (25%) did not come out: notes (2)"), (100, {"notes": 2}, ""), (0, {}, "")],
)
def test_a_file_says_what_did_not_come_out(n_words: int, lost: dict[str, int], said: str) -> None:
    assert FileRead("a.docx", "docx", "", "en", 1, n_words=n_words, missing=lost).loss == said


def test_words_of_a_text_are_counted_one_by_one_only_where_some_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The fee is 45 euros.\nIt is gone.\n\n" * 50, encoding="utf-8")
    with read_documents(path, ReadOptions(keep_repeated=True)) as found:
        assert (found.files[0].n_words, found.files[0].missing) == (400, {})

    class Losing(text_reader._Paragraph):
        """A fault that loses a line of each paragraph."""

        def flush(self, more: bool = False) -> Iterator[Block]:
            self.lines = [line for line in self.lines if "gone" not in line]
            return super().flush(more)

    monkeypatch.setattr(text_reader, "_Paragraph", Losing)
    with read_documents(path, ReadOptions(keep_repeated=True)) as found:
        assert found.files[0].missing == {"text": 150}
        assert found.files[0].loss


@pytest.mark.slow
def test_the_reading_process_says_what_its_reader_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lossy.py").write_text(LOSSY)
    install_plugins(tmp_path, "lossy")
    monkeypatch.syspath_prepend(tmp_path)  # the reading process loads it
    (tmp_path / "a.lossy").write_text("The word gone is lost.")
    report = Report()
    with reading_process():
        list(blocks_of("lossy", tmp_path / "a.lossy", report))
    assert report.removed == {"header": 1}
    assert report.missing == {"footnotes": 5, "text": 1}
    assert report.n_words == 11
    assert not report.inside  # the words themselves stay in the process
