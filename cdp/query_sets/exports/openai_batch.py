"""OpenAI Batch: not the queries but the requests that write them. ``cdp.synthesis.batch`` makes the file."""

from __future__ import annotations

from cdp.query_sets.exports.base import Export

EXPORT = Export(
    "openai-batch",
    "OpenAI Batch",
    "The requests that write this set, for the Batch API or vllm run-batch.",
    "-batch",
    order=40,
)
