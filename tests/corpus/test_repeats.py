"""Lines that return in most files, and passages that repeat another one, are left out and shown, unless kept."""

from __future__ import annotations

from pathlib import Path

from cdp.corpus import ReadOptions, read_documents
from tests.corpus.test_office_files import prose

NOTICE = "Internal — Confidential. Copyright 2024 Example Inc."


def test_a_notice_of_most_files_is_removed_and_shown(tmp_path: Path) -> None:
    for n in range(8):
        notice = f"{NOTICE}\nPage {n} of 8 pages\n" if n else ""
        (tmp_path / f"{n}.txt").write_text(f"{notice}\n{prose(n, 120)}\n\nSummary and outlook\n\n{prose(90 + n, 20)}")
    with read_documents(tmp_path) as found:
        assert f"Removed from 7 of 8 files: {NOTICE}" in found.notes
        assert any(note.startswith("Removed from 7 of 8 files: Page") for note in found.notes)
        text = " ".join(document.text for document in found.documents)
        assert "Confidential" not in text
        assert all(sentence in text for n in range(8) for sentence in prose(n, 120).split(". "))
    with read_documents(tmp_path, ReadOptions(keep_repeated=True)) as kept:
        assert sum("Confidential" in document.text for document in kept.documents) == 7


def test_files_that_say_little_else_keep_what_they_say(tmp_path: Path) -> None:
    for n in range(8):
        (tmp_path / f"{n}.txt").write_text(f"The invoice with number {n} was paid in full.")
    with read_documents(tmp_path) as found:
        assert found.n_documents == 8


def test_passages_of_the_earlier_version_stay_where_a_newcomer_repeats_them(tmp_path: Path) -> None:
    first, second, new = tmp_path / "m.txt", tmp_path / "n.txt", tmp_path / "a.txt"
    first.write_text(prose(1, 100))
    second.write_text(prose(2, 100))
    with read_documents(tmp_path) as found:
        earlier = {hash((document.title, document.text)) for document in found.documents}
    new.write_text(f"{prose(1, 100)} Indeed.")
    (tmp_path / "z.txt").write_text(prose(2, 100))
    with read_documents(tmp_path, earlier=earlier) as grown:
        assert [document.id for document in grown.documents] == ["m.txt", "n.txt"]
        assert [(r.file, r.reason) for r in grown.rejected] == [
            ("a.txt", "it repeats m.txt"),
            ("z.txt", "it repeats n.txt"),
        ]
    first.unlink()  # nothing of it is left for a newcomer to repeat
    with read_documents(tmp_path, earlier=earlier) as grown:
        assert [document.id for document in grown.documents] == ["a.txt", "n.txt"]


def test_near_duplicates_are_listed_and_texts_with_other_numbers_are_none(tmp_path: Path) -> None:
    text = prose(1, 100)
    copies = {
        "a": text,
        "b": f"{text} Indeed.",
        "c": f"{text} 7",
        "d": f"{text} 8",
        "e": prose(2, 100),
    }
    for name, content in copies.items():
        (tmp_path / f"{name}.txt").write_text(content)
    with read_documents(tmp_path) as found:
        assert [document.id for document in found.documents] == ["a.txt", "c.txt", "d.txt", "e.txt"]
        [repeated] = found.rejected
        assert (repeated.file, repeated.kind, repeated.reason) == ("b.txt", "repeated passage", "it repeats a.txt")
