"""The demo comes with its finished test: read as every study, marked as recorded everywhere, and true."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import InputError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.results import board, differences, paper, regraded
from cdp.services import decide, demo, jobs, studies, trial
from cdp.studies import records
from cdp.studies.config import StudyConfig
from cdp.workers.study import main as run_study
from reproduction.demo import record


@pytest.fixture
def loaded(workspace: Workspace) -> Workspace:
    assert f"recorded test {demo.TEST}" in demo.load(workspace)
    return workspace


def test_what_was_recorded_stands_in_every_table_and_says_so(loaded: Workspace) -> None:
    assert demo.load(loaded) == []
    evaluations = board.list_evaluations(loaded)
    rows = board.list_rows(loaded, evaluations)
    assert {"BM25", "static-minilm · diverse × 5", "static-minilm · paraphrase × 5"} <= {row.retriever for row in rows}
    assert all("recorded" in {badge.word for badge in row.badges} for row in rows)

    table = paper.paper_table(differences.compare(loaded, "static-minilm", evaluations=evaluations))
    assert set(table.columns) == {"demo (paper)", "demo dev (paper)"}, "no mean over test and dev"
    assert "demo dev (paper): chose checkpoints, so it is in no mean." in table.notes
    assert any(note.startswith("(paper): evaluated as in the paper") for note in table.notes)

    known = decide.decide(loaded, corpus=demo.corpus(loaded))
    assert known.measured
    assert known.badge.endswith("recorded")
    assert known.limits[0].startswith("Recorded on another machine")
    (view,) = jobs.list_jobs(loaded)
    assert (str(view.state), view.name) == ("finished", "Test on demo (recorded)")
    assert "came with the demo" in jobs.sentence(view)
    assert studies.report(loaded, view.id).finished == 18
    assert read_json(view.folder / "results" / "kept.json")["settings"]["retriever"] == "static-minilm"
    assert demo.RESULTS.stat().st_size < 150_000
    assert jobs.outcome(loaded, view.id)["report"].endswith(f"study report {demo.TEST}")


def test_every_option_of_the_answer_stands_on_compare_with_its_score(loaded: Workspace) -> None:
    known = decide.decide(loaded, corpus=demo.corpus(loaded))
    evaluations = board.list_evaluations(loaded)
    rows = {row.retriever: row for row in board.list_rows(loaded, evaluations) if row.split == "test"}
    assert known.evidence is not None
    for arm in known.evidence.arms:
        assert rows[arm.name].ndcg == pytest.approx(arm.mean), arm.name
        assert rows[arm.name].seeds == arm.n_seeds

    # Of the trainings the best on dev alone is fused, in the answer too.
    trained = [name for name, row in rows.items() if name.endswith("with BM25") and row.trained is not None]
    assert trained == ["static-minilm · diverse × 5 · with BM25"]

    fused = "minilm · with BM25"
    (difference,) = [
        c for c in known.over(next(a for a in known.options if a.name == "minilm")) if c.option.name == fused
    ]
    compared = differences.compare(loaded, "minilm", evaluations=evaluations)
    (row,) = [row for row in compared.rows if row.retriever == fused]
    assert row.difference == pytest.approx(difference.points)


def test_a_fusion_is_judged_by_what_it_retrieved_itself(loaded: Workspace) -> None:
    rows = {row["retriever_id"]: row for row in board.list_evaluations(loaded) if row["split"] == "test"}
    fused, by_ranks = rows["fused:hybrid:minilm"], rows["hybrid:minilm"]
    own, other = regraded.retrieved(loaded, fused), regraded.retrieved(loaded, by_ranks)
    assert own is not None
    assert own != other
    record = records.load(loaded.job(demo.TEST), fused["settings"]["key"])
    assert record is not None
    (kept,) = record["fused"]["evaluations"].values()
    assert own == records.firsts(kept)


def test_a_record_names_the_job_that_it_becomes(loaded: Workspace, tmp_path: Path) -> None:
    folder = loaded.job(demo.TEST).rename(loaded.job("study-once"))
    result = read_json(folder / "results" / "study.json")
    write_json(folder / "results" / "study.json", {**result, "report": "python -m cdp study report study-once"})
    record(folder, tmp_path / "test.json.gz")
    assert b"study-once" not in gzip.decompress((tmp_path / "test.json.gz").read_bytes())


def test_two_processes_that_load_it_at_once_do_no_harm(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    write = demo.write_json

    def overtaken(path: Path, value: Any) -> None:
        monkeypatch.setattr(demo, "write_json", write)
        demo.load(workspace)  # another process, while this one writes
        write(path, value)

    monkeypatch.setattr(demo, "write_json", overtaken)
    assert f"recorded test {demo.TEST}" not in demo.load(workspace)
    assert studies.report(workspace, demo.TEST).finished == 18


def test_nothing_is_taken_from_it_when_the_test_runs_here(loaded: Workspace) -> None:
    folder = loaded.job(demo.TEST)
    key = next(records.list_records(folder))["key"]
    assert records.load(folder, key) is not None
    assert records.find(loaded, loaded.job("study-here"), key) is None
    assert studies.speeds(loaded) == {}  # of another machine
    planned = trial.plan(loaded, demo.CONFIG)
    assert planned.plan.trainings == 18


def test_other_judged_queries_under_the_demos_name_are_not_given_its_scores(workspace: Workspace) -> None:
    demo.load(workspace)
    jobs.delete(workspace, demo.TEST)
    qrels = workspace.benchmark("demo") / "qrels" / "test.tsv"
    qrels.write_text("\n".join(qrels.read_text().splitlines()[:-3]) + "\n")
    assert demo.load(workspace) == []


def test_a_job_that_did_not_end_is_not_recorded(loaded: Workspace, tmp_path: Path) -> None:
    folder = loaded.job(demo.TEST)
    write_json(folder / "status.json", {**read_json(folder / "status.json"), "outcome": "stopped"})
    with pytest.raises(InputError, match="has not finished"):
        record(folder, tmp_path / "test.json.gz")
    assert not (tmp_path / "test.json.gz").exists()


@pytest.mark.slow
def test_a_part_of_it_computed_here_has_the_same_scores(loaded: Workspace) -> None:
    """Training once per document with the first seed, the untrained retriever and BM25: by the recorded plan."""
    spec: dict[str, Any] = read_json(loaded.job(demo.TEST) / "spec.json")
    recorded = {record["key"]: record for record in records.list_records(loaded.job(demo.TEST))}
    steps = next(r["settings"]["steps"] for r in recorded.values() if r["condition"])
    changes = {"per_doc": "1", "seeds": "0", "methods": "diverse", "design": "", "untrained": "", "steps": steps}
    config = StudyConfig.from_dict({**spec["config"], **changes, "keep": "none", "gpus": 0})
    sources = [source for source in spec["inputs"]["sources"] if source["label"] == "diverse"]
    folder = loaded.job("study-here")
    facts = {"id": "study-here", "kind": "study", "name": "here", "config": config.to_dict()}
    write_json(folder / "spec.json", {**facts, "inputs": {"sources": sources}})
    run_study(Job(folder))

    here = {record["key"]: record for record in records.list_records(folder)}
    assert sum(bool(record["condition"]) for record in here.values()) == 1
    assert len(here) == 4  # BM25, the untrained retriever, their fusion
    for key, here_record in here.items():
        for place, evaluation in here_record["evaluations"].items():
            there = recorded[key]["evaluations"][place]
            assert evaluation["query_ids"] == there["query_ids"]
            same = np.isclose(evaluation["ndcg@10"], there["ndcg@10"], atol=1e-4)
            assert same.mean() > 0.97, (key, place)  # of two processors, a near tie may fall the other way
