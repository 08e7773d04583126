""" "Answer my question": from documents to the answer as one job; what it takes in one sentence, its start.

The stages (judging by a model where no judged queries are there, writing training queries, the test, judging what it
newly found) are those of their own pages and commands, planned by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cdp import jobs as room
from cdp.base.config import JudgeConfig
from cdp.base.errors import ConfigError
from cdp.base.text import counted, duration
from cdp.base.workspace import Workspace, sha256_text, slug
from cdp.benchmarks import library
from cdp.corpus import resolve_corpus
from cdp.jobs import JobView, State
from cdp.llm.address import address
from cdp.llm.prices import dollars
from cdp.services import access, commands, jobs, judging, studies, trial
from cdp.services.judging import JudgePlan
from cdp.studies import own_test
from cdp.studies.config import AnswerConfig
from cdp.studies.own_test import CLOSING, JUDGING, TESTING, WRITING, Trial
from cdp.synthesis.generators import GENERATORS

KIND = "answer"

# The queries that decide, by the kind of what judges them.
DECIDE = {own_test.BENCHMARK: "judged", own_test.HUMAN: "human", own_test.TEMPLATE: "template"}

# Seconds that an endpoint takes for one answer, as long as none was measured; so many are asked for at once.
GRADE_S, QUERIES_S = 2.0, 5.0
AT_ONCE = int(JudgeConfig.settings()["concurrency"].default)


@dataclass(frozen=True)
class AnswerPlan:
    """What the answer takes, before it starts: the judging, None where judged queries are there, and the test."""

    config: AnswerConfig
    judging: JudgePlan | None
    test: Trial

    @property
    def stages(self) -> dict[str, float]:
        """The seconds of each stage, in their order."""
        pairs = self.judging.pairs if self.judging else 0
        grades = pairs * GRADE_S / AT_ONCE
        writing = self.test.plan.requests * QUERIES_S / AT_ONCE

        return {JUDGING: grades, WRITING: writing, TESTING: self.test.plan.seconds, CLOSING: grades / 4}

    @property
    def cost(self) -> float | None:
        """US dollars at most for what a model writes and judges; None where its price is not known."""
        parts = [self.test.plan.cost]
        if self.judging is not None:
            parts.append(self.judging.cost)
            if self.judging.writing:
                parts.append(self.judging.writing.cost)

        known = [cost for cost in parts if cost is not None]
        return sum(known) if len(known) == len(parts) else None

    @property
    def problem(self) -> str:
        """Why it cannot be started as it is; empty where it can."""
        if self.test.problem:
            return self.test.problem
        if self.cost is not None and self.cost > self.config.spend:
            return f"It costs about {dollars(self.cost)}, more than the {self.config.spend:g} US dollars allowed."
        return ""

    @property
    def sentence(self) -> str:
        """What it takes: time, money, and which texts are sent where."""
        seconds = duration(sum(self.stages.values()))
        cost = "free of charge"
        if self.cost is None:
            cost = "at a price that is not known here"
        elif self.cost:
            cost = f"for at most {dollars(self.cost)}"

        return f"It takes about {seconds}, {cost}; {self._sent}."

    @property
    def _sent(self) -> str:
        writer = self.config.endpoint
        asked = list(self._asked())
        if not asked or not GENERATORS[writer.generator].endpoint:
            written = "templates write the training queries, for no LLM is named; " if self.test.by_templates else ""
            return f"{written}no text leaves this machine"
        return f"{' and '.join(asked)} are sent to {address(writer.base_url)} ({writer.model_name})"

    def _asked(self) -> Iterator[str]:
        if self.test.plan.requests:
            yield counted(self.test.documents, self.test.unit)
        if self.judging is not None:
            yield f"{counted(self.judging.n_queries, 'query', 'queries')} with the passages found for them"

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Each stage in words, with where its settings are looked into: (text, name of the page)."""
        judged = self.test.judged
        if self.judging is not None:
            done = "written and judged" if self.judging.config.writes else "judged"
            first = f"{counted(self.judging.n_queries, 'target query', 'target queries')} {done} by {judged.judge}"
        else:
            by = DECIDE[judged.kind]
            first = f"{counted(judged.splits.n_test, f'{by} query', f'{by} queries')} of {judged.splits.benchmark}"

        writer = self.config.endpoint.model_name or f"the {self.config.endpoint.generator} generator"
        second = "training queries that are there"
        if self.test.plan.requests:
            second = f"{self.test.plan.requests:,} requests for training queries to {writer}"
        elif self.test.by_templates:
            second = "training queries by templates"

        third = f"{self.test.plan.trainings} trainings of {self.test.trained}"
        return [(first, "benchmarks"), (second, "queries"), (third, "decide")]


@access.reads
def plan(workspace: Workspace, config: AnswerConfig, api_key: str = "") -> AnswerPlan:
    """Return what the answer takes. Everything that can be wrong is found here, and nothing is started.

    ConfigError for a query log without a model that can judge, or beside a benchmark.
    """
    manifest = resolve_corpus(workspace, config.corpus)
    config = config.replace(corpus=manifest.id)
    generator = GENERATORS[config.endpoint.generator]
    can_judge = generator.is_llm and generator.name != "recorded"
    if config.log and not can_judge:
        raise ConfigError(
            f"The generator {generator.name} cannot judge what is found for the queries of people.",
            hint="Name an endpoint whose model judges, leave the query log out, or label it yourself: "
            "benchmarks judge --generator people.",
        )

    if config.log and config.judged.benchmark and not config.judge:
        raise ConfigError(
            f"Both a query log and the benchmark {config.judged.benchmark} are named, and an answer rests on one.",
            hint="Leave one of the two out.",
        )

    if not (config.log or (can_judge and not config.judged.benchmark and not _decides(workspace, config))):
        test = trial.plan(workspace, config, api_key)
        if test.judged.kind == own_test.BENCHMARK:
            benchmark, split = test.judged.splits.sources[0]
            config = config.replace(benchmark=benchmark, split=split)
        return AnswerPlan(config, None, test)

    name = _free_name(workspace, manifest.name)
    judged = judging.plan(workspace, config.judging(name), api_key)
    model = judged.config.endpoint.model_name
    expected = own_test.to_be_judged(manifest, name, judged.queries, judged.n_queries, model, config)
    config = config.replace(
        judge=True, benchmark=name, written_by=judged.config.written_by, base_url=judged.config.endpoint.base_url
    )
    return AnswerPlan(config, judged, trial.plan(workspace, config, api_key, judged=expected))


def _decides(workspace: Workspace, config: AnswerConfig) -> bool:
    """Return True if judged queries or people's queries with their documents are there, which decide unasked."""
    manifest = resolve_corpus(workspace, config.corpus)
    return own_test.judged_by(workspace, manifest, config, trial.of_project(workspace, manifest)).kind != (
        own_test.TEMPLATE
    )


def _free_name(workspace: Workspace, corpus: str) -> str:
    """Return a name for the judged benchmark that none has, nor will have by a job that may yet run or go on."""
    unfinished = [view for view in room.list_jobs(workspace, [KIND, "judging"]) if view.state is not State.FINISHED]
    promised = {view.config.get("benchmark") or view.config.get("name") for view in unfinished}
    taken = {*library.list_names(workspace), *promised}

    stem = f"{slug(corpus, fallback='documents')}-judged"
    name, n = stem, 1
    while name in taken:
        n += 1
        name = f"{stem}-{n}"

    return name


@access.runs
def start(workspace: Workspace, config: AnswerConfig, *, api_key: str = "") -> str:
    """Start the answer as one job; return its id. ConfigError where it takes longer or costs more than allowed.

    The target queries are drawn now and kept in the workspace: a file that changes meanwhile changes no job.
    """
    if not plan(workspace, config, api_key).problem:
        trial.measure(workspace, config, api_key)
    planned = plan(workspace, config, api_key)
    if planned.problem:
        raise ConfigError(planned.problem, hint="Allow more with --minutes or --spend, or take fewer --documents.")

    ready, found = planned.config, planned.judging
    if found is None and planned.test.judged.kind != own_test.BENCHMARK:
        trial.make(workspace, resolve_corpus(workspace, ready.corpus), planned.test.judged)
    if found is not None and found.queries:
        ready = ready.replace(log=judging.keep_queries(workspace, ready.corpus, found.queries), query_field="")
    inputs: dict[str, Any] = {
        "promised": {"seconds": sum(planned.stages.values()), "stages": planned.stages},
        "speeds": {n: [s.pairs_per_second, s.texts_per_second] for n, s in studies.speeds(workspace).items()},
        "gpu": bool(room.list_gpus()),
    }
    if found is not None and found.queries:
        inputs["queries"] = sha256_text(*found.queries)
    return jobs.start(workspace, KIND, ready, api_key=api_key, inputs=inputs)


def latest(workspace: Workspace, corpus: str) -> JobView | None:
    """Return the newest job that answers for a corpus, or None."""
    return next((view for view in room.list_jobs(workspace, [KIND]) if view.config.get("corpus") == corpus), None)


def command(config: AnswerConfig) -> str:
    """Return the command that does the same."""
    return commands.line("answer", **commands.changed(config), yes=True, wait=True)
