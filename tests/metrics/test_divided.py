"""The measures that need no model, in parts by a crew: to the last bit those of one machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.crew import Alone
from cdp.base.failures import Failures
from cdp.base.workspace import Workspace, append_jsonl
from cdp.corpus import read_documents, store
from cdp.metrics import query_table, quick, spans
from cdp.metrics.ledger import Ledger
from cdp.metrics.spans import Team
from cdp.query_sets import QuerySet
from tests.crews import Death, Mortal, Several

N = 100


@pytest.fixture
def measured_set(workspace: Workspace, tmp_path: Path) -> str:
    """A set with empty documents, one text for many documents and refusals; human queries beside it."""
    draw = random.Random(3)
    words = ["wheel", "device", "iron", "rust", "turns", "sells", "why", "how", "what", "where", "price"]
    path = tmp_path / "corpus.jsonl"
    append_jsonl(path, [{"_id": f"d{i}", "text": " ".join(draw.choices(words, k=30))} for i in range(N)])
    with read_documents(path) as result:
        corpus = store(result, "corpus", workspace)
    lines: list[dict[str, Any]] = []
    for i in range(N):
        queries = [" ".join(draw.choices(words, k=draw.randint(2, 9))) for _ in range(draw.randint(0, 7))]
        queries += ["What is it?"] * (i % 7 == 4) + ["??", "I'm sorry, but I cannot help."] * (i % 50 == 7)
        lines.append({"document_id": f"d{i}", "position": i, "queries": queries})
    for name, rows in (("synthetic", lines), ("human", [{**line, "queries": line["queries"][:1]} for line in lines])):
        query_sets.create(workspace, QuerySet(name, name, corpus.id, corpus.content_hash, n_documents=N))
        file = query_sets.files(workspace, name).queries
        append_jsonl(file, rows)
        totals = query_sets.count(file)
        query_sets.update(workspace, name, complete=True, content_hash=totals.content_hash, n_queries=totals.n_queries)
    return "synthetic"


def files_of(workspace: Workspace) -> dict[str, bytes]:
    folder = query_sets.files(workspace, "synthetic").measures
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("human", ["", "human"])
def test_the_quick_measures_in_parts(workspace: Workspace, measured_set: str, human: str, tmp_path: Path) -> None:
    plan = quick.plan(workspace, measured_set, human=human)
    expected = quick.measure(plan)
    one = files_of(workspace)
    for path in (plan.path, plan.columns):
        path.unlink()
    told: list[tuple[int, int]] = []

    def report(done: int, total: int) -> bool:
        told.append((done, total))
        return True

    crew = Several(2)
    assert quick.measure(plan, report, team=Team(crew, tmp_path / "parts")) == expected
    assert crew.n_parts == 8
    assert told[-1] == (N, N)
    assert files_of(workspace) == one
    assert not list((tmp_path / "parts").iterdir())


@pytest.mark.slow
def test_the_table_of_queries_in_parts(workspace: Workspace, measured_set: str, tmp_path: Path) -> None:
    query_set = query_sets.load(workspace, measured_set)
    expected = query_table.make(workspace, query_set)
    assert expected is not None
    assert all(expected.flagged(reason).any() for reason in ("same everywhere", "refusal", "no words"))
    one = files_of(workspace)
    found = query_table.make(workspace, query_set, team=Team(Several(3), tmp_path / "parts"))
    for name in query_table.QueryTable.__dataclass_fields__:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist()), name
    assert files_of(workspace) == one


def test_lines_that_say_no_position_are_not_divided(
    workspace: Workspace, measured_set: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query_set = query_sets.load(workspace, measured_set)
    file = query_sets.files(workspace, measured_set).queries
    file.write_text(file.read_text().replace('"position"', '"place"'))
    crew = Several(3)
    found = query_table.make(workspace, query_set, team=Team(crew, tmp_path / "parts"))
    assert found is not None
    assert crew.n_parts == 0


@pytest.mark.slow
def test_a_part_is_done_once_and_again_where_its_worker_died(
    workspace: Workspace, measured_set: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = quick.plan(workspace, measured_set)
    expected = quick.measure(plan)
    save, n = spans.save, [0]

    def dies(*values: Any) -> None:
        n[0] += 1
        if n[0] == 3:
            raise Death
        save(*values)

    monkeypatch.setattr(spans, "save", dies)
    team = Team(Mortal(2), tmp_path / "parts")

    def until_some_are_done(done: int, total: int) -> bool:
        return done < 30

    assert quick.measure(plan, until_some_are_done, team=team) is None
    left = 8 - len(list((tmp_path / "parts").rglob("*.npz")))
    assert 0 < left < 8
    crew = Several(2)
    assert quick.measure(plan, team=Team(crew, tmp_path / "parts")) == expected
    assert crew.n_parts == left


@pytest.mark.slow
def test_documents_that_cannot_be_measured_are_listed_in_order(
    workspace: Workspace, measured_set: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = quick.Columns.add

    def fails(self: quick.Columns, name: str, *more: Any) -> None:
        if name in ("d4", "d39", "d81"):
            raise ZeroDivisionError(name)
        add(self, name, *more)

    monkeypatch.setattr(quick.Columns, "add", fails)
    plan = quick.plan(workspace, measured_set)
    one, parts = (Failures(tmp_path / f"{name}.jsonl", "measuring") for name in ("one", "parts"))
    expected = quick.measure(plan, failures=one)
    assert quick.measure(plan, failures=parts, team=Team(Several(2), tmp_path / "parts")) == expected
    assert (parts.n, parts.n_done) == (one.n, one.n_done) == (3, one.n_done)
    assert [line["id"] for line in parts.first] == ["d4", "d39", "d81"]
    assert [line["reason"] for line in parts.first] == [line["reason"] for line in one.first]


def test_a_ledger_takes_rows_in_any_order(tmp_path: Path) -> None:
    rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    ledger = Ledger(tmp_path / "a.f32", "x", width=2)
    ledger.put(6, rows[6:9])
    ledger.put(3, rows[3:6])
    assert (ledger.done, ledger.waiting(6), ledger.waiting(0)) == (0, True, False)
    ledger = Ledger(tmp_path / "a.f32", "x", width=2)
    ledger.put(0, rows[:3])
    assert ledger.done == 9
    ledger.put(9, rows[9:])
    assert ledger.read().tolist() == rows.tolist()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.f32", "a.json"]
    ledger.put(12, rows[:1])
    assert Ledger(tmp_path / "a.f32", "other", width=2).done == 0
    assert not list(tmp_path.glob("*.part")), "what waited was of other work"


def test_spans_are_whole_lines(workspace: Workspace, measured_set: str) -> None:
    parts = list(query_sets.spans(workspace, measured_set, 30))
    assert len(parts) == 4
    read = [line.document_id for part in parts for _, line in query_sets.iter_offsets(workspace, measured_set, part)]
    assert read == [f"d{i}" for i in range(N)]
    assert Alone().size == 1
