"""What was typed or chosen on one page is there on the next, after a reload too; what is irreversible asks first."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.services import decide
from tests.pages.conftest import Open
from tests.pages.support import ended_job

TEXT = "which treaty ended the war that began the year the bridge opened\nhow do tides work\nwho built the mill"


def test_pasted_queries_survive_a_reload(open_page: Open, filled: Workspace) -> None:
    at = open_page("decide")
    at.segmented_control(key="target_source").set_value("Pasted text").run()
    at.text_area(key="target_text").input(TEXT).run()
    assert not at.exception
    name = at.query_params["pasted"]
    name = name if isinstance(name, str) else name[0]
    assert decide.load(filled, name) == TEXT
    assert "treaty" not in str(at.query_params)  # the address holds a name, not the text
    again = open_page("decide", pasted=name)  # another session: what a reload is
    assert again.segmented_control(key="target_source").value == "Pasted text"
    assert again.text_area(key="target_text").value == TEXT
    assert decide.load(filled, "../../etc/passwd") == ""


def test_the_next_step_of_a_finished_job_stands_out_not_its_deletion(open_page: Open, filled: Workspace) -> None:
    config = {"corpus": "demo", "method": "diverse", "per_doc": 5}
    ended_job(filled, "synthesis-20260101-000000-abcd-done", "synthesis", config, name="demo diverse")
    at = open_page("jobs", job="synthesis-20260101-000000-abcd-done")
    assert not at.exception
    primary = [b.label for b in at.button if b.proto.type == "primary"]
    assert primary == ["Measure the queries"]
