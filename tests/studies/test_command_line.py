"""Studies from the command line on the demo: planned, run as a real job with its generation, reported, cut off."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.llm.prices import dollars
from cdp.services import studies
from cdp.studies.config import read_plan, ready_made
from cdp.studies.text import plan_text
from cdp.synthesis import pricing
from tests.support_models import tiny_static

pytestmark = pytest.mark.slow

ON_DEMO = [plan.name for plan in ready_made() if "corpus: demo" in plan.file.read_text(encoding="utf-8")]


@pytest.fixture
def loaded(demo_root: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The demo's workspace, to be read."""
    monkeypatch.setenv("CDP_WORKSPACE", str(demo_root))
    return Workspace(demo_root)


@pytest.fixture
def filled(demo_root: Path, workspace: Workspace) -> Workspace:
    """A copy of the demo's workspace, to be written to."""
    shutil.copytree(demo_root, workspace.root)
    return workspace


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", ON_DEMO)
def test_every_plan_on_the_demo_can_start_without_writing_queries(name: str, loaded: Workspace) -> None:
    found = studies.plan(loaded, read_plan(name))
    assert found.generations == ()
    assert len(found.conditions) == len(set(map(str, found.conditions)))
    assert {c.condition.source for c in found.conditions} <= {"diverse", "paraphrase"}
    if name == "document-quantity":
        assert set(found.pairs.values()) == {96}
    else:
        assert max(found.pairs.values()) > min(found.pairs.values())


def test_the_plan_as_text_says_cost_and_time(loaded: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "plan", "single-query", "--set", "generator=template"]) == 0
    text = capsys.readouterr().out
    assert "12 trainings" in text
    assert "To be written first: diverse queries by template (no LLM, no cost)" in text
    assert "Time: about" in text


def test_an_llm_is_counted_in_requests_and_tokens(loaded: Workspace) -> None:
    config = read_plan("single-query", {"generator": "openai"})
    found = studies.plan(loaded, config)
    assert [(g.method, g.requests) for g in found.generations] == [("diverse", 96), ("paraphrase", 96)]
    alone = pricing.estimate(loaded, SynthesisConfig(corpus=config.corpus[0], method="diverse", generator="openai"))
    assert alone.cost is not None
    assert (found.generations[0].input_tokens, found.generations[0].cost) == (alone.input_tokens, alone.cost)
    assert dollars(alone.cost) in plan_text(found)
    unpriced = studies.plan(loaded, read_plan("single-query", {"generator": "openai", "model": "mine"}))
    assert [g.cost for g in unpriced.generations] == [None, None]
    assert "the model has no price" in plan_text(unpriced)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["benchmarks=nowhere"], "nowhere"),
        (["benchmarks=demo:no-split"], "no-split"),
        (["benchmarks=demo:test, demo"], "named twice"),
        (["methods=unheard"], "unheard"),
        (["weightings=heavy"], "heavy"),
        (["corpus=gone"], "gone"),
        (["methods=", "query_sets=gone"], "gone"),
        (["retrievers=no such model!"], "no such model!"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_before_it_starts(
    changes: list[str], says: str, loaded: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for change in changes for word in ("--set", change)]
    assert main(["study", "run", "single-query", *words]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert "Traceback" not in told
    assert list(loaded.jobs.glob("study-*")) == []


def test_a_study_is_listed_and_has_nothing_to_report_before_it_began(
    filled: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.pages.support import ended_job

    config = read_plan("single-query").to_dict()
    ended_job(filled, "study-1", "study", config, outcome="failed", failure={"message": "No memory.", "kind": "bug"})
    assert [job["id"] for job in answer(capsys, "study", "list")["studies"]] == ["study-1"]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"nothing to report yet: No memory\."):
        studies.report(filled, "study-1")
    assert main(["study", "report", "study-1"]) == 2


@pytest.mark.usefixtures("jobs_here")
def test_run_with_missing_queries_and_report_in_every_form(
    filled: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = (
        "generator=template", "per_doc=1, 3", "seeds=0", "steps=4", "benchmarks=demo:test", "gpus=0",
        f"retrievers={tiny_static(tmp_path / 'tiny')}",
    )  # fmt: skip
    words = [word for setting in settings for word in ("--set", setting)]
    done = answer(capsys, "study", "run", "single-query", *words, "--wait")
    assert done["state"] == "finished"
    assert (done["trained"], done["failed"]) == (4, 0)
    study = str(done["id"])

    found = answer(capsys, "study", "report", study)
    assert (found["planned"], found["finished"]) == (4, 4)
    assert {g["comparison"] for g in found["gains"]} == {  # type: ignore[attr-defined]
        "trained_minus_untrained", "qdoc_minus_one", "diverse_minus_paraphrase",
    }  # fmt: skip

    assert main(["study", "report", study]) == 0
    text = capsys.readouterr().out
    assert "What this study cannot tell" in text
    assert "With one seed" in text
