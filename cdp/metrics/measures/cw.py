"""CW as a measure of a query set; what a content word is, is ``cdp.complexity``'s business."""

from __future__ import annotations

from cdp.metrics.measures import Measure

MEASURE = Measure(
    name="cw",
    order=70,
    title="CW",
    better="",
    low=0.0,
    high=float("inf"),
    help="Content words per query: distinct words longer than one character that are not stopwords.",
)
