"""A retriever by name: source is a folder or a model on the hub. See cdp.retrievers.presets.Retriever."""

from cdp.retrievers.presets import COSINE, GENERAL_DEFAULTS, Retriever

PRESET = Retriever(
    "tiny",
    "Tiny BERT",
    "A small model under a name of your own.",
    source="sentence-transformers/all-MiniLM-L6-v2",
    architecture="transformer",
    pooling="mean",
    normalize=True,
    max_length=32,
    similarity=COSINE,
    parameters="22.7 million parameters",
    licence="Apache 2.0.",
    licence_id="apache-2.0",
    defaults=GENERAL_DEFAULTS,
)
