"""Judging, by a model or people (target queries, pool, grades): ``python -m cdp.workers.judging <job folder>``.

The API key comes from ``CDP_API_KEY`` or ``OPENAI_API_KEY``, never from the job's files. Where no queries are given, a
model writes them first, as a query set of the corpus. The job's folder holds ``pool.jsonl`` and ``grades.jsonl`` until
all pairs are judged; then they become a benchmark. A resumed job skips the pairs that have a grade, and answers that
were paid for come from the cache. Where people judge, the job ends with the pool: their labels make the judgments.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import PEOPLE, JudgeConfig
from cdp.base.errors import ConfigError, InputError, ProviderError
from cdp.base.failures import Streak, is_fatal, line_of
from cdp.base.job_kind import BENCHMARK, CORPUS, LIGHT, Device, JobKind, PreparedJob, device_for
from cdp.base.records import Document
from cdp.base.redaction import clean
from cdp.base.text import cut_to_tokens
from cdp.base.worker import Job, Stopped
from cdp.base.workspace import Workspace, append_jsonl, read_json_or_none, shuffle_key, write_bytes
from cdp.benchmarks import judged, library, manifests, resolve_benchmark
from cdp.benchmarks.beir_files import iter_corpus, read_queries
from cdp.benchmarks.benchmark import Benchmark, part, texts_hash
from cdp.benchmarks.judged import Grade, Pool
from cdp.corpus import iter_documents, load_manifest
from cdp.evaluation import combined, judging
from cdp.evaluation.evaluate import Evaluation, evaluate_bm25, evaluate_model, record_unembedded
from cdp.llm.answers import Answer, Cancelled, RequestError, prompts_cut
from cdp.llm.cache import Account, AnswerCache, cache_key
from cdp.llm.prices import price_of
from cdp.retrievers import bm25, load, model_hash, resolve
from cdp.retrievers.api import Payer
from cdp.retrievers.encode import EmbeddingStore
from cdp.studies import records
from cdp.synthesis import run as synthesis
from cdp.synthesis import targets
from cdp.synthesis.generate import map_unordered, most_usage
from cdp.synthesis.generators import make_generator, usual_usage
from cdp.synthesis.methods import Method, Sampling

# The generator that writes queries also judges: at temperature 0, held to the schema where an endpoint takes one.
JUDGE = Method(
    "judge", "Judge", "Grades of passages", template=judging.TEMPLATE, sampling=Sampling(temperature=0.0),
    schema=judging.SCHEMA, tokens_per_query=judging.ANSWER_TOKENS,
)  # fmt: skip

# A query and a document of its pool.
Pair = tuple[str, str]

# Deep enough for the fusion with BM25 to see what either finds late.
FUSED_DEPTH = 100


@dataclass(frozen=True)
class Target:
    """The documents and queries that are judged, and the benchmark they become: a new one, or that in ``folder``.

    ``labelled`` is the folder of one that people alone judged: its pool is judged, with their labels beside.
    """

    documents: dict[str, Document]
    queries: dict[str, str]
    language: str
    manifest: manifests.Manifest
    folder: Path | None = None
    labelled: Path | None = None

    def benchmark(self, name: str) -> Benchmark:
        """Return a benchmark without judgments, as the retrievers take it."""
        texts = [document.content for document in self.documents.values()]
        qrels: dict[str, dict[str, int]] = {query: {} for query in self.queries}
        return Benchmark(
            name, Path(), judged.SPLIT, list(self.documents), texts, list(qrels), list(self.queries.values()), qrels,
            {}, "", texts_hash(texts), language=self.language,
        )  # fmt: skip


def main(job: Job) -> None:
    began, config = time.monotonic(), JudgeConfig.from_dict(job.config)
    job.progress("reading", 0, 0, "")
    queries = Path(config.queries)
    if config.writes:
        queries = write_queries(job, config)

    target = _as_made(job, config, read_target(job, config, queries))
    paid = _paid_for_queries(job, config)
    pool = judged.read_pool(job.folder)
    if not pool:
        if config.benchmark:
            pool = pool_runs(job, config, target)
        else:
            pool = pool_documents(job, config, target, config.budget_after(paid))
        judged.write_pool(job.folder, pool)

    if config.endpoint.by_people:
        wait_for_labels(job, config, target, pool, began)
        return

    paid += Payer.of(job, None).cost(config.retrievers)
    with AnswerCache(job.workspace) as cache:
        run = JudgingRun(job, config, target, pool, cache, config.budget_after(paid))
        run.execute()

    if job.stop_requested():
        raise Stopped

    if run.account.used_up:
        raise ConfigError(
            f"The budget of {config.budget:g} US dollars is used up; {len(run.grades):,} of {len(run.pairs):,} pairs "
            "are judged.",
            hint="Start the job again with a larger budget: what was paid for is not paid for again.",
        )

    if not run.grades:
        raise ConfigError("No pair could be judged.", hint="failures.jsonl lists the answers. Try another model.")

    price: dict[str, Any] = {"cost": None, "price_as_of": None}
    if run.price:
        price = {"cost": paid + run.price.cost(run.account.spent), "price_as_of": run.price.as_of}

    name = store(job, config, target, pool, run)
    job.result("judging", {
        "id": name, "benchmark": name, "queries": len(pool), "pairs": len(run.pairs), "judged": len(run.grades),
        "failures": len(run.pairs) - len(run.grades), "model": run.source.model,
        "grades": {str(grade): n for grade, n in sorted(run.counts.items())}, "notes": run.notes,
        "spent": run.account.spent.to_dict(), **price,
        "seconds": round(time.monotonic() - began, 3),
    })  # fmt: skip

    print(f"{name}: {len(run.grades):,} of {len(run.pairs):,} pairs judged by {run.source.model}", flush=True)
    job.progress("done", len(run.pairs), len(run.pairs), "pairs", " · ".join(run.notes))


def _paid_for_queries(job: Job, config: JudgeConfig) -> float:
    """US dollars that this job's queries cost; 0 where it writes none, or their model has no price."""
    if not config.writes:
        return 0.0

    price = price_of(job.workspace, config.writing(targets.PROMPT, 1, 1).endpoint.model_name)
    if not price:
        return 0.0

    with AnswerCache(job.workspace) as cache:
        return price.cost(cache.spent(job.id))


def write_queries(job: Job, config: JudgeConfig) -> Path:
    """Have a model write the target queries, as a query set; return the file of those chosen. Raises Stopped."""
    chosen = job.folder / "queries.txt"
    if chosen.exists():  # later attempts judge the same queries
        return chosen

    corpus = load_manifest(job.workspace, config.corpus)
    wanted = config.limit or corpus.n_documents
    asked = targets.documents_for(wanted, corpus.n_documents)
    part_job = copy.copy(job)
    part_job.config = config.writing(targets.PROMPT, targets.KINDS, asked).to_dict()
    query_set = synthesis.SynthesisRun(part_job).execute()["query_set"]
    job.n_failures += part_job.n_failures

    if job.stop_requested():
        raise Stopped

    written = [line.queries for line in query_sets.read_queries(job.workspace, query_set)]
    texts = targets.choose(written, wanted, language=corpus.counted_language, seed=config.seed)
    write_bytes(chosen, "\n".join(texts).encode())

    return chosen


def read_target(job: Job, config: JudgeConfig, file: Path) -> Target:
    """Read the documents of a corpus and the queries in a file, or those of a benchmark that was judged before."""
    if config.benchmark:
        folder = resolve_benchmark(config.benchmark, job.workspace)
        manifest = manifests.read(folder)
        documents = {document.id: document for document in iter_corpus(part(folder, "corpus"))}
        queries = {query: line.text for query, line in read_queries(part(folder, "queries")).items()}
        if config.endpoint.by_people or not judged.by_people(folder):
            return Target(documents, queries, manifest.language, manifest, folder)

        # What people judged alone stays as it is.
        manifest = replace(manifest, title=config.name, source={**manifest.source, "job": job.id})
        return Target(documents, queries, manifest.language, manifest, labelled=folder)

    corpus = load_manifest(job.workspace, config.corpus)
    documents = {document.id: document for document in iter_documents(job.workspace, corpus.id)}

    # The submitter saved them in the workspace. A stranger's job may name any file, whose lines would be sent.
    saved = file.resolve()
    if not saved.is_relative_to(job.workspace.root.resolve()):
        raise ConfigError(f"The job's queries are outside this workspace: {saved}.", hint="Start a new job.")

    lines = saved.read_text(encoding="utf-8").splitlines()
    queries = {f"q{number}": line for number, line in enumerate(lines, start=1)}
    source = {
        "kind": judged.KIND, "corpus": corpus.id, "unit": corpus.unit, "hash": corpus.content_hash,
        "written_by": config.written_by, "job": job.id,
    }  # fmt: skip

    manifest = manifests.Manifest(
        title=config.name, licence=corpus.licence, language=corpus.counted_language, source=source,
        self_match=False, relevant_from=judged.RELEVANT_FROM,
    )  # fmt: skip
    return Target(documents, queries, corpus.counted_language, manifest)


def _as_made(job: Job, config: JudgeConfig, target: Target) -> Target:
    """The target with the benchmark that an earlier attempt of this job made of it: a retry adds to that."""
    result = read_json_or_none(job.results / "judging.json") or {}
    made = result.get("benchmark", config.name)
    if target.folder is not None or made not in library.list_names(job.workspace):
        return target

    folder = job.workspace.benchmark(made)
    manifest = manifests.read(folder)
    if not result and manifest.source.get("job") != job.id:
        return target  # another's, whose name is taken

    return replace(target, folder=folder, manifest=manifest)


def pool_documents(job: Job, config: JudgeConfig, target: Target, budget: float | None = None) -> Pool:
    """Pool the first documents of every retriever, and of each one fused with BM25 where that is named.

    Those behind an API share the ``budget``, in US dollars.
    """
    benchmark = target.benchmark(config.name)
    depth = min(max(FUSED_DEPTH, config.depth), len(target.documents))
    results: dict[str, Evaluation] = {}
    lexical: Evaluation | None = None
    # BM25 first: the others are fused with it.
    for name in sorted(config.retrievers, key=lambda name: bm25.language_in(name) is None):
        language = bm25.language_in(name)
        if language is not None:
            results[name] = evaluate_bm25(benchmark, language=language, top_k=depth, watch=job.advance)
            lexical = lexical or results[name]
            continue

        job.loading("the retriever")
        payer = Payer.of(job, budget, name, config.retrievers)
        model = load(resolve(name, job.workspace), device_for(config.gpus), payer=payer)
        results[name] = evaluate_model(
            model, benchmark, top_k=depth, store=EmbeddingStore(job.workspace), model_hash=model_hash(model),
            watch=job.advance,
        )  # fmt: skip
        record_unembedded(job, model, benchmark)

        if lexical is not None:
            fused = combined.hybrid(benchmark, results[name], lexical)
            results[combined.retriever_id(name, hybrid=True, rerank="")] = fused

    def found(result: Evaluation) -> dict[str, list[str]]:
        documents: dict[str, list[str]] = {}
        for query, row in zip(benchmark.query_ids, result.ranking.documents.tolist(), strict=True):
            documents[query] = [benchmark.document_ids[number] for number in row if number >= 0]

        return documents

    return judged.pool_of({name: found(result) for name, result in results.items()}, config.depth)


def pool_runs(job: Job, config: JudgeConfig, target: Target) -> Pool:
    """Pool what the named evaluations and studies retrieved, each document under its best rank in each of them; with
    the whole pool of what people alone judged, where a model judges it now."""
    folder = target.labelled or target.folder
    assert folder is not None
    pool = judged.read_pool(folder) if target.labelled else {}

    for name in config.runs:
        for found in records.retrieved(job.workspace.job(name), folder):
            for query, documents in found.items():
                for rank, document in enumerate(documents, start=1):
                    ranks = pool.setdefault(query, {}).setdefault(document, {})
                    ranks[name] = min(rank, ranks.get(name, rank))

    return pool


def wait_for_labels(job: Job, config: JudgeConfig, target: Target, pool: Pool, began: float) -> None:
    """Make the benchmark that people judge by their labels, or add to its pool."""
    name = store(job, config, target, pool, None)
    job.result("judging", {
        "id": name, "benchmark": name, "queries": len(pool), "pairs": len(pairs_of(pool)), "judged": 0, "failures": 0,
        "model": PEOPLE, "seconds": round(time.monotonic() - began, 3),
    })  # fmt: skip

    print(f"{name}: {len(pairs_of(pool)):,} pairs wait for labels", flush=True)
    job.progress("done", len(pool), len(pool), "queries", "")


class JudgingRun:
    """One attempt at judging: every pair without a grade is asked for, each grade is on disk before the next."""

    def __init__(
        self, job: Job, config: JudgeConfig, target: Target, pool: Pool, cache: AnswerCache, budget: float | None
    ) -> None:
        self.job, self.config, self.target, self.cache = job, config, target, cache
        self.source = make_generator(config.synthesis)
        self.source.remember(job.folder)
        self.file = job.folder / "grades.jsonl"
        # By a seeded hash: a model that drifts, or an endpoint that fails, hits all queries and retrievers alike.
        self.pairs = sorted(pairs_of(pool), key=lambda pair: shuffle_key(config.seed, *pair))
        known = judged.read_grades(job.folder)

        if target.folder is not None:
            known = [*judged.read_grades(target.folder), *known]

        of_pair = judged.by_pair(known)
        self.grades = {pair: of_pair[pair] for pair in self.pairs if pair in of_pair}
        self.price = None
        if not config.endpoint.local:
            self.price = price_of(job.workspace, self.source.model, config.budget)

        # What wrote the queries is on the job's own account, and may have another price.
        own = job.id
        if config.writes:
            own += "/judge"

        cache.settle_interrupted(own, charged=not config.endpoint.local)
        self.account = Account(cache, own, price=self.price, budget=budget)
        self.failures = job.failures("judging", unit="pair")
        # Since the last grade: requests without an answer, answers without a grade.
        self._unanswered, self._unread = Streak(), Streak()
        self.counts = Counter(grade.grade for grade in self.grades.values())
        self._prompts_cut = 0

    @property
    def notes(self) -> list[str]:
        """What a person should know before more is paid."""
        return list(filter(None, [judging.constant(self.counts), prompts_cut(self._prompts_cut)]))

    def execute(self) -> None:
        """Judge what is left. Raises where every further pair would fail the same way."""
        left = [pair for pair in self.pairs if pair not in self.grades and self.job.takes(" ".join(pair))]
        if not left:
            return

        self.job.loading("the judge")
        self.source.prepare()
        self._report()
        # An endpoint's generator has some threads more than requests; each would count as lost at a kill.
        at_once = self.config.endpoint.concurrency
        if self.config.endpoint.local:
            at_once = self.source.concurrency

        workers = min(at_once, len(left))
        judged_pairs = map_unordered(self._judge, self._until_stop(left), workers, tick=self._tick, cancel=self._cancel)

        try:
            with closing(judged_pairs) as outcomes:
                for pair, outcome in outcomes:
                    if outcome is not None:
                        self._record(pair, outcome)
                    self._report()
        finally:
            if not self.job.stop_requested():
                self.account.end()

    def _until_stop(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        for pair in pairs:
            if self.job.stop_requested():
                self._cancel()
                return
            if self.account.used_up:
                return
            yield pair

    def _judge(self, pair: Pair) -> tuple[Pair, Grade | Exception | None]:
        """Return the pair's grade, the error that kept it from one, or None if the run was cancelled."""
        document = self.target.documents[pair[1]]
        passage = cut_to_tokens(document.content, self.config.endpoint.max_document_tokens)
        text = judging.prompt(self.target.queries[pair[0]], passage)
        settings = JUDGE.sampling.within(self.source.parameters)
        key, usual = cache_key(document.content_hash, text, self.source.model, settings), usual_usage(text, JUDGE, 1)

        def ask() -> Answer:
            most = most_usage(usual, settings)
            answer = self.account.ask(key, usual, most, lambda: self.source.generate(text, document, JUDGE, 1))
            self._prompts_cut += answer.usage.lacks(usual)
            return answer

        try:
            answer = self.cache.get_or_ask(key, ask, keep=False)
            # Kept by another run, and still not to be read: what was wrong then may be mended.
            if _grade(answer) is None and not answer.usage.requests and not self.account.paid_lately(key):
                answer = self.cache.get_or_ask(key, ask, keep=False, refresh=True)
        except Cancelled:
            return pair, None
        except Exception as error:
            if not isinstance(error, RequestError) and is_fatal(error):
                self.source.cancel()
                raise
            return pair, error

        if (read := _grade(answer)) is not None:
            return pair, Grade(*pair, *read)

        holds = "holds no grade"
        if not answer.reading.complete:
            holds = f"was cut off ({answer.finish_reason or 'no reason'})"

        return pair, InputError(f"The answer {holds}: {' '.join(clean(answer.text).split())[:200]!r}")

    def _record(self, pair: Pair, outcome: Grade | Exception) -> None:
        if isinstance(outcome, Grade):
            append_jsonl(self.file, [asdict(outcome)])
            self.grades[pair] = outcome
            self.counts[outcome.grade] += 1
            self._unanswered.end()
            self._unread.end()

            warning = judging.constant(self.counts)
            if warning and self.config.constant_judge == "stop" and len(self.grades) < len(self.pairs):
                raise ConfigError(warning, hint="To go on, set constant_judge to warn: nothing is paid twice.")

            return

        query = self.target.queries[pair[0]]
        self.failures.write(line_of(outcome, " ".join(pair), query, unit="pair", stage="judging"))

        if isinstance(outcome, RequestError):
            if self._unanswered.add():
                raise ProviderError(
                    f"{self._unanswered.n} pairs in a row got no answer; the last time: {outcome}",
                    hint="Resume the job when the endpoint works again: what is done stays done.",
                )
        elif self._unread.add() and not self.grades:
            raise ConfigError(
                f"The first {self._unread.n} answers held no grade. {outcome}",
                hint="Choose a model that follows instructions, or raise max_output_tokens.",
            )

    def _cancel(self) -> None:
        self.source.cancel()
        self.account.close()

    def _tick(self) -> None:
        if self.job.stop_requested():
            self._cancel()
        self._report()

    def _report(self) -> None:
        self.job.progress("judging", len(self.grades), len(self.pairs), "pairs", " · ".join(self.notes))


def _grade(answer: Answer) -> tuple[int, str] | None:
    reading = answer.reading
    return judging.read_grade(reading.answer, complete=reading.complete)


def pairs_of(pool: Pool) -> list[Pair]:
    return [(query, document) for query, documents in pool.items() for document in documents]


def store(job: Job, config: JudgeConfig, target: Target, pool: Pool, run: JudgingRun | None) -> str:
    """Make the benchmark, or add to the one that was judged again; return its name. Without a ``run`` people judge."""
    judge, notes = "", ["Judged by people: the queries count whose documents are all labelled."]
    known: dict[Pair, Grade] = {}
    if target.folder is not None:
        pool = judged.merged(judged.read_pool(target.folder), pool)
        known = judged.by_pair(judged.read_grades(target.folder))

    pairs = pairs_of(pool)
    if run is not None:
        known, judge = known | run.grades, run.source.model
        n_judged = sum(pair in known for pair in pairs)
        notes = [f"Judged by {judge}: {n_judged:,} of {len(pairs):,} pooled pairs.", *run.notes]

    grades = list(filter(None, map(known.get, pairs)))
    retrievers: set[str] = set()
    for documents in pool.values():
        retrievers = retrievers.union(*documents.values())

    facts = {
        "judge": judge, "generator": config.endpoint.generator, "model": config.endpoint.model,
        "base_url": config.endpoint.base_url, "prompt": judging.PROMPT_HASH, "depth": config.depth,
        "retrievers": sorted(retrievers),
    }  # fmt: skip

    manifest = replace(
        target.manifest,
        source={**target.manifest.source, **facts},
        counts={"queries": len(pool), "pairs": len(pairs), "judged": len(grades)},
        notes=tuple(notes),
    )

    folder = target.folder or job.workspace.benchmark(config.name)
    texts = target.documents.values()
    if run is None and target.folder is None:
        judged.begin(folder, texts, target.queries, pool, manifest)
    elif target.folder is None:
        qrels = {judged.SPLIT: judged.by_query(grades)}
        library.make(job.workspace, config.name, texts, target.queries, qrels, manifest)

    judged.write_pool(folder, pool)
    if run is not None:
        judged.write_grades(folder, grades)
    if target.labelled is not None and not (folder / "labels.jsonl").exists():
        shutil.copyfile(target.labelled / "labels.jsonl", folder / "labels.jsonl")
    if target.folder is not None:
        manifests.write(folder, manifest)

    return folder.name


def prepare(workspace: Workspace, config: JudgeConfig, after: Sequence[str] = ()) -> PreparedJob:
    """Check the name of the new benchmark. What is sent, and at which price, was said before (the judge's plan)."""
    if config.name != config.benchmark and config.name in library.list_names(workspace):
        raise ConfigError(
            f"The workspace has a benchmark called {config.name!r}.", hint="Choose another name for this one."
        )
    return PreparedJob(config)


KIND = JobKind(
    "judging", "Judging", "A benchmark from documents and target queries, graded by a language model or by people.",
    JudgeConfig, main, prepare, called="{config.name} by {config.endpoint.model_name}",
    inputs={"corpus": CORPUS, "benchmark": BENCHMARK}, makes="benchmark",
    device=lambda config: Device(config.gpus) if config.endpoint.local else LIGHT,
    command="benchmarks judge", retries=True, order=100,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
