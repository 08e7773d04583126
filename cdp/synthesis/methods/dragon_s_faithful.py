"""DRAGON-S as published (Lin et al., 2023): each sentence is a query, which teachers label in sequence."""

from __future__ import annotations

from cdp.synthesis.methods.base import Method
from cdp.synthesis.methods.dragon_s_paper import NOTE

METHOD = Method(
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
