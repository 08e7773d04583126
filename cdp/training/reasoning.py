"""RI, the reasoning intensity of ReasonEmbed: which reasoned query q′ belongs to which query q; query source.

RI(s) = min(L(q, D) / L(q′, D), κ) with L the InfoNCE loss under the model in training, κ = 5; the loss computes it.

A sample of ReasonEmbed is (q, q′, D). Its ablation trains on the queries (query-only), on their reasoned forms in
their stead (reasoning-only) or on both (multi-query), each with no weights, CW, RI or RI × CW: twelve conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cdp import query_sets
from cdp.base.condition import QUERY_ONLY
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.query_sets import DocumentQueries, QuerySet
from cdp.training.pairs import PairSet
from cdp.training.weightings import WEIGHTINGS

# What is trained on, as ReasonEmbed's ablation names it: the queries, their reasoned forms in their stead, or both.
REASONING_ONLY, MULTI_QUERY = "reasoning-only", "multi-query"

# The reason under which `PairSet.dropped` counts what `reasoning-only` cannot train on.
WITHOUT_REASONED = "queries without a reasoned form"


class Reasoned:
    """The reasoned forms in a query set: which q′ belongs to which query.

    A line that says from which queries its own were made (``sources``) is matched by text, any other by position.
    """

    def __init__(self, workspace: Workspace, query_set: str) -> None:
        self.corpus_id = query_sets.load(workspace, query_set).corpus_id
        self._by_text: dict[tuple[str, str], str] = {}
        self._by_id: dict[str, str] = {}
        for line in query_sets.read_queries(workspace, query_set):
            if line.sources:
                pairs = zip(line.sources, line.queries, strict=False)
                self._by_text |= {(line.document_id, source.strip()): text for source, text in pairs}
            else:
                self._by_id |= dict(line.with_ids())

    def of(self, query_id: str, query: str) -> str:
        """q′ of the query with this id and text; empty where there is none, or where it is the query itself."""
        document_id = query_sets.document_of(query_id)
        form = (self._by_text.get((document_id, query)) or self._by_id.get(query_id) or "").strip()
        return "" if form == query else form


def uses_reasoned(config: TrainingConfig) -> bool:
    """Whether a training reads the query set ``reasoning``: to weight by RI, or to train on it."""
    return config.query_source != QUERY_ONLY or WEIGHTINGS.named(config.weighting).needs == "reasoning"


def check_reasoned(config: TrainingConfig, method: str) -> None:
    """ConfigError where reasoned queries are needed and none are named, or where q′ would be compared with itself.

    ``method`` is the one that the query set to train on was made with.
    """
    if not uses_reasoned(config):
        return

    if not config.reasoning.strip():
        by = f"The weighting {config.weighting!r}"
        what = by if config.query_source == QUERY_ONLY else f"Training {config.query_source}"
        raise ConfigError(
            f"{what} needs 'reasoning', a query set with reasoned queries.",
            hint="Set 'reasoning' to a query set with the reasoned form of each query: written with the method "
            "reasoning, or imported.",
        )

    if config.reasoning == config.query_set or method == "reasoning":
        raise ConfigError(
            f"{config.query_set} holds reasoned queries q′, and RI compares q′ with the query q it was made from, not "
            "with itself.",
            hint="Set 'query_set' to the queries q, 'reasoning' to this set, and 'query_source' to reasoning-only (or "
            "multi-query).",
        )


def resolved_reasoning(workspace: Workspace, config: TrainingConfig, query_set: QuerySet) -> TrainingConfig:
    """Return the settings of a training on ``query_set`` with the ids of it and of its reasoned queries, if it reads
    any. ConfigError where those are missing or of another corpus."""
    reasoning = config.reasoning
    if reasoning and uses_reasoned(config):
        reasoned = query_sets.resolve_query_set(workspace, reasoning)
        check_corpus(reasoned.id, reasoned.corpus_id, query_set.corpus_id)
        reasoning = reasoned.id

    with_ids = config.replace(query_set=query_set.id, reasoning=reasoning)
    check_reasoned(with_ids, query_set.method)
    return with_ids


def with_reasoned(
    pairs: PairSet, workspace: Workspace, reasoning: str, source: str = QUERY_ONLY, *, ri: bool = True
) -> PairSet:
    """``pairs`` as ``source`` has them, each with the text that RI compares its query with (``ri``).

    ``reasoning`` is a query set of the same corpus, see ``Reasoned``. Every pair of a query, be it trained on as q or
    as q′, has RI(s) = L(q, D) / L(q′, D). A query without a reasoned form keeps itself as q′, so that RI says nothing
    of it; those are counted as ``unreasoned``. Trained reasoning-only they are left out and counted among what is
    dropped. InputError if no query has a reasoned form.
    """
    reasoned = Reasoned(workspace, reasoning)
    check_corpus(reasoning, reasoned.corpus_id, pairs.query_set.corpus_id)
    forms = [reasoned.of(query_id, query) for query_id, query in zip(pairs.query_ids, pairs.queries, strict=True)]

    missing = forms.count("")
    if missing == len(pairs):
        raise InputError(
            f"None of the {len(pairs)} queries of {pairs.query_set.id} has a reasoned form in {reasoning} that differs "
            "from it.",
            hint="Make one with the method reasoning from this query set, or import one for it.",
        )

    # Of each pair that is trained on: its row in ``pairs``, whether the query is q′, its query, and the other one.
    rows: list[int] = []
    swapped: list[bool] = []
    queries: list[str] = []
    others: list[str] = []
    for row, (query, form) in enumerate(zip(pairs.queries, forms, strict=True)):
        for as_reasoned in _taken(source, bool(form)):
            trained, other = (form, query) if as_reasoned else (query, form or query)
            rows.append(row)
            swapped.append(as_reasoned)
            queries.append(trained)
            others.append(other)

    chosen = pairs if source == QUERY_ONLY else pairs.part(np.array(rows, dtype=np.int64))
    dropped = dict(pairs.dropped)

    if source == REASONING_ONLY and missing:
        dropped[WITHOUT_REASONED] = missing

    done = replace(chosen, queries=queries, dropped=dropped)
    done.check()

    if not ri:
        return done

    return replace(
        done,
        reasoned=others,
        unreasoned=0 if source == REASONING_ONLY else missing,
        swapped=np.array(swapped) if any(swapped) else None,
    )


def _taken(source: str, has_form: bool) -> tuple[bool, ...]:
    """The pairs that a query becomes: True for one that is trained on as q′."""
    if source == REASONING_ONLY:
        return (True,) if has_form else ()
    return (False, True) if source == MULTI_QUERY and has_form else (False,)


def pairs_with(reasoned: Reasoned, lines: Iterable[DocumentQueries], config: TrainingConfig) -> tuple[int, int, int]:
    """(pairs, documents, queries without a reasoned form) of a query set's lines, without reading a document."""
    pairs = documents = missing = 0
    for line in lines:
        queries = [(query_id, text.strip()) for query_id, text in line.with_ids(config.per_doc) if text.strip()]
        forms = [bool(reasoned.of(*query)) for query in queries]
        n_pairs = sum(len(_taken(config.query_source, form)) for form in forms)
        pairs, documents, missing = pairs + n_pairs, documents + bool(n_pairs), missing + forms.count(False)
    return pairs, documents, missing


def unreasoned_note(count: int, config: TrainingConfig) -> str:
    """What becomes of so many queries without a reasoned form of their own."""
    ri = WEIGHTINGS.named(config.weighting).needs == "reasoning"
    what = {
        QUERY_ONLY: "RI says nothing of them: they get 1",
        REASONING_ONLY: "they are left out",
        MULTI_QUERY: f"only the query itself is trained on{', with RI 1' if ri else ''}",
    }[config.query_source]
    return f"Without a reasoned form that differs from them: {count:,} queries; {what}."


def check_corpus(reasoning: str, corpus_id: str, wanted: str) -> None:
    """ConfigError where reasoned queries belong to another corpus than the queries."""
    if corpus_id != wanted:
        raise ConfigError(
            f"The query set {reasoning} belongs to another corpus, {corpus_id}.",
            hint=f"Name one with reasoned queries for {wanted}.",
        )
