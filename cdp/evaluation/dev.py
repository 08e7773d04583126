"""NDCG@10 on a dev benchmark while training, by which the best weights are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cdp.base.config import TrainingConfig
from cdp.base.worker import Job
from cdp.benchmarks import Benchmark, load_benchmark, resolve_benchmark
from cdp.evaluation import evaluate_model
from cdp.retrievers.encode import Stopped

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# A batch of texts may take this long to encode without a heartbeat.
BATCH_S = 300.0


def dev_evaluation(config: TrainingConfig, job: Job) -> Callable[[SentenceTransformer], float | None] | None:
    """A function from the model to its mean NDCG@10 in [0, 1], None if it was stopped midway; None without a benchmark.

    Cosine, as the model is trained. The benchmark is read now, so that a wrong one fails before the first step.
    """
    if not config.benchmark:
        return None
    benchmark = load_benchmark(resolve_benchmark(config.benchmark, job.workspace), config.split)
    return judge_on(
        benchmark,
        lambda phase, done, total: job.progress(
            "evaluating", done, total, "texts", f"{phase} of {benchmark.name}", next_within_s=BATCH_S
        ),
        job.stop_requested,
    )


def judge_on(
    benchmark: Benchmark, progress: Callable[[str, int, int], None], should_stop: Callable[[], bool]
) -> Callable[[SentenceTransformer], float | None]:
    """A function from the model to its mean NDCG@10 on this benchmark in [0, 1], None if it was stopped midway."""

    def evaluate(model: SentenceTransformer) -> float | None:
        try:
            evaluation = evaluate_model(
                model,
                benchmark,
                protocol="paper",
                progress=progress,
                should_stop=should_stop,
            )
        except Stopped:
            return None
        return evaluation.measures["ndcg@10"]

    return evaluate
