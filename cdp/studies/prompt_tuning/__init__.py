"""Which prompt to use: every candidate tried on the same sample of documents, measured, and held against a target.

The paper's Algorithm 1. A worker (``cdp.workers.prompt_tuning``) writes queries with each candidate and
measures them with the measures of ``cdp.metrics``; ``choice`` is the pure part: how far a candidate is from the target
and which one is chosen. This room lies above synthesis and metrics, which know nothing of each other.
"""

from __future__ import annotations

from cdp.studies.prompt_tuning.candidates import PromptCandidate, candidates_of, sample_documents
from cdp.studies.prompt_tuning.choice import LINE, Choice, Standing, Tried, choose, distance, standing

__all__ = [
    "LINE",
    "Choice",
    "PromptCandidate",
    "Standing",
    "Tried",
    "candidates_of",
    "choose",
    "distance",
    "sample_documents",
    "standing",
]
