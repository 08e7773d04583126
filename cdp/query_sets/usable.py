"""Single queries as people see them: which are usable and why not, decisions, where a set is from, round-trip ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.config import BM25
from cdp.base.errors import CdpError, InputError
from cdp.base.records import Document
from cdp.base.text import counted
from cdp.base.workspace import ANSWERS, Workspace
from cdp.complexity import count_content_words
from cdp.corpus import list_corpora, looking, open_corpus
from cdp.query_sets import QuerySet, deriving, store
from cdp.query_sets.deriving import Decisions
from cdp.query_sets.nonsense import REASONS, QueryTable, query_table
from cdp.query_sets.store import QueryScores, document_queries


def references(sets: Sequence[QuerySet]) -> dict[str, str]:
    """Return {id: name} of the sets that may serve as human queries: sets by people, then those of unknown origin."""
    human: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for q in sets:
        if q.kind == "human":
            human[q.id] = q.name
        elif q.kind == "unknown" and q.method != "reasoning":
            unknown[q.id] = f"{q.name} (origin unknown)"

    return human | unknown


def shared(query_set: QuerySet) -> list[str]:
    """Return how many queries several documents share and what follows; empty for none."""
    if not query_set.n_shared:
        return []

    several = f"{counted(query_set.n_shared, 'query', 'queries')} of several documents"
    return [f"{several}. All of these count as answers; training takes none of them as a negative."]


def round_trips(workspace: Workspace, query_set: QuerySet) -> dict[str, QueryScores]:
    """Return the round-trip ranks of the set's present content by retriever, BM25 first, then the newest."""
    by: dict[str, QueryScores] = {}
    for item in store.list_scores(workspace, query_set, store.ROUND_TRIP):
        by[item.by] = item

    return dict(sorted(by.items(), key=lambda item: item[0] != BM25))


def made_from(workspace: Workspace, query_set: QuerySet) -> list[QuerySet]:
    """Return the sets that were derived from this one, newest first."""
    return [q for q in query_sets.list_query_sets(workspace) if q.parameters.get("made_from") == query_set.id]


# What may be looked at besides one of ``DECISIONS``.
UNDECIDED, UNUSABLE = "undecided", "unusable"
USABLE_WITHIN = 10


@dataclass(frozen=True)
class ReviewedQuery:
    """One query of a document, ``text`` as a person changed it. ``reason`` is why it is no query, in words; ``ranks``
    maps retrievers to the rank of its document, 0 for not found."""

    row: int
    id: str
    text: str
    original: str
    cw: int
    reason: str
    ranks: dict[str, int]
    decision: str


@dataclass(frozen=True)
class ReviewedDocument:
    """A document with its queries. ``document`` is None if the corpus no longer has it; ``together`` are the other
    documents that its queries need."""

    id: str
    document: Document | None
    queries: tuple[ReviewedQuery, ...] = field(default_factory=tuple)
    together: tuple[Document, ...] = ()


def table(workspace: Workspace, query_set: QuerySet) -> QueryTable:
    """Return the table of single queries. InputError for a set without queries."""
    path = query_sets.files(workspace, query_set.id).queries
    made = ANSWERS.get(path, "query table", lambda: query_table(workspace, query_set))
    if not len(made):
        raise InputError(f"The query set {query_set.name} has no queries yet.", hint="Generate or import some first.")
    return made


def decisions(workspace: Workspace, query_set: QuerySet) -> Decisions:
    """Return the decisions on the set's present queries."""
    path = query_sets.files(workspace, query_set.id).review
    return ANSWERS.get(
        path, ("decisions", query_set.content_hash), lambda: deriving.read_decisions(workspace, query_set)
    )


def chosen(workspace: Workspace, query_set: QuerySet, table: QueryTable, show: str) -> NDArray[np.bool_]:
    """Return a mask (n,) of the queries with this decision, the undecided or the unusable ones; of all if empty."""
    if not show:
        return np.ones(len(table), bool)
    if show == UNUSABLE:
        return np.asarray(_unusable(workspace, query_set, table) != "", bool)

    made = np.array(list(map(decisions(workspace, query_set).of, table.ids)))
    return np.asarray(made == ("" if show == UNDECIDED else show), bool)


def document(workspace: Workspace, query_set: QuerySet, table: QueryTable, index: int) -> ReviewedDocument:
    """Return the ``index``-th document of the set with its queries."""
    line = query_sets.read_at(workspace, query_set.id, int(table.offset[index]))
    name = str(line["document_id"])

    try:
        content = looking.document(workspace, query_set.corpus_id, name)
    except CdpError:
        content = None

    made = decisions(workspace, query_set)
    measured = round_trips(workspace, query_set)
    written = document_queries(line)
    words = count_content_words(written.queries, query_set.language or "en").tolist()

    listed = []
    first = int(np.searchsorted(table.document, index))
    for row, ((query_id, text), cw) in enumerate(zip(written.with_ids(), words, strict=True), first):
        ranks = {by: int(scores.values[row]) for by, scores in measured.items()}
        edited, reason = made.edited.get(query_id, text), REASONS.get(table.reasons[row], "")
        listed.append(ReviewedQuery(row, query_id, edited, text, cw, reason, ranks, made.of(query_id)))

    together: dict[str, Document] = {}
    if content:
        together = open_corpus(workspace, query_set.corpus_id).get(written.together)

    return ReviewedDocument(name, content, tuple(listed), tuple(together.values()))


def origin(query_set: QuerySet) -> str:
    """Return a sentence on the origin of a derived set; empty for any other set."""
    facts = query_set.parameters
    parent = facts.get("made_from")
    if not parent:
        return ""

    carried = facts.get("carried")
    if isinstance(carried, dict) and carried.get("from") == parent:
        kept = counted(query_set.n_queries, "query", "queries")
        return f"Carried over from {parent} to the new version of its documents: {kept}, {carried['stale']:,} stale."

    without = facts.get("without")
    if not isinstance(without, dict):
        without = {}

    if isinstance(facts.get("review"), dict) and without.get("review"):
        made = facts["review"]
        return (
            f"Made from {parent} by review: {made.get('accepted', 0):,} accepted, {made.get('edited', 0):,} edited, "
            f"{made.get('rejected', 0):,} rejected."
        )

    how = "leaving out judged queries"
    if without.get("filter"):
        how = f"the filter {without['filter']}"

    return f"Made from {parent} by {how}: {int(without.get('queries') or 0):,} queries left out."


@dataclass(frozen=True)
class Usability:
    """The usable ones of a set's ``n`` queries, and the others counted by their first reason. ``by`` names the
    retrievers of the round-trip ranks that were considered."""

    n: int
    usable: int
    reasons: dict[str, int]
    by: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.usable / max(1, self.n)


def usability(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> Usability:
    """Count usable queries: no nonsense, no repetition, and their document among the first ten by at least one of the
    retrievers whose round-trip ranks were measured."""
    reasons = Counter(_unusable(workspace, query_set, table))
    usable = reasons.pop("", 0)
    return Usability(len(table), usable, dict(reasons), tuple(round_trips(workspace, query_set)))


def _unusable(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> NDArray[Any]:
    """Return why each query is not usable, in words, (n,); empty for a usable one."""
    reasons = np.array([REASONS.get(name, "") for name in table.reasons], object)
    measured = round_trips(workspace, query_set)
    if not measured:
        return reasons

    found = np.zeros(len(reasons), bool)
    for scores in measured.values():
        found |= (scores.values > 0) & (scores.values <= USABLE_WITHIN)

    reasons[~found & (reasons == "")] = f"document not found within {USABLE_WITHIN}"
    return reasons


def q_doc_notes(workspace: Workspace, query_sets: Iterable[QuerySet]) -> list[str]:
    """Return what Q/Doc counts where the files of one of these corpora were cut; else nothing."""
    corpora = set(map(attrgetter("corpus_id"), query_sets))
    for manifest in list_corpora(workspace):
        if manifest.unit == "passage" and manifest.id in corpora:
            return ["Q/Doc counts queries per passage where files were cut into passages."]

    return []
