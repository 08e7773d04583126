"""Where one retriever puts an answer first and another does not, what it put there, and where gains sit by CW."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdp import catalog
from cdp.base.errors import ConfigError
from cdp.base.failures import Failures
from cdp.base.workspace import Workspace
from cdp.benchmarks import describe
from cdp.complexity import content_words, count_content_words
from cdp.evaluation.error_analysis import (
    NOTHING,
    OTHER_SOURCE,
    SAME_SOURCE,
    Bucket,
    Change,
    compare_rank_1,
    gains_by_complexity,
)
from cdp.services import evaluated
from cdp.services.evaluated import Passage
from cdp.services.results import MEASURE, Comparison, Scores

KINDS = (SAME_SOURCE, OTHER_SOURCE, NOTHING)

FIELDS = ("source_id", "document_id", "doc_id", "book", "title")
"""Fields of a passage's line that name the document it was cut from, the surest first."""

_JOINED = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""A character of Chinese, Japanese or Korean."""

_PREFIX = re.compile(r"^(.+?)[-_#:./ ]+\d+$")


@dataclass(frozen=True)
class Case:
    """A query that exactly one of the two answers first: the answer, and what the other put first (None: nothing).

    ``words`` are the query's content words, ``kind`` is one of ``KINDS``.
    """

    query_id: str
    query: str
    words: frozenset[str]
    right: Passage | None
    wrong: Passage | None
    kind: str


@dataclass(frozen=True)
class Errors:
    """Two evaluations compared at rank 1. ``wins``: only ``other`` is right; ``losses``: only ``baseline`` is.

    ``rule`` says in a sentence how the source of a passage was found; ``gains`` are the mean differences in NDCG@10
    points by the content words of the queries. ``failed`` are the queries that could not be analysed (the first 20 of
    ``n_failed``), each with its id, reason, text and traceback: they are in none of the other figures.
    """

    baseline: str
    baseline_id: str
    other: str
    other_id: str
    place: str
    n_queries: int
    both: int
    neither: int
    wins: tuple[Case, ...]
    losses: tuple[Case, ...]
    rule: str
    gains: tuple[Bucket, ...]
    n_failed: int = 0
    failed: tuple[dict[str, Any], ...] = ()

    @staticmethod
    def kinds(cases: Sequence[Case]) -> dict[str, int]:
        """How many of the cases are of each kind, all kinds named."""
        return {kind: sum(case.kind == kind for case in cases) for kind in KINDS}


def analyse(
    workspace: Workspace,
    baseline: str,
    other: str,
    *,
    within: Comparison | None = None,
) -> Errors:
    """The error analysis of two evaluations, by their ids, on the same queries.

    The source document of a passage is the first of ``FIELDS`` that every passage's line in corpus.jsonl has (or the
    ``metadata`` in it), else its id without the number at its end.
    ``within`` is a comparison that holds both, whose scores need not be read again. Errors as ``evaluated`` raises
    them; ConfigError for evaluations on different judgments.
    """
    rows = catalog.evaluations(workspace) if within is None else within.evaluations
    first, second = evaluated.find(workspace, baseline, rows), evaluated.find(workspace, other, rows)
    same = ("benchmark", "split", "benchmark_hash")
    if any(first[name] != second[name] for name in same):
        raise ConfigError("The two evaluations are not of the same judgments.", hint="Choose two on one benchmark.")
    ids = [first["id"], second["id"]]
    scores: Scores = within.scores if within is not None else catalog.per_query(workspace, ids, MEASURE)
    before, after = scores[first["id"]], scores[second["id"]]
    shared = [query for query in before if query in after]
    floor = evaluated.relevant_from(workspace, first)
    grades = {
        query: {document: grade if grade >= floor else 0 for document, grade in judged.items()}
        for query, judged in evaluated.judgments(workspace, first, shared).items()
    }
    runs = evaluated.retrieved(workspace, first), evaluated.retrieved(workspace, second)
    plain = compare_rank_1(*runs, grades, lambda document: document)
    changes = (*plain.wins, *plain.losses)
    looked = {document for change in changes for document in (change.right, change.wrong) if document}
    looked |= {document for c in changes for document, grade in grades[c.query_id].items() if grade > 0}
    passages = evaluated.passages(workspace, first, looked)
    source_of, rule = _source(passages)
    failures = Failures(unit="query")
    rank_1_comparison = compare_rank_1(*runs, grades, source_of, failures)
    texts = evaluated.queries(workspace, first)
    language = describe(evaluated.folder(workspace, first), workspace).language or "en"
    differences = [100 * (after[query] - before[query]) for query in shared]
    words = failures.batch(
        lambda batch: count_content_words(batch, language).tolist(),
        [texts.get(query, "") for query in shared],
        shared.__getitem__,
        str,
    )
    counted = [(difference, n) for difference, n in zip(differences, words, strict=True) if n is not None]

    def cases(changes: Sequence[Change]) -> tuple[Case, ...]:
        case_list = []
        for change in changes:
            with failures.item(change.query_id, texts.get(change.query_id, "")):
                case_list.append(case(change))
        return tuple(case_list)

    def case(change: Change) -> Case:
        text = texts.get(change.query_id, "")
        right, wrong = passages.get(change.right), passages.get(change.wrong)
        return Case(change.query_id, text, frozenset(content_words(text, language)), right, wrong, change.kind)

    return Errors(
        baseline=first["retriever_name"],
        baseline_id=first["retriever_id"],
        other=second["retriever_name"],
        other_id=second["retriever_id"],
        place=first["benchmark"],
        n_queries=len(shared),
        both=rank_1_comparison.both,
        neither=rank_1_comparison.neither,
        wins=cases(rank_1_comparison.wins),
        losses=cases(rank_1_comparison.losses),
        rule=rule,
        gains=tuple(gains_by_complexity([delta for delta, _ in counted], [n for _, n in counted])),
        n_failed=failures.n,
        failed=tuple(failures.first),
    )


def _source(passages: Mapping[str, Passage]) -> tuple[Callable[[str], str], str]:
    """(the function from a passage's id to its source, the rule in a sentence)."""
    wanted = next((name for name in FIELDS if passages and all(_field(p, name) for p in passages.values())), "")
    if not wanted:
        return _prefix, "Passages whose ids are equal but for the number at their end come from one source."

    def source_of(document: str) -> str:
        value = _field(passages[document], wanted) if document in passages else ""
        return f"{wanted}:{value}" if value else f"id:{document}"

    return source_of, f"Passages with the same {wanted} come from one source."


def _field(passage: Passage, name: str) -> str:
    inner = passage.fields.get("metadata")
    value: Any = passage.fields.get(name)
    if value in (None, "") and isinstance(inner, dict):
        value = inner.get(name)
    return str(value).strip() if isinstance(value, (str, int)) else ""


def _prefix(document: str) -> str:
    match = _PREFIX.match(document)
    return match[1] if match else document


def marked(text: str, words: Collection[str]) -> list[tuple[str, bool]]:
    """``text`` in pieces, each with whether it is one of the ``words``, whatever the case. Joined they are the text.

    Words in a script that writes none apart, or endings to them (Chinese, Japanese, Korean), are found anywhere; others
    only as whole words.
    """
    if not words:
        return [(text, False)] if text else []
    apart = [re.escape(word) if _JOINED.search(word) else rf"\b{re.escape(word)}\b" for word in words]
    pattern = re.compile(f"({'|'.join(sorted(apart, key=len, reverse=True))})", re.IGNORECASE)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pattern.split(text)) if piece]
