"""The registry names what it should, and states nothing without a source."""

from __future__ import annotations

import csv

import pytest

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import SHIPPED_DATA
from cdp.benchmarks.registry import downloadable, entries, find, groups
from cdp.benchmarks.schemas import SCHEMAS, Entry


def test_the_groups_have_their_members() -> None:
    assert {title: len(names) for title, names in groups().items()} == {
        "CQADupStack": 12,
        "MS MARCO": 1,
        "TREC-DL": 2,
        "BEIR": 14,
        "BRIGHT": 12,
        "Multi-hop": 4,
        "MIRACL": 6,
        "MIRACL training": 6,
        "NanoBEIR": 13,
    }
    assert downloadable("SciFact").name == "scifact"
    with pytest.raises(ConfigError, match="CQADupStack is 12 benchmarks") as caught:
        downloadable("cqadupstack")
    assert "cqadupstack-tex" in caught.value.hint


def test_names_are_unique_and_an_unknown_one_is_told() -> None:
    names = [entry.name for entry in entries()]
    assert len(names) == len(set(names))
    with pytest.raises(NotFoundError, match="benchmark in the registry"):
        downloadable("sci")


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_an_entry_is_whole(entry: Entry) -> None:
    assert entry.licence
    assert entry.licence_source
    assert bool(entry.groups) != bool(entry.part_of)
    assert entry.relevant_from in (1, 2)
    if not entry.schema:
        assert entry.name == "cqadupstack"
        return
    assert entry.schema in SCHEMAS
    found = SCHEMAS.named(entry.schema).parts(entry)
    assert found
    assert all(part.repo in entry.repos or part.url.startswith("https://") for part in found)
    assert entry.split


def test_sizes_and_cw_are_the_paper_s() -> None:
    with open(SHIPPED_DATA / "published" / "datasets.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = f"bright-{row['dataset']}" if row["group"] == "BRIGHT" else row["dataset"]
            entry = find(name)
            assert entry is not None, name
            assert row["group"] in entry.groups
            assert (entry.documents, entry.queries) == (int(row["n_docs"]), int(row["n_queries"]))
            assert entry.cw == float(row["cw"])
            assert entry.figures == "the paper"


def test_the_forums_add_up_to_cqadupstack() -> None:
    whole = find("cqadupstack")
    assert whole is not None
    forums = [entry for entry in entries() if entry.part_of == whole.name]
    assert sum(part.documents or 0 for part in forums) == whole.documents
    assert sum(part.queries or 0 for part in forums) == whole.queries


def test_what_nobody_states_is_not_stated() -> None:
    found = find("novelhopqa")
    assert found is not None
    assert found.licence == "not stated"
    miracl = find("miracl-ja")
    assert miracl is not None
    assert miracl.cw is None


def test_the_text_s_size_follows_characters_and_script() -> None:
    scifact, korean = find("scifact"), find("miracl-ko")
    assert scifact is not None
    assert korean is not None
    assert scifact.text_bytes == 5183 * 1499
    assert korean.text_bytes == 1486752 * 174 * 3


def test_it_knows_what_the_paper_calls_a_benchmark() -> None:
    called = {entry.name: entry.paper for entry in entries()}
    assert called["bright-biology"] == "biology"
    assert called["scifact"] == "scifact"
    assert called["cqadupstack-unix"] == called["nanonq"] == called["miracl-ko"] == ""
