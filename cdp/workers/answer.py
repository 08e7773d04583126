"""The worker that answers the question whole (judging, training queries, the test): ``python -m cdp.workers.answer
<job folder>``.

It composes what other kinds of job do, on the folder of this one job: target queries and grades become a benchmark,
missing training queries are written, the test's study is run, and what it newly found is judged. The folder holds a
study, as one of kind ``study`` does. A new attempt goes on where the last one ended: nothing is paid for twice.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from cdp import query_sets
from cdp.base.config import PEOPLE, JudgeConfig
from cdp.base.errors import ConfigError
from cdp.base.job_kind import CORPUS, Device, JobKind, PreparedJob
from cdp.base.settings import Config
from cdp.base.text import counted
from cdp.base.worker import SILENT_FOR_S, Job, Stopped, run
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import judged, library, manifests, resolve_benchmark
from cdp.corpus import load_manifest
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import price_of
from cdp.retrievers import leakage
from cdp.studies import planning, records
from cdp.studies.config import AnswerConfig
from cdp.studies.own_test import BENCHMARK, CLOSING, JUDGING, TESTING, WRITING, Trial, plan_test
from cdp.studies.plan import StudySource
from cdp.synthesis.work import query_set_id
from cdp.training.plan import Speed
from cdp.workers import judging, study, synthesis

# The phase of each stage that counts its work; in the others the stage's share stands still.
COUNTING = {JUDGING: "judging", WRITING: "generating", TESTING: "trainings", CLOSING: "judging"}

# A share of a stage that tells how fast it is.
TELLING = 0.05


class Stages:
    """The stages of one answer, each a job on the folder and progress of the whole.

    ``seconds`` is what each stage was promised to take; their sum is the whole bar.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.config = job, AnswerConfig.from_dict(job.config)
        self.inputs: dict[str, Any] = job.spec.get("inputs", {})
        self.seconds: dict[str, float] = {JUDGING: 0.0, WRITING: 0.0, TESTING: 60.0, CLOSING: 0.0}
        self.seconds |= self.inputs.get("promised", {}).get("stages", {})
        self.stage, self.share = JUDGING, 0.0
        self.first: tuple[float, float] | None = None  # (share, time) as the stage first told of progress
        self.pace = 1.0  # what the endpoint took for the judging, over what was promised

    def enter(self, stage: str) -> None:
        """Go on with a stage."""
        if self.stage == JUDGING and (took := self._paced()) is not None:
            self.pace = took / max(1.0, self.seconds[JUDGING])
        self.stage, self.share, self.first = stage, 0.0, None
        self.report("", "", SILENT_FOR_S)

    def part(self, config: Config, **inputs: Any) -> Job:
        """Return the job as the worker of another kind sees it, with settings of that kind."""
        part = copy.copy(self.job)
        part.config = config.to_dict()
        part.spec = {**self.job.spec, "config": part.config, "inputs": inputs}
        part.progress = self._progress  # type: ignore[method-assign]
        part.n_failures = 0
        return part

    def ended(self, part: Job) -> None:
        """Take over what a part counted. Raises Stopped after a request to stop."""
        self.job.n_failures += part.n_failures
        if self.job.stop_requested():
            raise Stopped

    def _progress(
        self, phase: str, done: int, total: int, unit: str, message: str = "", *, next_within_s: float = SILENT_FOR_S,
        left_s: float | None = None,
    ) -> None:  # fmt: skip
        counts = phase == COUNTING[self.stage] and total > 0
        if counts:
            self.share = max(self.share, min(1.0, done / total))
            self.first = self.first or (self.share, time.monotonic())
        said = f"{done:,} of {total:,} {unit}" if counts else phase
        self.report(said, message, next_within_s, left_s)

    def report(self, said: str, message: str, next_within_s: float, left_s: float | None = None) -> None:
        """Report the stage and the share of the whole. ``left_s`` is what the stage says that it has left."""
        stages = list(self.seconds)
        at, whole = stages.index(self.stage), sum(self.seconds.values()) or 1.0
        before = sum(self.seconds[stage] for stage in stages[:at])
        after = sum(map(self._expected, stages[at + 1 :]))
        if left_s is None:
            left_s = (1 - self.share) * (self._paced() or self._expected(self.stage))
        done = round(100 * (before + self.share * self.seconds[self.stage]) / whole)
        told = " · ".join(filter(None, (said, message)))
        self.job.progress(self.stage, min(done, 99), 100, "%", told, next_within_s=next_within_s, left_s=left_s + after)

    def _expected(self, stage: str) -> float:
        """The seconds of a stage as promised; where it asks the endpoint, at the pace of the judging."""
        return self.seconds[stage] * (1.0 if stage == TESTING else self.pace)

    def _paced(self) -> float | None:
        """The seconds of the whole stage at its pace since it first told of progress; None while that says little."""
        if self.first is None or self.share - self.first[0] < TELLING:
            return None
        return (time.monotonic() - self.first[1]) / (self.share - self.first[0])

    # money: what all stages may cost together, on the accounts of this job

    def left(self) -> float | None:
        """Return the US dollars that may still be spent; None where the model has no price."""
        price = price_of(self.job.workspace, self.config.endpoint.model_name)
        if price is None:
            return None
        with AnswerCache(self.job.workspace) as cache:
            spent = price.cost(cache.spent(self.job.id)) + price.cost(cache.spent(f"{self.job.id}/judge"))
        return max(0.01, self.config.spend - spent)

    def budget(self, share: float = 1.0) -> float | None:
        """Return the budget of a stage that may take this share of what is left, on the account of the job's id."""
        price, left = price_of(self.job.workspace, self.config.endpoint.model_name), self.left()
        if price is None or left is None:
            return None
        with AnswerCache(self.job.workspace) as cache:
            return price.cost(cache.spent(self.job.id)) + share * left

    @property
    def kept(self) -> str:
        """What is there already and stays, in words."""
        folder, workspace = self.job.folder, self.job.workspace
        n_queries = sum(q.n_queries for q in query_sets.list_query_sets(workspace) if q.job_id == self.job.id)
        counts = (
            (len(judged.read_grades(folder)), "grade", "grades"),
            (n_queries, "query", "queries"),
            (sum(bool(r.get("training")) for r in records.list_records(folder)), "training", "trainings"),
        )
        there = [counted(n, one, many) for n, one, many in counts if n]
        return f"Kept: {', '.join(there)}. Nothing is paid for twice." if there else ""


def main(job: Job) -> None:
    parts = Stages(job)
    try:
        answer(parts)
    except Stopped:
        job.stop_requested()  # a part heard of it; the outcome is the whole job's
        job.result("answer", {"notes": [parts.kept] if parts.kept else []})
        raise


def answer(parts: Stages) -> None:
    """Do all stages; each leaves what it made before the next begins. Raises Stopped, and what the stages raise."""
    job = parts.job
    judge(parts)
    parts.enter(WRITING)
    trial = planned(parts)
    sources = write(parts, trial)
    leakage.require(planning.leaks_of(job.workspace, trial.plan.config), False)

    parts.enter(TESTING)
    told = [asdict(source) for source in sources]
    part = parts.part(trial.plan.config, sources=told, promised=trial.plan.promise)
    study.main(part)
    parts.ended(part)

    parts.enter(CLOSING)
    close(parts, trial)
    job.result("answer", {"benchmark": trial.judged.benchmark, "trainings": trial.plan.trainings})
    job.progress("done", 100, 100, "%")


def judge(parts: Stages) -> None:
    """Have a model judge what is found for the target queries, unless the benchmark is there."""
    parts.enter(JUDGING)
    workspace, name = parts.job.workspace, parts.config.judged.benchmark
    if not parts.config.judge:
        return
    if name in library.list_names(workspace):
        # Of before, a benchmark does not name its job.
        made_by = manifests.read(resolve_benchmark(name, workspace)).source.get("job", parts.job.id)
        if made_by == parts.job.id:
            return
        raise ConfigError(
            f"Another job has made a benchmark called {name!r} meanwhile.",
            hint="Start it again: it takes a free name, and no answer of the model is paid for twice.",
        )

    part = parts.part(parts.config.judging(name).replace(budget=parts.left()))
    judging.main(part)
    parts.ended(part)


def planned(parts: Stages) -> Trial:
    """Plan the test on the judged queries that are there now, and draw the sample that decides it."""
    workspace, inputs = parts.job.workspace, parts.inputs
    speeds = {name: Speed(*speed) for name, speed in inputs.get("speeds", {}).items()}
    trial = plan_test(workspace, parts.config, [], speeds, gpu=bool(inputs.get("gpu")))
    if trial.judged.kind == BENCHMARK and not trial.judged.there:
        planning.draw(workspace, trial.judged.splits)
    return trial


def write(parts: Stages, trial: Trial) -> list[StudySource]:
    """Write the training queries that the test lacks; return its sources, each with its query set."""
    config, workspace = trial.plan.config, parts.job.workspace
    ready, missing = [], [source for source in trial.plan.sources if not source.query_set]
    for source in trial.plan.sources:
        if source.query_set:
            ready.append(source)
            continue

        share = 1 / (len(missing) - missing.index(source))
        name = f"{load_manifest(workspace, source.corpus).name} {source.kind} {max(config.per_doc)}"

        settings = planning.synthesis_of(config, source).replace(budget=parts.budget(share), name=name)
        written = query_set_id(parts.job.id, settings)
        if not (query_sets.exists(workspace, written) and query_sets.load(workspace, written).complete):
            part = parts.part(settings)
            synthesis.main(part)
            parts.ended(part)

        ready.append(replace(source, query_set=written))

    return ready


def close(parts: Stages, trial: Trial) -> None:
    """Have the judge grade what the trainings newly found, so that no option counts it as irrelevant; people find it
    in the pool."""
    workspace = parts.job.workspace
    folder = judged.whole(resolve_benchmark(trial.judged.splits.of or trial.judged.benchmark, workspace))
    people = judged.by_people(folder)
    if not (people or (parts.config.judge and judged.is_judged(folder))):
        return

    named = {"name": folder.name, "benchmark": folder.name, "runs": [parts.job.id]}
    config = JudgeConfig.from_dict({**named, "generator": PEOPLE})
    if not people:
        judge = parts.config.judging(folder.name).endpoint
        config = config.replace(**judge.to_dict(), budget=parts.budget())

    part = parts.part(config)
    # Its pool and grades are others than those of the first judging.
    part.folder = parts.job.folder / "closing"
    part.results = part.folder / "results"
    part.folder.mkdir(exist_ok=True)

    if (read_json_or_none(part.results / "judging.json") or {}).get("id") is None:
        judging.main(part)
        parts.ended(part)


def prepare(workspace: Workspace, config: AnswerConfig, after: Sequence[str] = ()) -> PreparedJob:
    """Name the job by its documents. What it takes was said before (``services.answering.plan``)."""
    return PreparedJob(config, f"Answer for {load_manifest(workspace, config.corpus).name}")


KIND = JobKind(
    "answer", "Answering the question", "Judged queries, training queries and the test, from documents to the answer.",
    AnswerConfig, main, prepare, inputs={"corpus": CORPUS}, device=lambda config: Device(None, at_most=1),
    makes="report", command="answer", order=5,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
