"""A training or study on an experiment tracker: what it is told through accelerate, and who may send it where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cdp.base import permission
from cdp.base.config import TrainingConfig
from cdp.base.permission import NotAllowedError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import jobs, training
from cdp.studies import records
from cdp.workers.study import main as study_main
from tests.studies import conftest as studies
from tests.studies.conftest import study_job
from tests.support import work
from tests.support_models import tiny_static
from tests.training.conftest import write_benchmark, write_job

pytestmark = pytest.mark.slow

benchmarks, tiny = studies.benchmarks, studies.tiny
study_set = pytest.fixture(name="study_set")(studies.query_set.__wrapped__)  # type: ignore[attr-defined]

KEY = "wandb-key-0123456789abcdef"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What a tracker of accelerate's interface was told, in order; it is registered as ``trackio``."""
    from accelerate import tracking

    heard: list[tuple[Any, ...]] = []

    class Recorder(tracking.GeneralTracker):
        name: ClassVar[str] = "trackio"
        requires_logging_directory = False

        def __init__(self, project: str, **named: str) -> None:
            super().__init__()
            heard.append(("project", project, named))

        @property
        def tracker(self) -> None:
            return None

        def store_init_configuration(self, values: dict[str, Any]) -> None:
            heard.append(("settings", values))

        def log(self, values: dict[str, Any], step: int | None = None, **more: Any) -> None:
            heard.append(("log", step, values))

        def finish(self) -> None:
            heard.append(("finish",))

    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "trackio", Recorder)
    return heard


@pytest.fixture
def start(workspace: Workspace, query_set: str, tmp_path: Path) -> Callable[..., tuple[Path, int]]:
    def start(job_id: str = "tracked", **settings: Any) -> tuple[Path, int]:
        if not workspace.benchmark("dev").exists():
            write_benchmark(workspace, "dev", test=range(6))
        values = {"epochs": 4, "batch_size": 8, "learning_rate": 1e-3, "benchmark": "dev", "gpus": 0, **settings}
        job = write_job(workspace, job_id, query_set=query_set, retriever=str(tiny_static(tmp_path / job_id)), **values)
        return job, work("cdp.workers.training", job)

    return start


def test_a_tracker_hears_settings_losses_dev_scores_and_the_end_and_no_key(
    start: Callable[..., tuple[Path, int]], told: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    job, code = start(tracker="trackio")
    assert code == 0
    assert told[0] == ("project", "cdp-studio", {"name": "tracked"})
    (settings,) = [heard[1] for heard in told if heard[0] == "settings"]
    assert (settings["learning_rate"], settings["batch_size"], settings["tracker"]) == (1e-3, 8, "trackio")
    logs = [heard[1:] for heard in told if heard[0] == "log"]
    result = read_json(job / "results" / "training.json")
    losses = [values["loss"] for _, values in logs if "loss" in values]
    assert len(losses) == result["steps"]
    assert losses[-1] < losses[0]
    scores = [values["ndcg_at_10"] for _, values in logs if "ndcg_at_10" in values]
    assert scores == [evaluation["ndcg@10"] for evaluation in result["evaluations"]]
    assert logs[-1] == (result["steps"], {"final/best_ndcg_at_10": max(scores), "final/loss_last": result["loss_last"]})
    assert told[-1] == ("finish",)
    assert KEY not in str(told)
    assert not [path for path in job.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_a_study_is_one_run_whose_arms_are_groups_and_whose_steps_follow_on(
    workspace: Workspace, study_set: str, benchmarks: list[str], tiny: str, told: list[tuple[Any, ...]]
) -> None:
    study_main(Job(study_job(workspace, "s", study_set, benchmarks, retrievers=tiny, seeds="0", tracker="trackio")))
    assert [heard[0] for heard in told].count("project") == 1
    assert told[-1] == ("finish",)
    logs = [heard[1:] for heard in told if heard[0] == "log"]
    steps = [step for step, _ in logs]
    assert steps == sorted(steps)
    groups = {name.rpartition("/")[0] for _, values in logs for name in values}
    arms = {group for group in groups if not group.endswith("/final")}
    assert len(arms) == 2
    assert groups == arms | {f"{arm}/final" for arm in arms}
    finals = {name: value for _, values in logs for name, value in values.items() if "/final/" in name}
    assert len(finals) == 2
    assert all(0 <= score <= 100 for score in finals.values())


def test_tensorboard_writes_beside_the_job(start: Callable[..., tuple[Path, int]]) -> None:
    pytest.importorskip("tensorboardX")
    job, code = start(tracker="tensorboard")
    assert code == 0
    (events,) = list((job / "cdp-studio").glob("events*"))
    written = events.read_bytes()
    assert all(name in written for name in (b"loss", b"ndcg_at_10", b"final/best_ndcg_at_10"))


def test_one_that_is_not_installed_is_a_sentence_and_one_that_fails_ends_no_training(
    start: Callable[..., tuple[Path, int]], told: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    job, code = start(tracker="mlflow")
    failure = read_json(job / "failure.json")
    assert (code, failure["message"]) == (1, "The tracker mlflow is not installed.")
    assert failure["hint"] == "Install it: pip install mlflow"

    from accelerate import tracking

    def no_network(*_: Any, **__: Any) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(tracking.LOGGER_TYPE_TO_CLASS["trackio"], "start", no_network)
    job, code = start("without-a-key", tracker="trackio")
    failure = read_json(job / "failure.json")
    assert (code, failure["message"]) == (1, "The tracker trackio cannot be started: no route to host")
    monkeypatch.setattr(tracking.LOGGER_TYPE_TO_CLASS["trackio"], "start", lambda _: None)
    monkeypatch.setattr(tracking.LOGGER_TYPE_TO_CLASS["trackio"], "log", no_network)
    _, code = start("cut-off", tracker="trackio")
    assert code == 0
    assert capsys.readouterr().err.count("the tracker trackio failed and is left out: no route to host") == 1


def test_it_is_no_part_of_a_recipe(query_set: str) -> None:
    plain = TrainingConfig(query_set=query_set, learning_rate=0.1)
    keys = {records.condition_key("base", "pairs", c) for c in (plain, plain.replace(tracker="wandb"))}
    assert len(keys) == 1


def test_visitors_may_not_send_runs_and_a_strangers_job_needs_a_word(
    workspace: Workspace, query_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainingConfig(query_set=query_set, batch_size=8, tracker="wandb")
    job = write_job(workspace, "training-1", **config.to_dict())
    spec = read_json(job / "spec.json")
    write_json(job / "spec.json", {**spec, "module": "cdp.workers.training", "created": "2026-01-01"})
    assert jobs.to_allow(workspace, "training-1") == {"tracker": ["wandb"]}
    monkeypatch.setattr(permission, "mode", lambda: permission.Mode.SHARED)
    monkeypatch.setattr("cdp.services.access.mode", lambda: permission.Mode.SHARED)
    with pytest.raises(NotAllowedError, match="ask any other endpoint"):
        training.start(workspace, config)
