"""LoRA: train low-rank additions to the linear layers, and merge them into the weights in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdp.base.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def add_lora(model: SentenceTransformer, rank: int) -> None:
    """Freeze the model's weights and add trainable matrices of this rank to each linear layer (α = 2 · rank, no
    dropout). ModelError for a model without a transformer."""
    from peft import LoraConfig, get_peft_model

    if model.transformers_model is None:
        raise ModelError("LoRA needs a transformer, and this model has none.", hint="Leave lora_rank empty.")
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, bias="none", target_modules="all-linear")
    model[0].model = get_peft_model(model.transformers_model, config)


def merge_lora(model: SentenceTransformer) -> None:
    """Add what was learnt to the weights, so that the model is saved and loaded like any other."""
    model[0].model = model[0].model.merge_and_unload()
