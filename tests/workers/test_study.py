"""The worker: every condition once, nothing run twice, a failure does not take the others with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.condition import HYBRID
from cdp.base.errors import ConfigError
from cdp.base.worker import Job
from cdp.base.workspace import REPOSITORY, Workspace, read_json, read_jsonl, write_json
from cdp.results import board
from cdp.retrievers.leakage import LEAKAGE, Leak
from cdp.services import evaluation, studies
from cdp.studies import records
from cdp.studies.config import StudyConfig
from cdp.studies.estimate import measured_speeds
from cdp.studies.plan import condition_pairs, conditions, training_config
from cdp.training.plan import prepare
from cdp.workers.study import main
from tests.studies import conftest as fixtures
from tests.studies.conftest import study_job

pytestmark = pytest.mark.slow

benchmarks, query_set, tiny = fixtures.benchmarks, fixtures.query_set, fixtures.tiny


def run(folder: Path) -> None:
    main(Job(folder))


def allow_leakage(folder: Path, query_set: str) -> None:
    """As a start with that permission leaves it: what the set shares with a benchmark is known, and trained on."""
    spec = read_json(folder / "spec.json")
    spec["inputs"][LEAKAGE] = [asdict(Leak("own", "short", "test", queries=6, judged=20, query_set=query_set))]
    write_json(folder / "spec.json", spec)


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """Each condition's record, by the name of its file."""
    return {path.name: read_json(path) for path in (folder / records.FOLDER).glob("*.json")}


def test_a_study_to_its_report(workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str) -> None:
    folder = study_job(workspace, "study-1", query_set, benchmarks, retrievers=tiny, weightings="none, cw")
    allow_leakage(folder, query_set)
    run(folder)
    report = studies.report(workspace, "study-1")
    assert (report.planned, report.finished, report.failures) == (8, 8, ())
    assert [row.condition.source for row in report.rows] == ["untrained", *["human"] * 4]
    assert {row.pairs for row in report.rows if row.condition.per_doc == 3} == {100}
    assert {row.pairs for row in report.rows if row.condition.per_doc == 1} == {40}
    assert all(set(row.scores) == set(benchmarks) and row.n_seeds in (1, 2) for row in report.rows)
    assert [round(b.cw) for b in report.benchmarks] == [2, 4, 6]
    assert {g.comparison for g in report.gains} >= {"qdoc_minus_one", "cw_weighted_minus_equal"}
    assert not list((folder / "checkpoints").glob("*"))
    assert [line["step"] for line in read_jsonl(folder / "metrics.jsonl")] == list(range(1, 9))
    assert "20 of 40 documents have 3 queries" in " ".join(report.limits)
    ended = read_json(folder / "results" / "study.json")
    assert (ended["trained"], ended["reused"], ended["failed"]) == (8, 0, 0)
    counts: dict[bool, set[int]] = {True: set(), False: set()}
    for record in records.list_records(folder):  # the set holds six queries of the benchmarks: each result says so
        for scored in record["evaluations"].values():
            counts[record["condition"] is not None].add(scored["counts"].get("leaked_queries", 0))
    assert counts[False] == {0}
    assert max(counts[True]) > 0
    every = board.list_rows(workspace, board.list_evaluations(workspace))
    rows = [row for row in every if row.trained and row.trained.study == "study-1"]
    assert len({run for row in rows for run in row.runs}) == 8
    assert "leaked" in {badge.word for row in rows for badge in row.badges}
    speeds = measured_speeds(records.list_records(folder))
    assert speeds[tiny].pairs_per_second > 0
    assert speeds[tiny].texts_per_second > 0

    # Conditions that are there are not run again.
    first = stored(folder)
    doomed = sorted(first)[0]
    (folder / records.FOLDER / doomed).unlink()
    run(folder)
    again = stored(folder)
    assert again.keys() == first.keys()
    for name, record in again.items():
        scores = {place: e["ndcg@10"] for place, e in record["evaluations"].items()}
        assert scores == {place: e["ndcg@10"] for place, e in first[name]["evaluations"].items()}
        if name != doomed:
            assert record.get("seconds") == first[name].get("seconds")


def test_what_a_benchmark_judges_is_left_out_unless_it_was_allowed(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = study_job(workspace, "study-1", query_set, benchmarks, retrievers=tiny, per_doc="3", seeds="0")
    run(folder)
    report = studies.report(workspace, "study-1")
    assert {row.pairs for row in report.rows if row.condition.per_doc == 3} == {94}  # of 100, six are a benchmark's
    evaluations = [e for r in records.list_records(folder) for e in r["evaluations"].values()]
    assert {e["counts"].get("leaked_queries", 0) for e in evaluations} == {0}


def test_another_study_takes_what_was_run_already_and_adds_a_benchmark(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    run(study_job(workspace, "study-1", query_set, benchmarks[:2], retrievers=tiny, seeds="0"))
    run(study_job(workspace, "study-2", query_set, benchmarks[:2], retrievers=tiny, seeds="0", per_doc="1, 2, 3"))
    second = studies.report(workspace, "study-2")
    assert (second.finished, second.reused) == (3, 2)
    run(study_job(workspace, "study-3", query_set, benchmarks, retrievers=tiny, seeds="0"))
    third = studies.report(workspace, "study-3")
    assert {name for row in third.rows for name in row.scores} == set(benchmarks)
    both = {row.name: row for row in second.rows}
    for row in third.rows:
        assert {n: row.scores[n] for n in benchmarks[:2]} == both[row.name].scores


def test_a_failed_condition_is_told_and_the_others_go_on(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = study_job(workspace, "study-1", query_set, benchmarks, retrievers=f"{tiny}, {tiny}-gone", seeds="0")
    with pytest.raises(ConfigError, match="2 of 4 trainings and 1 of 2 baselines failed"):
        run(folder)
    report = studies.report(workspace, "study-1")
    assert (report.planned, report.finished, len(report.failures)) == (4, 2, 3)
    assert any("2 of 4 trainings are missing, 2 of them because they failed" in text for text in report.limits)


def test_diverging_training_is_such_a_failure(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = study_job(workspace, "study-1", query_set, benchmarks, retrievers=tiny, seeds="0", per_doc="1")
    spec = dict(Job(folder).spec)
    spec["config"]["batch_size"] = 65536
    spec["config"]["max_documents"] = 1
    write_json(folder / "spec.json", spec)
    with pytest.raises(ConfigError, match="1 of 1 training failed"):
        run(folder)
    (failure,) = studies.report(workspace, "study-1").failures
    assert "at least two different documents" in failure[1] or "one document only" in failure[1]


def test_a_stop_keeps_what_is_done_and_a_resume_ends_equal(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    whole = study_job(workspace, "study-1", query_set, benchmarks, retrievers=tiny, seeds="0")
    run(whole)
    expected = {row.name: dict(row.scores) for row in studies.report(workspace, "study-1").rows}
    for path in (whole / records.FOLDER).glob("*.json"):
        path.unlink()

    stopped = study_job(workspace, "study-2", query_set, benchmarks, retrievers=tiny, seeds="0")
    job = Job(stopped)
    asked = 0

    def stop_after_a_while() -> bool:
        nonlocal asked
        asked += 1
        return asked > 13

    job.stop_requested = stop_after_a_while  # type: ignore[method-assign]
    main(job)
    kept = stored(stopped)
    assert 0 < len(kept) < 3
    assert studies.report(workspace, "study-2").finished < 2
    run(stopped)
    assert {row.name: dict(row.scores) for row in studies.report(workspace, "study-2").rows} == expected


def test_a_specification_of_before_settings_nested_is_resumed_and_keeps_what_is_done(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = study_job(workspace, "study-1", query_set, benchmarks, retrievers=tiny, seeds="0", weight_decay=0.02)
    run(folder)
    done = stored(folder)
    assert done
    spec = read_json(folder / "spec.json")
    before = read_json(REPOSITORY / "tests" / "base" / "settings_of_before.json")["StudyConfig"]["spec"]
    known = {name: spec["config"].get(name) for name in before}
    write_json(folder / "spec.json", {**spec, "config": {**known, "training": "weight_decay=0.02"}})
    run(folder)
    assert stored(folder) == done


def test_splits_are_one_family_and_the_training_documents_own_benchmark_is_in_domain(
    workspace: Workspace, query_set: str, benchmarks: list[str], tmp_path: Path
) -> None:
    from cdp.corpus import iter_documents
    from cdp.studies.config import StudyConfig
    from cdp.studies.plan import StudySource, counted, read_benchmark
    from cdp.workers.study import kinship

    source = counted(workspace, StudySource("human", "human", query_set))
    own = tmp_path / "own"
    (own / "qrels").mkdir(parents=True)
    documents = list(iter_documents(workspace, source.corpus))
    lines = "".join(json.dumps({"_id": d.id, "text": d.text}) + "\n" for d in documents)
    (own / "corpus.jsonl").write_text(lines, encoding="utf-8")
    (own / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "amber"}) + "\n", encoding="utf-8")
    for split in ("dev", "test"):
        (own / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n", encoding="utf-8")
    known = [read_benchmark(workspace, str(own), "dev"), read_benchmark(workspace, str(own), "test")]
    known += [read_benchmark(workspace, name, "") for name in benchmarks[:2]]
    config = StudyConfig.from_dict({"benchmarks": "any", "query_sets": query_set, "in_domain": benchmarks[1]})
    assert kinship(workspace, config, [source], known) == [
        ("own", ["human"]),
        ("own", ["human"]),
        (benchmarks[0], []),
        (benchmarks[1], ["human"]),
    ]


def trained(folder: Path) -> dict[tuple[int, int], dict[str, int]]:
    """(Q/Doc, seed) → what is written down of the training."""
    return {
        (r["condition"]["per_doc"], r["condition"]["seed"]): r["training"]
        for r in records.list_records(folder)
        if r["condition"] is not None
    }


def test_equal_pairs_are_equal_where_documents_have_fewer_queries(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    """Half of the documents have only two of three queries: the first documents gave fewer pairs at Q/Doc 3."""
    folder = study_job(workspace, "study-1", query_set, benchmarks[:1], retrievers=tiny, budget=20, per_doc="1, 2, 3")
    run(folder)
    found = trained(folder)
    assert {training["pairs"] for training in found.values()} == {20}
    assert {training["steps"] for training in found.values()} == {4}
    assert {key: training["documents"] for key, training in found.items() if key[1] == 0} == {
        (1, 0): 20,
        (2, 0): 10,
        (3, 0): 7,
    }
    # Twenty documents have three queries, which Q/Doc 1 needs all; at 2 and 3 each seed draws its own.
    assert len({r["pairs_hash"] for r in records.list_records(folder) if r["condition"] is not None}) == 5


def test_trainings_of_the_same_documents_take_the_steps_of_the_highest_q_doc(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = study_job(
        workspace, "study-1", query_set, benchmarks[:1], retrievers=tiny, dev=benchmarks[2], hybrid=True, seeds="0",
        steps=None,
        epochs=8,
    )  # fmt: skip
    run(folder)
    found = trained(folder)
    assert {key[0]: (t["documents"], t["pairs"], t["steps"]) for key, t in found.items()} == {
        1: (40, 40, 96),
        3: (40, 100, 96),
    }
    report = studies.report(workspace, "study-1")
    assert any(text.startswith("Equal documents and steps") for text in report.limits)
    assert all(row.best_step is not None for row in report.rows if row.pairs)
    (fused,) = [row for row in report.rows if row.condition.source == HYBRID]
    assert fused.name == f"{tiny} · hybrid"
    for more in ({}, {"hybrid": True}):
        asked = evaluation.checked(workspace, tiny, benchmarks[0], "test", **more)
        assert evaluation.existing(workspace, asked), "a study's untrained scores are not measured again"


def test_a_study_compares_ri_with_equal_weights_on_imported_reasoned_forms(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    """Its weights are those that ``train`` gives the same pairs, and RI needs a set of reasoned forms that fits."""
    lines = list(query_sets.iter_lines(workspace, query_set))
    corpus = query_sets.load(workspace, query_set).corpus_id
    forms = [
        (line["document_id"], [f"{query} thought through at length" for query in line["queries"]]) for line in lines
    ]
    thought = query_sets.import_queries(forms, workspace, corpus, "thought").query_set.id
    config = StudyConfig.from_dict(
        {"query_sets": query_set, "benchmarks": benchmarks[0], "weightings": "none, ri", "per_doc": "1", "seeds": "0",
         "epochs": 2, "batch_size": 8, "learning_rate": "0.05", "gpus": 0, "reasoning": thought}
    )  # fmt: skip
    plan = studies.plan(workspace, config)
    assert [source.reasoning for source in plan.sources] == [thought]
    with pytest.raises(ConfigError, match="'reasoning' names no query set for it"):
        studies.plan(workspace, config.replace(reasoning=""))
    with pytest.raises(ConfigError, match="names the set itself"):
        studies.plan(workspace, config.replace(reasoning=query_set))
    by_weighting = {c.condition.weighting: c for c in conditions(config, plan.sources)}
    assert condition_pairs(workspace, config, plan.sources[0], by_weighting["none"]).reasoned is None
    pairs = condition_pairs(workspace, config, plan.sources[0], by_weighting["ri"])
    settings = training_config(config, by_weighting["ri"], query_set, thought)
    assert pairs.reasoned == prepare(settings, workspace).pairs.reasoned
    assert pairs.unreasoned == 0

    folder = study_job(
        workspace, "study-ri", query_set, benchmarks[:1], retrievers=tiny, weightings="none, ri", per_doc="1",
        seeds="0", reasoning=thought,
    )  # fmt: skip
    spec = read_json(folder / "spec.json")
    spec["inputs"]["sources"][0]["reasoning"] = thought
    write_json(folder / "spec.json", spec)
    run(folder)
    trained = {r["settings"]["weighting"]: r for r in records.list_records(folder) if "settings" in r}
    assert set(trained) == {"none", "ri"}
    assert trained["ri"]["settings"]["reasoning"] == thought
    assert trained["ri"]["training"]["loss_last"] != trained["none"]["training"]["loss_last"]


class InTurn:
    """The tasks of a cluster as one process does them, one after the other."""

    gpus = 0.0

    def __init__(self) -> None:
        self.made: list[str] = []

    def map(
        self,
        task: Callable[..., object],
        files: Iterable[tuple[Path, tuple[Any, ...]]],
        should_stop: Callable[[], bool],
    ) -> Iterator[Path]:
        for path, arguments in files:
            if not path.exists():
                task(path, *arguments)
                self.made.append(path.name)
            yield path


def test_steps_as_tasks_are_skipped_where_they_are_there_and_tried_again_where_they_failed(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = study_job(workspace, "study-1", query_set, benchmarks, retrievers=tiny, seeds="0")
    allow_leakage(folder, query_set)
    monkeypatch.setattr(Job, "pool", pool := InTurn())
    run(folder)
    assert pool.made == ["00000.json", "00001.json", "00002.json"]
    assert read_json(folder / "results" / "study.json")["trained"] == 2
    assert [line["step"] for line in read_jsonl(folder / "metrics.jsonl")] == [2, 3]
    assert studies.report(workspace, "study-1").finished == 2
    failed = folder / "steps" / "00001.json"
    write_json(failed, {**read_json(failed), "failed": 1})
    monkeypatch.setattr(Job, "pool", again := InTurn())
    run(folder)
    assert again.made == ["00001.json"]
