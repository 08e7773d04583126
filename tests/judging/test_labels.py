"""People label whole queries in a random order: keys, undo, two people, agreement, a file that a crash cannot spoil."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import describe, judged
from cdp.benchmarks.judged import SHARED, Label
from cdp.cli import main
from cdp.evaluation import labelling as labels
from cdp.evaluation.calibration import FEWEST, kappa
from cdp.services import judging
from tests.judging.made import make


def finish(workspace: Workspace, by: str, answer: str = "0") -> str:
    """Answer every open passage of this person's next query; return the query."""
    task = labels.task(workspace, "made", by)
    assert task is not None
    for passage in task.open:
        judging.label(workspace, "made", task.query, {passage.id: answer}, by)
    return task.query


def test_two_people_share_the_first_queries_and_then_divide_the_rest(workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: 3 if d == 0 else 0, n_queries=SHARED + 5, per_query=1)
    order = judged.sampled(judged.read_pool(folder))
    assert [finish(workspace, "Ada") for _ in range(SHARED + 2)] == order[: SHARED + 2]
    assert [finish(workspace, "Ben") for _ in range(SHARED + 1)] == [*order[:SHARED], order[SHARED + 2]]
    done = labels.progress(workspace, "made")
    assert (done.finished, done.people) == (SHARED + 3, {"Ada": SHARED + 2, "Ben": SHARED + 1})
    assert order != sorted(order), "the order is random, so its beginning is a random sample"
    before = describe(folder, workspace).content_hash
    finish(workspace, "Ada")
    assert describe(folder, workspace).content_hash == before, "labels change no judgment of the benchmark"


def test_what_a_later_run_found_comes_last_to_those_who_did_not_begin_it(workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: 0, n_queries=SHARED + 2, per_query=2)
    for _ in range(SHARED + 1):
        finish(workspace, "Ada")

    pool = judged.read_pool(folder)
    order = judged.sampled(pool)
    pool[order[SHARED]]["d0-0"] = {"evaluation-20260101-000000-late": 1}
    judged.write_pool(folder, pool)
    assert [finish(workspace, "Ben") for _ in range(SHARED)] == order[:SHARED]
    assert [finish(workspace, "Ben"), finish(workspace, "Ben")] == [order[SHARED + 1], order[SHARED]]
    assert labels.task(workspace, "made", "Ben") is None
    assert labels.progress(workspace, "made").extended == 0


def test_queries_that_share_documents_count_once_towards_a_correction(workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: 0, n_queries=FEWEST + 2, per_query=1)
    pairs = "".join(f"q{q}\td{q - q % 2}-0\t3\n" for q in range(FEWEST + 2))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{pairs}", encoding="utf-8")
    units = len({int(finish(workspace, "Ada")[1:]) // 2 for _ in range(FEWEST)})

    told = f"they share documents and count as {units}, so corrected figures need {FEWEST - units} more"
    assert units < FEWEST
    assert labels.progress(workspace, "made").sentence == f"10 of 12 queries labelled by people (Ada 10): {told}."


def test_undo_takes_back_one_action_of_one_person(workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: 0)
    task = labels.task(workspace, "made", "Ada")
    assert task is not None
    first, second = task.open[:2]
    judging.label(workspace, "made", task.query, {first.id: "3"}, "Ada")
    judging.label(workspace, "made", task.query, {second.id: "unsure"}, "Ben")
    judging.answer(workspace, "made", "Ada", labels.task(workspace, "made", "Ada"), labels.NOTHING)
    assert labels.progress(workspace, "made").finished == 1
    assert judging.undo(workspace, "made", "Ada") == task.query
    assert set(judged.read_labels(folder)) == {
        Label(task.query, first.id, 3, "Ada"),
        Label(task.query, second.id, None, "Ben"),
    }
    assert labels.progress(workspace, "made").finished == 0
    assert judging.undo(workspace, "made", "Ada") == task.query
    assert judging.undo(workspace, "made", "Ada") == ""
    assert [label.by for label in judged.read_labels(folder)] == ["Ben"]


def test_the_last_label_counts_and_a_torn_line_costs_itself_alone(workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: 0)
    judged.add_labels(folder, "q1", {"d1-0": 1}, "Ada")
    with open(folder / "labels.jsonl", "a", encoding="utf-8") as file:
        file.write('{"action": "x", "query": "q1", "gra')
    judged.add_labels(folder, "q1", {"d1-0": 2}, "Ada")
    assert judged.read_labels(folder) == [Label("q1", "d1-0", 2, "Ada")]


def test_people_who_disagree_count_by_their_mean_and_unsure_as_nothing(workspace: Workspace) -> None:
    folder = make(workspace, lambda q, d: 0, per_query=2)
    for by, grade in (("Ada", 3), ("Ben", 0)):
        judged.add_labels(folder, "q4", {"d4-0": grade, "d4-1": None}, by)
    judged.add_labels(folder, "q5", {"d5-0": 3}, "Ada")  # not whole
    pool, labels = judged.read_pool(folder), judged.read_labels(folder)
    assert judged.people_grades(pool, labels) == {"q4": {"d4-0": 1.5, "d4-1": 0.0}}


def test_agreement_between_people_and_with_the_judge(workspace: Workspace) -> None:
    make(workspace, lambda q, d: d % 4, n_queries=SHARED)
    for by in ("Ada", "Ben"):
        for _ in range(SHARED):
            task = labels.task(workspace, "made", by)
            assert task is not None
            answers = {passage.id: passage.id[-1] if by == "Ada" else "3" for passage in task.open}
            judging.label(workspace, "made", task.query, answers, by)
    pairs = {(a.first, a.second): a for a in labels.progress(workspace, "made").agreements}
    assert pairs["Ada", "a-model"].kappa == pairs["Ada", "a-model"].weighted == pytest.approx(1.0)
    assert pairs["Ada", "Ben"].pairs == 4 * SHARED
    assert pairs["Ada", "Ben"].same == 0.25
    assert pairs["Ada", "Ben"].kappa == pytest.approx(0.0)


def test_kappa_as_its_papers_compute_it() -> None:
    """Cohen 1960, and the quadratic weights of Cohen 1968 by their definition."""
    draw = np.random.default_rng(1)
    a, b = draw.integers(0, 4, 200), draw.integers(0, 4, 200)
    b[:120] = a[:120]
    table = np.zeros((4, 4))
    for x, y in zip(a, b, strict=True):
        table[x, y] += 1
    observed, chance = np.trace(table) / 200, (table.sum(0) * table.sum(1)).sum() / 200**2
    assert kappa(a.tolist(), b.tolist()) == pytest.approx((observed - chance) / (1 - chance))
    expected = np.mean(np.subtract.outer(a, b) ** 2)
    assert kappa(a.tolist(), b.tolist(), weighted=True) == pytest.approx(1 - np.mean((a - b) ** 2) / expected)
    assert kappa([0, 0], [0, 0]) is None


def test_labelling_in_a_terminal(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(workspace, lambda q, d: 0)
    monkeypatch.setattr("sys.stdin", io.StringIO("3\nx\nb\n2\nu\nn\n1\nq\n"))
    assert main(["benchmarks", "label", "made", "--by", "Ada", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["finished"], said["total"], said["judge"]) == (1, 30, "a-model")
    first, second = judged.sampled(judged.read_pool(folder))[:2]
    grades = [(label.query, label.grade) for label in judged.read_labels(folder)]
    assert grades == [(first, 2), (first, None), (first, 0), (first, 0), (second, 1)]


def test_what_is_no_label_is_refused(workspace: Workspace) -> None:
    make(workspace, lambda q, d: 0)
    for query, answers, by in (("q1", {"d1-0": "4"}, "Ada"), ("q1", {"d2-0": "1"}, "Ada"), ("q1", {"d1-0": "1"}, " ")):
        with pytest.raises(ConfigError):
            judging.label(workspace, "made", query, answers, by)


@pytest.mark.parametrize("name", ["pool", "labels", "grades"])
@pytest.mark.parametrize(
    "line",
    [b"{}", b"[]", b"null", b"{", b'{"query": 5}', b'{"query": "q0", "documents": {"d0-0": {}}, "grades": [], "by": 1}',
     b'{"query": ["q0"], "document": {}, "grade": "x", "action": 1}', b'{"query": "\\ud800", "grade": 1e999}',
     b'{"grade": ' + b"9" * 5000 + b"}", b"[" * 100_000, b"\xff\xfe"],
    ids=lambda line: line[:30].decode("latin-1"),
)  # fmt: skip
def test_a_damaged_line_is_named_and_costs_no_other(workspace: Workspace, name: str, line: bytes) -> None:
    make(workspace, lambda q, d: q % 4, name="other", n_queries=3)
    folder = make(workspace, lambda q, d: q % 4, n_queries=12, per_query=1)
    for _ in range(3):
        finish(workspace, "Ada")
    path = folder / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line + b"\n", *lines[1:]]))
    assert {info.name for info in labels.list_judged(workspace)} == {"made", "other"}
    done = labels.progress(workspace, "made")
    assert (done.total, done.finished, done.people) == (12, 3, {"Ada": 3})
    (problem,) = done.problems
    assert f"{name}.jsonl, line 2, has a wrong field" in problem
    assert "1 line cannot be used: " in done.sentence
    assert finish(workspace, "Ada")
    assert judging.undo(workspace, "made", "Ada")
