"""All peers: ``python -m tests.interop [peer …]``, which is ``make interop``.

Each has an environment of its own in build/interop, made once: torch first, for else its CUDA comes along. Each runs
its programs of tests/interop/programs on what ``given`` made. Exit code 1: a peer read something else than was written
here; 2: one could not be installed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cdp.base.workspace import read_json
from cdp.benchmarks import load_benchmark
from cdp.evaluation.results import MEANS_ALONE
from cdp.retrievers.spelling import TESTED
from cdp.workers.importing import MTEB_PREDICTIONS, read_results, score_run
from tests.interop import given, tokens
from tests.support import REPOSITORY

TORCH = "torch==2.13.0"
PROGRAMS = Path(__file__).parent / "programs"
# Seconds of one program, which takes a minute on two idle cores.
LIMIT = 600


@dataclass(frozen=True)
class Peer:
    """One environment: its packages (those in ``alone`` without what they ask for), and the programs that it runs."""

    name: str
    packages: tuple[str, ...]
    programs: tuple[str, ...] = ("models",)
    alone: tuple[str, ...] = ()


PEERS = (
    *(Peer(f"sentence-transformers-{version}", (f"sentence-transformers=={version}",)) for version in TESTED[:-1]),
    # The first with classes for token vectors; its own evaluators score those.
    Peer(f"sentence-transformers-{TESTED[-1]}", (f"sentence-transformers=={TESTED[-1]}",), ("models", "token_models")),
    Peer("onnx", ("sentence-transformers[onnx]==5.7.0", "optimum-onnx==0.1.0", "transformers==4.57.6"), ("onnx",)),
    # Cannot be imported with transformers 5.24.
    Peer(
        "flagembedding", ("FlagEmbedding==1.4.2", "transformers==4.57.6", "sentence-transformers==5.7.0"),
        ("flagembedding",),
    ),
    # Of 2022: its trainer has not the arguments that Transformers 4.46 and later give it.
    Peer(
        "tevatron", ("tevatron==0.1.0", "transformers==4.44.2", "datasets==5.0.1", "accelerate==1.15.0"),
        ("tevatron",),
    ),
    # All that it asks for but fast-plaid, its PLAID index, which asks for torch 2.11.0; training does without.
    Peer(
        "pylate", ("sentence-transformers==5.3.0", "transformers==5.3.0", "datasets==5.2.0", "accelerate==1.15.0",
                   "pandas==3.1.1", "ujson==5.12.0", "ninja==1.11.1.4", "fastkmeans==0.5.0", "usearch==2.26.6"),
        ("models", "pylate", "pylate_tokens"), alone=("pylate==1.6.0",),
    ),
    Peer(
        "mteb", ("mteb==2.26.24", "sentence-transformers==6.2.0", "transformers==5.24.0", "accelerate==1.15.0",
                 "ir_measures==0.4.3", "pytrec_eval-terrier==0.5.11"),
        ("evaluators", "sentence_transformers", "onnx"),
    ),
    Peer("trackio", ("trackio==0.43.0", "accelerate==1.15.0"), ("trackio",)),
)  # fmt: skip


def main(names: list[str]) -> int:
    out = REPOSITORY / "build" / "interop"
    made = given.make(out / "given")
    worst = 0
    for peer in (peer for peer in PEERS if not names or peer.name in names):
        python = _installed(peer, out / peer.name)
        if python is None:
            print(f"{peer.name}: could not be installed, see {out / peer.name}.log", flush=True)
            worst = max(worst, 2)
            continue

        done = [_runs(python, peer, program, made) for program in peer.programs]
        if not all(done):
            worst = worst or 1
        elif "evaluators" in peer.programs:
            _results_of_mteb_come_back(made)
        elif "pylate_tokens" in peer.programs and not tokens.come_back(made):
            worst = worst or 1
    return worst


def _runs(python: Path, peer: Peer, program: str, made: Path) -> bool:
    """Run a peer's program without this repository; print what it says, and of a failure its end."""
    # Without its folder on the path, where some programs have the names of what they import.
    command = [python, "-I", "-X", "faulthandler", PROGRAMS / f"{program}.py", made]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(made / "hub"), "CUDA_VISIBLE_DEVICES": ""}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=made, env=offline, start_new_session=True
    )
    try:
        said, errors = process.communicate(timeout=LIMIT)
        failed = f"FAILED with exit code {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        # With what it started, which holds the pipes, too; faulthandler then prints where each thread stood.
        os.killpg(process.pid, signal.SIGABRT)
        said, errors = process.communicate()
        failed = f"FAILED: did not end in {LIMIT} s and was stopped"

    print(f"{peer.name}, {program}: {failed or 'as written here'}", said, sep="\n", flush=True)
    if failed:
        print(errors[-2000:], flush=True)
    return not failed


def _results_of_mteb_come_back(made: Path) -> None:
    """MTEB's own files, read as ``results import`` reads them: predictions score as our run, means are ours rounded."""
    benchmark = load_benchmark(given.DEMO, "test")
    ours = read_json(made / "ours.json")["measures"]
    (results,) = (made / "mteb").rglob("demo.json")
    for path, expected in ((made / "predictions" / "demo_predictions.json", MTEB_PREDICTIONS), (results, MEANS_ALONE)):
        form, held = read_results(path, benchmark)
        measures = held if form == MEANS_ALONE else score_run(benchmark, held, path).measures
        worst = max(abs(value - ours[name]) for name, value in measures.items())
        print(f"{path.name}, read here as {form}: {len(measures)} measures, largest difference {worst:.1e}", flush=True)
        assert form == expected
        assert worst <= (1e-5 if form == MEANS_ALONE else 1e-9)


def _installed(peer: Peer, environment: Path) -> Path | None:
    """Return the Python of a peer's environment; None where it cannot be installed."""
    python, done = environment / "bin" / "python", environment / ".installed"
    wanted = "\n".join([*peer.packages, *peer.alone])
    if done.exists() and done.read_text() == wanted:
        return python

    environment.parent.mkdir(parents=True, exist_ok=True)
    # No package may bring another torch, and with it gigabytes of CUDA.
    limit = environment.with_suffix(environment.suffix + ".txt")
    limit.write_text(TORCH + "\n")
    pip = [str(python), "-m", "pip", "install", "--no-compile"]
    commands = [
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [*pip, TORCH],
        [*pip, "--constraint", str(limit), *peer.packages],
        *([*pip, "--no-deps", package] for package in peer.alone),
    ]
    with open(environment.with_suffix(environment.suffix + ".log"), "w", encoding="utf-8") as log:
        for words in commands:
            if subprocess.run(words, stdout=log, stderr=log, cwd=environment.parent).returncode:
                return None
    done.write_text(wanted)
    return python


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
