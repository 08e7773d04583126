"""What an endpoint returns in place of a query: refusals, prompt echoes, loops, fragments of JSON, the wrong language.

``nonsense`` judges one query, ``query_table`` those of a set. They flag what is almost surely no query; a bad query is
another matter, which the round-trip rank and the measures tell. Human queries of the benchmarks are flagged in far less
than 1% (the tests count them), so what is flagged may be left out unseen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.registry import registry
from cdp.base.workspace import Workspace
from cdp.complexity.guessing import FUNCTION_WORDS, UNKNOWN, guess_language, main_script, script_letters
from cdp.corpus import iter_documents
from cdp.query_sets.store import QuerySet

# Each reason, in words.
REASONS: dict[str, str] = {
    "empty": "empty",
    "no words": "no letter or digit",
    "refusal": "refusal",
    "prompt": "repeats the prompt",
    "markup": "fragment of JSON or code fencing",
    "loop": "one phrase over and over",
    "other script": "other script than its document",
    "other language": "other language than its document",
    "same everywhere": "same text for ten documents or more",
    "duplicate": "repeats an earlier query of its document",
}

# A query of so many documents is no query of any. Human multi-hop queries stand for up to five documents.
MANY_DOCUMENTS = 10

# Letters of another script that are more than a name or an abbreviation.
MIN_LETTERS = 12

# So many function words that only the other language has, and so many times those that only the document's has, make a
# query of that other language: a short question about Los Angeles is no Spanish.
MIN_FUNCTION_WORDS, LEAD = 2, 3

# Characters of the prompt that a query must repeat to be an echo of it.
MIN_ECHO = 24

# Characters of a document from which its language and script are detected.
READ_OF_DOCUMENT = 2000

MIN_LOOP_WORDS, LOOP_SHARE = 12, 0.25
# Characters of a query whose end and repetitions are judged: a person's long post holds code and tables of its own.
LONGEST_LOOKED_AT = 600

_SELF = r"(?:an?\s+)?(?:ai|artificial intelligence|large language|language)\s*(?:language\s+)?(?:model|assistant)"
_WORK = r"(?:help|assist|provide|generate|comply|fulfil+|create|write|produce|continue|answer (?:that|this))"
_REFUSALS = (
    rf"as {_SELF}\b",
    rf"i(?:'m| am) (?:just |only )?{_SELF}\b",
    r"(?:i(?:'m| am) )?(?:so |very )?sorry,?\s*(?:but\s+)?"
    r"(?:i\b|as an\b|there (?:is|are) no\b|the (?:document|text|passage)\b)",
    rf"i (?:can(?:no|')t|can not|am (?:unable|not able) to|won't) {_WORK}\b",
    rf"i'm (?:unable|not able) to {_WORK}\b",
    r"unfortunately,? i (?:can(?:no|')t|am (?:unable|not able)|do not|don't)\b",
    r"(?:es tut mir (?:sehr )?leid|entschuldigung|leider kann ich)\b",
    r"(?:je suis désolée?|désolée?,? (?:mais )?je)\b",
    r"en tant qu(?:'|e )(?:ia|intelligence artificielle|modèle)",
    r"(?:lo siento|como (?:modelo de lenguaje|ia))\b",
    r"(?:извините|простите|к сожалению),? (?:но )?я\b",
    r"как (?:языковая модель|ии)\b",
    r"(?:很抱歉|对不起|抱歉)[,，。!！]|作为(?:一个|一名)?(?:人工智能|ai|大?语言模型)",
    r"申し訳(?:ありません|ございません)|ai(?:言語)?モデルとして",
    r"죄송(?:합니다|하지만)|저는 ai",
    r"(?:عذر[اً]+|آسف|أعتذر)،? ",
)
_REFUSAL = re.compile(rf"\W*(?:{'|'.join(_REFUSALS)})", re.IGNORECASE)
_TASK = re.compile(
    r"\{(?:document|query|m)\}"
    r"|\W*(?:sure|certainly|of course|okay)[,!.:]?\s+here (?:are|is)\b"
    r"|\W*here (?:are|is) (?:the |some |a )?(?:\w+ ){0,3}(?:quer(?:y|ies)|questions?|paraphrases?)\b.{0,80}:"
    r"|\W*(?:please )?(?:generate|write|create|produce) (?:\w+ ){0,4}(?:search )?"
    r"(?:quer(?:y|ies)|questions?|paraphrases?) (?:for|from|based on|about|that|which)\b.{0,40}"
    r"\b(?:document|passage|text)\b"
    r"|\W*(?:based on|given) the (?:following|above|provided) (?:document|passage|text)s?\W*(?:generate|write|create|$)"
    r"|\W*(?:quer(?:y|ies)|questions?|output|answer|document|passage|format)\s*(?:\d{1,2})?\s*[:：]?\W*$"
    r"|\W*(?:string|n/a|null|placeholder|(?:your|sample|example|insert) (?:quer(?:y|ies)|questions?)(?: here)?)\W*$",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"\s*(?:```|~~~|[\[{]\s*(?:[\]}]|[\"“][^\"”]{0,400}[\"”]\s*[:,\]}])"
    r"|[\"“]?(?:quer(?:y|ies)|questions?|text)[\"”]?\s*:\s*[\[{\"]"
    r"|</?(?:think|query|queries|question|questions|answer|output|json|item|[ou]l|li|s|im_\w+)>|<\|\w+\|>)",
    re.IGNORECASE,
)
_MARKUP_END = re.compile(r"[\"”]\s{0,3}(?:[\]}]{1,3},?|,)$")
_WORD = re.compile(r"\w+")


def nonsense(query: str, document: str = "", *, prompt: str = "", n_documents: int = 1) -> str:
    """Return the first of ``REASONS`` why ``query`` is no query of ``document``; empty for a usable one.

    ``document`` is its text, empty where only the query is judged; ``prompt`` what the model was asked with, as far as
    it is known; ``n_documents`` for how many documents the set has the very same text.
    """
    text = " ".join(query.split())
    if not text:
        return "empty"
    if not any(c.isalnum() for c in text):
        return "no words"

    plain = text.replace("’", "'")
    if refuses(plain):
        return "refusal"
    if _TASK.match(plain) or _echoes(text, prompt):
        return "prompt"

    short = len(text) <= LONGEST_LOOKED_AT

    cut = short and (_MARKUP_END.search(text[-12:]) or (text.endswith("```") and text.count("```") == 1))
    if cut or _MARKUP.match(text):
        return "markup"
    if short and _loops(text):
        return "loop"

    foreign = _foreign(text, document[:READ_OF_DOCUMENT]) if document else ""
    return foreign or ("same everywhere" if n_documents >= MANY_DOCUMENTS else "")


def refuses(text: str) -> bool:
    """Return True if a text begins as a refusal, in one of ten languages."""
    return bool(_REFUSAL.match(text.replace("’", "'")))


@lru_cache(maxsize=8)
def _lowered(prompt: str) -> str:
    return " ".join(prompt.split()).casefold()


def _echoes(text: str, prompt: str) -> bool:
    """Return True if the query is a part of the prompt, word by word."""
    return len(text) >= MIN_ECHO and bool(prompt) and text.casefold() in _lowered(prompt)


def _loops(text: str) -> bool:
    """Return True if few words make up a long text: what a small model falls into."""
    listed = _WORD.findall(text.casefold())
    return len(listed) >= MIN_LOOP_WORDS and len(set(listed)) <= LOOP_SHARE * len(listed)


@lru_cache(maxsize=32)
def _nature(document: str) -> tuple[str, str]:
    """(script, language) of a document. Queries of one document follow each other, so few are remembered."""
    return main_script(document), guess_language(document)


def _foreign(text: str, document: str) -> str:
    """A query in another script or language than its document; names and quotations of the document are its own."""
    script, language = _nature(document)
    own = main_script(text)
    if script and own and own != script:
        few = script_letters(text, own) < MIN_LETTERS or script_letters(text, script) > 0
        quoted = all(word in document for word in _WORD.findall(text) if len(word) > 2)
        return "" if few or quoted else "other script"

    if language != UNKNOWN and (spoken := guess_language(text)) not in (UNKNOWN, language):
        listed = FUNCTION_WORDS.get(script, {})
        theirs, others = listed.get(language, frozenset()), listed.get(spoken, frozenset())
        of_query, of_document = (set(_WORD.findall(part.casefold())) for part in (text, document))
        clear = len(of_query & (others - theirs)) >= max(MIN_FUNCTION_WORDS, LEAD * len(of_query & (theirs - others)))
        # Where the document has as many words of the other language, its own was guessed wrong: by names, say.
        misread = len(of_document & (others - theirs)) >= len(of_document & (theirs - others))
        if clear and not misread:
            return "other language"

    return ""


@dataclass(frozen=True)
class QueryTable:
    """The n queries of a set, in its order.

    ``document_ids`` and ``offset`` (n_documents,) name its documents and where each one's line begins; ``document``
    (n,) is the index of a query's document, ``ids`` (n,) its id, and ``reasons`` (n,) the first of ``REASONS`` why it
    is no query, empty for a usable one.
    """

    document_ids: NDArray[np.str_]
    offset: NDArray[np.int64]
    document: NDArray[np.int64]
    ids: list[str]
    reasons: NDArray[Any]

    def __len__(self) -> int:
        return len(self.ids)


def query_table(workspace: Workspace, query_set: QuerySet) -> QueryTable:
    """Read a set and its documents once, a second per 20,000 queries."""
    prompt, shared = prompt_of(query_set), query_sets.shared_queries(workspace, query_set.id)
    # A whole set has the order of the corpus, so one pass is enough; a growing one is judged without its documents.
    judged = query_set.complete and workspace.corpus(query_set.corpus_id).exists()

    documents = iter_documents(workspace, query_set.corpus_id) if judged else iter(())
    names: list[str] = []
    offsets: list[int] = []
    numbers: list[int] = []
    ids: list[str] = []
    reasons: list[str] = []
    for offset, line in query_sets.iter_offsets(workspace, query_set.id):
        content = next((document.content for document in documents if document.id == line.document_id), "")
        seen = set[str]()
        for query_id, text in line.with_ids():
            plain = query_sets.plain_form(text)
            reason = nonsense(text, content, prompt=prompt, n_documents=len(shared.get(plain, ())))
            reasons.append(reason or ("duplicate" if plain in seen else ""))
            seen.add(plain)
            ids.append(query_id)
            numbers.append(len(names))

        names.append(line.document_id)
        offsets.append(offset)

    return QueryTable(
        np.array(names, np.str_), np.array(offsets, np.int64), np.array(numbers, np.int64), ids,
        np.array(reasons, object),
    )  # fmt: skip


def prompt_of(query_set: QuerySet) -> str:
    """Return the prompt of a set: the user's own, or the method's; empty if unknown."""
    own = str(query_set.parameters.get("prompt") or "")
    methods = registry("method")
    known = query_set.kind == "synthetic" and query_set.method in methods
    return own or (str(getattr(methods[query_set.method], "template", "")) if known else "")
