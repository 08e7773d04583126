"""Test it on my data: what decides it, what it costs, and the whole of it on a small corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import benchmarks, query_sets
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import load_benchmark, resolve_benchmark
from cdp.corpus import CorpusManifest, read_documents, store
from cdp.services import jobs, projects
from cdp.services.studies import judged, trial
from cdp.services.workspace import demo
from cdp.studies.trial import TrialConfig
from tests.support_models import tiny_static

WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jasper", "kelp", "lava")


def documents(n: int) -> list[dict[str, str]]:
    return [
        {
            "_id": f"d{i}",
            "title": f"The {WORDS[i % 12]} {WORDS[i // 12 % 12]}",
            "text": f"The {WORDS[i % 12]} of the {WORDS[i // 12 % 12]} was found in {1700 + i} by the crew of the "
            f"{WORDS[(i + 5) % 12]}. It was kept in the hall of the {WORDS[(i + 3) % 12]} because the winter was long.",
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


@pytest.mark.slow
def test_a_dev_split_decides_and_recorded_queries_are_used(workspace: Workspace) -> None:
    demo.load(workspace)
    assert trial.last_generator(workspace, "demo") == {"generator": "recorded"}
    planned = trial.plan(workspace, TrialConfig(corpus="demo", generator="recorded"))
    assert (planned.judged.name, planned.judged.notes) == ("demo:dev", ())
    assert (planned.requests, planned.cost) == (0, 0.0)
    assert planned.plan.generations == ()
    assert planned.size.documents == 96
    assert "study test --corpus" in trial.command(planned.config)


@pytest.mark.slow
def test_the_price_stands_first_and_the_budget_leaves_documents_out(workspace: Workspace) -> None:
    demo.load(workspace)
    whole = trial.plan(workspace, TrialConfig(corpus="demo", generator="openai", model="gpt-4o-mini"))
    assert whole.cost is not None
    assert whole.requests == 2 * 96
    less = trial.plan(
        workspace, TrialConfig(corpus="demo", generator="openai", model="gpt-4o-mini", spend=round(whole.cost / 2, 4))
    )
    assert less.cost is not None
    assert less.cost <= less.config.spend
    assert less.size.documents < 96
    assert any("US dollars allow" in note for note in less.notes)
    unknown = trial.plan(workspace, TrialConfig(corpus="demo", generator="openai", model="nobody-knows"))
    assert unknown.cost is None
    assert any("no budget can be kept" in note for note in unknown.notes)


def test_peoples_queries_are_split_off_where_nothing_is_judged(workspace: Workspace, tmp_path: Path) -> None:
    manifest = corpus(workspace, tmp_path)
    human(workspace, manifest)
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    assert (planned.judged.kind, planned.judged.n_queries, planned.judged.there) == ("human", 60, False)
    assert "Do not train on them later" in planned.judged.notes[0]
    assert not (workspace.benchmarks / planned.judged.benchmark).exists(), "a plan makes nothing"
    name = judged.make(workspace, manifest, planned.judged)
    made = load_benchmark(resolve_benchmark(name, workspace), "dev")
    assert (made.n_queries, made.n_documents) == (60, 60)
    assert all(made.qrels[query] for query in made.query_ids)
    (project,) = projects.projects_of(workspace, "corpus", manifest.id)
    assert project.benchmarks == (name,)
    assert trial.plan(workspace, TrialConfig(corpus=manifest.id)).judged.there


def test_template_queries_decide_on_held_out_documents_and_it_says_what_that_is_worth(
    workspace: Workspace, tmp_path: Path
) -> None:
    manifest = corpus(workspace, tmp_path)
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id))
    assert (planned.judged.kind, planned.judged.held_out, planned.size.documents) == ("template", 15, 45)
    assert "says little of what people will ask" in planned.judged.notes[0]
    name = judged.make(workspace, manifest, planned.judged)
    made = load_benchmark(resolve_benchmark(name, workspace), "dev")
    relevant = {document for query in made.query_ids for document in made.qrels[query]}
    assert relevant <= {f"d{i}" for i in range(45, 60)}
    assert made.n_documents == 60
    few = corpus(workspace, tmp_path, 4)
    with pytest.raises(ConfigError, match="too few for a test"):
        trial.plan(workspace, TrialConfig(corpus=few.id))


@pytest.mark.slow
def test_of_a_large_benchmark_a_sample_decides(workspace: Workspace, tmp_path: Path) -> None:
    manifest = corpus(workspace, tmp_path)
    folder = tmp_path / "papers-judged"
    (folder / "qrels").mkdir(parents=True)
    many = documents(judged.MOST_DOCUMENTS + 500)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in many))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "q{i}", "text": "who {i}"}}\n' for i in range(400)))
    lines = "".join(f"q{i}\td{i}\t1\n" for i in range(400))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    benchmarks.add_benchmark(folder, workspace, "large")
    planned = trial.plan(workspace, TrialConfig(corpus=manifest.id, benchmark="large"))
    assert (planned.judged.n_queries, planned.judged.n_documents) == (300, judged.MOST_DOCUMENTS)
    assert any("Only the test split" in note for note in planned.judged.notes)
    assert any("A sample of large decides" in note for note in planned.judged.notes)
    made = load_benchmark(resolve_benchmark(judged.make(workspace, manifest, planned.judged), workspace), "test")
    assert (made.n_queries, made.n_documents) == (300, judged.MOST_DOCUMENTS)


@pytest.mark.slow
def test_the_command_shows_the_price_and_starts_nothing_without_a_yes(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdp.cli.commands import main

    human(workspace, corpus(workspace, tmp_path))
    tiny = str(tiny_static(tmp_path / "tiny"))
    assert main(["study", "test", "--corpus", "papers", "--retriever", tiny, "--minutes", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "12 trainings" in said
    assert "does not fit into 0.2 minutes" in said
    assert "Price: free" in said
    assert "Start it with --yes" in said
    assert jobs.list_jobs(workspace) == []
    with pytest.raises(SystemExit) as refused:
        main(["study", "test"])
    assert refused.value.code == 2
