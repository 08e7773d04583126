"""Round-trip ranks, and a new set without the queries that fail a test: what is measured, what runs, what to start."""

from __future__ import annotations

import streamlit as st

from cdp.base.config import FilterConfig
from cdp.base.workspace import Workspace
from cdp.services import commands, jobs, queries
from cdp.services.queries import QuerySet
from cdp.ui.jobs import live as job_views
from cdp.ui.review.summary import found_by
from cdp.ui.shell import access, command, forms, frame, tables
from cdp.ui.shell.text import count, md, moment

SHOWN = (1, 3, 10, 100)
KEEP = ("round_trip_rank", "by", "cross_encoder", "at_least", "usable", "name")


def show(workspace: Workspace, query_set: QuerySet) -> None:
    """The section below the workbench."""
    st.subheader("Round trip", anchor=False, help=frame.definition("round_trip"))
    _running(workspace, query_set)
    _ranks(workspace, query_set)
    st.subheader("Filter before training", anchor=False)
    st.caption(
        "Makes a new query set without the queries that fail a test. This set stays as it is, and a study can compare "
        "both (its setting *filters*)."
    )
    with frame.guarded():
        _filter(workspace, query_set)


def _running(workspace: Workspace, query_set: QuerySet) -> None:
    kinds = (queries.RANK_KIND, queries.FILTER_KIND)
    views = [v for v in jobs.list_active(workspace) if v.kind in kinds and v.config.get("query_set") == query_set.id]
    if views:
        job_views.live(job_views.running_list, True, workspace, job_views.states(jobs.list_active(workspace)))


def _ranks(workspace: Workspace, query_set: QuerySet) -> None:
    """How many queries find their document, by each of those who looked; and the button for one more."""
    scores = queries.round_trips(workspace, query_set)
    if scores:
        tables.show(
            {
                "Found by": [found_by(name) for name in scores],
                **{
                    f"Within {k}": [f"{((s.values > 0) & (s.values <= k)).mean():.1%}" for s in scores.values()]
                    for k in SHOWN
                },
                "Measured": [moment(s.created) for s in scores.values()],
            },
            alt="Share of queries that find the document they were written for, by rank",
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.text_input(
            "Search with",
            value=queries.BM25 if queries.BM25 not in scores else "static-minilm",
            key=f"round_trip_by_{query_set.id}",
            help=md(FilterConfig.settings()["by"].help),
            width=320,
        )
        if access.button("Measure round-trip rank", icon=":material/sync_alt:", key="round_trip_start"):
            with frame.guarded():
                queries.start_round_trip(workspace, query_set.id, by.strip())
                st.rerun()
    command.show(commands.line("queries", "round-trip", query_set.id, by=by.strip(), wait=True))


def _filter(workspace: Workspace, query_set: QuerySet) -> None:
    given = forms.fields(FilterConfig, key=f"filter_{query_set.id}", leave_out=("query_set",), columns=3)
    pressed = access.button("Create filtered set", icon=":material/filter_alt:", key="filter_start")
    words = {name: given[name] for name in KEEP if name in given}
    command.show(commands.line("queries", "filter", query_set.id, **words, wait=True))
    if pressed:
        config = FilterConfig.from_dict({**given, "query_set": query_set.id})
        job = queries.start_filter(workspace, config)
        frame.navigation.go("jobs", job=job)
    made = queries.made_from(workspace, query_set)
    if made:
        st.caption(f"Made from this set: {count(len(made), 'query set')}.")
        for other in made[:10]:
            frame.navigation.link(
                "review", f"{md(other.name, 60)} ({count(other.n_queries, 'query', 'queries')})", query_set=other.id
            )
