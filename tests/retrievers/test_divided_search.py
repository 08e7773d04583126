"""A search divided over the shards of a collection gives what one search of everything gives, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdp.base.errors import InputError
from cdp.evaluation import search
from cdp.retrievers.exact_search import divided
from cdp.retrievers.exact_search.divided import merged, search_by
from tests.crews import Backwards

pytestmark = pytest.mark.slow  # it loads torch


@pytest.fixture(autouse=True)
def _divided_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided, "ALONE", 0)


def made(seed: int, n: int, dim: int = 24, *, copies: bool = False) -> np.ndarray:
    """Random rows; with ``copies`` many are equal, so that scores tie."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, dim)).astype(np.float32)
    return rows[rng.integers(0, max(1, n // 5), n)] if copies else rows


def kept(folder: Path, name: str, rows: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """The rows in files of these sizes, as memory maps."""
    parts = []
    for i, (start, size) in enumerate(zip(np.cumsum([0, *sizes]), sizes, strict=False)):
        np.save(folder / f"{name}-{i}.npy", rows[start : start + size])
        parts.append(np.load(folder / f"{name}-{i}.npy", mmap_mode="r"))
    return parts


def compare(folder: Path, queries: np.ndarray, documents: np.ndarray, sizes: Sequence[int], k: int,
            exclude: list[list[int]] | None = None, *, workers: int = 2) -> Backwards:  # fmt: skip
    crew = Backwards(workers)
    expected = search(queries, documents, k, exclude=exclude)
    parts = kept(folder, "d", documents, sizes)
    found = search_by(crew, kept(folder, "q", queries, [len(queries)]), parts, k, exclude=exclude)
    assert (found[0].dtype, found[1].dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0].view(np.uint32), expected[0].view(np.uint32))
    return crew


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("k", [1, 10, 100, 700])
def test_scores_and_numbers_are_those_of_one_search(tmp_path: Path, k: int, dtype: type) -> None:
    """100 is more than some shards have, 700 more than there are documents."""
    documents = made(2, 600).astype(dtype)
    crew = compare(tmp_path, made(1, 30), documents, [128, 128, 128, 128, 88], k)
    assert len(crew.parts) == 3
    assert max(crew.parts) < 1500, "embeddings stay where they are"


def test_equal_scores_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    compare(tmp_path, made(1, 20), made(2, 300, copies=True), [64, 64, 64, 64, 44], 40)


def test_what_must_not_be_retrieved_is_not(tmp_path: Path) -> None:
    documents, queries = made(2, 300, copies=True), made(1, 6)
    best = search(queries, documents, 12)[1].tolist()
    exclude = [best[0], [], best[2][:1], list(range(300)), list(range(64)), [299]]
    compare(tmp_path, queries, documents, [64, 64, 64, 64, 44], 20, exclude)


def test_one_document_for_each_worker(tmp_path: Path) -> None:
    """A single row is summed as it is among many."""
    compare(tmp_path, made(1, 9, 33), made(2, 7, 33), [1] * 7, 3, workers=4)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 90), min_size=1, max_size=7), k=st.integers(1, 60),
       workers=st.integers(1, 4), dim=st.sampled_from([1, 3, 16, 65]), copies=st.booleans())  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_division_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, sizes: list[int], k: int, workers: int, dim: int, copies: bool
) -> None:
    n = sum(sizes)
    queries = made(seed, 5, dim)
    exclude = [list(range(i, n, 3)) for i in range(5)]
    folder = tmp_path_factory.mktemp("any")
    compare(folder, queries, made(seed + 1, n, dim, copies=copies), sizes, k, exclude, workers=workers)


def test_progress_counts_documents(tmp_path: Path) -> None:
    seen: list[int] = []
    parts, asked = kept(tmp_path, "d", made(2, 50), [20, 20, 10]), kept(tmp_path, "q", made(1, 2), [2])
    search_by(Backwards(), asked, parts, 3, progress=seen.append)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 50)


def test_embeddings_in_memory_are_searched_here(tmp_path: Path) -> None:
    crew, queries, documents = Backwards(), made(1, 2), made(2, 50)
    found = search_by(crew, [queries], [documents[:20], documents[20:]], 3)
    assert crew.parts == []
    np.testing.assert_array_equal(found[1], search(queries, documents, 3)[1])


def test_damage_is_told_with_its_document(tmp_path: Path) -> None:
    documents = made(2, 50)
    documents[33, 2] = np.nan
    asked = kept(tmp_path, "q", made(1, 2), [2])
    with pytest.raises(InputError, match="From document 20 on: The embedding of document 13 holds"):
        search_by(Backwards(), asked, kept(tmp_path, "d", documents, [20, 20, 10]), 3)
    with pytest.raises(InputError, match="not among the 50 documents"):
        search_by(Backwards(), asked, kept(tmp_path, "d", documents, [20, 20, 10]), 3, exclude=[[50], []])


def test_merging_takes_the_higher_score_then_the_lower_number() -> None:
    none = np.float32(-np.inf)
    one = np.array([[3.0, 1.0, none]], np.float32), np.array([[7, 9, -1]])
    other = np.array([[3.0, 1.0]], np.float32), np.array([[4, 8]])
    scores, numbers = merged(one, other, 3)
    assert (scores.tolist(), numbers.tolist()) == ([[3.0, 3.0, 1.0]], [[4, 7, 8]])
    scores, numbers = merged(one, (other[0][:, :1], other[1][:, :1]), 5)
    assert numbers.tolist() == [[4, 7, 9, -1]]
