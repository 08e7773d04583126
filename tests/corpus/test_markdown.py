"""Markdown: the title of its front matter, and tables with columns, cut between rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.corpus import read_documents
from cdp.corpus.readers import text
from tests.corpus.files import read
from tests.support import REPOSITORY

CASES = REPOSITORY.parent / "shared" / "cases" / "documents"
BODY = "Press the red button for three seconds."


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ('title: "Resetting the boiler"\nslug: boiler\ntags: [heat]', "Resetting the boiler"),
        ("slug: boiler\ntitle: 'Der Kessel'", "Der Kessel"),
        ("title: Boilers: a guide\nbroken: [", "Boilers: a guide"),
        ("title: >\n  Resetting\n  the boiler\nslug: x", "Resetting the boiler"),
        ("title: 2024", "2024"),
        ("title: 2024-01-01", "2024-01-01"),
        ("title: 2024-02-30", "2024-02-30"),
        ("title: 1:30", "1:30"),
        ("title: yes", "yes"),
        ("title: 0x_", "0x_"),
        ("title: !!int x", "x"),
        ("title:Boilers", "Boilers"),
        ("title:Boilers: a guide", "Boilers: a guide"),
        ("title:: a guide", ": a guide"),
        ("title: ~\nslug: x", "a"),
        ("title: null", "a"),
        ("title: [a, b]", "a"),
        ("title:\nslug: x", "a"),
        ("subtitle: x", "a"),
        ("title: " + "long " * 400, "a"),
    ],
)
def test_the_title_of_front_matter(front: str, title: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"---\n{front}\n---\n\n{BODY}\n", encoding="utf-8")
    assert read(tmp_path / "a.md") == [("a.md", title, BODY)]


def test_a_rule_at_the_top_is_no_front_matter(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: not closed\n\nText.\n")
    [(_, title, found)] = read(tmp_path / "a.md")
    assert title == "a"
    assert "title: not closed" in found


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["| A | B |", "|---|:-:|", "| 1 | |", "| | 2 |"], "A | B\n1\n| 2"),
        (["A | B", "--- | ---", "1 | x \\| y"], "A | B\n1 | x | y"),
        (["Fares:", "| A | B |", "| --- | --- |", "| 1 | 2 |"], "Fares:\n\nA | B\n1 | 2"),
        (["```", "| A | B |", "| --- | --- |", "```"], "```\n| A | B |\n| --- | --- |\n```"),
        (["| A | B |", "| --- |", "| 1 | 2 |"], "| A | B |\n| --- |\n| 1 | 2 |"),
        (["either | or", "no dashes | here"], "either | or\nno dashes | here"),
    ],
)
def test_a_table(lines: list[str], wanted: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("\n".join(lines))
    assert read(tmp_path / "a.md") == [("a.md", "a", wanted)]


def test_each_piece_of_a_long_table_has_its_titles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into passages, and held in memory a piece at a time."""
    monkeypatch.setattr(text, "LONGEST_PARAGRAPH", 2_000)
    rows = [f"| {n} | holder {n} of the fund |" for n in range(300)]
    (tmp_path / "a.md").write_text("\n".join(["| Id | Holder |", "| -- | -- |", *rows]))
    passages = [found for _, _, found in read(tmp_path / "a.md")]
    assert len(passages) > 5
    assert all(passage.startswith("Id | Holder\n") for passage in passages)
    numbers = [line.split(" | ")[0] for passage in passages for line in passage.split("\n") if " | holder" in line]
    assert numbers == [str(n) for n in range(300)]


@pytest.mark.skipif(not CASES.is_dir(), reason="needs ../shared/cases")
def test_the_cases_beside_the_repository() -> None:
    with read_documents(CASES / "front.md") as found:
        assert [document.title for document in found.documents] == ["Resetting the boiler"]
    with read_documents(CASES / "bigtable.md") as found:
        tables = [document.text for document in found.documents]
        assert len(tables) > 3
        assert all("Id | Holder | Class | Shares | Percent\n" in table for table in tables)
