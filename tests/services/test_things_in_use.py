"""Nothing is deleted under a job that reads or writes it: the refusal names the job."""

from __future__ import annotations

from typing import Any

import pytest

from cdp import jobs, query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest
from cdp.services import benchmarks, corpora, queries
from cdp.services import jobs as service
from cdp.synthesis.work import query_set_id
from tests.pages.support import ended_job
from tests.services.conftest import HeldJobs


def submitted(workspace: Workspace, kind: str, config: dict[str, Any], inputs: dict[str, Any]) -> str:
    return jobs.submit(workspace, kind=kind, name=f"a {kind}", module="none", config=config, inputs=inputs)


def _begun(query_set_id: str, corpus: CorpusManifest) -> query_sets.QuerySet:
    return query_sets.QuerySet(
        id=query_set_id, name="being written", corpus_id=corpus.id, corpus_hash=corpus.content_hash, method="diverse",
        generator="template", model="", per_doc=5, prompt_hash="", language="en",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "config", "inputs"),
    [
        ("train", {"query_set": "{set}"}, {}),
        ("metrics", {"query_set": "other", "human": "{set}"}, {}),
        ("study", {}, {"sources": [{"kind": "human", "query_set": "{set}"}]}),
    ],
)
@pytest.mark.usefixtures("with_demo")
def test_a_query_set_that_a_job_needs_stays(
    workspace: Workspace, held_jobs: HeldJobs, kind: str, config: dict[str, Any], inputs: dict[str, Any]
) -> None:
    found = queries.list_query_sets(workspace)[0].id

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: named(item) for key, item in value.items()}
        return [named(item) for item in value] if isinstance(value, list) else value.replace("{set}", found)

    job_id = submitted(workspace, kind, named(config), named(inputs))
    with pytest.raises(ConfigError, match=rf"is needed by .*{job_id}"):
        queries.delete(workspace, found)
    assert queries.show(workspace, found).id == found
    held_jobs.end()
    queries.delete(workspace, found)


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_query_set_that_a_job_writes_stays(workspace: Workspace, held_jobs: HeldJobs) -> None:
    corpus = corpora.list_corpora(workspace)[0]
    config = {"corpus": corpus.id, "name": "being written"}
    job_id = submitted(workspace, "synthesis", config, {})
    written = query_set_id(job_id, SynthesisConfig.from_dict(config))
    query_sets.create(workspace, _begun(written, corpus))
    with pytest.raises(ConfigError, match=job_id):
        queries.delete(workspace, written)
    held_jobs.end()
    queries.delete(workspace, written)


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_corpus_a_benchmark_and_a_model_that_a_job_needs_stay(workspace: Workspace, held_jobs: HeldJobs) -> None:
    corpus = corpora.list_corpora(workspace)[0]
    for query_set in queries.list_query_sets(workspace):
        queries.delete(workspace, query_set.id)
    trained = "train-1"
    ended_job(workspace, trained, "train", {"name": "demo"})
    config = {"corpus": corpus.id, "benchmark": "demo", "retriever": trained}
    submitted(workspace, "evaluation", config, {})
    with pytest.raises(ConfigError, match="The corpus demo is needed by"):
        corpora.delete(workspace, corpus.id)
    with pytest.raises(ConfigError, match="The benchmark demo is needed by"):
        benchmarks.delete(workspace, "demo")
    with pytest.raises(ConfigError, match=f"The job {trained} is needed by"):
        service.delete(workspace, trained)
    held_jobs.end()
    service.delete(workspace, trained)
    benchmarks.delete(workspace, "demo")
    corpora.delete(workspace, corpus.id)


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo", "held_jobs")
def test_what_a_job_calls_its_own_result_is_not_needed_by_it(workspace: Workspace) -> None:
    assert workspace.benchmark("demo").is_dir()
    submitted(workspace, "train", {"name": "demo", "query_set": "another"}, {})
    benchmarks.delete(workspace, "demo")
    assert not workspace.benchmark("demo").exists()
