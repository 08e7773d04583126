"""Where the raw weights come from: the queries, or a file of one's own."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from cdp.base.errors import CdpError, InputError
from cdp.base.workspace import Workspace
from cdp.corpus import sources
from cdp.training.pairs import load_pairs
from cdp.training.plan import pair_weights
from cdp.training.weightings import WEIGHTINGS
from cdp.training.weightings.column import read_weights


def test_cw_weights_are_capped_content_words() -> None:
    queries = ["why do glaciers carve deep valleys", "what is it", "glaciers glaciers"]
    np.testing.assert_array_equal(WEIGHTINGS["cw"].raw(queries, "en", 100.0), [4.0, 0.0, 1.0])
    np.testing.assert_array_equal(WEIGHTINGS["cw"].raw(queries, "en", 2.0), [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(WEIGHTINGS["none"].raw(queries, "en", 100.0), [1.0, 1.0, 1.0])


def test_every_weighting_gives_a_pair_set_its_weights(workspace: Workspace, query_set: str, tmp_path: Path) -> None:
    pairs = load_pairs(workspace, query_set, per_doc=2).part(np.arange(4))
    assert pairs.query_ids == ["d0-1", "d0-2", "d1-1", "d1-2"]
    file = tmp_path / "weights.csv"
    file.write_text("query_id,weight\nd1-2,4\nd0-1,1\nd0-2,0\nd1-1,2.5\nd9-1,7\n", encoding="utf-8")
    expected = {
        "none": [1, 1, 1, 1],
        "cw": [1, 2, 1, 2],
        "cw-question-words": [2, 2, 2, 2],  # "what" counts
        "words": [4, 2, 4, 2],
        "rarity": [1, 1, 1, 1],
        "ri": [1, 1, 1, 1],
        "ri-cw": [1, 2, 1, 2],
        "column": [1, 0, 2.5, 4],
    }
    assert set(expected) == set(WEIGHTINGS)
    for name, weights in expected.items():
        np.testing.assert_array_equal(pair_weights(pairs, name, file=str(file)), weights)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("w.tsv", "query_id\tweight\na-1\t1\na-2\t0.5\n"),
        ("w.jsonl", '{"query_id": "a-1", "weight": 1}\n\n{"query_id": "a-2", "weight": 0.5}\n'),
        ("w.csv", "\ufeffquery_id,weight\na-1,1\na-2,0.5\n"),
    ],
)
def test_weights_are_read_from_each_format(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_weights(str(tmp_path / name), ["a-2", "a-1"]).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("query_id,weight\na-1,-1\n", "a-1: '-1' is no weight"),
        ("query_id,weight\na-1,nan\n", "'nan' is no weight"),
        ("query_id,weight\na-1,heavy\n", "'heavy' is no weight"),
        ("query_id,weight\na-1,1e101\n", "'1e101' is no weight"),
        ("query_id,weight\na-1,1\nb-1,2\na-1,2\n", "a-1 has two weights"),
        ("id,weight\na-1,1\n", "no column 'query_id'"),
        ("query_id,weight\nother,1\n", "a-1 has no weight"),
        ("", "a-1 has no weight"),
        ('query_id,weight\n"a-1,1\n', "cannot be read: broken quoting"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_line_by_line(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "w.csv").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_weights(str(tmp_path / "w.csv"), ["a-1"])


def test_a_small_file_of_many_weights_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FLOOR", 2**20)
    for name, text in (("w.csv.gz", "query_id,weight\n" + "a,1\n" * 400_000), ("w.jsonl.gz", "\n" * 400_000)):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        with pytest.raises(InputError, match="unpacks to more than 1 MB"):
            read_weights(str(tmp_path / name), ["a"])


def test_many_problems_are_counted_and_the_first_twenty_shown(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("query_id,weight\n", encoding="utf-8")
    with pytest.raises(InputError, match="and 13 more") as raised:
        read_weights(str(tmp_path / "w.csv"), [f"d-{i}" for i in range(33)])
    assert raised.value.message.count("has no weight") == 20


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    for name, content in (("w.csv", b"query_id,weight\n\xff\xfe,1\n"), ("w.jsonl", b"{broken\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            read_weights(str(tmp_path / name), ["a"])
    with pytest.raises(InputError, match="There is no file"):
        read_weights(str(tmp_path / "absent.csv"), ["a"])
    with pytest.raises(CdpError, match="needs a file"):
        read_weights("", ["a"])
