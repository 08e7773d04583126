"""Formats of queries by their surface, and pairs that say the same in the same words."""

from __future__ import annotations

import pytest

from cdp.base.workspace import read_jsonl
from cdp.query_sets.nonsense import FORMATS, format_mix, query_format
from cdp.synthesis.generators.recorded import RECORDINGS

ASKED_FOR = ("what", "how", "why", "when/if", "which/verify", "keyword", "statement", "comparison")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is basalt?", "what"),
        ("In what year did it end?", "what"),
        ("how to cut glass", "how"),
        ("Why is the sky blue?", "why"),
        ("If a pump fails, who is called?", "when/if"),
        ("Is it true that basalt floats?", "which/verify"),
        ("Which metals float?", "which/verify"),
        ("Does tin melt before lead?", "which/verify"),
        ("basalt cooling rate", "keyword"),
        ("Basalt is used for road building", "statement"),
        ("Basalt versus granite in walls", "comparison"),
        ("What is the difference between tin and lead?", "comparison"),
        ("By what means are boats raised?", "other question"),
        ("Pourquoi le ciel est-il bleu ?", "why"),
        ("Wie entsteht Basalt?", "how"),
        ("为什么天空是蓝色的？", "why"),
        ("玄武岩是什么？", "what"),
        ("なぜ空は青いのですか？", "why"),
        ("Почему небо голубое?", "why"),
        ("لماذا السماء زرقاء؟", "why"),
        ("", "keyword"),
    ],
)
def test_the_format_of_a_query(query: str, expected: str) -> None:
    assert query_format(query) == expected


def test_formats_of_the_demos_recorded_queries_are_told() -> None:
    """Each recorded answer has one query per format; the classifier finds at least nine in ten of them."""
    right = total = 0
    for line in read_jsonl(RECORDINGS / "diverse.jsonl"):
        mix = format_mix(line["queries"])
        total += len(ASKED_FOR)
        right += sum(min(1, mix.get(name, 0)) for name in ASKED_FOR)
        assert sum(mix.values()) == len(line["queries"])
        assert set(mix) <= set(FORMATS)
    assert total == 768
    assert right / total > 0.9
