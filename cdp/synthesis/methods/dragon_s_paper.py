"""DRAGON-S as the paper describes its own variant: sentences cropped from a document, kept by a cross-encoder."""

from __future__ import annotations

from cdp.synthesis.methods.base import Method

NOTE = (
    "Published DRAGON-S scores 46.8 on BEIR, the paper's own variant 7.83: the two are different methods under one "
    "name. dragon_s_paper follows the paper's description, dragon_s_faithful the published method."
)

METHOD = Method(
    name="dragon_s_paper",
    title="DRAGON-S, as in the paper",
    help="No LLM: the sentences of a document are its queries, those kept that a cross-encoder scores highest.",
    template="",
    kind="no LLM",
    order=70,
    generator="cropping",
    note=NOTE,
)
