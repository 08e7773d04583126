"""People judge alone: pool, labels, the queries that count, evaluation, comparison, later runs, a model afterwards."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import EvaluationConfig, JudgeConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import describe, judged, library, load_benchmark, manifests
from cdp.benchmarks.beir_files import read_queries
from cdp.cli import main
from cdp.corpus import CorpusManifest
from cdp.evaluation import labelling
from cdp.results import board, differences
from cdp.services import adding, decide, jobs, judging, projects, studies, trial
from cdp.studies import own_test
from cdp.studies.config import TrialConfig
from tests.jobs.support import run_worker
from tests.judging.conftest import ANIMALS, settings
from tests.judging.made import corpus_of, make, people_alone
from tests.support import ONLY_STATIC_IS_FAST
from tests.synthesis.server import KEY, MODEL, ChatServer

pytestmark = pytest.mark.slow

BIRDS = ("heron", "crane", "stork", "egret", "bittern", "ibis")
NAME = "birds-judged"


@pytest.fixture
def birds(workspace: Workspace, tmp_path: Path) -> CorpusManifest:
    """Eight documents: one about each bird, and two about none."""
    texts = [f"The {bird} nests by the river and feeds on fish." for bird in BIRDS]
    texts += ["A bridge of stone crosses the valley.", "The mill grinds wheat and barley."]
    return corpus_of(workspace, tmp_path, "birds", {f"d{at}": text for at, text in enumerate(texts)})


@pytest.fixture
def questions(workspace: Workspace) -> Path:
    path = workspace.root / "questions.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(f"where does the {bird} nest" for bird in BIRDS), encoding="utf-8")
    return path


def by_people(corpus: CorpusManifest, questions: Path, **more: object) -> JudgeConfig:
    return settings(corpus, questions, generator="people", model="", name=NAME, **more)


def start(workspace: Workspace, config: JudgeConfig) -> str:
    job = judging.start(workspace, config)
    view = jobs.show(workspace, job)
    assert str(view.state) == "finished", view.failure
    return job


def finish(workspace: Workspace, by: str = "Ada", n: int = 1, *, name: str = NAME) -> list[str]:
    """Label this person's next ``n`` queries: the document about the query's bird answers it."""
    done = []
    for _ in range(n):
        task = labelling.task(workspace, name, by)
        assert task is not None
        answers = {d.id: "3" if task.text.split()[3] in d.text else "0" for d in task.open}
        judging.label(workspace, name, task.query, answers, by)
        done.append(task.query)

    return done


def evaluate(workspace: Workspace, retriever: str, benchmark: str = NAME) -> str:
    return jobs.start(workspace, "evaluation", EvaluationConfig(retriever=retriever, benchmark=benchmark))


def test_from_a_pool_to_a_comparison_that_says_judged_by_people(
    workspace: Workspace,
    birds: CorpusManifest,
    questions: Path,
    jobs_here: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for key in ("CDP_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(key, raising=False)

    words = ["benchmarks", "judge", "--corpus", birds.id, "--queries", str(questions), "--generator", "people"]
    assert main([*words, "--name", NAME, "--wait", "--json"]) == 0
    said = capsys.readouterr()
    assert "stay on this machine: people label at most" in said.err
    assert "api" not in said.err.lower()

    # Nothing is labelled: it is there, and cannot be evaluated on.
    folder = workspace.benchmark(NAME)
    pool = judged.read_pool(folder)
    assert len(pool) == len(BIRDS)
    (info,) = library.list_benchmarks(workspace)
    assert info.problem.startswith(f"No query of {NAME} is labelled as a whole yet.")
    with pytest.raises(CdpError, match="labelled as a whole"):
        evaluate(workspace, "bm25")

    # One query by keys in a terminal, then a stop; the others later.
    first = judged.sampled(pool)[0]
    monkeypatch.setattr("sys.stdin", io.StringIO("3\n" + "0\n" * (len(pool[first]) - 1) + "2\nq\n"))
    assert main(["benchmarks", "label", NAME, "--by", "Ada", "--json"]) == 0
    state = json.loads(capsys.readouterr().out)
    assert (state["finished"], state["total"], state["judge"]) == (1, 6, "")
    assert state["left"] == sum(map(len, pool.values())) - len(pool[first]) - 1
    assert load_benchmark(folder).query_ids == [first]

    judging.undo(workspace, NAME, "Ada")
    finish(workspace, n=5)
    progress = labelling.progress(workspace, NAME)
    assert progress.sentence == "6 of 6 queries labelled by people (Ada 6): the test so far."

    for retriever in ("bm25", "static-minilm"):
        evaluate(workspace, retriever)
    for row in board.list_rows(workspace, board.list_evaluations(workspace)):
        assert "judged by people" in [badge.word for badge in row.badges]
        assert row.n_queries == 6
        assert "unjudged" not in str(row.badges)

    assert main(["results", "compare", "--baseline", "bm25"]) == 0
    said = capsys.readouterr()
    assert "Judged by people, who labelled all pooled documents of these queries." in said.out
    (row,) = [row for row in differences.compare(workspace, "bm25").rows if row.retriever == "static-minilm"]
    assert (row.calibration, row.unjudged) == (None, None)
    assert row.low is not None


def test_only_queries_labelled_as_a_whole_are_in_the_test(
    workspace: Workspace, birds: CorpusManifest, questions: Path, jobs_here: None
) -> None:
    start(workspace, by_people(birds, questions))
    folder = workspace.benchmark(NAME)
    first, second = finish(workspace, n=2)

    # Half of the third query, by two people: no one labelled it as a whole.
    task = labelling.task(workspace, NAME, "Ada")
    assert task is not None
    for at, document in enumerate(task.open):
        judging.label(workspace, NAME, task.query, {document.id: "3"}, ("Ada", "Ben")[at % 2])
    assert set(load_benchmark(folder).qrels) == {first, second}
    assert set(judged.grades_of(folder)) == {first, second}

    # A label is taken back: the query leaves the test. What Ada did last was half of the third one.
    for _ in range((len(task.open) + 1) // 2):
        judging.undo(workspace, NAME, "Ada")
    assert judging.undo(workspace, NAME, "Ada") == second
    assert set(load_benchmark(folder).qrels) == {first}
    assert judging.undo(workspace, NAME, "Ada") == first
    with pytest.raises(CdpError, match="labelled as a whole"):
        load_benchmark(folder)


def test_people_who_disagree_count_by_the_rounded_mean(workspace: Workspace) -> None:
    folder = people_alone(make(workspace, lambda q, d: 0, n_queries=3, per_query=2))
    for by, grades in (("Ada", (3, 2)), ("Ben", (2, 1)), ("Cy", (3, None))):
        judged.add_labels(folder, "q1", {"d1-0": grades[0], "d1-1": grades[1]}, by)
    assert load_benchmark(folder).qrels == {"q1": {"d1-0": 3, "d1-1": 1}}

    judged.undo(folder, "Cy")
    assert load_benchmark(folder).qrels == {"q1": {"d1-0": 2, "d1-1": 1}}, "between two grades the lower one"


def test_two_tabs_label_at_once(workspace: Workspace) -> None:
    folder = people_alone(make(workspace, lambda q, d: 0, n_queries=24, per_query=2))

    def label(query: int) -> None:
        judged.add_labels(folder, f"q{query}", {f"d{query}-0": 3, f"d{query}-1": 0}, ("Ada", "Ben")[query % 2])

    with ThreadPoolExecutor(2) as tabs:
        list(tabs.map(label, range(24)))

    assert len(load_benchmark(folder).qrels) == len(judged.grades_of(folder)) == 24


def test_the_judgments_follow_after_an_end_between_two_files(workspace: Workspace) -> None:
    folder = people_alone(make(workspace, lambda q, d: 0, n_queries=3, per_query=1))
    judged.add_labels(folder, "q1", {"d1-0": 3}, "Ada")
    (folder / "grades.jsonl").write_text("")  # the process ended before it wrote them
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2-0\t1\n")
    judged.add_labels(folder, "q1", {"d1-0": 3}, "Ada")
    assert load_benchmark(folder).qrels == {"q1": {"d1-0": 3}}


def test_an_exported_benchmark_keeps_its_judgments_without_its_pool(
    workspace: Workspace, birds: CorpusManifest, questions: Path, jobs_here: None, tmp_path: Path
) -> None:
    start(workspace, by_people(birds, questions))
    finish(workspace, n=3)
    library.export_beir(workspace.benchmark(NAME), tmp_path / "out")
    library.add_benchmark(tmp_path / "out", workspace, "again")
    folder = workspace.benchmark("again")
    assert load_benchmark(folder).qrels == load_benchmark(workspace.benchmark(NAME)).qrels

    with pytest.raises(ConfigError, match="was not judged here"):
        judging.undo(workspace, "again", "Ada")
    judged.undo(folder, "Ada")
    assert len(load_benchmark(folder).qrels) == 3
    assert judging.judged_name(workspace, "again") == "", "without its pool nothing is added to it"
    evaluate(workspace, "bm25", "again")
    (row,) = board.list_rows(workspace, board.list_evaluations(workspace))
    assert "judged by people" in [badge.word for badge in row.badges]


def add_birds(workspace: Workspace, folder: Path) -> adding.Added:
    """Add a file about each bird, and two about none."""
    folder.mkdir()
    for bird in (*BIRDS, "bridge", "mill"):
        (folder / f"{bird}.txt").write_text(f"The {bird} nests by the river and feeds on fish.", encoding="utf-8")
    return adding.add(workspace, folder)


def change_answer(workspace: Workspace, folder: Path, query: str) -> adding.Added:
    """Change the file that answers a query, and add the folder again."""
    text = read_queries(workspace.benchmark(NAME) / "queries.jsonl")[query].text
    (folder / f"{text.split()[3]}.txt").write_text("Another text stands here now.", encoding="utf-8")
    return adding.add(workspace, folder)


def test_labels_follow_documents_that_are_added_again(
    workspace: Workspace, questions: Path, jobs_here: None, tmp_path: Path
) -> None:
    first = add_birds(workspace, tmp_path / "birds")
    start(workspace, by_people(first.corpus, questions, retrievers="bm25", depth=3))
    labelled = finish(workspace, n=3)
    again = change_answer(workspace, tmp_path / "birds", labelled[0])
    assert "2 judged queries carried over; 1 are stale." in " ".join(again.stated)

    name = f"{NAME}-v2"
    made = workspace.benchmark(name)
    assert judged.by_people(made)
    assert set(load_benchmark(made).qrels) == set(labelled[1:])
    state = labelling.progress(workspace, name)
    assert (state.finished, state.total, state.people) == (2, 5, {"Ada": 2})

    finish(workspace, n=3, name=name)
    assert len(load_benchmark(made).qrels) == 5
    assert labelling.progress(workspace, name).left == 0
    assert len(load_benchmark(workspace.benchmark(NAME)).qrels) == 3, "the earlier version stays"


def test_so_do_the_grades_of_a_model_with_their_labels(
    workspace: Workspace, questions: Path, jobs_here: None, tmp_path: Path
) -> None:
    first = add_birds(workspace, tmp_path / "birds")
    start(workspace, by_people(first.corpus, questions, retrievers="bm25", depth=3))
    labelled, folder = finish(workspace, n=3), workspace.benchmark(NAME)
    source = {**manifests.read(folder).source, "judge": "a-model"}
    manifests.write(folder, replace(manifests.read(folder), source=source))
    pool = judged.read_pool(folder)
    pairs = [(query, document) for query, documents in pool.items() for document in documents]
    judged.write_grades(folder, [judged.Grade(*pair, 1, "because") for pair in pairs])

    change_answer(workspace, tmp_path / "birds", labelled[0])
    made = workspace.benchmark(f"{NAME}-v2")
    grades, texts = judged.read_grades(made), set(load_benchmark(made).document_ids)
    assert grades
    assert {grade.document for grade in grades} <= texts
    assert {grade.reason for grade in grades} == {"because"}
    assert judged.by_query(grades) == load_benchmark(made).qrels
    state = labelling.progress(workspace, made.name)
    assert (state.judge, state.people, state.total) == ("a-model", {"Ada": 3}, 6), "grade 1 is no answer: none is stale"


def test_a_resumed_job_makes_no_second_benchmark(
    workspace: Workspace, birds: CorpusManifest, questions: Path, jobs_here: None
) -> None:
    job = start(workspace, by_people(birds, questions))
    finish(workspace, n=2)
    before = describe(workspace.benchmark(NAME)).content_hash
    (workspace.job(job) / "results" / "judging.json").unlink()  # it ended before it wrote its result
    code, output = run_worker("cdp.workers.judging", workspace.job(job), lambda: 0, None)
    assert code == 0, output
    assert read_json(workspace.job(job) / "results" / "judging.json")["benchmark"] == NAME
    assert describe(workspace.benchmark(NAME)).content_hash == before
    assert library.list_names(workspace) == [NAME]

    with pytest.raises(ConfigError, match="has a benchmark called"):
        judging.start(workspace, by_people(birds, questions))


def test_further_labels_are_another_version_and_changed_ones_count_at_once(
    workspace: Workspace, birds: CorpusManifest, questions: Path, jobs_here: None
) -> None:
    start(workspace, by_people(birds, questions))
    (first, *_) = finish(workspace, n=3)
    evaluate(workspace, "bm25")
    (before,) = board.list_evaluations(workspace)
    (right,) = [name for name, grade in judged.grades_of(workspace.benchmark(NAME))[first].items() if grade]
    judging.label(workspace, NAME, first, {right: "0"}, "Ada")
    (after,) = board.list_evaluations(workspace)
    assert after["benchmark_hash"] != before["benchmark_hash"]
    assert after["ndcg@10"] < before["ndcg@10"]
    assert after["n_queries"] == 3

    finish(workspace)
    (stale,) = board.list_evaluations(workspace)
    assert stale["benchmark_hash"] == before["benchmark_hash"], "four queries are judged, it has three"
    job = evaluate(workspace, "bm25")
    (newest,) = [row for row in board.list_evaluations(workspace) if row["job_id"] == job]
    assert newest["n_queries"] == 4
    assert newest["benchmark_hash"] == describe(workspace.benchmark(NAME)).content_hash


def test_what_a_later_run_finds_waits_for_labels(
    workspace: Workspace, birds: CorpusManifest, questions: Path, jobs_here: None, capsys: pytest.CaptureFixture[str]
) -> None:
    start(workspace, by_people(birds, questions, retrievers="bm25", depth=1))
    finish(workspace, n=6)
    job = evaluate(workspace, "static-minilm")
    evaluate(workspace, "bm25")
    comparison = differences.compare(workspace, "bm25")
    assert job in differences.unjudged(workspace, comparison)
    (row,) = [row for row in comparison.rows if row.retriever == "static-minilm"]
    assert row.withheld, "the pool is closed before the answer"
    assert row.low is None

    again = judging.repeated(workspace, NAME, [job])
    assert again.endpoint.by_people
    planned = judging.plan(workspace, again)
    assert planned.pairs == len(judging.to_judge(workspace, again)) > 0
    assert planned.cost == 0
    # As the badge says it: nothing is said of the judge, which stays who it was.
    assert main(["benchmarks", "judge", "--benchmark", NAME, "--runs", job, "--wait"]) == 0
    assert "people label at most" in capsys.readouterr().err
    progress = labelling.progress(workspace, NAME)
    assert (progress.finished, progress.extended) == (6, 6), "labelled queries stay in the test"
    assert progress.left == planned.pairs
    with pytest.raises(ConfigError, match=r"first ten is pooled\. Label what is left"):
        judging.plan(workspace, again)

    finish(workspace, n=6)
    assert labelling.progress(workspace, NAME).left == 0
    (row,) = [row for row in differences.compare(workspace, "bm25").rows if row.retriever == "static-minilm"]
    assert not row.withheld
    assert row.low is not None


@pytest.mark.usefixtures("few_steps")
def test_a_test_rests_on_the_labelled_queries_and_its_new_documents_wait_for_labels(
    workspace: Workspace, corpus: CorpusManifest, log: Path, jobs_here: None
) -> None:
    write_json(workspace.root / studies.SPEEDS, ONLY_STATIC_IS_FAST)
    folder = workspace.benchmark(NAME)
    start(workspace, settings(corpus, log, generator="people", model="", name=NAME, retrievers="bm25", depth=1))
    projects.take_along(workspace, "corpus", corpus.id, NAME)
    for method in ("diverse", "paraphrase"):
        lines = []
        for animal in ANIMALS:
            for n in range(3):
                lines.append((f"{animal}-{n}", [f"{method} {at} of the {animal} {n}" for at in range(5)]))
        made = query_sets.import_queries(
            iter(lines), workspace, corpus.id, method, kind="synthetic", method=method, language="en"
        )
        query_sets.update(workspace, made.query_set.id, generator="template")

    values = {"corpus": corpus.id, "generator": "template", "seeds": 1, "minutes": 60}
    config = TrialConfig.from_dict(values)
    assert trial.plan(workspace, config).judged.kind == own_test.TEMPLATE, "without labels it decides nothing"

    finish(workspace, n=2)
    with pytest.raises(CdpError, match="too few to choose checkpoints"):
        trial.plan(workspace, config)

    finish(workspace, n=9)
    sample = trial.plan(workspace, config).judged.splits.benchmark
    (other,) = judged.read_pool(folder).keys() - load_benchmark(folder).qrels.keys()
    judging.undo(workspace, NAME, "Ada")
    judging.label(workspace, NAME, other, dict.fromkeys(judged.read_pool(folder)[other], "3"), "Ada")
    assert len(load_benchmark(folder).qrels) == 11
    assert trial.plan(workspace, config).judged.splits.benchmark != sample, "as many other queries are another sample"

    finish(workspace)
    planned = trial.plan(workspace, config)
    assert (planned.judged.splits.of, planned.judged.judge) == (NAME, "")
    assert planned.judged.splits.n_test + planned.judged.splits.n_dev == len(ANIMALS)
    assert "What the trainings newly find joins the pool" in planned.notes[-1]

    begun = trial.start(workspace, config)
    (later,) = begun.later
    assert str(jobs.show(workspace, later).state) == "finished"
    answer = decide.decide(workspace, corpus=corpus.id)
    assert answer.badge.startswith("judged by people")
    assert answer.headline.startswith("Withheld: ")
    left = labelling.progress(workspace, NAME).left
    assert left > 0

    while labelling.task(workspace, NAME, "Ada") is not None:
        finish(workspace)
    answer = decide.decide(workspace, corpus=corpus.id)
    assert "Withheld" not in answer.headline
    assert answer.basis is not None
    assert (answer.basis.unjudged, answer.basis.judge) == (0, "")
    assert not answer.basis.stale


def test_a_model_judges_afterwards_and_the_labels_correct_it(
    workspace: Workspace, birds: CorpusManifest, questions: Path, jobs_here: None, server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    start(workspace, by_people(birds, questions))
    finish(workspace, n=4)
    alone = workspace.benchmark(NAME)
    before = describe(alone).content_hash

    monkeypatch.setenv("CDP_BASE_URL", server.url)
    monkeypatch.setenv("CDP_API_KEY", KEY)
    server.answer = lambda prompt, _: json.dumps({"reason": "So it is.", "grade": 2})
    config = JudgeConfig.from_dict({"benchmark": NAME, "model": MODEL, "retrievers": "bm25"})
    planned = judging.plan(workspace, config)
    pairs = sum(map(len, judged.read_pool(alone).values()))
    assert planned.pairs == pairs
    job = start(workspace, config)

    made = workspace.benchmark(read_json(workspace.job(job) / "results" / "judging.json")["benchmark"])
    assert made != alone
    assert describe(alone).content_hash == before, "what people judged alone stays as it is"
    assert judged.judge_of(made) == MODEL
    assert len(load_benchmark(made).qrels) == 6
    progress = labelling.progress(workspace, made.name)
    assert (progress.judge, progress.finished, progress.total) == (MODEL, 4, 6)
    assert judged.people_grades(judged.read_pool(made), judged.read_labels(made))
    assert own_test.best_of(birds, library.list_benchmarks(workspace)).name == NAME, "people's judgments come first"

    # A model's benchmark is no place for people alone.
    with pytest.raises(ConfigError, match=f"{MODEL} judged"):
        judging.plan(workspace, JudgeConfig.from_dict({"benchmark": made.name, "generator": "people"}))
