"""What people decided about the queries of a set: accepted, rejected, written otherwise.

``review.jsonl`` lies beside the set's lines and only grows; the lines themselves stay as they were written. A decision
holds for the content that it was made on, by its hash. ``reviewed`` makes a set of what the decisions leave, with the
decisions beside it: what is trained on it leads back to the first set and to every decision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, append_jsonl, now, read_jsonl
from cdp.corpus.checks import storable
from cdp.query_sets import store
from cdp.query_sets.deriving import Derived, derive
from cdp.query_sets.store import DocumentQueries, QuerySet

ACCEPT, REJECT, EDIT, CLEAR = "accept", "reject", "edit", "clear"
DECISIONS = (ACCEPT, REJECT, EDIT, CLEAR)
"""What may be decided; ``clear`` takes back what was decided before."""

LONGEST = 2000
"""Characters of a query that somebody writes."""


@dataclass(frozen=True)
class Decisions:
    """The last decision about each query, by its id. ``stale`` lines are about another content of the set.

    ``hash`` (16 hex digits) is over what was decided last, empty where nothing is.
    """

    accepted: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    edited: dict[str, str] = field(default_factory=dict)
    stale: int = 0

    def __len__(self) -> int:
        return len(self.accepted) + len(self.rejected) + len(self.edited)

    @property
    def hash(self) -> str:
        if not len(self):
            return ""
        facts = [sorted(self.accepted), sorted(self.rejected), sorted(self.edited.items())]
        return hashlib.sha256(json.dumps(facts).encode("ascii")).hexdigest()[:16]

    def of(self, query_id: str) -> str:
        """``accept``, ``reject``, ``edit``, or nothing."""
        if query_id in self.edited:
            return EDIT
        return ACCEPT if query_id in self.accepted else REJECT if query_id in self.rejected else ""


def decide(
    workspace: Workspace, query_set: QuerySet, queries: Sequence[str], decision: str, *, text: str = "", why: str = ""
) -> None:
    """Write down a decision about these queries (ids). ``text`` is the new one of an edit, ``why`` the filter that
    chose them. ConfigError for a set that is not whole, a word that is no decision, and a text that is no query."""
    if decision not in DECISIONS:
        raise ConfigError(f"{decision!r} is no decision.", hint=f"There is: {', '.join(DECISIONS)}.")
    if not query_set.complete:
        raise ConfigError(f"{query_set.name} is not whole yet.", hint="Review it when its job has ended.")
    line = {"at": now(), "content_hash": query_set.content_hash, "decision": decision, "queries": list(queries)}
    if decision == EDIT:
        text = " ".join(text.split())
        if not text or len(text) > LONGEST or storable(text)[1]:
            raise ConfigError(f"A query is a text of 1 to {LONGEST:,} characters.", hint="Reject it instead.")
        if len(queries) != 1:
            raise ConfigError("Only one query at a time can be written otherwise.")
        line["text"] = text
    if queries:
        append_jsonl(store.files(workspace, query_set.id).review, [{**line, **({"why": why} if why else {})}])


def read_decisions(workspace: Workspace, query_set: QuerySet) -> Decisions:
    """The decisions that hold for the set as it is now. A line that says nothing of use is passed over."""
    last: dict[str, tuple[str, str]] = {}
    stale = 0
    known = (query_set.content_hash, query_set.parameters.get("made_from_hash"))
    for line in read_jsonl(store.files(workspace, query_set.id).review):
        if not isinstance(line, dict) or line.get("decision") not in DECISIONS:
            continue
        if not query_set.content_hash or line.get("content_hash") != query_set.content_hash:
            stale += line.get("content_hash") not in known
            continue
        text = line.get("text")
        if isinstance(line.get("queries"), list) and (line["decision"] != EDIT or isinstance(text, str)):
            last.update({str(name): (line["decision"], str(text or "")) for name in line["queries"]})
    by_decision = {d: frozenset(name for name, (was, _) in last.items() if was == d) for d in DECISIONS}
    edited = {name: text for name, (was, text) in last.items() if was == EDIT}
    return Decisions(by_decision[ACCEPT], by_decision[REJECT], edited, stale)


def reviewed(
    workspace: Workspace, query_set: QuerySet, *, name: str = "", only_accepted: bool = False
) -> tuple[Derived, Decisions]:
    """The set that the decisions leave: without rejected queries, edited ones rewritten; with ``only_accepted``
    without undecided ones too. ConfigError where nothing is decided, InputError where nothing would stay."""
    decisions = read_decisions(workspace, query_set)
    if not len(decisions):
        raise ConfigError(f"Nothing is decided about the queries of {query_set.name}.", hint="Review some first.")
    counts = {"rejected": 0, "undecided": 0}

    def change(document: DocumentQueries) -> list[str | None]:
        texts: list[str | None] = []
        for query_id, text in document.with_ids():
            decision = decisions.of(query_id)
            dropped = "rejected" if decision == REJECT else "undecided" if only_accepted and not decision else ""
            if dropped:
                counts[dropped] += 1
            texts.append(None if dropped else decisions.edited.get(query_id, text))
        return texts

    facts = {
        "review": {
            "decisions": decisions.hash,
            "accepted": len(decisions.accepted),
            "edited": len(decisions.edited),
            "rejected": len(decisions.rejected),
        },
        "without": {"review": decisions.hash, "reasons": counts},
    }
    beside = [store.files(workspace, query_set.id).review]
    made = derive(workspace, query_set, change, name or f"{query_set.name} reviewed", facts, beside=beside)
    return made, decisions
