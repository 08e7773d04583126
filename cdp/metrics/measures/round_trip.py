"""Round-trip rank as a measure of a query set; ranks are looked for by ``cdp.evaluation.round_trip``."""

from __future__ import annotations

from cdp.metrics.measures import Measure

MEASURE = Measure(
    name="round_trip",
    order=80,
    title="Round trip@10",
    better="higher",
    low=0.0,
    high=1.0,
    help="Share of the queries that find the document they were written for among the first ten of its corpus, by BM25 "
    "or a retriever.",
    needs="the corpus, BM25 or a retriever",
    model_based=True,
)
