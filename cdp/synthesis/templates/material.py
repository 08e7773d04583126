"""What the English queries of one document are built from: its topic, sentences, clauses and key phrases."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from cdp.base.records import Document
from cdp.synthesis.templates.clauses import Clause, clauses
from cdp.synthesis.templates.english import FUNCTION_WORDS
from cdp.synthesis.templates.phrases import key_phrases, sentences, words
from cdp.synthesis.templates.presentable import plain

# Of a document that are read: about twice what an LLM's prompt holds, and enough for any number of queries.
MOST_CHARACTERS = 20_000

# Words: a longer title is a sentence.
LONGEST_TOPIC = 6

ARTICLES = ("a", "an", "the")
_QUESTIONS = frozenset({"how", "why", "what", "when", "where", "who", "which", "is", "are", "does", "do", "can"})


@dataclass(frozen=True)
class Material:
    """``topic`` is what the document is about, "" where nothing tells. ``title`` is plain; it may be a sentence."""

    topic: str
    title: str
    clauses: list[Clause]
    phrases: list[str]
    sentences: list[str]
    known: dict[str, tuple[str, int]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, document: Document) -> Material:
        split = sentences(document.text[:MOST_CHARACTERS])
        if len(document.text) > MOST_CHARACTERS and len(split) > 1:
            split.pop()  # cut somewhere
        title = plain(document.title[:MOST_CHARACTERS].replace("_", " ")).strip(" .?!,;:")
        phrases = key_phrases([title, *split])
        topic = _topic(title, document.text[:MOST_CHARACTERS], phrases)
        return cls(topic, title, clauses(split, topic), phrases, split)

    @property
    def about(self) -> str:
        """The topic as it stands in a sentence, with the article that the text gives it."""
        return self.named(self.topic)

    def named(self, phrase: str) -> str:
        """The phrase as it stands within a sentence: with the article of its first use, and with a small letter where
        only a sentence's beginning gave it a capital one."""
        return self._found(phrase)[0]

    def where(self, phrase: str) -> int:
        """The first sentence that holds the phrase."""
        return self._found(phrase)[1]

    def _found(self, phrase: str) -> tuple[str, int]:
        if phrase not in self.known:
            lowered = phrase.lower()
            at = next((i for i, sentence in enumerate(self._lowered) if lowered in sentence), None)
            self.known[phrase] = (phrase, 0) if at is None or not phrase else (_named(phrase, self.sentences[at]), at)
        return self.known[phrase]

    @cached_property
    def title_words(self) -> frozenset[str]:
        """The words of the title that say something, in small letters."""
        return content(self.title) - FUNCTION_WORDS

    @cached_property
    def _lowered(self) -> list[str]:
        return [sentence.lower() for sentence in self.sentences]


def _named(phrase: str, sentence: str) -> str:
    """``phrase`` with the article that it has in ``sentence``, and as it would stand after another word."""
    first, *rest = phrase.split()
    if first.istitle() and rest and all(word.islower() for word in rest):
        phrase = f"{first.lower()} {' '.join(rest)}"
    before = ["", "", *sentence[: sentence.lower().find(phrase.lower())].lower().split()][-2:]
    article = before[1] if before[1] in ARTICLES else before[0] if before[0] == "the" and before[1].isalpha() else ""
    return f"{article} {phrase}".lstrip()


def _topic(title: str, text: str, phrases: list[str]) -> str:
    """The title where that is a name and not a sentence, else the best key phrase."""
    first = title.split(None, 1)[0].lower() if title else ""
    if title and len(title.split()) <= LONGEST_TOPIC and first not in _QUESTIONS:
        lower = title[0].lower() + title[1:]
        return lower if lower in text else title
    return phrases[0] if phrases else title


@lru_cache(maxsize=1 << 14)
def content(phrase: str) -> frozenset[str]:
    """The words of a phrase, in small letters. Asked for again and again while one document is read."""
    return frozenset([word.lower() for word in words(phrase)])
