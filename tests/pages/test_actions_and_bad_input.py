"""Buttons do their work through services; input that cannot be used gives one sentence and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.corpus import reading
from cdp.services import corpora, jobs
from cdp.ui.shell import state
from tests.pages.conftest import Open
from tests.pages.support import ended_job

DOCUMENTS = b'{"_id": "a", "title": "Tides", "text": "The tide follows the Moon."}\n{"_id": "b", "text": ""}\n'


def test_an_upload_becomes_a_corpus_and_says_what_was_rejected(open_page: Open, workspace: Workspace) -> None:
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload("tides.jsonl", DOCUMENTS)
    at.button(key="corpus_add").click().run()
    assert not at.exception
    (made,) = corpora.list_corpora(workspace)
    assert (made.name, made.n_documents, made.n_rejected) == ("tides", 1, 1)
    assert "tides was added" in at.info[0].proto.title.replace("\\", "")  # no success where half was not read
    assert not at.success
    assert at.warning
    assert at.query_params["corpus"] == made.id
    assert not list(workspace.uploads.glob("*"))


def test_a_path_on_the_server_becomes_a_corpus(open_page: Open, workspace: Workspace) -> None:
    source = workspace.root.parent / "tides.jsonl"
    source.write_bytes(DOCUMENTS)
    at = open_page("documents")
    at.segmented_control(key="corpus_way").set_value("Path on this server").run()
    at.text_input(key="corpus_path").set_value(str(source)).run()
    at.button(key="corpus_add").click().run()
    assert [m.name for m in corpora.list_corpora(workspace)] == ["tides"]


def test_files_that_cannot_be_read_and_no_file_give_one_box(open_page: Open, workspace: Workspace) -> None:
    at = open_page("documents")
    at.button(key="corpus_add").click().run()
    assert "No file is selected" in at.error[0].proto.title.replace("\\", "")
    for name, content in (
        ("broken.jsonl", b'{"_id": "a", "text": '),
        ("not.parquet", b"PAR0 nothing"),
    ):
        at = open_page("documents")
        at.file_uploader(key="corpus_file").upload(name, content)
        at.button(key="corpus_add").click().run()
        assert not at.exception, name
        assert len(at.error) == 1, name
        assert at.error[0].proto.title, name
        assert corpora.list_corpora(workspace) == [], name


def test_search_pages_and_deep_link_of_documents(open_page: Open, filled: Workspace) -> None:
    corpus = corpora.list_corpora(filled)[0]
    at = open_page("documents", corpus=corpus.id)
    assert len(at.dataframe[0].value) == 20
    at.text_input(key=f"search_{corpus.id}").set_value("lighthouse").run()
    found = at.dataframe[0].value
    assert 0 < len(found) <= 20
    assert "lighthouse" in set(found["ID"])


def test_the_preview_follows_document_and_number(open_page: Open, filled: Workspace) -> None:
    at = open_page("queries", document="lighthouse")
    assert at.selectbox(key="choose_document").value == "lighthouse"
    at.slider(key="preview_m").set_value(3).run()
    lists = [m.value for m in at.markdown if m.value.startswith("1. ")]
    assert [text.count("\n") + 1 for text in lists] == [3, 3]
    at.segmented_control(key="generate_generator").set_value("template").run()
    assert not at.exception
    assert [m.value for m in at.markdown if m.value.startswith("1. ")] != lists


def test_an_endpoint_is_not_asked_before_the_button(open_page: Open, filled: Workspace) -> None:
    at = open_page("queries")
    at.segmented_control(key="generate_generator").set_value("openai").run()
    at.text_input(key="generate_base_url").set_value("http://127.0.0.1:9/v1").run()
    assert not at.error
    at.text_input(key="generate_api_key").set_value("secret-key").run()
    at.button(key="preview_ask").click().run(timeout=60)
    assert not at.exception
    assert len(at.error) == 1
    assert "secret-key" not in str(at.error[0].proto)


def test_a_plan_stands_beside_the_settings_and_bad_settings_give_one_box(open_page: Open, filled: Workspace) -> None:
    at = open_page("launch")
    shown = {m.label: m.value for m in at.metric if m.label != "Time"}  # of earlier trainings on this machine
    assert shown == {"Pairs": "768", "Documents": "96", "Steps": "18"}
    at.number_input(key="train_per_doc").set_value(1).run()
    assert {m.label: m.value for m in at.metric}["Pairs"] == "96"
    at.selectbox(key="choose_retriever").select("other").run()
    at.text_input(key="train_model").set_value("no/such-model-anywhere").run()
    assert not at.exception
    assert len(at.error) == 1


def test_the_comparison_keeps_its_baseline_in_the_address(open_page: Open, full: Workspace) -> None:
    at = open_page("compare", baseline="training-1-diverse")
    assert at.selectbox(key="choose_baseline").value == "training-1-diverse"
    table = next(d.value for d in at.dataframe if "Difference" in d.value.columns and "95% interval" in d.value.columns)
    assert set(table["Difference"].str[0]) == {"−", "–"}  # the dash: the baseline itself
    at.session_state["compare_view"] = "Export"
    at.run()
    assert at.get("download_button")


def test_a_failed_job_shows_its_kind_hint_and_log(open_page: Open, workspace: Workspace) -> None:
    ended_job(
        workspace,
        "training-9-bad",
        "training",
        {"query_set": "q"},
        name="too big",
        outcome="failed",
        failure={
            "kind": "cuda_out_of_memory",
            "message": "CUDA out of memory.",
            "hint": "Use a smaller batch_size.",
            "log_tail": "step 3\n<b>Traceback</b>",
        },
    )
    at = open_page("jobs", job="training-9-bad")
    assert "CUDA out of memory" in at.error[0].proto.title.replace("\\", "")
    assert "smaller batch" in at.error[0].value.replace("\\", "")
    assert any("<b>Traceback</b>" in code.value for code in at.code)
    assert {b.key for b in at.button} >= {"resume_training-9-bad", "delete_training-9-bad"}
    at.button(key="delete_training-9-bad").click().run()
    assert jobs.list_jobs(workspace) == []


def test_equal_names_are_told_apart() -> None:
    assert state.labels({"a-1": "demo", "b-2": "demo", "c-3": "other"}) == {
        "a-1": "demo · a-1",
        "b-2": "demo · b-2",
        "c-3": "other",
    }


def test_rows_that_met_an_error_of_ours_are_listed_with_their_tracebacks(
    open_page: Open, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "checked_title", lambda value, field: str(1 // len(value)))
    # Rows with such an id are read one by one.
    rows = [{"_id": f"é{i}", "title": "" if i == 3 else "t", "text": f"text {i}"} for i in range(9)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = corpora.add(workspace, path, name="rows").corpus.id
    at = open_page("documents", corpus=corpus)
    assert "1 row failed with an unexpected error" in [e.label for e in at.expander]
    at.session_state[f"faults_{corpus}"] = True
    at.run()
    assert not at.exception
    (listed,) = [f.value for f in at.dataframe if "Item type" in f.value]
    assert list(listed["ID"]) == ["rows.jsonl:4"]
    assert "ZeroDivisionError" in listed["Reason"][0]
