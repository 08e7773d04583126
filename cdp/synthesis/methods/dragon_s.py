"""DRAGON-S twice: as the paper describes its own variant, and as published (Lin et al., 2023)."""

from __future__ import annotations

from cdp.synthesis.methods import Method

NOTE = (
    "Published DRAGON-S scores 46.8 on BEIR, the paper's own variant 7.83: the two are different methods under one "
    "name. dragon_s_paper follows the paper's description, dragon_s_faithful the published method."
)

AS_IN_PAPER = Method(
    name="dragon_s_paper",
    title="DRAGON-S, as in the paper",
    help="No LLM: the sentences of a document are its queries, those kept that a cross-encoder scores highest.",
    template="",
    kind="no LLM",
    order=70,
    generator="cropping",
    note=NOTE,
)

AS_PUBLISHED = Method(
    name="dragon_s_faithful",
    title="DRAGON-S, as published",
    help="No LLM, no cross-encoder: teachers in sequence rank the corpus for every sentence; ranks 1 to 10 are its "
    "positives, 46 to 50 its hard negatives.",
    template="",
    kind="no LLM",
    order=71,
    generator="ranking",
    note=NOTE,
)
