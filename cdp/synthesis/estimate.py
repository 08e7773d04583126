"""Tokens, price and time of a synthesis run, before it starts.

Input tokens are measured on a sample of the corpus' rendered prompts (``cdp.llm.tokens`` says how well); output tokens
come from the answers to a preview where there was one, else from a typical query's length.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import get_documents, load_documents, load_manifest
from cdp.llm.answers import Usage
from cdp.llm.prices import Price, load_price, price_file
from cdp.llm.tokens import cut, estimate_tokens
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.grouping import Group, documents_of
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.work import Work

SAMPLE = 200
Z_95 = 1.96


@dataclass(frozen=True)
class Estimate:
    """What is to be expected. Tokens are totals over the corpus; ``input_margin`` is the half-width of their 95%
    interval from sampling. ``cost`` and ``batch_cost`` are None where the model has no price; ``seconds`` is None
    without a measured latency.
    """

    n_documents: int
    requests: int
    input_tokens: int
    input_margin: int
    output_tokens: int
    sampled: int
    price: Price | None
    cost: float | None
    batch_cost: float | None
    seconds: float | None


def estimate(
    workspace: Workspace,
    config: SynthesisConfig,
    *,
    tokens_per_query: float | None = None,
    latency_s: float | None = None,
    sample: int = SAMPLE,
    prices: Path | None = None,
) -> Estimate:
    """The expected tokens, price and time of a run.

    ``tokens_per_query`` of output and ``latency_s`` of one request are better measured in a preview; without it, the
    method's typical query is assumed, without a time. A generator that is no LLM needs no tokens and costs nothing,
    a local model costs nothing by the table.
    """
    corpus = load_manifest(workspace, config.corpus)
    method = method_of(config)
    work = Work.of(workspace, config, method, corpus)
    n = work.documents
    generator = GENERATORS[config.generator]
    if method.generator or not generator.is_llm:
        return Estimate(n, 0, 0, 0, 0, 0, None, 0.0, 0.0, None)
    n_queries, chosen = _sample(workspace, config, work, sample)
    limit = min(config.max_document_tokens, method.max_document_tokens or config.max_document_tokens)
    asked: Sequence[tuple[Document, Sequence[str]]] = chosen
    if method.joint:  # each document is in one prompt, so any groups of the sample are as long as the real ones
        n = -(-n // config.together)
        n_queries = n * config.per_doc
        groups = [chosen[at : at + config.together] for at in range(0, len(chosen), config.together)]
        asked = [(Group.of([document for document, _ in group]), ()) for group in groups]
    lengths = [prompt_tokens(method, document, limit, config.per_doc, queries) for document, queries in asked]
    if not lengths:
        return Estimate(n, 0, 0, 0, 0, 0, None, 0.0, 0.0, None)
    mean = sum(lengths) / len(lengths)
    variance = sum((length - mean) ** 2 for length in lengths) / max(1, len(lengths) - 1)
    margin = 0.0 if len(lengths) == n else Z_95 * math.sqrt(variance / len(lengths)) * n
    usage = expected_usage(method, mean, n, n_queries, tokens_per_query)
    price = None if generator.local else load_price(config.model_name, prices or price_file(workspace))
    cost = price.cost(usage) if price else 0.0 if generator.local else None
    return Estimate(
        n_documents=work.documents,
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        input_margin=round(margin),
        output_tokens=usage.output_tokens,
        sampled=len(chosen),
        price=price,
        cost=cost,
        batch_cost=cost * (1 - price.batch_discount) if price and cost is not None else None,
        seconds=usage.requests * latency_s / config.concurrency if latency_s is not None else None,
    )


def expected_usage(
    method: Method, prompt_tokens_each: float, documents: int, queries: int, per_query: float | None = None
) -> Usage:
    """Tokens and requests for ``queries`` of so many documents, ``prompt_tokens_each`` of input about each of them.
    ``per_query`` of output as measured; without it, the method's typical query."""
    written = method.tokens_per_query if per_query is None else per_query
    requests = queries if method.one_per_call else documents
    return Usage(round(prompt_tokens_each * documents), round(queries * written), requests)


def _sample(
    workspace: Workspace, config: SynthesisConfig, work: Work, size: int
) -> tuple[int, list[tuple[Document, Sequence[str]]]]:
    """How many queries the job will have, and some of its documents with the queries it is to work from."""
    draw = random.Random(config.seed)
    if not work.source:
        ids = load_documents(workspace, work.corpus_id, columns=["id"], limit=work.positions).column("id")
        candidates = range(work.positions) if work.drawn is None else sorted(work.drawn)
        positions = sorted(draw.sample(candidates, min(size, work.documents)))
        documents = get_documents(workspace, work.corpus_id, [ids[position].as_py() for position in positions])
        return work.documents * config.per_doc, [(document, ()) for document in documents.values()]
    n_queries, queries_of = 0, {}
    chosen = set(draw.sample(range(work.documents), min(size, work.documents)))
    lines = (line for line in query_sets.iter_lines(workspace, work.source) if work.takes(line["position"]))
    for number, line in enumerate(lines):
        n_queries += len(line["queries"][: config.per_doc])
        if number in chosen:
            queries_of[line["document_id"]] = line["queries"][: config.per_doc]
    documents = get_documents(workspace, work.corpus_id, list(queries_of))
    return n_queries, [(document, queries_of[name]) for name, document in documents.items()]


def prompt_tokens(method: Method, document: Document, limit: int, m: int, queries: Sequence[str]) -> int:
    """Input tokens of all requests about one document, or one group of them."""
    texts = [cut(one.content, limit).text for one in documents_of(document)]
    if method.from_queries:
        return sum(estimate_tokens(method.render(texts, m, query)) for query in queries)
    return (m if method.one_per_call else 1) * estimate_tokens(method.render(texts, m))
