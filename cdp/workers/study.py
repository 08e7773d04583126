"""The worker of studies (steps here or on a cluster, facts of benchmarks, families, in-domain by shared documents):
``python -m cdp.workers.study <job folder>``.

Reads its sources from ``inputs`` of ``spec.json`` and writes one record per condition (``cdp.studies.records``),
``results/about.json`` with what the report needs besides, and ``results/study.json`` when it ends. A new attempt skips
the conditions that are there and tries those again that had failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, replace
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import ConfigError
from cdp.base.job_kind import Device, JobKind
from cdp.base.machine import keep_freed_memory
from cdp.base.text import counted
from cdp.base.worker import Job, Stopped, run
from cdp.base.workspace import Workspace, now, read_json, read_json_or_none, write_json
from cdp.benchmarks import Benchmark, manifests, registry
from cdp.benchmarks.units import shared_units
from cdp.complexity import content_words, count_content_words, language_of, profile
from cdp.corpus import iter_documents
from cdp.studies import kept, records
from cdp.studies.config import NONE, StudyConfig
from cdp.studies.plan import CHOSEN, STEP_S, Inputs, PlannedTraining, StudySource, alike, told_apart
from cdp.studies.records import licences, versions
from cdp.training.tracking import Tracker

if TYPE_CHECKING:
    from cdp.studies.run import Study


def main(job: Job) -> None:
    from cdp.studies.run import FAILED, FAILED_BASELINES, Study

    inputs = Inputs.of(job)

    for path in (job.folder / records.FOLDER).glob("*.json"):
        record = records.load(job.folder, path.stem)
        if record is not None and record.get("failure"):
            path.unlink()

    # Of queries that were written for this study it is known only now.
    n_alike = 0
    if (per_doc := told_apart(inputs.config)) != 0:
        for same in alike(job.workspace, inputs.sources, per_doc).values():
            n_alike += len(same.left_out)
            if same.refused:
                hint = "Have another model write them, or import sets that differ; then test again."
                raise ConfigError(same.sentence, hint=hint)

    tracker = Tracker(inputs.config.tracker, str(job.spec.get("name") or job.id), job.folder, inputs.config.to_dict())
    first: Study | None = None

    if inputs.config.choose:
        first = choose(job, replace(inputs, conditions=[]))
        inputs = Inputs.of(job)

    about = describe_study(job.workspace, inputs.config, inputs.sources, inputs.benchmarks)
    job.result("about", {**about, "alike": n_alike})

    # Tasks of a cluster are numbered by all steps; those that are done take no time.
    if job.pool is not None:
        first = None

    study = Study(job, inputs, first, tracker)
    done = conducted(job, study)

    if inputs.config.keep != NONE and not job.stop_requested():
        job.progress("keeping the best model", 0, 0, "", next_within_s=STEP_S)
        study.done = study.total  # what is trained now for its model is no step of the plan
        kept.settle(job, inputs.config, inputs.sources[0].corpus, study.train_for_keeps)

    tracker.finish()
    job.result("study", {**done, "report": f"python -m cdp study report {job.id}"})

    told = []
    n_trainings = len(inputs.conditions)
    if done[FAILED]:
        told.append(f"{done[FAILED]} of {counted(n_trainings, 'training')}")
    if done[FAILED_BASELINES]:
        told.append(f"{done[FAILED_BASELINES]} of {counted(len(inputs.steps) - n_trainings, 'baseline')}")

    if told:
        raise ConfigError(
            f"{' and '.join(told)} failed; the others are kept and reported.",
            hint=f"See why with: python -m cdp study report {job.id}. Resume the job to try them again.",
        )


def choose(job: Job, inputs: Inputs) -> Study:
    """Evaluate what is not trained, write down the retriever to train by it, and return the study that did it."""
    from cdp.studies.run import Study

    study = Study(job, inputs)
    conducted(job, study)
    if job.stop_requested():
        raise Stopped
    best = study.chosen()
    job.result(CHOSEN, {"retriever": best})
    print(f"Trained is {best}: the best of {', '.join(inputs.config.retrievers)} untrained on dev.", flush=True)
    return study


def conducted(job: Job, study: Study) -> Counter[str]:
    """Run all steps, in this process or as tasks of a cluster; return the counts of ``run.COUNTED``.

    Of tasks the study's tracker gets the scores alone.
    """
    from cdp.studies.run import COUNTED, FAILED, FAILED_BASELINES, TRAININGS

    if job.pool is None:
        keep_freed_memory()
        study.execute()
        return study.counts

    files = []
    for number in range(len(study.steps)):
        path = job.folder / "steps" / f"{number:05d}.json"
        files.append((path, (str(job.folder), number)))

        counts = read_json_or_none(path) or {}
        if counts.get(FAILED) or counts.get(FAILED_BASELINES):
            path.unlink()

    total: Counter[str] = Counter()
    trained = 0
    for done, path in enumerate(job.pool.map(do_step, files, job.stop_requested), 1):
        counts = read_json(path)
        job.n_failures += counts["failures"]
        for name in COUNTED:
            total[name] += counts[name]

        if counts["figures"]:
            job.metric(done, **counts["figures"])
            study.tracker.log(done, counts["figures"], f"{counts['figures'].get('condition')}/final")
        trained += isinstance(study.steps[int(path.stem)], PlannedTraining)
        job.progress(TRAININGS, trained, study.total, TRAININGS, next_within_s=STEP_S)

    return total


class _Task(Job):
    """The job as one task of several sees it: the main process reports for all."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_main = False
        self.figures: dict[str, Any] = {}

    def metric(self, step: int, **values: float | int | str | None) -> None:
        self.figures = values


@lru_cache(1)
def _study(folder: str, chosen: bool) -> Study:
    from cdp.studies.run import Study

    keep_freed_memory()
    job = _Task(Path(folder))
    return Study(job, Inputs.of(job))


def do_step(path: Path, folder: str, number: int) -> None:
    """Run one step of a study and write its counts to ``path``."""
    study = _study(folder, (Path(folder) / "results" / f"{CHOSEN}.json").exists())
    job = study.job
    assert isinstance(job, _Task)
    before, failures, job.figures = Counter(study.counts), job.n_failures, {}
    study.do(study.steps[number])
    if not job.stop_requested():
        counts = {name: n - before[name] for name, n in study.counts.items()}
        write_json(path, {**counts, "failures": job.n_failures - failures, "figures": job.figures})


def describe_study(
    job_workspace: Workspace, config: StudyConfig, sources: list[StudySource], benchmarks: list[Benchmark]
) -> dict[str, Any]:
    """Return the plan, the sources, and the benchmarks with their CW, for the report."""
    about = []
    kin = kinship(job_workspace, config, sources, benchmarks)
    for benchmark, (family, in_domain_of) in zip(benchmarks, kin, strict=True):
        language = benchmark.counted_language
        cw = count_content_words(benchmark.queries, language)
        units = shared_units([benchmark.qrels[query] for query in benchmark.query_ids], passages=benchmark.passages)
        cw_profile = profile(cw)
        about.append(
            {
                "name": benchmark.name,
                "split": benchmark.split,
                "hash": benchmark.hash,
                "licence": benchmark.licence,
                "source": manifests.read(benchmark.folder).source,
                "place": records.evaluation_key(benchmark.hash, benchmark.split, config.protocol),
                "n_queries": benchmark.n_queries,
                "n_documents": benchmark.n_documents,
                "language": language,
                "family": family,
                "in_domain": bool(in_domain_of) and set(in_domain_of) >= {source.label for source in sources},
                "in_domain_of": in_domain_of,
                "cw_of": dict(zip(benchmark.query_ids, map(int, cw), strict=True)),
                "facts_of": facts_of(benchmark, language),
                "units_of": dict(zip(benchmark.query_ids, units, strict=bool(units))),
                "cw": cw_profile.mean,
                "cw_interval": list(cw_profile.interval),
            }
        )

    return {
        "schema": records.SCHEMA,
        "config": config.recorded(),
        "sources": [asdict(source) for source in sources],
        "benchmarks": about,
        "corpora": licences(job_workspace, sources),
        "versions": versions(),
        "created": now(),
    }


def facts_of(benchmark: Benchmark, language: str) -> dict[str, dict[str, float | None]]:
    """{query id: facts} that a report can hold fixed: ``words`` of a query, and ``overlap``, the share of its content
    words that stand in its relevant documents (the mean over these)."""
    text_of = dict(zip(benchmark.document_ids, benchmark.documents, strict=True))

    @cache
    def words_of(document: str) -> set[str]:
        return content_words(text_of[document], language)

    facts: dict[str, dict[str, float | None]] = {}
    lengths = map(len, language_of(language).words(benchmark.queries))
    for identifier, text, length in zip(benchmark.query_ids, benchmark.queries, lengths, strict=True):
        own = content_words(text, language)
        shares = []
        for document, grade in benchmark.qrels[identifier].items():
            if own and grade > 0 and document in text_of:
                shares.append(len(own & words_of(document)) / len(own))

        facts[identifier] = {"words": length, "overlap": None}
        if shares:
            facts[identifier]["overlap"] = sum(shares) / len(shares)

    return facts


def kinship(
    workspace: Workspace, config: StudyConfig, sources: Sequence[StudySource], benchmarks: Sequence[Benchmark]
) -> list[tuple[str, list[str]]]:
    """(family, the sources that it is in-domain for) of each benchmark, as its origin and documents tell; in-domain
    also where the plan says so."""

    def hashes(texts: Iterable[str]) -> set[int]:
        return {hash(text.strip()) for text in texts}

    @cache
    def trained_on(corpus: str) -> set[int]:
        return hashes(map(attrgetter("content"), iter_documents(workspace, corpus)))

    numbers = list(map(str, range(len(benchmarks))))
    documents = {number: hashes(b.documents) for number, b in zip(numbers, benchmarks, strict=True)}
    origins = dict(zip(numbers, map(origin_of, benchmarks), strict=True))
    family = families(origins, documents)

    found = []
    for number, b in zip(numbers, benchmarks, strict=True):
        in_domain_of = []
        for source in sources:
            if b.name in config.in_domain or overlap(documents[number], trained_on(source.corpus)) >= OVERLAP:
                in_domain_of.append(source.label)

        found.append((family[number], in_domain_of))

    return found


# Two collections that share this part of the smaller one are of one source.
OVERLAP = 0.1


def overlap(first: Set[int], second: Set[int]) -> float:
    """The share of the smaller collection that is in both."""
    return len(first & second) / max(1, min(len(first), len(second)))


def families(sources: Mapping[str, str], documents: Mapping[str, Set[int]]) -> dict[str, str]:
    """{benchmark: its family}: those of one ``source`` and those whose ``documents`` overlap, named by the first."""
    family_of: dict[str, str] = {}
    for name, source in sources.items():
        kin = (o for o in family_of if sources[o] == source or overlap(documents[name], documents[o]) >= OVERLAP)
        family_of[name] = family_of.get(next(kin, ""), source)
    return family_of


def origin_of(benchmark: Benchmark) -> str:
    """Return the benchmark that this one was drawn from or is a part of; its own name if unknown."""
    manifest = manifests.read(benchmark.folder)
    if manifest.subset is not None:
        return manifest.subset.of
    if manifest.source.get("kind") == manifests.DERIVED:
        return str(manifest.source.get("of", benchmark.name))

    if manifest.entry and (entry := registry.find(manifest.entry)) is not None:
        return entry.part_of or entry.name
    return benchmark.name


KIND = JobKind(
    "study", "Study", "Conditions that are trained and evaluated, reported together.", StudyConfig, main,
    called="{config.name}", device=lambda config: Device(config.gpus, at_most=1, pool=True), makes="report", asks=False,
    command="study run", repeats=False, order=120,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
