"""The kinds of jobs that are killed: how each is submitted in a small workspace, and what it has to give in the end.

Each imports what it needs when it is submitted: the processes of a storm of one kind load nothing of the others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import jobs as room
from cdp.base.workspace import Workspace, read_json, read_json_or_none
from tests.jobs.support import logged

WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jasper", "knoll", "lagoon")

# Fields of results that tell of this run rather than of what it found.
VOLATILE = frozenset(("seconds", "created", "id", "job", "job_id", "time", "query_set", "name", "rate", "report",
                      "stored", "seconds_per_step", "queries_per_second", "peak_memory", "host_memory", "model_hash",
                      "retriever", "speed", "tokens_per_second", "reused", "trained", "attempt",
                      "pairs_per_second", "texts_per_second", "query_ms", "existed",
                      "seconds_by_phase", "embeddings_reused", "query_embeddings_reused"))  # fmt: skip


@dataclass(frozen=True)
class Ground:
    """A small workspace with something to do for every kind of job. ``models`` are folders of tiny models."""

    workspace: Workspace
    corpus: str
    query_set: str
    benchmark: str
    models: dict[str, str] = field(default_factory=dict)


def small_ground(
    workspace: Workspace, source: Path, *, n_documents: int, models: dict[str, str] | None = None
) -> Ground:
    """Make the ground; ``source`` is a folder for the files that it is imported from."""
    from cdp import query_sets
    from cdp.benchmarks import add_benchmark
    from cdp.corpus import read_documents, store

    rng = random.Random(0)
    source.mkdir(parents=True, exist_ok=True)
    documents = [{"_id": f"d{i}", "text": _text(i, rng)} for i in range(n_documents)]
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    (source / "documents.jsonl").write_text(lines, encoding="utf-8")
    with read_documents(source / "documents.jsonl") as result:
        corpus = store(result, "chaos", workspace)
    own = ((d["_id"], [" ".join(d["text"].split()[j : j + 5]) for j in range(1, 5)]) for d in documents)
    query_set = query_sets.import_queries(own, workspace, corpus.id, "own", language="en").query_set.id
    folder = source / "benchmark"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(lines, encoding="utf-8")
    asked = [{"_id": f"q{i}", "text": " ".join(rng.sample(WORDS, 4))} for i in range(30)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in asked), encoding="utf-8")
    judged = "".join(f"q{i}\td{rng.randrange(n_documents)}\t1\n" for i in range(30))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged, encoding="utf-8")
    return Ground(workspace, corpus.id, query_set, add_benchmark(folder, workspace, "chaos"), models or {})


def _text(number: int, rng: random.Random) -> str:
    """A text of no meaning, with two sentences that templates ask about: with fewer CE and Self-BLEU are undefined."""
    one, other = (" ".join(rng.choices(WORDS, k=3)) for _ in range(2))
    return (
        f"The {' '.join(rng.choices(WORDS, k=30))}. The {one} was built in {1000 + number} by a guild. "
        f"The {other} burned down in {2000 + number} and was opened again in {3000 + number}."
    )


def _count(ground: Ground, number: int) -> str:
    config = {"steps": 20, "step_s": 0.02}
    return room.submit(ground.workspace, kind="test", name="count", module="tests.jobs.workers.count", config=config)


def _synthesis(ground: Ground, number: int) -> str:
    from cdp.base.config import SynthesisConfig
    from cdp.services import jobs

    config = {"corpus": ground.corpus, "per_doc": 5, "generator": "template", "name": f"set {number}"}
    return jobs.start(ground.workspace, "synthesis", SynthesisConfig.from_dict(config))


def _metrics(ground: Ground, number: int) -> str:
    from cdp.base.config import MetricsConfig
    from cdp.services import jobs

    config = {
        "query_set": ground.query_set, "human": ground.query_set, "scorer": ground.models["cross-encoder"],
        "encoder": ground.models["static"], "threshold": 0.5,
    }  # fmt: skip
    return jobs.start(ground.workspace, "metrics", MetricsConfig.from_dict(config))


def _training(ground: Ground, number: int) -> str:
    from cdp.base.config import TrainingConfig
    from cdp.services import training

    config = {
        "query_set": ground.query_set, "retriever": ground.models["bert"], "epochs": 2, "batch_size": 16,
        "save_steps": 4, "learning_rate": 0.001, "name": f"model {number}", "gpus": 0, "max_length": 32,
    }  # fmt: skip
    return training.start(ground.workspace, TrainingConfig.from_dict(config)).job_id


def _evaluation(ground: Ground, number: int) -> str:
    from cdp.base.config import EvaluationConfig
    from cdp.services import jobs

    config = {"retriever": ground.models["bert"], "benchmark": ground.benchmark, "gpus": 0, "allow_unknown": True}
    return jobs.start(ground.workspace, "evaluation", EvaluationConfig.from_dict(config))


def _study(ground: Ground, number: int) -> str:
    from cdp.services import studies
    from cdp.studies.config import StudyConfig

    config = {
        "query_sets": ground.query_set, "benchmarks": ground.benchmark, "per_doc": "1, 3", "seeds": "0, 1", "epochs": 2,
        "batch_size": 16, "learning_rate": 0.05, "gpus": 0, "retrievers": ground.models["static"],
    }  # fmt: skip
    # Kills are the subject: that the queries are worded like those judged is not.
    return studies.run(ground.workspace, StudyConfig.from_dict(config), allow_leakage=True).job_id


def _tuning(ground: Ground, number: int) -> str:
    from cdp.base.config import PromptTuningConfig
    from cdp.services import tuning

    config = {
        "corpus": ground.corpus, "methods": "diverse,paraphrase", "generator": "template", "documents": 60,
        "scorer": ground.models["cross-encoder"],
    }  # fmt: skip
    return tuning.start(ground.workspace, PromptTuningConfig.from_dict(config))


def _download(ground: Ground, number: int) -> str:
    from cdp.base.config import DownloadConfig
    from cdp.services import jobs

    return jobs.start(ground.workspace, "download", DownloadConfig.from_dict({"benchmark": "nanoscifact"}))


SUBMIT: dict[str, Callable[[Ground, int], str]] = {
    "count": _count,
    "synthesis": _synthesis,
    "metrics": _metrics,
    "training": _training,
    "evaluation": _evaluation,
    "study": _study,
    "tuning": _tuning,
    "download": _download,
}


def submit(kind: str, ground: Ground, number: int) -> None:
    """Submit a job from a process that may be killed on the way."""
    SUBMIT[kind](ground, number)


def outputs(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Everything that a finished job gave, without what tells of the run: equal for equal work. Weights as arrays."""
    folder = workspace.job(job_id)
    found: dict[str, Any] = {}
    for path in sorted((folder / "results").rglob("*.json")):
        found[str(path.relative_to(folder))] = _lasting(read_json(path))
    for path in sorted((folder / "conditions").glob("*.json")):
        found[path.name] = _lasting(read_json(path))
    for path in sorted((folder / "model").rglob("*.safetensors")):
        from safetensors.numpy import load_file

        found[str(path.relative_to(folder))] = load_file(path)
    made = (read_json_or_none(folder / "results" / "synthesis.json") or {}).get("query_set")
    if not made:  # the synthesis reports by the clock: a slow machine has it report more often
        found["steps"] = [record["step"] for record in logged(workspace, job_id)]
    if made:
        own = workspace.query_set(made)
        found["queries"] = (own / "queries.jsonl").read_bytes()
        found["failures"] = (own / "failures.jsonl").read_bytes() if (own / "failures.jsonl").exists() else b""
        found["measures"] = {path.name: _lasting(read_json(path)) for path in sorted((own / "measures").glob("*.json"))}
    brought = (read_json_or_none(folder / "results" / "download.json") or {}).get("stored")
    if brought:
        named = json.dumps(found["results/download.json"]).replace(brought, "this download")
        found["results/download.json"] = json.loads(named)
        own = workspace.benchmark(brought)
        kept = [path for path in sorted(own.rglob("*")) if path.is_file() and path.name != "manifest.json"]
        found["files"] = {str(path.relative_to(own)): path.read_bytes() for path in kept}
    return found


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in VOLATILE}
    return [_lasting(item) for item in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, where: str = "", tolerance: float = 0.0) -> list[str]:
    """Where two results differ. ``tolerance`` is for weights alone: the largest difference of two numbers."""
    if hasattr(one, "shape") and hasattr(other, "shape"):
        if one.shape != other.shape:
            return [f"{where}: shapes {one.shape} and {other.shape}"]
        apart = float(abs(one.astype("float64") - other.astype("float64")).max(initial=0.0))
        return [f"{where}: weights {apart:.3g} apart"] if apart > tolerance else []
    if isinstance(one, dict) and isinstance(other, dict):
        found = [f"{where}/{key}: only once" for key in sorted(set(one) ^ set(other))]
        for key in sorted(set(one) & set(other)):
            found += differences(one[key], other[key], f"{where}/{key}", tolerance)
        return found
    return [] if one == other else [f"{where}: {str(one)[:80]!r} and {str(other)[:80]!r}"]
