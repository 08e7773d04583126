"""Search returns what float64 brute force returns: same documents, same scores, under the stated tie rule, in any
number of threads and on any device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdp.base.errors import ConfigError, InputError
from cdp.evaluation import search
from cdp.retrievers import exact_search
from cdp.retrievers.exact_search import Prepared
from cdp.retrievers.late_interaction import TokenVectors, search_tokens

# torch's own device runs the code of a GPU on any machine.
DEVICES = ["cpu", "cpu:0"]


@contextmanager
def blocks_of(rows: int, threads: int = 1, spare: int = exact_search.SPARE) -> Iterator[None]:
    """Blocks of so many documents in so many threads; no search is too small for them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FEWEST_ROWS", "MAX_ROWS", "DEVICE_ROWS"):
            patch.setattr(exact_search, name, rows)
        patch.setattr(exact_search, "SPARE", spare)
        patch.setattr(exact_search, "SINGLE_THREADED", 0)
        patch.setattr(exact_search, "blas_threads", lambda: threads)
        yield


def brute_force(
    queries: np.ndarray, documents: np.ndarray, k: int, exclude: list[list[int]] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """float64 products rounded to float32, the higher first, the lower index first among equals."""
    scores = (queries.astype(np.float64) @ documents.astype(np.float64).T).astype(np.float32)
    for row, hidden in enumerate(exclude or []):
        scores[row, hidden] = -np.inf
    indices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(scores, indices, axis=1)
    indices[np.isneginf(best)] = -1
    missing = k - indices.shape[1]
    padding = ((0, 0), (0, max(0, missing)))
    return np.pad(best, padding, constant_values=-np.inf), np.pad(indices, padding, constant_values=-1)


def vectors(seed: int, n: int, dim: int, dtype: type = np.float32) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(dtype)


def check(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[0].dtype == np.float32
    assert found[1].dtype == np.int64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [64, 1000, 8192])
def test_equals_brute_force_over_blocks(device: str, rows: int) -> None:
    queries, documents = vectors(1, 60, 48), vectors(2, 3001, 48)
    documents[1500:1600] = documents[:100]
    documents[2000] = documents[2003] = queries[0]
    with blocks_of(rows, 3):
        check(search(queries, documents, 25, device=device), brute_force(queries, documents, 25))


def test_it_says_how_far_it_is_and_can_be_ended() -> None:
    class EndedError(Exception):
        pass

    queries, documents, seen = vectors(1, 3, 8), vectors(2, 250, 8), list[tuple[int, int]]()
    with blocks_of(100):
        search(queries, documents, 5, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(100, 250), (200, 250), (250, 250)]

    def end(done: int, total: int) -> None:
        if done > 100:
            raise EndedError

    running, settings_before = set(threading.enumerate()), library_settings()
    with blocks_of(10, 3), pytest.raises(EndedError):
        search(queries, documents, 5, progress=end)
    assert set(threading.enumerate()) <= running, "those of tests before may have ended meanwhile"
    assert library_settings() == settings_before


def library_settings() -> tuple[object, ...]:
    blas, _ = exact_search._blas()
    precision = torch.get_float32_matmul_precision()
    return torch.get_num_threads(), precision, *(library.num_threads for library in blas.lib_controllers)


def test_searches_at_once_leave_the_libraries_their_threads() -> None:
    queries, documents, before = vectors(1, 20, 32), vectors(2, 4000, 32), library_settings()
    expected = brute_force(queries, documents, 9)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    with blocks_of(100, 2):
        at_work = [threading.Thread(target=lambda: found.append(search(queries, documents, 9))) for _ in range(3)]
        for thread in at_work:
            thread.start()
        for thread in at_work:
            thread.join(60)
    assert len(found) == 3
    for one in found:
        check(one, expected)
    assert library_settings() == before


def test_torch_has_one_thread_where_it_is_asked_to_and_as_many_as_before_elsewhere() -> None:
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(3)
    try:
        with exact_search.one_torch_thread():
            other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
            other.start()
            other.join()
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())
    finally:
        torch.set_num_threads(before)

    assert seen == [3, 1, 3]


@pytest.mark.parametrize("device", DEVICES)
def test_closely_packed_scores_are_told_apart(device: str) -> None:
    centre = vectors(3, 1, 64)
    documents = (centre + 1e-4 * vectors(4, 2000, 64)).astype(np.float32)
    queries = (centre + 1e-3 * vectors(5, 8, 64)).astype(np.float32)
    with blocks_of(300):
        check(search(queries, documents, 10, device=device), brute_force(queries, documents, 10))


@pytest.mark.parametrize("better_first", [True, False])
def test_what_float32_adds_up_to_nothing_is_found(better_first: bool) -> None:
    """2^24 + 1 is 2^24 in float32: the ones between two such numbers vanish from its sums."""
    better = np.repeat(np.array([2.0**24, 1, -(2.0**24)], np.float32), 64)
    worse = np.repeat(np.array([0, 0.5, 0], np.float32), 64)
    documents = np.stack([better, worse] if better_first else [worse, better])
    with blocks_of(1):
        found = search(np.ones((1, 192), np.float32), documents, 1)
    assert found[0].tolist() == [[64.0]]
    assert found[1].tolist() == [[0 if better_first else 1]]


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_of_very_different_length(device: str) -> None:
    random = np.random.default_rng(6)
    documents = vectors(7, 900, 32) * np.exp(random.uniform(-20, 20, (900, 1))).astype(np.float32)
    queries = vectors(8, 5, 32) * np.array([[1e-6], [1.0], [1e6], [0.0], [-3.0]], np.float32)
    with blocks_of(128):
        check(search(queries, documents, 12, device=device), brute_force(queries, documents, 12))


def test_equal_scores_come_in_ascending_order_of_index() -> None:
    documents = np.ones((500, 4), np.float32)
    with blocks_of(64, 2):
        scores, indices = search(np.ones((2, 4), np.float32), documents, 7)
    assert indices.tolist() == [list(range(7))] * 2
    assert scores.tolist() == [[4.0] * 7] * 2


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_ties_exclusions_and_numbers(data: st.DataObject) -> None:
    """Small integers make ties; few documents make k larger than their number; an offset makes all scores negative."""
    n, m, dim = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 700)), data.draw(st.integers(1, 5))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    queries = random.integers(-2, 3, (n, dim)).astype(np.float32)
    documents = (random.integers(-2, 3, (m, dim)) * data.draw(st.sampled_from([1.0, 2.0**-70, 2.0**40]))).astype(
        np.float32
    )
    if data.draw(st.booleans()):
        queries[:, 0], documents[:, 0] = 2, -100
    k = data.draw(st.sampled_from([1, 2, 10, 100, 900]))
    exclude = [data.draw(st.lists(st.integers(0, m - 1), max_size=5)) for _ in range(n)]
    device = data.draw(st.sampled_from(DEVICES))
    given_documents = Prepared(documents) if device == "cpu" and data.draw(st.booleans()) else documents
    rows, threads, spare = (data.draw(st.sampled_from(c)) for c in ([1, 7, 64, 300], [1, 3], [0, 100, 1 << 20]))
    with blocks_of(rows, threads, spare):
        found = search(queries, given_documents, k, exclude=exclude, device=device)
    check(found, brute_force(queries, documents, k, exclude))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [1, -1])
def test_documents_sorted_by_their_score(device: str, order: int) -> None:
    """Every document is better than all before it: all are candidates when they come."""
    documents = np.linspace(-1, 1, 6000, dtype=np.float32)[::order, None] * np.ones((1, 8), np.float32)
    queries = np.concatenate([np.ones((2, 8)), -np.ones((1, 8)), np.zeros((1, 8))]).astype(np.float32)
    with blocks_of(500, 2):
        check(search(queries, documents, 7, device=device), brute_force(queries, documents, 7))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("alike", ["zero", "one text", "few texts"])
def test_documents_that_score_alike_do_not_pile_up(monkeypatch: pytest.MonkeyPatch, threads: int, alike: str) -> None:
    """Every document of a corpus of one text, or without any, was held for every query until the end."""
    held: list[int] = []
    prune = exact_search._Block.prune
    monkeypatch.setattr(exact_search._Block, "prune", lambda own: (held.append(own._held), prune(own))[1])
    texts = vectors(1, {"zero": 1, "one text": 1, "few texts": 12}[alike], 8) * (alike != "zero")
    documents = texts[np.random.default_rng(2).integers(0, len(texts), 20_000)]
    documents[[15_000, 700]] = vectors(3, 2, 8)
    queries = vectors(4, 9, 8)
    exclude = [[3, 15_000], *[[]] * 8]
    with blocks_of(300, threads, spare=500):
        found = search(queries, documents, 5, exclude=exclude)
    check(found, brute_force(queries, documents, 5, exclude))
    assert len(held) > 5
    assert max(held) <= 4 * 9 * (5 + 2) + 500 + 300 * 9


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_queries", [1, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_the_first_document_that_is_not_finite_is_named(device: str, n_queries: int, value: float) -> None:
    documents = vectors(1, 5000, 8)
    documents[[1700, 2900, 4999], 3] = value
    with blocks_of(100, 3):
        with pytest.raises(InputError, match="document 1700 "):
            search(vectors(2, n_queries, 8), documents, 5, device=device)
        with pytest.raises(InputError, match="document 1700 "):
            Prepared(documents)


def test_more_queries_than_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdp.retrievers.exact_search.QUERY_BLOCK", 7)
    queries, documents = vectors(9, 23, 16), vectors(10, 400, 16)
    exclude = [[row, row + 100] for row in range(23)]
    with blocks_of(90):
        check(search(queries, documents, 5, exclude=exclude), brute_force(queries, documents, 5, exclude))


def test_half_precision_documents_are_taken_as_they_are() -> None:
    queries, documents = vectors(11, 20, 64), vectors(12, 2000, 64, np.float16)
    check(search(queries, documents, 10), brute_force(queries, documents, 10))


def test_memory_maps_in_shards(tmp_path: Path) -> None:
    documents = vectors(13, 1000, 24, np.float16)
    shards = []
    for i, start in enumerate(range(0, 1000, 300)):
        np.save(tmp_path / f"{i}.npy", documents[start : start + 300])
        shards.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    queries = vectors(14, 6, 24)
    with blocks_of(128, 2):
        check(search(queries, shards, 10), brute_force(queries, documents, 10))


@pytest.mark.slow
def test_mapped_files_do_not_stay_in_memory(tmp_path: Path) -> None:
    """A row read here and there maps its neighbours too. All documents are alike, so that all are scored again."""
    rows, dim = 60_000, 256  # 31 MB each
    for name in ("a.npy", "b.npy"):
        shard = np.lib.format.open_memmap(tmp_path / name, mode="w+", dtype=np.float16, shape=(rows, dim))
        shard[:] = np.linspace(-1, 1, dim)
        shard.flush()
        del shard
    maps = [np.load(tmp_path / name, mmap_mode="r") for name in ("a.npy", "b.npy")]
    before = _mapped_mib()
    search(vectors(1, 2, dim), maps, 5)
    assert _mapped_mib() - before < 20
    most: list[float] = []
    texts = TokenVectors(maps, np.full(2 * rows // 10, 10))
    search_tokens([vectors(2, 8, dim)], texts, 5, progress=lambda done, of: most.append(_mapped_mib() - before))
    assert max(most) < 20
    assert _mapped_mib() - before < 20


def _mapped_mib() -> float:
    """Pages of mapped files that count as this process's memory."""
    status = Path("/proc/self/status")
    if not status.is_file():
        pytest.skip("only Linux tells how much of the mapped files is resident")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("RssFile")) / 1024


def test_fewer_documents_than_asked_for() -> None:
    scores, indices = search(vectors(15, 2, 8), vectors(16, 3, 8), 5)
    assert (indices[:, 3:] == -1).all()
    assert np.isneginf(scores[:, 3:]).all()
    assert sorted(indices[0, :3].tolist()) == [0, 1, 2]


def test_no_queries_and_no_documents_that_may_be_found() -> None:
    assert (search(vectors(1, 2, 4), vectors(2, 2, 4), 2, exclude=[[0, 1], [1, 0]])[1] == -1).all()
    assert search(np.zeros((0, 4), np.float32), vectors(1, 3, 4), 2)[1].shape == (0, 2)
    assert (search(vectors(1, 3, 4), np.zeros((0, 4), np.float32), 2)[1] == -1).all()


def test_what_cannot_be_searched_is_refused() -> None:
    queries, documents = vectors(17, 2, 8), vectors(18, 5, 8)
    with pytest.raises(ConfigError, match="at least 1"):
        search(queries, documents, 0)
    with pytest.raises(InputError, match="do not fit"):
        search(queries, vectors(18, 5, 9), 1)
    with pytest.raises(InputError, match="two dimensions"):
        search(queries, documents[0], 1)
    for value in (np.nan, -np.inf, 1e25):  # the last one's products with long documents are beyond float32
        with pytest.raises(InputError, match="not finite, or too large"):
            search(np.full((1, 8), value, np.float32), documents, 1)
    documents[3, 2] = np.inf
    with pytest.raises(InputError, match="document 3"):
        search(queries, documents, 1)
    with pytest.raises(InputError, match="2 queries"):
        search(queries, vectors(18, 5, 8), 1, exclude=[[0]])
    with pytest.raises(InputError, match="not among"):
        search(queries, vectors(18, 5, 8), 1, exclude=[[0], [5]])
