"""The sentence of a difference by a model's judgments, corrected by people's labels; "judged by" badge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.text import counted, interval, signed
from cdp.base.workspace import Workspace
from cdp.benchmarks import judged, manifests, resolve_benchmark
from cdp.evaluation.calibration import FEWEST, TARGETS, Corrected, correct
from cdp.evaluation.results import FirstTen, scores_of
from cdp.services import access


@dataclass(frozen=True)
class Judged:
    """Who judged a benchmark: a model, and people's grades {query: {document: grade}} of whole queries.

    ``writer`` is the model that wrote its queries; empty if people did.
    """

    judge: str
    people: Mapping[str, Mapping[str, float]]
    writer: str = ""

    @property
    def badge(self) -> tuple[str, str]:
        """The badge of results, and its explanation."""
        if self.writer:
            told = "People may ask differently, and judge differently."
            return f"queries written by {self.writer}, judged by {self.judge}", told
        return f"judged by {self.judge}", "A model judged the documents, not people."


@dataclass(frozen=True)
class Calibration:
    """What people's labels say of one difference that a model judged. Points of NDCG@10.

    ``labelled`` whole queries were labelled by people. ``unlabelled`` documents of the first ten of either retriever
    have no label of people, -1 where it is not known what was retrieved; then there is no corrected figure.
    """

    judge: str
    labelled: int
    unlabelled: int = 0
    corrected: Corrected | None = None

    @property
    def sentence(self) -> str:
        """The corrected figure with its interval and what makes it narrower, or why there is none."""
        found = self.corrected
        if found is not None:
            missing = [(found.more_labels(half), half) for half in TARGETS]
            needs = ", ".join(f"{n:,} more for ±{half:g}" for n, half in missing if n)
            return (
                f"Corrected by {counted(found.n_labelled, 'query', 'queries')} of people: {signed(found.mean)} "
                f"(95% {interval(found.interval, sign=True)}){f'; labelled queries: {needs}' if needs else ''}."
            )
        if self.unlabelled < 0:
            why = "what it retrieved was not kept"
        elif self.labelled < FEWEST:
            why = f"{self.labelled} of the {FEWEST} labelled queries that a correction needs"
        else:
            why = f"{counted(self.unlabelled, 'document')} of the first ten have no label by people"
        return f"Uncalibrated, judged by {self.judge} alone: {why}."

    def record(self) -> dict[str, Any]:
        """The calibration as JSON; ``more_labels`` {half-width in points: labelled queries still missing}."""
        found = self.corrected
        value = {"judge": self.judge, "labelled_queries": self.labelled, "unlabelled": self.unlabelled}
        if found is None:
            return {**value, "state": "uncalibrated"}
        more = {f"{half:g}": found.more_labels(half) for half in TARGETS}
        low, high = found.interval
        figures = {"difference": found.mean, "low": low, "high": high, "weight": found.weight}
        return {**value, "state": "corrected", **figures, "more_labels": more}


def judged_by(workspace: Workspace, benchmark: str) -> Judged | None:
    """Return who judged a benchmark; None where people did, or it is not here. Kept while the labels are unchanged.

    The labels of a subset are those of the benchmark that it was drawn from.
    """
    try:
        folder = resolve_benchmark(access.benchmark(workspace, benchmark), workspace)
    except CdpError:
        return None
    manifest = manifests.read(folder)
    judge = manifest.source.get("judge")
    if not judge:
        return None
    folder = judged.whole(folder)

    def load() -> Mapping[str, Mapping[str, float]]:
        return judged.people_grades(judged.read_pool(folder), judged.read_labels(folder))

    writer = str(manifest.source.get("written_by") or judged.PEOPLE)
    people = ANSWERS.get(folder / "labels.jsonl", "people's grades", load)
    return Judged(str(judge), people, "" if writer == judged.PEOPLE else writer)


def calibrate(
    by: Judged, first: Sequence[FirstTen | None], second: Sequence[FirstTen | None], differences: Mapping[str, float]
) -> Calibration:
    """Correct ``differences`` {query: second minus first, by the model, in points} by people's labels.

    ``first`` and ``second`` hold what each side retrieved, once per seed; None where it was not kept.
    """
    by = Judged(by.judge, {query: grades for query, grades in by.people.items() if query in differences})
    labelled = len(by.people)
    if labelled < FEWEST:
        return Calibration(by.judge, labelled)
    kept = [[run for run in side if run is not None] for side in (first, second)]
    if len(kept[0]) < len(first) or len(kept[1]) < len(second):
        return Calibration(by.judge, labelled, -1)
    unlabelled = {
        (query, document)
        for run in (*kept[0], *kept[1])
        for query, grades in by.people.items()
        for document in run.get(query, ())
        if document not in grades
    }
    if unlabelled:
        # Leaving these queries out would leave the random sample.
        return Calibration(by.judge, labelled, len(unlabelled))
    before, after = (np.mean([_scores(by, run) for run in side], axis=0) for side in kept)
    people = dict(zip(by.people, (100 * (after - before)).tolist(), strict=True))
    return Calibration(by.judge, labelled, 0, correct(differences, people))


def _scores(by: Judged, run: FirstTen) -> list[float]:
    """Return NDCG@10 of the labelled queries by people's grades, in their order."""
    found = scores_of({query: run.get(query, ()) for query in by.people}, by.people)
    return [found[query] for query in by.people]
