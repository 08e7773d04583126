"""RetroMAE: BERT base, pre-trained as a masked auto-encoder of the CLS vector."""

from __future__ import annotations

from cdp.retrievers.presets import DOT_AS_PUBLISHED, PAPER_TRAINING, Default, Retriever

PRESET = Retriever(
    name="retromae",
    order=40,
    title="RetroMAE",
    help="BERT base pre-trained for retrieval. CLS pooling: a library's default of mean pooling is wrong for it.",
    source="Shitao/RetroMAE",
    architecture="transformer",
    # RetroMAE pre-trains the CLS vector; the mean, a library's default, is wrong for it.
    pooling="cls",
    normalize=False,
    max_length=512,
    similarity=DOT_AS_PUBLISHED,
    parameters="110 M parameters, 440 MB",
    licence="The authors' repository states no licence: ask them before you pass a trained model on.",
    licence_id="unknown",
    defaults={
        "learning_rate": Default(5e-6, "The paper's choice for RetroMAE, from its sweep over 2e-7 to 1e-5."),
        **PAPER_TRAINING,
        "max_length": Default(512, "The longest input of BERT."),
    },
    pickled=True,
    languages=("en",),
)
