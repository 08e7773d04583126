"""Token ids of texts that one process tokenises again and again, such as a study's benchmarks after each training.

A static model adds up rows of a table, so tokenising is most of what encoding costs: of 26 CPU seconds for a training
of static-minilm with its evaluation on 45,000 texts it took 19, the table 0.7.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

LIMIT_BYTES = 256 * 2**20
"""About 200,000 passages. What comes when it is full is tokenised each time: to forget old texts for new ones
would forget all of them where more texts than fit are gone through in turn."""

ENTRY_BYTES = 200
"""What an entry takes beside its text and ids: an array's header and a place in a dictionary."""

Ids = NDArray[np.int32]


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """Of everything that the tokenizer is made of, as it would be saved."""
    return hashlib.sha256(tokenizer.to_str().encode("utf-8", "surrogatepass")).hexdigest()


def token_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    """The ids of each text, without special tokens."""
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]


class TokenMemo:
    """Ids by tokenizer and text, for all models of a process that it is given to; at most ``limit_bytes``."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.nbytes = 0
        self._tables: dict[tuple[str, str], dict[str, Ids]] = {}

    def ids(self, tokenizer: Tokenizer, content: str, texts: Sequence[str]) -> list[Ids]:
        """As ``token_ids`` gives them. ``content`` is the tokenizer's hash; where it cuts texts is looked at here, for
        that can be set at any time."""
        table = self._tables.setdefault((content, json.dumps(tokenizer.truncation)), {})
        unknown = list(dict.fromkeys(text for text in texts if text not in table))
        fresh = dict(zip(unknown, token_ids(tokenizer, unknown), strict=True)) if unknown else {}
        for text, ids in fresh.items():
            size = ENTRY_BYTES + ids.nbytes + sys.getsizeof(text)
            if self.nbytes + size <= self.limit_bytes:
                table[text] = ids
                self.nbytes += size
        return [table[text] if text in table else fresh[text] for text in texts]
