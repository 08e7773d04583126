"""Queries for documents: a preview of one document, a run over the corpus, import of what exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cdp import corpus as corpus_room
from cdp import jobs
from cdp.complexity import count_content_words
from cdp.config import SynthesisConfig
from cdp.metrics import self_bleu
from cdp.services import corpora
from cdp.synthesis import query_sets
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import GENERATORS, make_generator
from cdp.synthesis.methods import METHODS, Method, get_method
from cdp.synthesis.query_sets import QuerySet
from cdp.workspace import Workspace

WORKER = "cdp.synthesis.worker"
KEY_VARIABLE = "CDP_API_KEY"


@dataclass(frozen=True)
class Preview:
    """The queries that one method gives for one document, and what they look like.

    ``self_bleu`` is None for fewer than two queries. ``problems`` are sentences on what was wrong with the answer.
    """

    method: str
    queries: list[str]
    cw: list[int]
    self_bleu: float | None
    problems: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    prompt: str = ""


def methods() -> list[Method]:
    """The synthesis methods, in the order in which they are shown."""
    return list(METHODS.values())


def generators() -> dict[str, str]:
    """The generators and what each is."""
    return dict(GENERATORS)


def preview(
    workspace: Workspace,
    corpus: str,
    document_id: str,
    *,
    methods: Sequence[str] = ("diverse", "paraphrase"),
    per_doc: int = 5,
    generator: str = "template",
    api_key: str = "",
    **settings: Any,
) -> dict[str, Preview]:
    """The queries of each method for one document, without storing anything.

    ``settings`` are further fields of SynthesisConfig (model, base_url, temperature …).
    """
    manifest = corpus_room.resolve_corpus(workspace, corpus)
    config = SynthesisConfig.from_dict(
        {**settings, "corpus": manifest.id, "per_doc": per_doc, "generator": generator, "method": methods[0]}
    )
    document = corpora.document(workspace, manifest.id, document_id)
    source = make_generator(config, api_key=api_key)
    language = corpora.cw_language(manifest)
    found: dict[str, Preview] = {}
    for name in methods:
        method = get_method(name, config.prompt)
        generation = generate_for(document, method, per_doc, source, max_document_tokens=config.max_document_tokens)
        queries = list(generation.queries)
        found[name] = Preview(
            method=name,
            queries=queries,
            cw=count_content_words(queries, language).tolist() if queries else [],
            self_bleu=self_bleu(queries) if len(queries) > 1 else None,
            problems=[f"{kind.replace('_', ' ')}: {n}" for kind, n in generation.problems.items()],
            usage=generation.usage.to_dict(),
            prompt=method.render(document.content, per_doc) if source.is_llm else "",
        )
    return found


def generate(workspace: Workspace, config: SynthesisConfig, *, api_key: str = "") -> str:
    """Start writing queries for a corpus; the job's id. The key travels in the worker's environment only."""
    manifest = corpus_room.resolve_corpus(workspace, config.corpus)
    method = get_method(config.method, config.prompt)
    name = config.name or f"{manifest.name} {method.name} {config.per_doc}"
    checked = SynthesisConfig.from_dict({**config.to_dict(), "corpus": manifest.id, "name": name})
    make_generator(checked, api_key=api_key)
    return jobs.submit(
        workspace,
        kind="synthesis",
        name=name,
        module=WORKER,
        config=checked.to_dict(),
        inputs={"corpus": manifest.id, "corpus_hash": manifest.content_hash, "prompt_hash": method.prompt_hash},
        env_secrets={KEY_VARIABLE: api_key} if api_key else None,
    )


def import_file(workspace: Workspace, path: str | Path, corpus: str, *, name: str = "") -> query_sets.ImportedQueries:
    """Import queries that exist: JSONL, CSV, TSV, or a BEIR folder whose qrels lead to the corpus's documents."""
    manifest = corpus_room.resolve_corpus(workspace, corpus)
    return query_sets.import_queries(Path(path).expanduser(), workspace, manifest.id, name=name)


def every(workspace: Workspace, *, corpus: str = "") -> list[QuerySet]:
    """All query sets, newest first; only those of one corpus if it is named."""
    found = query_sets.list_query_sets(workspace)
    return [q for q in found if not corpus or q.corpus_id == corpus]


def show(workspace: Workspace, query_set: str) -> QuerySet:
    """The query set of that id, name or unique beginning."""
    return query_sets.resolve_query_set(workspace, query_set)


def page(workspace: Workspace, query_set: str, offset: int = 0, limit: int = 20) -> list[tuple[str, list[str]]]:
    """Documents and their queries, ``limit`` of them from the one at ``offset``."""
    found = query_sets.resolve_query_set(workspace, query_set)
    lines = islice(query_sets.iter_lines(workspace, found.id), offset, offset + limit)
    return [(line["document_id"], line["queries"]) for line in lines]


def delete(workspace: Workspace, query_set: str) -> None:
    """Remove a query set. What was trained on it stays."""
    query_sets.delete(workspace, query_sets.resolve_query_set(workspace, query_set).id)
