"""RI, the reasoning intensity of a query, alone and times CW. The loss multiplies RI in while training."""

from __future__ import annotations

from cdp.training.weightings import Weighting, equal
from cdp.training.weightings.content_words import capped_content_words

RI = Weighting(
    "ri",
    "Reasoning intensity (RI)",
    "A pair counts by how much easier its query gets for the model once it is thought through: the loss of q "
    "over the loss of its reasoned form q′, at most 5.",
    equal,
    needs="reasoning",
    settings=("reasoning", "ri_kappa"),
    paper="RI",
    order=30,
)

RI_CW = Weighting(
    "ri-cw",
    "RI × CW",
    "The product of both.",
    capped_content_words,
    needs="reasoning",
    settings=("kappa", "reasoning", "ri_kappa"),
    paper="RIxCW",
    order=40,
)
