"""Worlds with a known truth, drawn from the kept scores: what the decision says in them, and how often it is right.

    python -m tests.principle.worlds [DRAWS]

prints the tables of docs/METHODS.md. Queries are those of FairytaleQA (1,540 of stories' sections) by static-minilm
trained on ``scifact``, its five seeds and BM25; options are moved so that their true means are those of a world.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cdp.base.condition import BM25, DIVERSE, HYBRID, PARAPHRASED, UNTRAINED, Condition
from cdp.base.statistics import Floats
from cdp.base.workspace import REPOSITORY
from cdp.principle.decide import WORTH_POINTS, OptionSet
from cdp.principle.evidence import MODEL, PEOPLE, Arm, Basis, Evidence
from cdp.principle.simultaneous import needed

KEPT = REPOSITORY / "docs" / "reproduction" / "recorded-contrast.json.gz"

OPTIONS = ((UNTRAINED, 0), (BM25, 0), (HYBRID, 0), (DIVERSE, 1), (PARAPHRASED, 1), (PARAPHRASED, 5), (DIVERSE, 5))

# How far the options lie above the others, in NDCG@10 points.
WORLDS = {
    "five diverse +5": (0, 0, 0, 0, 0, 0, 5),
    "all equal": (0, 0, 0, 0, 0, 0, 0),
    "five paraphrases +3": (0, 0, 0, 0, 0, 3, 0),
    "BM25 +10": (0, 10, 0, 0, 0, 0, 0),
    "hybrid +5": (0, 0, 5, 0, 0, 0, 0),
    "trainings −4": (0, 0, 0, -4, -4, -4, -4),
    "trainings +5": (0, 0, 0, 5, 5, 5, 5),
}

SEEDS = 3
QUICK = 1_000


@dataclass(frozen=True)
class Pool:
    """Scores as people would give them: ``fixed`` (3, n) and ``trained`` (4, seeds, n), all of mean 0 over the queries,
    and the document (n,) of each query. ``shared`` and ``own`` are standard deviations of seeds' effects."""

    fixed: Floats
    trained: Floats
    documents: np.ndarray
    shared: float
    own: float


@lru_cache(maxsize=1)
def pool() -> Pool:
    """The kept scores of one judged set."""
    kept = json.loads(gzip.decompress(KEPT.read_bytes()))
    judged = max(kept["scores"], key=lambda scores: len(scores["queries"]))
    columns = dict(zip(judged["trainings"], np.array(judged["rows"]).T / 100, strict=True))
    of: dict[tuple[str, int], list[Floats]] = {}
    for number, scores in columns.items():
        training = kept["trainings"][number]
        about = training["condition"]
        if about is None:
            kind = BM25 if training["retriever"] == "bm25" else HYBRID if training.get("hybrid") else UNTRAINED
            of.setdefault((kind, 0), []).append(scores)
        elif about["source"].endswith("on contrast-scifact") and not about["held"]:
            of.setdefault((about["source"].partition(" ")[0], about["per_doc"]), []).append(scores)
    if (BM25, 0) not in of:
        raise ValueError(sorted(of))
    arms = [np.array(of[option]) for option in OPTIONS]
    arms = [arm - arm.mean() for arm in arms]
    trained = np.array([arm for arm in arms if len(arm) > 1])
    means = trained.mean(axis=2)
    common = means.mean(axis=0)
    places = {name: number for number, name in enumerate(sorted({q.partition("-")[0] for q in judged["queries"]}))}
    documents = np.array([places[q.partition("-")[0]] for q in judged["queries"]])
    return Pool(
        np.array([arm[0] for arm in arms if len(arm) == 1]),
        trained - means[:, :, None],
        documents,
        float(common.std(ddof=1)),
        float((means - common).std(ddof=1)),
    )


def study(
    random: np.random.Generator,
    world: Sequence[float],
    n: int,
    *,
    seeds: int = SEEDS,
    whole: bool = False,
    judge: str = "",
    labels: int = 0,
) -> Evidence:
    """One test in a world: ``n`` queries, of ``whole`` documents where asked, judged by people or by a ``judge``."""
    p = pool()
    clusters: tuple[int, ...] = ()
    if whole:
        chosen, groups = whole_documents(random, p.documents, n)
        clusters = tuple(groups)
    else:
        chosen = random.integers(0, len(p.documents), n)
    common = random.normal(0, p.shared, (seeds, 1))
    # What a seed does to single queries: a kept seed's scores, drawn again for each query, alike for all trainings.
    of_query = random.integers(0, p.trained.shape[1], (seeds, len(chosen)))
    scores = []
    for number, (option, above) in enumerate(zip(OPTIONS, world, strict=True)):
        if not option[1]:
            scores.append(45 + above + p.fixed[number][None, chosen])
        else:
            noise = common + random.normal(0, p.own, (seeds, 1))
            scores.append(45 + above + p.trained[number - len(p.fixed)][of_query, chosen] + noise)
    people: list[Floats | None] = [None] * len(scores)
    if judge:
        graded = random.choice(len(chosen), labels, replace=False)
        people = [np.full_like(values, np.nan) for values in scores]
        for into, values in zip(people, scores, strict=True):
            assert into is not None
            into[:, graded] = values[:, graded]
        scores = judged(random, judge, scores)
    arms = [
        Arm(Condition("", kind, per_doc), values, steps=87 if per_doc else 0, people=of_people)
        for (kind, per_doc), values, of_people in zip(OPTIONS, scores, people, strict=True)
    ]
    basis = Basis(
        study="s",
        judged_queries=len(chosen),
        judged_by=MODEL if judge else PEOPLE,
        labels=labels,
        labelled_units=labels,
    )
    return Evidence(basis, tuple(arms), clusters=clusters)


def whole_documents(random: np.random.Generator, documents: np.ndarray, n: int) -> tuple[np.ndarray, list[int]]:
    """(queries of whole documents, about ``n`` of them; the draw that each belongs to)."""
    order = np.argsort(documents, kind="stable")
    by_document = np.split(order, np.cumsum(np.bincount(documents))[:-1])
    count = max(2, round(n * len(by_document) / len(documents)))
    drawn = random.integers(0, len(by_document), count)
    chosen = np.concatenate([by_document[number] for number in drawn])
    return chosen, [draw for draw, number in enumerate(drawn) for _ in by_document[number]]


def judged(random: np.random.Generator, judge: str, scores: Sequence[Floats]) -> list[Floats]:
    """The scores as a model gives them. A biased one likes trainings and finds half of the differences, a lenient one
    takes much of what is irrelevant for relevant."""
    n = scores[0].shape[1]
    if judge == "biased":
        noise = random.normal(0, 10, n)
        return [0.5 * s + (12.0 if len(s) > 1 else 0.0) + noise + random.normal(0, 10, n) for s in scores]
    leniency = random.beta(2, 2, n)
    return [s + (100 - s) * leniency + random.normal(0, 5, n) for s in scores]


@dataclass(frozen=True)
class Said:
    """What one answer said: all intervals ``held``, their mean half ``width``, a ``false_gain`` among them; whether the
    choice was ``settled``, ``wrong`` (settled and over 2 points below the best), and its ``loss`` in points."""

    held: bool
    width: float
    false_gain: bool
    settled: bool
    wrong: bool
    loss: float


def ask(evidence: Evidence, world: Sequence[float], draws: int = QUICK) -> tuple[Said, OptionSet]:
    q = OptionSet(evidence, evidence.arms, draws)
    truth = {id(arm): above for arm, above in zip(evidence.arms, world, strict=True)}
    errors = [(c, truth[id(c.option)] - truth[id(c.against)]) for c in q.all]
    choice, settled = q.choose(q.options)
    loss = max(world) - truth[id(choice)]
    said = Said(
        all(c.low - 1e-9 <= true <= c.high + 1e-9 for c, true in errors),
        float(np.mean([(c.high - c.low) / 2 for c, _ in errors])),
        any(c.gains and true <= 0 for c, true in errors),
        settled,
        settled and loss > WORTH_POINTS,
        loss,
    )
    return said, q


# (name, what a study has).
DESIGNS = (
    ("60 queries", {"n": 60}),
    ("300 queries", {"n": 300}),
    ("300 queries of whole documents", {"n": 300, "whole": True}),
    ("biased judge, 30 of 300 labelled", {"n": 300, "judge": "biased", "labels": 30}),
    ("biased judge, 60 of 300 labelled", {"n": 300, "judge": "biased", "labels": 60}),
    ("lenient judge, 30 of 300 labelled", {"n": 300, "judge": "lenient", "labels": 30}),
    ("lenient judge, 60 of 300 labelled", {"n": 300, "judge": "lenient", "labels": 60}),
)


def simulate(world: str, design: dict, draws: int, seed: int = 0) -> list[Said]:
    """What so many tests said."""
    random = np.random.default_rng([seed, list(WORLDS).index(world)])
    return [ask(study(random, WORLDS[world], **design), WORLDS[world])[0] for _ in range(draws)]


def followed(world: str, draws: int, n: int = 100, seed: int = 0) -> tuple[int, int, int]:
    """(answers that advise, those that are settled once it is followed, those that cannot be settled here)."""
    random = np.random.default_rng([seed, list(WORLDS).index(world), 1])
    advised = settled = hopeless = 0
    for _ in range(draws):
        said, q = ask(study(random, WORLDS[world], n), WORLDS[world])
        if said.settled:
            continue
        found = needed(q.differences.estimates, WORTH_POINTS, 500)
        if found is None:
            hopeless += 1
            continue
        advised += 1
        what, factor = found
        more = {"n": round(n * factor)} if what == "queries" else {"n": n, "seeds": int(np.ceil(SEEDS * factor))}
        settled += ask(study(random, WORLDS[world], **more), WORLDS[world])[0].settled
    return advised, settled, hopeless


def main(draws: int) -> None:
    answers: list[Said] = []
    for name, design in DESIGNS:
        print(f"\n{name}\n\n| world | all intervals hold | ± points | false gain | settled | wrong | loss |")
        print("|---|---|---|---|---|---|---|")
        for world in WORLDS:
            said = simulate(world, design, draws)
            answers += said
            held, false, shown, failed = (
                np.mean([getattr(one, what) for one in said]) for what in ("held", "false_gain", "settled", "wrong")
            )
            width, loss = np.mean([one.width for one in said]), np.mean([one.loss for one in said])
            print(
                f"| {world} | {held:.1%} | {width:.1f} | {false:.1%} | {shown:.0%} | {failed:.2%} | {loss:.2f} |",
                flush=True,
            )
    settled, wrong = sum(one.settled for one in answers), sum(one.wrong for one in answers)
    print(f"\n{len(answers):,} answers, {settled:,} settled, {wrong:,} of these wrong.")
    print("\n| world | advised | settled when followed | cannot be settled here |\n|---|---|---|---|")
    for world in WORLDS:
        advised, settled, hopeless = followed(world, draws)
        print(f"| {world} | {advised:,} | {settled / max(1, advised):.0%} | {hopeless:,} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
