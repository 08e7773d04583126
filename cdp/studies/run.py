"""Carrying out conditions in one process: what they share is read once; mined negatives, teacher, dev checkpoints.

A process of its own for each of a hundred short trainings would spend most of its time importing torch. Scores per
query are kept, of the models only what ``cdp.studies.kept`` asks for: the same settings give the same model again.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp import query_sets
from cdp.base.condition import HYBRID, INFONCE, Condition
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.failures import failure_of
from cdp.base.machine import return_freed_memory
from cdp.base.text import Progress
from cdp.base.worker import Job, Stopped
from cdp.base.workspace import now
from cdp.benchmarks import Benchmark
from cdp.benchmarks.judged import is_judged
from cdp.corpus import iter_documents, load_manifest
from cdp.evaluation import Evaluation, combined, evaluate_model
from cdp.evaluation.evaluate import DevJudge, Vectors, evaluate_bm25, first_ten, unjudged
from cdp.retrievers import ResolvedRetriever, bm25, leakage, load, model_hash, resolve
from cdp.retrievers.api import Payer
from cdp.retrievers.encode import EmbeddingStore, cast, precision_for
from cdp.studies import kept, records
from cdp.studies.config import DISTIL, NONE
from cdp.studies.estimate import Remaining, untrained_kind
from cdp.studies.plan import (
    MAX_NEGATIVES,
    STEP_S,
    Inputs,
    PlannedTraining,
    Step,
    StudySource,
    common_documents,
    condition_pairs,
    conditions,
    evaluated_on,
    steps_of,
    told_apart,
    training_config,
    weighs_reasoning,
)
from cdp.training.mining import Miner, mine, similarities
from cdp.training.pairs import BatchOrder, PairSet, with_negatives, with_teacher
from cdp.training.plan import complete, on_device, pair_weights
from cdp.training.tracking import Tracker

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from cdp.training.loop import Outcome
    from cdp.training.tokens import Stores

# Ids of hard negatives by query; scores of the document and these by document id and query.
Mined = dict[str, list[str]]
Labels = dict[tuple[str, str], list[float]]

# A benchmark with the name under which conditions keep their scores on it.
Placed = tuple[str, Benchmark]

# A model may take this long to load without a heartbeat.
LOADING_S = 300.0

# BM25's rankings that are kept, one per split: for the test and its dev, with room for a study on two.
MAX_KEPT = 4

# Phases of a study; the second is also what its progress counts.
BASELINES, TRAININGS = "baselines", "trainings"

# What a study counts: trainings, and of what is not trained alone how many failed.
FAILED, FAILED_BASELINES = "failed", "failed_baselines"
COUNTED = ("trained", "reused", FAILED, FAILED_BASELINES)

# Kinds of failure that the next condition would meet as well: the study ends at once.
FATAL = ("disk", "host_out_of_memory")


@dataclass
class _Data:
    """The pairs of the present source and Q/Doc, with their tokens for the present retriever in ``stores``."""

    key: tuple[Any, ...]
    pairs: PairSet
    stores: Stores | None = None


class Study:
    """One attempt at a study: ``execute`` runs what is not there yet. After ``first``, which evaluated what is not
    trained, only the trainings are left. ``tracker`` is its run on a tracker, if any."""

    def __init__(self, job: Job, inputs: Inputs, first: Study | None = None, tracker: Tracker | None = None) -> None:
        from cdp.retrievers.static import TokenMemo

        self.job, self.config = job, inputs.config
        self.tracker, self.steps_before = tracker or Tracker(), 0  # of the trainings that are done
        self.sources = {source.label: source for source in inputs.sources}
        self._common = common_documents(job.workspace, inputs.sources, told_apart(inputs.config))
        self.reported, self.dev = self._placed(inputs.benchmarks), self._placed(inputs.dev)

        self.store = EmbeddingStore(job.workspace)
        self.steps = inputs.steps
        self.done = 0
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self._memo = TokenMemo()
        self._base: dict[str, tuple[ResolvedRetriever, str]] = {}
        self._lexical: dict[str, Evaluation] = {}
        self._data: _Data | None = None
        self._negatives: dict[str, tuple[Mined, Labels]] = {}

        if first is not None:
            self.steps = list(inputs.conditions)
            self.done, self.counts = first.done, first.counts
            self._memo, self._base, self._lexical = first._memo, first._base, first._lexical

        given = job.spec.get("inputs", {})
        promised = given.get("promised", {}).get("work", {})
        kinds = [kind for step in self.steps if (kind := kind_of(step))]

        if self.config.choose:  # the trainings that follow: of the slowest that may be chosen
            slowest = max(self.config.retrievers, key=lambda name: promised.get(name, 0.0))
            kinds += [slowest] * (len(conditions(self.config, inputs.sources)) // len(self.config.retrievers))

        # Counted are trainings, as the plan counts them: what is not trained takes part in the time alone.
        self._remaining, self.total = Remaining(kinds, promised), sum(kind in self.config.retrievers for kind in kinds)
        self._at: tuple[str, float] = ("", 0.0)  # the kind of the step at work, and when it began
        self._phase = BASELINES
        self._share = 0.0  # of that step
        judged = [leakage.keys(b.queries) for _, b in (*self.reported, *self.dev)]
        self._judged = np.unique(np.concatenate(judged))
        self._leak_allowed = bool(given.get(leakage.LEAKAGE))

    def _placed(self, benchmarks: Sequence[Benchmark]) -> list[Placed]:
        return [(records.evaluation_key(b.hash, b.split, self.config.protocol), b) for b in benchmarks]

    def execute(self) -> None:
        """Evaluate what is not trained, then train and evaluate each condition. Returns early on a stop.

        A condition that fails is written down with its reason and the others go on; a full disk or memory ends it all.
        """
        for step in self.steps:
            self.do(step)
            return_freed_memory()
            if self.job.stop_requested():
                return

    def do(self, step: Step) -> None:
        """Evaluate one thing untrained, or train one condition; its record is there then, or why it failed."""
        planned = step if isinstance(step, PlannedTraining) else None
        kind, worked = kind_of(step), self.counts["trained"]
        self._at, self._share = (kind, time.monotonic()), 0.0
        self._phase = TRAININGS if planned else BASELINES

        try:
            if isinstance(step, PlannedTraining):
                self._trained(step)
            else:
                self._untrained(step)
        except Stopped:
            return
        except Exception as error:
            failure = failure_of(error)
            if failure["kind"] in FATAL:
                raise

            traceback.print_exc()
            self.counts[FAILED if planned else FAILED_BASELINES] += 1
            condition = step.condition if isinstance(step, PlannedTraining) else step
            facts = {"retriever": condition.retriever, "failed": str(planned or "untrained")}
            key = records.key_of(facts)
            records.save(self.job.folder, key, planned, {**facts, "failure": failure, "created": now()})

        if kind:
            found = planned is not None and self.counts["trained"] == worked
            self._remaining.done(kind, None if found else time.monotonic() - self._at[1])
        self._at, self._share = ("", 0.0), 0.0
        self.done += planned is not None
        self._report("")

    def _watch(self, what: str, phase: str, done: int, total: int) -> None:
        if self.job.stop_requested():
            raise Stopped
        # Most of the work of a baseline; of what its next split shares, the vectors are there.
        if self._phase == BASELINES and phase == "encoding documents" and total:
            self._share = max(self._share, done / total)
        self._report(f"{what}, {phase}")

    def _report(self, message: str, *, next_within_s: float = STEP_S) -> None:
        kind, began = self._at
        left = self._remaining.seconds(kind, time.monotonic() - began if kind else 0.0, self._share)
        self.job.progress(
            self._phase, self.done, self.total, TRAININGS, message, next_within_s=next_within_s, left_s=left
        )

    def base(self, name: str) -> tuple[ResolvedRetriever, str]:
        """A retriever and the hash of its untrained weights."""
        if name not in self._base:
            self._report(f"loading {name}", next_within_s=LOADING_S)
            retriever = resolve(name, self.job.workspace)
            payer = self._payer(name)
            self._base[name] = (retriever, model_hash(load(retriever, "cpu", payer=payer, to_train=True)))
        return self._base[name]

    def chosen(self) -> str:
        """Return the retriever with the best untrained score on dev, in a tie the first, among those evaluated."""
        scores = {name: self._dev_score(name) for name in self.config.retrievers}
        return max(scores, key=lambda name: scores[name])

    def _dev_score(self, name: str) -> float:
        key = records.untrained_key(self.base(name)[1], self.config.training.max_length)
        record = records.find(self.job.workspace, self.job.folder, key)
        if record is None or not self.dev:
            return -1.0

        scores = [record["evaluations"][place]["measures"]["ndcg@10"] for place, _ in self.dev]
        return float(sum(scores) / len(scores))

    def _untrained(self, condition: Condition) -> None:
        """BM25, an untrained retriever, or the fusions of both, on every benchmark that no study has its scores on."""
        name, hybrid, length = condition.retriever, condition.source == HYBRID, self.config.training.max_length
        facts: dict[str, Any] = {"retriever": name}
        model: SentenceTransformer | None = None
        base_hash = ""
        judged = list(self.reported)
        if self.config.choose or self.config.fusion:
            judged += self.dev

        if name == bm25.NAME:
            key = records.key_of(facts)
        else:
            retriever, base_hash = self.base(name)
            key = records.untrained_key(base_hash, length)
            facts["base_hash"] = base_hash

        if hybrid:
            determining: dict[str, Any] = {"hybrid": base_hash, "max_length": length}
            if self.config.fusion:
                determining["dev"] = [place for place, _ in self.dev]
            key = records.key_of(determining)
            named = combined.title(retriever.title, True, "")
            facts |= {"run": combined.retriever_id(name, True, ""), "hybrid": True, "title": named}

        stored = records.find(self.job.workspace, self.job.folder, key)
        evaluations: dict[str, Any] = {} if stored is None else dict(stored["evaluations"])
        ranked: dict[str, Evaluation] = {}

        if evaluations.keys() >= {place for place, _ in judged}:
            judged = []

        for place, benchmark in judged:
            watch = partial(self._watch, f"{name} {condition.source}: {benchmark.name}")

            if base_hash:
                model = model or self._loaded(retriever)
                # The embeddings are kept: every study needs the untrained retriever again.
                ranked[place] = self._evaluated(model, benchmark, base_hash, watch)
                ranked[place].counts.update(leakage.counts(self.job.workspace, name, benchmark))
                found = ranked[place]
            else:
                found = self._by_words(benchmark, watch)

            if hybrid:
                found = combined.hybrid(benchmark, found, self._by_words(benchmark, watch))

            evaluations[place] = self._scores(benchmark, found)

            if hybrid:
                evaluations[place]["settings"]["hybrid"] = True

        if stored is None or judged:
            stored = {**facts, "evaluations": evaluations, "created": now()}
            if hybrid and self.config.fusion and (fused := self._fused(self._dev_of(), ranked)):
                stored["fused"] = fused

        records.save(self.job.folder, key, None, stored)

    def _loaded(self, retriever: ResolvedRetriever) -> SentenceTransformer:
        payer = self._payer(retriever.name)
        return load(retriever, _device(self.config.gpus), self.config.training.max_length, memo=self._memo, payer=payer)

    def _payer(self, name: str) -> Payer:
        """Return the account of a retriever behind an API, with what the others left of the study's limit."""
        return Payer.of(self.job, self.config.spend, name, self.config.untrained)

    def _by_words(self, benchmark: Benchmark, watch: Progress) -> Evaluation:
        """BM25 on a benchmark; the last few are kept, for each retriever is fused with them."""
        key = records.evaluation_key(benchmark.hash, benchmark.split, "bm25")
        if key not in self._lexical:
            while len(self._lexical) >= MAX_KEPT:
                del self._lexical[next(iter(self._lexical))]
            self._lexical[key] = evaluate_bm25(benchmark, watch=watch)
        return self._lexical[key]

    def _dev_of(self, planned: PlannedTraining | None = None) -> Placed | None:
        """The dev split that chooses for a condition: one of its language, else the first; None where there is none."""
        if planned is not None:
            language = self.sources[planned.condition.source].language
            for place, dev in self.dev:
                if dev.counted_language == language:
                    return place, dev

        return next(iter(self.dev), None)

    def _fused(self, dev: Placed | None, ranked: Mapping[str, Evaluation]) -> dict[str, Any] | None:
        """The fusion with BM25 on the reported splits, by the weight that is best on ``dev``; None without dev."""
        if dev is None:
            return None

        watch = partial(self._watch, "fusion with BM25")
        place, benchmark = dev
        weight, score = combined.best_weight(benchmark, ranked[place], self._by_words(benchmark, watch))

        evaluations = {}
        for at, b in self.reported:
            if at in ranked:
                evaluations[at] = self._scores(b, combined.weighted(b, ranked[at], self._by_words(b, watch), weight))

        return {"weight": weight, "dev": round(score, 6), "evaluations": evaluations}

    def _trained(self, planned: PlannedTraining) -> None:
        retriever, base_hash = self.base(planned.condition.retriever)
        data = self._pairs(planned)
        settings = self._settings(planned, retriever, data.pairs)
        dev = self._dev_of(planned)
        place = ""
        if dev is not None:
            place = records.evaluation_key(dev[1].hash, dev[1].split, "paper")
        start = retriever.start
        key = records.condition_key(base_hash, data.pairs.content_hash, settings, dev=place, start=start)
        record = records.find(self.job.workspace, self.job.folder, key)

        languages = [b.counted_language for _, b in self.reported]
        there = evaluated_on(self.config, self.sources[planned.condition.source], languages)
        judged = list(compress(self.reported, there))
        fused = dev if self.config.fusion else None
        lacks = record is None or not record["evaluations"].keys() >= {place for place, _ in judged}
        if record is None or lacks or (fused and not record.get("fused")):
            began = time.perf_counter()
            checkpoints = self.job.folder / "checkpoints" / key
            model, training, vectors = self._train(planned, retriever, settings, data, checkpoints)

            if fused is not None:
                record = None  # a fusion needs what the model ranks, not its scores alone

            evaluations, ranked = self._evaluate(model, planned, judged, record, data.pairs, vectors)
            record = {
                "retriever": planned.condition.retriever,
                "base_hash": base_hash,
                "pairs_hash": data.pairs.content_hash,
                "settings": settings.to_dict(),
                "training": training,
                "evaluations": evaluations,
                "seconds": round(time.perf_counter() - began, 3),
                "created": now(),
            }

            if fused is not None:
                watch = partial(self._watch, f"{planned}: {fused[1].name}")
                ranked[fused[0]] = self._evaluated(model, fused[1], "", watch, vectors)
                record["fused"] = self._fused(fused, ranked)

            shutil.rmtree(checkpoints, ignore_errors=True)
            self.counts["trained"] += 1
        else:
            self.counts["reused"] += 1

        records.save(self.job.folder, key, planned, record)
        values = [record["evaluations"][place]["measures"]["ndcg@10"] for place, _ in judged]
        score = 100 * sum(values) / len(values)
        self.job.metric(self.done + 1, ndcg_at_10=score, condition=str(planned))
        self.tracker.log(self.steps_before, {"ndcg_at_10": score}, f"{planned}/final")

    def _settings(self, planned: PlannedTraining, retriever: ResolvedRetriever, pairs: PairSet) -> TrainingConfig:
        source, dev = self.sources[planned.condition.source], self._dev_of(planned)
        settings = complete(training_config(self.config, planned, source.query_set, source.reasoning), retriever)
        settings = settings.replace(steps=steps_of(self.config, list(self.sources.values()), settings))
        if dev is not None:
            settings = settings.replace(benchmark=dev[1].name, split=dev[1].split)

        n_negatives = 0 if pairs.negatives is None else pairs.negatives.shape[1]
        return settings.replace(hard_negatives=n_negatives)

    def train_for_keeps(self, option: Condition) -> None:
        """Train an option once more, with its first seed, for its model: its scores were there already."""
        trainings = [step for step in self.steps if isinstance(step, PlannedTraining)]
        planned = next(training for training in trainings if training.condition == option)
        retriever, _ = self.base(option.retriever)
        data = self._pairs(planned)
        settings = self._settings(planned, retriever, data.pairs)
        self._train(planned, retriever, settings, data, self.job.folder / "checkpoints" / "kept")

    def _pairs(self, planned: PlannedTraining) -> _Data:
        # All documents are the same for every seed.
        whole = planned.max_documents is None and planned.budget is None
        drawn = None if whole else planned.seed
        ri = weighs_reasoning(planned.condition.weighting)
        condition = planned.condition._replace(
            weighting="", held="", rate=None, layers=None
        )  # they take the same pairs

        wanted = (condition, planned.max_documents, planned.budget, drawn, ri)
        if self._data is None or self._data.key != wanted:
            failures = self.job.failures(f"reading pairs of {planned.condition.source}")
            source = self.sources[planned.condition.source]
            among = self._common.get(source.corpus)
            pairs = condition_pairs(self.job.workspace, self.config, source, planned, failures, among)

            if not self._leak_allowed:
                # Sets that the plan names were checked at the start. Of what a method wrote, a query may be a
                # benchmark's own by chance: it goes, so that the results need no mark.
                judged = leakage.any_known(leakage.keys(pairs.queries), self._judged)
                pairs = pairs.without(~judged, "queries that a benchmark judges")

            if planned.condition.loss != INFONCE:
                pairs = self._with_negatives(pairs, planned)

            pairs.check_negatives()
            self._data = _Data(wanted, pairs)

        return self._data

    def _with_negatives(self, pairs: PairSet, planned: PlannedTraining) -> PairSet:
        """``pairs`` with hard negatives, for ``distil`` also with soft labels: the query set's own, else mined."""
        distil = planned.condition.loss == DISTIL
        wanted = training_config(self.config, planned, "any").loop.hard_negatives
        query_set = pairs.query_set

        mined = labels = None
        if not query_set.hard_negatives or (distil and not query_set.parameters.get("teacher")):
            mined, labels = self._mined(self.sources[planned.condition.source])

        pairs = with_negatives(pairs, self.job.workspace, wanted, mined)
        return with_teacher(pairs, self.job.workspace, labels) if distil else pairs

    def _mined(self, source: StudySource) -> tuple[Mined, Labels]:
        """The teacher's hard negatives of a source's queries, and its scores of them."""
        if source.label not in self._negatives:
            workspace, widest = self.job.workspace, max(self.config.per_doc)
            pairs: list[tuple[str, str]] = []
            for line in query_sets.read_queries(workspace, source.query_set):
                pairs += [(text.strip(), line.document_id) for text in line.queries[:widest]]

            contents = {d.id: d.content for d in iter_documents(workspace, source.corpus) if d.content.strip()}
            self._report(f"loading {self.config.teacher}", next_within_s=LOADING_S)
            watch = partial(self._watch, f"hard negatives of {source.label}")
            teacher = Miner(workspace, self.config.teacher, self.config.gpus, watch)
            beside = load_manifest(workspace, source.corpus).neighbours(contents)
            mined = mine(pairs, contents, teacher, beside=beside, negatives=MAX_NEGATIVES).negatives
            self._negatives[source.label] = mined, similarities(pairs, contents, mined, teacher)

        return self._negatives[source.label]

    def _train(
        self,
        planned: PlannedTraining,
        retriever: ResolvedRetriever,
        config: TrainingConfig,
        data: _Data,
        checkpoints: Path,
    ) -> tuple[SentenceTransformer, dict[str, Any], Vectors | None]:
        from cdp.training.heads import start_head
        from cdp.training.loop import States, base_model, make_retriever
        from cdp.training.tokens import stores_of

        device = _device(self.config.gpus)
        config = on_device(config, retriever, device.partition(":")[0])
        model = base_model(retriever, config, device, self._memo)

        if data.stores is None:
            self._report(f"tokenising {len(data.pairs):,} pairs of {planned.condition.source}")
            data.stores = stores_of(model, data.pairs)
        start_head(model, retriever, data.stores)

        weights = pair_weights(data.pairs, config.weighting, kappa=config.kappa)
        _, base_hash = self.base(planned.condition.retriever)

        evaluate, dev = None, self._dev_of(planned)
        if dev is not None:
            evaluate = DevJudge(dev[1], partial(self._watch, f"{planned}: {dev[1].name}"))

        trained = make_retriever(
            model,
            config,
            data.pairs,
            data.stores,
            weights,
            _Hooks(self, planned),
            checkpoints,
            evaluate=evaluate,
            states=States(self.job.workspace.layers, base_hash, partial(self._watch, str(planned))),
        )
        if trained.outcome.stopped:
            raise Stopped

        self.steps_before += trained.outcome.step

        if self.config.keep != NONE and planned.condition.usual:
            kept.offer(self.job, planned, retriever, data.pairs, data.stores[1], trained, model)

        vectors = None
        # Not after a resume whose best step came before it.
        if evaluate is not None and evaluate.best == trained.outcome.best_score:
            vectors = evaluate.vectors

        return model, _facts(data.pairs, trained.order, trained.outcome), vectors

    def _evaluate(
        self, model: SentenceTransformer, planned: PlannedTraining, judged: Sequence[Placed],
        stored: dict[str, Any] | None, pairs: PairSet, vectors: Vectors | None,
    ) -> tuple[dict[str, Any], dict[str, Evaluation]]:  # fmt: skip
        """The scores of a trained model on each benchmark, those that are ``stored`` among them; the other rankings."""
        workspace, name = self.job.workspace, planned.condition.retriever
        queries = np.union1d(leakage.keys(pairs.queries), leakage.seen(workspace, name))
        documents = leakage.hashes(pairs.documents[: pairs.n_documents])
        documents = np.union1d(documents, leakage.seen(workspace, name, leakage.DOCUMENTS))
        evaluations: dict[str, Any] = {} if stored is None else dict(stored["evaluations"])
        ranked: dict[str, Evaluation] = {}
        for place, benchmark in judged:
            if place in evaluations:
                continue

            what = f"{planned}: {benchmark.name}"
            self._report(what)
            evaluation = ranked[place] = self._evaluated(model, benchmark, "", partial(self._watch, what), vectors)
            evaluation.counts.update(leakage.counts_of(queries, documents, benchmark))

            if self._leak_allowed:
                evaluation.counts["leaked_training"] = 1

            evaluations[place] = self._scores(benchmark, evaluation)

        return evaluations, ranked

    def _evaluated(
        self, model: SentenceTransformer, benchmark: Benchmark, identity: str, watch: Progress,
        vectors: Vectors | None = None,
    ) -> Evaluation:  # fmt: skip
        precision = precision_for(model)
        return evaluate_model(
            cast(model, precision), benchmark, protocol=self.config.protocol, precision=precision,
            store=self.store if identity else None, model_hash=identity, watch=watch, vectors=vectors,
        )  # fmt: skip

    def _scores(self, benchmark: Benchmark, evaluation: Evaluation) -> dict[str, Any]:
        """What the report needs of an evaluation, and what was retrieved first; scores in [0, 1]."""
        if is_judged(benchmark.folder):
            evaluation.counts["unjudged_in_first_ten"] = unjudged(benchmark, evaluation.ranking)

        return {
            "benchmark": benchmark.name,
            "split": benchmark.split,
            "n_texts": benchmark.n_queries + benchmark.n_documents,
            "measures": evaluation.measures,
            "query_ids": benchmark.query_ids,
            "ndcg@10": np.round(evaluation.per_query["ndcg@10"], 6).tolist(),
            "p@1": evaluation.per_query["p@1"].astype(int).tolist(),
            "first_ten": records.numbered(first_ten(benchmark, evaluation.ranking)),
            "counts": evaluation.counts,
            "settings": evaluation.settings,
            "seconds": evaluation.seconds,
        }


def kind_of(step: Step) -> str:
    """The kind of work that a step is, as ``Remaining`` counts it; empty for what costs nothing beside the others."""
    if isinstance(step, PlannedTraining):
        return step.condition.retriever
    free = step.retriever == bm25.NAME or step.source == HYBRID  # made of rankings that are there
    return "" if free else untrained_kind(step.retriever)


class _Hooks:
    """The callbacks of the training loop."""

    def __init__(self, study: Study, planned: PlannedTraining) -> None:
        self.study, self.planned = study, planned

    def log(self, step: int, **values: float | int | None) -> None:
        """A study shows scores, not losses, which are in its records; a tracker shows both, each arm as a group."""
        # W&B takes no step again, so those of the next arm follow on.
        self.study.tracker.log(self.study.steps_before + step, values, str(self.planned))

    def progress(self, step: int, steps: int, message: str) -> None:
        self.study._share = step / steps
        self.study._report(f"{self.planned}: step {step} of {steps}")

    def stop_requested(self) -> bool:
        return self.study.job.stop_requested()


def _device(gpus: int | None) -> str:
    import torch

    if gpus == 0 or not torch.cuda.is_available():
        if gpus:
            raise ConfigError("A GPU was asked for, and there is none.", hint="Set 'gpus' to 0 for the CPU.")
        return "cpu"
    return "cuda:0"


def _facts(pairs: PairSet, order: BatchOrder, outcome: Outcome) -> dict[str, Any]:
    last = outcome.last_losses

    return {
        "pairs": len(pairs),
        "documents": len(pairs.documents),
        "dropped": pairs.dropped,
        "steps": outcome.steps,
        "steps_per_epoch": order.steps_per_epoch,
        "left_out_per_epoch": order.left_out_per_epoch,
        "seconds": round(outcome.seconds, 3),
        "pairs_seen": outcome.pairs_seen,
        "steps_taken": outcome.step,
        "best_step": outcome.best_step,
        "evaluations": outcome.evaluations,
        "loss_last": sum(last) / len(last) if last else None,
    }
