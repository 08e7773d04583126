"""Judging and labelling on the Benchmarks page: what is sent stands before the start; labels, undo, agreement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.benchmarks import judged, load_benchmark
from cdp.corpus import CorpusManifest
from cdp.services import endpoints, jobs, judging
from tests.judging.conftest import ANIMALS, _no_keys, corpus, judge, log, server
from tests.judging.made import make
from tests.judging.test_written_queries import writes_and_judges
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words
from tests.synthesis.server import KEY, MODEL, ChatServer

__all__ = ["_no_keys", "corpus", "judge", "log", "server"]

pytestmark = pytest.mark.slow


def test_what_is_sent_where_stands_before_the_start(
    open_page: Open, corpus: CorpusManifest, log: Path, judge: ChatServer, in_process: Callable[[], list[str]]
) -> None:
    at = open_page("benchmarks", tab="judge")
    assert {b.label for b in at.button} & {"Start judging"} == set(), "nothing to start without queries"
    at.segmented_control(key="judge_log_way").set_value("Path on this server").run()
    at.text_input(key="judge_log_path").set_value(str(log)).run()
    at.text_input(key="generate_model").set_value(MODEL)
    at.text_input(key="generate_api_key").set_value(KEY).run()
    said = words(at).replace("\\", "")
    assert "13 lines: 12 different queries, 1 repeated." in said
    assert f"are sent to {judge.url}: {MODEL} judges at most" in at.info[0].value.translate({0x5C: None, 0x2060: None})
    assert not judge.bodies
    at.button(key="judge_start").click().run()
    assert not at.exception
    (job,) = jobs.list_jobs(Workspace.default())
    assert (job.kind, job.config["model"]) == ("judging", MODEL)


def test_people_judge_alone_from_the_form_to_a_figure(
    open_page: Open, corpus: CorpusManifest, log: Path, in_process: Callable[[], list[str]], workspace: Workspace
) -> None:
    at = open_page("benchmarks", tab="judge")
    at.segmented_control(key="judge_by").set_value("people").run()
    assert "generate_api_key" not in {box.key for box in at.text_input}, "no model is asked"
    assert "A model writes them" not in at.segmented_control(key="judge_from").options
    assert "A query counts once all its pooled documents are labelled" in words(at)
    at.segmented_control(key="judge_log_way").set_value("Path on this server").run()
    at.text_input(key="judge_log_path").set_value(str(log)).run()
    at.text_input(key="judge_retrievers").set_value("bm25")
    at.number_input(key="judge_depth").set_value(2).run()
    said = at.info[0].value.translate({0x5C: None, 0x2060: None})
    assert "stay on this machine: people label at most 24 pairs, 6 min at 15 s each" in said
    at.session_state["command-benchmarks-judge"] = True
    at.run()
    assert any("--generator people" in code.value for code in at.code), [code.value for code in at.code]
    at.button(key="judge_start").click().run()
    assert not at.exception
    (job,) = in_process()

    at = open_page("jobs", job=job)
    ways = [way.label for way in (*at.get("page_link"), *at.button)]
    assert "Label some queries" in ways
    assert "Evaluate a retriever on it" not in ways, "nothing is labelled yet"
    name = jobs.outcome(workspace, job)["benchmark"]
    assert "is labelled as a whole yet" in open_page("benchmarks").dataframe[0].value.to_string()

    at = open_page("benchmarks", tab="label", judged_benchmark=name)
    at.text_input(key="workbench_by").set_value("Ada").run()
    said = words(at).replace("\\", "")
    assert "0 of 12 queries labelled by people: a query counts once all its documents are labelled" in said
    other = open_page("benchmarks", tab="label", judged_benchmark=name)  # a second tab
    other.text_input(key="workbench_by").set_value("Ben").run()
    for tab in (at, other):
        tab.button(key="3_label").click().run()
        tab.button(key="0_label").click().run()
        assert not tab.exception

    other.run()
    said = words(other).replace("\\", "")
    assert "1 of 12 queries labelled by people (Ada 1, Ben 1): the test so far; 22 documents left" in said
    assert "Evaluate a retriever on it" in [link.label for link in other.get("page_link")]
    assert len(load_benchmark(workspace.benchmark(name)).qrels) == 1

    for tab in (at, other):
        tab.button(key="undo_label").click().run()
    assert "0 of 12 queries" in words(other)
    with pytest.raises(CdpError, match="labelled as a whole"):
        load_benchmark(workspace.benchmark(name))


def test_the_column_of_a_log_is_chosen_where_its_name_does_not_tell(
    open_page: Open, corpus: CorpusManifest, judge: ChatServer, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("when,user_question\nMay,who keeps the lamp\nJune,how high is the tide\n", encoding="utf-8")
    at = open_page("benchmarks", tab="judge")
    at.segmented_control(key="judge_log_way").set_value("Path on this server").run()
    at.text_input(key="judge_log_path").set_value(str(path)).run()
    at.text_input(key="generate_model").set_value(MODEL)
    at.text_input(key="generate_api_key").set_value(KEY).run()
    assert "Choose the column with the queries among 'when', 'user_question'" in words(at).replace("\\", "")
    next(box for box in at.selectbox if box.label == "Queries").set_value("user_question").run()
    assert "2 lines: 2 different queries" in words(at).replace("\\", "")
    at.session_state["command-benchmarks-judge"] = True
    at.run()
    assert any("--query-field user_question" in code.value for code in at.code), [code.value for code in at.code]


def test_a_model_writes_the_queries_where_there_are_none(
    open_page: Open, corpus: CorpusManifest, judge: ChatServer, in_process: Callable[[], list[str]]
) -> None:
    judge.models |= {"another-model", "bge-m3"}
    judge.answer = writes_and_judges
    at = open_page("benchmarks", tab="judge")
    at.segmented_control(key="judge_from").set_value("A model writes them").run()
    at.text_input(key="generate_model").set_value(MODEL)
    at.text_input(key="generate_api_key").set_value(KEY).run()
    assert f"{MODEL} writes these queries and judges them" in words(at).replace("\\", "")
    assert "written_by" not in str([box.key for box in at.text_input])
    at.text_input(key="judge_writer").set_value("another-model")
    at.text_input(key="judge_retrievers").set_value("bm25, api:bge-m3")
    at.number_input(key="judge_limit").set_value(5).run()
    assert not at.warning
    said = at.info[0].value.translate({0x5C: None, 0x2060: None})
    assert f"6 documents are sent to {judge.url}: another-model writes 5 queries, its price is unknown." in said
    assert "Up to 41 texts" in said
    assert f"are sent to {judge.url} for bge-m3: its price is unknown" in said
    assert not judge.bodies
    at.button(key="judge_start").click().run()
    assert not at.exception
    (job,) = jobs.list_jobs(Workspace.default())
    config = job.config
    assert (config["writer"], config["written_by"], config["queries"]) == ("another-model", "another-model", "")
    assert config["retrievers"] == f"bm25, api:bge-m3@{judge.url}"


def test_labels_are_stored_with_a_name_and_taken_back(open_page: Open, workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: d)
    at = open_page("benchmarks", tab="label", judged_benchmark="made")
    assert "3_label" not in {b.key for b in at.button}, "first a name"
    at.text_input(key="workbench_by").set_value("Ada").run()
    order = judged.sampled(judged.read_pool(folder))
    assert f"what of subject {order[0][1:]}" in words(at)
    for key in ("3_label", "0_label", "unsure_label"):
        at.button(key=key).click().run()
        assert not at.exception
    assert [label.grade for label in judged.read_labels(folder)] == [3, 0, None]
    at.button(key="undo_label").click().run()
    assert [label.grade for label in judged.read_labels(folder)] == [3, 0]
    at.button(key="nothing_label").click().run()
    assert [label.grade for label in judged.read_labels(folder)] == [3, 0, 0, 0]
    said = words(at).replace("\\", "")
    assert "1 of 30 queries labelled by people (Ada 1): corrected figures need 9 more." in said
    assert "Grades by a-model: 0: 30, 1: 30, 2: 30, 3: 30." in said
    assert f"what of subject {order[1][1:]}" in words(at)
    assert at.dataframe[0].value["Second"].tolist() == ["a-model"]


def test_before_any_judging_the_tab_leads_to_it(open_page: Open) -> None:
    assert "Nothing to label yet" in words(open_page("benchmarks", tab="label"))


def test_a_log_is_given_once_for_its_documents(open_page: Open, corpus: CorpusManifest, judge: ChatServer) -> None:
    """A job that was deleted took the log with it, and the file was asked for again."""
    workspace, asked = Workspace.default(), [f"where does the {animal} sleep" for animal in ANIMALS]
    endpoints.remember(workspace, "openai", judge.url, MODEL)
    assert judging.given_before(workspace, corpus.id) == ("", [])
    file = judging.keep_queries(workspace, corpus.id, asked)
    assert judging.given_before(workspace, corpus.id) == (file, asked)

    at = open_page("home")
    assert at.segmented_control(key="flow_from").value == "Given before"
    assert "12 queries with the passages found for them are sent to" in at.info[0].value

    at = open_page("benchmarks", tab="judge")
    assert at.segmented_control(key="judge_from").value == "Given before"
    assert "12 queries" in at.info[0].value
