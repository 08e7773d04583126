"""``plan``: the table, the arithmetic, JSON, and what is refused."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from cdp.services.planning import machine
from tests.cli.support import answer, refusal, run


def test_a_table_of_stages_totals_and_the_arithmetic(workspace: Workspace) -> None:
    words = ("--documents", "8.8M", "--generator", "openai:gpt-4o-mini", "--retriever", "contriever", "--gpus", "8")
    shown = run("plan", *words, "--rates", "encoding=900..1100", "--memory-gb", "16.5").stdout
    assert "8.8 million documents" in shown
    assert "18.6 min (16.9 min to 20.6 min)" in shown
    assert "8.8 million texts ÷ 1,000 (900 to 1,100) per second ÷ 8 GPUs" in shown
    assert "! Divided by 8 GPUs without loss: a model" in shown
    assert "More than 16.5 GB of memory: Training contriever" in shown
    all_of_it = next(line for line in shown.splitlines() if line.startswith("All "))
    assert "at least" in all_of_it  # so each stage's arithmetic calls it
    for stage in ("Reading documents", "Writing queries", "Q-D measures", "Training contriever", "BM25 index"):
        assert shown.count(stage) >= 2  # in the table, and above its arithmetic


def test_the_same_in_json(workspace: Workspace) -> None:
    plan = answer("plan", "--documents", "1B", "--machines", "64", "--dollars-per-hour", "2.5")
    assert (plan["work"]["documents"], plan["hardware"]["machines"]) == (10**9, 64)
    stages = {stage["name"]: stage for stage in plan["stages"]}
    assert list(stages) == ["reading", "synthesis", "measures", "encoding", "training", "search", "bm25"]
    assert stages["encoding"]["basis"] == "published"
    assert stages["reading"]["basis"] == "unknown"
    assert stages["reading"]["span"] is None
    assert plan["total"]["unknown"] == ["Reading documents", "Q-D measures", "BM25 index"]
    assert plan["total"]["dollars"] > 0
    assert plan["total"]["priced"] is False


def test_what_cannot_be_planned_is_one_line(workspace: Workspace) -> None:
    assert "8.8X" in refusal("plan", "--documents", "8.8X")
    assert "Did you mean contriever?" in refusal("plan", "--retriever", "contriver")
    assert "is no rate" in refusal("plan", "--rates", "encoding=fast")
    assert "machine with measured rates" in refusal("plan", "--measured-on", "node-9")


@pytest.mark.slow
def test_measuring_covers_every_stage_and_is_kept(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdp.services import planning
    from cdp.workers import rates

    small = {"REPEATS": 1, "READ": 100, "WRITTEN": 10, "INDEXED": 40, "TRAINED": 40, "DISTINCT": 10,
             "STATIC_TEXTS": 20, "STATIC_STEPS": 2, "ROWS": 200, "QUERIES": 4}  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(rates, name, value)
    observed: rates.Observed = rates.defaultdict(list)
    rates.measure_all(workspace.root.parent, "", observed)
    kept = machine.keep(workspace, observed)
    assert (kept.name, planning.list_machines(workspace)) == (machine.this_machine(), [machine.this_machine()])
    plan = answer("plan")
    assert plan["total"]["unknown"] == []
    assert {stage["basis"] for stage in plan["stages"]} == {"measured here"}
