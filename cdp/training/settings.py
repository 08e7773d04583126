"""A training configuration with every default filled in from the retriever."""

from __future__ import annotations

import dataclasses

from cdp.config import TrainingConfig
from cdp.errors import ConfigError
from cdp.training.retrievers import ResolvedRetriever

FROM_RETRIEVER = ("epochs", "batch_size", "learning_rate", "scale", "max_length")


def complete(config: TrainingConfig, retriever: ResolvedRetriever) -> TrainingConfig:
    """``config`` with each None that a retriever has a default for replaced by it. ``max_length`` may stay None."""
    filled = {
        name: retriever.default(name)
        for name in FROM_RETRIEVER
        if getattr(config, name) is None and name in retriever.defaults
    }
    complete = dataclasses.replace(config, **filled)
    if complete.mini_batch is not None and retriever.preset is not None and retriever.preset.kind == "static":
        raise ConfigError(
            "'mini_batch' (GradCache) does not apply to a static retriever, which needs hardly any memory per text.",
            hint="Leave it empty.",
        )
    return complete
