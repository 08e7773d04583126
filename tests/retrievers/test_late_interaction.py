"""Exact MaxSim returns what float64 brute force returns, and what sentence-transformers scores, from memory or disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdp.base.errors import ConfigError, InputError
from cdp.retrievers import exact_search, late_interaction
from cdp.retrievers.late_interaction import TokenVectors, matches, rerank_tokens, search_tokens


def texts(seed: int, n: int, dim: int, most: int, *, fewest: int = 0, rounded: bool = False) -> list[np.ndarray]:
    """Token vectors of n texts; whole numbers where scores are to be equal."""
    random = np.random.default_rng(seed)
    made = [random.standard_normal((int(random.integers(fewest, most + 1)), dim)).astype(np.float32) for _ in range(n)]

    return [np.round(text) for text in made] if rounded else made


def together(documents: list[np.ndarray], dtype: type = np.float16) -> TokenVectors:
    return TokenVectors(np.concatenate(documents).astype(dtype), [len(text) for text in documents])


def brute_force(query: np.ndarray, documents: list[np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores in float64 rounded to float32, the higher first, the lower index first among equals."""
    scores = np.full(len(documents), -np.inf, np.float32)
    for place, document in enumerate(documents):
        if len(document) and len(query):
            scores[place] = (query.astype(np.float64) @ document.astype(np.float64).T).max(axis=1).sum()

    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])][:k]
    return scores[order], order


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 300),
    dim=st.integers(1, 33),
    k=st.integers(1, 12),
    rounded=st.booleans(),
    threads=st.integers(1, 2),
    few_tokens=st.sampled_from([0, 256]),
)
@settings(max_examples=40, deadline=None)
def test_the_best_are_those_of_float64(
    seed: int, n: int, dim: int, k: int, rounded: bool, threads: int, few_tokens: int
) -> None:
    documents = [text.astype(np.float16) for text in texts(seed, n, dim, 24, rounded=rounded)]
    queries = texts(seed + 1, 9, dim, 30, rounded=rounded)
    vectors = together(documents)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late_interaction, "SINGLE_THREADED", 0)
        patch.setattr(late_interaction, "FEW_TOKENS", few_tokens)
        patch.setattr(late_interaction, "DOCUMENT_TOKENS", 40)
        patch.setattr(late_interaction, "DOCUMENTS_AT_ONCE", 16)
        patch.setattr(late_interaction, "QUERIES_AT_ONCE", 4)
        patch.setattr(exact_search, "SPARE", 8)
        patch.setattr(late_interaction, "blas_threads", lambda: threads)
        scores, indices = search_tokens(queries, vectors, k)

    for number, query in enumerate(queries):
        expected, order = brute_force(query, documents, k)
        np.testing.assert_array_equal(indices[number], np.pad(order, (0, k - len(order)), constant_values=-1))
        np.testing.assert_array_equal(scores[number, : len(order)], expected)


@given(seed=st.integers(0, 10_000), rounded=st.booleans(), dtype=st.sampled_from([np.float16, np.float32]))
@settings(max_examples=30, deadline=None)
def test_candidates_stand_in_the_order_of_all(seed: int, rounded: bool, dtype: type) -> None:
    documents = [text.astype(dtype) for text in texts(seed, 120, 16, 60, rounded=rounded)]
    query = texts(seed + 1, 1, 16, 30, fewest=1, rounded=rounded)[0]
    candidates = np.random.default_rng(seed).permutation(120)[:50].tolist()

    vectors = together(documents, dtype)
    scores, found = rerank_tokens(query, vectors, candidates, 10)

    _, order = brute_force(query, documents, 120)
    assert found.tolist() == [i for i in order.tolist() if i in candidates][:10]
    np.testing.assert_allclose(
        scores, [brute_force(query, [documents[i]], 1)[0][0] for i in found], rtol=1e-5, atol=1e-4
    )
    norms = [np.linalg.norm(documents[i].astype(np.float32), axis=1).max() for i in found]
    np.testing.assert_allclose(vectors.longest[found], norms, rtol=1e-5, err_msg="the bound of the error follows")


def test_scores_are_those_of_sentence_transformers() -> None:
    import torch
    from sentence_transformers.util.similarity import maxsim

    documents = texts(3, 40, 32, 20, fewest=1)
    queries = texts(4, 5, 32, 12, fewest=1)
    theirs = maxsim([torch.from_numpy(q) for q in queries], [torch.from_numpy(d) for d in documents]).numpy()

    scores, indices = search_tokens(queries, together(documents, np.float32), 40)

    np.testing.assert_allclose(scores, np.take_along_axis(theirs, indices, axis=1), rtol=1e-5, atol=1e-5)


def test_memory_maps_in_several_files_are_one_collection(tmp_path: Path) -> None:
    documents = texts(5, 60, 24, 20)
    values = np.concatenate(documents).astype(np.float16)
    np.save(tmp_path / "a.npy", values[:301])
    np.save(tmp_path / "b.npy", values[301:])
    parts = [np.load(tmp_path / name, mmap_mode="r") for name in ("a.npy", "b.npy")]
    queries = texts(6, 4, 24, 12, fewest=1)

    apart = search_tokens(queries, TokenVectors(parts, [len(text) for text in documents]), 7)
    whole = search_tokens(queries, together(documents), 7)
    held = search_tokens(queries, TokenVectors(parts, [len(text) for text in documents]).held(), 7)
    mixed = search_tokens(
        queries, TokenVectors([values[:9], values[9:].astype(np.float32)], list(map(len, documents))), 7
    )

    for found in (apart, held, mixed):
        np.testing.assert_array_equal(found[1], whole[1])
        np.testing.assert_array_equal(found[0], whole[0])


def test_what_matched_adds_up_to_the_score() -> None:
    query, document = texts(7, 2, 24, 12, fewest=6)

    positions, similarities = matches(query, document)

    score = search_tokens([query], together([document], np.float32), 1)[0][0, 0]
    assert similarities.sum() == pytest.approx(float(score), rel=1e-5)
    assert positions.tolist() == (query @ document.T).argmax(axis=1).tolist()


def test_what_cannot_be_scored_is_refused() -> None:
    documents = together(texts(8, 5, 8, 6, fewest=1))
    query = np.ones((2, 8), np.float32)

    with pytest.raises(ConfigError, match="k must be at least 1"):
        search_tokens([query], documents, 0)
    with pytest.raises(InputError, match="does not fit 8 dimensions"):
        search_tokens([np.ones((2, 9), np.float32)], documents, 1)
    with pytest.raises(InputError, match="Query 0 holds a token vector that is not finite"):
        search_tokens([query * np.nan], documents, 1)
    with pytest.raises(InputError, match="add up to 4"):
        TokenVectors(np.ones((3, 8), np.float32), [2, 2])
    with pytest.raises(InputError, match="A candidate is not among the 5 documents"):
        rerank_tokens(query, documents, [5], 1)

    broken = np.ones((3, 8), np.float32)
    broken[2, 0] = np.inf
    for tokens in (2, late_interaction.FEW_TOKENS):
        with pytest.raises(InputError, match="Document 1 holds a token vector that is not finite"):
            search_tokens([np.ones((tokens, 8), np.float32)], TokenVectors(broken, [2, 1]), 1)


def test_nothing_to_search_finds_nothing() -> None:
    empty = TokenVectors(np.empty((0, 8), np.float32), [0, 0])

    scores, indices = search_tokens([np.ones((2, 8), np.float32)], empty, 2)

    assert indices.tolist() == [[-1, -1]]
    assert np.isneginf(scores).all()
    assert rerank_tokens(np.ones((2, 8), np.float32), empty, [0, 1], 2)[1].tolist() == []


def test_progress_tells_of_every_document_and_may_end_the_search() -> None:
    documents = together(texts(9, 600, 8, 4, fewest=1))
    seen: list[tuple[int, int]] = []

    search_tokens([np.ones((2, 8), np.float32)], documents, 1, progress=lambda done, total: seen.append((done, total)))

    assert seen[-1] == (600, 600)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_tokens([np.ones((2, 8), np.float32)], documents, 1, progress=stop)
