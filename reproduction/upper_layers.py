"""Two trained layers against all: the plan ``upper-layers`` on four collections, resumed where it was, and the slope.

    python -m reproduction.upper_layers [--workspace DIR] [--data DIR] [--documents 300] [--queries 100] [--seeds 0,1]
        [--steps N] [--batch N] [--length TOKENS] [--collections demo,scifact] [--report]

A training that is there is never run again, so a second call goes on. ``--report`` keeps and computes what is there.
Scores of every query are kept beside docs/REPRODUCTION.md, whose section on layers is made from them.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.condition import Condition
from cdp.base.statistics import stdtrit
from cdp.base.text import counted, interval, signed
from cdp.base.workspace import REPOSITORY, Workspace, read_json_or_none, write_bytes, write_json
from cdp.benchmarks import add_benchmark, subsets
from cdp.benchmarks.benchmark import part
from cdp.corpus import list_corpora, read_documents, store
from cdp.services import demo, jobs, studies
from cdp.studies import records
from cdp.studies.config import StudyConfig, read_plan
from cdp.studies.gains import Floats, read_scores
from cdp.studies.report import read_about
from cdp.studies.text import table
from reproduction import criteria
from reproduction.kept import ENDING, Kept, packed, read_file
from reproduction.stages import FROZEN

COLLECTIONS = ("demo", "musique_sample", "scifact", "hotpotqa_sample")
PLAN = "upper-layers"
DATA = REPOSITORY.parent / "shared" / "data"

# The arms that are compared: (method, queries per document).
ARMS = (("diverse", 1), ("paraphrase", 5), ("diverse", 5))

DRAWS = 2_000

# The slope's interval lies within these where both tell the same (the plan's criterion).
LEAST, MOST = 0.5, 1.5

SIMULATED_BY = "tests/reproduction/test_upper_layers.py"

KEPT_IN = REPOSITORY / "docs" / "reproduction"


@dataclass(frozen=True)
class Difference:
    """One arm minus another on one collection, in points by seed and query: shape (n_seeds, n_queries) each."""

    collection: str
    arms: tuple[tuple[str, int], tuple[str, int]]
    two: Floats
    whole: Floats

    @property
    def name(self) -> str:
        """``diverse × 5 minus paraphrase × 5``."""
        return " minus ".join(f"{method} × {per_doc}" for method, per_doc in self.arms)

    @property
    def significant(self) -> tuple[int, int]:
        """The signs of both means over the seeds, 0 where the 95% interval over the queries holds 0."""
        return _sign(self.two.mean(axis=0)), _sign(self.whole.mean(axis=0))


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


def keep(workspace: Workspace, folder: Path) -> list[Path]:
    """Write the scores of each study of the plan that is there to ``folder``; return the files."""
    written = []
    for view in studies.list_studies(workspace):
        about = read_about(view.folder)
        if about is None or not view.name.startswith(PLAN):
            continue

        leaks = studies.report(workspace, view.id).leaks
        frozen = read_json_or_none(view.folder / FROZEN) or {}
        study = {"id": view.id, "state": str(view.state), "frozen": frozen, "limits": leaks, "about": about}
        file = folder / f"{PLAN}-{view.name.removeprefix(PLAN).strip()}{ENDING}"
        write_bytes(file, packed(study, list(records.list_records(view.folder))))
        written.append(file)

    return written


def read_kept(folder: Path) -> dict[str, Kept]:
    """{collection: its study} of what ``keep`` wrote, in the order of ``COLLECTIONS``."""
    files = {name: folder / f"{PLAN}-{name}{ENDING}" for name in COLLECTIONS}
    return {name: read_file(PLAN, file) for name, file in files.items() if file.is_file()}


def differences(kept: Mapping[str, Kept]) -> list[Difference]:
    """The pairs of arms of every collection, over the seeds that have both numbers of layers."""
    found = []
    for collection, study in kept.items():
        place = study.about["benchmarks"][0]["place"]
        scores, _ = read_scores(study.trainings, {place: "here"})

        by_seed = {condition: of["here"] for condition, of in scores.items() if condition.per_doc}
        for first, second in combinations(ARMS, 2):
            two, whole = (_minus(by_seed, second, first, layers) for layers in (2, 0))
            seeds = sorted({*two} & {*whole})
            if seeds:
                of_seeds = (np.array([side[seed] for seed in seeds]) for side in (two, whole))
                found.append(Difference(collection, (second, first), *of_seeds))

    return found


def _minus(
    by_seed: Mapping[Condition, Mapping[int, Floats]], arm: tuple[str, int], other: tuple[str, int], layers: int
) -> dict[int, Floats]:
    """One arm minus another by seed, for the seeds that have both."""

    def of(wanted: tuple[str, int]) -> Mapping[int, Floats]:
        found = (c for c in by_seed if (c.method, c.per_doc, c.layers) == (*wanted, layers))
        return next((by_seed[condition] for condition in found), {})

    mine, theirs = of(arm), of(other)
    return {seed: mine[seed] - theirs[seed] for seed in mine if seed in theirs}


def _sign(values: Floats) -> int:
    half = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return int(np.sign(values.mean())) if abs(values.mean()) > half else 0


def slope(found: Sequence[Difference]) -> tuple[float, float, float]:
    """(slope of the differences with two layers on those with all, its 95% interval over queries).

    Both are means of few trainings, and noise in what a line is fitted on draws its slope towards 0. The variance of
    these means over the seeds, and their covariance, are taken off both moments (Fuller 1987, eq. 1.2.5). NaN where
    the noise is all that there is, or with one seed.
    """
    rng = np.random.default_rng(0)
    drawn = {d.collection: rng.integers(0, d.two.shape[1], (DRAWS, d.two.shape[1])) for d in found}
    two, whole = ([getattr(d, name)[:, drawn[d.collection]].mean(axis=2) for d in found] for name in ("two", "whole"))
    slopes = _slopes(whole, two)
    low, high = np.nanpercentile(slopes, [2.5, 97.5]) if np.isfinite(slopes).any() else (math.nan, math.nan)

    means = ([getattr(d, name).mean(axis=1, keepdims=True) for d in found] for name in ("whole", "two"))
    (point,) = _slopes(*means)
    return float(point), float(low), float(high)


def _slopes(x: Sequence[Floats], y: Sequence[Floats]) -> Floats:
    """The slopes of y on x, shape (n_draws,), of each difference's means by seed and draw, without the seeds' noise."""
    if min(map(len, x)) < 2:
        return np.full(x[0].shape[1], math.nan)

    xs, ys = (np.array([values.mean(axis=0) for values in side]) for side in (x, y))
    noise, shared = np.zeros(xs.shape[1]), np.zeros(xs.shape[1])
    for of_x, of_y in zip(x, y, strict=True):
        n = len(of_x)
        noise += of_x.var(axis=0, ddof=1) / n
        shared += ((of_x - of_x.mean(axis=0)) * (of_y - of_y.mean(axis=0))).sum(axis=0) / (n - 1) / n

    # Of n values about their mean, the noise of each counts (n - 1) / n times.
    share = (len(xs) - 1) / len(xs)
    centred = xs - xs.mean(axis=0)
    spread = (centred**2).sum(axis=0) - share * noise
    together = (centred * ys).sum(axis=0) - share * shared
    return np.where(spread > 0, together / np.where(spread > 0, spread, 1.0), math.nan)


def beyond(found: Sequence[Difference]) -> list[tuple[float, float, float]]:
    """Of each difference: (that with all layers minus that with two, its interval), over queries and trainings; 95% for
    all intervals together (Bonferroni).

    Two seeds say little of one difference's luck, so its variance is the mean over all differences that are given.
    """
    gaps = [d.whole - d.two for d in found]
    luck = float(np.mean([gap.mean(axis=1).var(ddof=1) / len(gap) for gap in gaps])) if min(map(len, gaps)) > 1 else 0.0

    level = 1 - 0.025 / len(gaps)
    intervals = []
    for gap in gaps:
        of_queries = gap.mean(axis=0)
        n = len(of_queries)
        half = float(stdtrit(n - 1, level)) * math.sqrt(float(of_queries.var(ddof=1)) / n + luck)
        point = float(gap.mean())
        intervals.append((point, point - half, point + half))

    return intervals


def section(folder: Path) -> list[str]:
    """The section of docs/REPRODUCTION.md, from the kept scores; empty where none are kept."""
    kept = read_kept(folder)
    found = differences(kept)
    if len(found) < 3:
        return []

    gaps = beyond(found)
    rows = []
    for d, (point, low, high) in zip(found, gaps, strict=True):
        gap = f"{signed(point)} ({interval((low, high), sign=True)})"
        rows.append([d.collection, d.name, signed(d.two.mean()), signed(d.whole.mean()), gap])

    return [
        "## Two trained layers against all",
        "",
        "Without a GPU a test trains the upper two of `minilm`'s six layers. Whether that finds the differences that "
        f"training all of it finds was asked by `data/plans/{PLAN}.yaml`: {_sizes(kept, found)}.",
        "",
        _verdict(gaps),
        "",
        _by_the_plan(found),
        "",
        table(["Collection", "Difference", "Two layers", "All layers", "All minus two"], rows),
        "",
        "Points of NDCG@10, means over the seeds. The intervals hold together at 95%; they count queries and the luck "
        "of trainings, not other collections. Again, or at the plan's own size: `python -m reproduction.upper_layers`.",
        "",
    ]


def _sizes(kept: Mapping[str, Kept], found: Sequence[Difference]) -> str:
    """``2 collections, 48 trainings: 45 steps of 32 pairs, texts of 128 tokens, …``."""
    trained = [training for study in kept.values() for training in study.trained]
    settings = trained[0]["settings"]
    documents = sorted({int(training["training"]["documents"]) for training in trained})
    seeds = counted(len(found[0].two), "seed")
    of_documents = " to ".join(f"{n:,}" for n in dict.fromkeys((documents[0], documents[-1])))
    by_llm = [name for name, study in kept.items() if study.about["config"]["generator"] != "template"]

    return (
        f"{counted(len(kept), 'collection')}, {len(trained)} trainings with {seeds}, {of_documents} documents, "
        f"{settings['steps']} steps of {settings['batch_size']} pairs, {settings['max_length']} tokens a text; "
        f"queries by an LLM on {' and '.join(by_llm) or 'none'}, by template elsewhere"
    )


def _verdict(gaps: Sequence[tuple[float, float, float]]) -> str:
    """What the gaps say: that the two differ, or nothing; that they agree is not shown by wide intervals."""
    outside = sum(not low <= 0 <= high for _, low, high in gaps)
    if not outside:
        return "**It cannot be told.** No gap between the two is beyond its interval."
    return f"**They do not tell the same.** {outside} of {len(gaps)} gaps between the two are beyond their intervals."


def _by_the_plan(found: Sequence[Difference]) -> str:
    """What the plan's own criterion says, and what is known of it."""
    point, low, high = slope(found)
    if math.isnan(point):
        return "By the plan's criterion nothing is said: the differences vary no more than their noise."

    opposite = sum(math.prod(d.significant) < 0 for d in found)
    holds = LEAST <= low <= 1 <= high <= MOST and not opposite
    ends = interval((low, high), sign=True)

    return (
        f"By the plan's criterion they {'tell' if holds else 'do not tell'} the same: the slope of the differences "
        f"with two layers on those with all is {signed(point)} (bootstrap over queries {ends}), and "
        f"{counted(opposite, 'difference is', 'differences are')} significant with opposite signs. That bootstrap "
        f"holds the true slope too seldom (`{SIMULATED_BY}`), so the gaps decide."
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction.upper_layers", description=__doc__)
    parser.add_argument("--workspace", type=Path, default=REPOSITORY / "build" / "upper-layers")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=KEPT_IN)
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--length", type=int)
    parser.add_argument("--report", action="store_true")

    a = parser.parse_args(words)
    workspace = Workspace(a.workspace)
    sizes = {"max_documents": a.documents, "seeds": a.seeds}
    shorter = {"steps": a.steps, "batch_size": a.batch, "max_length": a.length}
    sizes |= {setting: value for setting, value in shorter.items() if value}

    for name in () if a.report else a.collections.split(","):
        own = prepare(workspace, a.data, name, a.documents, a.queries)
        config: StudyConfig = read_plan(PLAN, {**own, **sizes, "name": f"{PLAN} {name}"})
        held = criteria.frozen(PLAN, criteria.read())
        job_id = studies.run(workspace, config).job_id
        write_json(workspace.job(job_id) / FROZEN, held)
        jobs.wait(workspace, job_id)

    for file in keep(workspace, a.out):
        print(f"kept: {file}")
    print("\n".join(section(a.out)) or "There are fewer than three differences as yet.")

    return 0


if __name__ == "__main__":
    sys.exit(main())
