"""From a query set on disk to pairs, and the order in which steps see them."""

from __future__ import annotations

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.errors import InputError, NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import Workspace, read_json
from cdp.training.pairs import BatchOrder, draw_pairs, load_pairs
from cdp.training.plan import prepare
from tests.training.conftest import TOPICS, write_queries

pytestmark = pytest.mark.slow


def test_equal_contents_are_one_document_whatever_their_ids(workspace: Workspace, query_set: str) -> None:
    pairs = load_pairs(workspace, query_set)
    assert (len(pairs), len(pairs.documents)) == (39, 12)
    twin = [i for i, d in enumerate(pairs.document_of) if d == 0]
    assert len(twin) == 6
    assert (
        pairs.documents[0] == Document("d0", f"all about the {TOPICS[0]} and its {TOPICS[0][::-1]}", TOPICS[0]).content
    )


def test_per_doc_takes_the_first_queries_and_conditions_are_nested(workspace: Workspace, query_set: str) -> None:
    one, two = (load_pairs(workspace, query_set, per_doc=m) for m in (1, 2))
    assert one.queries[:4] == [f"what is a {t}" for t in TOPICS[:4]]
    assert two.queries[::2] == one.queries
    assert one.content_hash != two.content_hash == load_pairs(workspace, query_set, per_doc=2).content_hash


def test_documents_and_pairs_are_drawn_by_seed_alike_for_every_set_of_a_corpus(
    workspace: Workspace, query_set: str
) -> None:
    few, budget = (draw_pairs(workspace, query_set, 3, documents=4, budget=b) for b in (None, 7))
    assert (few.n_documents, len(budget)) == (4, 7)
    assert set(budget.documents) <= set(few.documents)
    assert few.documents != load_pairs(workspace, query_set).documents[:4]
    assert draw_pairs(workspace, query_set, 4, documents=4).content_hash != few.content_hash
    one = draw_pairs(workspace, query_set, 3, per_doc=1, documents=4)
    assert set(one.documents) == set(few.documents)
    config = TrainingConfig.from_dict({"query_set": query_set, "seed": 3, "max_documents": 4, "pairs": 7})
    drawn = prepare(config, workspace)
    assert drawn.pairs.content_hash == budget.content_hash
    assert drawn.settings.loop.hard_negatives == 0, (
        "one form for a recipe: None and 0 are the same without hard negatives"
    )


def test_what_cannot_be_used_is_counted(workspace: Workspace, query_set: str) -> None:
    corpus = read_json(workspace.query_set(query_set) / "manifest.json")["corpus_id"]
    write_queries(
        workspace, "odd", corpus, {"d0": ["fine", "  "], "d1": ["fine too"], "nowhere": ["lost", "lost again"]}
    )
    pairs = load_pairs(workspace, "odd")
    assert pairs.queries == ["fine", "fine too"]
    assert pairs.dropped == {"empty queries": 1, "queries for unknown documents": 2}


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ({}, "no training pairs"),
        ({"d0": [" "]}, "1 empty queries"),
        ({"d0": ["only this"]}, "1 pair over one document"),
        ({"d0": ["a"], "twin": ["b"]}, "2 pairs over one document"),
    ],
)
def test_too_little_to_train_on_is_said(
    workspace: Workspace, query_set: str, queries: dict[str, list[str]], words: str
) -> None:
    corpus = read_json(workspace.query_set(query_set) / "manifest.json")["corpus_id"]
    write_queries(workspace, "little", corpus, queries)
    with pytest.raises(InputError, match=words):
        load_pairs(workspace, "little")


def test_an_unknown_query_set_is_named_with_the_known_ones(workspace: Workspace, query_set: str) -> None:
    with pytest.raises(NotFoundError, match=f"'nothing'.*{query_set}"):
        load_pairs(workspace, "nothing")


def test_order_is_fixed_by_the_seed_and_each_epoch_is_another_permutation() -> None:
    order = BatchOrder(pairs=23, batch_size=5, epochs=3, seed=4)
    steps = [rows.tolist() for rows in order.batches()]
    assert len(steps) == order.steps == 12
    assert order.left_out_per_epoch == 3
    for epoch in range(3):
        seen = {row for rows in steps[4 * epoch : 4 * epoch + 4] for row in rows}
        assert len(seen) == 20
    assert steps[:4] != steps[4:8]
    assert [rows.tolist() for rows in order.batches(start=7)] == steps[7:]
    assert steps != [rows.tolist() for rows in BatchOrder(23, 5, 3, seed=5).batches()]


def test_processes_share_a_global_batch_and_agree_with_one_process() -> None:
    alone = list(BatchOrder(40, 8, 2, seed=1).batches())
    shares = [list(BatchOrder(40, 8, 2, seed=1, processes=2).batches(process=p)) for p in (0, 1)]
    for whole, first, second in zip(alone, *shares, strict=True):
        assert whole.tolist() == [*first.tolist(), *second.tolist()]


def test_fewer_processes_go_on_with_the_batches_of_more() -> None:
    before = BatchOrder(pairs=40, batch_size=10, epochs=2, seed=1, processes=4)  # 8 pairs a step
    after = BatchOrder(40, 10, 2, seed=1, processes=2).resume_from(before)
    assert after is not None
    assert after.steps == before.steps
    shares = [list(after.batches(3, process)) for process in (0, 1)]
    quarters = [list(before.batches(3, process)) for process in range(4)]
    for halves, parts in zip(zip(*shares, strict=True), zip(*quarters, strict=True), strict=True):
        assert [row for rows in halves for row in rows] == [row for rows in parts for row in rows]
    assert BatchOrder(40, 10, 2, seed=1, processes=1).resume_from(after) == BatchOrder(40, 8, 2, seed=1)
    assert BatchOrder(40, 10, 2, seed=1, processes=3).resume_from(before) is None, "3 do not divide 8"
    assert BatchOrder(40, 10, 2, seed=2, processes=2).resume_from(before) is None, "another seed, other batches"
    assert BatchOrder(40, 12, 2, seed=1, processes=4).resume_from(before) is None


def test_a_batch_larger_than_the_data_is_one_batch_of_all() -> None:
    order = BatchOrder(pairs=7, batch_size=100, epochs=2)
    assert [sorted(rows.tolist()) for rows in order.batches()] == [list(range(7))] * 2
    assert BatchOrder(pairs=7, batch_size=100, epochs=2, processes=2).rows == 3
