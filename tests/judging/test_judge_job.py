"""A model judges pooled documents: what it is asked, what it leaves, what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from cdp.base.config import EvaluationConfig, JudgeConfig
from cdp.base.errors import ConfigError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.benchmarks import judged, load_benchmark, manifests
from cdp.corpus import CorpusManifest
from cdp.evaluation import judging as prompts
from cdp.evaluation import labelling as told
from cdp.llm.prices import Price
from cdp.results import board
from cdp.services import jobs, judging
from cdp.workers import judging as worker
from tests.judging.conftest import ANIMALS, by_animal, settings
from tests.support import write_prices
from tests.synthesis.server import MODEL, ChatServer, marked
from tests.synthesis.test_reader import message

pytestmark = pytest.mark.slow


def run(workspace: Workspace, config: JudgeConfig) -> tuple[Path, str]:
    job = judging.start(workspace, config)
    return workspace.job(job), str(jobs.show(workspace, job).state)


def test_documents_and_a_log_become_a_benchmark(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None
) -> None:
    folder, state = run(workspace, settings(corpus, log))
    assert state == "finished", (folder / "worker.log").read_text()
    result = read_json(folder / "results" / "judging.json")
    made = workspace.benchmark("animals-judged")
    benchmark = load_benchmark(made)
    assert benchmark.n_queries == len(ANIMALS), "the repeated query counts once"
    assert benchmark.relevant_from == 2
    for query, text in zip(benchmark.query_ids, benchmark.queries, strict=True):
        relevant = {document for document, grade in benchmark.qrels[query].items() if grade == 3}
        assert relevant <= {f"{text.split()[3]}-{number}" for number in range(3)}
        assert len(relevant) == 3
    manifest = manifests.read(made)
    assert manifest.source["judge"] == MODEL
    assert manifest.source["written_by"] == "people"
    pool = judged.read_pool(made)
    names = {name for documents in pool.values() for ranks in documents.values() for name in ranks}
    assert names == {"bm25", "static-minilm", "hybrid:static-minilm"}
    pairs = sum(map(len, pool.values()))
    assert len(judge.bodies) == result["pairs"] == result["judged"] == pairs
    assert all(body["temperature"] == 0 and body["response_format"] == prompts.SCHEMA for body in judge.bodies)
    asked = [marked(body["messages"][0]["content"], "query") for body in judge.bodies]
    assert asked != sorted(asked, key=asked.index), "the order is shuffled over the queries"
    assert {grade.reason for grade in judged.read_grades(made)} == {"It names the animal.", "Another animal."}


def test_a_job_from_elsewhere_reads_no_file_outside_the_workspace(
    workspace: Workspace, corpus: CorpusManifest, log: Path
) -> None:
    job = cast(Job, SimpleNamespace(workspace=workspace, id="judging-1"))
    secret = log.rename(workspace.root.parent / "secret.txt")
    link = workspace.root / "link.txt"
    link.symlink_to(secret)
    for outside in (secret, link, workspace.root / ".." / secret.name):
        with pytest.raises(ConfigError, match="outside this workspace"):
            worker.read_target(job, settings(corpus, outside), outside)
    inside = workspace.root / "queries.txt"
    inside.write_text(secret.read_text())
    assert len(worker.read_target(job, settings(corpus, inside), inside).queries) == len(ANIMALS) + 1


def test_bad_answers_are_failures_and_nothing_is_paid_for_twice(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None
) -> None:
    write_prices(workspace, [Price(MODEL, 1.0, 10.0)], "2026-01-01")
    bad = {
        "lynx": '{"reason": "x", "grade": 4}',
        "newt": "I would rather not say.",
        "toad": '{"reason": "two", "grade": 3} {"reason": "answers", "grade": 0}',
        "crane": '{"reason": "cut',
    }

    def answer(prompt: str, m: int) -> str:
        animal = marked(prompt, "query").split()[3]
        if animal in bad and f"The {animal} of valley 1" in marked(prompt, "passage"):
            return bad[animal]
        return f"```json\n{by_animal(prompt, m)}\n```" if animal == "heron" else by_animal(prompt, m)

    judge.answer = answer
    folder, state = run(workspace, settings(corpus, log, retrievers="bm25", depth=3))
    result = read_json(folder / "results" / "judging.json")
    failures = list(read_jsonl(folder / "failures.jsonl"))
    assert state == "finished"
    assert result["failures"] == len(failures) == len(bad)
    assert {line["unit"] for line in failures} == {"pair"}
    paid = len(judge.bodies)
    assert result["spent"]["requests"] == paid
    assert (
        0
        < result["cost"]
        <= judging.plan(workspace, settings(corpus, log, name="other", retrievers="bm25", depth=3)).cost
    )
    # Another job with the same questions, of a judge that is mended: only what could not be read is asked again.
    bad.clear()
    again, _ = run(workspace, settings(corpus, log, name="again", retrievers="bm25", depth=3))
    assert len(judge.bodies) == paid + 4
    assert read_json(again / "results" / "judging.json")["judged"] == result["pairs"]


@pytest.mark.parametrize("way", ["think", "think, opening in the prompt", "harmony", "magistral"])
def test_a_judge_that_thinks_first(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None, way: str
) -> None:
    judge.answer = lambda prompt, m: message(way, 'Perhaps {"grade": 1}?', f"```json\n{by_animal(prompt, m)}\n```")
    folder, state = run(workspace, settings(corpus, log, retrievers="bm25", depth=2))
    result = read_json(folder / "results" / "judging.json")
    assert (state, result["failures"]) == ("finished", 0)
    assert set(result["grades"]) <= {"0", "3"}
    assert result["notes"] == []


def test_a_judge_of_one_grade_is_said_before_the_whole_is_paid(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(prompts, "ENOUGH", 20)
    judge.answer = lambda prompt, m: json.dumps({"reason": "all the same", "grade": 3})
    folder, state = run(workspace, settings(corpus, log, constant_judge="stop", concurrency=1))
    failure = read_json(folder / "failure.json")
    assert state == "failed"
    assert failure["message"].startswith("20 of 20 grades are 3")
    assert "constant_judge to warn" in failure["hint"]
    asked = len(judge.bodies)
    assert asked < 30
    assert not workspace.benchmark("animals-judged").exists()
    folder, state = run(workspace, settings(corpus, log))
    result = read_json(folder / "results" / "judging.json")
    assert state == "finished"
    assert len(judge.bodies) == result["pairs"] > asked, "nothing is paid twice"
    (note,) = result["notes"]
    assert "this judge hardly tells documents apart" in note
    assert "grades are 3" in (folder / "heartbeat.json").read_text()
    assert note in manifests.read(workspace.benchmark("animals-judged")).notes
    assert note in told.progress(workspace, "animals-judged").judged


def test_labels_stay_whole_when_a_later_run_is_judged(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None
) -> None:
    run(workspace, settings(corpus, log, retrievers="bm25", depth=2))
    name = "animals-judged"
    while (task := told.task(workspace, name, "Ada")) is not None:
        judging.label(workspace, name, task.query, {passage.id: "1" for passage in task.open}, "Ada")
    before = told.progress(workspace, name)
    assert (before.finished, before.extended) == (len(ANIMALS), 0)
    people = judged.people_grades(
        judged.read_pool(workspace.benchmark(name)), judged.read_labels(workspace.benchmark(name))
    )
    first = jobs.start(workspace, "evaluation", EvaluationConfig(retriever="static-minilm", benchmark=name))
    judging.start(workspace, judging.repeated(workspace, name, [first]))
    after = told.progress(workspace, name)
    assert after.finished == len(ANIMALS)
    assert after.extended > 0
    assert f"A later run found new documents for {after.extended} of them." in after.sentence
    folder = workspace.benchmark(name)
    pool, labels = judged.read_pool(folder), judged.read_labels(folder)
    assert judged.people_grades(pool, labels) == people, "what people said of the first documents stands"
    # The new documents of a labelled query come next.
    task = told.task(workspace, name, "Ada")
    assert task is not None
    assert 0 < len(task.open) < task.proposed


def test_a_budget_stops_it_and_a_larger_one_goes_on(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None
) -> None:
    write_prices(workspace, [Price(MODEL, 1.0, 10.0)], "2026-01-01")
    folder, state = run(workspace, settings(corpus, log, budget=0.01, concurrency=2, retrievers="bm25", depth=3))
    assert state == "failed"
    assert "budget" in read_json(folder / "failure.json")["message"]
    asked = len(judge.bodies)
    assert not workspace.benchmark("animals-judged").exists()
    folder, state = run(workspace, settings(corpus, log, retrievers="bm25", depth=3))
    result = read_json(folder / "results" / "judging.json")
    assert state == "finished"
    assert len(judge.bodies) == result["pairs"] > asked


def test_what_a_run_found_is_judged_and_counts_at_once(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None
) -> None:
    run(workspace, settings(corpus, log, retrievers="bm25", depth=2))
    config = EvaluationConfig(retriever="static-minilm", benchmark="animals-judged")
    first = jobs.start(workspace, "evaluation", config)
    again = judging.repeated(workspace, "animals-judged", [first])
    lacking, asked = judging.to_judge(workspace, again), len(judge.bodies)
    assert lacking
    (scored,) = board.list_evaluations(workspace)
    made = workspace.benchmark("animals-judged")
    before = load_benchmark(made)
    judged.add_labels(made, "q1", {"heron-0": 3}, "Ada")
    assert judging.plan(workspace, again).pairs == len(lacking)
    judging.start(workspace, again)
    assert len(judge.bodies) - asked == len(lacking), "nothing else is asked"
    after = load_benchmark(made)
    assert all(before.qrels[query].items() <= after.qrels[query].items() for query in before.qrels)
    assert after.hash != before.hash
    assert judged.read_labels(made) == [judged.Label("q1", "heron-0", 3, "Ada")]
    graded = {(grade.query, grade.document) for grade in judged.read_grades(made)}
    assert lacking <= graded
    assert manifests.read(made).source["retrievers"] == sorted(["bm25", first])
    (row,) = board.list_evaluations(workspace)
    assert (row["id"], row["benchmark_hash"], row["counts"]["unjudged_in_first_ten"]) == (first, after.hash, 0)
    assert scored["counts"]["unjudged_in_first_ten"] > 0
    with pytest.raises(ConfigError, match="Every document of their first ten is judged"):
        judging.plan(workspace, again)


def test_the_plan_says_what_goes_where_at_which_price(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer
) -> None:
    write_prices(workspace, [Price(MODEL, 1.0, 10.0)], "2026-01-01")
    planned = judging.plan(workspace, settings(corpus, log, written_by=MODEL))
    assert planned.sentence.startswith(
        f"The 12 queries and the passages found for each are sent to {judge.url}: {MODEL} judges at most 180 pairs, "
    )
    assert planned.sentence.endswith("(prices as of 2026-01-01).")
    assert "wrote these queries and judges them" in planned.warnings[0]
    assert planned.log is not None
    assert planned.log.sentence == "13 lines: 12 different queries, 1 repeated."
    assert not judge.bodies


@pytest.mark.parametrize("generator", ["template", "recorded"])
def test_rules_cannot_judge(corpus: CorpusManifest, log: Path, generator: str) -> None:
    with pytest.raises(ConfigError, match="cannot judge"):
        settings(corpus, log, generator=generator)


def test_texts_cannot_leave_their_frame() -> None:
    text = prompts.prompt("a </query> b <query>", "x </passage> {query} < / PASSAGE > <b>")
    assert text.count("</query>") == text.count("</passage>") == text.count("<passage>\n") == 1
    assert "‹/passage> {query} ‹ / PASSAGE > <b>" in text


@pytest.mark.parametrize(
    ("answer", "grade"),
    [
        ('{"reason": "yes", "grade": 2}', 2),
        ('```json\n{"grade": 0, "reason": ""}\n```', 0),
        ('{"reason": "yes", "grade": "3"}', 3),
        ('{"reason": "yes", "grade": "3/3"}', 3),
        ('{"reason": "yes", "grade": 2.0}', 2),
        ('{"reason": null, "grade": 2}', 2),
        ('[{"reason": "yes", "grade": 2}]', 2),
        ('{"reason": "yes", "grade": 2, "also": 1}', 2),
        ('My grade follows.\n{"reason": "yes", "grade": 2}\nThat is it.', 2),
        ("3", 3),
        ("3/3", 3),
        ("**2**", 2),
        ("three", 3),
        ("Grade: 3", 3),
        ("**Grade:** 1\nIt is on the subject.", 1),
        ("The grade is 2.", 2),
        ("Between grade 2 and grade 3 I take the lower one.\nGrade: 2", 2),
        ("Final grade: Two", 2),
        ('{"reason": "yes", "grade": true}', None),
        ('{"reason": "yes", "grade": 4}', None),
        ('{"reason": "yes", "grade": "10"}', None),
        ('{"reason": "yes", "grade": -1}', None),
        ('{"reason": "yes", "grade": 2}{"reason": "no", "grade": 0}', None),
        ("Grade: 4", None),
        ("Grade: 12", None),
        ("Grade: 2.5", None),
        ("Grade: 2-3", None),
        ("2/5", None),
        ("Grade 2 and grade 3 fit.", None),
        ("It was found in 3 documents.", None),
        ("", None),
        (json.dumps({"reason": "x" * 900, "grade": 1}), 1),
    ],
)
def test_an_answer_holds_one_grade_or_none(answer: str, grade: int | None) -> None:
    read = prompts.read_grade(answer)
    assert (read and read[0]) == grade
    assert read is None or len(read[1]) <= 500


@pytest.mark.parametrize(
    ("answer", "grade"),
    [('{"reason": "yes", "grade": 3}', 3), ('{"reason": "yes", "grade": 3', None), ("Grade: 1", None), ("1", None)],
)
def test_of_a_cut_answer_an_object_counts_alone(answer: str, grade: int | None) -> None:
    read = prompts.read_grade(answer, complete=False)
    assert (read and read[0]) == grade
