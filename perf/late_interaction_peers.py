"""Exact MaxSim against PyLate's and sentence-transformers' own scoring: seconds, and peak memory.

10,000 documents of 120 token vectors, 128 dimensions; 100 queries of 32. A token vector lies near that of its word, one
of 4,000 drawn by Zipf's law. Ours reads float16 from the disk, the others hold what they ask for (``token_peers``).
Each side has a process; processor seconds of all threads, in turns. The exact ones must find the same documents.

``make interop`` makes PyLate's environment. ``perf.fast_plaid`` does the same with an approximate index.

    python -m perf late_interaction_peers
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.workspace import REPOSITORY
from perf.timing import Row, paired
from perf.token_peers import CANDIDATES

DOCUMENTS, LENGTH, DIM = 10_000, 120, 128
QUERIES, QUERY_LENGTH = 100, 32
WORDS, NOISE = 4_000, 0.6
REPEATS, RERANKED = 3, 50

# The environment of each peer, under build/interop; the library is in ours.
ENVIRONMENTS = {"ours": "", "sentence-transformers": "", "PyLate": "pylate", "fast-plaid": "fast-plaid"}


class Side:
    """A process that works when it is asked to."""

    def __init__(self, name: str, folder: Path) -> None:
        environment = ENVIRONMENTS[name]
        python = REPOSITORY / "build" / "interop" / environment / "bin" / "python" if environment else sys.executable
        if not Path(python).exists():
            raise SystemExit(f"There is no environment of {name}, {python}.")

        # A peer's has no ``perf``, which ours needs to be found.
        program = ["-m", "perf.token_peers"] if not environment else ["-I", REPOSITORY / "perf" / "token_peers.py"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, *program, name, folder], cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True
        )
        self.does: list[str] = json.loads(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def seconds(self, what: str) -> float:
        """Processor seconds of doing it once."""
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        return float(self._answer())

    def end(self) -> dict[str, Any]:
        """Its peak memory in MiB, and what it found."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        told: dict[str, Any] = json.loads(self._answer())
        self.process.wait()

        return told


def run() -> list[Row]:
    """The exact peers, which must find what ours finds."""
    rows, agreed = beside("sentence-transformers", "PyLate")
    assert min(agreed.values()) > 0.99, agreed

    return rows


def beside(*peers: str, documents: int = DOCUMENTS) -> tuple[list[Row], dict[str, float]]:
    """Return rows of seconds and of memory, and the share of our best documents that each peer finds."""
    folder = given(documents)
    of = "MaxSim from the disk" if documents == DOCUMENTS else f"MaxSim of {documents:,} documents from the disk"
    sides = {name: Side(name, folder) for name in ("ours", *peers)}
    times: dict[str, dict[str, list[float]]] = {}
    for name, side in sides.items():
        side.seconds("one")  # loads what is loaded once
        times[name] = {what: [] for what in side.does}

    for what, repeats in (("all", REPEATS), ("candidates", RERANKED)):
        for _ in range(repeats):
            for name, side in sides.items():
                if what in side.does:
                    times[name][what].append(side.seconds(what))

    told = {name: side.end() for name, side in sides.items()}
    found = {name: np.array(each["found"]["all"]) for name, each in told.items()}
    rows, agreed = [], {}
    for name in peers:
        for what, title in (("all", f"{QUERIES} queries"), ("candidates", f"{CANDIDATES} candidates")):
            if what in times[name]:
                mine, theirs = times["ours"][what], times[name][what]
                rows.append(paired(f"{of}, {title}, {name}", mine, theirs, target=1.0))

        peaks = [told["ours"]["peak_mib"]], [told[name]["peak_mib"]]
        rows.append(paired(f"{of}, peak memory, {name}", *peaks, unit="MiB", target=2.0))
        shares = [np.isin(*pair).mean() for pair in zip(found[name], found["ours"], strict=True)]
        agreed[name] = float(np.mean(shares))

    return rows, agreed


def given(documents: int = DOCUMENTS) -> Path:
    """Return the folder with documents, queries and candidates for all sides, which are written once."""
    folder = REPOSITORY / "build" / "perf" / f"late_interaction_{documents}"
    if not (folder / "candidates.npy").exists():
        write(folder, documents)

    return folder


def write(folder: Path, documents: int) -> None:
    """Write what ``given`` returns."""
    random = np.random.default_rng(0)
    words = unit(random.standard_normal((WORDS, DIM), dtype=np.float32))
    often = 1 / np.arange(1, WORDS + 1)

    def tokens(n: int) -> np.ndarray:
        drawn = words[random.choice(WORDS, n, p=often / often.sum())]
        return unit(drawn + NOISE * unit(random.standard_normal((n, DIM), dtype=np.float32)))

    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "documents.npy", tokens(documents * LENGTH).astype(np.float16))
    np.save(folder / "queries.npy", tokens(QUERIES * QUERY_LENGTH).reshape(QUERIES, QUERY_LENGTH, DIM))
    np.save(folder / "lengths.npy", np.full(documents, LENGTH))
    np.save(folder / "candidates.npy", np.sort(random.choice(documents, CANDIDATES, replace=False)))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
