"""How fast a retriever is here, by a few steps before a test promises its time."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cdp.base.workspace import Workspace, read_json
from cdp.jobs import launchers
from cdp.query_sets import load
from cdp.services import studies
from cdp.studies import speed
from cdp.training.engine import TransformerEngine
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow


@pytest.fixture
def corpus(workspace: Workspace, query_set: str) -> str:
    return load(workspace, query_set).corpus_id


def test_upper_layers_are_measured_beside_the_whole_retriever(
    workspace: Workspace, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    backward = TransformerEngine.backward

    def watched(engine: TransformerEngine, rows: Any) -> Any:
        modes.append((engine.model.training, sum(p.requires_grad for p in engine.model.parameters())))
        return backward(engine, rows)

    monkeypatch.setattr(TransformerEngine, "backward", watched)
    monkeypatch.setattr(speed, "REPEAT_S", 0.0)
    name = str(tiny_retriever(tmp_path / "other", layers=4))
    found = speed.measure(workspace, corpus, f"{name}/2")
    upper, whole = found[f"{name}/2"], found[name]
    assert upper.pairs_per_second > whole.pairs_per_second > 0
    assert min(upper.texts_per_second, whole.texts_per_second) > 0
    # One step that loads what is used, and three that are timed; as a training: dropout on, upper layers.
    assert len(modes) == 1 + speed.REPEATS
    assert {training for training, _ in modes} == {True}
    assert {trained for _, trained in modes} == {2 * 16}


def test_of_several_calls_the_median_counts_and_the_first_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine one call was off by twenty, and minilm was not chosen in two hours allowed."""
    clock = iter([0.0, 0.5, 1.0, 1.3, 2.0, 4.0])
    calls = []
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(clock))
    assert speed._typical(lambda: calls.append(1)) == pytest.approx(0.5)
    assert len(calls) == 4, "one that is not timed, and as many as fill two seconds"


def test_what_was_measured_is_kept_and_not_measured_again(
    workspace: Workspace, corpus: str, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies.measure(workspace, [tiny], corpus)
    pairs, texts = read_json(workspace.root / studies.SPEEDS)[tiny]
    assert studies.speeds(workspace)[tiny] == speed.Speed(pairs, texts)
    assert min(pairs, texts) > 0

    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(subprocess, "run", started)
    studies.measure(workspace, [tiny], corpus)


def test_what_cannot_be_measured_leaves_a_guess(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    studies.measure(workspace, [f"{tmp_path / 'no-model'}/2"], corpus)
    assert not (workspace.root / studies.SPEEDS).exists()
    (workspace.root / studies.SPEEDS).write_text(json.dumps({}))
    assert studies.speeds(workspace) == {}


def test_a_speed_is_measured_as_a_worker_computes(
    workspace: Workspace, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a worker's environment, static-minilm was a ninth as fast beside other work and its test promised so."""
    told = []

    def started(*_: Any, env: dict[str, str], **__: Any) -> Any:
        told.append(env)
        return subprocess.CompletedProcess([], 1)

    monkeypatch.setattr(subprocess, "run", started)
    studies.measure(workspace, ["static-minilm"], corpus)
    (env,) = told
    assert launchers.computing({}).items() <= env.items()
