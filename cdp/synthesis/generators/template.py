"""The ``template`` generator: queries by rule from a document's own phrases. No LLM, no cost, always the same.

It is a stand-in, good enough to try every other step with, and labelled as such. English documents get questions
built from their clauses; in other languages, key phrases and shortened sentences of the document itself.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager

from cdp.base.records import Document
from cdp.llm.answers import Answer
from cdp.synthesis.generators import Generator, GeneratorType
from cdp.synthesis.methods import Method
from cdp.synthesis.parsing import comparison_key
from cdp.synthesis.templates import builders_english as english
from cdp.synthesis.templates import builders_other as other
from cdp.synthesis.templates.clauses import MOST_CHARACTERS
from cdp.synthesis.templates.phrases import is_english, key_phrases, whole

# For fewer, a single process is done before others have started.
MIN_SPREAD = 1500
# One process reads and stores what all of them write; it keeps up with about as many.
MAX_PROCESSES = 32


class TemplateGenerator(Generator):
    """Deterministic per (document, method, seed). The first M queries for a larger M are the queries for M."""

    name = "template"
    model = "template"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @property
    def parameters(self) -> dict[str, object]:
        return {"seed": self._seed}

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        """Up to ``m`` distinct queries; fewer only where the document holds no more material."""
        if method.from_queries:
            return Answer(queries=(elaborated(query, document),), model=self.model)
        return Answer(queries=tuple(self.queries(document, method.name, m)), model=self.model)

    def queries(self, document: Document, method: str, m: int) -> list[str]:
        """Up to ``m`` distinct queries by the method of that name; any but ``paraphrase`` gets diverse ones."""
        digest = hashlib.sha256(f"{self._seed} {document.content_hash}".encode()).digest()
        rng = random.Random(digest)
        room = english if is_english(document.content) else other
        build = room.paraphrases if method == "paraphrase" else room.diverse
        return distinct(build(document, rng), m)


class TemplatePool(TemplateGenerator):
    """The same queries, each document's in one of several processes; asked by as many threads."""

    def __init__(self, source: TemplateGenerator, processes: int) -> None:
        super().__init__(source._seed)
        # More calls than processes, so that none waits for its next document: half as fast again.
        self.concurrency = 4 * processes
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        self._pool = ProcessPoolExecutor(processes, context, _begin, (self._seed,))

    def queries(self, document: Document, method: str, m: int) -> list[str]:
        try:
            found = self._pool.submit(_queries, document, method, m).result()
        except BrokenExecutor:  # one of the processes was killed: go on in this one
            found = None
        return super().queries(document, method, m) if found is None else found

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def spread(source: Generator, n_documents: int, processes: int | None = None) -> Iterator[Generator]:
    """Give ``source``, or for the template generator and many documents the same on ``processes`` (all processors)."""
    n = processors() if processes is None else processes
    if type(source) is not TemplateGenerator or n_documents < MIN_SPREAD or n < 2:
        yield source
        return
    pool = TemplatePool(source, min(n, MAX_PROCESSES))
    try:
        yield pool
    finally:
        pool.close()


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_source = TemplateGenerator()


def _begin(seed: int) -> None:
    """Start a process of the pool: it ends with the one that started it, however that one ended."""
    global _source
    _source = TemplateGenerator(seed)
    # The process that asks decides when to stop. SIGTERM stays: by it a pool with a killed process ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _queries(document: Document, method: str, m: int) -> list[str] | None:
    try:
        return _source.queries(document, method, m)
    except Exception:  # raised again, and recorded, by the process that asks
        return None


GENERATOR = GeneratorType(
    "template",
    "Template (no LLM)",
    "Rules over the document's own phrases; no LLM, no cost",
    lambda config, api_key: TemplateGenerator(config.seed),
    reads=frozenset({"seed"}),
    order=10,
)


def elaborated(query: str, document: Document) -> str:
    """A stand-in for reasoning: the query with the key phrases of its document that it does not name itself."""
    named = query.casefold()
    phrases = [phrase for phrase in key_phrases(document.content[:MOST_CHARACTERS]) if phrase.casefold() not in named][
        :4
    ]
    return f"{query.rstrip()} ({', '.join(phrases)})" if phrases else query


def distinct(queries: Iterable[str], m: int) -> list[str]:
    """The first ``m`` queries, whole, and without those that differ from an earlier one only in case, spacing
    or punctuation."""
    by_key: dict[str, str] = {}
    for query in map(whole, queries):
        if key := comparison_key(query):
            by_key.setdefault(key, query)
        if len(by_key) == m:
            break
    return list(by_key.values())
