"""What an endpoint returns in place of a query: refusals, the prompt, fragments of JSON, another language.

One pure function over one query. It flags what is almost surely no query; a bad query is another matter, which the
round-trip rank and the measures tell. Human queries of the benchmarks are flagged in far less than 1% (the tests count
them), so what is flagged may be left out unseen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cdp.corpus.languages import FUNCTION_WORDS, UNKNOWN, guess_language, main_script, script_letters

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
    r"|\W*(?:quer(?:y|ies)|questions?|output|answer|document|passage|format)\s*(?:\d{1,2})?\s*[:：]?\W*$",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"\s*(?:```|~~~|[\[{]\s*(?:[\]}]|[\"“][^\"”]{0,400}[\"”]\s*[:,\]}])"
    r"|[\"“]?(?:quer(?:y|ies)|questions?|text)[\"”]?\s*:\s*[\[{\"]"
    r"|</?(?:think|query|answer|output|json|s|im_\w+)>|<\|\w+\|>)",
    re.IGNORECASE,
)
_MARKUP_END = re.compile(r"[\"”]\s{0,3}(?:[\]}]{1,3},?|,)$")
_WORD = re.compile(r"\w+")


def nonsense(query: str, document: str = "", *, prompt: str = "", n_documents: int = 1) -> tuple[str, ...]:
    """Why ``query`` is no query of ``document``: names of ``REASONS``, none for a usable one.

    ``document`` is its text, empty where only the query is judged; ``prompt`` what the model was asked with, as far as
    it is known; ``n_documents`` for how many documents the set has the very same text.
    """
    text = " ".join(query.split())
    if not text:
        return ("empty",)
    if not any(c.isalnum() for c in text):
        return ("no words",)
    plain = text.replace("’", "'")
    reasons = []
    if _REFUSAL.match(plain):
        reasons.append("refusal")
    if _TASK.match(plain) or _echoes(text, prompt):
        reasons.append("prompt")
    short = len(text) <= LONGEST_LOOKED_AT
    cut = short and (_MARKUP_END.search(text[-12:]) or (text.endswith("```") and text.count("```") == 1))
    if cut or _MARKUP.match(text):
        reasons.append("markup")
    if short and _loops(text):
        reasons.append("loop")
    if document:
        reasons += _foreign(text, document[:READ_OF_DOCUMENT])
    if n_documents >= MANY_DOCUMENTS:
        reasons.append("same everywhere")
    return tuple(reasons)


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


def _foreign(text: str, document: str) -> list[str]:
    """A query in another script or language than its document; names and quotations of the document are its own."""
    script, language = _nature(document)
    own = main_script(text)
    if script and own and own != script:
        few = script_letters(text, own) < MIN_LETTERS or script_letters(text, script) > 0
        quoted = all(word in document for word in _WORD.findall(text) if len(word) > 2)
        return [] if few or quoted else ["other script"]
    if language != UNKNOWN and (spoken := guess_language(text)) not in (UNKNOWN, language):
        listed = FUNCTION_WORDS.get(script, {})
        theirs, others = listed.get(language, frozenset()), listed.get(spoken, frozenset())
        of_query, of_document = (set(_WORD.findall(part.casefold())) for part in (text, document))
        clear = len(of_query & (others - theirs)) >= max(MIN_FUNCTION_WORDS, LEAD * len(of_query & (theirs - others)))
        # Where the document has as many words of the other language, its own was guessed wrong: by names, say.
        misread = len(of_document & (others - theirs)) >= len(of_document & (theirs - others))
        if clear and not misread:
            return ["other language"]
    return []


# The eight formats that the diverse prompt names, and questions that are none of them.
FORMATS = ("what", "how", "why", "when/if", "which/verify", "comparison", "keyword", "statement", "other question")

LONGEST_KEYWORDS = 5

_WORDS: tuple[tuple[str, str], ...] = (
    (
        "comparison",
        r".*\b(?:compared? (?:to|with)|versus|vs\.?|differs? from|difference between|differ|unlike|rather than"
        r"|différence entre|unterschied zwischen|diferencia entre|отлич\w+)\b|.*(?:区别|不同|比较|違い|차이)",
    ),
    ("why", r"(?:for what reason|why|pourquoi|warum|weshalb|por qué|почему|зачем|لماذا)\b|.*(?:为什么|为何|なぜ|왜)"),
    ("how", r"(?:how|comment|wie|cómo|как|كيف)\b|.*(?:怎么|怎样|如何|どのよう|どうやって|어떻게)"),
    (
        "when/if",
        r"(?:when|if|in which case|quand|si|wann|wenn|falls|cuándo|когда|если|متى)\b|.*(?:什么时候|何时|いつ|언제)",
    ),
    (
        "which/verify",
        r"(?:which|is|are|was|were|does|do|did|can|could|has|have|will|would|should|quel(?:le)?s?|welche[rsnm]?|est-ce"
        r"|ist|sind|cuál(?:es)?|какой|какая|какие|هل|أي)\b|.*(?:哪个|哪些|吗[？?]?$|どの|ですか[？?]?$|어느)",
    ),
    (
        "what",
        r"(?:at what|in what|on what|of what|what|who|whom|whose|where|que|quoi|qui|où|was|wer|wo|qué|quién|dónde|что"
        r"|кто|где|ما|ماذا|من|أين)\b|.*(?:什么|谁|哪里|何|誰|どこ|무엇|누구|어디)",
    ),
)
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _WORDS)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|can|could|may|must|will|would|does|do|did|est|sont|ist|sind|es|son|\w+(?:ed|es))\b",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")


def query_format(query: str) -> str:
    """One of ``FORMATS``. A question word counts only where a question stands: in front, or before a question mark."""
    text = query.strip().lstrip("¿¡\"'“‘«(")
    is_question = text.rstrip("\"'”’») ").endswith(("?", "？", "؟"))
    first = next((name for name, pattern in _PATTERNS if pattern.match(text)), "")
    n_words = len(text) // 2 if _WIDE.search(text) else len(text.split())
    if is_question:
        return first or "other question"
    if first == "comparison" or (first in ("what", "how", "why", "when/if") and not _WIDE.search(text)):
        return first
    if n_words <= LONGEST_KEYWORDS and not (n_words > 2 and _VERB.search(text)):
        return "keyword"
    return first if first and _WIDE.search(text) else "statement"


def format_mix(queries: Sequence[str]) -> dict[str, int]:
    """How many queries have each format, in the order of ``FORMATS``, without those that none has."""
    formats = [query_format(query) for query in queries]
    return {name: formats.count(name) for name in FORMATS if name in formats}
