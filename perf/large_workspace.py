"""A workspace as large as one gets: a million documents, 500,000 queries, 300 jobs, 100,000 scores of queries.

Written straight in the formats on disk, in about a minute, and kept for the next run in a folder of the system's
temporary directory. What is in it means nothing; its sizes and shapes are those of real work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import shutil
import tempfile
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdp.base.locks import wait_for_lock
from cdp.base.workspace import Workspace, now, write_json
from cdp.corpus import CorpusManifest, ReadOptions
from cdp.corpus.documents import ROW_GROUP_ROWS, Distribution, DocumentWriter
from cdp.query_sets import QuerySet
from cdp.services import benchmarks, demo, metrics

VERSION = 6
N_DOCUMENTS = 1_000_000
N_WITH_QUERIES = 50_000
PER_DOC = 5
N_RETRIEVERS = 30
N_BENCHMARKS = 8
N_JOBS = 300
N_JUDGED = 400
CORPUS = "encyclopaedia-0a1b2c3d"

_WORDS = """
river stone bridge treaty engine garden winter music letter harbour castle signal copper forest planet ocean
market railway theatre painter library volcano glacier merchant kingdom island desert teacher doctor soldier
window mirror candle silver pepper cotton coffee violin trumpet comet orbit enzyme protein genome neuron cell
early northern ancient hidden narrow modern famous small quiet bright heavy broken wooden royal coastal
"""
WORDS = _WORDS.split()


def build() -> Workspace:
    """The workspace, from the last run where there is one."""
    root = Path(tempfile.gettempdir()) / f"cdp-large-workspace-{VERSION}"
    workspace = Workspace(root)
    if (root / "complete").exists():
        return workspace

    shutil.rmtree(root, ignore_errors=True)
    began = time.perf_counter()
    random.seed(0)
    demo.load(workspace)
    time.sleep(1)  # the corpus and its query sets are newer than the demo's: they are what a page opens first
    sentences = [_sentence(random.randint(8, 16)) for _ in range(4000)]
    _corpus(workspace, sentences)
    sets = [_query_set(workspace, method) for method in ("diverse", "paraphrase")]
    names = [_benchmark(workspace, i, sentences) for i in range(N_BENCHMARKS)]
    _jobs(workspace, sets, names)
    benchmarks.list_benchmarks(workspace)
    (root / "complete").touch()
    print(f"the workspace was written in {time.perf_counter() - began:.0f} s: {root}")

    return workspace


def _sentence(n_words: int) -> str:
    return f"{' '.join(random.choices(WORDS, k=n_words)).capitalize()}."


def _corpus(workspace: Workspace, sentences: list[str]) -> None:
    folder = workspace.corpora / CORPUS
    folder.mkdir(parents=True)

    characters, words = array("I"), array("I")
    writer = DocumentWriter(folder / "documents.parquet")
    for start in range(0, N_DOCUMENTS, ROW_GROUP_ROWS):
        numbers = range(start, min(N_DOCUMENTS, start + ROW_GROUP_ROWS))
        texts = [" ".join(random.choices(sentences, k=3)) for _ in numbers]
        characters.extend(map(len, texts))
        words.extend(len(text.split()) for text in texts)
        writer.write([f"d{n:07}" for n in numbers], [f"Article {n}" for n in numbers], texts)

    writer.close()
    manifest = CorpusManifest(
        id=CORPUS, name="encyclopaedia", created=now(), content_hash="0a1b2c3d" * 8, n_documents=N_DOCUMENTS,
        characters=Distribution.of(characters), words=Distribution.of(words), languages={"en": 1.0},
        source="encyclopaedia.jsonl", source_sha256="0" * 64, formats=("jsonl",), options=ReadOptions().to_dict(),
        found_fields=("id", "title", "text"), notes=(), n_queries=0, rejected_counts={}, rejected=(),
    )  # fmt: skip

    write_json(folder / "manifest.json", dataclasses.asdict(manifest))


def _query_set(workspace: Workspace, method: str) -> str:
    set_id = f"encyclopaedia-{method}-5"
    folder = workspace.query_set(set_id)
    folder.mkdir(parents=True)

    with open(folder / "queries.jsonl", "w", encoding="utf-8") as file:
        for n in range(N_WITH_QUERIES):
            base = random.choices(WORDS, k=7)
            texts = []
            for i in range(PER_DOC):
                words = random.choices(WORDS, k=4 + i) if method == "diverse" else random.sample(base, 6)
                texts.append(f"what is the {' '.join(words)}?")
            file.write(json.dumps({"document_id": f"d{n:07}", "position": n, "queries": texts}) + "\n")

    manifest = QuerySet(
        id=set_id, name=f"encyclopaedia {method} 5", corpus_id=CORPUS, corpus_hash="0a1b2c3d" * 8, method=method,
        generator="template", per_doc=PER_DOC, language="en", created=now(), complete=True,
        n_documents=N_WITH_QUERIES, n_queries=N_WITH_QUERIES * PER_DOC, content_hash=f"{method:0<16}",
    )  # fmt: skip

    write_json(folder / "manifest.json", dataclasses.asdict(manifest))
    metrics.quick(workspace, set_id)  # as the worker that writes a set does at its end

    return set_id


def _benchmark(workspace: Workspace, number: int, sentences: list[str]) -> str:
    name = f"bench-{number}"
    folder = workspace.benchmark(name)
    (folder / "qrels").mkdir(parents=True)
    with open(folder / "corpus.jsonl", "w", encoding="utf-8") as file:
        for n in range(5000):
            file.write(json.dumps({"_id": f"d{n}", "title": f"Page {n}", "text": random.choice(sentences)}) + "\n")
    with open(folder / "queries.jsonl", "w", encoding="utf-8") as file:
        for n in range(N_JUDGED):
            file.write(json.dumps({"_id": f"q{n:03}", "text": f"which {_sentence(4 + number)}"}) + "\n")
    rows = "".join(f"q{n:03}\td{n}\t1\n" for n in range(N_JUDGED))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}", encoding="utf-8")
    return name


def _jobs(workspace: Workspace, sets: list[str], benchmarks: list[str]) -> None:
    """30 trainings, their evaluations on 8 benchmarks, those of the untrained one, and measurements."""
    number = 0
    retrievers = [("static-minilm", "static-minilm", "preset")]
    for i in range(N_RETRIEVERS):
        number += 1
        job_id = f"training-20260301-{number:06}-{i:04x}"
        config = {"query_set": sets[i % 2], "retriever": "static-minilm", "weighting": "none", "epochs": 1 + i % 5}
        folder = _ended(workspace, job_id, "training", config, number, name=f"run {i} on {sets[i % 2]}")
        lines = [
            {"step": s, "attempt": 1, "time": now(), "loss": 3 / (1 + s / 500) + random.random() / 5,
             "learning_rate": 1e-3 * (1 - s / 5000), "gradient_norm": random.random(), "pairs_per_second": 9000.0,
             "memory_mib": 900.0}
            for s in range(1, 5001)
        ]  # fmt: skip
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        (folder / "worker.log").write_text("".join(f"step {s}\n" for s in range(20_000)), encoding="utf-8")
        (folder / "model").mkdir()
        (folder / "model" / "model.safetensors").write_bytes(bytes(100_000))
        result = {"id": job_id, "retriever": "static-minilm", "query_set": sets[i % 2], "weighting": "none",
                  "pairs": 250_000, "steps": 5000, "seconds": 60.0, "pairs_per_second": 9000.0}  # fmt: skip
        write_json(folder / "results" / "training.json", result)
        retrievers.append((job_id, f"run {i}", "job"))

    for benchmark in benchmarks:
        for i, (retriever, name, kind) in enumerate(retrievers):
            number += 1
            _evaluation(workspace, number, benchmark, retriever, name, kind, 0.3 + 0.01 * i)

    while number < N_JOBS:
        number += 1
        config = {"query_set": sets[number % 2]}
        job_id = f"metrics-20260301-{number:06}"
        folder = _ended(workspace, job_id, "metrics", config, number, name=f"Q-D metrics of {sets[number % 2]}")
        value = {"name": "paraphrase_ratio", "value": 0.4, "interval": [0.39, 0.41], "n_documents": N_WITH_QUERIES,
                 "scope": "document", "per_doc": PER_DOC, "model": "a model"}  # fmt: skip
        scorer = {"measure": "paraphrase_ratio", "model": "a model", "threshold": 0.5, "note": ""}
        ids = [f"d{n:07}" for n in range(N_WITH_QUERIES)] if number > N_JOBS - 2 else []
        columns = {"document_id": ids, "paraphrase_ratio": [random.random() for _ in ids]}
        result = {
            "query_set": sets[number % 2], "human": "", "config": config, "language": "en", "created": now(),
            "measures": [value], "values": [value], "per_document": columns, "scorer": scorer,
            "n_documents": N_WITH_QUERIES, "sampled_from": None,
        }  # fmt: skip
        write_json(folder / "results" / "metrics.json", result)


def _ended(
    workspace: Workspace, job_id: str, kind: str, config: dict[str, Any], sequence: int, *, name: str
) -> Path:  # fmt: skip
    folder = workspace.jobs / job_id
    _specification(folder, job_id, kind, config, sequence, name)
    write_json(
        folder / "status.json",
        {"schema": 1, "phase": "ended", "attempt": 1, "queued": now(), "devices": ["cpu"],
         "started": now(), "ended": now(), "seconds": 60.0, "outcome": "finished", "message": "", "exit_code": 0},
    )  # fmt: skip
    beat = {"phase": "done", "done": 10, "total": 10, "unit": "steps", "message": "", "attempt": 1, "clock": 1.0}
    write_json(folder / "heartbeat.json", beat)
    (folder / "alive.lock").touch()
    return folder


def _specification(
    folder: Path, job_id: str, kind: str, config: dict[str, Any], sequence: int, name: str
) -> None:  # fmt: skip
    write_json(
        folder / "spec.json",
        {"schema": 1, "id": job_id, "kind": kind, "name": name, "created": now(), "sequence": sequence,
         "module": f"cdp.{kind}.worker", "config": config},
    )  # fmt: skip


def _evaluation(
    workspace: Workspace, number: int, benchmark: str, retriever: str, name: str, kind: str, level: float
) -> None:  # fmt: skip
    job_id = f"evaluation-20260301-{number:06}"
    config = {"retriever": retriever, "benchmark": benchmark, "split": "test", "protocol": "published"}
    folder = _ended(workspace, job_id, "evaluation", config, number, name=f"{name} on {benchmark}")
    scores = [round(min(1.0, max(0.0, random.gauss(level, 0.2))), 4) for _ in range(N_JUDGED)]
    write_json(
        folder / "results" / "evaluation.json",
        {"schema": 1, "id": job_id, "retriever": {"id": retriever, "name": name, "kind": kind, "hash": retriever},
         "benchmark": {"name": benchmark, "folder": str(workspace.benchmark(benchmark)), "split": "test",
                       "hash": benchmark, "n_queries": N_JUDGED, "n_documents": 5000},
         "protocol": "published", "settings": {**config, "max_length": None},
         "measures": {"ndcg@10": sum(scores) / len(scores)},
         "per_query": {"query_ids": [f"q{n:03}" for n in range(N_JUDGED)], "ndcg@10": scores},
         "counts": {}, "warnings": [], "seconds": 5.0, "seconds_by_phase": {}, "created": now()},
    )  # fmt: skip


@contextlib.contextmanager
def at_work(workspace: Workspace) -> Iterator[str]:
    """For as long as this lasts one training runs and two wait; the id of the one that runs."""
    locks, made = [], []
    queue = workspace.root / "queue"
    config = {"query_set": "encyclopaedia-diverse-5", "retriever": "static-minilm", "weighting": "none"}

    try:
        for place in range(3):
            job_id = f"training-20260302-00000{place}"
            folder = workspace.jobs / job_id
            shutil.rmtree(folder, ignore_errors=True)
            _specification(folder, job_id, "training", config, 1000 + place, f"at work {place}")
            running = place == 0
            clock = time.monotonic()
            write_json(
                folder / "status.json",
                {"schema": 1, "phase": "running" if running else "queued", "attempt": 1,
                 "started": now(), "started_clock": clock, "devices": ["cpu"]},
            )  # fmt: skip

            if running:
                write_json(
                    folder / "heartbeat.json",
                    {"phase": "training", "done": 300, "total": 1000, "unit": "steps", "message": "epoch 1 of 3",
                     "rate": 9.0, "eta_s": 80.0, "attempt": 1, "clock": clock, "next_within_s": 1e6},
                )  # fmt: skip

            ticket = queue / f"{1000 + place:020d}.{'running' if running else 'waiting'}.cpu.{job_id}.json"
            write_json(ticket, {"request": {"count": 0}, "granted": ["cpu"] if running else []})
            locks.append(wait_for_lock(folder / "alive.lock", "The job's folder", wait_s=5.0))
            made += [folder, ticket]

        yield "training-20260302-000000"
    finally:
        for lock in locks:
            os.close(lock)

        for path in made:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
