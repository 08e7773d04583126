"""Nothing is trained on what a benchmark judges unasked; where someone said yes, every result says so for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import load_benchmark
from cdp.corpus import read_documents, store
from cdp.jobs import list_jobs
from cdp.results import board
from cdp.retrievers import leakage
from cdp.retrievers import leakage as room
from cdp.services import queries as query_services
from cdp.services import studies, training
from cdp.studies.config import StudyConfig
from tests.benchmarks.folders import write_benchmark
from tests.services.support import evaluation
from tests.support import iter_queries, judged_queries

RETRIEVER = "static-minilm"
SPLITS = {"train": range(8), "dev": range(8, 12), "test": range(12, 20)}


@pytest.fixture
def corpus(workspace: Workspace, tmp_path: Path) -> str:
    """Twenty mills; query q<i> asks for mill d<i>. The benchmark of them has three splits, each with own documents
    but for d0, which a query of the test split asks for too."""
    folder = workspace.benchmark("mills")
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{i}", "title": "", "text": f"Mill {i} grinds corn {i}."} for i in range(20)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    queries = [{"_id": f"q{i}", "text": f"What does mill {i} grind?"} for i in range(20)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
    for split, of in SPLITS.items():
        lines = [f"q{i}\td{i}\t1\n" for i in of] + (["q12\td0\t1\n"] if split == "test" else [])
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    with read_documents(folder / "corpus.jsonl") as result:
        return store(result, "mills", workspace).id


def imported(workspace: Workspace, corpus: str, name: str, *splits: str) -> str:
    return judged_queries(workspace, workspace.benchmark("mills"), corpus, name, *splits).id


def asked(workspace: Workspace, corpus: str, name: str, texts: dict[str, str], kind: str = "human") -> str:
    return query_sets.import_queries(texts.items(), workspace, corpus, name, kind=kind).query_set.id


@pytest.mark.slow
def test_training_on_judged_queries_is_refused_at_every_door(workspace: Workspace, corpus: str) -> None:
    config = TrainingConfig(query_set=imported(workspace, corpus, "tested", "test"), retriever=RETRIEVER)
    refused = r"tested holds 8 of the 8 queries that mills test judges"
    with pytest.raises(ConfigError, match=refused) as told:
        training.start(workspace, config, benchmarks=[("mills", "test")])
    assert leakage.FLAG in (told.value.hint or "")
    with pytest.raises(ConfigError, match=refused):
        training.start(workspace, config.replace(benchmark="mills", split="test"))
    swept = studies.sweep(workspace, config.replace(benchmark="mills", split="test"), [1e-3, 1e-4])
    with pytest.raises(ConfigError, match=refused):
        studies.run(workspace, swept)
    study = StudyConfig(query_sets="tested", benchmarks="mills:test", retrievers=RETRIEVER, per_doc="1")
    with pytest.raises(ConfigError, match=refused):
        studies.run(workspace, study)
    assert list_jobs(workspace) == []


def test_other_splits_of_the_same_benchmark_are_no_leak(workspace: Workspace, corpus: str) -> None:
    train = imported(workspace, corpus, "trained", "train")
    assert leakage.find_leaks(workspace, [train], [("mills", "test"), ("mills", "dev")]) == []
    (leak,) = leakage.find_leaks(
        workspace, [imported(workspace, corpus, "both", "dev", "train")], [("mills", "test"), ("mills", "dev")]
    )
    assert (leak.split, leak.queries, leak.judged) == ("dev", 4, 4)  # an import takes all but test


def test_queries_are_told_by_their_words_whoever_wrote_them(workspace: Workspace, corpus: str) -> None:
    texts = {"d1": "what does MILL 12 grind", "d2": "Is there another mill?"}
    for kind in ("human", "synthetic"):
        (leak,) = leakage.find_leaks(
            workspace, [asked(workspace, corpus, f"own {kind}", texts, kind)], [("mills", "test")]
        )
        assert (leak.queries, leak.judged) == (1, 8)


@pytest.mark.slow
def test_a_judged_query_in_other_words_is_a_leak_and_another_query_is_none(workspace: Workspace, corpus: str) -> None:
    """The same content words in any order and form leak; one other word, or another question, asks something else."""
    queries = workspace.benchmark("mills") / "queries.jsonl"
    judged = "When was the old water mill of Ulm built?"
    queries.write_text(queries.read_text().replace("What does mill 12 grind?", judged))
    texts = {"d1": "the old water-mill of Ulm: when was it built", "d2": "When was the old water mill of Bonn built?",
             "d3": "Where was the old water mill of Ulm built?", "d4": "Mill 13?"}  # fmt: skip
    written = asked(workspace, corpus, "reworded", texts, "synthetic")
    (leak,) = leakage.find_leaks(workspace, [written], [("mills", "test")])
    assert (leak.queries, leak.near) == (1, 1)
    assert "1 of them reworded" in leak.sentence
    with pytest.raises(ConfigError, match="reworded holds 1 of the 8 queries"):
        training.start(workspace, TrainingConfig(query_set=written, retriever=RETRIEVER), benchmarks=[("mills", "")])
    copy, n = query_services.leave_out(workspace, written, [("mills", "test")])
    assert n == 1
    assert leakage.find_leaks(workspace, [copy.id], [("mills", "test")]) == []
    room.write_hashes(workspace.job("train-1") / "results", texts.values())
    write_json(workspace.job("train-1") / "spec.json", {"id": "train-1", "kind": "training", "config": {}})
    counts = room.counts(workspace, "train-1", load_benchmark(workspace.benchmark("mills"), "test"))
    assert counts == {"leaked_queries": 1, "near_duplicates": 1}  # of a benchmark that nobody chose at the start


def test_synthetic_queries_for_the_judged_documents_are_in_domain_and_no_leak(
    workspace: Workspace, corpus: str
) -> None:
    """To write queries for the corpus that will be searched is the use that this product is for."""
    written = asked(workspace, corpus, "own", {f"d{i}": f"Corn of the number {i}" for i in range(20)}, "synthetic")
    config = TrainingConfig(query_set=written, retriever=RETRIEVER)
    assert leakage.of_training(workspace, config, [("mills", "test")]) == []
    made = workspace.job("train-1")
    write_json(made / "spec.json", {"id": "train-1", "kind": "training", "config": config.to_dict()})
    judged = load_benchmark(workspace.benchmark("mills"), "test")
    room.write_hashes(made / "results", ["Corn"], ["Mill 12 grinds corn 12.", "Mill 99 grinds corn 99."])
    counts = room.counts(workspace, "train-1", judged)
    assert counts == {"trained_positives": 1, "judged_positives": 9}
    assert room.marks(counts) == ()
    assert room.findings(counts, 8)[0][1].startswith("In-domain: the training had queries for 1 of the 9 documents")
    assert room.findings({"trained_positives": 1, "judged_positives": 11}, 8) == []


def test_what_it_starts_from_counts_too(workspace: Workspace, corpus: str) -> None:
    made = workspace.job("train-1")
    spec = {"id": "train-1", "kind": "training", "config": {"query_set": "gone", "retriever": RETRIEVER}}
    write_json(made / "spec.json", spec)
    room.write_hashes(made / "results", [f"What does mill {i} grind?" for i in (12, 13)])
    judged = load_benchmark(workspace.benchmark("mills"), "test")
    assert room.counts(workspace, "train-1", judged) == {"leaked_queries": 2}
    write_json(workspace.job("train-2") / "spec.json", {**spec, "config": {"query_set": "x", "retriever": "train-1"}})
    assert room.counts(workspace, "train-2", judged) == {"leaked_queries": 2}
    assert room.counts(workspace, RETRIEVER, judged) == {}
    config = TrainingConfig(query_set=imported(workspace, corpus, "trained", "train"), retriever="train-1")
    found = leakage.of_training(workspace, config, [("mills", "test")])
    assert [leak.sentence for leak in found] == [
        "The training of train-1 holds 2 of the 8 queries that mills test judges."
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("held_jobs")
def test_a_yes_is_kept_with_the_training(workspace: Workspace, corpus: str) -> None:
    config = TrainingConfig(query_set=imported(workspace, corpus, "tested", "test"), retriever=RETRIEVER)
    begun = training.start(workspace, config, benchmarks=[("mills", "test")], allow_leakage=True)
    spec = json.loads((workspace.job(begun.job_id) / "spec.json").read_text())
    assert spec["inputs"]["leakage"][0]["queries"] == 8
    other = load_benchmark(write_benchmark(workspace.benchmark("other")))
    counts = room.counts(workspace, begun.job_id, other)
    assert counts["leaked_training"] == 1  # whatever it is evaluated on, and for ever
    assert room.marks(counts)[0] == "leaked"


@pytest.mark.slow
def test_a_result_says_what_it_was_made_of(workspace: Workspace) -> None:
    counts = {"judged_queries": 3, "leaked_queries": 3, "steps_taken": 1, "steps_planned": 116}
    made = evaluation(workspace, "t", "mills", {"q1": 0.9, "q2": 0.8, "q3": 0.7}, kind="job", counts=counts)
    (row,) = [row for row in board.list_evaluations(workspace) if row["id"] == made]
    assert room.marks(row["counts"]) == ("leaked", "stopped at step 1 of 116")
    assert [badge.meaning for badge in board.badges_from_counts(row["counts"])] == [
        "Leaked: 3 of the 3 judged queries were trained on.",
        "The training was stopped at step 1 of 116: this is no score of a whole one.",
    ]


def test_judged_queries_are_left_out_of_a_copy(workspace: Workspace, corpus: str) -> None:
    """A generator may write a benchmark's query by chance: the rest of the set is trained on without a mark."""
    texts = {
        "d1": ["What does mill 13 grind?", "Where is mill 1?"],
        "d2": ["Where is mill 2?"],
        "d14": ["what does MILL 14 grind"],
    }
    name = asked(workspace, corpus, "written", texts, kind="synthetic")  # type: ignore[arg-type]
    whole = query_sets.load(workspace, name)
    copy, n = query_services.leave_out(workspace, "written", [("mills", "test")])
    assert n == 2
    assert [(q.id, q.text) for q in iter_queries(workspace, copy.id)] == [
        ("d1-1", "Where is mill 1?"), ("d2-1", "Where is mill 2?"),
    ]  # fmt: skip
    assert (copy.n_documents, copy.n_queries, copy.complete, copy.kind) == (2, 2, True, "synthetic")
    assert copy.parameters["made_from"] == name
    assert copy.parameters["without"] == {"judged_by": ["mills:test"], "queries": 2}
    assert query_sets.load(workspace, name) == whole, "the set itself stays"
    config = TrainingConfig(query_set=copy.id, retriever=RETRIEVER)
    assert leakage.of_training(workspace, config, [("mills", "test")]) == []
    assert query_services.leave_out(workspace, copy.id, [("mills", "test")]) == (copy, 0)
    again, _ = query_services.leave_out(workspace, "written", [("mills", "test")])
    assert again.id == copy.id, "the same copy is made once"


def test_nothing_is_left_of_a_set_that_a_benchmark_judges(workspace: Workspace, corpus: str) -> None:
    name = imported(workspace, corpus, "tested", "test")
    with pytest.raises(InputError, match="Nothing of tested would stay"):
        query_services.leave_out(workspace, name, [("mills", "test")])
    assert [query_set.id for query_set in query_sets.list_query_sets(workspace)] == [name]
