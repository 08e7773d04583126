"""Tiny models with random weights, made on the spot: a decoder that writes text, a cross-encoder that scores pairs."""

from __future__ import annotations

import string
from pathlib import Path

from tests.support_models import tiny_bert

CHAT = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}[assistant] "


def tiny_writer(folder: Path, *, seed: int = 0, positions: int = 2048, chat: bool = True) -> Path:
    """A Mistral-shaped decoder over single characters, with a chat template, as an instruct model has."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import MistralConfig, MistralForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    characters = [*string.ascii_letters, *string.digits, *string.punctuation, " ", "\n"]
    vocabulary = {token: place for place, token in enumerate(["<pad>", "<unk>", "</s>", *characters])}
    config = MistralConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        head_dim=16, intermediate_size=64, max_position_embeddings=positions, initializer_range=0.3, eos_token_id=2,
        bos_token_id=None, pad_token_id=0, sliding_window=None,
    )  # fmt: skip
    MistralForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>", padding_side="left"
    )
    if chat:
        fast.chat_template = CHAT
    fast.save_pretrained(folder)
    return folder


def tiny_cross_encoder(folder: Path, *, labels: int = 1, seed: int = 0) -> Path:
    """A BERT with a head of ``labels`` scores per pair."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    base = tiny_bert(folder / "base", seed=seed)
    torch.manual_seed(seed)
    model = BertForSequenceClassification.from_pretrained(base, num_labels=labels)
    model.save_pretrained(folder / "ranker")
    AutoTokenizer.from_pretrained(base).save_pretrained(folder / "ranker")
    return folder / "ranker"
