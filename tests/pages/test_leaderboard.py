"""The leaderboard on Compare: one row per recipe, what is hidden is said, and what people write stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdp import cli
from cdp.base.workspace import Workspace
from cdp.benchmarks import load_benchmark
from cdp.results import naming
from cdp.services import jobs
from tests.benchmarks.folders import write_benchmark
from tests.pages.support import evaluated
from tests.services import test_board, test_runs
from tests.services.support import evaluation
from tests.services.test_runs import BEFORE, better, trained

pytestmark = pytest.mark.slow

query_set, runs_here = test_runs.query_set, test_board.runs_here


def table(at: Any) -> Any:
    return at.dataframe[0].value


def test_all_recipes_stand_there_studies_and_bm25_among_them_and_get_names(
    runs_here: Workspace, open_page: Any
) -> None:
    at = open_page("compare", project="all")
    assert not at.exception
    shown = table(at)
    assert list(shown.columns)[:4] == ["NDCG@10", "Recipe", "Difference", "95% interval"]
    assert list(shown["Recipe"]) == [
        "minilm · diverse × 5",
        "BM25",
        "minilm · diverse × 1",
        "minilm · paraphrase × 5",
        "minilm (baseline)",
    ]
    assert next(iter(shown["Difference"])).startswith("+30.1")
    assert any(c.value.startswith("5 recipes.") for c in at.caption)
    assert any("minilm · diverse × 5 gains 30" in m.value for m in at.markdown)
    at = open_page("compare", project="all", run="training-1", retrievers=["training-1"])
    assert any("#### minilm · diverse × 1 gains 10" in m.value for m in at.markdown), "of what the link leads to"
    next(field for field in at.text_input if field.label == "Name").set_value("the one for the paper")
    at.button(key="board_save").click().run()
    assert naming.given_names(runs_here) == {"training-1": "the one for the paper"}
    assert "the one for the paper" in list(table(at)["Recipe"])


def test_it_opens_on_the_benchmark_of_the_newest_result(runs_here: Workspace, open_page: Any) -> None:
    for number, name in enumerate(("static-minilm", "contriever")):
        evaluated(
            runs_here, f"evaluation-{number}", name, [0.5, 0.25], benchmark="later", created="2100-01-01T00:00:00"
        )
    evaluated(runs_here, "evaluation-9", "retromae", [0.5, 0.25], benchmark="alone", created="2100-01-02T00:00:00")
    at = open_page("compare", project="all")
    assert at.selectbox(key="choose_benchmark").value.startswith("alone")
    assert any("retromae scores 37.50 on alone" in m.value.replace("\\", "") for m in at.markdown)
    assert list(table(at)) == ["NDCG@10", "Recipe"], "no empty columns of differences from nothing"
    at.selectbox(key="choose_benchmark").select("later").run()
    assert set(table(at)["Recipe"]) == {"contriever (baseline)", "static-minilm"}
    at = open_page("compare", project="all", run="training-1")
    assert "minilm · diverse × 1" in list(table(at)["Recipe"]), "a link's run goes before it"


def test_a_leaked_run_is_not_the_first(runs_here: Workspace, open_page: Any) -> None:
    trained(runs_here, "training-9", "gone", better(0.7), counts={"leaked_queries": 40, "judged_queries": 40})
    at = open_page("compare", project="all")
    assert list(table(at)["Read with"])[-1].startswith("leaked")
    assert any("stand last" in c.value for c in at.caption)


@pytest.mark.usefixtures("runs_here")
def test_strong_baselines_are_one_press_where_they_are_lacking(workspace: Workspace, open_page: Any) -> None:
    folder = write_benchmark(workspace.benchmark("small"))
    evaluation(workspace, "static-minilm", "small", BEFORE, judgments=load_benchmark(folder).hash)
    at = open_page("compare", project="all", benchmark="small")
    assert {"add_BM25", "add_hybrid"} <= {button.key for button in at.button}
    at.button(key="add_hybrid").click().run()
    assert not at.exception
    (job,) = [job for job in jobs.list_jobs(workspace, ["evaluation"]) if job.config.get("hybrid")]
    assert (job.config["retriever"], job.config["benchmark"]) == ("static-minilm", "small")
    assert at.title[0].value == "Jobs"


def test_costs_stand_beside_scores_where_they_were_measured(runs_here: Workspace, open_page: Any) -> None:
    assert not {"Index", "Per query"} & set(table(open_page("compare", project="all")).columns)
    cost = {"index_bytes": 2_000_000, "query_ms": 1.25}
    trained(runs_here, "training-9", "gone", better(0.7), counts=cost)  # type: ignore[arg-type]
    shown = table(open_page("compare", project="all"))
    assert list(shown["Index"].dropna()) == ["2.0 MB"]
    assert list(shown["Per query"].dropna()) == ["1.25 ms"]


def test_a_jobs_results_have_one_name_and_unit_everywhere(
    workspace: Workspace, query_set: str, capsys: pytest.CaptureFixture[str], open_page: Any
) -> None:
    trained(workspace, "training-1", query_set, {"q1": 0.5, "q2": 0.25})
    evaluated(workspace, "evaluation-1", "training-1", [0.5, 0.25], name="queries of no name")
    assert cli.main(["jobs", "wait", "evaluation-1"]) == 0
    said = capsys.readouterr().out
    called = "minilm · diverse × 1"
    for line in ("NDCG@10 (%): 37.50", f"retriever: {called}", "judged per: document", "queries: 2", "time: 1 s"):
        assert f"  {line}\n" in said

    assert cli.main(["results", "list"]) == 0
    assert called in capsys.readouterr().out
    shown = open_page("jobs", job="evaluation-1", project="all").dataframe[0].value
    assert dict(zip(shown["Result"], shown["Value"], strict=True))["Retriever"] == called
    for name, value in zip(shown["Result"], shown["Value"], strict=True):
        assert f"{name}: {value}".casefold() in said.casefold()

    assert cli.main(["jobs", "wait", "evaluation-1", "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert (kept["ndcg@10"], kept["retriever"], kept["n_queries"]) == (37.5, "training-1", 2)
