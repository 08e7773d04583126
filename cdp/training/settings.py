"""A training configuration with every default filled in from the retriever."""

from __future__ import annotations

import dataclasses

from cdp.config import TrainingConfig
from cdp.errors import ConfigError
from cdp.training.retrievers import ResolvedRetriever
from cdp.training.weights import weighting_named

LORA_RATE = 1e-4
"""Peak learning rate with LoRA where none is given: its few parameters start at zero effect and need larger steps."""

FROM_RETRIEVER = ("epochs", "batch_size", "learning_rate", "scale", "max_length")


def complete(config: TrainingConfig, retriever: ResolvedRetriever) -> TrainingConfig:
    """``config`` with each None that a retriever has a default for replaced by it. ``max_length`` may stay None."""
    filled = {
        name: retriever.default(name)
        for name in FROM_RETRIEVER
        if getattr(config, name) is None and name in retriever.defaults
    }
    if config.lora_rank is not None and config.learning_rate is None:
        filled["learning_rate"] = LORA_RATE
    complete = dataclasses.replace(config, **filled)
    if complete.mini_batch is not None and retriever.preset is not None and retriever.preset.kind == "static":
        raise ConfigError(
            "'mini_batch' (GradCache) does not apply to a static retriever, which needs hardly any memory per text.",
            hint="Leave it empty.",
        )
    if complete.lora_rank is not None and retriever.preset is not None and retriever.preset.kind == "static":
        raise ConfigError("'lora_rank' does not apply to a static retriever, which has no layers.")
    if complete.weighting == "column" and not complete.weights:
        raise ConfigError("The weighting 'column' needs 'weights', a file with query_id and weight.")
    if weighting_named(complete.weighting).needs == "reasoning" and not complete.reasoning:
        raise ConfigError(
            f"The weighting {complete.weighting!r} needs 'reasoning', a query set with reasoned queries.",
            hint="Make one with the method reasoning from the query set to train on.",
        )
    if complete.patience is not None and not complete.benchmark:
        raise ConfigError("'patience' needs a 'benchmark' to evaluate on while training.")
    return complete
