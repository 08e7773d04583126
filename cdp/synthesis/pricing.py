"""What a synthesis run will cost and how long it will take, before it starts; and what it did cost.

Prices stand in ``data/prices/prices.json``, with their date, for everyone to edit. Input tokens are measured on a
sample of the corpus' rendered prompts (see ``tokens`` for how well); output tokens come from the answers to a preview
where there was one, else from a typical query's length.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, WorkspaceError
from cdp.base.records import Document
from cdp.base.workspace import SHIPPED_DATA, Workspace, read_json, write_json
from cdp.corpus import get_documents, load_documents, load_manifest
from cdp.llm.answers import Usage
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.tokens import cut, estimate_tokens
from cdp.synthesis.work import Work

PRICES = SHIPPED_DATA / "prices" / "prices.json"
SAMPLE = 200
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


def dollars(value: float | None) -> str:
    """``$1.23``, with more digits where it is little; a dash where nobody knows."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


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
        name = max((priced for priced in models if model == priced or _dated(model, priced)), key=len, default=None)
        if name is None:
            return None
        row = _row(name, models[name])
        return Price(row.input, row.output, row.batch_discount, str(table["as_of"]))
    except _DAMAGE as error:
        raise _damaged(path, error) from error


_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What a table raises that is not made as ours is: other types, numbers beyond all bounds."""


def _damaged(path: Path, error: Exception) -> WorkspaceError:
    return WorkspaceError(f"The price table {path.name} is damaged near {str(error)[:120]}.", hint="See its note.")


def _dated(model: str, undated: str) -> bool:
    """Whether ``model`` is ``undated`` with a release date, as in gpt-4o-mini-2024-07-18."""
    rest = model.removeprefix(undated)
    return rest != model and rest.startswith("-") and rest[1:].replace("-", "").isdigit()


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
    method's typical query is assumed and no time is told. A generator that is no LLM needs no tokens and costs nothing,
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
    lengths = [prompt_tokens(method, document, limit, config.per_doc, queries) for document, queries in chosen]
    if not lengths:
        return Estimate(n, 0, 0, 0, 0, 0, None, 0.0, 0.0, None)
    mean = sum(lengths) / len(lengths)
    variance = sum((length - mean) ** 2 for length in lengths) / max(1, len(lengths) - 1)
    margin = 0.0 if len(lengths) == n else Z_95 * math.sqrt(variance / len(lengths)) * n
    usage = expected_usage(method, mean, n, n_queries, tokens_per_query)
    price = None if generator.local else load_price(config.model_name, prices or price_file(workspace))
    cost = price.cost(usage) if price else 0.0 if generator.local else None
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
    """Input tokens of all requests about one document."""
    text = cut(document.content, limit).text
    if method.from_queries:
        return sum(estimate_tokens(method.render(text, m, query)) for query in queries)
    return (m if method.one_per_call else 1) * estimate_tokens(method.render(text, m))


@dataclass(frozen=True)
class PriceRow:
    """One model's price: US dollars per million tokens, and the share that its batch endpoint saves."""

    model: str
    input: float
    output: float
    batch_discount: float = 0.0


@dataclass(frozen=True)
class PriceTable:
    """The prices in use. ``own`` is whether they were edited in this workspace; ``as_of`` is the day they were read."""

    as_of: str
    rows: tuple[PriceRow, ...]
    own: bool


def read_prices(workspace: Workspace) -> PriceTable:
    """The table in use; WorkspaceError where its file is damaged."""
    path = price_file(workspace)
    table = read_json(path)
    try:
        rows = tuple(_row(name, entry) for name, entry in table["models"].items())
        return PriceTable(str(table["as_of"]), rows, path != PRICES)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def write_prices(workspace: Workspace, rows: Sequence[PriceRow], as_of: str) -> None:
    """Keep an edited table in the workspace; ConfigError names every row that is no price."""
    problems = [f"{row.model or 'a row without a name'} has no price" for row in rows if not _usable(row)]
    names = [row.model for row in rows]
    problems += [f"{name} stands there twice" for name in sorted({name for name in names if names.count(name) > 1})]
    if problems:
        raise ConfigError.from_problems(
            problems, hint="Give US dollars per million tokens, and a discount from 0 to 1."
        )
    models: Mapping[str, dict[str, float]] = {
        row.model: {name: value for name, value in asdict(row).items() if name != "model"} for row in rows
    }
    write_json(workspace.root / "prices.json", {"as_of": as_of, "models": models})


def _row(name: str, entry: Mapping[str, object]) -> PriceRow:
    """One entry of the table; ValueError for what is no price (less than nothing, ``inf``, no number at all)."""
    read, written, discount = entry["input"], entry["output"], entry.get("batch_discount", 0)
    row = PriceRow(name, float(str(read)), float(str(written)), float(str(discount)))
    if not _usable(row):
        raise ValueError(f"{name!r}, which has no price")
    return row


def _usable(row: PriceRow) -> bool:
    prices = (row.input, row.output)
    return bool(row.model.strip()) and all(math.isfinite(p) and p >= 0 for p in prices) and 0 <= row.batch_discount <= 1
