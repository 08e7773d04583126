"""A study that compares all queries of a set with those that a filter leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.query_sets.deriving import derive
from cdp.services import demo, jobs, queries, studies
from cdp.studies import StudyConfig
from cdp.studies.gains import FILTER, TITLES
from tests.studies.support import study


def test_a_filtered_source_is_compared_with_all_of_its_queries() -> None:
    def truth(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
        return 5.0 if " filtered by " in source else 2.0

    report = study(truth, kinds=("human", "human filtered by bm25@10"))
    compared = report.of(FILTER)
    assert {(gain.source, round(gain.points)) for gain in compared} == {("human filtered by bm25@10", 3)}
    assert {gain.per_doc for gain in compared} == {1, 2, 5}
    assert TITLES[FILTER] == "Filtered queries minus all of them"


@pytest.fixture(scope="module")
def _demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "workspace"
    demo.load(Workspace(root))
    return root


@pytest.fixture
def filled(workspace: Workspace, _demo: Path) -> Workspace:
    shutil.copytree(_demo, workspace.root)
    return workspace


def plan(**settings: object) -> StudyConfig:
    values = {"benchmarks": "demo:test", "query_sets": "demo paraphrase", "per_doc": "2", "seeds": "0"}
    return StudyConfig.from_dict({**values, "epochs": 1, "gpus": 0, **settings})


@pytest.mark.slow
def test_what_a_plan_says_of_filters(filled: Workspace) -> None:
    planned = studies.plan(filled, plan(filters="none, bm25@1", retrievers="static-minilm"))
    assert [source.label for source in planned.sources] == ["paraphrase", "paraphrase filtered by bm25@1"]
    assert any("paraphrase filtered by bm25@1 is made first" in note for note in planned.notes)
    for wrong in ("best", "bm25@0", "no-such-model/here@3", "minilm>=0.5"):
        with pytest.raises(Exception, match=r"no filter|at least|no-such-model|pairs"):
            studies.plan(filled, plan(filters=wrong))
    with pytest.raises(ConfigError, match="RI"):
        studies.plan(filled, plan(filters="usable", weightings="ri"))


@pytest.mark.slow
def test_a_method_is_trained_on_whole_and_not_on_a_copy_without_some_of_its_queries(filled: Workspace) -> None:
    """A filtered set says the same of method, generator and Q/Doc, and is newer: it was taken for the method's."""
    whole = next(q for q in queries.list_query_sets(filled) if q.method == "diverse")
    derive(filled, whole, lambda d: [*d.queries[:7], None], "shorter", {"without": {"filter": "x"}})
    config = plan(
        query_sets="", methods="diverse", corpus=whole.corpus_id, generator="recorded", retrievers="static-minilm"
    )
    assert [source.query_set for source in studies.plan(filled, config).sources] == [whole.id]


@pytest.mark.soak
def test_a_study_makes_the_filtered_set_trains_on_it_and_reports_the_difference(filled: Workspace) -> None:
    started = studies.run(filled, plan(filters="none, bm25@1", retrievers="static-minilm", max_documents=60))
    assert jobs.wait(filled, started.job_id).state == "finished"
    parent = query_sets.resolve_query_set(filled, "demo paraphrase")
    made = query_sets.find_filtered(filled, parent, "bm25@1")
    assert made is not None
    assert made.parameters["made_from"] == parent.id
    report = studies.report(filled, started.job_id)
    sources = {source.label: source.query_set for source in report.sources}
    assert sources == {"paraphrase": parent.id, "paraphrase filtered by bm25@1": made.id}
    assert [(gain.source, gain.benchmark) for gain in report.of(FILTER)] == [("paraphrase filtered by bm25@1", "demo")]
    again = studies.run(filled, plan(filters="bm25@1", retrievers="static-minilm", max_documents=60))
    assert again.generations == [], "the set is there: nothing is made anew"
    jobs.stop(filled, again.job_id)
