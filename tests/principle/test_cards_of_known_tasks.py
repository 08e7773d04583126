"""The card of a benchmark agrees with the published direction, or says that there is no evidence for it."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from cdp.complexity import count_content_words
from cdp.principle import kinds_of_datasets, recommend
from tests.support import shared

ENGLISH = {
    "scifact": "scifact",
    "musique_sample": "musique",
    "queries_only/beir_scidocs": "scidocs",
    "queries_only/bright_biology": "biology",
    "queries_only/bright_theoremqa_theorems": "theoremqa_theorems",
}
OTHERS = {f"queries_only/miracl_{code}": code for code in ("ar", "fr", "ru")}


def counted(folder: str, language: str = "en") -> np.ndarray:
    with gzip.open(shared(f"data/{folder}/queries.jsonl.gz"), "rt", encoding="utf-8") as file:
        return count_content_words([json.loads(line)["text"] for line in file], language)


@pytest.mark.shared
@pytest.mark.parametrize("folder", ENGLISH)
def test_english(folder: str) -> None:
    dataset = ENGLISH[folder]
    kind = kinds_of_datasets()[dataset]
    cw = counted(folder)
    unseen = recommend(cw, task=kind)
    if kind == "multi-hop":
        assert unseen.scope.text == ""
    else:
        assert unseen.advice.startswith("The published rule has no evidence for such a task")


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("folder", OTHERS)
def test_other_languages(folder: str) -> None:
    code = OTHERS[folder]
    found = recommend(counted(folder, code), language=code)
    assert found.advice.startswith("The published rule has no evidence for such a task: the line was fitted on English")
    assert (found.prior, found.evidence()) == ((), None)
