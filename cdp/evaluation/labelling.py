"""What people label of a pool, beside a model or alone: a person's next open query, grades, progress, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.text import counted, duration, tally
from cdp.base.workspace import ANSWERS, Workspace
from cdp.benchmarks import BenchmarkInfo, judged, list_benchmarks, manifests, resolve_benchmark
from cdp.benchmarks.beir_files import iter_corpus, read_queries
from cdp.benchmarks.benchmark import part
from cdp.benchmarks.units import units_of
from cdp.complexity import content_words
from cdp.evaluation import judging
from cdp.evaluation.calibration import FEWEST, Agreement, agreements

# What a person may answer of one document; UNSURE is kept as such and counts as not relevant.
ANSWERS_OF = {"0": 0, "1": 1, "2": 2, "3": 3, "unsure": None}
NOTHING, UNDO = "nothing", "undo"
# Seconds that a label takes, before a person's own pace is known.
PACE = 15
MEANINGS = {
    0: "about something else",
    1: "on the subject, no answer",
    2: "answers in part",
    3: "answers it",
}


@dataclass(frozen=True)
class LabelTask:
    """One query for one person: its content ``words``, and the ``open`` ones of its ``proposed`` documents.

    ``finished`` whole queries are labelled by anyone, of ``total``.
    """

    query: str
    text: str
    words: tuple[str, ...]
    open: tuple[Document, ...]
    proposed: int
    finished: int
    total: int


@dataclass(frozen=True)
class LabellingProgress:
    """What is labelled of a benchmark, and how judges agree. ``grades`` {grade: pairs} are the judge's, the model
    ``judge``, or people alone where that is empty. ``left`` documents take ``seconds`` at people's pace.

    ``units`` are the clusters of the finished queries: those that share relevant documents are one. ``extended``
    finished queries have documents of a later run without a label.
    """

    judge: str
    finished: int
    units: int
    total: int
    people: Mapping[str, int]
    agreements: tuple[Agreement, ...]
    grades: Mapping[int, int] = field(default_factory=dict)
    extended: int = 0
    left: int = 0
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    """Lines of the benchmark's files that cannot be used, each with its place."""

    @property
    def sentence(self) -> str:
        people = tally(self.people, "{} {}")
        who = people and f" ({people})"
        told = f"{self.finished:,} of {self.total:,} queries labelled by people{who}: {self._state}."

        if self.extended:
            told += f" A later run found new documents for {self.extended:,} of them."
        if self.problems:
            told += f" {counted(len(self.problems), 'line')} cannot be used: {self.problems[0]}"

        return told

    @property
    def _state(self) -> str:
        """What the labels make possible, and what is left to do."""
        if not self.judge:
            state = "the test so far" if self.finished else "a query counts once all its documents are labelled"
            return (
                f"{state}; {counted(self.left, 'document')} left, about {duration(self.seconds)}"
                if self.left
                else state
            )

        missing = max(0, FEWEST - self.units)
        state = f"corrected figures need {missing} more" if missing else "enough to correct figures"
        if missing and self.units < self.finished:
            state = f"they share documents and count as {self.units}, so {state}"
        return state

    @property
    def judged(self) -> str:
        """How the judge's grades are distributed, and a warning where they hardly differ."""
        shares = tally(self.grades)
        if not self.judge:
            return f"Grades: {shares}. A document outside the pool counts as not relevant." if shares else ""
        return f"Grades by {self.judge}: {shares}. {judging.constant(self.grades)}".strip()


def list_judged(workspace: Workspace) -> list[BenchmarkInfo]:
    """Return the benchmarks with a pool that people can label."""
    return [info for info in list_benchmarks(workspace) if judged.read_pool(workspace.benchmark(info.name))]


def task(workspace: Workspace, name: str, by: str) -> LabelTask | None:
    """Return what this person labels next; None when everything is done."""
    folder, pool = pool_of(workspace, name)
    labels = judged.read_labels(folder)

    query = judged.next_query(pool, labels, by)
    if not query:
        return None

    done = {label.document for label in labels if (label.query, label.by) == (query, by)}
    proposed, path = judged.to_label(pool, query), part(folder, "corpus")
    documents = ANSWERS.get(path, "documents by id", lambda: {document.id: document for document in iter_corpus(path)})
    text = read_queries(part(folder, "queries"))[query].text

    return LabelTask(
        query, text, tuple(sorted(content_words(text, manifests.read(folder).language or "en"))),
        tuple(documents[name] for name in proposed if name not in done), len(proposed),
        len(judged.finished(pool, labels)), len(pool),
    )  # fmt: skip


def pool_of(workspace: Workspace, name: str) -> tuple[Path, judged.Pool]:
    folder = resolve_benchmark(name, workspace)
    pool = judged.read_pool(folder)
    if not pool:
        raise ConfigError(f"{name} was not judged here.", hint="Make one: benchmarks judge --corpus ID --queries FILE.")
    return folder, pool


def progress(workspace: Workspace, name: str) -> LabellingProgress:
    """Return how far the labels are, and the agreement of each two people and of each with the model."""
    folder, _ = pool_of(workspace, name)
    problems: list[str] = []
    pool, labels = judged.read_pool(folder, problems), judged.read_labels(folder, problems)
    judge = judged.judge_of(folder)

    by_person: dict[str, dict[tuple[str, str], int]] = {}
    for given in labels:
        if given.grade is not None:
            by_person.setdefault(given.by, {})[given.query, given.document] = given.grade

    model = {(grade.query, grade.document): grade.grade for grade in judged.read_grades(folder, problems)}
    people = {by: len(judged.finished(pool, labels, by)) for by in by_person}
    graders = {**by_person, judge: model} if judge else by_person
    agreed = agreements(graders, len(judged.GRADES))
    counts = Counter(model.values())
    grades = {grade: counts[grade] for grade in judged.GRADES if counts[grade]}

    done = judged.finished(pool, labels)
    clusters = dict(zip(pool, units_of(workspace, name, judged.SPLIT, tuple(pool)) or (), strict=False))  # () if alone
    units = len({clusters.get(query, query) for query in done})
    extended = len(set(done) - set(judged.finished(pool, labels, later=True)))

    left, seconds = sum(judged.unlabelled(pool, labels).values()), 0.0
    if not judge:
        seconds = left * (judged.pace(folder) or PACE)

    return LabellingProgress(
        judge, len(done), units, len(pool), people, agreed, grades, extended, left, seconds, tuple(problems)
    )
