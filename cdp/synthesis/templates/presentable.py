"""What a query must be before it is shown: whole, balanced, and able to stand alone. Pure; one pass over the text."""

from __future__ import annotations

import re

from cdp.synthesis.templates.english import NOT_LAST, POINTING

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
_WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
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
    return "" if _WIDE.match(match.string[match.start() - 1 : match.start()]) else " "


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
