"""Runs and qrels as TREC files, the form that trec_eval and every other tool of the field reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdp.base.errors import InputError


def run_lines(run: Mapping[str, Mapping[str, float]], tag: str = "cdp") -> Iterator[str]:
    """query Q0 document rank score tag, each query's documents in trec_eval's order.

    InputError for an id with white space in it, which the format cannot hold.
    """
    for query, scores in run.items():
        ordered = sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)
        for rank, (document, score) in enumerate(ordered, start=1):
            yield f"{_id(query)} Q0 {_id(document)} {rank} {float(score)!r} {_id(tag)}\n"


def qrels_lines(qrels: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """query 0 document grade."""
    for query, grades in qrels.items():
        for document, grade in grades.items():
            yield f"{_id(query)} 0 {_id(document)} {grade}\n"


def _id(text: str) -> str:
    if text.split() != [text]:
        raise InputError(f"TREC files cannot hold the id {text!r}: it is empty or has white space in it.")
    return text
