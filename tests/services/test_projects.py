"""What belongs to a project: by its record, by the corpus of a query set, by what a job was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.results import board
from cdp.services import benchmarks, corpora, demo, jobs, projects, queries
from tests.benchmarks.folders import write_benchmark
from tests.pages.support import evaluated, trained
from tests.services.support import evaluation

pytestmark = pytest.mark.slow


def corpus(workspace: Workspace, folder: Path, name: str) -> str:
    path = folder / f"{name}.jsonl"
    path.write_text(f'{{"_id": "d1", "text": "the text of {name}"}}\n', encoding="utf-8")
    return corpora.add(workspace, path, name=name).corpus.id


def query_set(workspace: Workspace, folder: Path, corpus_id: str) -> str:
    path = folder / "queries.csv"
    path.write_text("document_id,query\nd1,what is it\n", encoding="utf-8")
    return queries.import_file(workspace, path, corpus_id, name=f"queries of {corpus_id}").query_set.id


@pytest.fixture
def two(workspace: Workspace, tmp_path: Path) -> dict[str, str]:
    """The demo, which is a project, and a corpus in none, each with a training; ids by what they are."""
    demo.load(workspace, tested=False)
    other = corpus(workspace, tmp_path, "other")
    own_set = query_set(workspace, tmp_path, other)
    demo_set = next(q.id for q in queries.list_query_sets(workspace) if q.id != own_set)
    trained(workspace, "training-1-demo", demo_set, name="of the demo")
    trained(workspace, "training-2-other", own_set, name="of the other")
    evaluated(workspace, "evaluation-1-both", "training-2-other", [0.5] * 40)
    evaluated(workspace, "evaluation-2-demo", "static-minilm", [0.5] * 40)
    evaluated(workspace, "evaluation-3-none", "static-minilm", [0.5] * 40, benchmark="for-all")
    return {"other": other, "own_set": own_set, "demo_set": demo_set}


def test_a_corpus_in_no_project_stands_for_one_of_its_own(workspace: Workspace, two: dict[str, str]) -> None:
    assert [(p.name, p.implied) for p in projects.list_projects(workspace)] == [("other", True), ("demo", False)]
    implied = projects.resolve(workspace, "other")
    assert (implied.id, implied.corpora, implied.benchmarks) == (two["other"], (two["other"],), ())
    assert not (workspace.projects / implied.id).exists(), "nothing is written for it"
    renamed = projects.rename(workspace, "other", "Ours")
    assert (renamed.id, renamed.name, renamed.corpora) == (implied.id, "Ours", implied.corpora), "links stay good"
    assert [p.name for p in projects.list_projects(workspace)] == ["Ours", "demo"]


def test_queries_trainings_and_scores_follow(workspace: Workspace, two: dict[str, str]) -> None:
    def names(kind: str, thing: str) -> list[str]:
        return [project.name for project in projects.projects_of(workspace, kind, thing)]

    assert names("corpus", two["other"]) == names("query_set", two["own_set"]) == ["other"]
    assert names("query_set", two["demo_set"]) == names("benchmark", "demo") == ["demo"]
    assert names("job", "training-1-demo") == names("job", "evaluation-2-demo") == ["demo"]
    assert names("job", "training-2-other") == ["other"]
    assert names("job", "evaluation-1-both") == ["other", "demo"], "its training's, and its benchmark's"
    assert names("job", "evaluation-3-none") == names("benchmark", "for-all") == names("corpus", "gone") == []
    assert projects.project_of(workspace, "job", "../../etc") is None
    of_demo = projects.members(workspace, "demo")
    shown = [job.id for job in of_demo.keep("job", jobs.list_jobs(workspace))]
    assert set(shown) == {"training-1-demo", "evaluation-1-both", "evaluation-2-demo", "evaluation-3-none"}
    assert [q.id for q in of_demo.keep("query_set", queries.list_query_sets(workspace))] == list(of_demo.query_sets)
    scores = projects.members(workspace, "other").keep("evaluation", board.list_evaluations(workspace))
    assert {row["id"] for row in scores} == {"evaluation-1-both", "evaluation-3-none"}
    everything = projects.members(workspace, projects.ALL)
    assert len(everything.keep("job", jobs.list_jobs(workspace))) == 5


@pytest.mark.usefixtures("with_demo")
def test_removing_things_takes_them_out_of_projects(workspace: Workspace, tmp_path: Path) -> None:
    other = corpus(workspace, tmp_path, "other")
    projects.add_members(workspace, "demo", corpora=["other"])
    assert projects.resolve(workspace, "demo").corpora[1:] == (other,)
    corpora.delete(workspace, "other")
    benchmarks.delete(workspace, "demo")
    project = projects.resolve(workspace, "demo")
    assert (len(project.corpora), project.benchmarks) == (1, ())
    projects.delete(workspace, "demo")
    assert [p.implied for p in projects.list_projects(workspace)] == [True], "its corpus stays"


def test_a_benchmark_called_like_a_setting_belongs_where_it_should(workspace: Workspace, tmp_path: Path) -> None:
    ids = [corpus(workspace, tmp_path, name) for name in ("one", "two")]
    projects.create(workspace, "first", corpora=[ids[0]])
    benchmarks.add(workspace, write_benchmark(tmp_path / "none"), name="none")
    projects.add_members(workspace, "first", benchmarks=["none"])
    own = query_set(workspace, tmp_path, ids[1])
    trained(workspace, "training-1", own, name="weighting none")
    assert [p.name for p in projects.projects_of(workspace, "job", "training-1")] == ["two"]


@pytest.mark.usefixtures("with_demo")
def test_bad_names_are_refused(workspace: Workspace) -> None:
    for name in ("", "  ", "Demo", "a\0b", "x" * 300):
        with pytest.raises((ConfigError, Exception), match=r"name|called"):
            projects.create(workspace, name)
    with pytest.raises(NotFoundError):
        projects.create(workspace, "new", corpora=["nothing"])
    with pytest.raises(NotFoundError):
        projects.create(workspace, "new", benchmarks=["nothing"])
    assert [p.name for p in projects.list_projects(workspace)] == ["demo"]


@pytest.mark.usefixtures("with_demo")
def test_the_one_in_use_is_remembered(workspace: Workspace) -> None:
    assert projects.default(workspace) is None
    projects.use(workspace, "dem")
    assert projects.default(workspace) == projects.resolve(workspace, "demo")
    projects.delete(workspace, "demo")
    assert projects.default(workspace) is None
    projects.use(workspace, "all")
    assert projects.default(workspace) is None


@pytest.mark.usefixtures("with_demo")
def test_results_of_a_job_without_settings_are_shown_by_what_they_name(workspace: Workspace, tmp_path: Path) -> None:
    other = corpus(workspace, tmp_path, "other")
    evaluation(workspace, "static-minilm", "demo", {"q1": 0.5})
    rows = board.list_evaluations(workspace)
    assert projects.members(workspace, other).keep("evaluation", rows) == []
    assert projects.members(workspace, "demo").keep("evaluation", rows) == rows
