"""A table of questions with their documents, given on Home where a query log is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.benchmarks import list_benchmarks
from cdp.services import adding
from tests.pages.conftest import Open

pytestmark = pytest.mark.slow

ASKED = "Frage;Dokument\n" + "".join(f"Wo steht Leuchtturm {i}?;H{i}\n" for i in range(12))


@pytest.fixture
def handbook(workspace: Workspace, tmp_path: Path) -> str:
    rows = "".join(f"H{i};Der Leuchtturm {i} steht seit {1800 + i} an der Küste im Norden.\n" for i in range(12))
    path = tmp_path / "handbuch.csv"
    path.write_text(f"Nummer;Inhalt\n{rows}", encoding="utf-8")
    return adding.add(workspace, path).corpus.id


def test_questions_with_their_documents_need_no_model_that_judges(
    workspace: Workspace, handbook: str, open_page: Open
) -> None:
    at = open_page("home", corpus=handbook)
    at.file_uploader(key="flow_log_file").upload("fragen.csv", ASKED.encode(), "text/csv").run()
    assert any("answer 12 queries: no model has to judge" in said.value for said in at.markdown)

    at.button(key="flow_judged").click().run()
    assert not at.exception
    (benchmark,) = list_benchmarks(workspace)
    assert benchmark.judged == {"dev": 12}
    assert any("12 judged queries are there" in said.value for said in at.markdown)


def test_the_same_table_is_a_benchmark_where_benchmarks_are_added(
    workspace: Workspace, handbook: str, open_page: Open
) -> None:
    at = open_page("benchmarks")
    at.file_uploader(key="benchmark_own_source_file").upload("fragen.csv", ASKED.encode(), "text/csv").run()
    assert at.selectbox(key="benchmark_own_corpus").value == handbook
    at.button(key="benchmark_own_add").click().run()
    assert not at.exception
    assert [info.judged for info in list_benchmarks(workspace)] == [{"dev": 12}]
    assert "12 judged queries for handbuch added" in at.success[0].proto.title.replace("\\", "")


def test_a_plain_log_is_not_offered_as_judged(workspace: Workspace, handbook: str, open_page: Open) -> None:
    at = open_page("home", corpus=handbook)
    at.file_uploader(key="flow_log_file").upload("log.csv", b"query\nwo steht Leuchtturm 3\n", "text/csv").run()
    assert not at.exception
    assert "flow_judged" not in [button.key for button in at.button]


def test_what_an_import_on_home_left_out_is_told_there(open_page: Open) -> None:
    at = open_page("home")
    table = (
        b"id,text\n" + b"".join(b"a%d,The lighthouse %d stands on the coast.\n" % (i, i) for i in range(20)) + b"x,\n"
    )
    at.file_uploader(key="flow_documents_file").upload("lights.csv", table, "text/csv").run()
    at.button(key="flow_add").click().run()
    assert at.success[0].proto.title.replace("\\", "") == "lights was added: 20 documents."
    assert "rows not taken" in at.success[0].value
