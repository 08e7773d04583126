"""A set made from another: what a filter or a review leaves, with the way back to the first one."""

from __future__ import annotations

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace, append_jsonl, write_json
from cdp.query_sets import QuerySet, deriving, import_queries, store, usable
from cdp.query_sets.deriving import derive
from cdp.query_sets.nonsense import query_table
from cdp.services import review
from tests.synthesis.conftest import CorpusMaker

LINES = {"d0": ["What is thing0?", "what is thing0", "thing0"], "d1": ["thing1 device", "thing1 wheel"]}


@pytest.fixture
def parent(workspace: Workspace, make_corpus: CorpusMaker) -> QuerySet:
    return import_queries(LINES.items(), workspace, make_corpus(3).id, "Mine").query_set


def lines(workspace: Workspace, query_set: QuerySet) -> dict[str, list[str]]:
    return {line.document_id: line.queries for line in query_sets.read_queries(workspace, query_set.id)}


def test_a_derived_set_names_what_it_was_made_from(workspace: Workspace, parent: QuerySet) -> None:
    made = derive(workspace, parent, lambda d: [None, *d.queries[1:]], "shorter", {"without": {"filter": "x"}})
    assert (made.dropped, made.rewritten) == (2, 0)
    assert lines(workspace, made.query_set) == {"d0": LINES["d0"][1:], "d1": LINES["d1"][1:]}
    assert made.query_set.parameters["made_from"] == parent.id
    assert made.query_set.parameters["made_from_hash"] == parent.content_hash
    assert made.query_set.content_hash not in ("", parent.content_hash)
    assert made.query_set.n_queries == 3
    assert lines(workspace, parent) == LINES, "the first set stays as it was"
    with pytest.raises(InputError, match="Nothing of Mine would stay"):
        derive(workspace, parent, lambda d: [None] * len(d.queries), "none", {})


def test_teachers_rankings_of_a_query_that_is_gone_are_gone(workspace: Workspace, parent: QuerySet) -> None:
    """They are what hard negatives are taken from: a judged query that is left out must not come back by them."""
    rows = [{"query": text, "positives": ["d0"], "negatives": ["d2"]} for text in ("thing0", "thing1 wheel")]
    append_jsonl(query_sets.files(workspace, parent.id).rankings, rows)
    made, n = query_sets.leave_out(workspace, parent, lambda texts: [t == "thing0" for t in texts], "short", {})
    assert n == 1
    assert [row["query"] for row in query_sets.read_rankings(workspace, made.id)] == ["thing1 wheel"]


def test_decisions_are_kept_beside_the_set_and_the_last_one_counts(workspace: Workspace, parent: QuerySet) -> None:
    deriving.decide(workspace, parent, ["d0-1", "d0-2"], deriving.REJECT)
    deriving.decide(workspace, parent, ["d0-1"], deriving.ACCEPT)
    deriving.decide(workspace, parent, ["d1-1"], deriving.EDIT, text="which  device is thing1")
    deriving.decide(workspace, parent, ["d1-2"], deriving.REJECT)
    deriving.decide(workspace, parent, ["d1-2"], deriving.CLEAR)
    made = deriving.read_decisions(workspace, parent)
    assert [made.of(name) for name in ("d0-1", "d0-2", "d0-3", "d1-1", "d1-2")] == ["accept", "reject", "", "edit", ""]
    path = query_sets.files(workspace, parent.id).review
    assert len(path.read_text().splitlines()) == 5, "nothing is taken away from it"
    derived = deriving.reviewed(workspace, parent)
    assert lines(workspace, derived.query_set) == {
        "d0": ["What is thing0?", "thing0"],
        "d1": ["which device is thing1", "thing1 wheel"],
    }
    assert (derived.dropped, derived.rewritten) == (1, 1)
    facts = derived.query_set.parameters
    assert facts["review"] == {"decisions": made.hash, "accepted": 1, "edited": 1, "rejected": 1}
    assert facts["made_from"] == parent.id
    only = deriving.reviewed(workspace, parent, only_accepted=True)
    assert lines(workspace, only.query_set) == {"d0": ["What is thing0?"], "d1": ["which device is thing1"]}


def test_what_cannot_be_decided_is_refused(workspace: Workspace, parent: QuerySet) -> None:
    for decision, text in (("like", ""), (deriving.EDIT, " \n"), (deriving.EDIT, "x" * 2001), (deriving.EDIT, "a\0b")):
        with pytest.raises(ConfigError):
            deriving.decide(workspace, parent, ["d0-1"], decision, text=text)
    with pytest.raises(ConfigError, match="Only one query"):
        review.decide(workspace, parent.id, ["d0-1", "d0-2"], deriving.EDIT, text="one text")
    with pytest.raises(ConfigError, match="Nothing is decided"):
        deriving.reviewed(workspace, parent)
    unfinished = query_sets.update(workspace, parent.id, complete=False, content_hash="")
    with pytest.raises(ConfigError, match="not whole"):
        deriving.decide(workspace, unfinished, ["d0-1"], deriving.REJECT)


def test_decisions_about_another_content_do_not_hold_and_damaged_lines_harm_nothing(
    workspace: Workspace, parent: QuerySet
) -> None:
    path = query_sets.files(workspace, parent.id).review
    append_jsonl(path, [{"decision": "reject", "queries": ["d0-1"], "content_hash": "other"}, 7, {"decision": []}])
    with open(path, "a") as file:
        file.write('{"decision": "reject", "queries": ["d0-2"')
    deriving.decide(workspace, parent, ["d0-3"], deriving.REJECT)
    made = deriving.read_decisions(workspace, parent)
    assert made.rejected == {"d0-3"}


def test_the_table_of_single_queries(workspace: Workspace, parent: QuerySet) -> None:
    table = query_table(workspace, parent)
    assert table.ids == ["d0-1", "d0-2", "d0-3", "d1-1", "d1-2"]
    assert table.reasons.tolist() == ["", "duplicate", "", "", ""]
    assert [query_sets.read_at(workspace, parent.id, int(at))["document_id"] for at in table.offset] == ["d0", "d1"]
    unusable = usable.chosen(workspace, parent, table, usable.UNUSABLE)
    assert unusable.tolist() == [False, True, False, False, False]
    store.save_scores(workspace, parent, store.ROUND_TRIP, "bm25", np.array([1, 1, 11, 0, 10]))
    store.save_scores(workspace, parent, store.ROUND_TRIP, "minilm", np.array([1, 0, 0, 2, 0]))
    found = usable.usability(workspace, parent, table)
    assert (found.n, found.usable, found.by) == (5, 3, ("bm25", "minilm")), "one of the two is enough"
    assert found.reasons == {"repeats an earlier query of its document": 1, "document not found within 10": 1}


def test_scores_are_kept_under_the_content_so_that_stale_ones_are_never_shown(
    workspace: Workspace, parent: QuerySet
) -> None:
    store.save_scores(workspace, parent, store.ROUND_TRIP, "bm25", np.array([1, 0, 3, 1, 2]))
    kept = store.load_scores(workspace, parent, store.ROUND_TRIP, "bm25")
    assert kept is not None
    assert kept.values.tolist() == [1, 0, 3, 1, 2]
    assert [s.by for s in store.list_scores(workspace, parent, store.ROUND_TRIP)] == ["bm25"]
    assert store.load_scores(workspace, parent, store.ROUND_TRIP, "minilm") is None
    assert store.load_scores(workspace, parent, store.CROSS_ENCODER, "bm25") is None
    write_json(query_sets.files(workspace, parent.id).measures / "0.json", {"values": []})
    changed = query_sets.update(workspace, parent.id, content_hash="0123456789abcdef")
    assert store.load_scores(workspace, changed, store.ROUND_TRIP, "bm25") is None
    assert store.list_scores(workspace, changed, store.ROUND_TRIP) == []


def test_a_persons_last_decision_is_taken_back(workspace: Workspace, parent: QuerySet) -> None:
    for by, decision, queries in (
        ("Ada", deriving.REJECT, ["d0-1", "d0-2"]),
        ("Ada", deriving.ACCEPT, ["d0-2", "d1-1"]),
        ("Ben", deriving.ACCEPT, ["d1-2"]),
    ):
        deriving.decide(workspace, parent, queries, decision, by=by)
    assert review.undo(workspace, parent.id, "Ada") == "d0-2", "the whole action"
    made = deriving.read_decisions(workspace, parent)
    assert (made.rejected, made.accepted) == ({"d0-1", "d0-2"}, {"d1-2"})
    assert review.undo(workspace, parent.id, "Cem") == ""
