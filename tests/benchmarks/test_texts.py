"""Texts in a file are the texts of a list."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.workspace import SHIPPED_DATA, Workspace
from cdp.benchmarks import benchmark as room
from cdp.benchmarks import load_benchmark
from cdp.benchmarks.benchmark import Texts
from cdp.evaluation.evaluate import evaluate_bm25
from tests import strategies
from tests.strategies import examples


@pytest.fixture(autouse=True)
def _few_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "HELD_CHARACTERS", 20)
    monkeypatch.setattr(room, "BLOCK", 3)


def filed(texts: list[str]) -> room._Filed:
    taken = Texts()
    for text in [*texts, "x" * 30]:
        taken.append(text)
    sequence = taken.sequence()
    assert isinstance(sequence, room._Filed)
    return sequence


@examples(60)
@given(
    st.lists(strategies.texts(), max_size=12),
    st.integers(-14, 14),
    st.integers(-14, 14),
    st.sampled_from([1, 2, -1, -3]),
)
def test_they_are_read_as_they_were_given(texts: list[str], start: int, stop: int, step: int) -> None:
    sequence, expected = filed(texts), [*texts, "x" * 30]
    assert len(sequence) == len(expected)
    assert list(sequence) == expected
    assert sequence[start:stop:step] == expected[start:stop:step]
    assert [sequence[number] for number in range(-len(expected), len(expected))] == expected + expected


def test_a_number_beyond_the_last_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        filed(["a"])[2]


def test_few_stay_in_a_list() -> None:
    taken = Texts()
    taken.append("few")
    assert taken.sequence() == ["few"]


def test_a_file_that_was_cut_off_is_no_text() -> None:
    sequence = filed(["a", "b"])
    sequence._file.truncate(4)
    with pytest.raises(OSError, match="cut off"):
        sequence[:]


def test_nothing_is_left_in_the_workspace(workspace: Workspace) -> None:
    workspace.root.mkdir()
    sequence = filed(["a", "b"])
    assert list(sequence)[:2] == ["a", "b"]
    assert [path for path in (workspace.root / "tmp").rglob("*") if path.is_file() and path.stat().st_size > 30] == []


def test_a_benchmark_in_a_file_is_evaluated_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = SHIPPED_DATA / "demo"
    from_file = load_benchmark(folder, "test")
    monkeypatch.setattr(room, "HELD_CHARACTERS", 10**9)
    in_memory = load_benchmark(folder, "test")
    assert isinstance(from_file.documents, room._Filed)
    assert isinstance(in_memory.documents, list)
    assert list(from_file.documents) == in_memory.documents
    assert list(from_file.document_ids) == in_memory.document_ids
    assert (from_file.hash, from_file.language) == (in_memory.hash, in_memory.language)
    one, other = (evaluate_bm25(benchmark) for benchmark in (from_file, in_memory))
    assert one.measures == other.measures
