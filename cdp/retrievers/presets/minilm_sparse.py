"""minilm-sparse: weights of words by all-MiniLM-L6-v2 with a vocabulary head, compared by dot products (SPLADE)."""

from __future__ import annotations

from cdp.retrievers.presets import DOT, MINILM, SPARSE, Default, Retriever

PRESET = Retriever(
    name="minilm-sparse",
    order=27,
    title="minilm-sparse (weights of words)",
    help="A weight for each word of the vocabulary that a text is about, by all-MiniLM-L6-v2 and a head that its "
    "training begins. Searched by inverted lists. Comes with the installation; nothing is found before a training.",
    architecture="transformer",
    kind=SPARSE,
    # log(1 + ReLU) of the highest logit over a text's tokens (SPLADE-max, Formal et al. 2021, SPLADE v2).
    pooling="max",
    normalize=False,
    max_length=256,
    similarity=DOT,
    parameters="23 M parameters, 91 MB",
    trained_only=True,
    defaults={
        "learning_rate": Default(2e-5, "SPLADE's, which also trains a BERT; not swept."),
        "batch_size": Default(32, "The head doubles the work of a step, so half of the dense MiniLM's."),
        "epochs": Default(1, "It starts from a trained encoder: one pass moves it, more of them cost minutes each."),
        "max_length": Default(256, "The model's own limit, as its authors trained it; SPLADE's as well."),
        "scale": Default(1.0, "SPLADE compares dot products as they are."),
    },
    **MINILM,
)
