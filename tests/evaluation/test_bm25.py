"""BM25 as a row to compare with: its formula, its edges, and its published value on SciFact."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.benchmarks import load_benchmark
from cdp.complexity import content_words
from cdp.evaluation.evaluate import evaluate_bm25
from cdp.retrievers import bm25
from tests.benchmarks.folders import write_benchmark
from tests.support import REPOSITORY, shared

pytestmark = pytest.mark.slow

TEXTS = ["The cat sat on the mat", "Cats and dogs: a cat, two cats", "Nothing at all", "dogs bark at night, dogs howl"]


def by_hand(query: str, documents: list[str]) -> list[float]:
    """Lucene's BM25, from its formula, with k1 0.9 and b 0.4."""
    terms = [Counter(found) for found in bm25.english_terms(documents)]
    mean = sum(sum(found.values()) for found in terms) / len(terms)
    scores = [0.0] * len(documents)
    for term in next(iter(bm25.english_terms([query]))):
        df = sum(term in found for found in terms)
        idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
        for i, found in enumerate(terms):
            length = sum(found.values())
            tf = found[term]
            scores[i] += idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * length / mean)) if tf else 0.0
    return scores


@pytest.mark.parametrize("query", ["a cat", "dogs at night", "cats cats dogs"])
def test_scores_are_those_of_the_formula(query: str) -> None:
    scores, found = bm25.rank(bm25.index(TEXTS), [query], 4)
    expected = by_hand(query, TEXTS)
    for score, number in zip(scores[0], found[0], strict=True):
        if number >= 0:
            assert score == pytest.approx(expected[number], rel=1e-5)
    assert sorted(found[0][found[0] >= 0]) == [i for i, score in enumerate(expected) if score > 0]


def test_words_are_stemmed_and_stopwords_left_out() -> None:
    assert list(bm25.english_terms(["The Connections of a CONNECTED network"])) == [["connect", "connect", "network"]]


def test_nothing_in_common_retrieves_nothing() -> None:
    scores, found = bm25.rank(bm25.index(TEXTS), ["the of", "zebra", "night"], 2)
    assert found.tolist() == [[-1, -1], [-1, -1], [3, -1]]
    assert np.isneginf(scores[0]).all()


def test_excluded_documents_and_ties() -> None:
    made = bm25.index(["same words here"] * 5 + ["other"])
    _, found = bm25.rank(made, ["same words"], 3, exclude=[[1]])
    assert found.tolist() == [[0, 2, 3]]


def test_other_languages_use_their_own_words() -> None:
    made = bm25.index(["東京は日本の首都です", "京都には古い寺がある"], "ja")
    _, found = bm25.rank(made, ["日本の首都"], 1, language="ja")
    assert found.tolist() == [[0]]


def test_a_language_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    benchmark = load_benchmark(write_benchmark(tmp_path / "small"))
    with pytest.raises(ConfigError, match="no stopword list for the language 'english'"):
        evaluate_bm25(benchmark, language="english", top_k=10)


def test_it_says_how_far_it_is_and_can_be_ended(tmp_path: Path) -> None:
    class EndedError(Exception):
        pass

    benchmark = load_benchmark(write_benchmark(tmp_path / "small"))
    seen: list[tuple[str, int, int]] = []
    evaluate_bm25(benchmark, top_k=10, watch=lambda *words: seen.append(words))
    assert seen == [("indexing", 0, 4), ("searching", 0, 3)]

    def end(phase: str, *_: int) -> None:
        if phase == "searching":
            raise EndedError

    with pytest.raises(EndedError):
        evaluate_bm25(benchmark, top_k=10, watch=end)


def test_documents_without_any_word_are_refused() -> None:
    with pytest.raises(InputError, match="No document has a word"):
        bm25.index(["the ...", ""])


@pytest.mark.parametrize(
    ("name", "language"),
    [("bm25", ""), ("BM25:ja", "ja"), ("bm25:", ""), ("bm25s-model", None), ("minilm", None)],
)
def test_the_name_of_the_retriever(name: str, language: str | None) -> None:
    assert bm25.language_in(name) == language


def test_an_evaluation_has_the_form_of_a_models(tmp_path: Path) -> None:
    found = evaluate_bm25(load_benchmark(write_benchmark(tmp_path / "small")), top_k=10)
    assert found.measures["ndcg@10"] > 0.6
    assert found.ranking.documents.shape == (3, 10)
    assert found.settings["similarity"] == "bm25"


KEPT: dict[str, Any] = {
    "documents that are not there": ("indices.csc.index.npy", lambda values: values + 100),
    "documents before the first": ("indices.csc.index.npy", lambda values: values - 100),
    "columns that overlap": ("indptr.csc.index.npy", lambda values: values[::-1].copy()),
    "columns beyond the end": ("indptr.csc.index.npy", lambda values: values + 1),
    "a table of scores": ("data.csc.index.npy", lambda values: values[:, None]),
    "one score too few": ("data.csc.index.npy", lambda values: values[:-1]),
}


@pytest.mark.parametrize("fault", KEPT)
def test_a_kept_index_whose_arrays_do_not_fit_together_is_not_used(tmp_path: Path, fault: str) -> None:
    """It may come from somebody else's workspace."""
    bm25.save_index(bm25.index(["bees make honey", "wax of bees"]), tmp_path / "index")
    assert bm25.load_index(tmp_path / "index", 2) is not None
    assert bm25.load_index(tmp_path / "index", 3) is None
    file, change = KEPT[fault]
    values = np.load(tmp_path / "index" / file)
    np.save(tmp_path / "index" / file, change(values))
    assert bm25.load_index(tmp_path / "index", 2) is None


CLAIMED = "{{'descr': '<f4', 'fortran_order': False, 'shape': ({size},), }}"


@pytest.mark.parametrize("file", ["data", "indices", "indptr"])
@pytest.mark.parametrize("header", [CLAIMED.format(size=10**14), CLAIMED.format(size=10**30), "(((", None])
def test_a_kept_array_that_numpy_cannot_read_is_not_used(tmp_path: Path, file: str, header: str | None) -> None:
    """The first claims to be larger than memory; numpy raises an error of another class for each."""
    bm25.save_index(bm25.index(["bees make honey", "wax of bees"]), tmp_path / "index")
    text = b"" if header is None else header.encode().ljust(117) + b"\n"
    whole = b"PK\x03\x04" if header is None else b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    (tmp_path / "index" / f"{file}.csc.index.npy").write_bytes(whole)
    assert bm25.load_index(tmp_path / "index", 2) is None


@pytest.mark.parametrize(
    ("file", "kind"),
    [("data", "<U3"), ("data", "M8[s]"), ("data", "<c8"), ("indices", "<f8"), ("indices", "?"), ("indptr", "<f8")],
)
def test_a_kept_array_of_another_type_is_not_used(tmp_path: Path, file: str, kind: str) -> None:
    bm25.save_index(bm25.index(["bees make honey", "wax of bees"]), tmp_path / "index")
    path = tmp_path / "index" / f"{file}.csc.index.npy"
    np.save(path, np.load(path).astype(kind))
    assert bm25.load_index(tmp_path / "index", 2) is None


@pytest.mark.parametrize("kept", ["[]", "{}", '{"bees": -1}', '{"bees": 99}', '{"bees": "0"}'])
def test_a_kept_vocabulary_leads_to_columns_of_the_index(tmp_path: Path, kept: str) -> None:
    bm25.save_index(bm25.index(["bees make honey", "wax of bees"]), tmp_path / "index")
    (tmp_path / "index" / "vocab.index.json").write_text(kept)
    assert bm25.load_index(tmp_path / "index", 2) is None


def test_a_kept_index_scores_by_our_settings(tmp_path: Path) -> None:
    made = bm25.index(["bees make honey", "wax of bees"])
    bm25.save_index(made, tmp_path / "index")
    path = tmp_path / "index" / "params.index.json"
    theirs = {"backend": "jax", "method": "bm25l", "k1": 50, "dtype": "x"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **theirs}))
    kept = bm25.load_index(tmp_path / "index", 2)
    assert kept is not None
    assert (kept.get_scores(["bee"]) == made.get_scores(["bee"])).all()


@pytest.mark.soak
def test_scifact_gives_the_value_of_every_table() -> None:
    found = evaluate_bm25(load_benchmark(shared("data/scifact"), "test"))
    assert found.measures["ndcg@10"] == pytest.approx(0.6804, abs=0.002)
    assert found.measures["recall@100"] == pytest.approx(0.922, abs=0.005)


@pytest.mark.parametrize(
    ("language", "texts", "query"),
    [
        ("yo", ["Ọ̀rọ̀ yìí dára púpọ̀", "Ilé ìwé wà níbí", "Ọjọ́ ìsinmi ni òní"], "oro yii dara"),
        ("yo", ["Oro yii dara pupo", "Ile iwe wa nibi", "Ojo isinmi ni oni"], "ọ̀rọ̀ yìí dára"),
        ("th", ["แมวกินปลาในบ้าน", "หมาวิ่งบนถนน", "นกบินบนท้องฟ้า"], "ปลาของแมว"),
    ],
)
def test_words_are_found_without_tone_marks_and_without_spaces(language: str, texts: list[str], query: str) -> None:
    made = bm25.index(texts, language)
    (terms,) = bm25.terms_of([query], language)
    scores = made.get_scores([term for term in terms if term in made.vocab_dict])
    assert scores.argmax() == 0
    assert scores[0] > 0


@pytest.mark.parametrize(
    ("language", "query", "document"),
    [("ja", "NASA", "ＮＡＳＡの計画"), ("ja", "アプリ", "ｱﾌﾟﾘを開く"), ("de", "Offizier", "Der Oﬃzier kam")],
)
def test_wide_and_narrow_letters_and_ligatures_are_the_usual_ones(language: str, query: str, document: str) -> None:
    made = bm25.index(["something else 別", document], language)
    scores, found = bm25.rank(made, [query], 2, language=language)
    assert found[0].tolist() == [1, -1]
    assert content_words(query, language) <= content_words(document, language)
    assert scores[0, 0] > 0


def test_an_account_without_a_home_searches_too() -> None:
    code = "import pwd; pwd.getpwuid = {}.__getitem__\n"
    code += "from cdp.retrievers.bm25 import english_terms; print(*english_terms(['High tides']))"
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "NLTK_DATA")}
    arguments = [sys.executable, "-c", code]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.stdout == "['high', 'tide']\n", done.stderr
