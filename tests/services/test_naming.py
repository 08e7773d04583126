"""What a retriever can be called: one answer for every command and page."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.config import EvaluationConfig, ServingConfig, TrainingConfig
from cdp.base.errors import CdpError, ConfigError, NotFoundError
from cdp.base.workspace import Workspace, write_json
from cdp.results import models as trained_models
from cdp.results import naming
from cdp.services import access, evaluation

WITHOUT_WEIGHTS = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Normalize"}]


def trained(workspace: Workspace, job: str, name: str, *, model: bool = True) -> None:
    """A finished training, with a model unless it failed before."""
    folder = workspace.job(job)
    spec = {"id": job, "kind": "training", "name": name, "created": "2026-01-02T03:04:05", "module": "none"}
    write_json(folder / "spec.json", {**spec, "config": {"retriever": "static-minilm", "query_set": "q"}})
    write_json(folder / "status.json", {"phase": "ended", "outcome": "finished" if model else "failed", "attempt": 1})
    if model:
        write_json(folder / "model" / "modules.json", WITHOUT_WEIGHTS)


@pytest.fixture
def sea(workspace: Workspace) -> Workspace:
    trained(workspace, "training-1-sea", "Sea of Q/Doc 1, two")
    trained(workspace, "training-2-lake", "lake")
    return workspace


@pytest.mark.parametrize(
    ("called", "means"),
    [
        ("training-1-sea", "training-1-sea"),
        (" Sea of Q/Doc 1, two ", "training-1-sea"),
        ("sea of q/doc 1, TWO", "training-1-sea"),
        ("training-2", "training-2-lake"),
        ("static-minilm", "static-minilm"),
        ("bm25:fr", "bm25:fr"),
        ("owner/model", "owner/model"),
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("./lake", "./lake"),
        ("a\0b", "a\0b"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_a_training_is_meant_by_id_name_or_beginning_and_all_else_is_as_it_is(
    sea: Workspace, called: str, means: str
) -> None:
    assert naming.retriever(sea, called) == means


def test_every_door_takes_a_name(sea: Workspace) -> None:
    """Settings of any service, names alone, and what takes trained models only."""
    for config in (
        EvaluationConfig.from_dict({"retriever": "lake", "benchmark": "b"}),
        ServingConfig.from_dict({"retriever": "lake"}),
        TrainingConfig.from_dict({"retriever": "lake", "query_set": "q"}),
    ):
        assert access.checked(sea, config).retriever == "training-2-lake"  # type: ignore[attr-defined]
    assert access.model(sea, "lake") == "training-2-lake"
    assert naming.training(sea, "lake") == "training-2-lake"


def test_a_name_given_on_compare_counts_and_so_does_the_first_one(sea: Workspace) -> None:
    evaluation.rename(sea, ["training-1-sea"], "the one for the paper")
    for called in ("the one for the paper", "Sea of Q/Doc 1, two"):
        assert naming.retriever(sea, called) == "training-1-sea"


def test_several_of_one_name_are_listed(sea: Workspace) -> None:
    trained(sea, "training-3-lake", "lake")
    for door in (naming.retriever, naming.training, access.model, trained_models.show):
        with pytest.raises(ConfigError, match="2 trainings are called 'lake'") as refused:
            door(sea, "lake")
        assert "training-2-lake (finished, 2026-01-02 03:04)" in refused.value.hint
        assert "training-3-lake" in refused.value.hint
    with pytest.raises(ConfigError, match="begins with 'training-'"):
        naming.retriever(sea, "training-")


def test_of_one_name_the_training_with_a_model_is_meant(sea: Workspace) -> None:
    trained(sea, "training-3-lake", "lake", model=False)
    assert naming.retriever(sea, "lake") == "training-2-lake"


def test_a_folder_called_as_a_training_is_asked_about(
    sea: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="a folder here") as refused:
        naming.retriever(sea, "lake")
    assert "training-2-lake" in refused.value.hint
    assert naming.retriever(sea, "./lake") == "./lake"


def test_what_is_no_training_is_told_with_the_nearest(sea: Workspace) -> None:
    with pytest.raises(NotFoundError, match="Did you mean lake"):
        trained_models.show(sea, "lakes")


@pytest.mark.parametrize("name", ["static-minilm", "bm25", "bm25:fr"])
def test_no_training_takes_the_name_of_a_retriever(workspace: Workspace, name: str) -> None:
    from cdp.services import training

    config = TrainingConfig.from_dict({"query_set": "q", "name": name})
    with pytest.raises(CdpError, match="name of a retriever already"):
        training.plan(workspace, config)


def test_an_evaluation_keeps_the_id(sea: Workspace) -> None:
    """A name may be given anew; what is written is the id."""
    asked = EvaluationConfig(retriever="lake", benchmark="demo")
    assert access.checked(sea, asked).retriever == "training-2-lake"
