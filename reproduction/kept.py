"""The studies as they are kept beside the document: one compressed file each, from which everything is made again.

A file holds what the study's worker said of itself, its trainings, and NDCG@10 of every query by every training, in
ten-thousandths. What its plan and its claims' criteria were when it began stands beside them (``criteria.frozen``).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace, read_json_or_none, write_bytes
from cdp.services import studies
from cdp.studies import records
from cdp.studies.gains import Floats
from cdp.studies.plan import StudySource
from cdp.studies.report import StudyReport, StudyScores, build, latest, plan_of, read_study
from reproduction.stages import FROZEN, Stage, find

ENDING = ".json.gz"

# Scores are kept in parts of so much: four decimals of NDCG@10.
PARTS = 10_000


@dataclass(frozen=True)
class Kept:
    """A study: its ``scores``, what its worker said (``about``), its ``trainings`` as records, and ``frozen``: its plan
    and criteria as they were when it began. ``leaks`` are sentences on judged queries that it was trained on."""

    plan: str
    state: str
    about: Mapping[str, Any]
    trainings: Sequence[Mapping[str, Any]]
    scores: StudyScores
    frozen: Mapping[str, Any]
    leaks: Sequence[str] = ()

    @cached_property
    def report(self) -> StudyReport:
        return build(self.scores.study, self.plan, self.state, self.about, self.trainings, self.leaks)

    @property
    def trained(self) -> list[Mapping[str, Any]]:
        """The records of finished trainings."""
        return [t for t in self.trainings if t.get("condition") and t.get("training")]

    @property
    def lacking(self) -> str:
        """What is missing of it, in words; empty where it is whole."""
        if self.report.finished == self.report.planned and not self.report.failures:
            return ""
        return f"{self.plan} has {self.report.finished} of {self.report.planned} trainings"

    @cached_property
    def sources(self) -> Mapping[str, StudySource]:
        """{label: what was trained on}."""
        return {source.label: source for source in plan_of(self.about)[1]}

    @cached_property
    def corpora(self) -> Mapping[str, str]:
        """{label of a source: the name of its corpus}."""
        return {corpus["source"]: corpus["corpus"] for corpus in self.about.get("corpora", ())}

    def of_queries(self, judged: str) -> dict[str, Floats]:
        """CW, words and overlap of a judged set's queries, (n_queries,) in the order of the scores, NaN where not
        known."""
        names = [b.name for b in self.scores.benchmarks]
        described = self.about["benchmarks"][names.index(judged)]
        facts, cw_of = described.get("facts_of", {}), described.get("cw_of", {})
        ids = np.sort(np.asarray(list(cw_of))).tolist()  # as ``read_scores`` orders them
        known = {name: [facts.get(i, {}).get(name) for i in ids] for name in ("words", "overlap")}
        return {name: np.array(v, np.float64) for name, v in {**known, "cw": [cw_of[i] for i in ids]}.items()}


def keep(workspace: Workspace, stage: Stage, folder: Path) -> Path | None:
    """Write the file of a study that was run in ``workspace``; None where there is none with anything to report."""
    view = find(workspace, stage)
    about = None if view is None else read_json_or_none(view.folder / "results" / "about.json")
    if view is None or not isinstance(about, dict):
        return None

    study = {
        "id": view.id,
        "state": str(view.state),
        "frozen": read_json_or_none(view.folder / FROZEN) or {},
        "limits": studies.report(workspace, view.id).leaks,
        "about": about,
    }

    file = folder / f"{stage.plan}{ENDING}"
    write_bytes(file, packed(study, list(records.list_records(view.folder))))

    return file


def packed(study: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> bytes:
    """The content of a file: a study's facts, and its records with their scores as a table for each judged set."""
    trainings = sorted(latest(found), key=lambda record: (str(record.get("key")), str(record["condition"])))
    scores = []
    for benchmark in study["about"]["benchmarks"]:
        of = {n: r["evaluations"].get(benchmark["place"]) for n, r in enumerate(trainings) if "evaluations" in r}
        there = {n: dict(zip(e["query_ids"], e["ndcg@10"], strict=True)) for n, e in of.items() if e is not None}
        queries = sorted({query for by_query in there.values() for query in by_query})
        # A row for each query: trainings mostly agree on it, and what agrees is small when compressed.
        rows = [[round(PARTS * by_query[query]) for by_query in there.values()] for query in queries]
        scores.append({"place": benchmark["place"], "queries": queries, "trainings": list(there), "rows": rows})
    plain = [{name: value for name, value in r.items() if name != "evaluations"} for r in trainings]
    text = json.dumps({**study, "trainings": plain, "scores": scores}, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def read(folder: Path, chosen: Sequence[Stage]) -> dict[str, Kept]:
    """{plan: the study} of those that are kept in ``folder``. InputError for a damaged file."""
    files = {stage.plan: folder / f"{stage.plan}{ENDING}" for stage in chosen}
    return {plan: read_file(plan, file) for plan, file in files.items() if file.is_file()}


def read_file(plan: str, file: Path) -> Kept:
    """Read one kept study. InputError for a damaged file."""
    try:
        value = json.loads(gzip.decompress(file.read_bytes()))
        trainings = [{**t, **({} if t.get("failure") else {"evaluations": {}})} for t in value["trainings"]]
        for judged in value["scores"]:
            for number, column in zip(judged["trainings"], zip(*judged["rows"], strict=True), strict=True):
                evaluation = {"query_ids": judged["queries"], "ndcg@10": [score / PARTS for score in column]}
                trainings[number]["evaluations"][judged["place"]] = evaluation

        scores = read_study(value["id"], value["about"], trainings)
        return Kept(plan, value["state"], value["about"], trainings, scores, value["frozen"], value["limits"])
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "is not what a reproduction keeps.",
            hint="Take it from the repository again, or make it with: make reproduction-long",
            file=file,
        ) from error
