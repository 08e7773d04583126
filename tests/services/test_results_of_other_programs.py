"""Results of other programs: a TREC run becomes an evaluation with the same scores."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest

from cdp.base.errors import InputError, NotFoundError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import load_benchmark
from cdp.corpus import sources
from cdp.results import board, differences
from cdp.services import evaluation
from cdp.workers import importing
from cdp.workers.importing import read_results, read_run
from tests.cli.support import refusal, run
from tests.support import work

N = 12


@pytest.fixture
def benchmark(workspace: Workspace) -> Path:
    """Twelve documents and twelve queries with graded judgments; q11 is never judged."""
    folder = workspace.benchmark("sea")
    (folder / "qrels").mkdir(parents=True)
    for name, kind in (("corpus", "d"), ("queries", "q")):
        lines = [{"_id": f"{kind}{i}", "title": "", "text": f"{name} number {i}"} for i in range(N)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    judged = "".join(f"q{i}\td{(i + j) % N}\t{3 - j}\n" for i in range(N - 1) for j in range(3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return folder


def a_run(seed: int) -> dict[str, dict[str, float]]:
    """Ten documents for each query, with ties, and nothing for q3."""
    random = np.random.default_rng(seed)
    return {
        f"q{i}": {f"d{d}": float(random.integers(0, 6)) + 1e-9 * d for d in random.permutation(N)[:10]}
        for i in range(N)
        if i != 3
    }


QRELS = {f"q{i}": {f"d{(i + j) % N}": 3 - j for j in range(3)} for i in range(N - 1)}
MEASURES = {"nDCG@10": "ndcg@10", "P@1": "p@1", "R@10": "recall@10"}


def trec(run: dict[str, dict[str, float]]) -> str:
    return "".join(f"{q} Q0 {d} 0 {float(s)!r} them\n" for q, scores in run.items() for d, s in scores.items())


def imported(workspace: Workspace, name: str, path: Path, **config: str) -> str:
    """Import it in this process; the evaluation's id."""
    job = workspace.job(f"import-{name}")
    values = {"path": str(path), "retriever": name, "benchmark": "sea", **config}
    spec = {"id": job.name, "kind": "import", "name": name, "config": values, "module": "none", "created": "2026-11-27"}
    write_json(job / "spec.json", spec)
    assert work("cdp.workers.importing", job) == 0
    return job.name


@pytest.mark.slow
def test_a_run_of_another_program_scores_here_what_ir_measures_gives_it(
    workspace: Workspace, benchmark: Path, tmp_path: Path
) -> None:
    path = tmp_path / "them.run.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(trec(a_run(0)))
    job = imported(workspace, "them", path)
    (row,) = board.list_evaluations(workspace)
    assert (row["retriever_name"], row["benchmark"], row["n_queries"]) == ("them", "sea", N - 1)

    names = {ours: ir_measures.parse_measure(theirs) for theirs, ours in MEASURES.items()}
    means = ir_measures.calc_aggregate(names.values(), QRELS, a_run(0))
    record = read_json(workspace.job(job) / "results" / "evaluation.json")
    for ours, measure in names.items():
        assert record["measures"][ours] == pytest.approx(means[measure], abs=1e-9), ours
    assert row["ndcg@10"] == pytest.approx(means[names["ndcg@10"]], abs=1e-9)
    counts = {"judged_queries": N - 1, "judged_without_results": 1, "queries_not_judged": 1, "excluded_pairs": 0}
    assert record["counts"] == counts


@pytest.mark.slow
def test_a_kept_run_is_written_as_trec_and_read_back(workspace: Workspace, benchmark: Path, tmp_path: Path) -> None:
    (tmp_path / "them.run").write_text(trec(a_run(0)).replace(" them", " them, version 2"), encoding="utf-8")
    first = imported(workspace, "them", tmp_path / "them.run")
    path, n = evaluation.export_run(workspace, first, tmp_path / "ours.run")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert (n, lines[0].split()[5:]) == (len(lines), ["them"])
    again = imported(workspace, "again", path)
    measures = [read_json(workspace.job(job) / "results" / "evaluation.json")["measures"] for job in (first, again)]
    assert measures[0] == measures[1]
    with pytest.raises(InputError, match="already"):
        evaluation.export_run(workspace, first, path)
    (workspace.job(again) / "results" / "run.parquet").unlink()
    with pytest.raises(NotFoundError, match="kept run"):
        evaluation.export_run(workspace, again, tmp_path / "none.run")


@pytest.mark.slow
def test_predictions_of_mteb_score_as_a_run_and_its_means_stand_on_the_leaderboard(
    workspace: Workspace, benchmark: Path, tmp_path: Path
) -> None:
    meta = {"model_name": "no_model_name/available", "revision": "no_revision_available"}
    predictions = {"mteb_model_meta": meta, "default": {"dev": {}, "test": a_run(0)}}
    (tmp_path / "sea_predictions.json").write_text(json.dumps(predictions))
    (tmp_path / "them.run").write_text(trec(a_run(0)))
    names = {"run": "them.run", "theirs": "sea_predictions.json"}
    jobs = {name: imported(workspace, name, tmp_path / file) for name, file in names.items()}
    run, theirs = (read_json(workspace.job(job) / "results" / "evaluation.json") for job in jobs.values())
    assert (theirs["measures"], theirs["per_query"], theirs["counts"]) == (
        run["measures"], run["per_query"], run["counts"],
    )  # fmt: skip
    assert theirs["settings"]["imported"] == "mteb-predictions"

    reported = {"ndcg_at_10": 0.4321, "mrr_at_10": 0.5, "precision_at_1": 0.25, "hf_subset": "default"}
    results = {"task_name": "sea", "dataset_revision": "1", "scores": {"test": [reported]}}
    (tmp_path / "sea.json").write_text(json.dumps(results, indent=2))
    imported(workspace, "reported", tmp_path / "sea.json")
    rows = {row["retriever_name"]: row for row in board.list_evaluations(workspace)}
    assert rows["reported"]["ndcg@10"] == 0.4321
    compared = differences.compare(workspace, "run")
    shown = {row.retriever: row for row in compared.rows}
    assert all(row.difference is None for row in differences.compare(workspace, "reported").rows)
    assert (shown["reported"].difference, shown["theirs"].difference) == (None, 0.0)
    assert [badge.word for badge in shown["reported"].badges] == ["means alone"]
    assert shown["reported"].measures == {"ndcg@10": 43.21, "mrr@10": 50.0, "p@1": 25.0}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "ndcg"), [(40, 1.0), (43, 0.0)])
def test_ids_with_a_number_sign_are_no_passages_of_a_file(
    workspace: Workspace, tmp_path: Path, first: int, ndcg: float
) -> None:
    """All of them seem to be passages of ``org/app``; as such a run of wrong documents would be right."""
    folder = workspace.benchmark("sea")
    (folder / "qrels").mkdir(parents=True)
    for name, ids in (("corpus", [f"org/app#{n}" for n in range(40, 46)]), ("queries", ["q1", "q2", "q3"])):
        lines = [{"_id": id, "text": f"{name} {id}"} for id in ids]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    judged = "".join(f"q{n}\torg/app#{39 + n}\t1\n" for n in (1, 2, 3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    (tmp_path / "them.run").write_text(trec({f"q{n}": {f"org/app#{first - 1 + n}": 1.0} for n in (1, 2, 3)}))

    job = imported(workspace, "them", tmp_path / "them.run")
    measures = read_json(workspace.job(job) / "results" / "evaluation.json")["measures"]
    assert measures["ndcg@10"] == ndcg
    assert not [name for name in measures if "file" in name]


def lines_of_sentence_transformers(run: dict[str, dict[str, float]]) -> str:
    """As its InformationRetrievalEvaluator writes them with ``write_predictions``."""
    lines = []
    for query, scores in run.items():
        results = [{"corpus_id": document, "score": score} for document, score in scores.items()]
        lines.append(json.dumps({"query_id": query, "query": "a sea", "results": results}) + "\n")
    return "".join(lines)


def test_a_run_as_json_or_with_blanks_in_its_ids_is_the_run(benchmark: Path, tmp_path: Path) -> None:
    run, loaded = a_run(0), load_benchmark(benchmark, "test")
    wanted = {query: scores if query in loaded.qrels else {} for query, scores in run.items()}
    whole = {query: {document: round(score) for document, score in scores.items()} for query, scores in run.items()}
    one = {"q0": run["q0"]}
    indented = json.dumps(json.loads(lines_of_sentence_transformers(one)), indent=2)
    texts = {
        "json-run": [(json.dumps(run), wanted), (json.dumps(whole, indent=2), {**whole, "q11": {}})],
        "sentence-transformers-predictions": [(lines_of_sentence_transformers(run), wanted), (indented, one)],
        "trec-run": [(trec(run).replace(" ", "\t"), wanted)],
    }
    path = tmp_path / "file"
    for form, files in texts.items():
        for text, held in files:
            path.write_text(text, encoding="utf-8")
            assert read_results(path, loaded) == (form, held)

    # Whole numbers are ids, and larger than a float counts.
    path.write_text('{"query_id": 7, "results": [{"corpus_id": 9007199254740993, "score": 1}]}', encoding="utf-8")
    (held,) = importing._predictions(path.read_text(encoding="utf-8"), {"7"}, path).items()
    assert held == ("7", {"9007199254740993": 1.0})

    path.write_text("q0\tQ0\td 1\t1\t0.5\tthe tag\nq0\tQ0\td 2\t2\t0.4\tthe tag\n", encoding="utf-8")
    assert read_run(path, {"q0"}) == {"q0": {"d 1": 0.5, "d 2": 0.4}}


def test_runs_of_ms_marco_and_colbert(benchmark: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.tsv"
    path.write_text("".join(f"q{q}\td {d}\t{d}\n" for q in range(2) for d in (1, 2, 3)), encoding="utf-8")
    run = read_run(path, {"q0", "q1"})
    assert [sorted(run[query], key=run[query].__getitem__) for query in run] == [["d 3", "d 2", "d 1"]] * 2

    path.write_text("".join(f"q0\td{d}\t{d}\t{12.5 - d}\n" for d in (1, 2)), encoding="utf-8")
    assert read_run(path, {"q0"}) == {"q0": {"d1": 11.5, "d2": 10.5}}

    # Judgments, and scores where ranks were meant.
    for text in (
        "q0\t0\td1\t1\nq0\t0\td2\t0\n",
        "q0\td1\t57\nq0\td2\t43\n",
        "q0\td1\t1.5\nq0\td2\t0.5\n",
        "q0 d1 1\n",
        "q0\td1\t1\t\n",
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError):
            read_run(path, {"q0"})

    path.rename(tmp_path / "run.parquet")
    with pytest.raises(InputError, match="not read from this format"):
        read_results(tmp_path / "run.parquet", load_benchmark(benchmark, "test"))


def test_distances_in_place_of_scores_are_refused(tmp_path: Path) -> None:
    """trec_eval orders by score alone: the best document would be the last one."""
    lines = [f"q{query} Q0 d{rank} {rank} {rank / 10} faiss" for query in range(3) for rank in range(4)]
    path = tmp_path / "file"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="For 3 of 3 queries the first rank has a lower score than the last"):
        read_run(path, {"q0", "q1", "q2"})
    path.write_text("".join(f"q0 Q0 d{i} {0.9 - i / 10} {i} them\n" for i in range(4)), encoding="utf-8")
    with pytest.raises(InputError, match="Its ranks are fractions"):
        read_run(path, {"q0"})

    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_run(path, {"q7"}) == {"q0": {}, "q1": {}, "q2": {}}


HUGE = int("9" * 400)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"ndcg_at_10": HUGE}, "ndcg@10 is 9+…, not between 0 and 1"),
        ({"ndcg_at_10": 0.5, "mrr_at_10": 7}, "mrr@10 is 7, not between"),
        ({"ndcg_at_10": 0.5, "map_at_100": float("nan")}, "map@100 is nan, not"),
        (5, "It has no scores of the split 'test'"),
    ],
)
def test_means_of_mteb_that_are_none_are_named(benchmark: Path, tmp_path: Path, row: Any, problem: str) -> None:
    path = tmp_path / "sea.json"
    path.write_text(json.dumps({"task_name": "sea", "scores": {"test": [row]}}))
    with pytest.raises(InputError, match=problem):
        read_results(path, load_benchmark(benchmark, "test"))


@pytest.mark.slow
@pytest.mark.parametrize(("score", "problem"), [(HUGE, "9+… is no score, of the query 'q0'"), (True, "True is no")])
def test_scores_of_mteb_that_are_none_are_named(benchmark: Path, tmp_path: Path, score: float, problem: str) -> None:
    path = tmp_path / "sea.json"
    path.write_text("\n " + json.dumps({"default": {"test": {"q0": {"d0": score}}}}))
    with pytest.raises(InputError, match=problem):
        read_results(path, load_benchmark(benchmark, "test"))


BROKEN = {
    " \n": "The file is empty",
    "q0 Q0 d0 1 0.5\n": "It has 5 fields, not six",
    "q0 Q0 d0 1 0.5 x\nq0 Q0 d1 0.5 x\n": "line 2: It has 5 fields",
    "q0 Q0 d0 1 0.5 x\nq0 Q0 d0 2 0.4 x\n": "line 2: The document 'd0' is listed twice",
    "q0 Q0 d0 1 nan x\n": "'nan' is no score",
    f"q0 Q0 d0 1 {'9' * 5000} x\n": "is no score",
    "q0 Q0 d0 1 0.5 x\nq1 Q0 nowhere 1 0.5 x\n": "1 of its documents are not in sea (first: 'nowhere')",
    "q99 Q0 d0 1 0.5 x\n": "Not one of its 1 queries is judged",
    '{"task_name": "sea", "scores": {}}': "It has no scores of the split 'test'. There is: no split.",
    '{"task_name": "sea", "scores": {"test": [{"accuracy": 0.5}]}}': "no ndcg_at_10",
    '{"task_name": "sea", "scores": {"test": [{"ndcg_at_10": 0.5}, {"ndcg_at_10": 0.6}]}}': "several subsets",
    '{"default": {"dev": {"q0": {"d0": 1.0}}}}': "It holds 0 subsets with the split 'test'",
    '{"default": {"test": {"q0": {"d0": "high"}}}}': "is no score",
    '{"default": {"test": {"q0": {"d0": 1.0}': "This is no JSON",
    '{"q0": {"d0": 1.0}, "q1": {"d0": "high"}}': "is no score, of the query 'q1'",
    '[{"query_id": "q0", "results": []}]': "This JSON is a list",
    '{"NDCG@10": 0.5, "NDCG@100": 0.6}': "JSON as {query: {document: score}}",
    '{"query_id": "q0", "results": []}\n{"query": 3}': "line 2: This line has no query_id with results",
    '{"query_id": "q0", "results": []}\n{"query_id": "q0", "results": []}': "line 2: The query 'q0' is there twice",
    f"q0 Q0 {'d' * 5000} 1 0.5 x\nq0 Q0 {'d' * 5000} 2 0.4 x\n": "is listed twice",
}


def test_a_damaged_gzip_file_is_said_to_be_unreadable(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"q0 Q0 d0 1 0.5 x\n" * 1000))
    packed[12:30] = b"\xff" * 18
    path = tmp_path / "run.gz"
    path.write_bytes(packed)
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_run(path, {"q0"})


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_gigabytes_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "FLOOR", 10**6)
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(b"x" * (1 << 23)))
    assert path.stat().st_size < 1 << 14
    with pytest.raises(InputError, match="unpacks to more than"):
        read_run(path, {"q0"})


@pytest.mark.slow
def test_what_cannot_be_imported_says_why(workspace: Workspace, benchmark: Path, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for number, (text, reason) in enumerate(BROKEN.items()):
        path.write_text(text, encoding="utf-8")
        job = workspace.job(f"import-{number}")
        config = {"path": str(path), "retriever": "them", "benchmark": "sea"}
        write_json(job / "spec.json", {"id": job.name, "kind": "import", "config": config})
        assert work("cdp.workers.importing", job) != 0
        failure = read_json(job / "failure.json")
        assert reason in f"{failure['message']} {failure['hint']}", text
    command = ("results", "import", str(path), "--benchmark", "sea", "--retriever")
    assert "stand as its own" in refusal(*command, "minilm")
    assert "stand as its own" in refusal(*command, "bm25:fr")
    assert "There is no file" in refusal("results", "import", str(tmp_path / "none"), *command[3:], "them")


@pytest.mark.slow
def test_a_run_of_one_document_per_query_has_ndcg_at_10(workspace: Workspace, benchmark: Path, tmp_path: Path) -> None:
    short = {query: {"d0": 1.0} for query in QRELS}
    (tmp_path / "short.run").write_text(trec(short), encoding="utf-8")
    imported(workspace, "short", tmp_path / "short.run")
    (row,) = board.list_evaluations(workspace)
    wanted = ir_measures.parse_measure("nDCG@10")
    assert row["ndcg@10"] == pytest.approx(ir_measures.calc_aggregate([wanted], QRELS, short)[wanted])


@pytest.mark.slow
@pytest.mark.usefixtures("jobs_here")
def test_a_run_is_imported_from_the_command_line_as_a_job(
    workspace: Workspace, benchmark: Path, tmp_path: Path
) -> None:
    (tmp_path / "them.run").write_text(trec(a_run(3)), encoding="utf-8")
    words = ("--benchmark", "sea", "--retriever", "them", "--wait")
    run("results", "import", str(tmp_path / "them.run"), *words)
    (row,) = board.list_evaluations(workspace)
    assert row["retriever_name"] == "them"
