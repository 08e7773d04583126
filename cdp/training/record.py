"""What a training writes of itself beside its model (``results/training.json``): counts, losses, hashes, versions."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cdp import __version__
from cdp.base.config import TrainingConfig
from cdp.base.text import counted
from cdp.query_sets import QuerySet
from cdp.retrievers import model_hash
from cdp.training.pairs import PairSet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from cdp.training.loop import Training
    from cdp.training.tokens import TokenStore

# Of the outcome of the loop, as it is.
OUTCOME = ("stopped", "early", "masked", "skipped", "best_step", "evaluations")
LIBRARIES = ("sentence-transformers", "transformers", "torch")


def record_of(
    job: str, config: TrainingConfig, pairs: PairSet, documents: TokenStore, made: Training,
    model: SentenceTransformer, *, limit: int | None, processes: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Return the record of a training that ended. ``limit`` is the tokens that the model takes, ``documents`` the
    tokens of the pairs' documents; ``notes`` hold what the training itself has to say."""
    order, outcome, query_set = made.order, made.outcome, pairs.query_set
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    rate = outcome.seconds and outcome.pairs_seen / outcome.seconds
    filled, notes = 0, []

    if limit is not None:
        filled = int((documents.lengths >= limit).sum())
    if filled:
        notes.append(f"{counted(filled, 'document')} cut off at the {limit:,} tokens that the model takes.")

    return {
        "id": job,
        "retriever": config.retriever,
        "query_set": config.query_set,
        "corpus": query_set.corpus_id,
        "weighting": config.weighting,
        "pairs": len(pairs),
        "documents": pairs.n_documents,
        "hard_negatives": 0 if pairs.negatives is None else pairs.negatives.shape[1],
        "dropped": pairs.dropped,
        "unreasoned": pairs.unreasoned,
        "batch_size": order.global_rows,
        "processes": processes,
        "left_out_per_epoch": order.left_out_per_epoch,
        "filled_the_limit": filled,
        "steps": outcome.step,
        "steps_planned": outcome.steps,
        "epochs": config.loop.epochs,
        "seconds": round(outcome.seconds, 3),
        **{name: getattr(outcome, name) for name in OUTCOME},
        "pairs_per_second": round(rate, 1) if rate else None,
        "loss_first": _mean(outcome.first_losses),
        "loss_last": _mean(outcome.last_losses),
        "precision": made.precision,
        "query_prompt": model.prompts["query"] or "",
        "max_length": limit,
        "best_ndcg@10": None if outcome.best_score is None else 100 * outcome.best_score,
        "pairs_hash": pairs.content_hash,
        "query_set_hash": query_set.content_hash,
        "model_hash": model_hash(model),
        "software": f"CDP Studio {__version__}, {libraries}",
        "settings": config.to_dict(),
        "notes": notes,
    }


def written_of(query_set: QuerySet) -> str:
    """Return what a model was trained on, for its card: ``demo diverse, diverse, written by recorded``."""
    return f"{query_set.name}, {query_set.method or 'imported'}, written by {query_set.written_by}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
