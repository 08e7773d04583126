"""How much memory does exact search need for a million documents that lie on disk, and how long does it take?

A million random documents of 384 dimensions in ten half-precision shards (0.75 GB), as an evaluation keeps them, and
the best 100 for 1,000 queries. faiss holds the same vectors in memory as float32 (1.5 GB, and more while its index
grows). Each side is a process of its own, so its peak of resident memory is its own, mapped pages included; what both
find is compared.

Time counts from "the shards are there" to "the best 100 are known": faiss has to fill its index first.

    python -m perf.search_from_disk
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from cdp.base.workspace import REPOSITORY
from perf.machine import peak_mib
from perf.timing import Row, paired, show

DOCUMENTS, DIM, K, QUERIES, SHARDS = 1_000_000, 384, 100, 1000, 10
REPEATS = 3
LIMIT_MIB = 3 * 1024


def write(folder: Path) -> None:
    """The shards and the queries."""
    random = np.random.default_rng(0)
    for i in range(SHARDS):
        shard = np.lib.format.open_memmap(
            folder / f"shard-{i}.npy", mode="w+", dtype=np.float16, shape=(DOCUMENTS // SHARDS, DIM)
        )
        for start in range(0, len(shard), 50_000):
            part = random.standard_normal((min(50_000, len(shard) - start), DIM), dtype=np.float32)
            shard[start : start + 50_000] = part / np.linalg.norm(part, axis=1, keepdims=True)
        shard.flush()
    queries = random.standard_normal((QUERIES, DIM), dtype=np.float32)
    np.save(folder / "queries.npy", queries / np.linalg.norm(queries, axis=1, keepdims=True))


def ours(folder: Path) -> np.ndarray:
    """(QUERIES, K) document numbers, from memory maps."""
    from cdp.evaluation import search

    shards = [np.load(folder / f"shard-{i}.npy", mmap_mode="r") for i in range(SHARDS)]
    return search(np.load(folder / "queries.npy"), shards, K)[1]


def peer(folder: Path) -> np.ndarray:
    """The same from faiss."""
    import faiss

    index = faiss.IndexFlatIP(DIM)
    for i in range(SHARDS):
        index.add(np.load(folder / f"shard-{i}.npy").astype(np.float32))
    found: np.ndarray = index.search(np.load(folder / "queries.npy"), K)[1]
    return found


def _in_a_process(side: str, folder: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "perf.search_from_disk", side, str(folder)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run() -> list[Row]:
    """Peak memory and time, ours against faiss; memory also against the 3 GB that it must fit into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        sides = [tuple(_in_a_process(side, folder) for side in ("ours", "peer")) for _ in range(REPEATS)]
        both = [np.load(folder / f"{side}.npy") for side in ("ours", "peer")]

    agreed = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(*both, strict=True)])
    assert agreed > 0.999, agreed
    title = f"search of {DOCUMENTS / 1e6:g} million x {DIM} from disk"
    memory = [[side["mib"] for side in column] for column in zip(*sides, strict=True)]
    times = [[side["seconds"] for side in column] for column in zip(*sides, strict=True)]
    rows = [
        paired(f"{title}, peak memory, faiss", *memory, unit="MiB", target=1.0),
        paired(f"{title}, peak memory, 3 GB", memory[0], [LIMIT_MIB] * REPEATS, unit="MiB", target=1.0),
        paired(f"{title}, time, faiss", *times, target=1.0),
    ]

    show(rows)
    return rows


def _one(side: str, folder: Path) -> None:
    began = time.perf_counter()
    found = {"ours": ours, "peer": peer}[side](folder)
    seconds = time.perf_counter() - began
    np.save(folder / f"{side}.npy", found)
    print(json.dumps({"seconds": seconds, "mib": peak_mib()}))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _one(sys.argv[1], Path(sys.argv[2]))
    else:
        run()
