"""What a retriever behind an API will be sent, where and at which price, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from cdp import query_sets
from cdp.base.config import EvaluationConfig, MiningConfig
from cdp.base.text import cut_to_tokens, estimate_tokens
from cdp.base.workspace import Workspace
from cdp.benchmarks import describe, judged_on, resolve_benchmark
from cdp.benchmarks.beir_files import iter_corpus, read_queries
from cdp.benchmarks.benchmark import part
from cdp.corpus import load_manifest, open_corpus
from cdp.llm.answers import Usage
from cdp.llm.prices import Price, price_of, priced
from cdp.retrievers import api
from cdp.retrievers.api import ApiName

# Texts whose length stands for all in a price.
SAMPLED = 200


@dataclass(frozen=True)
class Texts:
    """How many texts there are, and their mean length in tokens, estimated from a sample."""

    n: int
    mean: float


@dataclass(frozen=True)
class Sending:
    """Texts that go to a retriever behind an API, at most: none is sent whose vector is kept. ``price`` may be None."""

    retriever: ApiName
    texts: int
    usage: Usage
    price: Price | None

    @property
    def cost(self) -> float | None:
        return self.price.cost(self.usage) if self.price else None

    @property
    def sentence(self) -> str:
        """Which text goes where, at which price."""
        price = priced(self.cost, self.price, "about")
        return (
            f"Up to {self.texts:,} texts (about {self.usage.input_tokens:,} tokens) are sent to {self.retriever.url} "
            f"for {self.retriever.model}: {price}. Texts that were embedded before are not sent again."
        )


def sendings(workspace: Workspace, retrievers: Iterable[str], texts: Sequence[Texts]) -> list[Sending]:
    """Return what each retriever behind an API is sent of these texts; nothing for other retrievers."""
    n, tokens = sum(t.n for t in texts), round(sum(t.n * t.mean for t in texts))
    named = [found for name in retrievers if (found := api.parse(name)) is not None]
    return [Sending(name, n, Usage(tokens, 0, n), price_of(workspace, name.model)) for name in named]


def for_evaluation(workspace: Workspace, config: EvaluationConfig) -> list[Sending]:
    """Return what an evaluation sends."""
    if api.parse(config.retriever) is None:
        return []
    name, split, info = judged_on(workspace, config.judged.benchmark, config.judged.split)
    folder = resolve_benchmark(name, workspace)
    queries = [line.text for line in islice(read_queries(part(folder, "queries")).values(), SAMPLED)]
    texts = [of_benchmark(workspace, folder), _mean(info.judged[split], queries)]
    return sendings(workspace, [config.retriever], texts)


def for_mining(workspace: Workspace, config: MiningConfig) -> list[Sending]:
    """Return what mining hard negatives sends: the set's corpus and its queries."""
    retrievers = dict.fromkeys((config.retriever, config.teacher))
    if not any(map(api.parse, retrievers)):
        return []
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    lines = islice(query_sets.read_queries(workspace, query_set.id), SAMPLED)
    queries = _mean(query_set.n_queries, [text for line in lines for text in line.queries])
    return sendings(workspace, retrievers, [of_corpus(workspace, query_set.corpus_id), queries])


def for_index(workspace: Workspace, retriever: str, corpus: str) -> list[Sending]:
    """Return what indexing a corpus (its id) sends."""
    if api.parse(retriever) is None:
        return []
    return sendings(workspace, [retriever], [of_corpus(workspace, corpus)])


def of_corpus(workspace: Workspace, corpus: str, longest: int = api.LONGEST) -> Texts:
    """Return the documents of a corpus; each is cut at ``longest`` tokens."""
    return _mean(load_manifest(workspace, corpus).n_documents, _sampled(workspace, corpus), longest)


def _sampled(workspace: Workspace, corpus: str) -> list[str]:
    """Return some documents of a corpus, evenly spread."""
    ids = open_corpus(workspace, corpus).table(columns=["id"]).column("id")
    chosen = [ids[at].as_py() for at in range(0, len(ids), max(1, len(ids) // SAMPLED))]
    return [document.content for document in open_corpus(workspace, corpus).get(chosen).values()]


def of_benchmark(workspace: Workspace, folder: Path, longest: int = api.LONGEST) -> Texts:
    """Return the documents of a benchmark; each is cut at ``longest`` tokens."""
    info = describe(folder, workspace)
    first = [document.content for document in islice(iter_corpus(part(folder, "corpus")), SAMPLED)]
    # The mean length in characters is known of all; the first ones say how many tokens that is.
    scale = info.characters / max(1.0, float(np.mean([len(text) for text in first]))) if first else 0.0
    texts = _mean(info.n_documents, first, longest)
    return Texts(texts.n, min(float(longest), texts.mean * scale))


def _mean(n: int, texts: Sequence[str], longest: int = api.LONGEST) -> Texts:
    return Texts(n, float(np.mean([estimate_tokens(cut_to_tokens(text, longest)) for text in texts])) if texts else 0.0)
