"""Searching by hand: what is refused is refused in a sentence, and one retriever's trouble is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base import permission
from cdp.base.config import IndexConfig
from cdp.base.errors import InputError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.corpus import list_corpora
from cdp.services import jobs, search
from cdp.serving import client
from tests.pages.support import ended_job

pytestmark = pytest.mark.slow  # a first search loads the stemmer's library for a second


@pytest.fixture
def corpus(workspace: Workspace, with_demo: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The demo's corpus; no search process is started: every search here is answered in this process."""
    monkeypatch.setenv(client.RUNTIME, str(tmp_path / "run"))
    return list_corpora(workspace)[0].id


def found(workspace: Workspace, query: str, retrievers: list[str], corpus: str, k: int = 10) -> search.Searched:
    return search.search(workspace, query, retrievers, corpus, k, in_process=True)


def test_one_retriever_that_fails_leaves_the_others(workspace: Workspace, corpus: str) -> None:
    done = found(workspace, "how do honeybees find flowers", ["no-such thing!", "bm25", "bm25:fr"], corpus, 5)
    assert [bool(a.problem) for a in done.answers] == [True, False, False]
    assert [hit.rank for hit in done.answers[1].hits] == [1, 2, 3, 4, 5]
    assert done.answers[2].title == "BM25 (fr)"
    assert "no-such thing!" in str(done.answers[0].problem)


def test_a_query_that_nobody_can_mean_is_refused_and_any_other_text_is_searched_for(
    workspace: Workspace, corpus: str
) -> None:
    refused = {"": "empty", " \n\t": "empty", "\0": "empty", "x" * (1 << 20): "1,048,576 characters"}
    for query, message in refused.items():
        with pytest.raises(InputError, match=message) as raised:
            found(workspace, query, ["bm25"], corpus)
        assert len(str(raised.value)) < 300
    for query in ("\ud800 bees", "bees\0flowers", "<b>bees</b> $x$ :smile:", "蜜蜂 ‏ bees", "b" * 10_000):
        assert found(workspace, query, ["bm25"], corpus).answers[0].problem is None, query[:20]


def test_choices_that_cannot_be_searched(workspace: Workspace, corpus: str) -> None:
    for retrievers, k, message in (([], 5, "No retriever"), (["bm25"] * 4, 5, "At most 3"), (["bm25"], 0, "Between")):
        with pytest.raises(InputError, match=message):
            found(workspace, "bees", retrievers, corpus, k)
    with pytest.raises(NotFoundError, match="no-such"):
        found(workspace, "bees", ["bm25"], "no-such")


def test_a_training_without_its_model_and_a_job_of_another_kind(workspace: Workspace, corpus: str) -> None:
    ended_job(workspace, "training-1", "training", {"retriever": "static-minilm"}, name="tuned")
    ended_job(workspace, "evaluation-1", "evaluation", {})
    done = found(workspace, "bees", ["training-1", "evaluation-1", "bm25"], corpus)
    assert [str(a.problem)[:40] for a in done.answers[:2]] == [
        "The training job training-1 has no model",
        "The job evaluation-1 is of kind evaluati",
    ]
    assert done.answers[2].hits


def test_a_read_only_dashboard_searches_and_starts_no_job(
    workspace: Workspace, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(permission.READ_ONLY, "1")
    permission.in_dashboard()
    assert found(workspace, "bees", ["bm25"], corpus).answers[0].hits
    with pytest.raises(permission.ReadOnlyError):
        jobs.start(workspace, "index", IndexConfig.from_dict({"retriever": "bm25", "corpus": corpus}))


def test_a_visitor_names_no_path_and_no_model_to_download(
    workspace: Workspace, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permission.in_dashboard(shared=True)
    done = found(workspace, "bees", ["/etc", "somebody/model", str(tmp_path)], corpus)
    assert all(isinstance(a.problem, permission.NotAllowedError) for a in done.answers)
    assert not any(a.hits for a in done.answers)


def test_what_can_be_searched_with_is_on_this_machine(workspace: Workspace, corpus: str) -> None:
    names = [choice.id for choice in search.list_retrievers(workspace)]
    assert names[0] == "bm25"
    assert {"static-minilm", "minilm"} <= set(names)
    assert "retromae" not in names
