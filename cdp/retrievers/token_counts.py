"""How many tokens a model reads of a text, and whether it cuts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def token_counts(model: SentenceTransformer, texts: Sequence[str], prompt: str = "") -> tuple[list[int], list[bool]]:
    """(tokens read, whether more were there), each (n,): with the prompt and the special tokens, as ``encode`` reads
    the texts. Words, and nothing cut, for a model whose tokenizer is not one of the usual libraries'."""
    inputs = [prompt + text for text in texts]
    tokenizer = model.tokenizer
    if hasattr(tokenizer, "encode_batch"):  # the library tokenizers itself, in a static model
        encodings = tokenizer.encode_batch(inputs, add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings], [bool(encoding.overflowing) for encoding in encodings]
    if not callable(tokenizer):
        return [len(text.split()) for text in inputs], [False] * len(inputs)
    rows = tokenizer(inputs, padding=False, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
    limit = model.max_seq_length or max(map(len, rows), default=0)
    return [min(len(row), limit) for row in rows], [len(row) > limit for row in rows]
