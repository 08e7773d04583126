"""minilm-multi: the token vectors of all-MiniLM-L6-v2, compared by MaxSim (late interaction, as ColBERT)."""

from __future__ import annotations

from cdp.retrievers.presets import MAXSIM, MINILM, MULTI_VECTOR, Default, Retriever

PRESET = Retriever(
    name="minilm-multi",
    order=25,
    title="minilm-multi (late interaction)",
    help="One vector for each token of all-MiniLM-L6-v2. Shows which words matched; its index holds as many vectors "
    "for a text as it has tokens. Comes with the installation.",
    architecture="transformer",
    kind=MULTI_VECTOR,
    # Each token has its own vector, made unit length (Khattab and Zaharia 2020): nothing is pooled.
    pooling="none",
    normalize=True,
    max_length=256,
    similarity=MAXSIM,
    parameters="23 M parameters, 91 MB",
    projection=128,
    defaults={
        "learning_rate": Default(2e-5, "As for the dense MiniLM, whose encoder it is; not swept."),
        "batch_size": Default(32, "Each query is compared with every token of all documents of the batch."),
        "epochs": Default(1, "It starts from a trained encoder: one pass moves it, more of them cost minutes each."),
        "max_length": Default(256, "The model's own limit, as its authors trained it."),
        "scale": Default(1.0, "MaxSim adds up a cosine for each token of the query; ColBERT divides it by nothing."),
    },
    **MINILM,
)
