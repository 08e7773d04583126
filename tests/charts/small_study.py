"""A workspace with a finished study whose figures follow from few numbers, and the same numbers by hand.

On three benchmarks of 2, 4 and 6 content words, of 4 queries each, an arm scores what the untrained retriever does, and
what it adds; its queries lie around that by ``AROUND``, times its own ``spread``. Seeds add -0.5 and +0.5.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.condition import EQUAL_PAIRS, Condition
from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.corpus import read_documents, store
from cdp.studies import records
from cdp.studies.config import BOTH, StudyConfig
from cdp.studies.plan import PlannedTraining, StudySource

WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord")
CW = {"short": 2, "middle": 4, "long": 6}
UNTRAINED = {"short": 40.0, "middle": 50.0, "long": 60.0}
# (method, Q/Doc, weighting, query source, held) → points above the untrained retriever, by benchmark.
ADDED: dict[tuple[str, int, str, str, str], dict[str, float]] = {
    ("diverse", 1, "none", "query-only", ""): {"short": 5, "middle": 5, "long": 5},
    ("diverse", 3, "none", "query-only", ""): {"short": 3, "middle": 7, "long": 11},
    ("diverse", 5, "none", "query-only", ""): {"short": 1, "middle": 8, "long": 10},
    ("paraphrase", 1, "none", "query-only", ""): {"short": 5, "middle": 5, "long": 5},
    ("paraphrase", 3, "none", "query-only", ""): {"short": 5, "middle": 6, "long": 8},
    ("diverse", 3, "none", "query-only", EQUAL_PAIRS): {"short": 4, "middle": 4, "long": 4},
    ("diverse", 3, "cw", "query-only", ""): {"short": 4, "middle": 8, "long": 12},
    ("diverse", 3, "ri", "multi-query", ""): {"short": 6, "middle": 6, "long": 6},
    ("diverse", 3, "none", "multi-query", ""): {"short": 4, "middle": 4, "long": 4},
}
AROUND = (-3.0, -1.0, 1.0, 3.0)
# First documents at Q/Doc 1 and 3 on "short", whose queries are all answered by one#1.
FIRST = {1: ("one#1", "one#2", "two#1", "one#2"), 3: ("two#2", "one#1", "one#1", "one#2")}
DEV = {0.01: 30.0, 0.02: 35.0}


def benchmark(workspace: Workspace, folder: Path, name: str) -> str:
    """Four queries of as many content words as ``CW`` says, answered by the same passage."""
    (folder / name / "qrels").mkdir(parents=True)
    texts = {"one#1": "amber basalt", "one#2": "cedar delta", "two#1": "ember fjord", "two#2": "nothing of these"}
    documents = "".join(json.dumps({"_id": id, "text": text}) + "\n" for id, text in texts.items())
    text = " ".join(WORDS[: CW[name]])
    queries = "".join(json.dumps({"_id": f"q{i}", "text": f"the {text}"}) + "\n" for i in range(4))
    (folder / name / "corpus.jsonl").write_text(documents)
    (folder / name / "queries.jsonl").write_text(queries)
    judged = "".join(f"q{i}\tone#1\t1\n" for i in range(4))
    (folder / name / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return add_benchmark(folder / name, workspace, name)


def sets(workspace: Workspace, folder: Path) -> dict[str, str]:
    """A query set of each method over six documents with five queries each: {method: its id}."""
    source = folder / "documents.jsonl"
    source.write_text("".join(json.dumps({"_id": f"d{i}", "text": f"tide {i}"}) + "\n" for i in range(6)))
    with read_documents(source) as result:
        corpus = store(result, "tides", workspace).id
    made = {}
    for method in ("diverse", "paraphrase"):
        pairs = [(f"d{i}", [f"{method} {j} of tide {i}" for j in range(5)]) for i in range(6)]
        found = query_sets.import_queries(iter(pairs), workspace, corpus, method, kind="synthetic", method=method)
        made[method] = query_sets.update(workspace, found.query_set.id, generator="template").id
    return made


def spread(number: int) -> float:
    """How far the queries of an arm, by its number in ``ADDED``, lie around its mean."""
    return (1.0, -2.0, 0.5)[number % 3]


def evaluations(workspace: Workspace, points: dict[str, float], per_doc: int, around: float = 1.0) -> dict[str, Any]:
    """The evaluations of a record: ``points`` by benchmark, and four queries ``around`` times ``AROUND`` from them."""
    found = {}
    for name, value in points.items():
        ids = load_benchmark(workspace.benchmarks / name, "test").query_ids
        given = cycle(FIRST.get(per_doc, FIRST[1]))
        first = [[document] for document, _ in zip(given, ids, strict=False)]
        found[f"hash-{name}/test/published"] = {
            "benchmark": name, "split": "test", "n_texts": 8, "query_ids": ids,
            "ndcg@10": [(value + around * at) / 100 for at in AROUND],
            "measures": {"ndcg@10": value / 100}, "counts": {}, "settings": {}, "seconds": {},
            "first_ten": records.numbered(first), "p@1": [int(documents[0] == "one#1") for documents in first],
        }  # fmt: skip
    return found


def make(workspace: Workspace, folder: Path) -> dict[str, str]:
    """The study ``study-1`` with all arms of ``ADDED``, and two learning rates; returns the query sets."""
    for name in CW:
        benchmark(workspace, folder, name)
    written = sets(workspace, folder)
    job = workspace.job("study-1")
    plan = {"per_doc": "1, 3, 5", "weightings": "none, cw, ri", "query_sources": "query-only, multi-query"}
    plan |= {
        "design": BOTH,
        "max_documents": 6,
        "benchmarks": ", ".join(CW),
        "query_sets": ", ".join(written.values()),
        "retrievers": "tiny",
    }
    config = StudyConfig.from_dict(plan)
    sources = [StudySource(method, method, name, "", 6, (6,) * 5) for method, name in written.items()]
    spec = {"id": "study-1", "kind": "study", "name": "small", "created": "2026-01-02T03:04:05+00:00", "sequence": 1,
            "module": "cdp.workers.study", "launcher": "python", "device": {}, "config": config.to_dict(),
            "inputs": {"sources": [asdict(source) for source in sources]}}  # fmt: skip
    write_json(job / "spec.json", spec)
    facts = [{"name": name, "split": "test", "place": f"hash-{name}/test/published", "n_queries": 4, "n_documents": 4,
              "cw": cw, "cw_interval": [cw, cw]} for name, cw in CW.items()]  # fmt: skip
    settled = {"config": config.to_dict(), "sources": spec["inputs"]["sources"], "benchmarks": facts, "corpora": []}
    write_json(job / "results" / "about.json", settled)

    about = {"retriever": "tiny", "created": "2026-01-02T03:04:06+00:00"}
    records.save(job, "untrained", None, {**about, "evaluations": evaluations(workspace, UNTRAINED, 1)})
    arms = [
        (Condition("tiny", m, n, w, held, None, query_source=q), added) for (m, n, w, q, held), added in ADDED.items()
    ]
    rates = [(Condition("rated", "diverse", 1, rate=rate), dict.fromkeys(CW, 0.0)) for rate in DEV]
    for number, (condition, added) in enumerate([*arms, *rates]):
        for seed in (0, 1):
            points = {name: UNTRAINED[name] + value + seed - 0.5 for name, value in added.items()}
            documents = 2 if condition.held else 6
            doubled = 2 if condition.query_source == "multi-query" else 1
            curve = [{"step": 1, "ndcg@10": DEV[condition.rate] / 100}] if condition.rate is not None else []
            pairs = documents * condition.per_doc * doubled
            training = {"pairs": pairs, "documents": documents, "seconds": 1.0, "steps": 9,
                        "evaluations": curve}  # fmt: skip
            settings = {
                "query_set": written[condition.source],
                "learning_rate": condition.rate,
                "query_source": condition.query_source,
            }
            record = {**about, "retriever": condition.retriever, "training": training, "settings": settings,
                      "evaluations": evaluations(workspace, points, condition.per_doc, spread(number))}  # fmt: skip
            records.save(job, f"arm-{number}-{seed}", PlannedTraining(condition, seed), record)
    return written
