"""The page of the evidence: every table can be drawn, a study's report is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.locks import wait_for_lock
from cdp.base.workspace import Workspace, write_json
from cdp.charts.holds import FIGURES
from cdp.principle import tables
from cdp.services import evidence, jobs, queries
from cdp.services.evidence import Has
from cdp.studies import records
from cdp.studies.config import StudyConfig, read_plan
from cdp.studies.plan import StudySource, conditions, counted
from tests.charts import small_study
from tests.pages.conftest import Open
from tests.pages.support import ended_job
from tests.pages.test_every_page_in_every_state import words


def finished_study(workspace: Workspace, *, benchmark: str = "hotpotqa", retriever: str = "static-minilm") -> str:
    """A study on three benchmarks as its worker leaves it: gains of 1, 2 and 3 points at Q/Doc 2."""
    query_set = queries.list_query_sets(workspace)[0].id
    config = StudyConfig.from_dict(
        {"benchmarks": f"{benchmark}, b, c", "query_sets": query_set, "per_doc": "1, 2", "retrievers": retriever}
    )
    source = counted(workspace, StudySource("diverse", "diverse", query_set))
    folder = ended_job(workspace, "study-1", "study", config.to_dict(), name="our study")
    names = [benchmark, "b", "c"]
    facts = {"split": "test", "n_queries": 50, "n_documents": 90}
    about = {
        "config": config.to_dict(),
        "sources": [asdict(source)],
        "benchmarks": [
            {**facts, "name": n, "place": n, "cw": cw, "cw_interval": [cw, cw]}
            for n, cw in zip(names, (5.0, 8.0, 12.0), strict=True)
        ],
    }  # fmt: skip
    write_json(folder / "results" / "about.json", about)

    def scores(points: float) -> dict[str, dict[str, object]]:
        return {
            n: {
                "query_ids": [str(q) for q in range(50)],
                "ndcg@10": [0.3 + points * (i + 1) / 100 + 0.0001 * (q % 7) for q in range(50)],
            }
            for i, n in enumerate(names)
        }

    records.save(folder, "base", None, {"retriever": retriever, "evaluations": scores(0)})
    for i, planned in enumerate(conditions(config, [source])):
        made = {
            "retriever": retriever,
            "training": {"pairs": 96, "documents": 96, "seconds": 1.0},
            "settings": {"epochs": 1},
            "evaluations": scores(planned.condition.per_doc - 1 + 0.01 * planned.seed),
        }
        records.save(folder, f"c{i}", planned, made)
    return "study-1"


@pytest.mark.parametrize("name", ["tab:multihop_scaling", "tab:content_words", "fig:cost_efficiency_full"])
def test_a_table_by_its_address(name: str, open_page: Open) -> None:
    short = tables.short_name(name)
    at = open_page("evidence", table=short)
    assert at.selectbox(key="choose_table").value == short
    assert tables.table(name).info.about in words(at)
    assert not at.warning


@pytest.mark.soak
def test_every_table_can_be_shown(open_page: Open) -> None:
    at = open_page("evidence")
    for info in tables.list_tables():
        at.selectbox(key="choose_table").set_value(info["name"]).run()
        assert not at.exception, info["name"]
        assert info["about"] in words(at)


def test_the_choice_of_datasets_changes_the_answer(open_page: Open) -> None:
    at = open_page("evidence")
    assert "only **4 independent datasets**" in words(at)
    at.segmented_control(key="evidence_datasets").set_value("all").run()
    assert "explain little of the gain" in words(at)


def test_a_study_is_read_on_its_page(filled: Workspace, open_page: Open) -> None:
    study = finished_study(filled)
    at = open_page("evidence/studies", study=study)
    shown = words(at)
    assert "Best training on average over 3 benchmarks" in shown
    assert "Limits" in shown
    assert "by content words" in " ".join(str(frame.value.to_dict()) for frame in at.dataframe)
    assert not at.error


def test_a_study_that_failed_before_it_began_says_why(filled: Workspace, open_page: Open) -> None:
    config = read_plan("single-query").to_dict()
    ended_job(filled, "study-1", "study", config, outcome="failed", failure={"message": "No memory.", "kind": "bug"})
    at = open_page("evidence/studies", study="study-1")
    assert "nothing to report yet" in words(at)
    assert not at.error


def test_each_figure_stands_beside_the_same_of_own_results(
    workspace: Workspace, open_page: Open, tmp_path: Path
) -> None:
    small_study.make(workspace, tmp_path)
    for figure in FIGURES:
        at = open_page("evidence", tab="holds", figure=figure)
        assert not at.exception, figure
        assert not at.error, figure
    at = open_page("evidence", tab="holds", figure="errors")
    at.selectbox(key="errors_place").select("short").run(timeout=60)
    at.selectbox(key="errors_first_short").select("tiny · diverse × 1").run(timeout=60)
    at.selectbox(key="errors_second_short").select("tiny · diverse × 3").run(timeout=60)
    said = words(at)
    assert "of 20 figures can be drawn from your results" in said
    assert "Relevant\\: one\\#1" in said
    marked = [element.proto.body for element in at.get("html")]
    assert any("<mark>amber</mark>" in body for body in marked)


def test_what_cannot_be_drawn_says_what_is_missing_first(open_page: Open) -> None:
    at = open_page("evidence", tab="holds", figure="documents")
    said = words(at)
    assert "0 of 20 figures" in said
    assert "A study that holds the pairs equal" in said
    assert "It takes documents" in said
    assert "holds_start" not in [button.key for button in at.button]
    at.button(key="to_documents").click().run(timeout=60)
    assert at.title[0].value == "Documents"


@pytest.mark.parametrize(
    ("figure", "takes"),
    [("weights", "6 trainings, about "), ("rates", "6 trainings, about "), ("qdoc", " trainings, about "),
     ("ce", "The diverse queries of "), ("methods", "BM25 on demo"), ("hops", ""),
     ("tradeoff", "It takes human queries of the same documents"), ("cw", "It takes a benchmark of other documents")],
)  # fmt: skip
def test_a_missing_run_says_what_it_takes(filled: Workspace, open_page: Open, figure: str, takes: str) -> None:
    at = open_page("evidence", tab="holds", figure=figure)
    assert not at.error
    assert takes in words(at)
    startable = not takes.startswith("It takes") and figure != "hops"
    assert startable == ("holds_start" in [button.key for button in at.button])


def test_a_missing_run_is_started_and_its_figure_is_drawn(
    filled: Workspace, open_page: Open, in_process: Callable[[], list[str]]
) -> None:
    at = open_page("evidence", tab="holds", figure="methods")
    assert "An evaluation is needed" in words(at)
    at.button(key="holds_start").click().run(timeout=60)
    assert not at.error
    (job,) = jobs.list_jobs(filled, ["evaluation"])
    assert job.config["retriever"] == "bm25"
    assert in_process() == [job.id]
    assert "Rests on 1 dataset" in words(open_page("evidence", tab="holds", figure="methods"))


def test_a_run_that_is_at_work_stands_in_the_place_of_its_start(filled: Workspace, open_page: Open) -> None:
    sets = [q for q in query_sets.list_query_sets(filled) if q.method == "diverse"]
    planned = evidence.plan(filled, "weights", Has([], sets, ["demo"]))
    assert planned.config is not None
    ended_job(filled, "study-1", "study", planned.config.to_dict())
    write_json(filled.job("study-1") / "status.json", {"phase": "queued", "attempt": 1})
    write_json(filled.root / "queue" / f"{1:020d}.waiting.cpu.study-1.json", {})
    lock = wait_for_lock(filled.job("study-1") / "alive.lock", "it", wait_s=1)
    try:
        assert evidence.running(filled, planned) is not None
        at = open_page("evidence", tab="holds", figure="weights")
        assert "Running: " in words(at)
        assert "holds_start" not in [button.key for button in at.button]
    finally:
        os.close(lock)
