"""The claims' criteria are data that plans can meet, and a run keeps them as they were when it began."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace, read_json
from reproduction import criteria, stages

BASE = {
    "id": "X",
    "sentence": "Five are better than one.",
    "studies": ["recorded-contrast"],
    "of": {"method": "diverse", "per_doc": 5},
    "against": {"per_doc": 1},
    "direction": "gain",
    "margin": 0.5,
}


def read(tmp_path: Path, **changes: object) -> criteria.Claim:
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([{**BASE, **changes}]))
    return criteria.read(file)[0]


@pytest.mark.slow
def test_every_shipped_criterion_can_be_met_by_its_plans() -> None:
    claims = criteria.read()
    assert criteria.check(claims) == []
    assert [claim.id for claim in claims][:4] == ["A", "B", "C", "D"]
    assert {claim.question for claim in claims if claim.then} <= set(criteria.QUESTIONS)
    for claim in claims:
        assert claim.settles
        assert claim.untestable or all(c.margin > 0 for c in claim.criteria)


def test_a_change_is_of_what_it_names_alone(tmp_path: Path) -> None:
    claim = read(
        tmp_path,
        also=[{"name": "at equal pairs", "of": {"held": "equal pairs"}}],
        controls=[{"name": "untrained", "against": {"method": "untrained"}, "domain": "in"}],
    )
    (first, second), (control,) = claim.criteria, claim.controls
    assert second.of == {**first.of, "held": "equal pairs"}
    assert second.against == first.against
    assert (control.domain, first.domain) == ("in", "out")
    assert claim.studies == ("recorded-contrast",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"margn": 1}, "Claim X: .*margn"),
        ({"direction": "up"}, "Claim X: .*direction"),
        ({"also": [{"cw": [1]}]}, "Claim X: criteria.1.cw"),
        ({"then": {"perhaps": "so"}}, "Claim X: then.perhaps"),
    ],
)
def test_a_wrong_criterion_is_told_by_claim_and_field(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, **changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"studies": ["no-plan"]}, "There is no plan"),
        ({"of": {"method": "diverse", "per_doc": 7}}, "per_doc 7 is in none of recorded-contrast"),
        ({"against": {"colour": "red"}}, "an arm has no 'colour'"),
        ({"of": {"method": "human"}}, "method 'human' is in none"),
        ({"studies": ["upper-layers"]}, "upper-layers compares numbers of trained layers"),
    ],
)
def test_what_no_plan_has_is_found_before_any_run(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    assert any(says in problem for problem in criteria.check([read(tmp_path, **changes)]))


def test_a_digest_is_of_the_criterion_and_of_no_prose(tmp_path: Path) -> None:
    before = read(tmp_path).digest
    assert read(tmp_path, sentence="Other words.", settles="More.", controls=[{"domain": "in"}]).digest == before
    assert read(tmp_path, domain="out").digest == before
    assert read(tmp_path, margin=0.6).digest != before


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git says which id a file has")
def test_a_run_keeps_its_plan_and_criteria_when_it_begins(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Begun:
        job_id = "study-1"

    monkeypatch.setattr(stages.studies, "run", lambda workspace, config: Begun())
    monkeypatch.setattr(stages.jobs, "view", lambda workspace, job_id, **_: job_id)
    workspace.job("study-1").mkdir(parents=True)
    stages.started(workspace, stages.Stage("recorded-contrast", 1))
    kept = read_json(workspace.job("study-1") / stages.FROZEN)
    plan = criteria.PLANS / "recorded-contrast.yaml"
    for name, file in (("plan", plan), ("claims", criteria.FILE)):
        git = subprocess.run(["git", "hash-object", "--no-filters", file], capture_output=True, text=True)
        assert kept[name] == git.stdout.strip()
    assert kept["criteria"]["F"] == next(c.digest for c in criteria.read() if c.id == "F")
    assert "E" not in kept["criteria"]
