"""What an evaluation holds fixed, apart from model and benchmark: prompts and similarity.

``published``  as the model's authors evaluate it: the model's own similarity, cosine or dot product
``paper``      cosine similarity for every model

Both use the prompts that the model carries. They change results, so their hash is stored with each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdp.base.errors import ConfigError
from cdp.base.workspace import sha256_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PROTOCOLS = ("published", "paper")

# The names under which models keep the prompt of each role, in the order sentence-transformers looks for them.
_ROLES = {"query": ("query",), "document": ("document", "passage", "corpus")}


@dataclass(frozen=True)
class Protocol:
    """How texts become vectors and vectors become scores. ``similarity`` is cosine or dot."""

    name: str
    similarity: str
    query_prompt: str = ""
    document_prompt: str = ""

    @property
    def normalise(self) -> bool:
        """Whether embeddings are scaled to length 1 before the dot product."""
        return self.similarity == "cosine"

    @property
    def prompts_hash(self) -> str:
        """16 hex digits that are equal where both prompts are."""
        return sha256_text(self.query_prompt, self.document_prompt)[:16]


def protocol_for(model: SentenceTransformer, name: str = "published") -> Protocol:
    """The protocol of that name for a loaded model. ConfigError for an unknown one, or one that the model lacks."""
    if name not in PROTOCOLS:
        raise ConfigError(f"{name!r} is not a protocol.", hint=f"There is: {', '.join(PROTOCOLS)}.")
    similarity = "cosine" if name == "paper" else str(model.similarity_fn_name)
    if similarity not in ("cosine", "dot"):
        raise ConfigError(
            f"The model is published with {similarity} similarity, which is not searched exactly here.",
            hint="Use the protocol paper, which takes cosine for every model.",
        )
    return Protocol(name, similarity, _prompt(model, "query"), _prompt(model, "document"))


def _prompt(model: SentenceTransformer, role: str) -> str:
    return next((prompt for name in _ROLES[role] if (prompt := model.prompts.get(name))), "")
