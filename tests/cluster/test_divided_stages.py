"""One evaluation divided over a cluster whose nodes die under it: what it leaves is what one machine leaves."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import load_benchmark
from cdp.cli import main
from cdp.evaluation import search
from cdp.evaluation.evaluate import length_of
from cdp.evaluation.protocols import protocol_for
from cdp.jobs import Place
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.encode import EmbeddingStore, Encoding
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import start, until, until_state
from tests.support_models import tiny_bert

pytestmark = pytest.mark.slow

DOCUMENTS, QUERIES, SHARD = 6_000, 400, 250


def a_member_elsewhere(workspace: Workspace, cluster: SmallCluster, job_id: str) -> str:
    """The node of a Ray worker of the job that is not also the node of the job's own worker."""

    def elsewhere() -> list[str]:
        nodes = re.findall(r"A Ray worker begins on .*, node (\w+)\.", jobs.read_log(workspace, job_id))
        own = {entry["driver_node_id"] for entry in cluster.submissions(job_id)} if nodes else set()
        return [node for node in nodes if node not in own]

    return str(until(elsewhere, "a Ray worker on another node than the job's", 120.0)[0])


def test_what_dies_changes_nothing(
    tmp_path: Path,
    workspace: Workspace,
    wide_cluster: SmallCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One test, for the cluster takes longer to start than all of it. A node dies while the documents are encoded, and
    another while they are searched, of three."""
    an_evaluation_loses_a_node(tmp_path, workspace, wide_cluster, capsys, monkeypatch)
    a_search_loses_a_node(workspace, wide_cluster)


def an_evaluation_loses_a_node(
    tmp_path: Path,
    workspace: Workspace,
    cluster: SmallCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    benchmark = a_benchmark(tmp_path / "wide")
    model = tiny_bert(tmp_path / "bert", hidden=64, layers=4)
    here = Workspace(tmp_path / "here")
    key = with_small_shards(model, benchmark, here, workspace)
    command = ["evaluate", str(model), "--benchmark", str(benchmark)]
    with monkeypatch.context() as patched:
        patched.setenv("CDP_WORKSPACE", str(here.root))
        assert main([*command, "--on", "here", "--wait"]) == 0
    on = ["--on", cluster.address, "--resources", "workers=2,cpus=1", "--json"]
    capsys.readouterr()
    assert main([*command, *on]) == 0
    job_id = str(json.loads(capsys.readouterr().out)["id"])
    folder = workspace.embeddings / key
    victim = a_member_elsewhere(workspace, cluster, job_id)
    until_it_has_made(workspace, job_id, lambda: len(list(folder.glob("shard-*.npy"))) >= 4)
    cluster.kill(victim)
    made = len(list(folder.glob("shard-*.npy")))
    assert made < DOCUMENTS // SHARD, "it was in the middle"
    job = until_state(workspace, job_id, "finished", "failed", patience_s=240.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    assert "A Ray worker was lost with part" in jobs.read_log(workspace, job_id)
    assert len(list(folder.glob("shard-*.npy"))) == DOCUMENTS // SHARD
    assert shards(workspace) == shards(here)
    (alone,) = here.jobs.glob("*/results")
    there = workspace.job(job_id) / "results"
    assert (there / "run.parquet").read_bytes() == (alone / "run.parquet").read_bytes()
    found, expected = (read_json(results / "evaluation.json") for results in (there, alone))
    for name in ("measures", "per_query", "retriever", "benchmark", "settings", "counts"):
        assert found[name] == expected[name], name


def until_it_has_made(workspace: Workspace, job_id: str, condition: Callable[[], bool]) -> None:
    """Wait until the job has done so much; no longer where it has failed."""
    until(lambda: condition() or jobs.view(workspace, job_id).state == "failed", "a part of the work", 180.0)
    job = jobs.view(workspace, job_id)
    assert job.state == "running", (job.failure, jobs.read_log(workspace, job_id))


def shards(workspace: Workspace) -> dict[str, bytes]:
    paths = workspace.embeddings.rglob("shard-*.npy")
    return {str(path.relative_to(workspace.embeddings)): path.read_bytes() for path in sorted(paths)}


def a_benchmark(folder: Path) -> Path:
    """Documents of many lengths; the queries are pieces of some."""
    words, rng = [f"w{i:x}" for i in range(3000)], random.Random(4)
    documents = {f"d{i}": " ".join(rng.choices(words, k=rng.randint(5, 60))) for i in range(DOCUMENTS)}
    queries = {f"q{i}": " ".join(documents[f"d{7 * i}"].split()[:6]) for i in range(QUERIES)}
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = (json.dumps({"_id": key, "text": text}) for key, text in texts.items())
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    rows = "".join(f"q{i}\td{7 * i}\t1\n" for i in range(QUERIES))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def with_small_shards(model: Path, benchmark: Path, *workspaces: Workspace) -> str:
    """Begin the documents' embeddings in shards small enough that many are made; the name of their folder."""
    loaded = load(resolve(str(model), workspaces[0]), "cpu")
    protocol = protocol_for(loaded, "published")
    encoding = Encoding(
        model_hash(loaded), "document", protocol.document_prompt, protocol.normalise, length_of(loaded), "fp32"
    )
    key = encoding.key(load_benchmark(benchmark).documents_hash)
    for workspace in workspaces:
        write_json(EmbeddingStore(workspace).folder(key) / "manifest.json", {"schema": 1, "shard_texts": SHARD})
    return key


def a_search_loses_a_node(workspace: Workspace, cluster: SmallCluster) -> None:
    rng = np.random.default_rng(7)
    queries = rng.standard_normal((500, 64)).astype(np.float32)
    documents = rng.standard_normal((40_000, 64)).astype(np.float16)
    documents[20_000:] = documents[:20_000]  # so that every score is there twice
    np.save(workspace.root / "q-0.npy", queries)
    for i in range(8):
        np.save(workspace.root / f"d-{i}.npy", documents[i * 5000 : (i + 1) * 5000])
    with jobs.choosing(Place(cluster.address, workers=2)):
        job_id = start(workspace, "searching", divides=True)

    until_it_has_made(workspace, job_id, (workspace.job(job_id) / "paused").exists)
    cluster.kill(a_member_elsewhere(workspace, cluster, job_id))
    (workspace.job(job_id) / "go").touch()
    job = until_state(workspace, job_id, "finished", "failed", patience_s=120.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    assert "A Ray worker was lost" in jobs.read_log(workspace, job_id)
    expected = search(queries, documents, 100)
    found = np.load(workspace.job(job_id) / "found.npz")
    assert found["scores"].tobytes() == expected[0].tobytes()
    assert found["numbers"].tobytes() == expected[1].tobytes()
