"""Whatever product a machine is fastest at, in however many threads: search finds the same, and the choice is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cdp.retrievers.exact_search as exact_search
from cdp.base.errors import InputError
from cdp.retrievers.exact_search import Prepared, measured, products, search, threads
from cdp.retrievers.exact_search import candidates as candidates_module
from cdp.retrievers.exact_search.candidates import Candidates
from tests.retrievers.test_search_is_exact import brute_force, check, vectors

KINDS = ["numpy", "torch", "bfloat16", "device"]


@contextmanager
def machine(kind: str, processors: int) -> Iterator[None]:
    """As on one whose fastest product is of this kind; no search is too small for threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "fastest", lambda *_: kind)
        patch.setattr(exact_search, "processors", lambda: processors)
        patch.setattr(exact_search, "ALONE", 0)
        yield


@contextmanager
def spare(pairs: int) -> Iterator[None]:
    """So many candidates more than a few for each place are held before they are looked through."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates_module, "SPARE", pairs)
        patch.setattr(candidates_module, "AT_ONCE", min(pairs, 1 << 12))
        yield


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_ties_exclusions_and_few_documents(data: st.DataObject) -> None:
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
    exclude = [data.draw(st.lists(st.integers(0, m - 1), max_size=4)) for _ in range(n)]
    given_documents = Prepared(documents) if data.draw(st.booleans()) else documents
    with (
        machine(data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([1, 3]))),
        spare(data.draw(st.sampled_from([0, 100, 1 << 20]))),
    ):
        found = search(queries, given_documents, k, exclude=exclude, chunk_rows=data.draw(st.integers(1, 300)))
    check(found, brute_force(queries, documents, k, exclude))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, -1])
def test_documents_sorted_by_their_score(kind: str, order: int) -> None:
    """Every document is better than all before it: all are candidates when they come."""
    documents = np.linspace(-1, 1, 6000, dtype=np.float32)[::order, None] * np.ones((1, 8), np.float32)
    queries = np.concatenate([np.ones((2, 8)), -np.ones((1, 8)), np.zeros((1, 8))]).astype(np.float32)
    with machine(kind, 2):
        check(search(queries, documents, 7, chunk_rows=500), brute_force(queries, documents, 7))


def not_needed(query: int, documents: np.ndarray) -> np.ndarray:
    raise AssertionError("so few candidates are not scored before the end")


def test_many_new_bounds_of_one_query_leave_the_table_small(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates, widths, raise_by = Candidates(2, 3, not_needed), list[int](), Candidates.raise_by
    monkeypatch.setattr(
        Candidates, "raise_by", lambda own, lower, *at: widths.append(lower.shape[1]) or raise_by(own, lower, *at)
    )
    lower = np.arange(10_000.0)
    for half in (lower[:5000], lower[5000:]):
        candidates.add(np.zeros(5000, np.int64), half.astype(np.int64), half, half, counted=False)
    assert widths
    assert max(widths) <= 12
    assert candidates.kth[0] >= 0
    query, document = candidates.remaining()
    assert (query == 0).all()
    assert set(range(9997, 10_000)) <= set(document.tolist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processors", [1, 3])
@pytest.mark.parametrize("alike", ["zero", "one text", "few texts"])
def test_documents_that_score_alike_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch, kind: str, processors: int, alike: str
) -> None:
    """Every document of a corpus of one text, or without any, was held for every query until the end."""
    monkeypatch.setattr(candidates_module, "SPARE", 500)
    monkeypatch.setattr(candidates_module, "AT_ONCE", 50)
    held, prune = list[int](), Candidates._prune
    monkeypatch.setattr(Candidates, "_prune", lambda own: (prune(own), held.append(own._pooled))[0])
    settled, settle = list[int](), Candidates._settle
    monkeypatch.setattr(Candidates, "_settle", lambda own: (settle(own), settled.append(own._pooled))[0])
    texts = vectors(1, {"zero": 1, "one text": 1, "few texts": 12}[alike], 8) * (alike != "zero")
    documents = texts[np.random.default_rng(2).integers(0, len(texts), 20_000)]
    documents[[15_000, 700]] = vectors(3, 2, 8)
    queries = vectors(4, 9, 8)
    exclude = [[3, 15_000], *[[]] * 8]
    with machine(kind, processors):
        found = search(queries, documents, 5, exclude=exclude, chunk_rows=300)
    check(found, brute_force(queries, documents, 5, exclude))
    assert settled
    assert max(settled) <= 9 * 5
    assert max(held) <= 4 * 9 * 5 + 500 + processors * 300 * 9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_queries", [1, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_the_first_document_that_is_not_finite_is_named(kind: str, n_queries: int, value: float) -> None:
    documents = vectors(1, 5000, 8)
    documents[[1700, 2900, 4999], 3] = value
    with machine(kind, 3), pytest.raises(InputError, match="document 1700 "):
        search(vectors(2, n_queries, 8), documents, 5, chunk_rows=100)
    with pytest.raises(InputError, match="document 1700 "):
        Prepared(documents)


def test_ending_a_search_leaves_no_thread_and_no_setting() -> None:
    class EndedError(Exception):
        pass

    def end(done: int) -> None:
        if done > 1000:
            raise EndedError

    running = set(threading.enumerate())
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    blas = [library.num_threads for library in products.numpy_blas().lib_controllers]
    with machine("numpy", 3), pytest.raises(EndedError):
        search(vectors(1, 30, 8), vectors(2, 9000, 8), 5, chunk_rows=100, progress=end)
    assert set(threading.enumerate()) <= running, "those of tests before may have ended meanwhile"
    assert before == (torch.get_num_threads(), torch.get_float32_matmul_precision())
    assert blas == [library.num_threads for library in products.numpy_blas().lib_controllers]


def test_each_gives_one_processor_to_a_thread_and_raises_the_earliest_error() -> None:
    both = threading.Barrier(2)
    given_threads = []

    def work(item: int) -> None:
        both.wait(30)
        torch.ones(10) + 1  # a thread's setting counts only once torch has been used in it
        given_threads.append(torch.get_num_threads())
        raise ValueError(item)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="0"):
            threads.each(work, [0, 1, 2, 3], 2)
        assert given_threads == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_shared_setting_is_undone_by_the_last_of_its_users() -> None:
    made: list[str] = []

    @threads.Shared
    @contextmanager
    def setting() -> Iterator[None]:
        made.append("on")
        yield
        made.append("off")

    first, second = setting(), setting()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert made == ["on"]
    second.__exit__(None, None, None)
    assert made == ["on", "off"]


@settings(deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1))
def test_numbers_are_rounded_down_to_bfloat16(numbers: list[float]) -> None:
    exact = np.array(numbers, np.float32)
    bits = products.rounded_down(exact)
    lower = products.widened(bits)
    assert (lower <= exact).all()
    assert (torch.from_numpy(lower).bfloat16().float().numpy() == lower).all()
    assert (_next_above(bits) > exact)[np.isfinite(lower)].all()


def _next_above(bits: np.ndarray) -> np.ndarray:
    """The next larger bfloat16."""
    step = np.where(bits < 0, -1, 1).astype(np.int16)
    smallest = products.widened(np.array([1], np.int16))
    return np.where(bits == np.int16(-0x8000), smallest, products.widened(bits + step))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which nothing has been measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(measured, "_kept", {})
    return tmp_path / "cdp-studio" / "products.json"


def times(**seconds: float) -> dict[str, dict[str, float]]:
    return {str(n): dict(seconds) for n in measured.ROWS}


def test_it_is_measured_once_and_only_for_a_search_that_is_worth_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(measured, "eligible", lambda first_pass: ["numpy", "torch"])
    monkeypatch.setattr(measured, "measured", lambda: calls.append(1) or times(numpy=2.0, torch=1.0))
    assert measured.fastest(5, 1000, "auto", "cpu") == "numpy"
    assert not calls
    assert not cache.exists()
    assert [measured.fastest(n, 10**12, "auto", "cpu") for n in (1, 20, 1000)] == ["torch"] * 3
    measured._kept.clear()  # as another process
    assert measured.fastest(5, 1000, "auto", "cpu") == "torch"
    assert len(calls) == 1
    [(key, kept)] = json.loads(cache.read_text()).items()
    assert np.__version__ in key
    assert set(kept) == {"measured", "seconds"}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"KEY": 3}', '{"KEY": {"seconds": {"1": {"numpy": 1.0}}}}'])
def test_a_damaged_record_is_measured_anew(cache: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    key = measured.machine(threads.processors())
    monkeypatch.setattr(measured, "measured", lambda: times(numpy=2.0, torch=1.0, bfloat16=3.0))
    cache.parent.mkdir()
    cache.write_text(content.replace("KEY", key))
    assert measured.fastest(300, 10**12, "float32", "cpu") == "torch"
    assert json.loads(cache.read_text())[key]["seconds"] == times(numpy=2.0, torch=1.0, bfloat16=3.0)


def test_a_cache_that_cannot_be_written_costs_a_measurement_per_process(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.write_text("a file where a folder should be")
    monkeypatch.setattr(measured, "measured", lambda: times(numpy=2.0, torch=1.0, bfloat16=3.0))
    assert measured.fastest(300, 10**12, "float32", "cpu") == "torch"


def test_bfloat16_is_not_taken_where_its_error_is_unknown(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "measured", lambda: times(numpy=2.0, torch=1.5, bfloat16=1.0))
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert measured.fastest(300, 10**12, "auto", "cpu") == "torch"
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    assert measured.fastest(300, 10**12, "auto", "cpu") == "bfloat16"
    assert measured.fastest(300, 10**12, "float32", "cpu") == "torch"


def test_every_kind_of_product_is_timed_for_every_number_of_queries() -> None:
    seconds = measured.measured()
    assert set(seconds) == {str(n) for n in measured.ROWS}
    for row in seconds.values():
        assert set(row) == set(measured.eligible("auto"))
        assert min(row.values()) > 0
