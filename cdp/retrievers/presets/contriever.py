"""Contriever: BERT base, pre-trained without supervision; mean pooling, not normalised."""

from __future__ import annotations

from cdp.retrievers.presets import DOT_AS_PUBLISHED, PAPER_TRAINING, Default, Retriever

PRESET = Retriever(
    name="contriever",
    order=30,
    title="Contriever (unsupervised)",
    help="BERT base trained on unlabelled text. One of the paper's three retrievers.",
    source="facebook/contriever",
    architecture="transformer",
    # The mean of all token vectors, as its authors trained and evaluate it.
    pooling="mean",
    normalize=False,
    max_length=512,
    similarity=DOT_AS_PUBLISHED,
    parameters="110 M parameters, 440 MB",
    licence="CC BY-NC 4.0: not for commercial use, and neither is a model trained from it.",
    licence_id="cc-by-nc-4.0",
    defaults={
        "learning_rate": Default(2e-6, "The paper's choice for Contriever, from its sweep over 2e-7 to 1e-5."),
        **PAPER_TRAINING,
        "max_length": Default(512, "The longest input of BERT; the authors evaluate at 512 too."),
    },
    pickled=True,
    languages=("en",),
)
