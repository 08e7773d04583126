"""static-minilm: one vector per token, averaged; no layers. Trains on thousands of pairs in seconds on a CPU."""

from __future__ import annotations

from cdp.retrievers.presets import COSINE, MINILM, SCALE, Default, Retriever

PRESET = Retriever(
    name="static-minilm",
    order=10,
    title="static-minilm",
    help="The word-embedding matrix of all-MiniLM-L6-v2, averaged over a text's tokens. Made for trying things out: "
    "it trains in seconds on a CPU and its gains are real, but it ignores word order.",
    architecture="static",
    # The mean is all there is: each token has one vector, independent of its context.
    pooling="mean",
    normalize=False,
    max_length=None,
    similarity=COSINE,
    parameters="12 M parameters, 47 MB",
    defaults={
        "learning_rate": Default(5e-3, "A table of token vectors has no layers to disturb and takes large steps."),
        "batch_size": Default(128, "More negatives per query; the cost per pair does not grow with the batch."),
        "epochs": Default(3, "Gains flatten after three passes over a few thousand pairs."),
        "max_length": Default(None, "Averaging takes any length; nothing is cut."),
        "scale": SCALE,
    },
    **MINILM,
)
