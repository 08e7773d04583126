"""A study's method is its whole set, not a filtered copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.query_sets.deriving import derive
from cdp.services import queries, studies
from cdp.studies.config import StudyConfig


@pytest.fixture
def filled(workspace: Workspace, demo_root: Path) -> Workspace:
    shutil.copytree(demo_root, workspace.root)
    return workspace


def plan(**settings: object) -> StudyConfig:
    values = {"benchmarks": "demo:test", "query_sets": "demo paraphrase", "per_doc": "2", "seeds": "0"}
    return StudyConfig.from_dict({**values, "epochs": 1, "gpus": 0, **settings})


@pytest.mark.slow
def test_a_method_is_trained_on_whole_and_not_on_a_copy_without_some_of_its_queries(filled: Workspace) -> None:
    """A filtered set says the same of method, generator and Q/Doc, and is newer: it was taken for the method's."""
    whole = next(q for q in queries.list_query_sets(filled) if q.method == "diverse")
    derive(filled, whole, lambda d: [*d.queries[:7], None], "shorter", {"without": {"filter": "x"}})
    config = plan(
        query_sets="", methods="diverse", corpus=whole.corpus_id, generator="recorded", retrievers="static-minilm"
    )
    assert [source.query_set for source in studies.plan(filled, config).sources] == [whole.id]
