"""A log of people's queries becomes target queries that stand for it."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.complexity import count_content_words
from cdp.complexity.query_log import distinct, personal_data, sample


def test_queries_that_differ_in_case_spacing_and_final_marks_are_one() -> None:
    log = distinct(["Where is  Oslo?", "where is oslo", "", "WHERE IS OSLO ?!", "x" * 3000, "Oslo", "?"])
    assert log.queries == ("Where is Oslo?", "Oslo")
    assert (log.lines, log.repeated, log.unusable) == (7, 2, 3)
    assert log.sentence == "7 lines: 2 different queries, 2 repeated, 3 empty or too long."


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("mail to ada.l+x@example.co.uk please", "e-mail"),
        ("who has +49 30 901820", "phone or card number"),
        ("call (212) 555-0187", "phone or card number"),
        ("0301234567 whose number", "phone or card number"),
        ("card 4111 1111 1111 1111 declined", "phone or card number"),
        ("card 4111111111111111", "phone or card number"),
        ("population of oslo 2024", ""),
        ("iso 9001 and 27001", ""),
        ("error 0x80070005", ""),
        ("1914-1918 war", ""),
        ("pi 3.14159265358979", ""),
        ("version 2.0.1", ""),
        ("what is @home", ""),
    ],
)
def test_hints_of_personal_data(query: str, hint: str) -> None:
    assert personal_data(query) == hint


def test_a_sample_stands_for_the_log_in_words_and_length() -> None:
    draw = np.random.default_rng(5)
    words = [f"word{i}" for i in range(300)]
    log = [" ".join(draw.choice(words, draw.geometric(0.2))) for _ in range(1200)]
    log += [f"why is the {word} so" for word in words]
    queries = list(dict.fromkeys(log))
    chosen = sample(queries, 150, seed=1)
    assert len(set(chosen)) == 150
    assert [query for query in queries if query in set(chosen)] == chosen
    cw, of_sample = count_content_words(queries), count_content_words(chosen)
    for quantile in (10, 25, 50, 75, 90):
        assert abs(np.percentile(cw, quantile) - np.percentile(of_sample, quantile)) <= 1
    assert of_sample.mean() == pytest.approx(cw.mean(), rel=0.03)  # a simple random sample: within 13%
    assert sample(queries, 150, seed=1) == chosen
    assert sample(queries, 150, seed=2) != chosen
    assert sample(queries[:5], 9) == queries[:5]
