"""From documents and a log to the answer as one job: its parts, a stop that keeps what was paid, a resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import judged, library, manifests
from cdp.cli import main
from cdp.corpus import CorpusManifest
from cdp.evaluation import labelling
from cdp.jobs import JobView
from cdp.llm.prices import Price
from cdp.services import answering, decide, jobs, judging, projects, studies
from cdp.studies import own_test, records
from cdp.studies.config import AnswerConfig
from cdp.workers import answer
from tests.judging.conftest import ANIMALS, _no_keys, _short_backoff, by_animal, corpus, judge, log, server, settings
from tests.services.test_trial import corpus as papers
from tests.support import write_prices
from tests.support_models import tiny_static
from tests.synthesis.server import KEY, MODEL, ChatServer, document_of

__all__ = ["_no_keys", "_short_backoff", "corpus", "judge", "log", "server"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_steps")]

SMALL = {"seeds": 1, "minutes": 60, "trained_layers": 0}


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The retriever to train, and nothing beside it: what is at hand takes seconds to load and minutes to train."""
    monkeypatch.setattr(own_test, "at_hand", lambda *_: [])
    monkeypatch.setattr(studies, "measure", lambda *_: None)
    return str(tiny_static(tmp_path / "tiny"))


def asked(corpus: CorpusManifest, log: Path | str, tiny: str, **more: object) -> AnswerConfig:
    fixed = {"generator": "openai", "model": MODEL, "retriever": tiny}
    values = {"corpus": corpus.id, "log": str(log), **fixed, **SMALL, **more}
    return AnswerConfig.from_dict(values)


def writes_and_judges(prompt: str, n: int) -> str:
    """Grades for a judge's prompt; else queries that are others for the two methods."""
    if "<passage>" in prompt:
        return by_animal(prompt, n)
    about = document_of(prompt).split()[1]
    word = "where" if "different words" in prompt else "when"
    return "\n".join(f"{'' if i == 1 else f'{i}. '}{word} is the {about} at hour {i}" for i in range(1, n + 1))


@pytest.fixture
def writer(judge: ChatServer, workspace: Workspace) -> ChatServer:
    judge.answer = writes_and_judges
    write_prices(workspace, [Price(MODEL, 0.1, 0.1)], "2026-01-01")
    return judge


@pytest.mark.usefixtures("jobs_here")
def test_documents_and_a_log_become_an_answer(
    workspace: Workspace, corpus: CorpusManifest, log: Path, writer: ChatServer, tiny: str
) -> None:
    project = projects.create(workspace, "animals", corpora=[corpus.id])
    planned = answering.plan(workspace, asked(corpus, log, tiny))
    assert not writer.bodies, "nothing is sent before the start"
    assert planned.sentence.endswith(
        f"36 documents and {len(ANIMALS)} queries with the passages found for them are sent to {writer.url} ({MODEL})."
    )
    assert "for at most $" in planned.sentence

    id = answering.start(workspace, asked(corpus, log, tiny), api_key=KEY)
    (view,) = [job for job in jobs.list_jobs(workspace) if job.kind == "answer"]
    assert (view.id, str(view.state), view.has_model) == (id, "finished", True)
    assert [job.kind for job in jobs.list_jobs(workspace)] == ["answer"]  # one job, not one for each part
    known = decide.decide(workspace, corpus=corpus.id)
    assert (known.measured, known.basis and known.basis.study) == (True, id)
    assert known.badge.startswith("judged by a model")
    assert known.basis is not None
    assert known.basis.written_by == MODEL
    assert known.basis.benchmark != "animals-judged"  # a sample of it, with queries that choose the checkpoints
    for name in ("animals-judged", known.basis.benchmark):
        assert [owner.id for owner in projects.projects_of(workspace, "benchmark", name)] == [project.id]
    assert {q.method for q in query_sets.list_query_sets(workspace)} == {"diverse", "paraphrase"}
    # What the trainings found beyond the pool was judged as a part of the job.
    assert known.basis.unjudged == 0
    assert KEY not in "".join(path.read_text("utf-8", "replace") for path in view.folder.rglob("*.json*"))


@pytest.mark.usefixtures("jobs_here")
def test_a_stop_keeps_grades_and_queries_and_a_resume_pays_for_nothing_twice(
    workspace: Workspace, corpus: CorpusManifest, log: Path, writer: ChatServer, tiny: str
) -> None:
    def stopping(at: int) -> Any:
        once: list[int] = []

        def answer(prompt: str, n: int) -> str:
            if len(writer.bodies) >= at and not once:
                once.append(at)
                (folder,) = workspace.jobs.glob("answer-*")
                write_json(folder / "stop.request", {})
            return writes_and_judges(prompt, n)

        return answer

    def stopped(said: str) -> JobView:
        view = jobs.show(workspace, jobs.list_jobs(workspace, ["answer"])[0].id)
        assert str(view.state) == "stopped"
        (note,) = jobs.outcome(workspace, view.id)["notes"]
        assert said in note
        assert note.endswith("Nothing is paid for twice.")
        return view

    writer.answer = stopping(40)
    id = answering.start(workspace, asked(corpus, log, tiny), api_key=KEY)
    stopped("grades")
    assert len(judged.read_grades(workspace.job(id))) >= 30

    in_all = answering_bodies(writer)
    writer.answer = stopping(len(writer.bodies) + 200)
    jobs.resume(workspace, id)
    view = jobs.show(workspace, id)
    if str(view.state) == "stopped":  # while queries were written
        stopped("queries")
        writer.answer = writes_and_judges
        jobs.resume(workspace, id)
    assert str(jobs.show(workspace, id).state) == "finished"
    sent = [json.dumps(body, sort_keys=True) for body in answering_bodies(writer)]
    assert len(sent) - len(set(sent)) <= 8  # at most what was on its way when it was stopped
    assert len(sent) > len(in_all)


def answering_bodies(server: ChatServer) -> list[Any]:
    return [body.get("messages") for body in server.bodies]


def test_two_answers_at_once_judge_benchmarks_of_their_own(
    workspace: Workspace, corpus: CorpusManifest, log: Path, writer: ChatServer, tiny: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("cdp.jobs._start_supervisor", lambda *_, **__: None)
    ids = [answering.start(workspace, asked(corpus, log, tiny), api_key=KEY) for _ in range(2)]
    named = [jobs.show(workspace, id).config["benchmark"] for id in ids]
    assert named == ["animals-judged", "animals-judged-2"]

    # What the endpoint takes later is expected at the pace of the judging, from where it first told of progress.
    clock, told = [0.0], []
    monkeypatch.setattr(answer.time, "monotonic", lambda: clock[0])
    stages = answer.Stages(Job(workspace.job(ids[1])))
    stages.seconds = {own_test.JUDGING: 100.0, own_test.WRITING: 40.0, own_test.TESTING: 60.0, own_test.CLOSING: 20.0}
    monkeypatch.setattr(stages.job, "progress", lambda *_, left_s, **__: told.append(left_s))
    stages.enter(own_test.JUDGING)
    for clock[0], done in ((30.0, 0), (31.0, 50), (32.0, 100)):  # 2 s for 100, after half a minute of loading
        stages._progress("judging", done, 100, "pairs")
    stages.enter(own_test.WRITING)
    assert told == pytest.approx([220.0, 220.0, 1.0 + 120.0, 0.0 + 120.0, 0.02 * 60.0 + 60.0])

    # Where one has the name all the same, its judgments are not taken for those of this job.
    manifest = manifests.Manifest(source={"kind": judged.KIND, "job": ids[1]})
    documents = [Document(f"d{n}", "", f"Text {n}.") for n in range(2)]
    library.make(workspace, named[0], documents, {"q1": "a"}, {judged.SPLIT: {"q1": {"d0": 3}}}, manifest)
    with pytest.raises(ConfigError, match="Another job has made a benchmark called 'animals-judged'"):
        answer.judge(answer.Stages(Job(workspace.job(ids[0]))))
    assert not writer.bodies


def test_a_log_without_a_model_that_judges_is_refused(
    workspace: Workspace, corpus: CorpusManifest, log: Path, tiny: str
) -> None:
    with pytest.raises(ConfigError, match="cannot judge"):
        answering.plan(workspace, asked(corpus, log, tiny, generator="template", model=""))


def test_templates_as_the_last_resort_are_said_before_the_start(
    workspace: Workspace, tmp_path: Path, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With nothing set up the commands fell back to them without a word."""
    corpus = papers(workspace, tmp_path, 12)
    words = ["--corpus", corpus.id, "--retriever", tiny, "--minutes", "60"]
    for command in (["answer"], ["study", "test"]):
        assert main([*command, *words, "--json"]) == 0
        told = capsys.readouterr()
        assert told.err.startswith(own_test.BY_TEMPLATES), command
        assert "--generator openai" in told.err
        if command == ["answer"]:
            assert "templates write the training queries, for no LLM is named" in json.loads(told.out)["takes"]
            judged, writing = json.loads(told.out)["steps"][:2]
            assert judged == f"2 template queries of {corpus.id}-template"
            assert writing == "training queries by templates"
    assert main(["answer", *words, "--generator", "template"]) == 0
    assert own_test.BY_TEMPLATES not in capsys.readouterr().err, "they were asked for"


def test_templates_whose_two_sets_would_coincide_are_refused_before_the_start(
    corpus: CorpusManifest, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence has the same wordings by either method: the job ended so after its start."""
    assert main(["answer", "--corpus", corpus.id, "--retriever", tiny, "--yes"]) == 2

    told = capsys.readouterr().err
    assert "have the same queries in both sets" in told
    assert "generator openai" in told


def test_a_log_beside_a_benchmark_is_refused(
    workspace: Workspace, corpus: CorpusManifest, log: Path, tiny: str
) -> None:
    with pytest.raises(ConfigError, match="Both a query log and the benchmark animals are named"):
        answering.plan(workspace, asked(corpus, log, tiny, benchmark="animals"))


@pytest.mark.usefixtures("jobs_here", "with_demo_here")
def test_judged_queries_and_recorded_ones_take_no_model(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], tiny: str
) -> None:
    words = ["answer", "--corpus", "demo", "--documents", "12", "--queries", "20", "--retriever", tiny]
    small = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert main([*words, *small, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["takes"].endswith("free of charge; no text leaves this machine.")
    assert told["seconds"]["testing"] > 0
    assert main([*words, *small, "--yes"]) == 0
    (view,) = jobs.list_jobs(workspace, ["answer"])
    assert str(view.state) == "finished", view.failure
    assert len(list(records.list_records(view.folder))) >= 6
    assert read_json(view.folder / "results" / "answer.json")["trainings"] == 6


@pytest.mark.usefixtures("jobs_here")
def test_people_find_in_the_pool_what_its_trainings_newly_found(
    workspace: Workspace, corpus: CorpusManifest, log: Path, tiny: str
) -> None:
    alone = {"generator": "people", "model": "", "retrievers": "bm25", "depth": 1}
    judging.start(workspace, settings(corpus, log, **alone))
    projects.create(workspace, "animals", corpora=[corpus.id], benchmarks=["animals-judged"])
    while (task := labelling.task(workspace, "animals-judged", "Ada")) is not None:
        judging.label(workspace, "animals-judged", task.query, {found.id: "3" for found in task.open}, "Ada")

    for method in ("diverse", "paraphrase"):
        lines = []
        for animal in ANIMALS:
            lines += [(f"{animal}-{n}", [f"{method} {at} of the {animal} {n}" for at in range(5)]) for n in range(3)]
        made = query_sets.import_queries(
            iter(lines), workspace, corpus.id, method, kind="synthetic", method=method, language="en"
        )
        query_sets.update(workspace, made.query_set.id, generator="template")

    values = {"corpus": corpus.id, "generator": "template", "retriever": tiny, **SMALL}
    id = answering.start(workspace, AnswerConfig.from_dict(values))
    view = jobs.show(workspace, id)
    assert str(view.state) == "finished", view.failure
    assert decide.decide(workspace, corpus=corpus.id).badge.startswith("judged by people")
    done = labelling.progress(workspace, "animals-judged")
    assert (done.finished, done.extended) == (len(ANIMALS), len(ANIMALS)), "what was labelled stays in the test"
    assert done.left > 0


@pytest.fixture
def with_demo_here(workspace: Workspace, demo_root: Path) -> None:
    import shutil

    shutil.copytree(demo_root, workspace.root)
