"""A test on a benchmark that a model judged has judged what its trainings find before it answers, within its price."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import judged
from cdp.cli import main
from cdp.corpus import CorpusManifest
from cdp.llm.prices import Price
from cdp.principle import Decision
from cdp.services import decide, jobs, judging, projects, studies, trial
from cdp.studies import records
from cdp.studies.config import TrialConfig
from tests.judging.conftest import ANIMALS, by_animal, settings
from tests.support import ONLY_STATIC_IS_FAST, write_prices
from tests.synthesis.server import MODEL, ChatServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_steps")]

# One document of one retriever: nearly all that trainings find is new.
SHALLOW = {"retrievers": "bm25", "depth": 1}


@pytest.fixture
def pooled(workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None) -> Path:
    """A benchmark with one judged document of each query, in the corpus's project."""
    write_prices(workspace, [Price(MODEL, 1.0, 1.0)], "2026-01-01")
    write_json(workspace.root / studies.SPEEDS, ONLY_STATIC_IS_FAST)
    judging.start(workspace, settings(corpus, log, **SHALLOW))
    projects.take_along(workspace, "corpus", corpus.id, "animals-judged")
    for method in ("diverse", "paraphrase"):  # of two sentences templates write the same twice, which a test refuses
        lines = [
            (f"{animal}-{n}", [f"{method} {at} of the {animal} {n}" for at in range(5)])
            for animal in ANIMALS
            for n in range(3)
        ]
        made = query_sets.import_queries(
            iter(lines), workspace, corpus.id, method, kind="synthetic", method=method, language="en"
        )
        query_sets.update(workspace, made.query_set.id, generator="template")
    assert sum(map(len, judged.read_pool(workspace.benchmark("animals-judged")).values())) == len(ANIMALS)
    return workspace.benchmark("animals-judged")


def asked(corpus: CorpusManifest, **more: object) -> TrialConfig:
    values = {"corpus": corpus.id, "generator": "template", "seeds": 1, "minutes": 60, **more}
    return TrialConfig.from_dict(values)


def answered(workspace: Workspace, corpus: CorpusManifest) -> Decision:
    found = decide.decide(workspace, corpus=corpus.id)
    assert found.measured
    return found


def test_what_the_trainings_find_is_judged_after_them_at_a_price_said_before(
    workspace: Workspace, corpus: CorpusManifest, pooled: Path, judge: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = trial.plan(workspace, asked(corpus))
    assert planned.notes[-1].startswith(f"{MODEL} then judges what the trainings newly find, at {judge.url}")
    assert planned.notes[-1].endswith("for at most $1.00.")
    seen: list[tuple[bool, str]] = []

    def watched(prompt: str, attempt: int) -> str:
        job = trial.running(workspace, corpus.id)
        seen.append((decide.decide(workspace, corpus=corpus.id).measured, "" if job is None else job.kind))
        return by_animal(prompt, attempt)

    judge.answer = watched
    words = ["study", "test", "--corpus", corpus.id, "--generator", "template", "--seeds", "1", "--minutes", "60"]
    assert main([*words, "--yes", "--wait"]) == 0
    said = capsys.readouterr()
    assert "then judges what the trainings newly find" in said.err + said.out
    (study,) = jobs.list_jobs(workspace, ["study"])
    later = next(view for view in jobs.list_jobs(workspace, ["judging"]) if view.config.get("runs"))
    assert (str(later.state), later.config["runs"], later.config["budget"]) == ("finished", study.id, 1.0)
    assert later.name == f"{pooled.name} by {MODEL}"
    runs = records.retrieved(study.folder, pooled)
    fused = [record["fused"] for record in records.list_records(study.folder) if record.get("fused")]
    shown = [records.firsts(e) for fusion in fused for e in fusion["evaluations"].values()]
    assert shown
    assert all(run in runs for run in shown), "the first ten of a fusion are not those of its two sides"
    assert judged.missing(judged.grades_of(pooled), *runs) == set()
    assert set(seen) == {(False, "judging")}, "while it judges the test is at work, and does not answer"
    answer = answered(workspace, corpus)
    assert answer.basis is not None
    assert answer.basis.unjudged == 0
    assert "withheld" not in answer.headline
    result = read_json(later.folder / "results" / "judging.json")
    assert 0 < result["cost"] <= 1.0


def test_a_budget_that_does_not_reach_leaves_bounds_on_every_face(
    workspace: Workspace, corpus: CorpusManifest, pooled: Path, judge: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = trial.start(workspace, asked(corpus, spend=0.0101))
    (job,) = begun.later
    later = jobs.show(workspace, job)
    assert str(later.state) == "failed"
    assert later.failure is not None
    assert "budget" in later.failure["message"]
    answer = answered(workspace, corpus)
    assert answer.headline.startswith("Withheld: ")
    assert "if all are irrelevant" in answer.headline
    assert not answer.settled
    assert not answer.choice.kind
    assert main(["decide", "--corpus", corpus.id]) == 0
    assert "Withheld: " in capsys.readouterr().out
    # With a larger budget the same job goes on, and what was paid is not paid again.
    paid = len(judge.bodies)
    config = judging.repeated(workspace, "animals-judged", [begun.job_id])
    judging.start(workspace, config)
    assert "Withheld" not in answered(workspace, corpus).headline
    missing = later.config["budget"]
    assert float(missing) <= 0.0101
    assert len(judge.bodies) > paid


def test_without_a_price_or_a_key_it_is_not_judged_unasked_and_the_plan_says_so(
    workspace: Workspace, corpus: CorpusManifest, pooled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_prices(workspace, [], "2026-01-01")
    assert "has no price here" in trial.plan(workspace, asked(corpus)).notes[-1]
    assert judging.closing(workspace, "animals-judged", 1.0, asked(corpus).endpoint).config is None
    write_prices(workspace, [Price(MODEL, 1.0, 1.0)], "2026-01-01")
    source = json.loads((pooled / "manifest.json").read_text())
    source["source"]["base_url"] = ""
    (pooled / "manifest.json").write_text(json.dumps(source))
    monkeypatch.delenv("CDP_BASE_URL")
    monkeypatch.delenv("CDP_API_KEY")
    assert "cannot be asked. OpenAI needs an API key" in trial.plan(workspace, asked(corpus)).notes[-1]
