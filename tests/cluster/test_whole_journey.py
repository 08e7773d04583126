"""One whole journey on a cluster, as a user types it, in one workspace: documents, queries, measures, evaluation,
training, evaluation, comparison. A node dies in every stage and a new one takes its place; in the last the head dies.

What it leaves is what the same journey leaves that nothing befalls on one machine: the query set, the measures and the
embeddings to the byte, what is found and its scores exactly. The weights are those of two processes of one machine bit
for bit, and within ``CLOSE`` those of one, which is what a user has there. No answer that is kept is paid for twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from cdp import jobs
from cdp.base.workspace import Workspace, append_jsonl, read_json, read_jsonl
from cdp.services.workspace import demo
from cdp.synthesis.journal import folder_of, journals, outcomes
from tests.cluster.conftest import SmallCluster, of_nodes
from tests.cluster.dashboard import launched, runs_in_compare
from tests.cluster.journey import NODE_CPUS, PATIENCE_S, Journey, Upload, numbers, same_files, same_results
from tests.cluster.support import SHARD, a_benchmark, made_shards, shards, with_small_shards
from tests.jobs.support import until, until_state
from tests.metrics.models import tiny_cross_encoder
from tests.support import REPOSITORY
from tests.support_models import tiny_retriever
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server, document_of

pytestmark = pytest.mark.slow

DOCUMENTS, QUERIES = 4_000, 300
N, PER_DOC, CONCURRENCY = 120, 3, 4
"""Documents that get queries, queries for each, and requests that each Ray worker has on their way."""

RATE = "1e-4"
CLOSE = 1e-5
"""How far a weight of one process may be from that of two, which add up gradients in another order: a tenth of what a
weight moves in a step. The largest distance measured was 1.7e-6, without ``UNMOVED``."""

UNMOVED = ("attention.self.key.bias", "pooler.")
"""Weights that change no embedding: their gradient is nothing but rounding, of which Adam makes whole steps."""

TOLD_S = 15.0
"""Within how long a job whose cluster lost its head is to say so."""


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[SmallCluster]:
    """A head and three nodes of this journey's own: not one of them sees its end."""
    yield from of_nodes(NODE_CPUS, NODE_CPUS, NODE_CPUS)


@pytest.fixture(scope="module")
def upload(tmp_path_factory: pytest.TempPathFactory) -> Upload:
    folder = tmp_path_factory.mktemp("upload")
    benchmark = a_benchmark(folder / "wide", DOCUMENTS, QUERIES)
    documents = list(read_jsonl(benchmark / "corpus.jsonl"))[:N]
    append_jsonl(folder / "things.jsonl", documents)
    retriever, scorer = tiny_retriever(folder / "tiny", hidden=64), tiny_cross_encoder(folder / "scorer")
    return Upload(folder / "things.jsonl", benchmark, retriever, scorer)


def pieces(prompt: str, m: int) -> str:
    """Queries of words of the document."""
    words = document_of(prompt).split() * 4
    return "\n".join(f"{i}. where is {' '.join(words[3 * i : 3 * i + 4])}" for i in range(m)).removeprefix("0. ")


def test_a_training_from_launch(
    own_cluster: SmallCluster, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page as a user presses it: evaluated untrained, trained and evaluated on the nodes, and shown in Compare."""
    demo.load(workspace)
    done = launched(workspace, own_cluster, monkeypatch, "train", {}, name="from the page")
    assert sorted(job.kind for job in done) == ["evaluation", "evaluation", "training"]
    (training,) = (job.id for job in done if job.kind == "training")
    assert read_json(workspace.job(training) / "results" / "training.json")["processes"] == 2
    assert set(runs_in_compare()) >= {"from the page"}


def test_what_dies_on_the_way_changes_nothing(
    own_cluster: SmallCluster, upload: Upload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test: each stage stands on the one before it, and no cluster is started twice."""
    monkeypatch.setenv("CDP_API_KEY", KEY)
    here = Journey(Workspace(tmp_path / "here"), upload)
    there = Journey(Workspace(tmp_path / "there"), upload, own_cluster)
    with chat_server() as server:
        monkeypatch.setenv("CDP_BASE_URL", server.url)
        for journey in (here, there):
            server.asked.clear()
            server.answered.clear()
            server.latency = 0.4 if journey.cluster else 0.0
            documents_are_added(journey)
            queries_are_written(journey, server)
    same_files(here, there, "queries", "queries/{query_set}/queries.jsonl")
    for journey in (here, there):
        queries_are_measured(journey)
    for name in ("results/pair_scores.jsonl", "checkpoints/pair_scores.f32", "checkpoints/diversity.f32"):
        same_files(here, there, "measures", f"jobs/{{measures}}/{name}")
    same_results(here, there, "measures", "metrics", ("measures", "values", "per_document", "pairs"))

    for journey in (here, there):
        the_untrained_is_evaluated(journey)
        it_is_trained(journey)
    apart = furthest_apart(here, there)
    print(f"weights of one process and of two: {apart:.1e} apart")
    assert apart < CLOSE
    model = in_two_processes_of_this_machine(here)
    trained = [read_json(folder.parent / "results" / "training.json") for folder in (model, there.model)]
    assert trained[0]["model_hash"] == trained[1]["model_hash"], "bit for bit"

    the_trained_is_evaluated(here, str(model), model)
    the_trained_is_evaluated(there, "tuned", there.model)
    for stage in ("before", "after"):
        same_files(here, there, stage, f"jobs/{{{stage}}}/results/run.parquet")
        same_results(here, there, stage, "evaluation", ("measures", "per_query"))
    assert shards(here.workspace) == shards(there.workspace)
    assert len(shards(here.workspace)) > 2 * DOCUMENTS // SHARD
    compared = [numbers(journey) for journey in (here, there)]
    assert compared[0] == compared[1]


def documents_are_added(journey: Journey) -> None:
    if journey.cluster:
        journey.type("cluster", "use", journey.cluster.address)
    journey.made["corpus"] = str(journey.type("corpus", "add", str(journey.upload.documents))["id"])
    journey.type("benchmarks", "add", str(journey.upload.benchmark), "--name", "wide")


def queries_are_written(journey: Journey, server: ChatServer) -> None:
    """Whatever was answered and on disk when a node died is never asked for again."""
    sets = {"model": MODEL, "base_url": server.url, "concurrency": CONCURRENCY // 2}
    job_id = journey.begin("queries", "queries", "generate", "--corpus", journey.made["corpus"],
                           "--generator", "openai", "--per-doc", str(PER_DOC), **sets)  # fmt: skip
    kept: set[str] = set()
    if journey.cluster:
        kept = journey.loses_a_node(job_id, lambda: lines_of(journey, job_id))
    journey.end(job_id, "A Ray worker was lost with part")
    result = journey.result("queries", "synthesis")
    journey.made["query_set"] = str(result["query_set"])
    twice = {name for name, n in server.asked.items() if n > 1}
    assert (len(server.asked), result["spent"]["requests"]) == (N, N)
    assert sum(server.asked.values()) - N <= min(CONCURRENCY, result["spent"].get("unanswered", 0))
    ids = {str(line["text"])[:60]: str(line["_id"]) for line in read_jsonl(journey.upload.documents)}
    assert not {ids[name] for name in twice} & kept, "paid for twice"


def lines_of(journey: Journey, job_id: str) -> set[str]:
    """Documents that two workers have finished, a dozen of them at least; else none."""
    files = journals(folder_of(journey.workspace.job(job_id)))
    done = [{str(line["document_id"]) for line, _ in outcomes(path) if line} for path in files]
    return set().union(*done) if len(done) >= 2 and sum(map(len, done)) >= 12 else set()


def queries_are_measured(journey: Journey) -> None:
    upload = journey.upload
    job_id = journey.begin("measures", "metrics", journey.made["query_set"], scorer=upload.scorer,
                           encoder=upload.retriever, batch_size=16)  # fmt: skip
    if journey.cluster:
        journey.loses_a_node(job_id)
    journey.end(job_id, "A Ray worker was lost with part")


def the_untrained_is_evaluated(journey: Journey) -> None:
    key = with_small_shards(journey.upload.retriever, journey.upload.benchmark, journey.workspace)
    job_id = journey.begin("before", "evaluate", str(journey.upload.retriever), "--benchmark", "wide")
    if journey.cluster:
        journey.loses_a_node(job_id, lambda: len(made_shards(journey.workspace, key)) >= 4)
        assert len(made_shards(journey.workspace, key)) < DOCUMENTS // SHARD, "it was in the middle"
    journey.end(job_id, "A Ray worker was lost with part")


def it_is_trained(journey: Journey) -> None:
    retriever = str(journey.upload.retriever)
    job_id = journey.begin("training", "train", journey.made["query_set"], "--retriever", retriever, "--name", "tuned",
                           batch_size=16, epochs=2, save_steps=5, learning_rate=RATE)  # fmt: skip
    if journey.cluster:
        journey.loses_a_node(job_id, lambda: steps(journey, job_id) > 10)
    journey.end(job_id, "The group of 2 lost a process")


def in_two_processes_of_this_machine(journey: Journey) -> Path:
    """The same training as torch's launcher starts it; the model."""
    folder = journey.workspace.job("two")
    folder.mkdir()
    spec = journey.workspace.job(journey.made["training"]) / "spec.json"
    (folder / "spec.json").write_bytes(spec.read_bytes())
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, "-m", "cdp.workers.training", str(folder)],
        env={**os.environ, "ACCELERATE_USE_CPU": "true", "TOKENIZERS_PARALLELISM": "false"},
        cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "model"


def the_trained_is_evaluated(journey: Journey, retriever: str, model: Path) -> None:
    key = with_small_shards(model, journey.upload.benchmark, journey.workspace)
    job_id = journey.begin("after", "evaluate", retriever, "--benchmark", "wide")
    if journey.cluster:
        until(
            lambda: journey.log(job_id) is not None and len(made_shards(journey.workspace, key)) >= 4,
            "shards",
            PATIENCE_S,
        )
        loses_its_head(journey, journey.cluster, job_id, key)
    journey.end(job_id)


def loses_its_head(journey: Journey, cluster: SmallCluster, job_id: str, key: str) -> None:
    """The job says so in time; once the head is back, it goes on with the shards that it had."""
    cluster.kill("head")  # its Ray workers go on until the job's own worker ends
    died = time.monotonic()
    assert len(made_shards(journey.workspace, key)) < DOCUMENTS // SHARD, "it was in the middle"
    job = until_state(journey.workspace, job_id, "failed", "finished", "lost", patience_s=60.0)
    told_s = time.monotonic() - died
    assert job.failure is not None, job.state
    assert (job.state, job.failure["kind"]) == ("failed", "cluster")
    assert job.failure["message"].startswith(f"The cluster at {cluster.address} has not answered for")
    assert "resume the job" in job.failure["hint"]
    print(f"the head's death was told after {told_s:.1f} s")
    assert told_s < TOLD_S
    made = {path: path.stat().st_mtime_ns for path in made_shards(journey.workspace, key)}
    cluster.head_returns()
    journey.type("jobs", "resume", job_id)
    journey.end(job_id)
    assert jobs.view(journey.workspace, job_id).attempt == 2
    assert {path: path.stat().st_mtime_ns for path in made} == made, "no shard was made twice"


def steps(journey: Journey, job_id: str) -> int:
    job = jobs.view(journey.workspace, job_id, with_size=False)
    return job.done if job.phase == "training" else 0


def furthest_apart(here: Journey, there: Journey) -> float:
    """The largest distance between a weight of one model and that of another."""
    one, other = (load_file(journey.model / "model.safetensors") for journey in (here, there))
    assert one.keys() == other.keys()
    moved = [name for name in one if not any(part in name for part in UNMOVED)]
    return max(float(abs(one[name].astype("f8") - other[name].astype("f8")).max()) for name in moved)
