"""What does it cost to have one Ray worker encode and search, against the same in one process, and what memory has it?

200,000 texts of some 90 characters by static-minilm (384 dimensions), whose table is so fast that sending the texts
weighs most, then the best 100 for 1,000 queries over what was stored. Both sides compute with one thread and load their
model, and encode one shard, before any time is taken; a cluster of one node with one CPU is started on this machine.
Results are compared byte for byte. Processor time is that of the job's process and the Ray worker; Ray's own servers
are not in it.

Memory is the peak of the Ray worker's process and of the job's own, mapped pages included, after 100,000 and after two
million documents.

    python -m perf.crew
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.crew import VARIABLE
from cdp.base.texts import Texts
from cdp.base.workspace import REPOSITORY, Workspace, sha256_file, write_json
from perf.timing import Row, paired, show

DOCUMENTS, QUERIES, K = 200_000, 1000, 100
FEW, MANY = 100_000, 2_000_000
REPEATS = 2
STORE = 300 * 2**20
GOAL = 1 / 1.1


def texts(n: int, seed: int) -> Sequence[str]:
    """Texts of 12 words, no two alike, as a benchmark holds its documents."""
    words = np.random.default_rng(1).integers(0, 26**3, (5000, 12))
    base = [
        " ".join(f"{chr(97 + w // 676)}{chr(97 + w // 26 % 26)}{chr(97 + w % 26)}rds" for w in row) for row in words
    ]
    taken = Texts()
    for i in range(n):
        taken.append(f"{seed} {i} {base[i % len(base)]}")
    return taken.sequence()


def usage(_: int) -> tuple[float, float]:
    """Peak memory of the process that does it, in MiB, and its processor seconds."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.process_time()


def side(who: str, folder: Path, n: int) -> dict[str, Any]:
    """Encode and search in this process, or by one Ray worker: seconds of each, and what was found."""
    from cdp.jobs import crew as crews
    from cdp.retrievers import load, model_hash, resolve
    from cdp.retrievers.divided import Elsewhere
    from cdp.retrievers.encode import SHARD_TEXTS, EmbeddingStore, Encoding
    from cdp.retrievers.exact_search.divided import search_by

    workspace, job = Workspace(folder), folder / "jobs" / "perf"
    about = {"id": "perf", "kind": "perf", "name": "perf", "module": "perf.crew", "config": {}, "created": ""}
    write_json(job / "spec.json", about)
    own = crews.of(job) if who == "ours" else None
    model = load(resolve("static-minilm", workspace), "cpu")
    identity = model_hash(model)
    store = EmbeddingStore(workspace, makers=Elsewhere(own, workspace, "static-minilm") if own else None)

    def encoded(role: str, these: Sequence[str], named: str) -> Any:
        return store.get(lambda: model, these, Encoding(identity, role), hash_of_texts=named).parts

    def processor_seconds() -> float:
        there = [answer[1] for _, answer in own.each(usage, [0])] if own else []
        return time.process_time() + sum(there)

    began = time.perf_counter()
    encoded("document", texts(SHARD_TEXTS, 9), "first")
    found: dict[str, Any] = {"start": time.perf_counter() - began}
    queries = encoded("query", texts(QUERIES, 2), "queries")
    these = texts(n, 1)
    cpu, began = processor_seconds(), time.perf_counter()
    documents = encoded("document", these, "documents")
    found["encoding"] = time.perf_counter() - began
    found["encoding, processor"] = processor_seconds() - cpu
    search_by(own, queries, documents[:1], K)
    cpu, began = processor_seconds(), time.perf_counter()
    best = search_by(own, queries, documents, K)
    found["search"] = time.perf_counter() - began
    found["search, processor"] = processor_seconds() - cpu
    found["worker"] = next(answer[0] for _, answer in own.each(usage, [0])) if own else 0.0
    found["job"] = usage(0)[0]
    np.savez(folder / "best.npz", *best)
    files = [*sorted(workspace.embeddings.rglob("shard-*.npy")), folder / "best.npz"]
    found["hashes"] = [sha256_file(path) for path in files]
    return found


def run() -> list[Row]:
    """Rows for encoding, search and memory; none where there is no Ray."""
    if importlib.util.find_spec("ray") is None:
        print("not run: Ray is not installed (pip install -r requirements-cluster.txt -c constraints.txt)")
        return []
    with subprocess.Popen(
        [sys.executable, "-m", "perf.crew", "cluster"],
        cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as cluster:  # fmt: skip
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        assert address, "the cluster did not start"
        sides = [(_in_a_process("ours", address), _in_a_process("peer", address)) for _ in range(REPEATS)]
        many, few = (_in_a_process("ours", address, n) for n in (MANY, FEW))
        cluster.communicate()
    for ours, peer in sides:
        assert ours["hashes"] == peer["hashes"], "the results differ"
    rows = []
    for what in ("encoding", "search"):
        title = f"{what}, {DOCUMENTS:,} x 384, by one Ray worker, in one process"
        for name, key in ((title, what), (f"{title}, processor time", f"{what}, processor")):
            rows.append(paired(name, [o[key] for o, _ in sides], [p[key] for _, p in sides], target=GOAL))
    starts = [o["start"] for o, _ in sides], [p["start"] for _, p in sides]
    rows.append(
        paired("until a first shard is there, model loaded, by one Ray worker, in one process", *starts, target=0)
    )
    for whose, key in (("a Ray worker", "worker"), ("the job's own process", "job")):
        title = f"peak memory of {whose}, {MANY:,} documents, {FEW:,}"
        rows.append(paired(title, [many[key]], [few[key]], unit="MiB", target=0.9))
    show(rows)
    return rows


def _in_a_process(who: str, address: str, n: int = DOCUMENTS) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "RAY_ADDRESS": address, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        environment[VARIABLE] = json.dumps({"workers": 1, "cpus": 1})
        done = subprocess.run(
            [sys.executable, "-m", "perf.crew", who, folder, str(n)],
            cwd=REPOSITORY, env={**environment, "CDP_WORKSPACE": folder}, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def cluster() -> None:
    """Hold a cluster of one node with one CPU until the end of the input; its address is printed."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        # Ray has its workers give way to everything else on a machine; the process that they are held against does not.
        os.environ.update(RAY_TMPDIR=folder, RAY_worker_niceness="0")
        from ray.cluster_utils import Cluster

        settings = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE}
        own = Cluster(initialize_head=True, head_node_args=settings)
        try:
            print(own.address, flush=True)
            sys.stdin.read()
        finally:
            own.shutdown()


def main() -> None:
    """One of the processes, or all of it."""
    if sys.argv[1:] == ["cluster"]:
        cluster()
    elif len(sys.argv) == 4:
        print(json.dumps(side(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        run()


if __name__ == "__main__":
    from perf.crew import main as by_its_name  # Ray workers know what is to be done by the name of its module

    by_its_name()
