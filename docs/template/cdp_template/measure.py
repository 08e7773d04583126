"""A measure of query sets: of_document takes one document's queries and its human ones. See cdp.metrics.measures."""

from cdp.metrics import Measure

MEASURE = Measure(
    "shouted",
    "Shouted",
    "Share of the queries that end with an exclamation mark.",
    "lower",
    0.0,
    1.0,
    of_document=lambda queries, human: sum(query.endswith("!") for query in queries) / len(queries),
)
