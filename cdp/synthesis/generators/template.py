"""The ``template`` generator: queries by rule, no LLM, always the same; English or other, kinds by method, joined.

It is a stand-in, good enough to try every other step with, and labelled as such. English documents get claims, scenes,
names and questions in their own words; documents in other languages whole sentences, also as questions or quoted.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cdp.base.records import Document
from cdp.llm.answers import Answer
from cdp.synthesis.generators import Generator, GeneratorType
from cdp.synthesis.methods import Method
from cdp.synthesis.parsing import comparison_key
from cdp.synthesis.sentences import FUNCTION_WORDS, MAX_CHARACTERS, content, is_english, whole
from cdp.synthesis.templates import english, other
from cdp.synthesis.work import documents_of

# Of a sentence that is taken as it is: words at most, and more characters than these. Where one ends.
LONGEST, SHORTEST = 20, 4
_SENTENCES = re.compile(r"(?<=[.!?…؟۔।])\s+|(?<=[。！？])\s*")


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
        if method.joint:
            each = [self.queries(one, "diverse", m) for one in documents_of(document)]
            return Answer(queries=tuple(distinct(map(conjunction, zip(*each, strict=False)), m)), model=self.model)
        return Answer(queries=tuple(self.queries(document, method.name, m)), model=self.model)

    def queries(self, document: Document, method: str, m: int) -> list[str]:
        """Up to ``m`` distinct queries by the method of that name; any that is no paraphrase gets diverse ones."""
        digest = hashlib.sha256(f"{self._seed} {document.content_hash}".encode()).digest()
        rng = random.Random(digest)
        room = english if _reads_as_english(document) else other
        if method.startswith("paraphrase"):
            built, most = room.paraphrases(document, rng), 1
        else:
            built, most = room.diverse(document, rng), m

        # Where no rule finds a sentence that stands alone, sentences as they are ask better than nothing.
        return distinct(built, m) or distinct(_as_they_are(document, most), m)


GENERATOR = GeneratorType(
    "template",
    "Template (no LLM)",
    "Rules over the document's own phrases; no LLM, no cost",
    lambda config, api_key: TemplateGenerator(config.seed),
    reads=frozenset({"seed"}),
    order=10,
)


def _reads_as_english(document: Document) -> bool:
    text = document.text
    if document.title:
        # A foreign title at the beginning of each sentence makes no text foreign.
        text = text.replace(document.title, " ")
    return is_english(text if text.strip() else document.content)


def _as_they_are(document: Document, most: int) -> Iterator[str]:
    """Yield the first sentences of a text of two or more, cut to a query's length; nothing for a table or a title."""
    found = [" ".join(text.split()[:LONGEST]) for text in _SENTENCES.split(document.text[:MAX_CHARACTERS])]
    if len(found) > 1:
        yield from islice((text for text in found if len(text) > SHORTEST), most)


def elaborated(query: str, document: Document) -> str:
    """Return the query with long words of its document that it does not name: a stand-in for reasoning."""
    named = query.casefold()
    found: dict[str, None] = {}
    for text in document.text[:MAX_CHARACTERS].split():
        word = text.strip(".,;:()")
        if content(text) and word and word.casefold() not in named:
            found[word] = None

    longest = sorted(found, key=len, reverse=True)[:4]
    return f"{query.rstrip()} ({', '.join(longest)})" if longest else query


def conjunction(queries: Sequence[str]) -> str:
    """Return one query that asks what several ask: a stand-in for one that needs several documents."""
    first, *rest = (query.rstrip(" ?.!。？！؟۔।") for query in queries)
    if not is_english(" ".join(queries)) and not all(map(str.isascii, queries)):
        return "; ".join((first, *rest))

    end = "?" if any(query.endswith("?") for query in queries) else ""
    return " and ".join((first, *map(_continued, rest))) + end


def _continued(query: str) -> str:
    """Return a query as it reads behind "and": "what is it" with a small letter, names as they are."""
    word, *rest = query.split(" ", 1)
    if word.lower() in FUNCTION_WORDS:
        word = word.lower()
    return " ".join((word, *rest))


def distinct(queries: Iterable[str], m: int) -> list[str]:
    """Return the first ``m`` queries that differ in more than case, spacing and punctuation."""
    by_key: dict[str, str] = {}
    for query in map(whole, queries):
        if key := comparison_key(query):
            by_key.setdefault(key, query)
        if len(by_key) == m:
            break
    return list(by_key.values())
