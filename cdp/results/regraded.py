"""Scores of runs by all that was judged here until now, from what each retrieved: grades change tables at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from cdp.base.workspace import ANSWERS, FileCache, Workspace
from cdp.benchmarks import describe, judged
from cdp.catalog import FUSED
from cdp.evaluation.results import FirstTen, first_ten, run_file, scores_of
from cdp.studies import records

# More than a table has rows: scoring a run takes milliseconds, and a page asks at every click.
_SCORES = FileCache(1024)

# {query: {document: grade}}
JudgedNow = Mapping[str, Mapping[str, float]]

MEASURE = "ndcg@10"
UNJUDGED = "unjudged_in_first_ten"


def _kept_in(workspace: Workspace, evaluation: Mapping[str, Any]) -> Path:
    """Return the file of what an evaluation or a study's training retrieved."""
    folder, settings = workspace.jobs / evaluation["job_id"], evaluation["settings"]
    return records.path_of(folder, settings.get("key")) if settings.get("study") else run_file(folder)


def retrieved(workspace: Workspace, evaluation: Mapping[str, Any]) -> FirstTen | None:
    """Return what an evaluation or a study's training retrieved; None where that was not kept."""
    folder, settings = workspace.jobs / evaluation["job_id"], evaluation["settings"]
    if not settings.get("study"):
        return first_ten(folder)

    place = records.evaluation_key(*(evaluation[name] for name in ("scored_on", "split", "protocol")))
    fused = settings.get(FUSED) is not None

    def load() -> FirstTen | None:
        record = records.load(folder, settings.get("key")) or {}
        if fused:
            record = record.get("fused") or {}
        found = (record.get("evaluations") or {}).get(place)
        return records.firsts(found) if found else None

    return ANSWERS.get(_kept_in(workspace, evaluation), ("first ten", place, fused), load)


def _by_grades(workspace: Workspace, evaluation: Mapping[str, Any]) -> tuple[FirstTen, JudgedNow, Path] | None:
    """(what was retrieved, the grades as they are now, the benchmark's folder); None where it was not judged here,
    where other queries are judged now, or where the documents were not kept."""
    found = judged.judged_here(workspace, evaluation["benchmark"], evaluation["split"])
    run = retrieved(workspace, evaluation) if found else None
    if found is None or run is None:
        return None

    folder, grades = found
    # People may have labelled further queries since, for which nothing was retrieved: that is another version.
    if len(grades) != evaluation["n_queries"] or not run.keys() <= grades.keys():
        return None
    return run, grades, folder


def scores(workspace: Workspace, evaluation: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return NDCG@10 of each query, in [0, 1], by the grades as they are now; None as of ``_by_grades``."""
    found = _by_grades(workspace, evaluation)
    if found is None:
        return None
    run, grades, folder = found
    question = (evaluation["id"], folder, judged.version(folder, evaluation["split"]))
    return _SCORES.get(_kept_in(workspace, evaluation), question, lambda: scores_of(run, grades))


def if_relevant(
    workspace: Workspace, sides: Sequence[Sequence[Mapping[str, Any]]], queries: Sequence[str]
) -> tuple[float, float] | None:
    """Return (the share of unjudged documents in the first tens of the side that has most, the second side's NDCG@10
    minus the first's in points, were all of these of the top grade); None as of ``_by_grades``, or where at most
    ``MAX_UNJUDGED`` are unjudged. ``sides`` are the evaluations of a recipe's seeds each."""
    from cdp.principle.decide import MAX_UNJUDGED  # a room that most commands start without

    runs = []
    for side in sides:
        of_side = []
        for row in side:
            found = _by_grades(workspace, row)
            if found is None:
                return None
            run, grades, _ = found
            of_side.append(run)
        runs.append(of_side)

    share = max(judged.unjudged_share(grades, *side) for side in runs)
    if share <= MAX_UNJUDGED:
        return None

    top = judged.all_relevant(grades, judged.missing(grades, *runs[0], *runs[1]))
    means = []
    for side_runs in runs:
        of_runs = [scores_of(run, top) for run in side_runs]
        means.append(fmean(scores.get(query, 0.0) for scores in of_runs for query in queries))

    return share, 100 * (means[1] - means[0])


def updated(workspace: Workspace, evaluation: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the catalogue with its score, unjudged documents and version of the judgments as they are now.

    ``scored_on`` keeps the version that it was evaluated on.
    """
    row = {**evaluation, "scored_on": evaluation["benchmark_hash"]}
    found, now = _by_grades(workspace, row), scores(workspace, row)
    if found is None or now is None:
        return row
    run, grades, folder = found
    mean = sum(now.get(query, 0.0) for query in run) / max(1, row["n_queries"] or len(run))
    return {
        **row,
        MEASURE: mean,
        "measures": {**row["measures"], MEASURE: mean},
        "counts": {**row["counts"], UNJUDGED: len(judged.missing(grades, run))},
        "benchmark_hash": describe(folder, workspace).content_hash,
    }
