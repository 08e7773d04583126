"""Retrievers beside those that are trained: chosen on dev, fused with BM25, their trained layers compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdp.base.condition import HYBRID, Condition
from cdp.base.errors import ConfigError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import studies
from cdp.studies import planning, records
from cdp.studies.config import StudyConfig
from cdp.studies.estimate import Remaining
from cdp.studies.gains import read_scores
from cdp.studies.run import kind_of
from tests.studies.conftest import study_job
from tests.support_models import tiny_retriever


def run(
    workspace: Workspace,
    query_set: str,
    job: str = "study-1",
    promised: dict[str, float] | None = None,
    **settings: Any,
) -> Path:
    from cdp.workers.study import main

    plan = {"dev": "middle:test", "bm25": True, "fusion": True, "seeds": "0", **settings}
    folder = study_job(workspace, job, query_set, ["short:test"], **plan)
    if promised:
        spec = read_json(folder / "spec.json")
        spec["inputs"]["promised"] = {"work": promised}
        write_json(folder / "spec.json", spec)
    main(Job(folder))
    return folder


def by_cell(folder: Path) -> dict[Condition, list[Any]]:
    place = read_json(folder / "results" / "about.json")["benchmarks"][0]["place"]
    _, behind = read_scores(records.list_records(folder), {place: "short"})
    return {condition: list(of) for condition, of in behind.items()}


@pytest.mark.parametrize(
    "named", [{"untrained": "minilm-sparse"}, {"retrievers": "minilm, minilm-sparse", "choose": True}]
)
def test_no_untrained_score_is_asked_of_what_finds_nothing_untrained(
    workspace: Workspace, named: dict[str, Any]
) -> None:
    config = StudyConfig.from_dict({"benchmarks": "demo", "query_sets": "any", "per_doc": "1", **named})
    with pytest.raises(ConfigError, match="minilm-sparse finds nothing before it is trained"):
        planning.plan(workspace, config, {})


@pytest.mark.slow
@pytest.mark.usefixtures("benchmarks")
def test_the_best_untrained_on_dev_is_trained_and_all_stand_beside_it(
    workspace: Workspace, query_set: str, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(tiny_retriever(tmp_path / "other"))
    told: list[tuple[int, float]] = []
    progress = Job.progress

    counted: list[tuple[str, int, int, str]] = []

    def heard(job: Job, phase: str, done: int, *words: Any, **more: Any) -> None:
        counted.append((phase, done, *words[:2]))
        if more.get("left_s") is not None:
            told.append((done, more["left_s"]))
        progress(job, phase, done, *words, **more)

    monkeypatch.setattr(Job, "progress", heard)
    promised = {f"untrained {tiny}": 20.0, f"untrained {other}": 30.0, tiny: 30.0, other: 40.0}
    folder = run(workspace, query_set, retrievers=f"{tiny}, {other}", choose=True, promised=promised)
    # Over both phases: what is not trained, then the trainings of the chosen one.
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert [left for _, left in told] == sorted((left for _, left in told), reverse=True)
    assert told[-1][1] == 0.0 < 40.0 < told[0][1] <= 90.0
    # One count: the trainings of the plan, of which no baseline is one.
    trainings = 2 * 1  # what the chosen retriever is trained for
    assert {total for *_, total, unit in counted if unit == "trainings"} == {trainings}
    assert not any(unit == "conditions" for *_, unit in counted)
    assert {done for phase, done, *_ in counted if phase == "baselines"} == {0}
    assert counted[-1][:2] == ("trainings", trainings)
    about, chosen = (read_json(folder / "results" / f"{name}.json") for name in ("about", "chosen"))
    found = by_cell(folder)

    def on_dev(name: str) -> float:
        (record,) = found[Condition(name)]
        (dev,) = [e for e in record["evaluations"].values() if e["benchmark"] == "middle"]
        return float(dev["measures"]["ndcg@10"])

    best = max((tiny, other), key=on_dev)
    assert chosen["retriever"] == about["config"]["retrievers"] == best
    assert {condition.retriever for condition in found if condition.per_doc} == {best}
    names = (tiny, other)
    fusions = {Condition(name, HYBRID, fused=fused) for name in names for fused in (False, True)}
    assert {condition for condition in found if not condition.per_doc} >= {
        Condition("bm25"),
        *map(Condition, names),
        *fusions,
    }

    (fused,) = [condition for condition in found if condition.fused and condition.per_doc]
    on_dev_of = {
        condition: max(e["ndcg@10"] for e in of[0]["training"]["evaluations"])
        for condition, of in found.items()
        if condition.per_doc and not condition.fused
    }
    assert on_dev_of[fused._replace(fused=False)] == max(on_dev_of.values())
    report = studies.report(workspace, "study-1")
    assert [row.name for row in report.rows if row.condition.fused and row.condition.per_doc] == [
        f"{best} · human × {fused.per_doc} · learning rate 5e-2 · with BM25"
    ]

    again = run(workspace, query_set, "study-2", retrievers=f"{tiny}, {other}", choose=True)
    assert read_json(again / "results" / "study.json")["reused"] == 2
    assert read_json(again / "results" / "study.json")["trained"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("benchmarks")
def test_trained_layers_are_an_axis_and_a_static_retriever_has_none(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    model = str(tiny_retriever(tmp_path / "other"))
    folder = run(workspace, query_set, retrievers=model, layers="1, 0", per_doc="1", fusion=False)
    layers = {
        record["condition"]["layers"]: record["settings"].get("trained_layers")
        for record in records.list_records(folder)
        if record["condition"]
    }
    assert layers == {1: 1, 0: None}
    names = [row.name for row in studies.report(workspace, "study-1").rows]
    same = f"{model} · human × 1 · learning rate 5e-2"
    assert names[-2:] == [f"{same} · 1 layer", f"{same} · all layers"]
    mixed = run(workspace, query_set, "study-2", retrievers="static-minilm", trained_layers=1, per_doc="1")
    assert read_json(mixed / "results" / "study.json")["trained"] == 1


def test_the_remaining_time_counts_no_free_baseline_and_never_grows() -> None:
    """Four baselines of a second each made 18 trainings of a minute look like seconds."""
    kinds = ["untrained"] * 4 + ["minilm"] * 18
    left = Remaining(kinds, {"untrained": 8.0, "minilm": 18 * 50.0})
    told = [left.seconds()]
    for kind, took in [("untrained", 1.0)] * 4 + [("minilm", 60.0), ("minilm", 58.0), ("minilm", 61.0)]:
        told.append(left.seconds(kind, took / 2))
        left.done(kind, took)
        told.append(left.seconds())
    assert None not in told
    assert told == sorted(told, reverse=True)
    assert told[8] == pytest.approx(18 * 50.0)
    # Trainings that an earlier study left say nothing of the others.
    for _ in range(14):
        left.done("minilm", None)
    assert left.seconds() == pytest.approx(60.0)
    assert Remaining(["minilm"], {}).seconds() is None


def test_the_remaining_time_of_a_recorded_test_comes_true() -> None:
    """The log of a real test to its answer, whose trainings took 206 to 413 seconds beside other work."""
    log = read_json(Path(__file__).parent / "recorded" / "test-of-minilm.json")
    kinds = [kind for kind, _ in log["done"]]
    left = Remaining(kinds, log["promised"])
    promised = left.seconds()
    assert promised is not None
    assert 0.7 <= promised / log["took"] <= 1.3

    told, before = [promised], 0.0
    for number, (kind, at) in enumerate(log["done"]):
        halfway = left.seconds(kind, (at - before) / 2)
        left.done(kind, at - before)
        after = left.seconds()
        assert halfway is not None
        assert after is not None
        told += [halfway, after]
        before = at
        # Within a quarter of the whole, from the first training on: the first two took twice as long as the third.
        if kind != "untrained" and number < len(kinds) - 1:
            assert abs(after - (log["took"] - at)) < log["took"] / 4, f"after {number + 1} steps"
    assert told == sorted(told, reverse=True)
    assert told[-1] == 0.0


RECORDED = Path(__file__).parent / "recorded"


def test_the_remaining_time_is_right_from_the_first_tenth_on() -> None:
    """What a worker told while it ran static-minilm's test, beside other work; it was off by three to nine times until
    the first training had ended."""
    log = read_json(RECORDED / "test-of-static-minilm.json")
    told, left = [], Remaining([], {})
    for at, what, *said in log["events"]:
        if what == "plan":
            left = Remaining(*said)
        elif what == "done":
            left.done(*said)
        elif (seconds := left.seconds(*said)) is not None and at >= log["took"] / 10:
            told.append((at, seconds))
    assert len(told) > 30
    for at, seconds in told:
        assert abs(at + seconds - log["took"]) <= 0.3 * log["took"], f"{seconds:.0f} s told after {at:.0f} s"


@pytest.mark.parametrize("off", [0.2, 1.0, 9.0], ids=["too little was promised", "it was right", "too much"])
def test_a_promise_that_was_wrong_is_corrected_within_the_first_training(off: float) -> None:
    """Eighteen trainings of a minute, each with five seconds of loading before its hundred steps."""
    left = Remaining(["untrained minilm"] + ["minilm"] * 18, {"untrained minilm": 10.0, "minilm": off * 18 * 65})
    left.done("untrained minilm", 10.0)
    for step in range(1, 101):
        told = left.seconds("minilm", 5 + 0.6 * step, step / 100)
        assert told is not None
        # The first tenth of the whole is the second training's; a quarter of the first one tells its pace.
        if step >= 30:
            assert told == pytest.approx(18 * 60 - 0.6 * step, rel=0.3)


def test_what_costs_nothing_is_no_kind_of_work() -> None:
    assert [kind_of(step) for step in (Condition("bm25"), Condition("minilm"), Condition("minilm", HYBRID))] == [
        "", "untrained minilm", ""
    ]  # fmt: skip
