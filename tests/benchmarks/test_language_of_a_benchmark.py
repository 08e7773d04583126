"""A benchmark's language is its own: guessed or said when it is added, and used wherever its words are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, describe, load_benchmark
from cdp.complexity import count_content_words
from cdp.evaluation.evaluate import evaluate_bm25
from cdp.retrievers.bm25 import language_in
from cdp.services import benchmarks
from cdp.studies import planning, target_queries
from cdp.studies.config import StudyConfig
from tests.benchmarks.folders import write_benchmark
from tests.support import shared

CHINESE = {
    "d1": "长江是中国最长的河流，发源于青藏高原，在上海注入东海。",
    "d2": "喜马拉雅山脉是世界上最高的山脉，位于中国和尼泊尔之间。",
    "d3": "故宫位于北京市中心，是明朝和清朝的皇家宫殿。",
    "d4": "茶叶起源于中国，后来传到日本和欧洲各国。",
}
QUESTIONS = {"q1": "世界上最高的山脉在哪里？", "q2": "茶叶起源于哪个国家？", "q3": "明朝的皇家宫殿在哪个城市？"}
ANSWERS = {"q1": {"d2": 1}, "q2": {"d4": 1}, "q3": {"d3": 1}}


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    folder = tmp_path / "chinese"
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", CHINESE), ("queries", QUESTIONS)):
        lines = "".join(json.dumps({"_id": i, "text": t}, ensure_ascii=False) + "\n" for i, t in texts.items())
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    judged = "".join(f"{q}\t{d}\t1\n" for q, grades in ANSWERS.items() for d in grades)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return folder


def test_it_is_guessed_and_can_be_said(chinese: Path, workspace: Workspace) -> None:
    name = add_benchmark(chinese, workspace)
    assert describe(workspace.benchmark(name), workspace).language == "zh"
    before = load_benchmark(workspace.benchmark(name))
    assert before.counted_language == "zh"
    added = benchmarks.add(workspace, chinese, name=name, language="ja")
    assert (added.name, added.language) == (name, "ja")
    after = load_benchmark(workspace.benchmark(name))
    assert (after.language, after.hash) == ("ja", before.hash), "what it is called changes no score"


@pytest.mark.slow
def test_bm25_takes_the_words_of_the_benchmark(chinese: Path, workspace: Workspace) -> None:
    """By default it took English ones, under which a Chinese sentence is one word: 16.30 on DRCD against 95.28."""
    found = load_benchmark(chinese)
    own, english = evaluate_bm25(found), evaluate_bm25(found, language="en")
    assert own.measures == evaluate_bm25(found, language="zh").measures
    assert own.settings["language"] == "zh"
    assert own.measures["ndcg@10"] > 0.8 > 0.2 > english.measures["ndcg@10"]
    assert (language_in("bm25"), language_in("bm25:zh"), language_in("minilm")) == ("", "zh", None)


@pytest.mark.slow
def test_cw_in_a_profile_and_in_a_study_is_that_of_the_benchmark(chinese: Path, workspace: Workspace) -> None:
    name = add_benchmark(chinese, workspace)
    expected = float(count_content_words(list(QUESTIONS.values()), "zh").mean())
    assert expected > 2
    assert target_queries.profile_benchmark(workspace, name).profile.mean == expected
    config = StudyConfig.from_dict({"benchmarks": name, "query_sets": "any"})
    facts = planning._benchmark(workspace, config, name, "")
    assert (facts["language"], facts["cw"]) == ("zh", expected)


def test_english_without_a_clue_counts_as_english(tmp_path: Path) -> None:
    found = load_benchmark(write_benchmark(tmp_path / "short"))
    assert found.counted_language == "en"


@pytest.mark.slow
def test_xquad_in_chinese_has_content_words(workspace: Workspace) -> None:
    """A study gave it CW 0.03."""
    folder = str(shared("data/xquad_zh"))
    config = StudyConfig.from_dict({"benchmarks": folder, "query_sets": "any"})
    facts = planning._benchmark(workspace, config, folder, "")
    assert facts["language"] == "zh"
    assert 4.5 < facts["cw"] < 6
