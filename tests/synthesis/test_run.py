"""A synthesis job over a corpus: order, resume, faults, stop, cost, and what it leaves on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError, NotFoundError, ProviderError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json
from cdp.synthesis.run import SynthesisRun
from cdp.synthesis.work import query_set_id
from tests.strategies import SOAK
from tests.support import REPOSITORY, work
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer, numbered


def settings(server: ChatServer, corpus_id: str, **more: object) -> dict[str, object]:
    base = {"generator": "openai", "model": MODEL, "base_url": server.url, "per_doc": 3, "concurrency": 4}
    return {"corpus": corpus_id, **base, **more}


def lines_of(job: Job, result: dict[str, object]) -> list[dict[str, object]]:
    return list(query_sets.iter_lines(job.workspace, str(result["query_set"])))


def documents_of(job: Job, result: dict[str, object]) -> list[str]:
    return [str(line["document_id"]) for line in lines_of(job, result)]


def start_worker(job: Job) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cdp.workers.synthesis", str(job.folder)],
        cwd=REPOSITORY,
        env={**os.environ, "CDP_API_KEY": KEY, "CDP_BASE_URL": job.config["base_url"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_template_generator_over_a_corpus(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    corpus = make_corpus(10)
    job = make_job(corpus=corpus.id, method="diverse", per_doc=4, generator="template")
    result = SynthesisRun(job).execute()
    assert documents_of(job, result) == [f"d{i}" for i in range(10)]
    assert all(len(line["queries"]) == 4 for line in lines_of(job, result))
    manifest = query_sets.load(job.workspace, result["query_set"])
    assert manifest.complete
    assert (manifest.n_documents, manifest.n_queries, manifest.n_failures) == (10, 40, 0)
    assert (manifest.method, manifest.generator, manifest.model) == ("diverse", "template", "template")
    assert (manifest.corpus_id, manifest.corpus_hash) == (corpus.id, corpus.content_hash)
    assert manifest.job_id == job.id
    assert len(manifest.prompt_hash) == 64
    assert len(manifest.content_hash) == 16
    assert read_json(job.results / "synthesis.json") == result
    assert result["query_set"] == query_set_id(job.id, SynthesisRun(job).config)


def test_a_draw_is_not_the_first_documents_and_grows_without_losing_any(
    make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    corpus = make_corpus(20)
    few, more = (
        (
            job := make_job(corpus=corpus.id, generator="template", per_doc=2, limit=limit, draw=3),
            SynthesisRun(job).execute(),
        )
        for limit in (5, 12)
    )
    small, large = documents_of(*few), documents_of(*more)
    assert (len(small), len(large)) == (5, 12)
    assert small != [f"d{i}" for i in range(5)]
    assert set(small) < set(large)
    assert large == sorted(large, key=lambda name: int(name[1:])), "in the corpus's order"
    job, result = few
    manifest = query_sets.load(job.workspace, str(result["query_set"]))
    assert manifest.complete
    assert (manifest.parameters["limit"], manifest.parameters["draw"]) == (5, 3)
    positions = {line["document_id"]: line["position"] for line in lines_of(job, result)}
    assert all(name == f"d{position}" for name, position in positions.items())


@pytest.mark.slow
def test_answers_out_of_order_end_in_corpus_order(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    corpus = make_corpus(24)

    def slow_for_some(prompt: str, m: int) -> str:
        time.sleep(0.15 if "number 0." in prompt or "number 5." in prompt else 0.0)
        return numbered(prompt, m)

    server.answer = slow_for_some
    job = make_job(**settings(server, corpus.id))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert documents_of(job, result) == [f"d{i}" for i in range(24)]
    assert result["usage"]["requests"] == 24
    assert server.most_at_once <= 4


@pytest.mark.slow
def test_faults_lose_no_document_and_no_success_is_asked_for_twice(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    server.script = ["429", "500", "malformed", *[""] * 12] * 3
    server.retry_after = "0.02"
    corpus = make_corpus(40)
    job = make_job(**settings(server, corpus.id, concurrency=8))
    run = SynthesisRun(job, api_key=KEY)
    result = run.execute()
    assert result["n_documents"] + result["failures"] == 40
    assert result["complete"]
    assert sum(server.answered.values()) == 40 + server.faults["malformed"]
    assert sum(server.asked.values()) == sum(server.answered.values()) + server.faults["429"] + server.faults["500"]
    assert all(server.faults[fault] for fault in ("429", "500", "malformed"))


@pytest.mark.slow
def test_hopeless_answers_are_kept_with_their_raw_text(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    refuse = "I'm sorry, but I cannot do that."

    def answer(prompt: str, m: int) -> str:
        if "number 1." in prompt:
            return refuse
        return "just one query" if "number 2." in prompt else numbered(prompt, m)

    server.answer = answer
    job = make_job(**settings(server, make_corpus(4).id))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert (result["n_documents"], result["failures"], result["incomplete"]) == (3, 1, 1)
    failures = {line["document_id"]: line for line in query_sets.iter_failures(job.workspace, result["query_set"])}
    assert set(failures) == {"d1", "d2"}
    assert failures["d1"]["raw"] == [refuse, refuse]
    assert failures["d1"]["problems"]["refusal"] == 1
    assert failures["d2"]["kept"] == 1
    assert documents_of(job, result) == ["d0", "d2", "d3"]
    assert result["notes"] == ["Fewer than 3 queries for 1 document of 3."]


@pytest.mark.slow
def test_queries_that_are_none_are_counted_where_the_job_ends(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_API_KEY", KEY)
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    none = "1. N/A\n2. string\n3. mill wheel"
    server.answer = lambda prompt, m: none if "number 1." in prompt else numbered(prompt, m)
    job = make_job(**settings(server, make_corpus(3).id))

    assert work("cdp.workers.synthesis", job.folder) == 0

    (note,) = read_json(job.results / "synthesis.json")["notes"]
    assert note.startswith("2 of 9 queries cannot be used: repeats the prompt 2.")


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was(server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    corpus = make_corpus(30)
    job = make_job(**settings(server, corpus.id))

    def stop_after_six(prompt: str, m: int) -> str:
        if len(server.bodies) >= 6:
            (job.folder / "stop.request").touch()
        return numbered(prompt, m)

    server.answer = stop_after_six
    first = SynthesisRun(job, api_key=KEY).execute()
    assert not first["complete"]
    assert 6 <= first["n_documents"] < 30
    assert not query_sets.load(job.workspace, first["query_set"]).complete
    (job.folder / "stop.request").unlink()
    server.answer = numbered
    second = SynthesisRun(Job(job.folder), api_key=KEY).execute()
    assert second["query_set"] == first["query_set"]
    assert second["complete"]
    assert documents_of(job, second) == [f"d{i}" for i in range(30)]
    assert set(server.answered.values()) == {1}


@pytest.mark.slow
def test_a_stop_is_heard_while_waiting_for_the_endpoint(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    server.script, server.retry_after = ["429"] * 50, "100"
    job = make_job(**settings(server, make_corpus(5).id))
    threading.Timer(0.2, (job.folder / "stop.request").touch).start()
    result = SynthesisRun(job, api_key=KEY).execute()
    assert (result["n_documents"], result["failures"], result["complete"]) == (0, 0, False)


@pytest.mark.slow
def test_failed_documents_are_asked_for_again_on_resume(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    server.script = ["400", "", ""]
    job = make_job(**settings(server, make_corpus(3).id, concurrency=1))
    first = SynthesisRun(job, api_key=KEY).execute()
    assert (first["n_documents"], first["failures"]) == (2, 1)
    second = SynthesisRun(job, api_key=KEY).execute()
    assert (second["n_documents"], second["failures"]) == (3, 0)
    assert documents_of(job, second) == ["d0", "d1", "d2"]
    assert list(query_sets.iter_failures(job.workspace, second["query_set"])) == []
    assert len(server.bodies) == 4


@pytest.mark.slow
def test_a_second_job_with_the_same_settings_pays_nothing(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    corpus = make_corpus(8)
    first_job, second_job = (
        make_job(**settings(server, corpus.id)),
        make_job(**settings(server, corpus.id, name="again")),
    )
    first = SynthesisRun(first_job, api_key=KEY).execute()
    second = SynthesisRun(second_job, api_key=KEY).execute()
    assert second["usage"] == {"input_tokens": 0, "output_tokens": 0, "requests": 0}
    assert len(server.bodies) == 8
    same = [query_sets.load(first_job.workspace, result["query_set"]).content_hash for result in (first, second)]
    assert same[0] == same[1]


@pytest.mark.slow
def test_equal_documents_are_paid_for_once(server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    server.latency = 0.05
    corpus = make_corpus(rows=[(f"d{i}", "", "The same text in all of them.") for i in range(6)])
    job = make_job(**settings(server, corpus.id, concurrency=6))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert result["n_documents"] == 6
    assert len(server.bodies) == 1


@pytest.mark.parametrize("wrong", ["key", "model", "host"])
def test_what_no_retry_can_mend_stops_the_run_at_once(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, wrong: str
) -> None:
    config = settings(server, make_corpus(40).id)
    if wrong == "model":
        config["model"] = "no-such-model"
    if wrong == "host":
        config["base_url"] = "http://127.0.0.1:9/v1"
    job = make_job(**config)
    with pytest.raises(ProviderError):
        SynthesisRun(job, api_key="sk-wrong" if wrong == "key" else KEY).execute()
    assert len(server.bodies) <= 8
    assert not read_json(job.results / "synthesis.json")["complete"]


@pytest.mark.slow
def test_an_endpoint_that_goes_down_stops_the_run(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    server.script = [""] * 5 + ["500"] * 1000
    job = make_job(**settings(server, make_corpus(40).id, retries=0))
    with pytest.raises(ProviderError, match="20 documents in a row"):
        SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) < 40
    server.script = []
    result = SynthesisRun(job, api_key=KEY).execute()
    assert (result["n_documents"], result["failures"]) == (40, 0)
    assert set(server.answered.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize(("said", "shown"), [("I'm sorry, but I cannot do that.", "I'm sorry"), ("", "was empty")])
def test_a_model_that_answers_no_query_is_not_paid_for_every_document(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, said: str, shown: str
) -> None:
    server.answer = lambda prompt, m: said
    job = make_job(**settings(server, make_corpus(25).id))
    with pytest.raises(ConfigError, match=f"The first 20 answers held no query.*{shown}"):
        SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) <= 2 * 30
    asked = len(server.bodies)
    server.answer = numbered
    result = SynthesisRun(job, api_key=KEY).execute()
    assert result["n_documents"] + result["failures"] == 25
    assert len(server.bodies) == asked + result["n_documents"]


def test_documents_without_words_are_the_reason_not_the_network(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    job = make_job(
        corpus=make_corpus(rows=[("a", "", "😀😃 🚀"), ("b", "", "🌊 🏖️")]).id,
        method="diverse",
        per_doc=4,
        generator="template",
    )
    with pytest.raises(InputError, match="holds no words to build a query from") as caught:
        SynthesisRun(job).execute()
    assert caught.value.kind == "data"


def test_a_corpus_without_recordings_fails_with_the_reason(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    job = make_job(corpus=make_corpus(3).id, generator="recorded")
    with pytest.raises(ConfigError, match="only the demo collection"):  # not a fault of a network
        SynthesisRun(job).execute()


def test_unknown_names_are_refused(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    with pytest.raises(NotFoundError, match="method"):
        SynthesisRun(make_job(corpus=make_corpus(1).id, method="nope"))
    with pytest.raises(NotFoundError, match="corpus"):
        SynthesisRun(make_job(corpus="nope"))


def test_limit_takes_the_first_documents(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    job = make_job(corpus=make_corpus(10).id, limit=4)
    result = SynthesisRun(job).execute()
    assert documents_of(job, result) == ["d0", "d1", "d2", "d3"]
    assert result["complete"]


def test_torn_and_repeated_lines_of_a_killed_run_are_mended(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    job = make_job(corpus=make_corpus(5).id)
    result = SynthesisRun(job).execute()
    path = job.workspace.query_set(result["query_set"]) / "queries.jsonl"
    whole = path.read_bytes()
    kept = whole.splitlines(keepends=True)
    path.write_bytes(kept[3] + kept[1] + kept[4][:25])
    again = SynthesisRun(job).execute()
    assert path.read_bytes() == whole
    assert again["complete"]


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_set_and_says_what_may_be_paid_for_twice(
    server: ChatServer,
    make_corpus: CorpusMaker,
    make_job: JobMaker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server.latency = 0.1
    n = 40
    job = make_job(**settings(server, make_corpus(n).id, concurrency=8))
    for target in (kills := (10, 20, 30) if SOAK else (20,)):
        worker = start_worker(job)
        while len(server.bodies) < target and worker.poll() is None:
            time.sleep(0.005)
        worker.send_signal(signal.SIGKILL)
        worker.communicate(timeout=60)
    (written,) = job.workspace.queries.glob("*/queries.jsonl")
    with open(written, "ab") as file:
        file.write(b'{"document_id": "d39", "quer')  # as a kill in the midst of a line leaves it
    monkeypatch.setenv("CDP_API_KEY", KEY)
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    assert work("cdp.workers.synthesis", job.folder) == 0
    result = read_json(job.results / "synthesis.json")
    assert result["complete"]
    assert documents_of(job, result) == [f"d{i}" for i in range(n)]
    assert result["spent"]["requests"] == n
    # 8 requests under way, and the 2 answers that may wait for their turn to be written down.
    unanswered = result["spent"]["unanswered"]
    assert 0 <= sum(server.answered.values()) - n <= unanswered <= 10 * len(kills), "only what was on its way"
    assert SOAK or f"{unanswered} requests were on the way" in "".join(capfd.readouterr())


def test_a_workspace_is_only_touched_in_its_own_places(
    workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    job = make_job(corpus=make_corpus(2).id)
    SynthesisRun(job).execute()
    assert {path.name for path in workspace.root.iterdir()} <= {"corpora", "jobs", "queries", "llm_cache"}
