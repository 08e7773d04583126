"""Queries for texts in memory: for scripts and notebooks.

A corpus of thousands is a job (``cdp queries generate``), which resumes, never pays twice, and keeps apart what failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Document
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import method_of


def generate(
    documents: Sequence[str | Document],
    *,
    method: str = "diverse",
    per_doc: int = 5,
    generator: str = "template",
    api_key: str = "",
    **settings: Any,
) -> list[list[str]]:
    """Queries for each document, in the documents' order: at most ``per_doc``, fewer where an answer held no more.

    ``documents`` are texts or records. ``method`` and ``generator`` are names in the registries; ``template`` needs no
    LLM. ``settings`` are further ones of ``SynthesisConfig``: ``model``, ``base_url``, ``temperature`` … The key is
    else ``CDP_API_KEY`` or ``OPENAI_API_KEY``. ConfigError for settings that do not fit, InputError for a text that is
    empty, ProviderError where a request failed for good: nothing is left out silently.
    """
    if isinstance(documents, str):
        raise InputError("This is one text; a list of texts is needed.")
    records = [item if isinstance(item, Document) else Document(str(i), item) for i, item in enumerate(documents)]
    for i, record in enumerate(records):
        if not record.content.strip():
            raise InputError(f"Document {i} is empty.")
    config = SynthesisConfig.from_dict(
        {"corpus": "texts", "method": method, "per_doc": per_doc, "generator": generator, **settings}
    )
    chosen = method_of(config)
    if chosen.generator == "ranking" or chosen.from_queries:
        needs = "ranks a whole corpus" if chosen.generator else "works from existing queries"
        raise ConfigError(f"{chosen.title} {needs}, so it cannot write queries for texts alone.")
    source = make_generator(config, api_key=api_key)
    source.prepare()

    def queries_of(record: Document) -> list[str]:
        generation = generate_for(record, chosen, per_doc, source, max_document_tokens=config.max_document_tokens)
        return list(generation.queries)

    if source.concurrency == 1 or not source.is_llm:
        return [queries_of(record) for record in records]
    with ThreadPoolExecutor(source.concurrency) as pool:
        try:
            return list(pool.map(queries_of, records))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            source.cancel()
            raise
