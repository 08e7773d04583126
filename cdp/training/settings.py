"""A training configuration with every default filled in from the retriever."""

from __future__ import annotations

from collections.abc import Mapping

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.retrievers import Default, ResolvedRetriever
from cdp.training import tracking
from cdp.training.pairs import BatchOrder
from cdp.training.reasoning import check_reasoned
from cdp.training.weightings import WEIGHTINGS

LORA_RATE = Default(1e-4, "With LoRA: its few parameters start without effect and need larger steps.")

FROM_RETRIEVER = ("epochs", "batch_size", "learning_rate", "scale", "max_length")


def defaults_for(defaults: Mapping[str, Default], lora: bool) -> dict[str, Default]:
    """What a retriever's settings become where they are left empty, with LoRA or without."""
    return {**defaults, **({"learning_rate": LORA_RATE} if lora else {})}


def complete(config: TrainingConfig, retriever: ResolvedRetriever) -> TrainingConfig:
    """``config`` with each None that a retriever has a default for replaced by it. ``max_length`` may stay None."""
    defaults = defaults_for(retriever.defaults, lora=config.lora_rank is not None)
    filled = {
        name: defaults[name].value for name in FROM_RETRIEVER if getattr(config, name) is None and name in defaults
    }
    complete = config.replace(**filled)
    if complete.mini_batch is not None and retriever.preset is not None and retriever.preset.kind == "static":
        raise ConfigError(
            "'mini_batch' (GradCache) does not apply to a static retriever, which needs hardly any memory per text.",
            hint="Leave it empty.",
        )
    if complete.lora_rank is not None and retriever.preset is not None and retriever.preset.kind == "static":
        raise ConfigError("'lora_rank' does not apply to a static retriever, which has no layers.")
    if WEIGHTINGS.named(complete.weighting).needs == "column" and not complete.weights:
        raise ConfigError(f"The weighting {complete.weighting!r} needs 'weights', a file with query_id and weight.")
    check_reasoned(complete, "")
    tracking.check(complete.track)
    if complete.distil and (complete.query_source != "query-only" or complete.hard_negatives == 0):
        raise ConfigError(
            "'distil' compares each query's document with its hard negatives, by the labels of the query itself.",
            hint="Leave query_source at query-only, and hard_negatives empty or above 0.",
        )
    if complete.learning_rate == 0:
        raise ConfigError("With 'learning_rate' 0 nothing is learnt.", hint="Leave it empty for the retriever's own.")
    if complete.patience is not None and not complete.benchmark:
        raise ConfigError("'patience' needs a 'benchmark' to evaluate on while training.")
    return complete


def on_device(config: TrainingConfig, retriever: ResolvedRetriever, device: str) -> TrainingConfig:
    """``config`` with what its retriever's preset says of training on a GPU, where the settings leave it open.

    ``device`` is a torch device's type. Elsewhere and for models without a preset it stays open, see ``precision_of``.
    """
    if device != "cuda":
        return config
    left_open = {"precision": "auto", "gradient_checkpointing": None}
    filled = {
        name: retriever.defaults[name].value
        for name, value in left_open.items()
        if getattr(config, name) == value and name in retriever.defaults
    }
    return config.replace(**filled)


def order_of(settings: TrainingConfig, pairs: int, processes: int = 1) -> BatchOrder:
    """The order in which a training with these complete settings sees so many pairs. ConfigError where a batch would
    leave a query without a negative, or a process without a query."""
    assert settings.batch_size is not None
    assert settings.epochs is not None
    order = BatchOrder(pairs, settings.batch_size, settings.epochs, settings.seed, processes)
    if order.rows < 1 or order.global_rows < 2:
        shared = f" for {processes} processes" if processes > 1 else ": a pair alone has no negatives"
        raise ConfigError(
            f"A batch of {min(settings.batch_size, pairs)} is too small{shared}.",
            hint="Use a larger batch_size or fewer GPUs." if processes > 1 else "Use a larger batch_size.",
        )
    return order


def rate(value: float) -> str:
    """A learning rate as it is printed: ``2e-6``."""
    digits, _, exponent = f"{value:.3g}".partition("e")
    if exponent:
        return f"{digits}e{int(exponent)}"
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"
