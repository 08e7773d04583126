"""Queries written and measured by two Ray workers, of which one dies with its node: what one machine has, and no more
paid for than was on its way.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from cdp import jobs, query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, append_jsonl, new_id, read_json, write_json
from cdp.cli import main
from cdp.corpus import read_documents, store
from cdp.jobs import Place
from cdp.services import queries
from cdp.synthesis.journal import folder_of, journals, outcomes
from cdp.synthesis.run import Run
from cdp.workers import metrics
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import until, until_state
from tests.metrics.models import tiny_cross_encoder, write_job
from tests.support_models import tiny_retriever
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server, document_of, numbered

pytestmark = pytest.mark.slow

N = 160
CONCURRENCY = 4


def command(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code = main([*words, "--json"])
    answer = capsys.readouterr()
    assert code == 0, answer.err
    read: dict[str, Any] = json.loads(answer.out)
    return read


def mixed(prompt: str, m: int) -> str:
    """Most answers are good; some hold no query, some too few."""
    number = int(document_of(prompt).split()[0].removeprefix("Thing"))
    if number % 37 == 5:
        return "I'm sorry, but I cannot do that."
    return "1. just one query" if number % 31 == 7 else numbered(prompt, m)


def corpus_of(workspace: Workspace, folder: Path) -> str:
    """With the same document twice now and then."""
    words = ["wheel", "device", "iron", "rust", "water", "turns", "sells", "why", "how", "where", "price"]
    texts = [f"Thing{i % 150} turns. " + " ".join(random.Random(i % 150).choices(words, k=25)) for i in range(N)]
    path = folder / "things.jsonl"
    append_jsonl(path, [{"_id": f"d{i}", "text": text} for i, text in enumerate(texts)])
    with read_documents(path) as result:
        return store(result, "things", workspace).id


def files_of(workspace: Workspace, query_set: str) -> tuple[bytes, bytes, str, int, int]:
    files, manifest = query_sets.files(workspace, query_set), query_sets.load(workspace, query_set)
    return (
        files.queries.read_bytes(),
        files.failures.read_bytes(),
        manifest.content_hash,
        manifest.n_queries,
        manifest.n_failures,
    )


def test_queries_and_their_measures(
    workspace: Workspace,
    wide_cluster: SmallCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """One test, for the cluster takes longer to start than all of it."""
    monkeypatch.setenv("CDP_API_KEY", KEY)
    until(lambda: main(["cluster", "use", wide_cluster.address]) == 0, "the cluster to take jobs")
    capsys.readouterr()
    corpus = corpus_of(workspace, tmp_path)
    alone = Workspace(tmp_path / "alone")
    shutil.copytree(workspace.root, alone.root)
    with chat_server() as server:
        monkeypatch.setenv("CDP_BASE_URL", server.url)
        server.answer = mixed
        query_set = written(workspace, alone, wide_cluster, server, corpus, capsys)
        asked = server.asked.copy()
        words = the_words(server, corpus)
        again = command(capsys, "queries", "generate", *words, "--on", wide_cluster.address,
                        "--resources", "workers=2", "--wait")  # fmt: skip
        assert server.asked == asked, "all its answers are kept: nobody is asked"
        assert read_json(workspace.job(str(again["id"])) / "results" / "synthesis.json")["spent"]["requests"] == 0
        stopped_and_resumed(workspace, wide_cluster, server, str(again["id"]))
    measured(workspace, wide_cluster, query_set, capsys, tmp_path)


def the_words(server: ChatServer, corpus: str) -> list[str]:
    sets = {"model": MODEL, "base_url": server.url, "concurrency": CONCURRENCY}
    options = [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    return ["--corpus", corpus, "--generator", "openai", "--per-doc", "3", *options]


def written(
    workspace: Workspace, alone: Workspace, cluster: SmallCluster, server: ChatServer, corpus: str,
    capsys: pytest.CaptureFixture[str],
) -> str:  # fmt: skip
    """A run that loses a node, against one that nothing befalls."""
    server.latency = 1.0
    words = the_words(server, corpus)
    job_id = str(
        command(capsys, "queries", "generate", *words, "--on", cluster.address, "--resources", "workers=2")["id"]
    )
    folder = folder_of(workspace.job(job_id))

    def parts_at_work() -> bool:
        job = jobs.view(workspace, job_id, with_size=False)
        assert job.active, job.failure
        n_lines = [sum(1 for _ in outcomes(path)) for path in journals(folder)]
        return len(n_lines) >= 2 and min(n_lines) >= 4

    until(parts_at_work, "both workers to have written some lines", 180.0)
    own = cluster.submissions(job_id)[0]["driver_node_id"]

    def elsewhere() -> list[str]:
        listed = httpx.get(f"{cluster.address}/api/v0/actors?detail=true&limit=1000", timeout=30).json()
        members = [actor for actor in listed["data"]["result"]["result"] if actor["state"] == "ALIVE"]
        return [actor["node_id"] for actor in members if actor["node_id"] != own]

    victim = str(until(elsewhere, "a Ray worker on another node than the job's own worker")[0])
    cluster.kill(victim)
    job = until_state(workspace, job_id, "finished", "failed", patience_s=240.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    assert "A Ray worker was lost with part" in jobs.read_log(workspace, job_id)
    result = read_json(workspace.job(job_id) / "results" / "synthesis.json")
    assert (result["complete"], result["n_documents"] + result["failures"]) == (True, N)
    n_twice = sum(server.asked.values()) - result["spent"]["requests"]
    assert 0 <= n_twice <= CONCURRENCY, "what the dead worker had on its way, and nothing else, was asked for again"
    assert n_twice <= result["spent"].get("unanswered", 0) <= CONCURRENCY + 2, "and it is in the books"
    assert not folder.exists()

    server.latency = 0.0
    before = sum(server.asked.values())
    folder_alone = alone.job(job_id)
    write_json(folder_alone / "spec.json", read_json(workspace.job(job_id) / "spec.json"))
    expected = Run(Job(folder_alone)).execute()
    assert sum(server.asked.values()) - before == expected["spent"]["requests"]
    assert result["spent"]["requests"] == expected["spent"]["requests"]
    query_set = str(result["query_set"])
    assert files_of(workspace, query_set) == files_of(alone, query_set)
    assert KEY.encode() not in b"".join(p.read_bytes() for p in workspace.root.rglob("*") if p.is_file())
    return query_set


def stopped_and_resumed(workspace: Workspace, cluster: SmallCluster, server: ChatServer, like: str) -> None:
    """What is on its way when a stop is asked for is waited for, and nobody asks for it again."""
    server.latency = 0.5
    server.asked.clear()
    with jobs.choosing(Place(cluster.address, workers=2)):
        config = {**read_json(workspace.job(like) / "spec.json")["config"], "per_doc": 2}
        job_id = queries.generate(workspace, SynthesisConfig.from_dict(config), api_key=KEY)
    until(lambda: sum(server.asked.values()) >= 20, "some requests", 180.0)
    jobs.stop(workspace, job_id)
    job = until_state(workspace, job_id, "stopped", "failed", "finished", patience_s=60.0)
    assert job.state == "stopped", jobs.read_log(workspace, job_id)
    result = read_json(job.folder / "results" / "synthesis.json")
    n_asked = sum(server.asked.values())
    assert 0 < result["n_documents"] < N
    assert (result["spent"]["requests"], "unanswered" in result["spent"]) == (n_asked, False)
    server.latency = 0.0
    jobs.resume(workspace, job_id, env_secrets={"CDP_API_KEY": KEY})
    job = until_state(workspace, job_id, "finished", "failed", patience_s=240.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    result = read_json(job.folder / "results" / "synthesis.json")
    assert result["complete"]
    assert sum(server.asked.values()) == result["spent"]["requests"]
    assert max(server.asked.values()) <= 2, "an answer that cannot be used is asked for once more, and no other"


def measured(
    workspace: Workspace, cluster: SmallCluster, query_set: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The models' measures by two workers, against one machine's; the set came with those that need none."""
    assert query_sets.measured.measured(workspace, query_set, ["self_bleu", "cw"])
    models = {"scorer": str(tiny_cross_encoder(tmp_path / "ce")), "encoder": str(tiny_retriever(tmp_path / "tiny"))}
    options = [word for name, value in models.items() for word in ("--set", f"{name}={value}")]
    done = command(capsys, "metrics", query_set, *options, "--set", "batch_size=16", "--on", cluster.address,
                   "--resources", "workers=2,cpus=1", "--wait")  # fmt: skip
    there = workspace.job(str(done["id"]))
    here = write_job(workspace, new_id("metrics"), **read_json(there / "spec.json")["config"])
    metrics.measure(Job(here), None)
    results = [read_json(folder / "results" / "metrics.json") for folder in (there, here)]
    for result in results:
        result.pop("created")
    assert results[0] == results[1]
    names = ("results/pair_scores.jsonl", "checkpoints/pair_scores.f32", "checkpoints/diversity.f32")
    for name in names:
        assert (there / name).read_bytes() == (here / name).read_bytes(), name
