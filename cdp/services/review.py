"""Reviewing queries: people's decisions, undo, making the reviewed set."""

from __future__ import annotations

from collections.abc import Sequence

from cdp import query_sets
from cdp.base import actions
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.text import checked_title
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.query_sets import QuerySet, deriving
from cdp.query_sets.deriving import EDIT
from cdp.query_sets.usable import table
from cdp.services import access
from cdp.synthesis.methods import METHODS


@access.writes
def decide(
    workspace: Workspace, query_set: str, queries: Sequence[str], decision: str, *, text: str = "", by: str = ""
) -> int:
    """Store a decision on these queries (ids); return the number of pairs. NotFoundError for an unknown id.

    A query that was written for several documents is decided about for all of them.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    known = set(table(workspace, named).ids)
    for name in queries:
        if name not in known:
            raise NotFoundError("query", name)
    if decision == EDIT and len(queries) != 1:
        raise ConfigError("Only one query at a time can be written otherwise.")
    queries = _with_copies(workspace, named, queries)
    with disk_faults_told("The decision"):
        deriving.decide(workspace, named, queries, decision, text=text, by=actions.person(by, required=False))
    return len(queries)


def _with_copies(workspace: Workspace, query_set: QuerySet, queries: Sequence[str]) -> list[str]:
    """Return the ids, with those of the same queries at the other documents that they were written for."""
    method = METHODS.get(query_set.method)
    if method is None or not method.joint:
        return list(dict.fromkeys(queries))
    lines = query_sets.read_queries(workspace, query_set.id)
    texts = {query_id: text for line in lines for query_id, text in line.with_ids()}
    wanted = {texts[query] for query in queries}
    return [query for query, text in texts.items() if text in wanted]


@access.writes
def undo(workspace: Workspace, query_set: str, by: str = "") -> str:
    """Take back this person's last decision; return its first query, empty if there is none."""
    named = query_sets.resolve_query_set(workspace, query_set)
    path = query_sets.files(workspace, named.id).review
    last = actions.undo(path, actions.person(by, required=False), deriving.DECISION)
    return "" if last is None else str(last["queries"][0])


@access.writes
def reviewed(
    workspace: Workspace, query_set: str, *, name: str = "", only_accepted: bool = False
) -> query_sets.Derived:
    """Derive the query set that the decisions leave. The first set and its decisions stay."""
    named = query_sets.resolve_query_set(workspace, query_set)
    with disk_faults_told("The reviewed set"):
        return deriving.reviewed(workspace, named, name=checked_title(name), only_accepted=only_accepted)
