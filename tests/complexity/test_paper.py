"""The paper's own figures: CW of 15 English query sets, and the CW ranges of MIRACL in six other languages."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from cdp.base.errors import ConfigError
from cdp.complexity import QUESTION_WORDS_KEPT as KEPT
from cdp.complexity import STANDARD, count_content_words
from tests.support import shared

pytestmark = pytest.mark.slow

BRIGHT = [
    "aops",
    "biology",
    "earth_science",
    "economics",
    "leetcode",
    "pony",
    "psychology",
    "robotics",
    "stackoverflow",
    "sustainable_living",
    "theoremqa_questions",
    "theoremqa_theorems",
]
ENGLISH = {
    **{task: f"queries_only/bright_{task}" for task in BRIGHT},
    "scifact": "scifact",
    "hotpotqa": "queries_only/beir_hotpotqa",
    "scidocs": "queries_only/beir_scidocs",
}


def queries(folder: Path, split: str = "") -> list[str]:
    """The texts of a BEIR folder's queries, only those judged in ``split`` if one is given."""
    judged = None
    if split:
        with open(folder / "qrels" / f"{split}.tsv", encoding="utf-8") as file:
            judged = {line.split("\t")[0] for line in file}
    with gzip.open(folder / "queries.jsonl.gz", "rt", encoding="utf-8") as file:
        return [query["text"] for query in map(json.loads, file) if judged is None or query["_id"] in judged]


def test_english_means_are_the_papers() -> None:
    with open(shared("paper/datasets.csv"), encoding="utf-8") as file:
        printed = {row["dataset"]: float(row["cw"]) for row in csv.DictReader(file)}
    errors = {}
    for dataset, folder in ENGLISH.items():
        texts = queries(shared(f"data/{folder}"), "test" if dataset == "scifact" else "")
        errors[dataset] = count_content_words(texts).mean() / printed[dataset] - 1
    assert len(errors) == 15
    assert max(map(abs, errors.values())) < 0.015, errors
    assert np.mean(np.abs(list(errors.values()))) < 0.008, errors


@pytest.mark.parametrize(
    ("language", "n", "printed"),
    [("ru", 4683, (1, 19)), ("ar", 3495, (1, 12)), ("fr", 1143, (1, 7)), ("zh", 1312, (1, 9))],
)
def test_ranges_on_miracl_are_the_papers(language: str, n: int, printed: tuple[int, int]) -> None:
    cw = count_content_words(queries(shared(f"data/queries_only/miracl_{language}"), "train"), language)
    assert len(cw) == n
    assert (cw.min(), cw.max()) == printed


def test_japanese_range_on_miracl_is_the_papers_but_for_three_queries_without_content_words() -> None:
    cw = count_content_words(queries(shared("data/queries_only/miracl_ja"), "train"), "ja")
    assert (cw == 0).sum() <= 5
    assert (cw[cw > 0].min(), cw.max()) == (1, 11)


def test_korean_range_on_miracl_is_the_papers_but_for_one_word_and_one_query_without_content_words() -> None:
    cw = count_content_words(queries(shared("data/queries_only/miracl_ko"), "train"), "ko")
    assert (cw == 0).sum() == 1
    assert cw[cw > 0].min() == 1
    assert abs(cw.max() - 25) <= 1


@pytest.mark.parametrize(
    ("language", "n", "standard", "kept", "changed"), [("fr", 343, 3.01, 3.95, 0.94), ("zh", 393, 2.90, 3.56, 0.66)]
)
def test_the_effect_of_question_words_on_miracl(
    language: str, n: int, standard: float, kept: float, changed: float
) -> None:
    texts = queries(shared(f"data/queries_only/miracl_{language}"), "dev")
    by_list, with_words = (count_content_words(texts, language, stopwords=name) for name in (STANDARD, KEPT))
    assert len(by_list) == n
    assert by_list.mean() == pytest.approx(standard, abs=0.005)
    assert with_words.mean() == pytest.approx(kept, abs=0.005)
    assert (with_words > by_list).mean() == pytest.approx(changed, abs=0.005)
    assert min((by_list < 7).mean(), (with_words < 7).mean()) > 0.99


def test_question_words_are_set_apart_in_two_languages_alone() -> None:
    with pytest.raises(ConfigError, match="not set apart"):
        count_content_words(["was ist das"], "de", stopwords=KEPT)


@pytest.mark.parametrize(
    ("name", "language", "low", "high"),
    [
        ("xquad_ru", "ru", 4, 7),
        ("xquad_ar", "ar", 4, 8),
        ("piaf_fr", "fr", 2, 5),
        ("xquad_zh", "zh", 3, 6),
        ("jaquad_ja", "ja", 4, 8),
        ("strategyqa_ko", "ko", 4, 8),
    ],
)
def test_real_questions_of_six_languages_have_plausible_cw(name: str, language: str, low: float, high: float) -> None:
    with gzip.open(shared(f"data/multiquery/{name}.jsonl.gz"), "rt", encoding="utf-8") as file:
        texts = [query for line in file for query in json.loads(line)["queries"]][:200]
    cw = count_content_words(texts, language)
    assert cw.shape == (200,)
    assert low < cw.mean() < high
    assert (cw > 0).mean() > 0.99
