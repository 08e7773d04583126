"""What failed in a job that ended is tried again, one item or all, and what went well is not paid again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import Workspace, read_json
from cdp.benchmarks import judged, load_benchmark
from cdp.cli import main
from cdp.corpus import CorpusManifest
from cdp.services import jobs
from tests.judging.conftest import by_animal, settings
from tests.judging.test_judge_job import run
from tests.pages.conftest import Open, open_page
from tests.synthesis.server import MODEL, ChatServer, marked

__all__ = ["open_page"]

pytestmark = pytest.mark.slow


def test_a_failed_pair_is_judged_again_alone(
    workspace: Workspace, corpus: CorpusManifest, log: Path, judge: ChatServer, jobs_here: None
) -> None:
    bad = {"lynx", "newt", "toad"}

    def answer(prompt: str, m: int) -> str:
        animal = marked(prompt, "query").split()[3]
        unread = animal in bad and f"The {animal} of valley 1" in marked(prompt, "passage")
        return "I would rather not say." if unread else by_animal(prompt, m)

    judge.answer = answer
    folder, state = run(workspace, settings(corpus, log, retrievers="bm25", depth=3))
    assert state == "finished"
    job, made = folder.name, workspace.benchmark("animals-judged")
    first, second, third = [str(line["id"]) for line in jobs.failed(workspace, job).first]
    paid, graded = len(judge.bodies), len(judged.read_grades(made))
    judged.add_labels(made, "q1", {"heron-0": 3}, "Ada")

    bad.clear()
    with pytest.raises(NotFoundError, match="nobody"):
        jobs.retry(workspace, job, ["nobody"])
    assert main(["jobs", "retry", job, "--item", second, "--wait"]) == 0
    assert len(judge.bodies) == paid + 1, "one pair is asked"
    assert {str(line["id"]) for line in jobs.failed(workspace, job).first} == {first, third}
    assert jobs.show(workspace, job).n_failures == 2
    assert len(judged.read_grades(made)) == graded + 1
    query, document = second.split()
    assert document in load_benchmark(made).qrels[query]
    assert judged.read_labels(made) == [judged.Label("q1", "heron-0", 3, "Ada")], "people's labels stay"

    assert main(["jobs", "retry", job, "--wait"]) == 0
    assert len(judge.bodies) == paid + 3
    result = read_json(folder / "results" / "judging.json")
    assert (result["failures"], result["judged"]) == (0, result["pairs"])
    assert jobs.show(workspace, job).n_failures == 0
    with pytest.raises(ConfigError, match="nothing that can be tried again"):
        jobs.retry(workspace, job)


def test_a_failed_document_gets_its_queries_alone_by_the_button(
    workspace: Workspace, corpus: CorpusManifest, judge: ChatServer, jobs_here: None, open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    bad = {"heron", "lynx"}

    def answer(prompt: str, m: int) -> str:
        return (
            "I cannot help." if any(animal in prompt for animal in bad) else json.dumps([f"what is {n}" for n in "ab"])
        )

    judge.answer = answer
    asked = {"corpus": corpus.id, "method": "diverse", "per_doc": 2}
    endpoint = {"generator": "openai", "model": MODEL, "base_url": judge.url}
    config = SynthesisConfig.from_dict({**asked, **endpoint})
    job = jobs.start(workspace, "synthesis", config)
    view = jobs.show(workspace, job)
    assert str(view.state) == "finished"
    failed = [str(line["id"]) for line in jobs.failed(workspace, job).first]
    query_set = jobs.written_set(view)
    before = {line.document_id: line.queries for line in query_sets.read_queries(workspace, query_set)}
    assert len(failed) > 1
    assert not before.keys() & set(failed)

    bad.clear()
    paid = len(judge.bodies)
    jobs.retry(workspace, job, failed[:1])
    assert len(judge.bodies) == paid + 1
    after = {line.document_id: line.queries for line in query_sets.read_queries(workspace, query_set)}
    assert after == before | {failed[0]: after[failed[0]]}
    assert [str(line["id"]) for line in jobs.failed(workspace, job).first] == failed[1:]

    at = open_page("jobs", job=job)
    at.session_state[f"failed_{job}"] = True
    at.run()
    button = at.button(key=f"retry_{job}")
    assert button.label == "Try all of them again"
    begun: list[object] = []
    with monkeypatch.context() as patched:  # a worker runs in the main thread alone, and a page under test in none
        patched.setattr("cdp.jobs._start_supervisor", lambda *of, **more: begun.append(of))
        button.click().run()
    assert not at.exception
    assert (len(begun), read_json(workspace.job(job) / "retry.json")) == (1, [])
    jobs.resume(workspace, job)
    done = query_sets.load(workspace, query_set)
    assert (done.complete, done.n_failures, done.n_documents) == (True, 0, len(before) + len(failed))
    assert jobs.show(workspace, job).n_failures == 0
