"""Judged queries of benchmarks as training data: MIRACL's topics, of one language or mixed, each counted by its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp import query_sets
from cdp.__main__ import main
from cdp.base.config import TrainingConfig
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.benchmarks.download import download_benchmark
from cdp.benchmarks.registry import find
from cdp.complexity import count_content_words
from cdp.services.training import training_sets
from cdp.studies import read_plan
from cdp.studies.config import PLANS
from cdp.training.data import prepare
from tests.benchmarks import published
from tests.benchmarks.folders import write_benchmark
from tests.benchmarks.published import lines, put

TRAINING = {
    "ko": (["바다는 왜 하루에 두 번 오르내리나요?", "벌은 어떻게 말하나요?"], ["7#0", "9#0"]),
    "fr": (["pourquoi la mer monte deux fois par jour", "comment parlent les abeilles"], ["1#0", "1#0"]),
}


def bring_training(workspace: Workspace, language: str, folder: Path) -> str:
    """The training topics of a language as MIRACL lays them out, in the workspace."""
    version = f"miracl-v1.0-{language}"
    topics, corpus = published.miracl(language)
    texts, answers = TRAINING[language]
    topics[f"{version}/topics/topics.{version}-train.tsv"] = "".join(
        f"t{i}\t{text}\n" for i, text in enumerate(texts)
    ).encode()
    qrels = "".join(f"t{i}\tQ0\t{answer}\t1\n" for i, answer in enumerate(answers)) + f"t0\tQ0\t{answers[0]}x\t0\n"
    topics[f"{version}/qrels/qrels.{version}-train.tsv"] = qrels.encode()
    passages = [{"docid": i, "title": "", "text": f"{language} {i}"} for i in ("1#0", "7#0", "9#0", f"{answers[0]}x")]
    corpus = {f"miracl-corpus-v1.0-{language}/docs-0.jsonl.gz": lines(passages, packed=True)}
    put(folder / "miracl", topics)
    put(folder / "miracl-corpus", corpus)
    entry = find(f"miracl-{language}-train")
    assert entry is not None
    download_benchmark(entry, workspace, folder=folder)
    return entry.name


@pytest.mark.slow
def test_training_topics_become_a_corpus_of_their_answers_and_human_queries(
    workspace: Workspace, tmp_path: Path
) -> None:
    name = bring_training(workspace, "ko", tmp_path)
    made = training_sets.from_benchmarks(workspace, [name])
    assert (made.corpus.n_documents, made.query_set.n_queries) == (2, 2)  # the passage judged 0 answers nothing
    assert (made.query_set.kind, made.query_set.language) == ("human", "ko")
    assert made.query_set.licence.startswith("apache-2.0")
    assert made.languages == {"ko": 2}
    pairs = prepare(TrainingConfig(query_set=made.query_set.id, weighting="cw"), workspace)
    np.testing.assert_array_equal(pairs.weights, count_content_words(TRAINING["ko"][0], "ko"))


@pytest.mark.slow
def test_a_mix_counts_each_query_in_its_own_language(workspace: Workspace, tmp_path: Path) -> None:
    names = [bring_training(workspace, language, tmp_path / language) for language in TRAINING]
    made = training_sets.from_benchmarks(workspace, names, name="mix")
    assert made.languages == {"ko": 2, "fr": 2}
    data = prepare(TrainingConfig(query_set=made.query_set.id, weighting="cw"), workspace)
    expected = {
        query: int(count_content_words([query], language)[0])
        for language in TRAINING
        for query in TRAINING[language][0]
    }
    assert dict(zip(data.pairs.queries, data.weights.tolist(), strict=True)) == expected
    as_english = count_content_words(data.pairs.queries, "en")
    assert (np.array(list(expected.values())) != as_english).any()  # one language for all would be wrong
    assert data.pairs.part(np.array([3, 0])).languages == ["fr", "ko"]


def test_what_is_reported_is_not_trained_on_unless_it_is_named(workspace: Workspace, tmp_path: Path) -> None:
    write_benchmark(tmp_path / "own")
    name = add_benchmark(tmp_path / "own", workspace, "own")
    with pytest.raises(InputError, match="no training split, only test"):
        training_sets.from_benchmarks(workspace, [name])
    assert training_sets.from_benchmarks(workspace, [name], split="test").query_set.n_queries > 0
    with pytest.raises(InputError, match="no split 'dev'"):
        training_sets.from_benchmarks(workspace, [name], split="dev")


def test_the_command_line_makes_a_mix(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    names = [bring_training(workspace, language, tmp_path / language) for language in TRAINING]
    assert main(["benchmarks", "training-set", *names, "--name", "miracl mix"]) == 0
    assert "4 queries (2 in ko, 2 in fr)" in capsys.readouterr().out
    assert [q.name for q in query_sets.list_query_sets(workspace)] == ["miracl mix queries"]


def test_the_dev_set_of_ms_marco_is_known_and_read(workspace: Workspace, tmp_path: Path) -> None:
    """BeIR/msmarco calls it validation; ids of queries and passages are unrelated numbers."""
    collection, qrels = published.beir_jsonl()
    put(tmp_path / "BeIR" / "msmarco", collection)
    put(tmp_path / "BeIR" / "msmarco-qrels", {"validation.tsv": qrels["test.tsv"], "train.tsv": qrels["train.tsv"]})
    entry = find("msmarco-dev")
    assert entry is not None
    assert (entry.documents, entry.queries, entry.self_match) == (8_841_823, 6_980, False)
    download_benchmark(entry, workspace, folder=tmp_path)
    found = load_benchmark(workspace.benchmarks / "msmarco-dev")
    assert (found.split, found.query_ids) == ("dev", ["q1", "q2"])


@pytest.mark.parametrize("name", ["miracl-crosslingual", "miracl-mix"])
def test_plans_for_miracl_are_read(name: str) -> None:
    plan = read_plan(PLANS / f"{name}.yaml")
    assert len(plan.items("benchmarks")) == 6
    assert all(find(benchmark.partition(":")[0]) for benchmark in plan.items("benchmarks"))
    assert plan.items("weightings") == ["none", "cw"]
