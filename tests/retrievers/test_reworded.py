"""Rewordings of a query share their second key, in languages with and without spaces; other queries do not."""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from cdp.retrievers import leakage
from tests.support import REPOSITORY

DATA = REPOSITORY.parent / "shared" / "data"

SAME = [
    ("1984年谁在北京写了这本书", "这本书是1984年谁在北京写的"),
    ("二二八事件於何年爆發", "二二八事件 於何年爆發"),
    ("ゾング号事件で奴隷合計何人が死亡したか", "ゾング号事件で合計何人の奴隷が死亡したか"),
    ("세종대왕은 한글을 언제 만들었나요", "한글을 세종대왕은 언제 만들었나요?"),
    ("ประเทศไทยมีประชากรกี่ล้านคนในปี 2020", "ในปี 2020 ประเทศไทยมีประชากรกี่ล้านคน"),
    ("Who built the old bridge over the river Main?", "the old bridge over the Main river: who built it"),
]

OTHER = [
    ("深水埗关帝庙在哪里", "深水埗天后庙在哪里"),
    ("谁在1984年写了这本书", "谁在1985年写了这本书"),
    ("大政奉還が行われたのはいつでしたか", "大政奉還が行われたのはどこでしたか"),
    ("青ヶ島から救助できた人は何人でしたか", "青ヶ島から救助できなかった人は何人でしたか"),
    ("세종대왕은 한글을 언제 만들었나요", "세종대왕은 한글을 어디서 만들었나요"),
    ("何年", "何年か"),  # too little to tell by
    ("वह दिन कब आया था", "वह दान कब आया था"),  # day, gift: the vowel is a mark
    ("ใครเป็นคนเขียนข่าวเรื่องนี้", "ใครเป็นคนเขียนข้าวเรื่องนี้"),  # news, rice: the tone is a mark
    ("谁写的", "谁写了"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_a_rewording_is_told(first: str, second: str) -> None:
    (exact, near), (other, same) = leakage.keys([first, second])
    assert near == same
    assert near not in (exact, other), "and by what it is made of, not by its words in their order"


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_another_query_is_another(first: str, second: str) -> None:
    assert not set(leakage.keys([first])[0].tolist()) & set(leakage.keys([second])[0].tolist())


def test_joiners_hide_no_word_of_a_script_with_vowel_signs() -> None:
    assert leakage.words_of("क्\u200dष क्षण") == leakage.words_of("क्ष क्षण") == "क्ष क्षण"


@pytest.mark.slow
def test_what_is_known_is_found_without_sorting_it_again() -> None:
    """A page that asks this of 250,000 queries took five seconds for it."""
    rng = np.random.default_rng(0)
    known = np.unique(rng.integers(0, 2**63, 500_000, dtype=np.uint64))
    judged = np.stack([rng.integers(0, 2**63, 300, dtype=np.uint64), rng.choice(known, 300)], axis=1)
    judged[:100, 0] = rng.choice(known, 100)
    began = time.process_time()
    for _ in range(20):
        assert leakage.n_known(judged, known) == (300, 200)
    taken = time.process_time() - began
    began = time.process_time()
    np.sort(rng.permutation(known))
    assert taken < time.process_time() - began, "twenty times less than sorting what is known once"
    assert leakage.n_known(judged, np.empty(0, dtype=np.uint64)) == (0, 0)


def asked(name: str) -> Iterator[str]:
    with gzip.open(DATA / "multiquery" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            yield from json.loads(line)["queries"]


def judged(name: str) -> Iterator[str]:
    path = next((DATA / name).glob("queries.jsonl*"))
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize("name", ["strategyqa_ko", "xquad_ar", "xquad_zh", "chroma_llm_en"])
def test_sets_that_share_their_items_are_told_to(name: str) -> None:
    questions = leakage.distinct(leakage.keys(judged(name)))
    shared, near = leakage.n_known(questions, np.unique(leakage.keys(asked(name))))
    assert shared == len(questions)
    assert near == 0


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")
def test_rewordings_are_told_in_real_data_and_other_questions_are_not() -> None:
    """JaQuAD has paragraphs with hundreds of paraphrases; the questions of the other sets differ."""
    groups: dict[int, set[str]] = defaultdict(set)
    texts = list(asked("jaquad_ja"))[12_000:]  # where those paragraphs are
    for text, key in zip(texts, leakage.keys(texts)[:, 1].tolist(), strict=True):
        groups[key].add(leakage.words_of(text))
    assert 200 < sum(len(group) > 1 for group in groups.values()) < 300
    for name in ("xquad_zh", "strategyqa_ko"):
        keys = leakage.keys(asked(name))
        assert len(np.unique(keys[:, 0])) - len(np.unique(keys[:, 1])) <= 2, "questions that differ stay apart"
