"""NDCG@10 of each kind of retriever is that of sentence-transformers' own evaluators, given the folder of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.worker import Job
from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark, load_benchmark
from cdp.evaluation import evaluate_model
from cdp.retrievers import DENSE, MULTI_VECTOR, SPARSE, load, resolve
from cdp.retrievers.load import kind_of
from cdp.services import demo
from tests.support import REPOSITORY, shared
from tests.support_models import tiny_multi_vector, tiny_retriever, tiny_sparse
from tests.training.conftest import write_job

pytestmark = pytest.mark.slow

# On the scale of 0 to 100. Our token vectors are kept in half precision, which may swap documents of nearly equal
# score.
TOLERANCE = 0.01


def of_the_library(folder: Path, kind: str, benchmark: Benchmark) -> float:
    """NDCG@10 in [0, 1] by the library's evaluator of this kind."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder
    from sentence_transformers.multi_vector_encoder.evaluation import MultiVectorInformationRetrievalEvaluator
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    from sentence_transformers.sparse_encoder.evaluation import SparseInformationRetrievalEvaluator

    encoder, evaluator = {
        DENSE: (SentenceTransformer, InformationRetrievalEvaluator),
        MULTI_VECTOR: (MultiVectorEncoder, MultiVectorInformationRetrievalEvaluator),
        SPARSE: (SparseEncoder, SparseInformationRetrievalEvaluator),
    }[kind]

    relevant = {}
    for query, grades in benchmark.qrels.items():
        relevant[query] = {document for document, grade in grades.items() if grade > 0}

    judge = evaluator(
        dict(zip(benchmark.query_ids, benchmark.queries, strict=True)),
        dict(zip(benchmark.document_ids, benchmark.documents, strict=True)),
        relevant, write_csv=False,
    )  # fmt: skip
    model = encoder(str(folder), device="cpu")
    found = judge(model)

    return float(found[f"{model.similarity_fn_name}_ndcg@10"])


@pytest.mark.parametrize(
    ("make", "kind"), [(tiny_retriever, DENSE), (tiny_multi_vector, MULTI_VECTOR), (tiny_sparse, SPARSE)]
)
def test_a_folder_of_each_kind_on_the_demo(make, kind: str, tmp_path: Path, workspace: Workspace) -> None:
    benchmark = load_benchmark(REPOSITORY / "data" / "demo")
    folder = make(tmp_path / kind)
    model = load(resolve(str(folder), workspace), "cpu")
    assert kind_of(model) == kind

    found = 100 * evaluate_model(model, benchmark).measures["ndcg@10"]
    assert 1 < found < 99
    assert found == pytest.approx(100 * of_the_library(folder, kind, benchmark), abs=TOLERANCE)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["demo", "musique_sample"])
@pytest.mark.parametrize("retriever", ["minilm", "minilm-multi", "minilm-sparse"])
def test_a_shipped_retriever_trained_here(retriever: str, name: str, workspace: Workspace) -> None:
    from cdp.workers.training import main

    benchmark = load_benchmark(REPOSITORY / "data" / "demo" if name == "demo" else shared(f"data/{name}"))
    demo.load(workspace, tested=False)
    query_set = query_sets.list_query_sets(workspace)[0]
    job = write_job(
        workspace, "training-1", query_set=query_set.id, retriever=retriever, steps=20, batch_size=16,
        max_length=64,
    )  # fmt: skip
    main(Job(job))

    resolved = resolve("training-1", workspace)
    model = load(resolved, "cpu")
    found = 100 * evaluate_model(model, benchmark).measures["ndcg@10"]
    assert found > 10
    assert found == pytest.approx(100 * of_the_library(job / "model", resolved.kind, benchmark), abs=TOLERANCE)
