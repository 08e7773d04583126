"""All peers: ``python -m tests.interop``, which is ``make interop``.

Each has an environment of its own in build/interop, made once: torch first, for else its CUDA comes along. Exit code 1:
a peer read something else than was written here; 2: one could not be installed.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cdp.retrievers.spelling import TESTED
from tests.interop.models import TEXTS, VECTORS, save_all
from tests.interop.trackers import WRITES_TRACKIO
from tests.support import REPOSITORY

TORCH = "torch==2.13.0"
TOLERANCE = 1e-6
# Run by a peer's Python, without this repository: the largest difference of each model.
READS_MODELS = f"""
import sys, numpy, transformers, sentence_transformers
print("sentence-transformers", sentence_transformers.__version__, "transformers", transformers.__version__)
for folder in sys.argv[1:]:
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    difference = float(abs(model.encode({TEXTS!r}) - numpy.load(folder + "/{VECTORS}")).max())
    print(folder.rpartition("/")[2], difference, model.max_seq_length)
    assert difference <= {TOLERANCE}, folder
"""


@dataclass(frozen=True)
class Peer:
    """One environment: what is installed in it, and the program that is run in it on the saved models."""

    name: str
    packages: tuple[str, ...]
    program: str = READS_MODELS


PEERS = tuple(Peer(f"sentence-transformers-{version}", (f"sentence-transformers=={version}",)) for version in TESTED)
PEERS += (Peer("trackio-0.43.0", ("trackio==0.43.0", "accelerate==1.15.0"), WRITES_TRACKIO),)


def main() -> int:
    out = REPOSITORY / "build" / "interop"
    models = [str(folder) for folder in save_all(out / "models")]
    worst = 0
    for peer in PEERS:
        python = _installed(peer, out / peer.name)
        if python is None:
            print(f"{peer.name}: could not be installed, see {out / peer.name}.log", flush=True)
            worst = max(worst, 2)
            continue
        done = subprocess.run([python, "-c", peer.program, *models], capture_output=True, text=True, cwd=out)
        print(
            f"{peer.name}: {'as written here' if done.returncode == 0 else 'FAILED'}", done.stdout, sep="\n", flush=True
        )
        if done.returncode:
            print(done.stderr[-2000:], flush=True)
            worst = 1 if worst == 0 else worst
    return worst


def _installed(peer: Peer, environment: Path) -> Path | None:
    """Return the Python of a peer's environment; None where it cannot be installed."""
    python, done = environment / "bin" / "python", environment / ".installed"
    if done.exists() and done.read_text() == "\n".join(peer.packages):
        return python
    with open(environment.with_suffix(environment.suffix + ".log"), "w", encoding="utf-8") as log:
        for words in (
            [sys.executable, "-m", "venv", "--clear", str(environment)],
            [str(python), "-m", "pip", "install", "--no-compile", TORCH],
            [str(python), "-m", "pip", "install", "--no-compile", *peer.packages],
        ):
            if subprocess.run(words, stdout=log, stderr=log, cwd=environment.parent).returncode:
                return None
    done.write_text("\n".join(peer.packages))
    return python


if __name__ == "__main__":
    raise SystemExit(main())
