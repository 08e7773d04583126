"""The Decide page: what was measured stands first and large, the test is one click away, and the rule stands below."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import decide, jobs
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words
from tests.services.test_decide import diverse_helps, run_study, sets_of, task

__all__ = ["task"]

pytestmark = pytest.mark.slow


def test_a_measurement_is_the_answer_leads_to_its_training_and_the_rule_stands_in_the_second_tab(
    workspace: Workspace, task: dict[str, str], open_page: Open
) -> None:
    before = words(open_page("decide", corpus=task["corpus"], target_benchmark="tales"))
    assert "## Not tested on your documents yet." in before
    assert "English, " in before  # what is known of this task stands there, no figure of others as its own
    run_study(workspace, sets_of(task), diverse_helps)
    at = open_page("decide", corpus=task["corpus"], target_benchmark="tales")
    assert not at.exception
    assert not at.error
    said = words(at).replace("\\", "")
    assert "## Write 5 different queries per document for static-minilm: +1" in said
    assert "Judged by people" in said
    assert "5 different queries over one query for static-minilm: gains" in said
    (table,) = [d.value for d in at.dataframe if "Price" in d.value.columns]
    assert list(table["Option"])[:2] == ["static-minilm", "BM25"]
    assert "Points over static-minilm · diverse × 5" in table.columns
    assert "Write 5 different queries per document" in words(open_page("home")).replace("\\", "")
    at.button(key="decide_next").click().run(timeout=60)
    assert not at.exception
    assert at.title[0].value == "Launch"
    assert at.selectbox(key="choose_query_set").value == task["diverse"]
    said = words(open_page("decide", corpus=task["corpus"], target_benchmark="tales", tab="complexity"))
    assert "Published rule: no evidence for these queries" in said


def test_the_published_rule_does_not_say_yes_and_no_at_once(
    workspace: Workspace, task: dict[str, str], open_page: Open
) -> None:
    run_study(workspace, sets_of(task), diverse_helps)
    eleven = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo"
    pasted = decide.save(workspace, "\n".join(f"{eleven[:-4]}kilo{'abcdefgh'[i % 8]}{'xyz'[i % 3]}" for i in range(56)))
    at = open_page("decide", corpus=task["corpus"], pasted=pasted, tab="complexity")
    said = words(at)
    assert "use diverse queries, if these are multi-hop questions" in said
    assert "does not apply" not in said


def test_the_test_shows_its_price_and_starts_nothing_by_itself(
    workspace: Workspace, task: dict[str, str], open_page: Open
) -> None:
    at = open_page("decide", corpus=task["corpus"], target_benchmark="tales")
    at.button(key="decide_test").click().run(timeout=60)
    assert not at.exception
    assert "1" in at.query_params["test"]
    shown = {m.label: m.value for m in at.metric}
    assert shown["Price"] == "free"
    assert shown["Judged by"].startswith("tales")
    assert at.button(key="trial_start")
    assert jobs.list_jobs(workspace) == []
    at.button(key="trial_close").click().run(timeout=60)
    assert "test" not in at.query_params


def test_the_way_to_the_test_is_on_every_page_of_data(task: dict[str, str], open_page: Open) -> None:
    for page in ("documents", "queries"):
        at = open_page(page, corpus=task["corpus"])
        assert not at.exception
        assert "Test it on my data" in [way.label for way in (*at.get("page_link"), *at.button)], page


def test_the_jobs_page_leads_to_the_decision(workspace: Workspace, task: dict[str, str], open_page: Open) -> None:
    job = run_study(workspace, sets_of(task), diverse_helps, corpus=task["corpus"], methods="diverse")
    at = open_page("jobs", job=job)
    at.button(key=f"next_{job}").click().run(timeout=60)
    assert not at.exception
    assert "Write 5 different queries per document" in words(at)


def test_two_pasted_queries_get_no_firm_verdict(workspace: Workspace, open_page: Open, tmp_path: Path) -> None:
    at = open_page("decide")
    at.text_area(key="target_text").set_value("who built it\nwhen did it end").run(timeout=60)
    said = words(at).replace("\\", "")
    assert "## Not tested on your documents yet." in said
    assert "2 target queries are too few to tell" in said


def test_queries_that_no_rule_fits_leave_the_way_to_the_test(
    workspace: Workspace, task: dict[str, str], open_page: Open
) -> None:
    at = open_page("decide", corpus=task["corpus"], pasted="")
    at.text_area(key="target_text").set_value("who is it\nwhat was that\n").run(timeout=60)

    assert not at.exception
    assert "name their language if it is another one" in words(at)
    assert "## Not tested on your documents yet." in words(at)
    assert at.button(key="decide_test")
