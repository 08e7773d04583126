"""A query set made from another: fewer or edited queries, a leak, a filter, a review, documents added again; log.

The set itself stays as it is: other runs were made from it. The new one names it under ``made_from``, with its hash,
and says under ``without`` why it is shorter, so that what was trained on it leads back.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import operator
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from cdp.base import actions
from cdp.base.errors import ConfigError, InputError
from cdp.base.locks import staging
from cdp.base.records import fields, lines
from cdp.base.text import counted
from cdp.base.workspace import Workspace, append_jsonl, now, slug, write_jsonl
from cdp.corpus import CorpusManifest
from cdp.corpus.checks import storable
from cdp.corpus.storage import CorpusUpdate
from cdp.query_sets import store
from cdp.query_sets.imports import install
from cdp.query_sets.store import DocumentQueries, Files, QuerySet

# The lists of a line that say something of each of its queries, in their order.
ONE_PER_QUERY = ("queries", "sources", "negatives", "notes", "logprobs", "teacher")

# The lists of a line that name other documents of the corpus.
NAME_DOCUMENTS = ("negatives", "teacher", "together")

# What becomes of the queries of a document: each as it is or rewritten, None for one that is left out.
Change = Callable[[DocumentQueries], Sequence[str | None]]


# What is to be stored of a document's queries beside them: lists with an item for each, by their names.
Lists = Callable[[DocumentQueries], Mapping[str, Sequence[Any]]]


@dataclasses.dataclass(frozen=True)
class Derived:
    """The new set, how many queries it lacks and how many are written otherwise."""

    query_set: QuerySet
    dropped: int
    rewritten: int


def derive(
    workspace: Workspace,
    query_set: QuerySet,
    change: Change,
    name: str,
    facts: Mapping[str, Any],
    *,
    of_each: Lists | None = None,
    moved: tuple[CorpusManifest, Mapping[str, str]] | None = None,
) -> Derived:
    """The set that ``change`` makes of ``query_set``. A document that loses all its queries has no line in it.

    ``facts`` are added to its parameters; ``of_each`` gives what is known of each query, as its hard negatives.
    ``moved`` is another corpus with the ids there of the documents that it has, without negatives: others may be better
    there. InputError if nothing would stay.
    """
    source = store.files(workspace, query_set.id)
    parent_hash = store.content_hash(workspace, query_set)
    with staging(workspace.queries) as folder:
        copied = Files(folder / "set")
        copied.folder.mkdir()
        n: Counter[str] = Counter()
        dropped: set[str] = set()
        kept: set[str] = set()

        def changed() -> Iterator[dict[str, Any]]:
            for line in store.iter_lines(workspace, query_set.id):
                if moved is not None:
                    if str(line["document_id"]) not in moved[1]:
                        continue

                    line["document_id"] = moved[1][str(line["document_id"])]
                    for key in NAME_DOCUMENTS:
                        line.pop(key, None)

                document = store.document_queries(line)
                texts = change(document)

                if of_each is not None:
                    line |= of_each(document)

                stays = [text is not None for text in texts]
                rewritten = sum(map(operator.ne, texts, document.queries)) - stays.count(False)
                n.update(dropped=stays.count(False), rewritten=rewritten)

                left = list(itertools.compress(texts, stays))
                if source.rankings.exists():
                    kept.update(filter(None, left))
                    dropped.update(document.queries)

                for key in ONE_PER_QUERY:
                    if len(line.get(key) or ()) == len(texts):
                        line[key] = list(itertools.compress(line[key], stays))

                line.pop("usage", None)  # it was paid once, by the job that wrote the set

                if left:
                    yield {**line, "queries": left}

        write_jsonl(copied.queries, changed())

        totals = store.count(copied.queries, of_lines=bool(query_set.hard_negatives or facts.get("hard_negatives")))
        if not totals.n_queries:
            raise InputError(f"Nothing of {query_set.name} would stay.", hint="Use other queries.")

        if source.failures.exists():
            shutil.copyfile(source.failures, copied.failures)

        if source.rankings.exists() and moved is None:  # rankings of a dropped query would still be trained on
            rows = (row for row in lines(store.RANKING, source.rankings) if row["query"] not in dropped - kept)
            append_jsonl(copied.rankings, rows)

        made_from = {"made_from": query_set.id, "made_from_hash": parent_hash}
        parameters = {**query_set.parameters, **made_from, **facts}
        corpus_id, corpus_hash = query_set.corpus_id, query_set.corpus_hash
        if moved is not None:
            parameters.pop("hard_negatives", None)
            corpus_id, corpus_hash = moved[0].id, moved[0].content_hash

        copy = dataclasses.replace(
            query_set,
            id=f"{slug(name)}-{totals.content_hash[:8]}",
            name=name,
            created=now(),
            n_documents=totals.n_documents,
            n_queries=totals.n_queries,
            n_shared=totals.n_shared,
            content_hash=totals.content_hash if query_set.complete else "",
            corpus_id=corpus_id,
            corpus_hash=corpus_hash,
            parameters=parameters,
        )

        return Derived(install(workspace, copy, copied.folder), n["dropped"], n["rewritten"])


def leave_out(
    workspace: Workspace,
    query_set: QuerySet,
    drop: Callable[[Sequence[str]], Sequence[bool]],
    name: str,
    reason: Mapping[str, Any],
) -> tuple[QuerySet, int]:
    """The copy, and how many queries it lacks; the set itself and 0 where there is nothing to leave out.

    ``drop`` says of the queries of a document which ones go. ``reason`` stands in the copy's parameters under
    ``without``, with their number.
    """
    n = 0
    for line in store.read_queries(workspace, query_set.id):
        n += sum(map(bool, drop(line.queries)))

    if not n:
        return query_set, 0

    def stays(document: DocumentQueries) -> list[str | None]:
        dropped = drop(document.queries)
        return [None if drops else text for text, drops in zip(document.queries, dropped, strict=True)]

    derived = derive(workspace, query_set, stays, name, {"without": {**reason, "queries": n}})
    return derived.query_set, derived.dropped


ACCEPT, REJECT, EDIT, CLEAR = "accept", "reject", "edit", "clear"
# What may be decided; `clear` takes back what was decided before.
DECISIONS = (ACCEPT, REJECT, EDIT, CLEAR)

# An action of ``review.jsonl``.
DECISION = fields(
    {"content_hash": str, "decision": Literal[DECISIONS], "queries": list[str]}, text=str, action=str, by=str,
)  # fmt: skip

# Characters of an edited query.
LONGEST = 2000


@dataclass(frozen=True)
class Decisions:
    """The last decision about each query, by its id.

    ``hash`` (16 hex digits) is over what was decided last, empty where nothing is.
    """

    accepted: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    edited: dict[str, str] = field(default_factory=dict)

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
        if query_id in self.accepted:
            return ACCEPT
        if query_id in self.rejected:
            return REJECT

        return ""


def decide(
    workspace: Workspace, query_set: QuerySet, queries: Sequence[str], decision: str, *, text: str = "", by: str = ""
) -> None:
    """Write down a decision about these queries (ids). ``text`` is the new one of an edit, ``by`` who decides.
    ConfigError for a set that is not whole, a word that is no decision, and a text that is no query."""
    if decision not in DECISIONS:
        raise ConfigError(f"{decision!r} is no decision.", hint=f"There is: {', '.join(DECISIONS)}.")
    if not query_set.complete:
        raise ConfigError(f"{query_set.name} is not whole yet.", hint="Review it when its job has ended.")

    more = {}

    if decision == EDIT:
        text = " ".join(text.split())
        if not text or len(text) > LONGEST or storable(text)[1]:
            raise ConfigError(f"A query is a text of 1 to {LONGEST:,} characters.", hint="Reject it instead.")
        more["text"] = text

    if queries:
        facts = {"content_hash": query_set.content_hash, "decision": decision, "queries": list(queries), **more}
        actions.add(store.files(workspace, query_set.id).review, by, **facts)


def read_decisions(workspace: Workspace, query_set: QuerySet) -> Decisions:
    """The decisions that hold for the set as it is now."""
    last: dict[str, tuple[str, str]] = {}
    for line in actions.read(store.files(workspace, query_set.id).review, DECISION):
        about_this = query_set.content_hash and line["content_hash"] == query_set.content_hash
        if about_this and (line["decision"] != EDIT or "text" in line):
            last |= dict.fromkeys(line["queries"], (line["decision"], line.get("text", "")))

    by_decision: dict[str, dict[str, str]] = {decision: {} for decision in DECISIONS}
    for name, (decision, text) in last.items():
        by_decision[decision][name] = text

    return Decisions(frozenset(by_decision[ACCEPT]), frozenset(by_decision[REJECT]), by_decision[EDIT])


def reviewed(workspace: Workspace, query_set: QuerySet, *, name: str = "", only_accepted: bool = False) -> Derived:
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
            if decision == REJECT:
                counts["rejected"] += 1
                texts.append(None)
            elif only_accepted and not decision:
                counts["undecided"] += 1
                texts.append(None)
            else:
                texts.append(decisions.edited.get(query_id, text))

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
    return derive(workspace, query_set, change, name or f"{query_set.name} reviewed", facts)


def carry_query_sets(
    workspace: Workspace, growth: CorpusUpdate, corpus: CorpusManifest, *, imported: bool
) -> tuple[list[str], list[str]]:
    """Carry over the query sets, without their negatives; ``imported`` also those that came with the documents.

    Return their ids, and a sentence for each with what became stale.
    """
    ids, said = [], []
    for source in store.list_query_sets(workspace):
        if source.corpus_id != growth.previous.id or (source.imported and not imported):
            continue
        name = re.sub(r" v\d+$", "", source.name) + f" v{growth.number}"
        with suppress(InputError):  # none of its documents stayed
            made = derive(workspace, source, lambda line: line.queries, name, {}, moved=(corpus, growth.kept)).query_set
            n = source.n_queries - made.n_queries
            carried = {"grown_from": growth.previous.id, "carried": {"from": source.id, "stale": n}}
            store.update(workspace, made.id, parameters={**made.parameters, **carried})
            ids.append(made.id)

            text = f"Carried over as {made.name}: {counted(made.n_queries, 'query', 'queries')}"
            if n:
                text += f"; {n:,} are stale"
            said.append(f"{text}.")

    return ids, said
