"""Runs and scores as other programs write them, and our measures by the names that ir_measures has for them.

Read are TREC runs, the predictions that MTEB keeps (``prediction_folder``), and the scores per query that ``ir_measures
--by_query`` prints. MTEB's own result files hold means alone, which no test can compare: they are written, not read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdp.base.errors import InputError
from cdp.base.text import shown
from cdp.benchmarks.beir_files import lines_of, text_of_file, whole_text
from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.evaluate import Ranking

Run = dict[str, dict[str, float]]
# {measure: {query: value in [0, 1]}}
PerQuery = dict[str, dict[str, float]]

TREC, MTEB, IR_MEASURES = "trec-run", "mteb-predictions", "ir-measures"

# The query id under which ir_measures prints the mean.
SUMMARY = "all"

_NAMES = {"ndcg": "nDCG", "recall": "R", "mrr": "RR", "map": "AP", "p": "P"}
_THEIRS = re.compile(r"(nDCG|R|RR|AP|P)(?:\(rel=(\d{1,4})\))?@([1-9]\d{0,5})", re.ASCII)
LARGEST_JSON = 1 << 27
MOST_OBJECTS = 1_000_000


@dataclass(frozen=True)
class Foreign:
    """What a file holds: a ``run``, or scores ``per_query``; ``form`` is which of the three it is."""

    form: str
    run: Run | None = None
    per_query: PerQuery | None = None


def our_name(measure: str, relevant_from: int = 1) -> str:
    """The measure of ours that ir_measures calls so; empty for one that we do not have."""
    match = _THEIRS.fullmatch(measure.strip())
    if match is None or (match[1] != "nDCG" and int(match[2] or 1) != relevant_from):
        return ""
    return f"{next(kind for kind, name in _NAMES.items() if name == match[1])}@{match[3]}"


def read(path: Path, form: str, benchmark: Benchmark) -> Foreign:
    """Return what a file holds. InputError for one that is none of the three, with its line.

    It is read line by line, and only predictions of MTEB are held as a whole: a compressed file can be a thousand times
    as large as it looks.
    """
    if form == "auto":
        form = _detected_format(path)
    if form == MTEB:
        return Foreign(form, run=_predictions(path, benchmark.split))
    if form == TREC:
        return Foreign(form, run=_trec(path, set(benchmark.query_ids)))
    return Foreign(form, per_query=_scores(path, benchmark.relevant_from))


def _detected_format(path: Path) -> str:
    """Return which of the three a file looks like. InputError for an empty one."""
    with text_of_file(path) as text:
        while (start := text.read(1 << 16)) and not start.strip():
            pass
    if not start:
        raise InputError("The file is empty.", file=path, hint="Did the program that wrote it come to its end?")
    first = start.lstrip().partition("\n")[0]
    if first.startswith("{"):
        return IR_MEASURES if '"measure"' in first and '"query_id"' in first else MTEB
    return TREC if len(first.split()) == 6 else IR_MEASURES


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in lines_of(path):
        if line is None:
            raise InputError("The line is too long to be read.", file=path, line=number)
        yield number, line


def _trec(path: Path, judged: Set[str]) -> Run:
    """Return the run; of queries that are not judged only that they are there."""
    run: Run = {}
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 6:
            raise InputError(
                f"A TREC run has six fields, not {len(fields)}.",
                hint="query Q0 document rank score tag",
                file=path,
                line=number,
            )
        if fields[0] in judged:
            _put(run, fields[0], fields[2], fields[4], path, number)
        else:
            run.setdefault(fields[0], {})
    return run


def _put(run: Run, query: str, document: str, score: object, path: Path, line: int | None = None) -> None:
    value = _number(score, path, line)
    documents = run.setdefault(query, {})
    if document in documents:
        raise InputError(
            f"The document {shown(document)} stands twice for the query {shown(query)}.", file=path, line=line
        )
    documents[document] = value


def _number(text: object, path: Path, line: int | None) -> float:
    try:
        value = float(str(text))
    except ValueError:  # also a whole number of thousands of digits
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{shown(text)} is no score.", file=path, line=line)
    return value


def _predictions(path: Path, split: str) -> Run:
    hint = "Import it as a TREC run, which is read line by line."
    text = whole_text(path, LARGEST_JSON, hint)
    if text.count("{") + text.count("[") > MOST_OBJECTS:  # each takes a hundred times the memory of its text
        raise InputError(f"It is JSON with more than {MOST_OBJECTS:,} objects and lists.", hint=hint, file=path)
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise InputError("It is JSON that is nested too deeply.", file=path) from error
    except ValueError as error:
        raise InputError(f"It is no JSON: {str(error).split(';')[0]}.", file=path) from error
    if isinstance(value, dict) and "scores" in value and "task_name" in value:
        raise InputError(
            "This is a result file of MTEB, which holds means alone: nothing can be tested with them.",
            hint="Import the predictions: mteb.evaluate(…, prediction_folder=…) writes <task>_predictions.json.",
            file=path,
        )
    subsets = {name: inner for name, inner in value.items() if name != "mteb_model_meta"} if _is(value) else {}
    splits = [inner[split] for inner in subsets.values() if _is(inner) and split in inner]
    if len(splits) != 1 or not _is(splits[0]):
        listed = sorted({name for inner in subsets.values() if _is(inner) for name in inner})
        raise InputError(
            f"It holds {len(splits)} sets of predictions for the split {split!r}, and one is needed.",
            hint=f"Its splits are: {', '.join(listed)}." if listed else "Is it <task>_predictions.json of MTEB?",
            file=path,
        )
    run: Run = {}
    for query, documents in splits[0].items():
        run[query] = {}
        for document, score in (documents if _is(documents) else {}).items():
            _put(run, query, document, score, path)
    return run


def _is(value: object) -> bool:
    return isinstance(value, dict)


def _scores(path: Path, relevant_from: int) -> PerQuery:
    scores: PerQuery = {}
    for number, line in _lines(path):
        try:
            row = json.loads(line) if line.startswith("{") else None
            query, theirs, value = (
                (row["query_id"], row["measure"], row["value"]) if row else line.rstrip("\r\n").split("\t")
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                "This is neither a run nor scores per query.",
                hint="A TREC run has six fields; ir_measures --by_query prints query, measure, value.",
                file=path,
                line=number,
            ) from error
        ours = our_name(str(theirs), relevant_from)
        if ours and query != SUMMARY:
            scores.setdefault(ours, {})[str(query)] = _number(value, path, number)
    return scores


def ranked(run: Run, benchmark: Benchmark, path: Path) -> tuple[Ranking, dict[str, int]]:
    """(the run as a ranking in trec_eval's order, what was left out of it).

    Queries that this split does not judge, and documents that a query must not retrieve, are left out and counted.
    InputError where the run names documents that the benchmark lacks: it is of another collection, and without them the
    others would stand too high.
    """
    numbers = {document: number for number, document in enumerate(benchmark.document_ids)}
    judged = [query for query in benchmark.query_ids if query in run]
    if not judged:
        raise InputError(
            f"Not one of its {len(run):,} queries is judged by {benchmark.name} {benchmark.split}.",
            hint="Is it a run on this benchmark and split?",
            file=path,
        )
    unknown = {document for query in judged for document in run[query] if document not in numbers}
    if unknown:
        raise InputError(
            f"{len(unknown):,} of its documents are not in {benchmark.name} (first: {shown(min(unknown))}).",
            hint="Is it a run on this very benchmark? Without those documents the others would stand too high.",
            file=path,
        )
    excluded, rows = 0, []
    for query in benchmark.query_ids:
        scores, barred = run.get(query, {}), benchmark.excluded.get(query, ())
        excluded += sum(document in scores for document in barred)
        # In single precision, as trec_eval holds scores: two that only double precision tells apart are equal.
        order = sorted(((np.float32(s), d) for d, s in scores.items() if d not in barred), reverse=True)
        rows.append([(numbers[document], score) for score, document in order])
    width = max(map(len, rows))
    documents, values = np.full((len(rows), width), -1, np.int64), np.zeros((len(rows), width), np.float32)
    for row, pairs in enumerate(rows):
        if pairs:
            documents[row, : len(pairs)], values[row, : len(pairs)] = zip(*pairs, strict=True)
    return Ranking(documents, values), {"queries_not_judged": len(run) - len(judged), "excluded_pairs": excluded}
