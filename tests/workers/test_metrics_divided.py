"""The metrics job with a crew: results byte for byte those of one machine, whoever dies, and however it is stopped."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cdp.base.failures import FILE
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.metrics import windows
from cdp.workers import metrics
from tests.crews import Death, Mortal, Several
from tests.metrics.models import tiny_cross_encoder, write_job, write_query_set
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow

N = 30


@pytest.fixture
def settings(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A set of queries of many lengths, in small windows: several of them to a part, and several parts."""
    draw = random.Random(5)
    words = ["iron", "rust", "water", "hamlet", "author", "why", "how", "what", "?"]
    documents = {f"d{i}": [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(4)] for i in range(N)}
    write_query_set(workspace, "synthetic", documents)
    write_query_set(workspace, "human", {name: queries[:1] for name, queries in documents.items() if name != "d3"})
    monkeypatch.setattr(metrics, "_ITEMS_OF_A_PART", 12)
    monkeypatch.setattr(metrics, "_DOCUMENTS_AT_ONCE", 5)
    return {
        "query_set": "synthetic",
        "human": "human",
        "scorer": str(tiny_cross_encoder(tmp_path / "ce")),
        "encoder": str(tiny_retriever(tmp_path / "tiny")),
        "batch_size": 4,
    }


def results_of(folder: Path) -> tuple[dict[str, Any], bytes, list[bytes]]:
    result = read_json(folder / "results" / "metrics.json")
    result.pop("created")
    scores = sorted((folder / "checkpoints").glob("*.f32"))
    return result, (folder / "results" / "pair_scores.jsonl").read_bytes(), [path.read_bytes() for path in scores]


def test_results_are_those_of_one_machine(
    workspace: Workspace, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, several = write_job(workspace, "one", **settings), write_job(workspace, "several", **settings)
    metrics.measure(Job(one), None)
    do_window = windows.Failures.batch
    n = [0]

    def dies(*arguments: Any, **named: Any) -> Any:
        n[0] += 1
        if n[0] in (9, 30):
            raise Death
        return do_window(*arguments, **named)

    monkeypatch.setattr(windows.Listed, "batch", dies)
    crew = Mortal(2)
    metrics.measure(Job(several), crew)
    assert crew.n_deaths == 2
    assert crew.n_parts > 15
    assert results_of(several) == results_of(one)
    assert not list((several / "checkpoints").glob("*.part"))


def test_a_stop_keeps_the_parts_that_are_done(
    workspace: Workspace, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, several = write_job(workspace, "one", **settings), write_job(workspace, "several", **settings)
    metrics.measure(Job(one), None)
    scored: list[str] = []
    score = windows.do_part

    def stops(part: windows.Part) -> windows.PartRows:
        if part.model.kind == "pairs":
            scored.append(part.names[0])
            if len(scored) == 5:
                (several / "stop.request").touch()
        return score(part)

    stops.__qualname__ = "do_part"  # a task is a function of a module
    monkeypatch.setattr(windows, "do_part", stops)
    metrics.measure(Job(several), Several(2))
    assert not (several / "results").exists()
    (several / "stop.request").unlink()
    metrics.measure(Job(several), Several(2))
    assert results_of(several) == results_of(one)
    again = [name for name in set(scored) if scored.count(name) > 1]
    assert len(again) <= 2, "what was under way, and no more"


def test_a_pair_that_fails_is_listed_and_costs_no_other(
    workspace: Workspace, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, several = write_job(workspace, "one", **settings), write_job(workspace, "several", **settings)
    load = windows.load_scorer

    def load_one_that_fails(*arguments: Any, **named: Any) -> Any:
        scorer = load(*arguments, **named)

        def score(pairs: Any) -> Any:
            if any(len(a) + len(b) == 40 for a, b in pairs):
                raise ZeroDivisionError("40 characters")
            return scorer.score(pairs)

        return windows.replace(scorer, score=score)

    monkeypatch.setattr(windows, "load_scorer", load_one_that_fails)
    monkeypatch.setattr(windows, "kept", lambda what, key, make: make())
    metrics.measure(Job(one), None)
    metrics.measure(Job(several), Several(2))
    assert results_of(several) == results_of(one)
    listed = [sorted(line["id"] for line in read_jsonl(folder / FILE)) for folder in (one, several)]
    assert listed[0] == listed[1] != []
    assert read_json(several / "results" / "metrics.json")["failures"] == len(listed[0])
