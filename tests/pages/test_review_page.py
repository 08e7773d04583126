"""The query workbench: documents beside their queries, decisions, filters, and what the address keeps."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from cdp import query_sets
from cdp.base.text import marked
from cdp.base.workspace import Workspace
from cdp.query_sets import QuerySet, deriving, store
from cdp.query_sets.nonsense import query_table
from cdp.services import jobs, queries
from cdp.ui.shell.tables import html_marked
from tests.pages.conftest import Open


def of(workspace: Workspace, method: str) -> QuerySet:
    return next(q for q in queries.list_query_sets(workspace) if q.method == method)


def words(at: AppTest) -> str:
    groups = (at.markdown, at.caption, at.info, at.error)
    return "\n".join(str(e.value) for group in groups for e in group).replace("\\", "").replace("\u2060", "")


def pressed(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert not at.exception, at.exception
    assert not at.error, at.error[0].value
    return at


def test_a_query_is_accepted_edited_and_rejected_and_the_set_is_made(open_page: Open, filled: Workspace) -> None:
    parent = of(filled, "diverse")
    at = open_page("queries/review", query_set=parent.id, document="lighthouse")
    assert "100% of 768 pairs are usable" in words(at)
    assert "Lighthouse" in words(at)
    pressed(at, "accept_lighthouse-1")
    pressed(at, "reject_lighthouse-2")
    pressed(at, "edit_lighthouse-3")
    at.text_area(key="text_lighthouse-3").set_value("how do  sailors know a lighthouse")
    pressed(at, "save_lighthouse-3")
    made = deriving.read_decisions(filled, parent)
    assert (made.accepted, made.rejected) == ({"lighthouse-1"}, {"lighthouse-2"})
    assert made.edited == {"lighthouse-3": "how do sailors know a lighthouse"}
    assert "Decided: 3 of 768" in words(at)
    pressed(at, "reject_lighthouse-2")
    assert deriving.read_decisions(filled, parent).of("lighthouse-2") == "", "a second press takes it back"
    at.text_input(key="workbench_by").set_value("Ada").run()
    pressed(at, "reject_lighthouse-2")
    pressed(at, "undo_review")
    assert deriving.read_decisions(filled, parent).of("lighthouse-2") == "", "so does undo"
    pressed(at, "reject_lighthouse-2")
    assert '"by": "Ada"' in query_sets.files(filled, parent.id).review.read_text()
    pressed(at, "review_make")
    (new,) = [q for q in queries.list_query_sets(filled) if q.parameters.get("made_from") == parent.id]
    assert new.n_queries == 767
    assert next(iter(query_sets.read_queries(filled, new.id))).queries[:2] == [
        "What happened to the Pharos of Alexandria?",
        "how do sailors know a lighthouse",
    ]
    assert at.query_params["query_set"] in (new.id, [new.id])
    assert f"Made from {parent.id} by review: 1 accepted, 1 edited, 1 rejected" in words(at)


def test_the_address_names_set_and_document_so_that_a_reload_shows_the_same(open_page: Open, filled: Workspace) -> None:
    parent = of(filled, "diverse")
    at = open_page("queries/review", query_set=parent.id)
    assert "Document 1 of 96" in words(at)
    pressed(at, "go_next")
    pressed(at, "go_next")
    assert "Document 3 of 96" in words(at)
    params = {name: value[0] if isinstance(value, list) else value for name, value in at.query_params.items()}
    again = open_page("queries/review", **params)
    assert "Document 3 of 96" in words(again)
    shown = [e.value for e in at.markdown]
    assert [text for text in shown if text in [e.value for e in again.markdown]] == shown
    lost = open_page("queries/review", query_set=parent.id, document="nowhere")
    assert "The document nowhere of the link has no queries in this set" in words(lost)


def test_round_trip_ranks_and_a_filtered_set(
    open_page: Open, filled: Workspace, in_process: Callable[[], list[str]]
) -> None:
    parent = of(filled, "paraphrase")
    at = open_page("queries/review", query_set=parent.id)
    assert "Round-trip rank not measured" in words(at)
    pressed(at, "round_trip_start")
    (job,) = [v for v in jobs.list_jobs(filled) if v.kind == "round-trip"]
    assert in_process() == [job.id]
    at = open_page("queries/review", query_set=parent.id)
    assert "Round-trip rank by BM25" in words(at)
    assert "BM25 rank 1" in words(at)
    kept = store.load_scores(filled, parent, store.ROUND_TRIP, "bm25")
    assert kept is not None
    at.segmented_control(key=f"review_{parent.id}_show").set_value("unusable").run()
    lost = query_table(filled, parent).document[(kept.values == 0) | (kept.values > 10)]
    assert f"Document 1 of {len(set(lost.tolist()))}" in words(at)
    at.number_input(key=f"filter_{parent.id}_round_trip_rank").set_value(1).run()
    at.button(key="filter_start").click().run()
    (job,) = [v for v in jobs.list_jobs(filled) if v.kind == "filter"]
    assert in_process() == [job.id]
    (new,) = [q for q in queries.list_query_sets(filled) if q.parameters.get("made_from") == parent.id]
    assert new.n_queries == int((kept.values == 1).sum())
    assert "Review the new set" in [b.label for b in open_page("jobs", job=job.id).button]


def test_words_are_marked_and_every_character_of_the_document_shows() -> None:
    assert html_marked(marked("First *line*.\nSecond [one] costs $5. Third.", ["third"])) == (
        "First *line*.\nSecond [one] costs $5. <mark>Third</mark>."
    )
    assert html_marked(marked("a <b>\nb", [])) == "a &lt;b&gt;\nb"
