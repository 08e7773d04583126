"""The training worker (processes, model folder, its card, training.json): ``accelerate launch … -m cdp.workers.training
<job folder>``, or plain ``python -m``.

Trains, writes ``checkpoints/``, ``model/`` (a sentence-transformers model with a model card) and
``results/training.json``. A stop keeps what was learnt so far; a new attempt in the same folder continues from the last
checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.job_kind import QUERY_SET, Device, JobKind, PreparedJob
from cdp.base.machine import keep_freed_memory
from cdp.base.text import public
from cdp.base.worker import BATCH_FOR_S, Job, run
from cdp.base.workspace import Workspace
from cdp.evaluation.card import model_card, save_model
from cdp.retrievers import leakage, model_hash
from cdp.retrievers.resolve import model_folder
from cdp.training.plan import TrainingData, licence_notes, notes_of, on_device, prepare, with_ids
from cdp.training.reasoning import resolved_reasoning
from cdp.training.record import record_of, written_of
from cdp.training.tracking import Tracker

# Processes wait for the first while it evaluates on a dev benchmark, which may take longer than the libraries' ten
# minutes. The launcher ends the others if a process dies.
TOGETHER = timedelta(days=1)


class JobHooks:
    """The loop's reports, as the job's files and on the tracker."""

    def __init__(self, job: Job, tracker: Tracker) -> None:
        self.job, self.tracker, self.stop_requested = job, tracker, job.stop_requested

    def log(self, step: int, **values: float | int | None) -> None:
        self.job.metric(step, **values)
        self.tracker.log(step, values)

    def progress(self, step: int, steps: int, message: str) -> None:
        self.job.progress("training", step, steps, "steps", message, next_within_s=120.0)


def main(job: Job) -> None:
    config = TrainingConfig.from_dict(job.config)
    job.progress("reading pairs", 0, 0, "")
    data = prepare(config, job.workspace, job.failures("reading pairs"))
    notes = notes_of(data)
    print(f"{len(data.pairs):,} pairs over {data.pairs.n_documents:,} documents", *notes, sep="\n", flush=True)
    job.loading("the model")
    train(job, data, notes)


def train(job: Job, data: TrainingData, notes: list[str]) -> None:
    """Train and save the model, with all that needs torch."""
    from accelerate import PartialState

    from cdp.evaluation.evaluate import dev_evaluation, length_of
    from cdp.retrievers.static import TokenMemo
    from cdp.training.checkpoint import write_folder
    from cdp.training.heads import start_head
    from cdp.training.loop import States, base_model, make_retriever
    from cdp.training.tokens import stores_of

    config, retriever, pairs = data.settings, data.retriever, data.pairs

    # Set by launchers of several processes on the CPU: without it accelerate takes each for a single one.
    on_cpu = config.gpus == 0 or os.environ.get("ACCELERATE_USE_CPU") == "true"
    state = PartialState(cpu=on_cpu, timeout=TOGETHER)
    if state.device.type == "cpu" and not on_cpu and os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise ConfigError(
            "This training was given a GPU, and torch cannot use it.",
            hint="See what `cdp doctor` says about devices, or set gpus to 0 to train on the CPU.",
        )

    if state.device.type == "cpu":
        keep_freed_memory()

    config = on_device(config, retriever, state.device.type)
    memo = TokenMemo() if config.dev.benchmark else None  # its texts are encoded again at each evaluation
    model = base_model(retriever, config, str(state.device), memo)
    base_hash = model_hash(model)

    stores = stores_of(model, pairs, lambda phase, done, total: job.progress(phase, done, total, "texts"))
    start_head(model, retriever, stores)
    tracker = Tracker()

    if state.is_main_process:
        tracker = Tracker(config.tracker, str(job.spec.get("name") or job.id), job.folder, config.to_dict())

    made = make_retriever(
        model, config, pairs, stores, data.weights, JobHooks(job, tracker), job.folder / "checkpoints",
        processes=state.num_processes, evaluate=dev_evaluation(config, job),
        states=States(job.workspace.layers, base_hash, job.advance),
    )  # fmt: skip

    outcome, (_, documents, _) = made.outcome, stores
    state.destroy_process_group()

    if not state.is_main_process:
        return

    job.progress("saving the model", 0, 0, "", next_within_s=BATCH_FOR_S)
    leaks = job.spec.get("inputs", {}).get(leakage.LEAKAGE, [])
    own_notes = [
        f"**Leaked**: {leakage.Leak(**leak).sentence} Scores of this model do not say how it answers queries that it "
        "has never seen."
        for leak in leaks
    ]

    if outcome.stopped:
        whole = f"**Stopped at step {outcome.step:,} of {outcome.steps:,}**: its scores are not those of a whole one."
        own_notes.insert(0, whole)

    result: dict[str, Any] = {
        **record_of(
            job.id,
            config,
            pairs,
            documents,
            made,
            model,
            processes=state.num_processes,
            limit=length_of(model) or config.loop.max_length,
        ),
        "failures": job.n_failures,
        "base_hash": base_hash,
        "leakage": leaks,
    }

    result["notes"] = [*own_notes, *result["notes"], *notes]
    final = {"best_ndcg_at_10": result["best_ndcg@10"], "loss_last": result["loss_last"]}
    tracker.log(outcome.step, final, "final")
    tracker.finish()
    leakage.write_hashes(job.results, pairs.queries, pairs.documents[: pairs.n_documents])
    name = str(job.spec.get("name") or f"{public(config.retriever)} trained on {pairs.query_set.name}")

    licences = licence_notes(retriever, pairs.query_set, job.workspace)
    sets = [query_sets.load(job.workspace, id) for id in (config.query_set, *config.beside)]
    for other in sets[1:]:
        more = licence_notes(retriever, other, job.workspace)
        licences |= {what: f"{licences[what]}; {more[what]}" for what in licences if more[what] != licences[what]}

    languages, queries = sorted({*pairs.languages} or {pairs.language}), "; ".join(map(written_of, sets))
    card = partial(model_card, result, retriever, queries, languages, licences, job.workspace, name)
    write_folder(model_folder(job.folder), partial(save_model, model, card=card))
    job.result("training", result)
    job.progress("done", outcome.step, outcome.steps, "steps", "stopped; the model is kept" if outcome.stopped else "")


def prepared(workspace: Workspace, config: TrainingConfig, after: Sequence[str] = ()) -> PreparedJob:
    query_set = query_sets.load(workspace, config.query_set)
    name = config.name or f"{public(config.retriever)} trained on {query_set.name}"
    config = with_ids(workspace, config)
    inputs = {"corpus": query_set.corpus_id, **({"beside": list(config.beside)} if config.beside else {})}
    return PreparedJob(resolved_reasoning(workspace, config, query_set), name, inputs)


KIND = JobKind(
    "training", "Training", "A retriever, trained on a query set.", TrainingConfig, main, prepared,
    inputs={"query_set": QUERY_SET}, device=lambda config: Device(config.gpus), launcher="accelerate", makes="model",
    command="train", word="query_set", order=70,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
