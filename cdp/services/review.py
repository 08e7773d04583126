"""The query workbench: the table of single queries, selections of them, and people's decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import actions
from cdp.base.errors import CdpError, InputError, NotFoundError
from cdp.base.file_cache import ANSWERS
from cdp.base.records import Document
from cdp.base.settings import Config, option
from cdp.base.text import checked_title
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.corpus import get_documents
from cdp.evaluation.calibration import Agreement, agreements
from cdp.evaluation.round_trip import DEPTH
from cdp.metrics import query_table
from cdp.metrics.query_table import DUPLICATE, QueryTable
from cdp.query_sets import QuerySet
from cdp.query_sets import deriving as room
from cdp.query_sets.deriving import DECISIONS, EDIT, Decisions
from cdp.query_sets.nonsense import FORMATS, REASONS
from cdp.query_sets.store import DocumentQueries, document_queries
from cdp.services import access, corpora, queries
from cdp.synthesis.methods import METHODS

UNDECIDED = "undecided"
USABLE_WITHIN = 10


class QueryChoice(Config):
    """A selection of a set's queries; empty settings select all."""

    rank_above: int | None = option(
        None, "Round-trip rank below this: the query does not find its document among the first so many.", minimum=1,
        maximum=DEPTH,
    )  # fmt: skip
    by: str = option("bm25", "Whose round-trip rank is meant.", reason="It needs no model.")
    duplicate: bool = option(False, "Repeats an earlier query of its document.", reason="Off: all queries.")
    flagged: bool = option(False, "Is no query: a refusal, the prompt, JSON …", reason="Off: all queries.")
    formats: str = option("", f"Only these formats, separated by commas: {', '.join(FORMATS)}.")
    cw_from: int | None = option(None, "At least so many content words.", minimum=0)
    cw_to: int | None = option(None, "At most so many content words.", minimum=0)
    words_from: int | None = option(None, "At least so many words.", minimum=0)
    words_to: int | None = option(None, "At most so many words.", minimum=0)
    decision: str = option("", "Only what was decided so.", choices=("", UNDECIDED, *DECISIONS[:3]))

    @property
    def text(self) -> str:
        """The selection as it is stored with a decision: ``rank_above=10 duplicate``."""
        given = {name: value for name, value in self.to_dict().items() if value not in (None, False, "")}
        if self.rank_above is None:
            given.pop("by", None)
        return " ".join(name if value is True else f"{name}={value}" for name, value in given.items())


@dataclass(frozen=True)
class ReviewedQuery:
    """One query of a document. ``ranks`` maps retrievers to the rank of its document, 0 for not found. ``passage`` is
    (start, end) in the document's text of the generator's recorded passage, else of the query itself, or None."""

    row: int
    id: str
    text: str
    original: str
    cw: int
    words: int
    format: str
    duplicate: bool
    reasons: tuple[str, ...]
    ranks: dict[str, int]
    decision: str
    passage: tuple[int, int] | None


@dataclass(frozen=True)
class ReviewedDocument:
    """A document with its queries. ``document`` is None if the corpus no longer has it; ``together`` are the other
    documents that its queries need."""

    id: str
    document: Document | None
    queries: tuple[ReviewedQuery, ...] = field(default_factory=tuple)
    together: tuple[Document, ...] = ()


def table(workspace: Workspace, query_set: QuerySet) -> QueryTable:
    """Return the table of single queries, read now if need be. InputError for a set without queries."""
    path = query_table.file_of(workspace, query_set)
    kept = ANSWERS.get(path, "query table", lambda: query_table.load(workspace, query_set)) if path.exists() else None
    made = kept if kept is not None else query_table.make(workspace, query_set)
    if made is None or not len(made):
        raise InputError(f"The query set {query_set.name} has no queries yet.", hint="Generate or import some first.")
    return made


def decisions(workspace: Workspace, query_set: QuerySet) -> Decisions:
    """Return the decisions on the set's present queries."""
    path = query_sets.files(workspace, query_set.id).review
    return ANSWERS.get(path, ("decisions", query_set.content_hash), lambda: room.read_decisions(workspace, query_set))


def chosen(workspace: Workspace, query_set: QuerySet, table: QueryTable, choice: QueryChoice) -> NDArray[np.bool_]:
    """Return a mask (n,) of the selected queries. InputError for ranks that were not measured or unknown formats."""
    mask = np.ones(len(table), bool)
    if choice.rank_above is not None:
        scores = queries.round_trips(workspace, query_set).get(choice.by)
        if scores is None:
            raise InputError(
                f"The round-trip ranks of {query_set.name} by {choice.by} are not measured.",
                hint=f"Measure them: queries round-trip {query_set.id} --by {choice.by}",
            )
        mask &= (scores.values == 0) | (scores.values > choice.rank_above)
    if choice.duplicate:
        mask &= table.duplicate
    if choice.flagged:
        mask &= table.flags != 0
    formats = [name.strip() for name in choice.formats.split(",") if name.strip()]
    if formats:
        for name in formats:
            if name not in FORMATS:
                raise NotFoundError("format", name, known=list(FORMATS))
        mask &= np.isin(table.format, [FORMATS.index(name) for name in formats])
    for column, low, high in (
        (table.cw, choice.cw_from, choice.cw_to),
        (table.words, choice.words_from, choice.words_to),
    ):
        if low is not None:
            mask &= column >= low
        if high is not None:
            mask &= column <= high
    if choice.decision:
        made = decisions(workspace, query_set)
        wanted = "" if choice.decision == UNDECIDED else choice.decision
        mask &= np.fromiter((made.of(name) == wanted for name in table.ids), bool, len(table))
    return mask


def document(workspace: Workspace, query_set: QuerySet, table: QueryTable, index: int) -> ReviewedDocument:
    """Return the ``index``-th document of the set with its queries."""
    line = query_sets.read_at(workspace, query_set.id, int(table.offset[index]))
    name = str(line["document_id"])
    try:
        content = corpora.document(workspace, query_set.corpus_id, name)
    except CdpError:
        content = None
    made = decisions(workspace, query_set)
    ranks = {by: scores.values for by, scores in queries.round_trips(workspace, query_set).items()}
    recorded = line.get("passages") or ()
    first, last = (int(at) for at in np.searchsorted(table.document, [index, index + 1]))
    listed = []
    for row in range(first, last):
        position = int(table.position[row])
        query = line["queries"][position - 1]
        original = query if isinstance(query, str) else str(query.get("text", ""))
        query_id = query_sets.query_id(name, position)
        text = made.edited.get(query_id, original)
        kept = str(recorded[position - 1]) if len(recorded) >= position else ""
        listed.append(
            ReviewedQuery(
                row, query_id, text, original, int(table.cw[row]), int(table.words[row]),
                FORMATS[table.format[row]], bool(table.duplicate[row]), tuple(table.reasons(row)),
                {by: int(values[row]) for by, values in ranks.items()}, made.of(query_id),
                None if content is None else _passage(content.text, kept, original),
            )
        )  # fmt: skip
    together = get_documents(workspace, query_set.corpus_id, line["together"]) if content and "together" in line else {}
    return ReviewedDocument(name, content, tuple(listed), tuple(together.values()))


def _passage(text: str, *candidates: str) -> tuple[int, int] | None:
    for wanted in filter(None, (candidate.strip().rstrip("?.!") for candidate in candidates)):
        if match := re.search(re.escape(wanted), text, re.IGNORECASE):
            return match.span()
    return None


@access.writes
def decide(
    workspace: Workspace, query_set: str, queries: Sequence[str], decision: str, *, text: str = "", by: str = ""
) -> int:
    """Store a decision on these queries (ids); return the number of pairs. NotFoundError for an unknown id.

    A query that was written for several documents is decided about for all of them.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    whole = table(workspace, named)
    known = set(whole.ids)
    for name in queries:
        if name not in known:
            raise NotFoundError("query", name)
    queries = _with_copies(workspace, named, whole, queries)
    with disk_faults_told("The decision"):
        action, who = actions.new(), actions.person(by, required=False)
        for copies in [[name] for name in queries] if decision == EDIT else [queries]:
            room.decide(workspace, named, copies, decision, text=text, by=who, action=action)
    return len(queries)


def _with_copies(workspace: Workspace, query_set: QuerySet, table: QueryTable, queries: Sequence[str]) -> list[str]:
    """Return the ids, with those of the same queries at the other documents that they were written for."""
    method = METHODS.get(query_set.method)
    if method is None or not method.joint:
        return list(dict.fromkeys(queries))
    offsets = dict(zip(table.document_ids.tolist(), table.offset.tolist(), strict=True))

    @cache
    def read(name: str) -> DocumentQueries:
        if name not in offsets:  # a filter left none of its queries
            return DocumentQueries(name, [])
        return document_queries(query_sets.read_at(workspace, query_set.id, offsets[name]))

    found: dict[str, None] = {}
    for query in queries:
        own = read(query_sets.document_of(query))
        text = dict(own.with_ids())[query]
        copies = [copy for name in own.together for copy, other in read(name).with_ids() if other == text]
        found |= dict.fromkeys([query, *copies])
    return list(found)


@access.writes
def decide_all(workspace: Workspace, query_set: str, choice: QueryChoice, decision: str, *, by: str = "") -> int:
    """Store a decision on every selected query; return their number."""
    named = query_sets.resolve_query_set(workspace, query_set)
    whole = table(workspace, named)
    ids = [whole.ids[row] for row in np.flatnonzero(chosen(workspace, named, whole, choice))]
    ids = _with_copies(workspace, named, whole, ids)
    with disk_faults_told("The decision"):
        room.decide(workspace, named, ids, decision, why=choice.text, by=actions.person(by, required=False))
    return len(ids)


@access.writes
def undo(workspace: Workspace, query_set: str, by: str = "") -> str:
    """Take back this person's last decision, also one about many queries; return its first query, empty if there is
    none."""
    named = query_sets.resolve_query_set(workspace, query_set)
    last = actions.undo(query_sets.files(workspace, named.id).review, actions.person(by, required=False))
    return "" if last is None else str(last["queries"][0])


def agreement(made: Decisions) -> tuple[Agreement, ...]:
    """Return how well each two people agree on which queries to keep."""
    return agreements(made.people, 2)


@access.writes
def reviewed(
    workspace: Workspace, query_set: str, *, name: str = "", only_accepted: bool = False
) -> query_sets.Derived:
    """Derive the query set that the decisions leave. The first set and its decisions stay."""
    named = query_sets.resolve_query_set(workspace, query_set)
    with disk_faults_told("The reviewed set"):
        return room.reviewed(workspace, named, name=checked_title(name), only_accepted=only_accepted)[0]


def origin(query_set: QuerySet) -> str:
    """Return a sentence on the origin of a derived set; empty for any other set."""
    facts = query_set.parameters
    parent = facts.get("made_from")
    if not parent:
        return ""
    without = facts.get("without")
    without = without if isinstance(without, dict) else {}
    if isinstance(facts.get("review"), dict) and without.get("review"):
        made = facts["review"]
        return (
            f"Made from {parent} by review: {made.get('accepted', 0):,} accepted, {made.get('edited', 0):,} edited, "
            f"{made.get('rejected', 0):,} rejected."
        )
    how = f"the filter {without['filter']}" if without.get("filter") else "leaving out judged queries"
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
        return self.usable / self.n if self.n else 0.0


def usability(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> Usability:
    """Count usable queries: no nonsense, no repetition, and their document among the first ten by at least one of the
    retrievers whose round-trip ranks were measured."""
    left = np.ones(len(table), bool)
    reasons: dict[str, int] = {}

    def fails(where: NDArray[np.bool_], reason: str) -> None:
        n = int((left & where).sum())
        if n:
            reasons[reason] = n
        left[where] = False

    for name, words in REASONS.items():
        fails(table.flagged(name), words)
    fails(table.duplicate, DUPLICATE)
    ranks = queries.round_trips(workspace, query_set)
    if ranks:
        in_reach = [(s.values > 0) & (s.values <= USABLE_WITHIN) for s in ranks.values()]
        fails(~np.logical_or.reduce(in_reach), f"document not found within {USABLE_WITHIN}")
    return Usability(len(table), int(left.sum()), reasons, tuple(ranks))
