"""A job of every kind that a user starts can be started again, with its settings or changed ones."""

from __future__ import annotations

import pytest

from cdp.base.config import FilterConfig, IndexConfig, RoundTripConfig
from cdp.base.workspace import Workspace
from cdp.jobs import stop, wait
from cdp.services import demo, jobs, queries, search

pytestmark = pytest.mark.slow


def test_measuring_filtering_and_indexing_can_be_run_again(workspace: Workspace) -> None:
    """They were refused: only the jobs of training and writing could be cloned."""
    demo.load(workspace)
    query_set = queries.list_query_sets(workspace)[0].id
    started = {
        queries.start_filter(workspace, FilterConfig(query_set=query_set, usable=True)): {"round_trip_rank": "20"},
        queries.start_round_trip(workspace, query_set): {},
        search.start_index(workspace, IndexConfig(retriever="bm25", collection="demo")): {
            "collection": "benchmark:demo"
        },
    }
    for job, changes in started.items():
        stop(workspace, job, at_once=True)
        wait(workspace, job, lambda view: None)
        again = jobs.start(workspace, job, changes)
        assert again != job
        config = jobs.settings(workspace, again)
        assert isinstance(config, FilterConfig | RoundTripConfig | IndexConfig)
        assert {name: str(getattr(config, name)) for name in changes} == changes
        stop(workspace, again, at_once=True)
