"""Kills at random moments: six here, a thousand over all kinds of jobs in ``make soak`` (``CDP_SOAK_KILLS``)."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from tests.benchmarks import published
from tests.benchmarks.hub_server import Hub, Server
from tests.catalog.support import add_evaluation
from tests.faults.chaos.kinds import Ground, small_ground
from tests.faults.chaos.storm import Report, Storm, rebuild_under_fire
from tests.metrics.models import tiny_cross_encoder
from tests.support_models import tiny_retriever, tiny_static

KINDS = ("count", "synthesis", "metrics", "training", "evaluation", "study", "tuning", "download")


@pytest.mark.slow
def test_half_a_dozen_kills(workspace: Workspace) -> None:
    report = Report()
    rng = random.Random(1)
    Storm(Ground(workspace, "", "", ""), "count", rng, report).deal(6)
    for number in range(3):
        add_evaluation(workspace, f"evaluate-{number}", "a")
    rebuild_under_fire(workspace, 1, rng, report)
    print(json.dumps(report.to_dict(), indent=2))
    assert report.violations == []
    assert sum(report.kills.values()) >= 6, "a rebuild may be over before it is killed"


@pytest.mark.soak
def test_a_thousand_kills(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = int(os.environ.get("CDP_SOAK_KILLS", "1000"))
    chosen = os.environ.get("CDP_SOAK_KINDS", "").split() or KINDS
    rng = random.Random(int(os.environ.get("CDP_SOAK_SEED", "0")))
    models = {
        "static": str(tiny_static(tmp_path / "static")),
        "bert": str(tiny_retriever(tmp_path / "bert")),
        "cross-encoder": str(tiny_cross_encoder(tmp_path / "cross-encoder")),
    }
    ground = small_ground(workspace, tmp_path / "source", n_documents=300, models=models)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    report = Report()
    hub = Hub()
    with Server(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.commit("zeta-alpha-ai/NanoSciFact", published.nano())
        began = time.monotonic()
        for kind in chosen:
            # Kinds that need no torch take a tenth of the time: they get most of the kills.
            share = 0.3 if kind in ("count", "synthesis") else 0.06
            Storm(ground, kind, rng, report).deal(max(1, round(share * kills)))
            print(kind, round(time.monotonic() - began), "s", json.dumps(report.to_dict()), flush=True)
        rebuild_under_fire(workspace, max(1, kills // 25), rng, report)
    summary = {**report.to_dict(), "seconds": round(time.monotonic() - began)}
    folder = Path(os.environ.get("CDP_SOAK_REPORT", str(tmp_path)))
    (folder / "chaos.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    assert report.violations == []
