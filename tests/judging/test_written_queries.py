"""Where there is no log, a model writes the target queries: what is asked, said, paid, and written on the result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from cdp import query_sets
from cdp.base.config import EvaluationConfig, JudgeConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import load_benchmark, manifests
from cdp.corpus import CorpusManifest
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import Price
from cdp.results import board
from cdp.services import jobs, judging
from cdp.studies import advice
from cdp.synthesis import targets
from cdp.synthesis.methods import METHODS
from tests.cli.support import run as command
from tests.jobs.support import run_worker
from tests.judging.conftest import ANIMALS, by_animal, settings
from tests.support import write_prices
from tests.synthesis.server import MODEL, ChatServer, marked

WRITER = "another-model"
PRICES = {MODEL: Price(MODEL, 1.0, 10.0), WRITER: Price(WRITER, 5.0, 50.0)}


def of_kinds(prompt: str) -> list[str]:
    animal = next(animal for animal in ANIMALS if f"The {animal} " in marked(prompt, "document"))
    number = marked(prompt, "document").split("valley ")[1].split()[0]
    return [
        f"{animal} sleep {number}",
        f"in which valley does the {animal} number {number} sleep?",
        f"I watch animals by the water at night and wonder where a {animal} like number {number} goes to rest by day",
    ]


def writes_and_judges(prompt: str, m: int) -> str:
    return by_animal(prompt, m) if "<passage>\n" in prompt else json.dumps({"queries": of_kinds(prompt)})


@pytest.fixture
def both(judge: ChatServer, workspace: Workspace, jobs_here: None) -> ChatServer:
    """An endpoint with two models: one that writes, one that judges."""
    judge.answer = writes_and_judges
    judge.models |= {WRITER}
    write_prices(workspace, list(PRICES.values()), "2026-01-01")
    return judge


def written_by(server: ChatServer, model: str) -> list[str]:
    return [body["messages"][0]["content"] for body in server.bodies if body["model"] == model]


@pytest.mark.slow
def test_documents_alone_become_a_benchmark_that_says_who_wrote_its_queries(
    workspace: Workspace, corpus: CorpusManifest, both: ChatServer
) -> None:
    words = ("--set", f"model={MODEL}", "--set", f"writer={WRITER}", "--set", "limit=9", "--set", "retrievers=bm25")
    done = command("benchmarks", "judge", "--corpus", corpus.id, "--generator", "openai", *words, "--wait")
    assert f"11 documents are sent to {both.url}: {WRITER} writes 9 queries, about $" in done.stderr
    assert f"The 9 queries and the passages found for each are sent to {both.url}: {MODEL} judges" in done.stderr
    assert "wrote these" not in done.stderr
    made = workspace.benchmark("animals-judged")
    benchmark = load_benchmark(made)
    assert benchmark.n_queries == 9
    assert len({tuple(text.split("number ")[-1].split()[:1] + [a for a in ANIMALS if a in text])
                for text in benchmark.queries}) > 6, "over the documents"  # fmt: skip
    lengths = sorted(len(text.split()) for text in benchmark.queries)
    assert lengths[0] == 3
    assert lengths[-1] > 15
    assert 2 <= sum(length == 3 for length in lengths) <= 4
    asked = written_by(both, WRITER)
    assert len(asked) == 11
    assert all(targets.PROMPT.split("\n")[0][:60] in prompt for prompt in asked)
    source = manifests.read(made).source
    assert (source["written_by"], source["judge"]) == (WRITER, MODEL)
    [query_set] = query_sets.list_query_sets(workspace)
    assert query_set.name == "Target queries of animals-judged"
    assert query_set.model == WRITER

    jobs.start(workspace, "evaluation", EvaluationConfig(retriever="bm25", benchmark="animals-judged"))
    [row] = board.list_rows(workspace, board.list_evaluations(workspace))
    assert f"queries written by {WRITER}, judged by {MODEL}" in [badge.word for badge in row.badges]
    basis = advice._judged(source)
    assert basis["queries_by"] == WRITER


@pytest.mark.slow
def test_one_budget_pays_for_writing_and_judging_and_nothing_twice(
    workspace: Workspace, corpus: CorpusManifest, both: ChatServer
) -> None:
    config = settings(corpus, "", writer=WRITER, limit=9, retrievers="bm25", concurrency=1)
    both.fault_for = {"The": "500"}
    down = workspace.job(judging.start(workspace, config.replace(retries=0)))
    assert "got a query" in read_json(down / "failure.json")["message"]
    assert not (down / "queries.txt").exists()
    both.fault_for, both.bodies = {}, []

    poor = workspace.job(judging.start(workspace, config.replace(name="poor", budget=0.045)))
    assert "The budget of 0.045 US dollars is used up" in read_json(poor / "failure.json")["message"]
    wrote, judged = read_json(poor / "results" / "synthesis.json"), len(written_by(both, MODEL))
    assert 0.03 < wrote["cost"] < 0.045
    assert 0 < judged < 40
    with AnswerCache(workspace) as cache:
        of_pairs = PRICES[MODEL].cost(cache.spent(f"{poor.name}/judge"))
    assert 0.044 < wrote["cost"] + of_pairs < 0.046

    rich = workspace.job(judging.start(workspace, config.replace(name="rich", budget=1.0)))
    result = read_json(rich / "results" / "judging.json")
    assert result["judged"] == result["pairs"] > judged
    jobs.resume(workspace, down.name)
    assert str(jobs.show(workspace, down.name).state) == "finished"
    asked = [body["messages"][0]["content"] for body in both.bodies]
    assert len(asked) == len(set(asked)) == 11 + result["pairs"]
    assert (down / "queries.txt").read_text() == (rich / "queries.txt").read_text()


@pytest.mark.soak
def test_killed_while_it_writes_and_while_it_judges_it_asks_again_for_nothing_that_is_stored(
    workspace: Workspace, corpus: CorpusManifest, both: ChatServer
) -> None:
    both.latency = 0.1
    folder = workspace.job("judging-1")
    config = settings(corpus, "", writer=WRITER, written_by=WRITER, limit=12, base_url=both.url, concurrency=2)
    write_json(folder / "spec.json", {"id": "judging-1", "kind": "judging", "config": config.to_dict()})
    queries = ""
    for target in (6, 40, None):
        with AnswerCache(workspace) as cache:
            kept, before = len(cache), len(both.bodies)
        code, out = run_worker("cdp.workers.judging", folder, lambda: len(both.bodies), target)
        time.sleep(0.3)
        queries = queries or (folder / "queries.txt").read_text() if target != 6 else ""
    assert code == 0, out
    assert (folder / "queries.txt").read_text() == queries
    pairs = read_json(folder / "results" / "judging.json")["pairs"]
    assert len(both.bodies) - before == 15 + pairs - kept, "12 queries take 15 documents"
    asked = [body["messages"][0]["content"] for body in both.bodies]
    assert len(asked) - len(set(asked)) <= 2 * 4, "what was on its way in at most four threads, at each kill"


def test_one_model_for_both_is_warned_of(
    workspace: Workspace, corpus: CorpusManifest, judge: ChatServer, both: ChatServer
) -> None:
    [warning] = judging.plan(workspace, settings(corpus, "", limit=9)).warnings
    assert "writes these queries and judges them" in warning
    assert judging.plan(workspace, settings(corpus, "", limit=9, writer=WRITER)).warnings == ()
    query_sets.create(
        workspace,
        query_sets.QuerySet(
            id="trained-on", name="Trained on", corpus_id=corpus.id, corpus_hash=corpus.content_hash, kind="synthetic",
            method="diverse", generator="openai", model=WRITER, per_doc=5, prompt_hash=METHODS["diverse"].prompt_hash,
            language="en", parameters={}, job_id="",
        ),
    )  # fmt: skip
    [warning] = judging.plan(workspace, settings(corpus, "", limit=9, writer=WRITER)).warnings
    assert "also wrote training queries of these documents (Trained on)" in warning


def test_settings_that_do_not_fit(workspace: Workspace, corpus: CorpusManifest) -> None:
    for values, words in (
        ({"corpus": "c", "limit": None}, "How many queries"),
        ({}, "Give a corpus"),
        ({"benchmark": "b", "corpus": "c"}, "Give a corpus"),
        ({"benchmark": "b", "queries": "q"}, "Give a corpus"),
        ({"corpus": "c", "queries": "q", "runs": "r"}, "Runs belong to a benchmark"),
        ({"corpus": "c", "generator": "people"}, "People judge queries that are given"),
    ):
        with pytest.raises(ConfigError, match=words):
            JudgeConfig.from_dict(values)


def test_no_training_method_has_this_prompt() -> None:
    assert targets.PROMPT not in [method.template for method in METHODS.values()]


def kinds(n: int) -> list[list[str]]:
    return [[f"word{i} a", f"what of word{i} is it today", f"long need {i}" + " and more" * 8] for i in range(n)]


@pytest.mark.parametrize(("documents", "n", "chosen"), [(12, 9, 9), (12, 12, 12), (4, 9, 9), (2, 9, 6)])
def test_one_query_of_each_document_where_that_is_enough(documents: int, n: int, chosen: int) -> None:
    written = kinds(documents)
    found = targets.choose(written, n, language="en", seed=0)
    assert len(found) == len(set(found)) == chosen
    of: Callable[[str], int] = lambda text: next(i for i, queries in enumerate(written) if text in queries)  # noqa: E731
    if documents >= n:
        assert len({of(text) for text in found}) == n
    counts = [sum(text in [queries[k] for queries in written] for text in found) for k in range(3)]
    assert min(counts) >= chosen // 3 - 1
    assert targets.choose([], 5, language="en", seed=0) == []
