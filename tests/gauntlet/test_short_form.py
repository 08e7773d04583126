"""The gauntlet in short: two documents in a hundred of every language, from files to trained and compared retrievers.

One study trains on every language's queries and judges each model on every language's benchmark, in one process: a
process for each would spend the time of ``make test`` on importing torch. ``make gauntlet`` is the whole of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gauntlet.corpora import Collection, collections, sampled
from tests.gauntlet.stages import RETRIEVER, Course
from tests.gauntlet.typed import OneProcess, Terminal
from tests.support import shared

pytestmark = [pytest.mark.slow, pytest.mark.shared]

TWO_IN_A_HUNDRED = 2
PER_DOC = 3


def _one_of_each_language(root: Path) -> list[Collection]:
    """The smallest judged collection of each language."""
    by_language: dict[str, Collection] = {}
    for collection in collections(root):
        if collection.judged:
            by_language.setdefault(collection.language, collection)
    return list(by_language.values())


@pytest.mark.soak
def test_every_language_from_documents_to_a_comparison(tmp_path: Path) -> None:
    chosen = _one_of_each_language(shared("data"))
    assert {c.language for c in chosen} == {"ar", "en", "fr", "ja", "ko", "ru", "zh"}
    typed = OneProcess(tmp_path / "workspace")
    query_sets = []
    for whole in chosen:
        course = Course(typed, sampled(whole, TWO_IN_A_HUNDRED, tmp_path / "sampled"), tmp_path / "exports")
        row = course.row_without_models()
        assert not typed.faults, typed.faults
        assert row is not None
        # A document that gives little has fewer queries, and at least one.
        asked = PER_DOC * row.documents
        assert asked - (PER_DOC - 1) * row.short <= row.queries <= asked - row.short
        assert row.cw is not None
        assert row.cw > 0, f"{whole.name}: no content words counted"
        for query_set in course.query_sets:  # by chance a query is worded as a judged one
            usable = typed(whole.name, "queries", "leave-out", query_set, "--judged-by", f"{whole.name}:{whole.split}")
            assert usable is not None, typed.faults
            query_sets.append(usable["id"])

    plan = tmp_path / "every-language.yaml"
    benchmarks = [f"{c.name}:{c.split}" for c in chosen]
    plan.write_text(
        f"query_sets: [{', '.join(query_sets)}]\nper_doc: [{PER_DOC}]\nseeds: [0]\n"
        f"retrievers: [{RETRIEVER}]\nbenchmarks: [{', '.join(benchmarks)}]\n",
        encoding="utf-8",
    )
    # As a user types it: a process of its own.
    terminal = Terminal(typed.workspace)
    study = terminal("study", "study", "run", str(plan), "--wait")
    assert study is not None, "".join(fault.said for fault in terminal.faults)
    report = typed("study", "study", "report", study["id"])
    assert not typed.faults, typed.faults
    assert (report["state"], report["failures"], report["finished"]) == ("finished", [], report["planned"])
    # Of the first benchmark a part is split off as dev: checkpoints are chosen by it, and the rest is reported.
    assert {b["name"].partition("-sample-")[0] for b in report["benchmarks"]} == {c.name for c in chosen}
    trained = [row for row in report["rows"] if row["per_doc"]]
    assert len(trained) == len(query_sets)
    for row in report["rows"]:
        assert len(row["scores"]) == len(chosen)
        assert all(0 <= score <= 100 for score in row["scores"].values())


def test_a_command_that_fails_is_a_fault_and_not_the_end(tmp_path: Path) -> None:
    typed = OneProcess(tmp_path / "workspace")
    missing = Collection("absent", tmp_path / "absent", "en", "test")
    assert list(Course(typed, missing, tmp_path / "exports").rows()) == []
    assert [fault.command for fault in typed.faults] == [f"cdp corpus add {missing.path}"]
    assert "exit code 2" in typed.faults[0].said
