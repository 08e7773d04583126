"""An evaluation in the files of other tools, and what two retrievers put first: on results that a worker wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import Workspace, new_id, write_json
from cdp.benchmarks.benchmark import load_benchmark
from cdp.evaluation.evaluate import in_trec_order, judge
from cdp.evaluation.results import write_run
from cdp.services import result_errors as result_errors
from cdp.services import result_files as result_files
from cdp.services import results
from cdp.ui.compare.details import underlined

pytestmark = pytest.mark.slow

CORPUS = [
    {"_id": "moby-1", "title": "Moby Dick", "text": "Call me Ishmael, said the sailor."},
    {"_id": "moby-2", "title": "Moby Dick", "text": "The white whale breached at dawn."},
    {"_id": "emma-1", "title": "Emma", "text": "Emma Woodhouse, handsome, clever, and rich."},
    {"_id": "emma-2", "title": "Emma", "text": "A match was made at <b>Highbury</b>."},
]
QUERIES = [
    {"_id": "q1", "text": "Who is called Ishmael by the sailor?"},
    {"_id": "q2", "text": "white whale breached"},
    {"_id": "q3", "text": "clever Emma Woodhouse"},
    {"_id": "q4", "text": "match at Highbury"},
]
QRELS = "q1\tmoby-1\t2\nq2\tmoby-2\t1\nq3\temma-1\t1\nq4\temma-2\t1\nq4\temma-1\t1\n"
BASELINE = [[1, 0], [1, 0], [2, 3], [0, 2]]  # documents by rank: q1 the wrong page, q4 another book
OTHER = [[0, 1], [1, 2], [0, 2], [3, 2]]  # q3 another book


@pytest.fixture
def evaluations(workspace: Workspace) -> tuple[str, str]:
    """Two evaluations as the worker leaves them; their ids."""
    folder = workspace.benchmark("books")
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in CORPUS))
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in QUERIES))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{QRELS}")
    return _evaluated(workspace, folder, "before", BASELINE), _evaluated(workspace, folder, "after", OTHER)


def _evaluated(workspace: Workspace, folder: Path, retriever: str, ranked: list[list[int]]) -> str:
    benchmark = load_benchmark(folder)
    scores = np.tile(np.array([0.9, 0.5], np.float32), (len(ranked), 1))
    ranking = in_trec_order(benchmark, np.array(ranked, np.int64), scores)
    means, per_query, _ = judge(benchmark, ranking)
    ndcg = per_query.get("ndcg@10")
    if ndcg is None:  # a run of two documents: the worker keeps at least ten
        padded = np.full((len(ranked), 10), -1, np.int64)
        padded[:, :2] = ranking.documents
        means, per_query, _ = judge(benchmark, type(ranking)(padded, np.pad(ranking.scores, ((0, 0), (0, 8)))))
    job_id = new_id("evaluation")
    job = workspace.job(job_id)
    write_run(job / "results" / "run.parquet", benchmark, ranking)
    write_json(
        job / "results" / "evaluation.json",
        {
            "schema": 1, "id": job_id, "retriever": {"id": retriever, "name": retriever, "kind": "preset", "hash": "h"},
            "benchmark": {"name": "books", "folder": str(folder), "split": "test", "hash": benchmark.hash,
                          "n_queries": 4, "n_documents": 4},
            "protocol": "published", "settings": {"top_k": 10}, "measures": means,
            "per_query": {"query_ids": benchmark.query_ids, **{k: v.tolist() for k, v in per_query.items()}},
            "counts": {}, "seconds": 1.5, "created": "2026-01-01T00:00:00+00:00",
        },
    )  # fmt: skip
    write_json(job / "spec.json", {"id": job_id, "kind": "evaluation", "name": job_id, "config": {}})
    return job_id


def test_the_exported_run_scores_what_the_evaluation_says(
    workspace: Workspace, evaluations: tuple[str, str], tmp_path: Path
) -> None:
    qrels: dict[str, dict[str, int]] = {}
    path = result_files.save(workspace, evaluations[0], "trec-qrels", tmp_path / "books.qrels")
    for line in path.read_text().splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    assert qrels["q1"] == {"moby-1": 2}
    for evaluation in evaluations:
        lines = result_files.save(workspace, evaluation, "trec-run", tmp_path).read_text().splitlines()
        run = pytrec_eval.parse_run(lines)
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
        mean = np.mean([theirs[query]["ndcg_cut_10"] for query in qrels])
        (row,) = [row for row in results.list_results(workspace) if row["id"] == evaluation]
        assert 100 * mean == pytest.approx(row["ndcg@10"], abs=1e-7)


def test_the_mteb_file_has_its_schema_and_says_who_wrote_it(workspace: Workspace, evaluations: tuple[str, str]) -> None:
    found = json.loads(result_files.content(workspace, evaluations[0], "mteb"))
    assert set(found) == {
        "dataset_revision", "task_name", "mteb_version", "scores", "evaluation_time", "kg_co2_emissions", "date",
        "cdp_studio",
    }  # fmt: skip
    (scores,) = found["scores"]["test"]
    (row,) = [row for row in results.list_results(workspace) if row["id"] == evaluations[0]]
    assert scores["main_score"] == scores["ndcg_at_10"] == pytest.approx(row["ndcg@10"] / 100)
    assert (scores["hf_subset"], scores["languages"]) == ("default", ["eng-Latn"])
    assert scores["precision_at_1"] == 0.5
    assert (found["mteb_version"], found["kg_co2_emissions"], found["evaluation_time"]) == (None, None, 1.5)
    assert "CDP Studio" in found["cdp_studio"]["note"]


def test_a_result_is_found_by_the_beginning_of_its_id(workspace: Workspace, evaluations: tuple[str, str]) -> None:
    with pytest.raises(NotFoundError):
        result_files.content(workspace, "nothing", "mteb")
    with pytest.raises(ConfigError, match="beginning of 2"):
        result_files.content(workspace, "evaluation", "mteb")
    with pytest.raises(ConfigError, match="trec-run, trec-qrels, mteb, mteb-predictions, ir-measures"):
        result_files.content(workspace, evaluations[0], "pdf")


def test_wins_and_losses_at_rank_1_with_their_sources(workspace: Workspace, evaluations: tuple[str, str]) -> None:
    found = result_errors.analyse(workspace, *evaluations)
    assert (found.n_queries, found.both, found.neither) == (4, 1, 0)
    assert [(case.query_id, case.kind) for case in found.wins] == [
        ("q1", result_errors.SAME_SOURCE),
        ("q4", result_errors.OTHER_SOURCE),
    ]
    assert [case.query_id for case in found.losses] == ["q3"]
    first = found.wins[0]
    assert first.right is not None
    assert first.wrong is not None
    assert (first.right.id, first.wrong.id) == ("moby-1", "moby-2")
    assert "ishmael" in first.words
    assert found.rule == "Passages with the same title come from one source."
    assert sum(bucket.n for bucket in found.gains) == 4


def test_a_source_may_be_number_zero_and_lie_in_the_metadata(workspace: Workspace, tmp_path: Path) -> None:
    folder = workspace.benchmark("books")
    (folder / "qrels").mkdir(parents=True)
    books = [{"book": 0}, {"book": 0}, {"metadata": {"book": 1}}, {"book": None, "metadata": {"book": 1}}]
    lines = [{**line, **book, "title": ""} for line, book in zip(CORPUS, books, strict=True)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in QUERIES))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{QRELS}")
    ids = (_evaluated(workspace, folder, "before", BASELINE), _evaluated(workspace, folder, "after", OTHER))
    found = result_errors.analyse(workspace, *ids)
    assert found.rule == "Passages with the same book come from one source."
    assert [case.kind for case in found.wins] == [result_errors.SAME_SOURCE, result_errors.OTHER_SOURCE]


def test_words_are_underlined_and_everything_else_is_text() -> None:
    assert underlined("A match at <b>Highbury</b>, rematch", {"match", "highbury"}) == (
        "A <u>match</u> at &lt;b&gt;<u>Highbury</u>&lt;/b&gt;, rematch"
    )
    assert underlined("白鲸 <i>", {"白鲸"}) == "<u>白鲸</u> &lt;i&gt;"
    assert underlined("", {"x"}) == ""
    assert underlined("мир, мирный; été, étés", {"мир", "été"}) == "<u>мир</u>, мирный; <u>été</u>, étés"
    assert underlined("고래는 바다에", {"고래", "바다"}) == "<u>고래</u>는 <u>바다</u>에"
    pieces = result_errors.marked("c++ and C++", {"c++"})
    assert "".join(piece for piece, _ in pieces) == "c++ and C++"
