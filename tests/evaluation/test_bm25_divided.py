"""BM25 by a crew: the scores and the order of one machine, bit for bit, whatever dies on the way."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import SHIPPED_DATA
from cdp.benchmarks import load_benchmark
from cdp.evaluation import bm25, bm25_divided, postings
from cdp.evaluation.bm25_divided import Team
from cdp.evaluation.postings import Statistics
from tests.crews import Backwards, Death, Mortal, Several
from tests.support import shared

ALPHABET = "aeiou bcd 東京都 ééß ١٢ \u200d\U0001f600 Σς ﬁ \ud800"


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25_divided, "ALONE", 0)
    monkeypatch.setattr(bm25_divided, "FEWEST", 1)


def by_library(documents: Sequence[str], queries: Sequence[str], top_k: int, **options: Any) -> Any:
    """What an index has that bm25s makes by itself."""
    from bm25s import BM25

    index = BM25(k1=bm25.K1, b=bm25.B, method="lucene")
    index.index([list(terms) for terms in bm25.terms_of(documents)], show_progress=False)
    return bm25.rank(index, queries, top_k, **options)


def same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def random_texts(seed: int, n: int) -> list[str]:
    """With empty ones and copies."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(ALPHABET, k=rng.randint(1, 5))) for _ in range(60)]
    texts = [" ".join(rng.choices(words, k=rng.choice([0, 1, 3, 30]))) for _ in range(n)]
    return texts + rng.sample(texts, n // 3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("crew", [Several(1), Several(2), Several(3), Backwards(2)])
def test_any_texts_in_parts_are_ranked_as_by_the_library(tmp_path: Path, seed: int, crew: Any) -> None:
    documents, queries = random_texts(seed, 60), [*random_texts(seed + 100, 12), "", "nowhere"]
    rng = random.Random(seed)
    exclude = [rng.sample(range(len(documents)), rng.choice([0, 0, 5])) for _ in queries]
    for top_k in (1, 7, 200):
        expected = by_library(documents, queries, top_k, exclude=exclude)
        same(bm25.rank(bm25.index(documents), queries, top_k, exclude=exclude), expected)
        team = Team(crew, tmp_path / "bm25")
        same(team.indexed(documents, "en")(queries, top_k, exclude=exclude), expected)
    assert len(list(team.folder.glob("*.npz"))) >= crew.size


def test_the_demo_in_parts_has_the_scores_of_one_machine(tmp_path: Path) -> None:
    benchmark = load_benchmark(SHIPPED_DATA / "demo")
    same_evaluation(benchmark, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.shared
def test_scifact_in_parts_has_the_scores_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever indexes takes the same terms of each text: found once, for that is half the work."""
    plain, known = bm25.english_terms, dict[str, list[str]]()

    def kept(texts: Iterable[str]) -> Iterator[list[str]]:
        texts = list(texts)
        new = [text for text in texts if text not in known]
        known.update(zip(new, plain(new), strict=True))
        return (known[text] for text in texts)

    monkeypatch.setattr(bm25, "english_terms", kept)
    same_evaluation(load_benchmark(shared("data/scifact"), "test"), tmp_path, workers=3)


def same_evaluation(benchmark: Any, folder: Path, workers: int) -> None:
    team = Team(Several(workers), folder)
    expected, found = bm25.evaluate_bm25(benchmark), bm25.evaluate_bm25(benchmark, indexed=team.indexed)
    same(
        by_library(benchmark.documents, benchmark.queries, 100, exclude=benchmark.excluded_numbers()),
        team.indexed(benchmark.documents, "en")(benchmark.queries, 100, exclude=benchmark.excluded_numbers()),
    )
    assert found.measures == expected.measures
    for name, values in expected.per_query.items():
        assert found.per_query[name].tobytes() == values.tobytes()
    team.forget()
    assert not folder.exists()


def test_parts_without_any_word_are_parts_all_the_same(tmp_path: Path) -> None:
    documents = ["", "the", "of and", "a cat", "", "cats and a dog", "...", ""]
    team = Team(Several(2), tmp_path / "bm25")
    same(team.indexed(documents, "en")(["cats", "the"], 3), by_library(documents, ["cats", "the"], 3))
    with pytest.raises(InputError, match="No document has a word"):
        team.indexed(["", "the", "..."], "en")


def test_who_dies_is_replaced_and_what_is_there_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, queries = random_texts(7, 80), random_texts(8, 9)
    crew = Mortal(2)
    team = Team(crew, tmp_path / "bm25")
    calls, save = [0], postings.save

    def saved(found: postings.Postings, path: Path) -> None:
        calls[0] += 1
        if calls[0] in (2, 5):
            raise Death
        save(found, path)

    monkeypatch.setattr(postings, "save", saved)
    expected = by_library(documents, queries, 10)
    same(team.indexed(documents, "en")(queries, 10), expected)
    n_parts = len(list(team.folder.glob("*.npz")))
    assert (crew.n_deaths, calls[0]) == (2, n_parts + 2)
    sorted(team.folder.glob("*.npz"))[1].unlink()
    same(team.indexed(documents, "en")(queries, 10), expected)
    assert calls[0] == n_parts + 3, "the one that was missing"
    team.indexed([*documents[:-1], "another"], "en")
    assert calls[0] == n_parts + 4, "a file of other texts is not taken"


def test_a_stop_leaves_what_is_done(tmp_path: Path) -> None:
    class EndedError(Exception):
        pass

    documents = random_texts(3, 80)
    told: list[tuple[str, int, int]] = []

    def watch(*words: Any) -> None:
        told.append(words)
        if len(told) > 4:
            raise EndedError

    team = Team(Several(1), tmp_path / "bm25")
    with pytest.raises(EndedError):
        team.indexed(documents, "en", watch)
    assert 1 <= len(list(team.folder.glob("*.npz"))) < 4
    assert told[0] == ("indexing", 0, len(documents))
    again: list[tuple[str, int, int]] = []
    team.indexed(documents, "en", lambda *words: again.append(words))
    assert again[0][1] >= told[-1][1] > 0


def test_a_small_collection_is_not_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25_divided, "ALONE", 1_000_000)
    crew = Several(2)
    Team(crew, tmp_path / "bm25").indexed(["a cat", "a dog"], "en")(["cat"], 1)
    assert (crew.n_parts, list(tmp_path.iterdir())) == (0, [])


def test_weights_are_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    found = postings.count(bm25.terms_of(random_texts(5, 60)))
    whole = Statistics(found.n_documents, int(found.lengths.sum()))
    made = []
    for size in (1, 10, 10**6):
        monkeypatch.setattr(postings, "AT_ONCE", size)
        made.append(postings.weighed(found, found.document_frequencies, whole, k1=bm25.K1, b=bm25.B).scores)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(made[0][name], made[2][name])
        assert np.array_equal(made[1][name], made[2][name])
