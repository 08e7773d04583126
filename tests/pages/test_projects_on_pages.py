"""The project on screen: from the address, from what the address names, from the menu; carried by every link."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.services import benchmarks, corpora, projects, queries
from cdp.ui.shell.frame import PAGES
from tests.benchmarks.folders import write_benchmark
from tests.pages.conftest import Open
from tests.pages.support import trained


@pytest.fixture
def other(filled: Workspace, tmp_path: Path) -> str:
    """A corpus beside the demo, in a project of its own; its id."""
    path = tmp_path / "tides.jsonl"
    path.write_text('{"_id": "t1", "text": "The tide comes in twice a day."}\n', encoding="utf-8")
    added = corpora.add(filled, path, name="tides").corpus.id
    projects.create(filled, "Sea and *tides*", corpora=[added])
    return added


def on_screen(at: AppTest) -> str:
    """The project that the head of the page names."""
    return at.main.caption[0].value.rpartition(":material/folder: ")[2]


def test_the_newest_is_shown_the_address_wins_and_links_carry_the_project(
    other: str, filled: Workspace, open_page: Open
) -> None:
    assert on_screen(open_page("home")) == r"**Sea and \*tides\***"
    assert on_screen(open_page("jobs", project="all")) == "All projects"
    at = open_page("documents", project="demo")
    assert on_screen(at) == "**demo**"
    links = [link.proto for link in at.sidebar.get("page_link")]
    assert len(links) == len(PAGES)
    assert {tuple(parse_qs(link.query_string).get("project", [])) for link in links} == {("demo",)}
    # An old link names no project: it is that of what the link names.
    demo_corpus = next(m.id for m in corpora.list_corpora(filled) if m.id != other)
    at = open_page("documents", corpus=demo_corpus)
    assert on_screen(at) == "**demo**"
    assert at.selectbox(key="choose_corpus").value == demo_corpus


def test_another_project_begins_anew(other: str, filled: Workspace, open_page: Open) -> None:
    demo_corpus = next(m.id for m in corpora.list_corpora(filled) if m.id != other)
    at = open_page("queries", project="demo", corpus=demo_corpus)
    at.selectbox(key="choose_project").set_value("sea-and-tides").run()
    assert not at.exception
    assert on_screen(at) == r"**Sea and \*tides\***"
    assert dict(at.query_params) == {"project": "sea-and-tides"}
    assert at.selectbox(key="choose_corpus").value == other, "its own corpus, not the one of the other project"


def test_a_benchmark_of_no_project_is_offered_and_not_chosen_at_first(
    other: str, filled: Workspace, open_page: Open, tmp_path: Path
) -> None:
    benchmarks.add(filled, write_benchmark(tmp_path / "a first by name"), name="a-first")

    at = open_page("decide", project="demo")
    assert at.selectbox(key="choose_target_benchmark").value == "demo"
    at = open_page("launch", project="demo")
    assert {place.partition("/")[0] for place in at.multiselect(key="choose_benchmarks").value} <= {"demo"}
    assert any(option.startswith("a-first") for option in at.multiselect(key="choose_benchmarks").options)

    asked = tmp_path / "asked.tsv"
    asked.write_text("query\tdocument_id\nhow often does the tide come in\tt1\n", encoding="utf-8")
    queries.import_file(filled, asked, other, name="asked")
    at = open_page("launch", project="sea-and-tides")
    offered = at.multiselect(key="choose_benchmarks")
    assert (len(offered.options), offered.value) == (1, [])
    at = open_page("launch", project="sea-and-tides", tab="evaluation")
    assert at.multiselect(key="choose_on").value == []
    at = open_page("decide", project="sea-and-tides")
    assert at.segmented_control(key="target_source").value == "Pasted text"
    at.segmented_control(key="target_source").set_value("Benchmark").run()
    assert not at.exception
    assert at.selectbox(key="choose_target_benchmark").value is None
    at = open_page("evidence", project="sea-and-tides", tab="holds", figure="methods")
    assert any("takes a benchmark" in caption.value for caption in at.caption)
    at = open_page("decide", project="sea-and-tides", target_benchmark="a-first")
    assert at.selectbox(key="choose_target_benchmark").value == "a-first", "a link names it"

    for project in ("demo", "sea-and-tides"):
        projects.delete(filled, project)
    at = open_page("launch", project=other)
    assert at.multiselect(key="choose_benchmarks").value, "where nobody made a project, each benchmark is for all"


def test_a_damaged_project_ends_no_page(other: str, filled: Workspace, open_page: Open) -> None:
    (filled.project("demo") / "project.json").write_text("{", encoding="utf-8")
    at = open_page("home")
    assert not at.error
    assert any("cannot be read" in caption.value for caption in at.sidebar.caption)
    at = open_page("documents", project="demo")
    assert not at.error
    assert any("demo" in warning.value for warning in at.warning), "it says that the link names what is not here"


def test_pages_offer_what_is_the_projects(other: str, filled: Workspace, open_page: Open) -> None:
    """Of the demo nothing is offered in another project, and everything again in all projects."""
    assert list(open_page("documents").selectbox(key="choose_corpus").options) == ["tides"]
    assert "No query sets yet" in " ".join(m.value for m in open_page("launch").markdown)
    at = open_page("documents", project="all")
    assert set(at.selectbox(key="choose_corpus").options) == {"tides", "demo"}
    assert len(open_page("launch", project="demo").selectbox(key="choose_query_set").options) == 2
    query_set = next(q.id for q in queries.list_query_sets(filled))
    trained(filled, "training-1-demo", query_set, name="of the demo")
    assert "Nothing has run yet" in " ".join(m.value for m in open_page("jobs", project="sea-and-tides").markdown)
    at = open_page("jobs", job="training-1-demo")
    assert on_screen(at) == "**demo**"
    assert at.selectbox(key="choose_job").value == "training-1-demo"


def test_the_demo_that_is_loaded_is_turned_to(workspace: Workspace, tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "tides.jsonl"
    path.write_text('{"_id": "t1", "text": "The tide comes in twice a day."}\n', encoding="utf-8")
    corpora.add(workspace, path, name="tides")
    at = open_page("documents")
    assert on_screen(at) == "**tides**"
    at.button(key="corpus_demo").click().run()
    assert on_screen(at) == "**demo**"
    assert list(at.selectbox(key="choose_corpus").options) == ["demo"]


def test_a_name_is_changed_and_a_project_is_removed(other: str, filled: Workspace, open_page: Open) -> None:
    at = open_page("home", project="demo")
    at.text_input(key="project_name_demo").set_value("Lighthouses").run()
    at.button(key="project_save").click().run()
    assert not at.error
    assert on_screen(at) == "**Lighthouses**"
    at.text_input(key="project_name_demo").set_value("Sea and *tides*").run()
    at.button(key="project_save").click().run()
    assert "called" in at.error[0].proto.title, "two projects of one name could not be told apart"
    at.button(key="delete_project").click().run()
    assert not at.error
    assert on_screen(at) == r"**Sea and \*tides\***"
    assert [p.name for p in projects.list_projects(filled) if p.implied] == ["demo"], "its corpus stands for itself"
