"""Tokens and price of a synthesis run before it starts; the bill of a job.

Input tokens are measured on a sample of the corpus' rendered prompts (``cdp.llm.prices`` says how well); output tokens
come from the length of a method's typical query.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.records import JOB_FACTS, Count, Document, Real, fields, whole
from cdp.base.text import counted, cut_to_tokens, estimate_tokens
from cdp.base.workspace import ANSWERS, Workspace
from cdp.corpus import load_manifest, open_corpus, resolve_corpus
from cdp.llm import address
from cdp.llm.answers import Usage
from cdp.llm.prices import Price, load_price
from cdp.llm.prices import dollars as dollars
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.work import Group, Work, documents_of

SAMPLE = 200
Z_95 = 1.96


@dataclass(frozen=True)
class Estimate:
    """What is to be expected. Tokens are totals over the corpus; ``input_margin`` is the half-width of their 95%
    interval from sampling. ``cost`` and ``batch_cost`` are None where the model has no price.
    """

    n_documents: int
    requests: int = 0
    input_tokens: int = 0
    input_margin: int = 0
    output_tokens: int = 0
    sampled: int = 0
    price: Price | None = None
    cost: float | None = None
    batch_cost: float | None = None


def sampled_estimate(workspace: Workspace, config: SynthesisConfig) -> Estimate:
    """Return the expected tokens and price of a run.

    A generator that is no LLM needs no tokens and costs nothing, a local model costs nothing by the table.
    """
    corpus = load_manifest(workspace, config.corpus)
    method = method_of(config)
    work = Work.of(workspace, config, method, corpus)
    n = work.documents
    nothing = Estimate(n, cost=0.0, batch_cost=0.0)

    generator = GENERATORS[config.endpoint.generator]
    if method.generator or not generator.is_llm:
        return nothing

    n_queries, chosen = _sample(workspace, config, work)
    if not chosen:
        return nothing

    asked = chosen
    if method.joint:  # each document is in one prompt, so any pairs of the sample are as long as the real ones
        n = -(-n // 2)
        n_queries = n * config.per_doc
        documents = [document for document, _ in chosen]
        asked = [(Group.of(documents[at : at + 2]), ()) for at in range(0, len(documents), 2)]

    limit = method.document_tokens(config.endpoint.max_document_tokens)
    lengths = [prompt_tokens(method, document, limit, config.per_doc, queries) for document, queries in asked]
    mean = statistics.fmean(lengths)
    n_requests = n
    if method.one_per_call:
        n_requests = n_queries

    usage = Usage(round(mean * n), round(n_queries * method.tokens_per_query), n_requests)
    found = Estimate(
        n_documents=work.documents,
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        input_margin=round(n * _margin(lengths, n)),
        output_tokens=usage.output_tokens,
        sampled=len(chosen),
    )

    if generator.local:
        return replace(found, cost=0.0)

    price = load_price(config.endpoint.model_name, workspace)
    if price is None:
        return found

    cost = price.cost(usage)
    return replace(found, price=price, cost=cost, batch_cost=cost * (1 - price.batch_discount))


def _margin(lengths: Sequence[int], n: int) -> float:
    """The half-width of the 95% interval of the mean length of ``n`` prompts, from a sample of them."""
    if len(lengths) in (1, n):
        return 0.0
    return Z_95 * statistics.stdev(lengths) / math.sqrt(len(lengths))


def _sample(
    workspace: Workspace, config: SynthesisConfig, work: Work
) -> tuple[int, list[tuple[Document, Sequence[str]]]]:
    """How many queries the job will have, and some of its documents with the queries it is to work from."""
    draw = random.Random(config.seed)
    size = min(SAMPLE, work.documents)

    if not work.source:
        ids = open_corpus(workspace, work.corpus_id).table(columns=["id"], limit=work.positions).column("id")
        candidates = range(work.positions) if work.drawn is None else sorted(work.drawn)
        positions = sorted(draw.sample(candidates, size))
        documents = open_corpus(workspace, work.corpus_id).get([ids[position].as_py() for position in positions])
        return work.documents * config.per_doc, [(document, ()) for document in documents.values()]

    n_queries = number = 0
    queries_of: dict[str, Sequence[str]] = {}
    chosen = set(draw.sample(range(work.documents), size))
    for line in query_sets.iter_lines(workspace, work.source):
        if not work.takes(line["position"]):
            continue

        queries = line["queries"][: config.per_doc]
        n_queries += len(queries)
        if number in chosen:
            queries_of[line["document_id"]] = queries
        number += 1

    documents = open_corpus(workspace, work.corpus_id).get(list(queries_of))
    return n_queries, [(document, queries_of[name]) for name, document in documents.items()]


def prompt_tokens(method: Method, document: Document, limit: int, m: int, queries: Sequence[str]) -> int:
    """Input tokens of all requests about one document, or one group of them."""
    texts = [cut_to_tokens(one.content, limit) for one in documents_of(document)]
    return sum(estimate_tokens(prompt) for prompt, _, _ in method.requests(texts, m, queries))


@dataclass(frozen=True)
class Bill:
    """What writing a query set has cost so far, in US dollars, and what was expected; None without a price."""

    expected: float | None
    cost: float | None
    usage: Usage
    price_as_of: str = ""

    @property
    def told(self) -> str:
        """The cost in a sentence."""
        tokens = f"{self.usage.input_tokens:,} input and {self.usage.output_tokens:,} output tokens"
        if self.price_as_of:
            tokens += f", by prices as of {self.price_as_of}"

        return f"Cost: {dollars(self.cost)} for {tokens}. Expected: {dollars(self.expected)}."

    @property
    def unanswered(self) -> str:
        """A sentence on requests that may have been charged for without an answer; empty for none."""
        n = self.usage.unanswered
        if not n:
            return ""
        return (
            f"{counted(n, 'request')} got no answer (connection lost, time-out, stopped or killed). The endpoint may "
            "charge for them: the cost counts them at their expected price."
        )


def resolved(workspace: Workspace, config: SynthesisConfig) -> SynthesisConfig:
    """Return ``config`` with the ids of its corpus and source."""
    manifest = resolve_corpus(workspace, config.corpus)
    source = config.source
    if source:
        source = query_sets.resolve_query_set(workspace, source).id

    if (config.corpus, config.source) == (manifest.id, source):
        return config
    return config.replace(corpus=manifest.id, source=source)


def estimate(workspace: Workspace, config: SynthesisConfig) -> Estimate:
    """Return the expected tokens and price, kept until the price changes (a page asks at every click).

    ConfigError for a malformed address of an endpoint, as from the job itself.
    """
    if GENERATORS[config.endpoint.generator].endpoint:
        address.address(config.endpoint.base_url)
    config = resolved(workspace, config)
    question = ("estimate", config, load_price(config.endpoint.model_name, workspace))
    return ANSWERS.get(workspace.corpora / config.corpus, question, lambda: sampled_estimate(workspace, config))


_SPENT = fields(spent=dict[str, Count], cost=Real | None, price_as_of=str | None)


def bill_of_job(workspace: Workspace, job: str) -> Bill | None:
    """Return the cost so far of a job that writes queries; None before its first attempt ends, and without an LLM."""
    spec = whole(JOB_FACTS, workspace.job(job) / "spec.json") or {}
    if spec.get("kind") != "synthesis":
        return None
    result = whole(_SPENT, workspace.job(job) / "results" / "synthesis.json")
    generator = GENERATORS.get(spec.get("config", {}).get("generator", ""))
    if result is None or generator is None or not generator.endpoint:
        return None
    expected = spec.get("inputs", {}).get("estimate") or {}
    usage = Usage(**{name: n for name, n in result.get("spent", {}).items() if name in Usage.__dataclass_fields__})
    return Bill(expected.get("cost"), result.get("cost"), usage, result.get("price_as_of") or "")
