"""Two trained layers against all: the plan ``upper-layers`` on four collections, resumed where it was, and the slope.

    python -m reproduction.upper_layers [--workspace DIR] [--data DIR] [--documents 300] [--queries 100] [--seeds 0,1]
        [--steps N] [--collections demo,scifact] [--report]

A training that is there is never run again, so a second call goes on. ``--report`` computes from what is there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.workspace import REPOSITORY, Workspace, write_json
from cdp.benchmarks import add_benchmark, subsets
from cdp.benchmarks.benchmark import part
from cdp.corpus import list_corpora, read_documents, store
from cdp.services import demo, jobs, studies
from cdp.studies import records
from cdp.studies.config import StudyConfig, read_plan
from cdp.studies.gains import Floats, read_scores
from cdp.studies.plan import Cell, method_of
from cdp.studies.report import read_about

COLLECTIONS = ("demo", "musique_sample", "scifact", "hotpotqa_sample")
PLAN = "upper-layers"
DATA = REPOSITORY.parent / "shared" / "data"

# The arms that are compared: (method, queries per document).
ARMS = (("diverse", 1), ("paraphrase", 5), ("diverse", 5))

DRAWS = 2_000


@dataclass(frozen=True)
class Difference:
    """One arm minus another on one collection, in points per query, seeds averaged: shape (n_queries,) each."""

    collection: str
    arms: str
    two: Floats
    whole: Floats


def prepare(workspace: Workspace, data: Path, name: str, documents: int, queries: int) -> dict[str, Any]:
    """Bring a collection's sample into the workspace; return the settings of the plan that name it."""
    if name == "demo":
        demo.load(workspace)
        return {"generator": "recorded"}
    sample = f"{name}-{documents}"
    if not (workspace.benchmarks / sample).is_dir():
        if not (workspace.benchmarks / name).is_dir():
            add_benchmark(data / name, workspace, name)
        subsets.sample(name, workspace, queries=queries, documents=documents, called=sample)
    if not any(corpus.name == sample for corpus in list_corpora(workspace)):
        with read_documents(part(workspace.benchmarks / sample, "corpus")) as read:
            store(read, sample, workspace)
    return {"benchmarks": sample, "corpus": sample, "generator": "template"}


def differences(workspace: Workspace) -> list[Difference]:
    """The pairs of arms of every study of the plan that is there, those with both numbers of layers."""
    found = []
    for view in studies.list_studies(workspace):
        about = read_about(view.folder)
        if about is None or not view.name.startswith(PLAN):
            continue
        place = about["benchmarks"][0]["place"]
        scores, _ = read_scores(records.list_records(view.folder), {place: "here"})
        means = {cell: np.mean(list(of["here"].values()), axis=0) for cell, of in scores.items() if cell.per_doc}
        for first, second in combinations(ARMS, 2):
            two, whole = (_minus(means, second, first, layers) for layers in (2, 0))
            if two is not None and whole is not None:
                arms = f"{second[0]} {second[1]} - {first[0]} {first[1]}"
                found.append(Difference(view.name.removeprefix(f"{PLAN} "), arms, two, whole))
    return found


def _minus(means: dict[Cell, Floats], arm: tuple[str, int], other: tuple[str, int], layers: int) -> Floats | None:
    def of(wanted: tuple[str, int]) -> Floats | None:
        cells = (c for c in means if (method_of(c.source), c.per_doc, c.layers) == (*wanted, layers))
        return next((means[cell] for cell in cells), None)

    mine, theirs = of(arm), of(other)
    return None if mine is None or theirs is None else mine - theirs


def slope(found: Sequence[Difference]) -> tuple[float, float, float]:
    """(slope of the differences with two layers on those with all, its 95% interval over queries)."""
    rng = np.random.default_rng(0)
    drawn = {d.collection: rng.integers(0, len(d.two), (DRAWS, len(d.two))) for d in found}
    two, whole = (
        np.array([getattr(d, name)[drawn[d.collection]].mean(axis=1) for d in found]) for name in ("two", "whole")
    )
    low, high = np.percentile([_slope(x, y) for x, y in zip(whole.T, two.T, strict=True)], [2.5, 97.5])
    point = _slope(np.array([d.whole.mean() for d in found]), np.array([d.two.mean() for d in found]))
    return point, float(low), float(high)


def _slope(x: Floats, y: Floats) -> float:
    centred = x - x.mean()
    return float(centred @ (y - y.mean()) / (centred @ centred))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction.upper_layers", description=__doc__)
    parser.add_argument("--workspace", type=Path, default=REPOSITORY / "build" / "upper-layers")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--report", action="store_true")
    a = parser.parse_args(words)
    workspace = Workspace(a.workspace)
    for name in () if a.report else a.collections.split(","):
        own = prepare(workspace, a.data, name, a.documents, a.queries)
        steps = {"steps": a.steps} if a.steps else {}
        sizes = {"max_documents": a.documents, "seeds": a.seeds, "name": f"{PLAN} {name}"}
        config: StudyConfig = read_plan(PLAN, {**own, **sizes, **steps})
        jobs.wait(workspace, studies.run(workspace, config).job_id)
    found = differences(workspace)
    for d in found:
        print(f"{d.collection}: {d.arms}: two {d.two.mean():+.2f}, all {d.whole.mean():+.2f} ({len(d.two)} queries)")
    if len(found) > 2:
        point, low, high = slope(found)
        print(f"slope {point:.2f} (95% {low:.2f} to {high:.2f}), {len(found)} differences")
        rows = [{**vars(d), "two": d.two.round(2).tolist(), "whole": d.whole.round(2).tolist()} for d in found]
        write_json(workspace.root / "upper-layers.json", {"slope": [point, low, high], "differences": rows})
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
