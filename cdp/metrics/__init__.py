"""How good and how diverse synthetic queries are: Dist-Sim, Len-Sim, CE and Self-BLEU, one file per measure.

A measure's function takes texts and returns a number; ``measure_query_set`` takes a whole set. Measures that need a
model take it as a callable; ``cdp.metrics.scorers`` loads real ones, and ``cdp.workers.metrics`` runs them over a query
set as a job. Importing this room loads no torch.
"""

from __future__ import annotations

from cdp.metrics.measures import MEASURES, Measure
from cdp.metrics.measures.dist_sim import dist_sim
from cdp.metrics.measures.embedding_diversity import embedding_diversity
from cdp.metrics.measures.len_sim import len_sim
from cdp.metrics.measures.paraphrase_ratio import paraphrase_ratio
from cdp.metrics.measures.self_bleu import self_bleu
from cdp.metrics.query_set import (
    MetricValue,
    PairedDifference,
    measure_query_set,
    paired_difference,
)

__all__ = [
    "MEASURES", "Measure", "MetricValue", "PairedDifference", "dist_sim", "embedding_diversity", "len_sim",
    "measure_query_set", "paired_difference", "paraphrase_ratio", "self_bleu",
]  # fmt: skip
