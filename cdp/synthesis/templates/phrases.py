"""Sentences and key phrases of a document: what the template generator builds queries from.

No tagger and no model. Key phrases are runs of words without function words, scored by how often their words occur
and how long the runs are that they occur in (RAKE; Rose et al., 2010).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from cdp.synthesis.templates.english import (
    ADVERBS,
    BASE_FORM,
    CONNECTIVES,
    FUNCTION_WORDS,
    NOT_LAST,
    POINTING,
    SECTION_LABELS,
)

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？؟۔।])[」』”）]*\s*|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Hon|Gen|Col|Capt|Lt|Sgt|Rev|Sen|Gov|vs|etc|approx|Jr|No|e\.g|i\.e|c|ca))\.$"
)
_INITIAL = re.compile(r"\b[A-Z]\.$")
_LONGEST_ABBREVIATION = 12
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
_PARTS = re.compile(r"[^\w\s'’\-–.]|(?<!\d)\.|\.(?!\d)")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W_]+(?:['’\-–.,][^\W_]+)*")

SHORTEST_SENTENCE = 12
# Characters, of an alphabet and of Chinese, Japanese and Korean; shorter ones are headings or debris.
SHORTEST_WIDE = 5


def is_english(text: str) -> bool:
    """Whether enough of the words are English function words to build English sentences around them."""
    words = [word.lower() for word in _LETTERS.findall(text[:4000])]
    if not words:
        return False
    return len([None for word in words if word in FUNCTION_WORDS]) / len(words) > 0.18


def sentences(text: str) -> list[str]:
    """The sentences of a text in its order, without those too short to hold a fact. Takes time linear in the text."""
    joined: list[str] = []
    pieces: list[str] = []
    for piece in _BOUNDARY.split(text):
        piece = " ".join(piece.split())
        if not piece:
            continue
        if pieces and not _goes_on(pieces[-1], piece):
            joined.append(" ".join(pieces))
            pieces = []
        pieces.append(piece)
    joined.append(" ".join(pieces))
    return [
        sentence
        for sentence in joined
        if len(sentence) >= (SHORTEST_WIDE if _WIDE.search(sentence) else SHORTEST_SENTENCE)
    ]


def _goes_on(piece: str, following: str) -> bool:
    """Whether the full stop that ends ``piece`` belongs to an abbreviation, so that the sentence goes on."""
    end = piece[-_LONGEST_ABBREVIATION:]
    initial = _INITIAL.search(end)
    return bool(_ABBREVIATION.search(end)) and not (initial and following.split(None, 1)[0].lower() in FUNCTION_WORDS)


def words(text: str) -> list[str]:
    """The words of a text, hyphens and inner marks kept."""
    return _WORD.findall(text)


def key_phrases(text: str | Sequence[str], *, longest: int = 3) -> list[str]:
    """Distinct key phrases of an English text, best first, each of at most ``longest`` words, in its first spelling.

    ``text`` may come as its sentences.
    """
    runs: list[list[tuple[str, str]]] = []
    for sentence in sentences(text) if isinstance(text, str) else text:
        for part in _PARTS.split(sentence):
            run: list[tuple[str, str]] = []
            for word in part.split():
                spelling, lowered, begins, goes_on = _traits(word)
                if goes_on if run else begins:
                    run.append((spelling, lowered))
                elif run:
                    runs.append(run)
                    run = []
            if run:
                runs.append(run)
    frequency: dict[str, int] = defaultdict(int)
    degree: dict[str, int] = defaultdict(int)
    for run in runs:
        reach = min(len(run), longest)
        for _, lowered in run:
            frequency[lowered] += 1
            degree[lowered] += reach
    weight = {word: degree[word] * (1 + 0.3 * n) for word, n in frequency.items()}
    scored: dict[str, tuple[float, str]] = {}
    for run in runs:
        kept = run[-longest:]
        phrase = " ".join([spelling for spelling, _ in kept])
        score = sum([weight[lowered] for _, lowered in kept])
        if any(map(str.isalpha, phrase)):
            scored.setdefault(phrase.lower(), (score * (0.6 if len(run) == 1 else 1.0), phrase))
    return [phrase for _, phrase in sorted(scored.values(), key=lambda item: -item[0])]


@lru_cache(maxsize=1 << 16)
def _traits(word: str) -> tuple[str, str, bool, bool]:
    """A word without the marks around it, the same in small letters, and whether it may begin a key phrase and go on
    with one. Kept from document to document: a corpus uses the same words again and again."""
    bare = word.strip("'’-–.")
    lowered = bare.lower()
    content = len(bare) > 1 and lowered not in FUNCTION_WORDS and lowered not in BASE_FORM and lowered not in ADVERBS
    content = content and not (bare.istitle() and lowered in CONNECTIVES)
    content = content and not (bare.isupper() and lowered in SECTION_LABELS)
    content = content and not bare.isdigit() and not lowered.endswith("ly")
    return bare, lowered, content and not lowered.endswith(("ing", "ed")), content and not lowered.endswith("ed")


_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,60}>")
_QUOTES = re.compile(r"[\"“”„«»]|``|''|(?<!\w)['‘’]|['‘’](?!\w)")
_ASIDE = re.compile(r" ?(?:\([^()]*\)|\[[^\[\]]*\]|（[^（）]*）)")
_ASIDE_OPENING = frozenset("([（")
_GAP = re.compile(r" ([,.;:،])")
_BRACKETS = {
    ")": "(",
    "]": "[",
    "}": "{",
    "」": "「",
    "』": "『",
    "）": "（",
    "》": "《",
    "】": "【",
    "〉": "〈",
    "”": "“",
    "»": "«",
}
_EAST_ASIAN = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
_OPENING = frozenset(_BRACKETS.values())
_MARKS = re.compile("[" + re.escape("".join([*_BRACKETS, *_BRACKETS.values()])) + '"]')
_DEBRIS = re.compile(r"https?:|www\.|[\[\]{}<>|\\=_^~*#]|\.\.|[,;:]$|\s[,;:.]|^\W")
_ENGLISH_QUESTION = re.compile(r"^(?:What|Who|How|Why|When|Where|Which|Is it true that|Is|Are|Was|Were|Does|Do|Did)\b")

# Words of a query: a longer one is a passage.
LONGEST = 28


def plain(text: str) -> str:
    """A sentence or title without markup, quotation marks and what stands in brackets."""
    text = " ".join((_TAG.sub(" ", text) if "<" in text else text).split())
    if not _ASIDE_OPENING.isdisjoint(text):
        for _ in range(2):  # brackets within brackets
            text = _ASIDE.sub(_aside_gap, text)
    return _GAP.sub(r"\1", " ".join(_QUOTES.sub("", text).split()))


def _aside_gap(match: re.Match[str]) -> str:
    """What stands in an aside's place: nothing in scripts without spaces."""
    return "" if _EAST_ASIAN.match(match.string[match.start() - 1 : match.start()]) else " "


def balanced(text: str) -> bool:
    """Whether every bracket and quotation mark is closed, in the right order."""
    if _MARKS.search(text) is None:
        return True
    waiting: list[str] = []
    for character in text:
        if character in _OPENING:
            waiting.append(character)
        elif character in _BRACKETS and (not waiting or waiting.pop() != _BRACKETS[character]):
            return False
    return not waiting and text.count('"') % 2 == 0


def whole(text: str) -> str:
    """The text, without any brackets and quotation marks where one of them is left open."""
    return text if balanced(text) else " ".join(_MARKS.sub(" ", text).split())


def is_presentable(query: str) -> bool:
    """Whether an English query is balanced, ends where a thought ends, and asks about something it names."""
    words = query.rstrip("?.! ").split()
    if not words or len(words) > LONGEST or not balanced(query) or _DEBRIS.search(query):
        return False
    lowered = [word.lower().strip(",;") for word in words]
    if lowered[-1] in NOT_LAST and len(words) > 1:
        return False
    if not _TOGETHER.keys().isdisjoint(lowered) and any(
        first in lowered and second not in lowered for first, second in _TOGETHER.items()
    ):
        return False
    return not _points_elsewhere(words)


def _points_elsewhere(words: list[str]) -> bool:
    """Whether the subject is a pronoun: after the words that open a question, or at the beginning of a statement."""
    subject = words
    if _ENGLISH_QUESTION.match(words[0]):
        opening = 4 if words[:4] == ["Is", "it", "true", "that"] else 2 if words[0] in _WH else 1
        subject = words[opening:]
        if opening == 2 and words[1].lower() in ("kind", "many"):
            return False
    return bool(subject) and subject[0].lower() in POINTING


# Words that want a second: without it, the query was cut.
_TOGETHER = {"either": "or", "both": "and", "between": "and", "neither": "nor", "whether": "or"}
_WH = frozenset({"What", "Who", "How", "Why", "When", "Where", "Which"})
