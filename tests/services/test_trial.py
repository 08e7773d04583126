"""Test it on my data: what decides it, what it costs, and the whole of it on a small corpus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdp import benchmarks, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import load_benchmark, resolve_benchmark
from cdp.corpus import CorpusManifest, read_documents, store
from cdp.corpus.documents import permutation
from cdp.retrievers import PRESETS
from cdp.services import answering, decide, jobs, projects, studies, training, trial
from cdp.studies import own_test, records, target_queries
from cdp.studies.config import AnswerConfig, TrialConfig
from cdp.studies.planning import synthesis_of
from tests.services.test_decide import diverse_helps, run_study, sets_of, task
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow

__all__ = ["task"]

WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jasper", "kelp", "lava")


def documents(n: int) -> list[dict[str, str]]:
    return [
        {
            "_id": f"d{i}",
            "title": f"The {WORDS[i % 12]} {WORDS[i // 12 % 12]}",
            "text": f"The {WORDS[i % 12]} of the {WORDS[i // 12 % 12]} was found in {1700 + i} by the crew of the "
            f"{WORDS[(i + 5) % 12]}. It was kept in the hall of the {WORDS[(i + 3) % 12]} because the winter was long. "
            f"The hall of the {WORDS[(i + 3) % 12]} burned down in {1800 + i}. "
            f"The {WORDS[i % 12]} is shown in the museum of the {WORDS[(i + 7) % 12]} today.",
        }
        for i in range(n)
    ]


def corpus(workspace: Workspace, folder: Path, n: int = 60) -> CorpusManifest:
    source = folder / "papers.jsonl"
    source.write_text("".join(json.dumps(d) + "\n" for d in documents(n)))
    with read_documents(source) as result:
        return store(result, "papers", workspace)


def human(workspace: Workspace, manifest: CorpusManifest, n: int = 60) -> str:
    written = [(f"d{i}", [f"who found the {WORDS[i % 12]} in {1700 + i}"]) for i in range(n)]
    return query_sets.import_queries(
        iter(written), workspace, manifest.id, "asked", kind="human", language="en"
    ).query_set.id


def two_sets(workspace: Workspace, manifest: CorpusManifest, same: int = 0) -> list[str]:
    """Diverse queries and paraphrases of sixty documents, ``same`` of which have the same in both; their ids."""
    found = []
    for method in ("diverse", "paraphrase"):
        lines = {
            f"d{i}": [f"{'one' if i < same else method} {WORDS[n]} of {1700 + i}" for n in range(5)] for i in range(60)
        }
        imported = query_sets.import_queries(
            lines.items(), workspace, manifest.id, method, kind="synthetic", method=method, language="en"
        )
        query_sets.update(workspace, imported.query_set.id, generator="template")
        found.append(imported.query_set.id)
    return found


SPEEDS = {"static-minilm": [2000, 2000], "minilm/2": [60, 200], "minilm": [20, 50]}


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test but the one of it waits for a measurement: these speeds stand in its place."""
    monkeypatch.setattr(studies, "measure", lambda workspace, *_: write_json(workspace.root / studies.SPEEDS, SPEEDS))


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_dev_split_decides_and_recorded_queries_are_used(workspace: Workspace) -> None:
    assert own_test.last_generator(workspace, "demo") == {"generator": "recorded"}
    planned = trial.plan(workspace, TrialConfig(corpus="demo", generator="recorded"))
    splits = planned.judged.splits
    assert (splits.benchmark, splits.test, splits.dev, planned.judged.notes) == ("demo", "test", "dev", ())
    assert (planned.plan.requests, planned.plan.cost) == (0, 0.0)
    assert planned.plan.generations == ()
    assert planned.documents == 96
    assert planned.plan.config.dev == ("demo:dev",)
    assert planned.problem == ""
    assert "study test --corpus" in trial.command(planned.config)


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_the_price_stands_first_and_a_test_over_the_budget_is_not_started(workspace: Workspace) -> None:
    whole = trial.plan(workspace, TrialConfig(corpus="demo", generator="openai", model="gpt-4o-mini"))
    assert whole.plan.cost is not None
    assert whole.plan.requests == 2 * 96
    less = trial.plan(
        workspace,
        TrialConfig(corpus="demo", generator="openai", model="gpt-4o-mini", spend=round(whole.plan.cost / 2, 4)),
    )
    assert "US dollars allowed" in less.problem
    assert 20 <= less.fitting <= 48
    with pytest.raises(ConfigError, match="US dollars allowed") as refused:
        trial.start(workspace, less.config)
    assert f"--documents {less.fitting}" in str(refused.value.hint)
    fewer = trial.plan(workspace, less.config.replace(documents=less.fitting))
    assert (fewer.documents, fewer.problem) == (less.fitting, "")
    unknown = trial.plan(workspace, TrialConfig(corpus="demo", generator="openai", model="nobody-knows"))
    assert unknown.plan.cost is None
    assert any("no budget can be kept" in note for note in unknown.notes)


def test_a_retriever_that_does_not_know_the_language_is_said_to(workspace: Workspace, tmp_path: Path) -> None:
    source = tmp_path / "ru.jsonl"
    texts = (f"Маяк номер {i} построен в {1800 + i} году и стоит на северном берегу моря." for i in range(60))
    lines = (json.dumps({"_id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts))
    source.write_text("".join(lines), encoding="utf-8")
    with read_documents(source) as result:
        russian = store(result, "маяки", workspace)
    two_sets(workspace, russian)
    first = trial.plan(workspace, TrialConfig(corpus=russian.id)).notes[0]
    assert "English text alone, and this is Russian" in first
    alone = TrainingConfig(query_set=query_sets.list_query_sets(workspace)[0].id, retriever="static-minilm")
    assert first in training.plan(workspace, alone).notes, "Launch says what the test says"
    english = corpus(workspace, tmp_path)
    assert not any("text alone" in note for note in trial.plan(workspace, TrialConfig(corpus=english.id)).notes)


def test_peoples_queries_are_split_off_where_nothing_is_judged(workspace: Workspace, tmp_path: Path) -> None:
    manifest = corpus(workspace, tmp_path)
    human(workspace, manifest)
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    assert (planned.judged.kind, planned.judged.splits.n_test, planned.judged.there) == ("human", 40, False)
    assert "Do not train on them later" in planned.judged.notes[0]
    assert not (workspace.benchmarks / planned.judged.benchmark).exists(), "a plan makes nothing"
    name = trial.make(workspace, manifest, planned.judged)
    made, dev = (load_benchmark(resolve_benchmark(name, workspace), split) for split in ("test", "dev"))
    assert (made.n_queries, dev.n_queries, made.n_documents) == (40, 20, 60)
    assert not {*made.query_ids} & {*dev.query_ids}
    assert all(made.qrels[query] for query in made.query_ids)
    (project,) = projects.projects_of(workspace, "corpus", manifest.id)
    assert project.benchmarks == (name,)
    assert trial.plan(workspace, TrialConfig(corpus=manifest.id)).judged.there


def test_template_queries_decide_on_held_out_documents_and_it_says_what_that_is_worth(
    workspace: Workspace, tmp_path: Path
) -> None:
    manifest = corpus(workspace, tmp_path)
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    assert (planned.judged.kind, planned.judged.held_out, planned.documents) == ("template", 15, 45)
    assert "little about real queries" in planned.judged.notes[0]
    assert own_test.BY_TEMPLATES in planned.notes
    name = trial.make(workspace, manifest, planned.judged)
    made = load_benchmark(resolve_benchmark(name, workspace), "test")
    relevant = {document for query in made.query_ids for document in made.qrels[query]}
    order = [f"d{position}" for position in permutation(60, own_test.DRAW)]
    assert relevant <= set(order[45:]), "none of the documents that the draw begins with, which are trained on"
    assert relevant != {f"d{i}" for i in range(45, 60)}
    assert made.n_documents == 60
    few = corpus(workspace, tmp_path, 4)
    with pytest.raises(ConfigError, match="too few for a test"):
        trial.plan(workspace, TrialConfig(corpus=few.id))


def test_queries_that_the_splits_ask_are_left_out_and_it_is_said_first(workspace: Workspace, tmp_path: Path) -> None:
    manifest = corpus(workspace, tmp_path)
    human(workspace, manifest)
    for method in ("diverse", "paraphrase"):
        written = [(f"d{i}", [f"{method} {i} {k}" for k in range(5)]) for i in range(60)]
        if method == "diverse":  # two of people's queries, one of them in other words
            written[3][1][0] = f"Who found the {WORDS[3]} in 1703?"
            written[4][1][0] = f"in 1704 the {WORDS[4]} was found: who?"
        made = query_sets.import_queries(iter(written), workspace, manifest.id, method, method=method, language="en")
        query_sets.update(workspace, made.query_set.id, generator="template")
    for _ in range(2):  # before the splits are made, and when they are there
        planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
        assert planned.plan.generations == ()
        assert any("left out of the training" in note for note in planned.notes)
        trial.make(workspace, manifest, planned.judged)


@pytest.mark.slow
def test_queries_of_a_test_are_for_documents_drawn_at_random(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were those of the corpus's first documents: of a file that is sorted by topic, one topic."""
    submitted: list[dict[str, Any]] = []

    def submit(workspace: Workspace, **job: Any) -> str:
        submitted.append(job)
        return f"{job['kind']}-{len(submitted)}"

    monkeypatch.setattr("cdp.jobs.submit", submit)
    manifest = corpus(workspace, tmp_path)
    human(workspace, manifest, 20)
    begun = trial.start(workspace, TrialConfig(corpus=manifest.id, minutes=60))
    *writing, study = submitted
    assert study["after"] == begun.generations == ["synthesis-1", "synthesis-2"]
    assert [(job["config"]["draw"], job["config"]["limit"]) for job in writing] == [(0, 60), (0, 60)]


def test_the_grid_is_nested_in_one_set_of_each_method(workspace: Workspace, tmp_path: Path) -> None:
    """One choice: 1, 2, 5 and 10 queries, all of them the first of one set of ten."""
    manifest = corpus(workspace, tmp_path)
    human(workspace, manifest)
    usual = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    planned = trial.plan(workspace, TrialConfig.from_dict({"corpus": manifest.id, "per_doc": "2, 5, 10"}))
    assert {c.condition.per_doc for c in usual.plan.conditions} == {1, 5}
    written = {c.condition.per_doc for c in planned.plan.conditions if c.condition.source in ("diverse", "paraphrase")}
    assert written == {1, 2, 5, 10}
    lacking = [source for source in planned.plan.sources if not source.query_set]
    asked = [synthesis_of(planned.plan.config, source) for source in lacking]
    assert [(job.method, job.per_doc) for job in asked] == [("diverse", 10), ("paraphrase", 10)]
    assert (usual.config.numbers, planned.config.numbers) == ("one and 5", "one, 2, 5 and 10")
    assert "--per-doc '2, 5, 10'" in trial.command(planned.config)


@pytest.mark.slow
def test_of_a_large_benchmark_a_sample_decides(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_test, "MAX_DOCUMENTS", 500)
    manifest = corpus(workspace, tmp_path)
    folder = tmp_path / "papers-judged"
    (folder / "qrels").mkdir(parents=True)
    many = documents(600)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in many))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "q{i}", "text": "who {i}"}}\n' for i in range(400)))
    lines = "".join(f"q{i}\td{i}\t1\n" for i in range(400))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    benchmarks.add_benchmark(folder, workspace, "large")
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id, benchmark="large"))
    splits = planned.judged.splits
    assert (splits.n_test, splits.n_dev, splits.n_documents) == (267, 133, own_test.MAX_DOCUMENTS)
    assert any("267 of 400 judged queries are reported and 133 others" in note for note in planned.judged.notes)
    assert any("500 of 600 documents of large" in note for note in planned.judged.notes)
    folder = resolve_benchmark(trial.make(workspace, manifest, planned.judged), workspace)
    made, dev = (load_benchmark(folder, split) for split in ("test", "dev"))
    assert (made.n_queries, dev.n_queries, made.n_documents) == (267, 133, own_test.MAX_DOCUMENTS)
    assert not {*made.query_ids} & {*dev.query_ids}
    again = trial.plan(workspace, TrialConfig(corpus=manifest.id, benchmark="large"))
    assert again.judged.there, "the split is kept"

    owned = projects.create(workspace, "Judged papers", corpora=[manifest.id], benchmarks=["large"])
    projects.add_members(workspace, owned.id, benchmarks=[again.judged.benchmark])
    answer = answering.plan(workspace, AnswerConfig(corpus=manifest.id))
    assert answer.test.judged.splits == again.judged.splits, "of a sample no second sample is drawn"
    assert trial.plan(workspace, answer.config).judged.splits.n_test == 267


@pytest.mark.slow
def test_the_command_shows_the_price_and_starts_nothing_without_a_yes(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdp.cli import main

    human(workspace, corpus(workspace, tmp_path))
    assert main(["study", "test", "--corpus", "papers", "--minutes", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "trainings: 18 of" in said
    assert "more than the 0.2 minutes allowed" in said
    assert "price: free" in said
    assert "start it with --yes" in said
    assert main(["study", "test", "--corpus", "papers", "--minutes", "0.2", "--yes"]) == 2
    assert "Allow more with --minutes" in capsys.readouterr().err
    assert jobs.list_jobs(workspace) == []
    assert main(["study", "test"]) == 2


def test_splits_that_overlap_are_the_first_line_of_the_plan(
    workspace: Workspace, task: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdp.cli import main

    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    qrels = workspace.benchmark("tales") / "qrels"
    (qrels / "test.tsv").write_text((qrels / "dev.tsv").read_text())
    assert main(["study", "test", "--corpus", task["corpus"], "--benchmark", "tales"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "overlap: Of the dev queries 60 are reported too: they choose no checkpoint here."


def test_what_failed_first_is_what_is_said(workspace: Workspace, task: dict[str, str]) -> None:
    job = run_study(workspace, sets_of(task), diverse_helps)
    failure = {"kind": "data", "message": "60 pairs at Q/Doc 5 take 12 documents with 5 queries each, there are 2."}
    facts = {"retriever": "static-minilm", "failed": "diverse × 5", "failure": failure, "created": "2026"}
    records.save(workspace.job(job), "failed", None, facts)
    what, next_step = trial.trouble(workspace, jobs.show(workspace, job))
    assert "The first failure: 60 pairs at Q/Doc 5" in what
    assert "another model" in next_step


def test_the_default_limit_allows_minilm_on_two_cores(workspace: Workspace, tmp_path: Path) -> None:
    """At the speed of two cores that were busy with other work, and the largest test that is not asked for."""
    manifest = corpus(workspace, tmp_path, own_test.MAX_DOCUMENTS)
    human(workspace, manifest, 300)
    write_json(workspace.root / studies.SPEEDS, {**SPEEDS, "minilm/2": [58, 240], "minilm": [17, 52]})
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    splits = planned.judged.splits
    assert (planned.documents, splits.n_test, splits.n_documents, planned.plan.trainings) == (1000, 200, 2000, 18)
    assert planned.trained == "static-minilm or minilm (upper 2 layers), the best untrained on dev"
    assert planned.problem == ""


@pytest.mark.usefixtures("jobs_here", "few_steps")
def test_of_those_that_the_time_allows_the_best_on_dev_is_trained_and_the_answer_names_it(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = corpus(workspace, tmp_path)
    human(workspace, manifest)
    two_sets(workspace, manifest)  # of texts as short as these templates write the same twice
    own = {}
    for name, seed in (("tiny-one", 0), ("tiny-two", 1)):
        source = str(tiny_retriever(tmp_path / name, layers=3, seed=seed))
        own[name] = replace(PRESETS["minilm"], name=name, source=source, embedded=False)
    monkeypatch.setattr(PRESETS, "_items", {"static-minilm": PRESETS["static-minilm"], **own})
    # The static one would take a day.
    slow, fast = [0.1, 1000.0], [500.0, 1000.0]
    speeds = {"static-minilm": slow, **{f"{name}{layers}": fast for name in own for layers in ("", "/2")}}
    write_json(workspace.root / studies.SPEEDS, speeds)
    config = TrialConfig.from_dict(
        {"corpus": manifest.id, "documents": 24, "per_doc": "2", "seeds": 1, "minutes": 30, "generator": "template"}
    )

    planned = trial.plan(workspace, config)
    assert planned.trained == "tiny-one (upper 2 layers) or tiny-two (upper 2 layers), the best untrained on dev"
    assert planned.beside == "tiny-one, tiny-two, static-minilm"
    begun = trial.start(workspace, config)
    assert str(jobs.show(workspace, begun.job_id).state) == "finished"

    report = studies.report(workspace, begun.job_id)
    chosen = read_json(workspace.job(begun.job_id) / "results" / "chosen.json")["retriever"]
    assert {row.condition.retriever for row in report.rows if row.condition.per_doc} == {chosen}
    dev = {}
    for record in records.list_records(workspace.job(begun.job_id)):
        if not record["condition"] and record["retriever"] in own and "fused" not in record:
            dev[record["retriever"]] = max(
                e["measures"]["ndcg@10"] for e in record["evaluations"].values() if e["split"] == "dev"
            )
    assert chosen == max(own, key=lambda name: dev[name])

    judged = planned.judged
    target = target_queries.profile_benchmark(workspace, judged.benchmark, split=judged.splits.test)
    answer = decide.decide(workspace, corpus=manifest.id, target=target)
    named = {(arm.kind, arm.condition.retriever) for arm in answer.options}
    assert named >= {("bm25", ""), *(("untrained", name) for name in ("static-minilm", *own))}
    assert {arm.condition.retriever for arm in answer.options if arm.trained} == {chosen}
    assert chosen in " ".join((answer.headline, *answer.findings))
    assert f": {chosen} (upper 2 layers) · 24 documents" in answer.rests_on


@pytest.mark.parametrize("own_dev", [False, True])
def test_the_queries_that_are_promised_are_those_of_the_files(
    workspace: Workspace, tmp_path: Path, own_dev: bool
) -> None:
    """Some have no relevant document, some ask the same: 10 were promised for dev, and its file held 8."""
    manifest = corpus(workspace, tmp_path)
    folder = tmp_path / "asked"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents(60)))
    asked = [f"who found the {WORDS[i % 12]} in {1700 + i // 2 * 2 if i > 25 else 1700 + i}" for i in range(30)]
    lines = [json.dumps({"_id": f"q{i}", "text": text}) for i, text in enumerate(asked)]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    rows = [f"q{i}\td{i}\t{0 if i in (3, 4) else 1}\n" for i in range(30)]
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(head + "".join(rows[:20] if own_dev else rows))
    if own_dev:
        (folder / "qrels" / "dev.tsv").write_text(head + "".join(rows[20:]))
    benchmarks.add_benchmark(folder, workspace, "asked")
    projects.take_along(workspace, "corpus", manifest.id, "asked")

    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id, queries=15))
    splits = planned.judged.splits
    assert (splits.n_test, splits.n_dev) != (20, 10)
    assert f"{splits.n_test} of {20 if own_dev else 30} judged queries are reported" in " ".join(planned.notes)
    assert f"{splits.n_dev} others choose the checkpoints ({splits.benchmark})" in " ".join(planned.notes)
    made = trial.make(workspace, manifest, planned.judged)
    assert made == splits.benchmark
    assert made.endswith(f"-{splits.n_dev}dev")
    subset = benchmarks.manifests.read(workspace.benchmark(made)).subset
    assert subset is not None
    counts = {split: len(load_benchmark(workspace.benchmark(made), split).qrels) for split in ("test", "dev")}
    assert counts == {"test": splits.n_test, "dev": splits.n_dev} == {"test": subset.queries, "dev": subset.dev}
    again = trial.plan(workspace, TrialConfig(corpus=manifest.id, queries=15))
    assert again.judged.splits.benchmark == made


def test_documents_without_words_leave_the_number_that_is_promised(workspace: Workspace, tmp_path: Path) -> None:
    source = tmp_path / "some.jsonl"
    some = [d if i % 3 else {"_id": d["_id"], "text": "…"} for i, d in enumerate(documents(60))]
    source.write_text("".join(json.dumps(d) + "\n" for d in some))
    with read_documents(source) as result:
        manifest = store(result, "some", workspace)
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    made = workspace.benchmark(trial.make(workspace, manifest, planned.judged))
    splits = planned.judged.splits
    counts = {split: len(load_benchmark(made, split).qrels) for split in ("test", "dev")}
    assert counts == {"test": splits.n_test, "dev": splits.n_dev}
    assert sum(counts.values()) < planned.judged.held_out
