"""A retriever behind an API wherever an untrained one can be named: what is said before, what is done, who may."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdp.base import permission
from cdp.base.config import EvaluationConfig, JudgeConfig, MiningConfig, RoundTripConfig, TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.permission import NotAllowedError
from cdp.base.settings import Config
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.benchmarks import judged, library
from cdp.corpus import CorpusManifest, read_documents, store
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import Price
from cdp.query_sets import QuerySet, import_queries, read_queries
from cdp.results import board
from cdp.services import access, evaluation, jobs, judging, queries, search, studies, training, trial
from cdp.studies import own_test
from cdp.studies.config import StudyConfig, TrialConfig
from tests.benchmarks.folders import DOCUMENTS, write_benchmark
from tests.cli.support import answer, run
from tests.services.test_trial import corpus as papers
from tests.services.test_trial import human, two_sets
from tests.support import write_prices
from tests.synthesis.conftest import _no_keys, _short_backoff, server
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server

__all__ = ["_no_keys", "_short_backoff", "server"]
pytestmark = pytest.mark.slow

NAME = f"api:{MODEL}"


@pytest.fixture
def endpoint(workspace: Workspace, server: ChatServer, monkeypatch: pytest.MonkeyPatch, jobs_here: None) -> ChatServer:
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    monkeypatch.setenv("CDP_API_KEY", KEY)
    write_prices(workspace, [Price(MODEL, 2.0, 8.0)], "2026-01-01")
    return server


@pytest.fixture
def benchmark(workspace: Workspace, tmp_path: Path) -> str:
    return library.add_benchmark(write_benchmark(tmp_path / "small"), workspace)


@pytest.fixture
def corpus(workspace: Workspace, tmp_path: Path) -> CorpusManifest:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in DOCUMENTS), encoding="utf-8")
    with read_documents(path) as result:
        return store(result, "small", workspace)


@pytest.fixture
def query_set(workspace: Workspace, corpus: CorpusManifest) -> QuerySet:
    written = {row["_id"]: [f"what is said of {row['text'].split()[1]}"] for row in DOCUMENTS}
    return import_queries(written.items(), workspace, corpus.id, "Mine").query_set


def test_it_is_evaluated_at_a_price_that_is_said_before(
    workspace: Workspace, endpoint: ChatServer, benchmark: str
) -> None:
    done = run("evaluate", NAME, "--benchmark", benchmark, "--set", "budget=1", "--wait")
    assert f"Up to 7 texts (about 83 tokens) are sent to {endpoint.url} for {MODEL}: about $0.00017 (prices as of" in (
        done.stderr
    )
    [row] = board.list_rows(workspace, board.list_evaluations(workspace))
    assert row.retriever_id == f"{NAME}@{endpoint.url}"
    assert row.retriever == f"{MODEL} at {endpoint.url.split('/')[2]}"
    assert row.ndcg == pytest.approx(87.69766)
    assert sum(endpoint.embedded.values()) == 7
    again = EvaluationConfig.from_dict({"retriever": NAME, "benchmark": benchmark, "protocol": "paper"})
    jobs.start(workspace, "evaluation", again)
    assert sum(endpoint.embedded.values()) == 7, "nothing is paid for again"
    log = next(workspace.jobs.glob("evaluation-*")) / "spec.json"
    assert KEY not in log.read_text()


def test_it_searches_once_its_documents_are_indexed(
    workspace: Workspace, endpoint: ChatServer, corpus: CorpusManifest
) -> None:
    first = search.search(workspace, "moon and sea", [NAME], corpus.id, in_process=True).answers[0]
    assert first.problem is not None
    assert first.unprepared
    assert not endpoint.embedded, "no text leaves before its price is shown"
    done = run("search", "moon and sea", "--retriever", NAME, "--corpus", corpus.id, "--index")
    assert "Up to 4 texts" in done.stderr
    assert "Tides" in done.stdout.splitlines()[3]
    assert f"{NAME}@{endpoint.url}" in [choice.id for choice in search.list_retrievers(workspace)]


def test_it_mines_teaches_and_pools(
    workspace: Workspace, endpoint: ChatServer, corpus: CorpusManifest, query_set: QuerySet, tmp_path: Path
) -> None:
    settings = ("--set", "negatives=1", "--set", "range_min=0", "--set", "range_max=3", "--set", "relative_margin=none")
    both = ("--set", f"retriever={NAME}", "--set", f"teacher={NAME}", "--set", "budget=1")
    done = run("queries", "mine", query_set.id, *both, *settings, "--wait")
    assert "Up to 8 texts" in done.stderr
    made = [q for q in queries.list_query_sets(workspace) if q.hard_negatives]
    assert [q.hard_negatives for q in made] == [4]
    assert [q.parameters["teacher"] for q in made] == [f"{NAME}@{endpoint.url}"]
    assert set(endpoint.embedded.values()) == {1}

    log = tmp_path / "log.txt"
    log.write_text("why does the sea rise\nwhat is glass made of\n")
    endpoint.answer = lambda prompt, m: '{"reason": "so", "grade": 2}'
    judge = JudgeConfig.from_dict({"corpus": corpus.id, "queries": str(log), "model": MODEL, "name": "judged",
                                   "retrievers": f"bm25, {NAME}", "budget": 1.0})  # fmt: skip
    planned = judging.plan(workspace, judge)
    assert planned.sentence.startswith("Up to 6 texts")
    judging.start(workspace, judge)
    pool = judged.read_pool(workspace.benchmark("judged"))
    own = f"{NAME}@{endpoint.url}"
    assert {name for d in pool.values() for ranks in d.values() for name in ranks} == {"bm25", own, f"hybrid:{own}"}
    assert endpoint.embedded[DOCUMENTS[1]["text"]] == 1, "three jobs embedded it once"


NAN = "not refused: Ollama: NaN"


def failures_of(workspace: Workspace, job: str) -> list[tuple[str, str]]:
    return [(line["unit"], line["id"]) for line in read_jsonl(workspace.job(job) / "failures.jsonl")]


def test_what_cannot_be_embedded_is_listed_and_in_no_ranking(
    workspace: Workspace, endpoint: ChatServer, benchmark: str
) -> None:
    endpoint.per_text = {"furnace": NAN, "hive": "null", "moon?": NAN}
    done = run("evaluate", NAME, "--benchmark", benchmark, "--set", "budget=1", "--set", "batch_size=2", "--wait")
    [folder] = workspace.jobs.glob("evaluation-*")
    assert set(failures_of(workspace, folder.name)) == {("document", "d4"), ("document", "d3"), ("query", "q1")}
    record = read_json(folder / "results" / "evaluation.json")
    assert (record["counts"]["documents_without_vector"], record["counts"]["queries_without_vector"]) == (2, 1)
    assert record["counts"]["judged_without_results"] == 1
    ranked = pq.read_table(folder / "results" / "run.parquet", columns=["query_id", "document_id"]).to_pylist()
    assert {(row["query_id"], row["document_id"]) for row in ranked} == {
        (q, d) for q in ("q2", "q3") for d in ("d1", "d2")
    }
    said = "2 documents and 1 query could not be embedded and count as not found."
    assert said in " ".join(jobs.outcome(workspace, folder.name)["notes"])
    [row] = board.list_rows(workspace, board.list_evaluations(workspace))
    assert any(said in badge.meaning for badge in row.badges)
    assert "3 failed" in done.stdout or "2 documents and 1 query failed" in done.stderr + done.stdout

    endpoint.per_text, asked = {}, len(endpoint.bodies)
    run("evaluate", NAME, "--benchmark", benchmark, "--set", "budget=1", "--set", "protocol=paper", "--wait")
    assert sorted(text for body in endpoint.bodies[asked:] for text in body["input"]) == sorted(
        text for text in endpoint.embedded if {"furnace", "hive", "moon?"} & set(text.split())
    ), "the texts that failed are asked for again, and no other"
    [whole] = [row for row in board.list_rows(workspace, board.list_evaluations(workspace)) if not row.badges]
    assert whole.ndcg > row.ndcg


def test_an_index_without_a_document_is_an_index(
    workspace: Workspace, endpoint: ChatServer, corpus: CorpusManifest
) -> None:
    endpoint.per_text = {"furnace": NAN, "impossible": NAN}
    done = run("search", "moon and sea", "--retriever", NAME, "--corpus", corpus.id, "--index")
    assert "Tides" in done.stdout.splitlines()[3]
    [folder] = workspace.jobs.glob("index-*")
    assert failures_of(workspace, folder.name) == [("document", "d4")]
    refused = search.search(workspace, "an impossible query", [NAME], corpus.id, in_process=True).answers[0]
    assert "unsupported value: NaN" in str(refused.problem), "a query without a vector finds nothing"


def test_a_document_without_a_vector_is_no_negative(
    workspace: Workspace, endpoint: ChatServer, corpus: CorpusManifest, query_set: QuerySet
) -> None:
    endpoint.per_text = {"furnace": NAN}
    settings = ("--set", "negatives=3", "--set", "range_min=0", "--set", "range_max=4", "--set", "relative_margin=none")
    both = ("--set", f"retriever={NAME}", "--set", f"teacher={NAME}", "--set", "budget=1")
    run("queries", "mine", query_set.id, *both, *settings, "--wait")
    [made] = [q for q in queries.list_query_sets(workspace) if q.hard_negatives]
    lines = {line.document_id: line for line in read_queries(workspace, made.id)}
    assert {name for line in lines.values() for names in line.negatives for name in names} == {"d1", "d2", "d3"}
    assert [bool(scores) for name in ("d1", "d2", "d3", "d4") for scores in lines[name].teacher] == [True] * 3 + [False]
    [folder] = workspace.jobs.glob("mining-*")
    assert failures_of(workspace, folder.name) == [("document", "d4")]


def test_it_cannot_be_trained(workspace: Workspace, endpoint: ChatServer, query_set: QuerySet, benchmark: str) -> None:
    wanted = TrainingConfig.from_dict({"query_set": query_set.id, "retriever": NAME})
    refused = [
        lambda: training.start(workspace, wanted),
        lambda: access.checked(workspace, StudyConfig.from_dict({"retrievers": f"minilm, {NAME}", "corpus": "c",
                                                                  "benchmarks": benchmark, "methods": "diverse"})),
        lambda: jobs.start(workspace, "round-trip", RoundTripConfig(query_set=query_set.id, by=NAME)),
        lambda: evaluation.checked(workspace, "minilm", benchmark, rerank=NAME),
    ]  # fmt: skip
    for start in refused:
        with pytest.raises(ConfigError, match="cannot be trained or loaded here"):
            start()
    assert "cannot be trained" in run("train", query_set.id, "--retriever", NAME, code=2).stderr
    assert "cannot be trained or loaded" in run("serve", NAME, "--port", "0", code=2).stderr
    assert not endpoint.bodies


CONFIGS: list[tuple[type[Config], dict[str, Any]]] = [
    (EvaluationConfig, {"retriever": "api:m@http://10.0.0.1/v1", "benchmark": "b"}),
    (MiningConfig, {"retriever": "api:m@http://10.0.0.1/v1", "query_set": "q"}),
    (JudgeConfig, {"retrievers": "bm25, api:m@http://10.0.0.1/v1", "corpus": "c", "base_url": "http://10.0.0.1/v1"}),
]


@pytest.mark.parametrize(("kind", "values"), CONFIGS)
def test_a_shared_dashboard_asks_no_other_address(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: type[Config], values: dict[str, Any]
) -> None:
    config = kind.from_dict(values)
    assert access.checked(workspace, config) == config
    permission.in_dashboard(shared=True)
    with pytest.raises(NotAllowedError, match=r"10\.0\.0\.1"):
        access.checked(workspace, config)
    with pytest.raises(NotAllowedError, match=r"10\.0\.0\.1"):
        access.environment_for(config.to_dict())
    monkeypatch.setenv("CDP_ALLOWED_ENDPOINTS", "http://10.0.0.1/v1")
    assert access.checked(workspace, config) == config
    monkeypatch.setenv("CDP_READ_ONLY", "1")
    with pytest.raises(NotAllowedError):
        access.checked(workspace, config)


@pytest.fixture
def other() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


def test_each_address_gets_its_own_key(
    workspace: Workspace, endpoint: ChatServer, other: ChatServer, corpus: CorpusManifest, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    log = tmp_path / "log.txt"
    log.write_text("why does the sea rise\n")
    endpoint.answer = lambda prompt, m: '{"reason": "so", "grade": 2}'
    values = {"corpus": corpus.id, "queries": str(log), "model": MODEL, "name": "judged",
              "retrievers": f"{NAME}@{other.url}"}  # fmt: skip
    config = JudgeConfig.from_dict(values)
    with pytest.raises(ConfigError, match=f"is not sent to {other.url}"):
        judging.start(workspace, config)
    assert not other.bodies
    monkeypatch.setenv("OPENAI_BASE_URL", other.url)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}-other")
    environment = access.environment_for(access.checked(workspace, config).to_dict())
    assert environment == {"CDP_BASE_URL": endpoint.url, "CDP_API_KEY": KEY, "OPENAI_BASE_URL": other.url,
                           "OPENAI_API_KEY": f"{KEY}-other"}  # fmt: skip
    alone = access.environment_for({"retriever": f"{NAME}@{other.url}"})
    assert alone == {"CDP_BASE_URL": other.url, "CDP_API_KEY": f"{KEY}-other", "OPENAI_API_KEY": ""}
    third = {**config.to_dict(), "retrievers": f"{NAME}@{other.url}, api:m@http://127.0.0.1:9/v1"}
    monkeypatch.setenv("CDP_ALLOWED_ENDPOINTS", "http://127.0.0.1:9/v1")
    permission.in_dashboard()
    with pytest.raises(ConfigError, match="at most two addresses"):
        access.environment_for(third)


def test_a_strangers_job_is_not_resumed_at_an_unknown_address(
    workspace: Workspace, endpoint: ChatServer, other: ChatServer, benchmark: str
) -> None:
    endpoint.script = ["quota"]
    job = jobs.start(workspace, "evaluation", EvaluationConfig.from_dict({"retriever": NAME, "benchmark": benchmark}))
    assert str(jobs.show(workspace, job).state) == "failed"
    spec = workspace.job(job) / "spec.json"
    told = read_json(spec)
    told["config"]["retriever"] = f"{NAME}@{other.url}"
    spec.write_text(json.dumps(told))
    with pytest.raises(NotAllowedError, match="outside this workspace"):
        jobs.resume(workspace, job)
    told["config"]["retriever"] = f"{NAME}@{endpoint.url}"
    spec.write_text(json.dumps(told))
    assert jobs.missing_secrets(workspace, job) == []
    jobs.resume(workspace, job)
    assert str(jobs.show(workspace, job).state) == "finished"
    assert not other.bodies


@pytest.mark.usefixtures("few_steps")
def test_beside_a_test_it_is_priced_and_sent_what_was_said(
    workspace: Workspace, endpoint: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = papers(workspace, tmp_path)
    human(workspace, manifest)
    two_sets(workspace, manifest)
    monkeypatch.setattr(studies, "measure", lambda *_: None)
    monkeypatch.setattr(own_test, "at_hand", lambda *_: ["static-minilm"])
    values = {"corpus": manifest.id, "untrained": NAME, "documents": 20, "per_doc": "2", "seeds": 1, "minutes": 60}
    config = TrialConfig.from_dict(values)

    def sentence(planned: own_test.Trial) -> str:
        (told,) = [note for note in planned.notes if "texts" in note]
        return told

    before = trial.plan(workspace, config)
    assert not before.judged.there
    # 60 documents and people's queries of 60, 40 for the test and 20 for dev.
    assert sentence(before).startswith("Up to 120 texts (about ")
    assert f"are sent to {endpoint.url} for {MODEL}: about $" in sentence(before)
    assert before.price.startswith("$")
    assert before.cost

    write_prices(workspace, [Price(MODEL, 2000.0, 8.0)], "2026-01-01")
    dear = config.replace(spend=0.5)
    with pytest.raises(ConfigError, match="The queries and vectors cost about"):
        trial.start(workspace, dear)
    assert not endpoint.bodies, "no text leaves before its price is agreed to"

    write_prices(workspace, [Price(MODEL, 2.0, 8.0)], "2026-01-01")
    begun = trial.start(workspace, config)
    spec = read_json(workspace.job(begun.job_id) / "spec.json")
    assert StudyConfig.from_dict(spec["config"]).spend == config.spend
    assert sentence(trial.plan(workspace, config)) == sentence(before)
    assert 0 < len(endpoint.embedded) <= 120
    assert set(endpoint.embedded.values()) == {1}
    named = {row.condition.retriever for row in studies.report(workspace, begun.job_id).rows}
    assert named == {"bm25", "static-minilm", f"{NAME}@{endpoint.url}"}


def test_without_a_price_it_is_said_that_no_budget_is_kept(
    workspace: Workspace, endpoint: ChatServer, tmp_path: Path
) -> None:
    manifest = papers(workspace, tmp_path)
    write_prices(workspace, [], "2026-01-01")
    planned = trial.plan(workspace, TrialConfig.from_dict({"corpus": manifest.id, "untrained": NAME, "minutes": 600}))
    assert (planned.cost, planned.price) == (None, "not known")
    assert any("Up to" in note and "its price is unknown" in note for note in planned.notes)


def test_a_used_up_budget_says_so_and_keeps_what_was_paid(
    workspace: Workspace, endpoint: ChatServer, benchmark: str
) -> None:
    config = EvaluationConfig.from_dict({"retriever": NAME, "benchmark": benchmark, "budget": 1e-5})
    job = jobs.start(workspace, "evaluation", config)
    assert "budget" in read_json(workspace.job(job) / "failure.json")["message"]
    with AnswerCache(workspace) as cache:
        assert len(cache) == sum(endpoint.embedded.values())
    assert os.environ["CDP_API_KEY"] == KEY
    assert answer("benchmarks", "show", benchmark)["id"] == benchmark
