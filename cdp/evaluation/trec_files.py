"""TREC files: runs and qrels in the form that trec_eval and every other tool of the field reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from cdp.errors import InputError
from cdp.evaluation.beir_files import Problems, lines_of
from cdp.workspace import write_bytes

_RUN_HINT = "A line of a TREC run is: query Q0 document rank score tag."


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
    if not text or len(text.split()) != 1 or text != text.strip():
        raise InputError(f"TREC files cannot hold the id {text!r}: it is empty or has white space in it.")
    return text


def write_run_file(path: Path, run: Mapping[str, Mapping[str, float]], tag: str = "cdp") -> None:
    """Write a TREC run file, whole or not at all."""
    write_bytes(path, "".join(run_lines(run, tag)).encode("utf-8"))


def write_qrels_file(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write a TREC qrels file, whole or not at all."""
    write_bytes(path, "".join(qrels_lines(qrels)).encode("utf-8"))


def read_run_file(path: Path) -> dict[str, dict[str, float]]:
    """{query: {document: score}} of a TREC run file, which may end in ``.gz``. InputError naming every bad line."""
    problems = Problems(path.name)
    run: dict[str, dict[str, float]] = {}
    for number, line in lines_of(path):
        columns = (line or "").split()
        if len(columns) != 6:
            problems.add(number, f"There are {len(columns)} columns, not 6.")
            continue
        query, _, document, _, score, _ = columns
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            problems.add(number, f"The score {score!r} is not a number.")
        elif document in run.setdefault(query, {}):
            problems.add(number, f"{document!r} was already retrieved for query {query!r}.")
        else:
            run[query][document] = value
    problems.raise_if_any(_RUN_HINT)
    if not run:
        raise InputError("There is no result in it.", hint=_RUN_HINT, file=path.name)
    return run
