"""The worker that reads another program's TREC run or MTEB's files: ``python -m cdp.workers.importing <job folder>``.

A run is scored with our measures and becomes an evaluation like any other; so are runs as JSON (BEIR, pytrec_eval) and
the predictions of MTEB and sentence-transformers. MTEB's result files hold means alone: they stand on the leaderboard,
and no query of theirs is compared.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base import permission
from cdp.base.config import EvaluationConfig, ResultImportConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.job_kind import BENCHMARK, LIGHT, RESULT, JobKind, PreparedJob
from cdp.base.text import shown
from cdp.base.worker import Job, run
from cdp.base.workspace import Workspace, is_name, sha256_file
from cdp.benchmarks.beir_files import lines_of, source_of
from cdp.benchmarks.benchmark import Benchmark, load_benchmark
from cdp.benchmarks.judged import is_judged
from cdp.benchmarks.library import resolve_benchmark
from cdp.corpus.checks import id_in, number_in
from cdp.corpus.sources import open_text
from cdp.evaluation.evaluate import Evaluation, Protocol, Ranking, judge, unjudged
from cdp.evaluation.results import MEANS_ALONE, write_result
from cdp.retrievers.resolve import is_reserved


def main(job: Job) -> None:
    began = time.perf_counter()
    config = ResultImportConfig.from_dict(job.config)
    source = Path(config.path)
    job.progress("reading the benchmark", 0, 0, "")
    folder = resolve_benchmark(config.judged.benchmark, job.workspace)
    benchmark = load_benchmark(folder, config.judged.split)
    job.progress("reading the file", 0, 0, "")
    form, held = read_results(source, benchmark)
    digest = sha256_file(source)[:16]
    evaluation = _reported(benchmark, held) if form == MEANS_ALONE else score_run(benchmark, held, source)
    evaluation.settings.update(imported=form, file=source.name, file_hash=digest)
    settings = EvaluationConfig(retriever=config.retriever, judged=config.judged, protocol=config.protocol)
    who = {"id": config.retriever, "name": config.retriever, "kind": "imported", "hash": digest}
    write_result(job, settings, who, benchmark, evaluation, time.perf_counter() - began)
    print(", ".join(f"{name} {value:.4f}" for name, value in evaluation.measures.items()), flush=True)

    for name, n in evaluation.counts.items():
        if name in LEFT_OUT and n:
            print(f"Left out: {n:,} {name.replace('_', ' ')}", flush=True)

    job.progress("done", benchmark.n_queries, benchmark.n_queries, "queries")


TREC_RUN, MTEB_PREDICTIONS = "trec-run", "mteb-predictions"
JSON_RUN, PREDICTIONS = "json-run", "sentence-transformers-predictions"
# Counts of what a file holds and an evaluation does not take.
LEFT_OUT = ("queries_not_judged", "excluded_pairs")
MTEB_MEASURES = {
    f"{theirs}_at_{k}": f"{ours}@{k}"
    for theirs, ours, k in (
        ("ndcg", "ndcg", 10), ("mrr", "mrr", 10), ("precision", "p", 1),
        ("recall", "recall", 10), ("recall", "recall", 100), ("map", "map", 100),
    )
}  # fmt: skip


def score_run(benchmark: Benchmark, run: dict[str, dict[str, float]], source: Path) -> Evaluation:
    """Return a run, scored by our measures."""
    ranking, left_out = ranked(run, benchmark, source)
    measures, per_query, absent = judge(benchmark, ranking)

    counts: dict[str, float] = {"judged_queries": benchmark.n_queries, "judged_without_results": absent, **left_out}
    if is_judged(benchmark.folder):
        counts["unjudged_in_first_ten"] = unjudged(benchmark, ranking)
    settings = {"top_k": ranking.documents.shape[1]}
    return Evaluation(measures, per_query, ranking, Protocol("imported", "as given"), counts, {}, settings)


def _reported(benchmark: Benchmark, measures: dict[str, float]) -> Evaluation:
    """Return means as another program reported them: without scores by query, and without what was retrieved."""
    none = np.zeros((benchmark.n_queries, 0))
    ranking = Ranking(none.astype(np.int64), none.astype(np.float32))
    return Evaluation(measures, {}, ranking, Protocol("imported", "as given"), {}, {})


def read_results(path: Path, benchmark: Benchmark) -> tuple[str, dict[str, Any]]:
    """Return a file's form and what it holds: a run {query: {document: score}}, or of MTEB's results the means."""
    if path.suffix.lower() in (".parquet", ".lz4"):
        raise InputError("Runs are not read from this format.", hint=_FORMS, file=path)
    # MTEB writes predictions as one line, however long.
    with open_text(source_of(path), "utf-8") as text:
        head = text.read(1)
        while head and head.isspace():
            head = text.read(1)
        if head not in ("{", "["):
            return TREC_RUN, read_run(path, set(benchmark.query_ids))
        content = head + text.read()

    judged = set(benchmark.query_ids)
    if head == "{" and "\n{" in content:
        return PREDICTIONS, _predictions(content, judged, path)

    value = _json(content, path)
    if not isinstance(value, dict):
        raise InputError("This JSON is a list.", hint=_FORMS, file=path)
    if "query_id" in value:  # of a single query
        return PREDICTIONS, _predictions(content.replace("\n", " "), judged, path)

    scores = value.get("scores")
    if "task_name" in value and isinstance(scores, dict):
        return MEANS_ALONE, _mteb_means(scores, benchmark.split, path)
    if value and all(map(_scored, value.values())):
        return JSON_RUN, _json_run(value, judged, path)

    return MTEB_PREDICTIONS, _mteb_run(value, benchmark, path)


_FORMS = (
    "A TREC run, JSON as {query: {document: score}}, predictions of MTEB or sentence-transformers, or MTEB's results "
    "of one task."
)


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"This is no JSON: {error}.", hint=_FORMS, file=path) from error


def _scored(documents: Any) -> bool:
    """Return True for documents with their scores, False for what holds more (MTEB's splits) or is no object."""
    return isinstance(documents, dict) and not any(isinstance(value, dict | list) for value in documents.values())


def _json_run(value: Mapping[str, Any], judged: Set[str], path: Path) -> dict[str, dict[str, float]]:
    """Return {query: {document: score}} as ``read_run`` returns a run."""
    run: dict[str, dict[str, float]] = {}
    for query, documents in value.items():
        run[query] = {}
        if query in judged and isinstance(documents, dict):
            run[query] = _scores(query, documents.items(), path)

    return run


def _scores(query: str, documents: Iterable[tuple[str, Any]], path: Path) -> dict[str, float]:
    """Return the scores of a query's documents. InputError for one that is no number, and for a document twice."""
    taken: dict[str, float] = {}
    for document, value in documents:
        score = number_in(value)
        if score is None:
            raise InputError(f"{shown(value)} is no score, of the query {shown(query)}.", file=path)
        if document in taken:
            raise InputError(f"{shown(document)} is listed twice for the query {shown(query)}.", file=path)
        taken[document] = score

    return taken


def _predictions(content: str, judged: Set[str], path: Path) -> dict[str, dict[str, float]]:
    """Return what InformationRetrievalEvaluator of sentence-transformers writes: a line per query, with ``query_id``
    and ``results`` of ``corpus_id`` and ``score``."""
    run: dict[str, dict[str, float]] = {}
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue

        value = _json(line, path)
        try:
            query = id_in(value["query_id"])
            pairs = [(id_in(result["corpus_id"]), result["score"]) for result in value["results"]]
        except (KeyError, TypeError) as error:
            problem = "This line has no query_id with results of corpus_id and score."
            raise InputError(problem, hint=_FORMS, file=path, line=number) from error

        if query in run:
            raise InputError(f"The query {shown(query)} is there twice.", file=path, line=number)
        run[query] = _scores(query, pairs, path) if query in judged else {}

    return run


def _mteb_means(scores: Mapping[str, Any], split: str, path: Path) -> dict[str, float]:
    """Return the means of our measures, of the one subset that a task's split has."""
    subsets = scores.get(split)
    if not isinstance(subsets, list) or not subsets or not all(isinstance(subset, dict) for subset in subsets):
        there = ", ".join(scores) or "no split"
        raise InputError(f"It has no scores of the split {split!r}.", hint=f"There is: {there}.", file=path)
    if len(subsets) > 1:
        raise InputError("It holds several subsets, and a benchmark is one.", hint="Import predictions.", file=path)

    means: dict[str, float] = {}
    for theirs, ours in MTEB_MEASURES.items():
        value = subsets[0].get(theirs)
        if value is None:
            continue

        mean = number_in(value)
        if mean is None or not 0 <= mean <= 1:
            problem = f"Its {ours} is {shown(value)}, not between 0 and 1."
            raise InputError(problem, hint="MTEB writes shares, not percent.", file=path)
        means[ours] = mean

    if "ndcg@10" not in means:
        raise InputError("It has no ndcg_at_10.", hint="Is it a retrieval task?", file=path)

    return means


def _mteb_run(value: Mapping[str, Any], benchmark: Benchmark, path: Path) -> dict[str, dict[str, float]]:
    """Return MTEB's predictions of a split, as ``read_run`` returns a run."""
    runs = [kept[benchmark.split] for kept in value.values() if isinstance(kept, dict) and benchmark.split in kept]
    if len(runs) != 1 or not isinstance(runs[0], dict):
        problem = f"It holds {len(runs)} subsets with the split {benchmark.split!r}, not one."
        raise InputError(problem, hint=_FORMS, file=path)

    return _json_run(runs[0], set(benchmark.query_ids), path)


def read_run(path: Path, judged: Set[str]) -> dict[str, dict[str, float]]:
    """Read a run of TREC's fields, or of MS MARCO's or ColBERT's; unjudged queries get no documents.

    InputError with the line; also for distances.
    """
    # Line by line: a compressed file can be a thousand times larger unpacked.
    run: dict[str, dict[str, float]] = {}
    fractions = 0
    by_rank: set[str] = set()
    ends: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {}
    for number, line in lines_of(path):
        fields = _fields(line or "")
        if not fields:
            problem = f"It has {len((line or '').split())} fields, not six."
            if line is None:
                problem = "The line is too long to be read."
            raise InputError(problem, hint=_FIELDS, file=path, line=number)

        query, document, rank, text = fields
        if line and line.count("\t") == 2:
            by_rank.add(query)
        documents = run.setdefault(query, {})

        if query not in judged:
            continue

        if document in documents:
            twice = f"The document {shown(document)} is listed twice for the query {shown(query)}."
            raise InputError(twice, file=path, line=number)

        with suppress(ValueError):
            documents[document] = float(text)
        if not math.isfinite(documents.get(document, math.nan)):
            raise InputError(f"{shown(text)} is no score.", file=path, line=number)

        with suppress(ValueError):
            at = float(rank), documents[document]
            first, last = ends.get(query, (at, at))
            ends[query] = min(first, at), max(last, at)
            fractions += not (at[0].is_integer() or at[1] % 1)

    if not run:
        raise InputError("The file is empty.", file=path, hint="Did the program that wrote it come to its end?")

    for query in by_rank & ends.keys():
        lowest, highest = (rank for rank, _ in ends[query])
        if lowest not in (0, 1) or highest - lowest + 1 != len(run[query]):
            problem = f"What stands beside the documents of {shown(query)} are no ranks."
            raise InputError(problem, hint=_FIELDS, file=path)

    if 2 * fractions > sum(map(len, run.values())):
        problem = "Its ranks are fractions and its scores whole numbers."
        raise InputError(problem, hint="The columns are: query Q0 document rank score tag.", file=path)

    # trec_eval goes by scores alone, so distances would turn a run upside down without a word.
    differing = [(first[1], last[1]) for first, last in ends.values() if first[0] < last[0] and first[1] != last[1]]
    reversed_ = sum(best < worst for best, worst in differing)
    if 2 * reversed_ > len(differing):
        raise InputError(
            f"For {reversed_:,} of {len(differing):,} queries the first rank has a lower score than the last.",
            hint="Scores have to be higher for better documents: negate distances. Are the columns in TREC's order?",
            file=path,
        )

    return run


_FIELDS = "A TREC run: query Q0 document rank score tag. Between tabs also: query document rank, or with the score."


def _fields(line: str) -> list[str]:
    """Return query, document, rank and score of a line; none where it is no line of a run.

    Between tabs an id may hold blanks, and two forms are known beside TREC's: ColBERT writes these four, MS MARCO's
    programs three, the last of which is a rank.
    """
    fields = list(map(str.strip, line.split("\t")))
    if len(fields) == 3:
        return [*fields, f"-{fields[2]}"]
    if len(fields) == 4:
        return fields

    # A tag is the name of a system, which may hold blanks.
    fields = fields if len(fields) >= 6 else line.split()
    return [fields[0], *fields[2:5]] if len(fields) >= 6 else []


def ranked(run: dict[str, dict[str, float]], benchmark: Benchmark, path: Path) -> tuple[Ranking, dict[str, int]]:
    """Return the run as a ranking in trec_eval's order, and the counts of skipped items.

    Queries that the split does not judge, and documents that a query must not retrieve, are skipped. InputError for
    documents that the benchmark lacks: the run is of another collection.
    """
    numbers = {document: number for number, document in enumerate(benchmark.document_ids)}
    judged = [query for query in benchmark.query_ids if query in run]
    if not judged:
        raise InputError(
            f"Not one of its {len(run):,} queries is judged by {benchmark.name} {benchmark.split}.",
            hint="Is it a run on this benchmark and split?",
            file=path,
        )

    retrieved: set[str] = set()
    for query in judged:
        retrieved.update(run[query])

    if unknown := retrieved - numbers.keys():
        raise InputError(
            f"{len(unknown):,} of its documents are not in {benchmark.name} (first: {shown(min(unknown))}).",
            hint="Is it a run on this very benchmark? Without those documents the others would stand too high.",
            file=path,
        )

    excluded, rows = 0, []
    for query in benchmark.query_ids:
        scores, barred = run.get(query, {}), benchmark.excluded.get(query, ())
        excluded += sum(document in scores for document in barred)
        # Single precision, as in trec_eval: scores that differ only in double precision are equal.
        order = sorted(((np.float32(s), d) for d, s in scores.items() if d not in barred), reverse=True)
        rows.append([(numbers[document], score) for score, document in order])

    width = max(10, *map(len, rows))  # a short run has NDCG@10 all the same

    documents, values = np.full((len(rows), width), -1, np.int64), np.zeros((len(rows), width), np.float32)
    for row, pairs in enumerate(rows):
        if pairs:
            documents[row, : len(pairs)], values[row, : len(pairs)] = zip(*pairs, strict=True)

    return Ranking(documents, values), {"queries_not_judged": len(run) - len(judged), "excluded_pairs": excluded}


def prepare(workspace: Workspace, config: ResultImportConfig, after: Sequence[str] = ()) -> PreparedJob:
    name = " ".join(config.retriever.split())
    own = is_name(name) and workspace.job(name).is_dir()
    if not name or own or is_reserved(name):
        raise ConfigError(
            f"{name!r} is a retriever of this workspace: imported scores would stand as its own.",
            hint="Choose another name, such as the name of the file.",
        )
    source = permission.to_read(workspace, config.path)
    if not source.is_file():
        raise InputError(f"There is no file {source}.", hint="Check the path; it is read on the server.")
    config = config.replace(path=str(source.resolve()), retriever=name)
    return PreparedJob(config, f"{name} on {Path(config.judged.benchmark).name}")


KIND = JobKind(
    "import", "Importing results", "A run of another program, or MTEB's results, as an evaluation.",
    ResultImportConfig, main, prepare, inputs={"benchmark": BENCHMARK}, device=lambda config: LIGHT, makes=RESULT,
    command="results import", word="path", order=90,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
