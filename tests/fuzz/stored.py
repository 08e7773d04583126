"""Attacks on all that the product stored: files are damaged, and then everything that reads them is asked.

``template`` makes a workspace with the demo, a judged benchmark with labels, a study, trainings, evaluations and jobs
of every kind. Each attempt damages one to three of its files in place, asks ``READINGS`` (services, as pages call them)
and commands, and puts the files back. Each ends in a result or in a CdpError; anything else is a finding.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cdp import catalog, query_sets
from cdp import jobs as room
from cdp.base.config import PromptTuningConfig, SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.failures import Failures
from cdp.base.worker import Job
from cdp.base.workspace import ANSWERS, RECORDS, Workspace, append_jsonl, write_json
from cdp.benchmarks import judged
from cdp.corpus import looking
from cdp.evaluation import labelling as labels
from cdp.llm.answers import Answer, Usage
from cdp.llm.cache import AnswerCache
from cdp.query_sets import usable
from cdp.results import board, differences, paper
from cdp.results import models as trained_models
from cdp.services import (
    benchmarks,
    completeness,
    corpora,
    decide,
    demo,
    doctor,
    evaluation,
    jobs,
    judging,
    metrics,
    projects,
    queries,
    review,
    search,
    studies,
    training,
    trial,
    tuning,
)
from cdp.studies import own_test
from cdp.studies import text as study_text
from cdp.synthesis import candidates, pricing
from cdp.synthesis.run import SynthesisRun
from cdp.training import plan as training_plan
from tests.fuzz.damaged_workspace import run
from tests.fuzz.mutation import damaged
from tests.fuzz.small_files import wrong_types
from tests.judging.made import make
from tests.pages.support import ended_job, evaluated, with_results
from tests.studies.support import made as made_study

SUFFIXES = (".json", ".jsonl", ".txt", ".tsv", ".log")
COMMANDS = (
    "corpus list", "queries list", "benchmarks list", "results list", "jobs list", "study list", "models list",
    "projects list", "projects show demo", "workspace prune", "benchmarks show made", "benchmarks show demo",
    "jobs show {job}", "jobs logs {job}", "study report {study}", "models show {training}", "prompts show {prompts}",
    "queries show {set}", "metrics {set} --quick", "results compare --baseline static-minilm", "catalog rebuild",
    "decide {set} --corpus demo", "cw recommend {set}", "queries estimate --corpus demo", "jobs resume {job}",
)  # fmt: skip
ASKED = 12  # readings and commands after each damage


def template(root: Path) -> Workspace:
    """A workspace with one of everything."""
    workspace = Workspace(root / "stored")
    demo.load(workspace)
    (first, *_) = query_sets.list_query_sets(workspace)
    with_results(workspace, first.id)
    corpus = first.corpus_id

    folder = make(workspace, lambda query, document: (query + document) % 4)
    for by in ("ann", "bob"):
        for number in range(6):
            judged.add_labels(folder, f"q{number}", {f"d{number}-{d}": d % 4 for d in range(4)}, by)
    evaluated(workspace, "evaluation-4-made", "bm25", [0.5] * 30, benchmark="made")

    study(workspace, corpus)
    written = SynthesisConfig.from_dict({"corpus": corpus, "generator": "template", "limit": 12, "per_doc": 2})
    job = ended_job(workspace, "synthesis-20260101-000000-abcd-x", "synthesis", written.to_dict(), outcome="failed",
                    failure={"kind": "bug", "message": "m", "hint": "h", "log_tail": ["a"]})  # fmt: skip
    bill = {"spent": Usage(10, 5, 1).to_dict(), "cost": 0.1, "price_as_of": "2026", "model": "m", "n_documents": 1}
    result = SynthesisRun(Job(job)).execute()
    write_json(job / "results" / "synthesis.json", {**result, **bill})
    write_json(job / "failure.json", {"kind": "bug", "message": "m", "hint": "h", "attempt": 1})
    write_json(job / "outcome.json", {"outcome": "finished", "attempt": 1, "failures": 0})
    write_json(job / "heartbeat.json", {"phase": "x", "done": 1, "total": 2, "clock": 1.0, "next_within_s": 5.0})
    model = workspace.job("training-1-diverse") / "model"
    write_json(model / "modules.json", [{"type": "sentence_transformers.models.Normalize", "path": ""}])
    write_json(model / "config_sentence_transformers.json", {"prompts": {"query": "q: "}, "similarity_fn_name": "dot"})
    write_json(model / "sentence_bert_config.json", {"max_seq_length": 128})
    append_jsonl(job / "failures.jsonl", [{"id": "d1", "unit": "document", "reason": "r", "stage": "s"}] * 3)

    value = {"name": "self_bleu", "value": 0.2, "interval": [0.1, 0.3], "per_doc": 3, "n_documents": 4}
    found = {"measures": [value], "query_set": first.id, "created": "2026-01-01T00:00:00+00:00"}
    write_json(
        ended_job(workspace, "metrics-1", "metrics", {"query_set": first.id}) / "results" / "metrics.json", found
    )
    tried = {"name": "a", "method": "diverse", "prompt": "", "distance": 0.1, "inside": 0.5, "corpus_cost": 0.1,
             "query_set": first.id, "error": "", "measures": [{"name": "self_bleu", "value": 0.2}]}  # fmt: skip
    chosen = {"choice": "a", "why": "It is near.", "config": PromptTuningConfig.from_dict({"corpus": corpus}).to_dict(),
              "scorer": {"measure": "paraphrase_ratio", "model": "m", "note": ""}, "candidates": [tried]}  # fmt: skip
    write_json(ended_job(workspace, "prompts-1", "prompts", {"corpus": corpus}) / "results" / "prompts.json", chosen)
    told = {"benchmark": "made", "queries": 30, "pairs": 120, "judged": 120, "failures": 0, "grades": {"0": 30}}
    write_json(ended_job(workspace, "judging-1", "judging", {"corpus": corpus}) / "results" / "judging.json", told)

    table = usable.table(workspace, first)
    review.decide(workspace, first.id, list(table.ids[:3]), "accept", by="ann")
    review.decide(workspace, first.id, [table.ids[4]], "edit", text="What is it?", by="ann")
    metrics.quick(workspace, first.id)
    evaluation.rename(workspace, ["training-1-diverse"], "my run")
    projects.use(workspace, "demo")
    write_json(workspace.root / "prices.json", {"as_of": "2026-01-01", "models": {"m": {"input": 1.0, "output": 2.0}}})
    with AnswerCache(workspace) as cache:
        cache.settle(job.name, "k", Usage(10, 5, 1), {"k": Answer("1. What?")})
    catalog.ingest(workspace)
    return workspace


def study(workspace: Workspace, corpus: str) -> None:
    """A finished study with its records, as its worker leaves them."""
    about, records = made_study(
        lambda benchmark, source, per_doc, weighting: 3.0 * per_doc, benchmarks={"demo": 5.0, "made": 9.0}, n_queries=30
    )
    text = json.dumps([about, records])
    about, records = json.loads(
        text.replace("place-demo", "h1/test/published").replace("place-made", "h2/test/published")
    )
    folder = ended_job(workspace, "study-1", "study", {**about["config"], "corpus": corpus}, name="a study")
    write_json(
        folder / "results" / "about.json",
        {**about, "corpora": [{"source": "human", "query_set_hash": "h"}], "language": "en"},
    )
    for number, record in enumerate(records):
        for place, scores in record["evaluations"].items():
            name = "demo" if place.startswith("h1") else "made"
            first_ten = [[f"d{i}-{d}" for d in range(4)] for i in range(30)]
            scores |= {"benchmark": name, "measures": {"ndcg@10": 0.4}, "n_texts": 60, "settings": {}, "counts": {},
                       "first_ten": first_ten, "seconds": {"encode": 0.5}}  # fmt: skip
        more = {"key": f"{number:024x}", "created": "2026-01-01", "title": "tiny", "settings": {"epochs": 1}}
        write_json(folder / "results" / "conditions" / f"{number:024x}.json", {**record, **more})


@dataclass(frozen=True)
class Names:
    """What the workspace held before it was damaged."""

    workspace: Workspace
    sets: Sequence[query_sets.QuerySet]
    corpus: str
    jobs: Sequence[str]

    @classmethod
    def of(cls, workspace: Workspace) -> Names:
        sets = query_sets.list_query_sets(workspace)
        return cls(workspace, sets, sets[0].corpus_id, sorted(path.name for path in workspace.jobs.iterdir()))


def _judged(n: Names) -> None:
    listed = {info.name for info in labels.list_judged(n.workspace)}
    assert listed <= {"made"}
    for by in ("ann", "eve"):
        labels.task(n.workspace, "made", by)
    assert labels.progress(n.workspace, "made").sentence
    judging.to_judge(n.workspace, judging.repeated(n.workspace, "made", ["study-1"]))


def _jobs(n: Names) -> None:
    for view in jobs.list_jobs(n.workspace):
        assert view.to_dict()
        jobs.again(view)
        if view.kind == "evaluation":
            evaluation.compared(view)
    jobs.list_active(n.workspace)


def _each_job(read: Callable[[Workspace, str], object]) -> Callable[[Names], None]:
    def each(n: Names) -> None:
        for name in n.jobs:
            try:
                read(n.workspace, name)
            except CdpError:
                continue

    return each


def _compare(n: Names) -> None:
    rows = board.list_rows(n.workspace, board.list_evaluations(n.workspace))
    board.remarks(rows)
    found = differences.compare(n.workspace, "static-minilm")
    for form in ("markdown", "latex", "csv"):
        paper.write(found, form)
    differences.unjudged(n.workspace, found)
    for row in found.rows:
        differences.per_query(n.workspace, found, row)
    evaluation.strong_baselines(n.workspace, rows, "static-minilm")


def _study(n: Names) -> None:
    report = studies.report(n.workspace, "study-1")
    study_text.to_markdown(report)
    study_text.progress_text(report)


def _review(n: Names) -> None:
    for query_set in n.sets:
        table = usable.table(n.workspace, query_set)
        usable.decisions(n.workspace, query_set)
        usable.usability(n.workspace, query_set, table)
        for index in sorted({0, int(table.document.max())}):
            usable.document(n.workspace, query_set, table, index)


def _training(n: Names) -> None:
    for query_set in n.sets:
        training_plan.reasoned_sets(n.workspace, query_set.id)
        config = TrainingConfig.from_dict({"query_set": query_set.id, "retriever": "static-minilm"})
        training.plan(n.workspace, config)


def _sets(n: Names) -> None:
    for query_set in queries.list_query_sets(n.workspace):
        completeness.check(n.workspace, query_set)
        queries.page(n.workspace, query_set.id)
        queries.failures(n.workspace, query_set.id)
        usable.round_trips(n.workspace, query_set)
        query_sets.content_hash(n.workspace, query_set)


def _worker(n: Names) -> None:
    """A resume reads what the last attempt left."""
    folder = n.workspace.job("synthesis-20260101-000000-abcd-x")
    job = Job(folder)
    Failures(folder / "failures.jsonl", "s")
    SynthesisRun(job).execute()


READINGS: Mapping[str, Callable[[Names], object]] = {
    "judged benchmarks": _judged,
    "jobs": _jobs,
    "outcomes": _each_job(jobs.outcome),
    "failures": _each_job(lambda w, name: jobs.failed(w, name).warning),
    "curves": _each_job(lambda w, name: (jobs.latest(w, name), jobs.curve(w, name, "loss"))),
    "logs": _each_job(jobs.log),
    "bills": _each_job(pricing.bill_of_job),
    "waiting": _each_job(lambda w, name: room.view(w, name).fraction),
    "comparison": _compare,
    "catalogue": lambda n: (catalog.runs(n.workspace), catalog.metrics(n.workspace)),
    "study": _study,
    "studies": lambda n: (studies.list_studies(n.workspace), studies.speeds(n.workspace)),
    "decide": lambda n: decide.decide(n.workspace, corpus=n.corpus),
    "trial": lambda n: [trial.trouble(n.workspace, view) for view in studies.list_studies(n.workspace)],
    "last generator": lambda n: own_test.last_generator(n.workspace, n.corpus),
    "models": lambda n: trained_models.list_models(n.workspace),
    "model": lambda n: trained_models.show(n.workspace, "training-1-diverse"),
    "retrievers": lambda n: (training.list_retrievers(n.workspace), search.list_retrievers(n.workspace)),
    "training": _training,
    "query sets": _sets,
    "review": _review,
    "prompts": lambda n: candidates.synthesis_of(tuning.result(n.workspace, "prompts-1")),
    "benchmarks": lambda n: (benchmarks.list_own(n.workspace), benchmarks.list_registry(n.workspace)),
    "benchmark": lambda n: [asdict(benchmarks.show(n.workspace, name).info) for name in ("made", "demo")],
    "corpora": lambda n: (corpora.list_corpora(n.workspace), looking.page(n.workspace, n.corpus)),
    "projects": lambda n: (projects.list_projects(n.workspace), projects.members(n.workspace, "demo"),
                           projects.default(n.workspace)),
    "prune": lambda n: doctor.prunable(n.workspace),
    "prices": lambda n: pricing.estimate(n.workspace, SynthesisConfig.from_dict(
        {"corpus": n.corpus, "generator": "openai", "model": "m", "base_url": "http://localhost:1/v1"})),
    "resume": _worker,
}  # fmt: skip


def stored_files(workspace: Workspace) -> list[Path]:
    """The files that are damaged: all records, but not the one that says who may read the rest."""
    found = [path for path in workspace.root.rglob("*") if path.suffix in SUFFIXES and path.is_file()]
    return sorted(path for path in found if path.name != "workspace.json" and ".incoming" not in str(path))


def damage(path: Path, rng: random.Random) -> bytes:
    """The content of a file after some damage: other types, fields left out, lines cut, bytes garbled."""
    data = path.read_bytes()
    draw = rng.random()
    if draw < 0.45 and path.suffix == ".json":
        value = json.loads(data)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            value = wrong_types(value, rng)
        return json.dumps(value).encode()
    if draw < 0.6 and path.suffix == ".jsonl" and data:
        lines = [json.loads(line) for line in data.splitlines()]
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(lines))
            lines[at] = wrong_types(lines[at], rng)
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    if draw < 0.7:
        return rng.choice((b"[" * 100_000, b"null", b"", b"\xff\xfe", b"9" * 5000, b'{"a":' * 3000, b"[]", b"{}\n" * 3))
    return damaged(data, rng)


@contextmanager
def with_damage(workspace: Workspace, paths: Sequence[Path], rng: random.Random) -> Iterator[None]:
    """The workspace with these files damaged, as it was before afterwards."""
    before = {path: path.read_bytes() for path in stored_files(workspace)}
    for path in paths:
        path.write_bytes(damage(path, rng))
    try:
        yield
    finally:
        for path in set(stored_files(workspace)) - set(before):
            path.unlink()
        for path, data in before.items():
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        for cache in (RECORDS, ANSWERS):
            cache._values.clear()


@dataclass
class Report:
    """How the attempts ended: counts, and what is wrong by where it was raised."""

    attempts: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)


def attempt(names: Names, seed: int, report: Report) -> None:
    """Damage some files and ask everything."""
    rng = random.Random(seed)
    workspace = names.workspace
    # Each kind of file as often as any other: of some there are dozens.
    kinds: dict[str, list[Path]] = {}
    for path in stored_files(workspace):
        kinds.setdefault("condition" if path.parent.name == "conditions" else path.name, []).append(path)
    chosen = rng.sample(sorted(kinds), rng.choice((1, 1, 1, 2, 3)))
    paths = [rng.choice(kinds[kind]) for kind in chosen]
    shown = ", ".join(str(path.relative_to(workspace.root)) for path in paths)
    words = {"job": rng.choice(names.jobs), "study": "study-1", "training": "training-1-diverse",
             "prompts": "prompts-1", "set": names.sets[0].id}  # fmt: skip
    asked: dict[str, Callable[[], object]] = {name: lambda read=read: read(names) for name, read in READINGS.items()}  # type: ignore[misc]
    for command in rng.sample(COMMANDS, 3):
        asked[f"cdp {command}"] = lambda command=command: _told(workspace, command.format(**words))  # type: ignore[misc]
    report.attempts += 1
    with with_damage(workspace, paths, rng):
        for name, ask in rng.sample(sorted(asked.items()), ASKED):
            try:
                ask()
                report.ends["result"] += 1
            except CdpError as error:
                str(error).encode()
                report.ends["CdpError"] += 1
            except Exception as error:
                report.ends["wrong"] += 1
                step = error.__traceback__
                places = []
                while step is not None:
                    places.append(f"{Path(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}")
                    step = step.tb_next
                own = [p for p in places if not p.startswith(("stored.py", "test_"))][-4:]
                place = f"{type(error).__name__} in {name} at {' '.join(own)}"
                report.wrong.setdefault(place, f"seed {seed}: {shown}: {str(error)[:200]}")


def _told(workspace: Workspace, words: str) -> None:
    _, said = run(workspace, words)
    assert "Traceback" not in said, said[-1000:]


def attack(names: Names, seeds: Iterator[int], *, minutes: float = 0.0, n: int = 0) -> Report:
    """Attack ``n`` times, or for so many minutes."""
    report = Report()
    ends = time.monotonic() + 60 * minutes
    while report.attempts < n or time.monotonic() < ends:
        attempt(names, next(seeds), report)
    return report
