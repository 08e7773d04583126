"""What can be cleared away in a workspace, and what of it goes unless something else is named."""

from __future__ import annotations

PRUNABLE = {
    "leftovers": "what killed imports, uploads, jobs and downloads left behind, and the catalogue before its rebuild",
    "checkpoints": "checkpoints of trainings and other jobs that have finished; their models and results stay",
    "embeddings": "embeddings of benchmarks and corpora; they are computed anew when needed",
    "llm_cache": "answers of language models, kept so that nothing is paid twice; the query sets stay",
}
"""What can be cleared away, with what it is."""

BY_DEFAULT = ("leftovers", "checkpoints", "embeddings")
"""Answers of language models were paid for: they go only when they are named."""
