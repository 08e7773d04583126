"""The manifest that a synthesis job opens its query set with."""

from __future__ import annotations

from collections.abc import Mapping

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.worker import Job
from cdp.base.workspace import sha256_text, slug
from cdp.corpus import CorpusManifest
from cdp.query_sets.store import known_language
from cdp.synthesis.methods import Method

KEPT_SETTINGS = ("prompt", "examples", "source", "sampling_temperature")
"""Of the configuration, kept with the query set where they are set."""


def open_query_set(
    job: Job,
    config: SynthesisConfig,
    method: Method,
    corpus: CorpusManifest,
    *,
    generator: str,
    model: str,
    parameters: Mapping[str, object],
) -> str:
    """Write the manifest of the job's query set, unless an earlier attempt did; returns its id."""
    name = query_set_id(job.id, config)
    if query_sets.exists(job.workspace, name):
        return name
    settings = {**parameters, "max_document_tokens": config.max_document_tokens, "limit": config.limit}
    if config.limit is not None and config.draw is not None:
        settings["draw"] = config.draw
    query_sets.create(
        job.workspace,
        query_sets.QuerySet(
            id=name,
            name=query_set_name(config, corpus.name),
            corpus_id=corpus.id,
            corpus_hash=corpus.content_hash,
            kind="synthetic",
            method=config.method,
            generator=generator,
            model=model,
            per_doc=config.per_doc,
            prompt_hash=method.prompt_hash,
            language=known_language(corpus),
            parameters=settings | {key: value for key in KEPT_SETTINGS if (value := getattr(config, key))},
            job_id=job.id,
        ),
    )
    return name


def query_set_id(job_id: str, config: SynthesisConfig) -> str:
    """The id of the set that a job writes: the same in every attempt, known before the job starts."""
    name = config.name or f"{config.corpus}-{config.method}-{config.per_doc}"
    return f"{slug(name)}-{sha256_text(job_id)[:8]}"


def query_set_name(config: SynthesisConfig, corpus_name: str) -> str:
    return config.name or f"{corpus_name} · {config.method} × {config.per_doc}"
