"""What a synthesis run will cost and how long it will take, before it starts; and what it did cost.

Prices stand in ``data/prices/prices.json``, with their date, for everyone to edit. Input tokens are measured on a
sample of the corpus' rendered prompts (see ``tokens`` for how well); output tokens come from the answers to a preview
where there was one, else from a typical query's length.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

from cdp.config import SynthesisConfig
from cdp.corpus import get_documents, load_documents, load_manifest
from cdp.errors import WorkspaceError
from cdp.synthesis.generators import Usage
from cdp.synthesis.methods import method_of
from cdp.synthesis.tokens import cut, estimate_tokens
from cdp.workspace import SHIPPED_DATA, Workspace, read_json

PRICES = SHIPPED_DATA / "prices" / "prices.json"
SAMPLE = 200
TOKENS_PER_QUERY = 18.0
"""Of a numbered line with one query: a demo query of about 11 English words."""

Z_95 = 1.96


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; ``batch_discount`` is the share that the provider's batch endpoint saves."""

    input: float
    output: float
    batch_discount: float
    as_of: str

    def cost(self, usage: Usage) -> float:
        """US dollars for what was used."""
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6


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


def price_file(workspace: Workspace) -> Path:
    """The price table in use: the workspace's own, once it was edited, else the one that comes with the program."""
    own = workspace.root / "prices.json"
    return own if own.exists() else PRICES


def load_price(model: str, path: Path | None = None) -> Price | None:
    """The price of a model, by its name or by the longest priced name that it extends with a date; None if unpriced."""
    path = path or PRICES
    table = read_json(path)
    try:
        models = table["models"]
        name = max((known for known in models if model == known or _dated(model, known)), key=len, default=None)
        if name is None:
            return None
        entry = models[name]
        return Price(
            float(entry["input"]), float(entry["output"]), float(entry.get("batch_discount", 0.0)), str(table["as_of"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WorkspaceError(f"The price table {path.name} is damaged near {error}.", hint="See its note.") from error


def _dated(model: str, known: str) -> bool:
    """Whether ``model`` is ``known`` with a release date, as in gpt-4o-mini-2024-07-18."""
    rest = model.removeprefix(known)
    return rest != model and rest.startswith("-") and rest[1:].replace("-", "").isdigit()


def estimate(
    workspace: Workspace,
    config: SynthesisConfig,
    *,
    tokens_per_query: float = TOKENS_PER_QUERY,
    latency_s: float | None = None,
    sample: int = SAMPLE,
    prices: Path | None = None,
) -> Estimate:
    """The expected tokens, price and time of a run. ``latency_s`` is the measured time of one request.

    A generator that is no LLM needs no tokens and costs nothing.
    """
    corpus = load_manifest(workspace, config.corpus)
    n = min(config.limit or corpus.n_documents, corpus.n_documents)
    method = method_of(config)
    if config.generator != "openai":
        return Estimate(n, 0, 0, 0, 0, 0, None, 0.0, 0.0, None)
    ids = load_documents(workspace, corpus.id, columns=["id"], limit=n).column("id")
    places = sorted(random.Random(config.seed).sample(range(n), min(sample, n)))
    documents = get_documents(workspace, corpus.id, [ids[place].as_py() for place in places])
    limit = min(config.max_document_tokens, method.max_document_tokens or config.max_document_tokens)
    calls = config.per_doc if method.one_per_call else 1
    lengths = [
        calls * estimate_tokens(method.render(cut(document.content, limit).text, config.per_doc))
        for document in documents.values()
    ]
    mean = sum(lengths) / len(lengths)
    variance = sum((length - mean) ** 2 for length in lengths) / max(1, len(lengths) - 1)
    margin = 0.0 if len(lengths) == n else Z_95 * math.sqrt(variance / len(lengths)) * n
    usage = Usage(round(mean * n), round(n * config.per_doc * tokens_per_query), n * calls)
    price = load_price(config.model_name, prices or price_file(workspace))
    cost = price.cost(usage) if price else None
    return Estimate(
        n_documents=n,
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        input_margin=round(margin),
        output_tokens=usage.output_tokens,
        sampled=len(lengths),
        price=price,
        cost=cost,
        batch_cost=cost * (1 - price.batch_discount) if price and cost is not None else None,
        seconds=usage.requests * latency_s / config.concurrency if latency_s is not None else None,
    )
