"""Every fault at once over many documents, and kill -9 in the midst of it: nothing is lost, nothing is paid for twice.

What can be promised, and is held here by the server's own counts: an answer that reached the disk is never asked for
again. At a kill, up to ``concurrency`` answers may be on their way, sent by the server and not yet written down; nobody
can know of those afterwards, so they, and no others, are asked for once more.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter

import pytest

from cdp import query_sets
from cdp.base.workspace import read_json
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, ChatServer
from tests.synthesis.test_run import settings, start_worker

pytestmark = pytest.mark.slow
RATES = {"429": 0.10, "500": 0.05, "timeout": 0.04, "malformed": 0.05}
CONCURRENCY = 16


def faulty(server: ChatServer) -> None:
    server.rates = RATES
    server.retry_after = "0.02"
    server.latency = 0.01
    server.hang = 1.5


def test_without_a_kill_each_successful_answer_was_requested_once(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    faulty(server)
    n = 120
    job = make_job(
        **settings(server, make_corpus(n).id, concurrency=CONCURRENCY, timeout=1.0, retries=10, output="list")
    )
    run = SynthesisRun(job, api_key=KEY)
    result = run.execute()
    assert result["complete"]
    assert result["n_documents"] + result["failures"] == n
    assert all(server.faults[fault] for fault in RATES)
    answered = sum(server.answered.values())
    lost = sum(server.faults[fault] for fault in ("429", "500", "timeout"))
    assert sum(server.asked.values()) == answered + lost, "every request was answered once or failed"
    assert answered == n + server.faults["malformed"] - twice_malformed(result, run), (
        "one good answer each, and repairs"
    )
    assert result["usage"]["requests"] == answered, "what was paid for is what was answered"
    again = SynthesisRun(make_job(**job.config), api_key=KEY).execute()
    assert sum(server.answered.values()) - answered <= 2 * result["failures"]
    assert again["n_documents"] >= result["n_documents"]


def twice_malformed(result: dict[str, object], run: SynthesisRun) -> int:
    """Documents whose repair was malformed too: they ended without a good answer."""
    return int(str(result["failures"])) + int(str(result["incomplete"]))


@pytest.mark.soak
def test_killed_amid_faults_and_resumed_it_ends_with_the_same_set(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    n, draw = 200, random.Random(4)
    corpus = make_corpus(n)
    whole = SynthesisRun(
        make_job(**settings(server, corpus.id, concurrency=CONCURRENCY, output="list")), api_key=KEY
    ).execute()
    expected = list(query_sets.iter_lines(make_job().workspace, str(whole["query_set"])))
    asked_before = Counter(server.answered)
    faulty(server)
    server.rates = {name: rate for name, rate in RATES.items() if name != "malformed"}
    job = make_job(
        **settings(server, corpus.id, concurrency=CONCURRENCY, timeout=1.0, retries=10, output="list",
                   max_output_tokens=1000)
    )  # fmt: skip
    kills = 0
    begun = len(server.bodies)
    for target in sorted(draw.sample(range(20, n), 2)):
        worker = start_worker(job)
        while len(server.bodies) - begun < target and worker.poll() is None:
            time.sleep(0.003)
        kills += worker.poll() is None
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
    assert kills
    worker = start_worker(job)
    output, _ = worker.communicate(timeout=300)
    assert worker.returncode == 0, output
    result = read_json(job.results / "synthesis.json")
    assert result["complete"]
    found = list(query_sets.iter_lines(job.workspace, result["query_set"]))
    assert [(line["document_id"], line["queries"]) for line in found] == [
        (line["document_id"], line["queries"]) for line in expected
    ]
    answered = server.answered - asked_before
    more_than_once = sum(count - 1 for count in answered.values())
    assert set(answered) == set(asked_before)
    assert more_than_once <= kills * CONCURRENCY, "only what was on its way at a kill is asked for again"
