"""all-MiniLM-L6-v2: a small encoder that comes with the installation and trains on a CPU."""

from __future__ import annotations

from cdp.retrievers.presets import COSINE, MINILM, SCALE, Default, Retriever

PRESET = Retriever(
    name="minilm",
    order=20,
    title="minilm (all-MiniLM-L6-v2)",
    help="Six layers, already a good retriever. Comes with the installation; trains on a CPU in minutes.",
    architecture="transformer",
    # The mean of all token vectors, made unit length: its authors' configuration.
    pooling="mean",
    normalize=True,
    max_length=256,
    similarity=COSINE,
    parameters="23 M parameters, 91 MB",
    defaults={
        "learning_rate": Default(2e-5, "Usual for fine-tuning MiniLM; it has been trained for retrieval before."),
        "batch_size": Default(64, "Two CPU cores take such a step in seconds; a larger one has more negatives."),
        "epochs": Default(1, "It starts from a trained retriever: one pass moves it, more of them cost minutes each."),
        "max_length": Default(256, "The model's own limit, as its authors trained it."),
        "scale": SCALE,
    },
    **MINILM,
)
