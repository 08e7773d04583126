"""Sentences and key phrases of a document: what the template generator builds queries from.

No tagger and no model. Key phrases are runs of words without function words, scored by how often their words occur
and how long the runs are that they occur in (RAKE; Rose et al., 2010).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from cdp.synthesis.templates.english import ADVERBS, BASE_FORM, CONNECTIVES, FUNCTION_WORDS, SECTION_LABELS

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？؟۔।])[」』”）]*\s*|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Hon|Gen|Col|Capt|Lt|Sgt|Rev|Sen|Gov|vs|etc|approx|Jr|No|e\.g|i\.e|c|ca))\.$"
)
_INITIAL = re.compile(r"\b[A-Z]\.$")
_LONGEST_ABBREVIATION = 12
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
_PARTS = re.compile(r"[^\w\s'’\-–.]|(?<!\d)\.|\.(?!\d)")
_WORD = re.compile(r"[^\W_]+(?:['’\-–.,][^\W_]+)*")

SHORTEST_SENTENCE = 12
SHORTEST_WIDE = 5
"""Characters, of an alphabet and of Chinese, Japanese and Korean; shorter ones are headings or debris."""


def is_english(text: str) -> bool:
    """Whether enough of the words are English function words to build English sentences around them."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", text[:4000])]
    if not words:
        return False
    return sum(word in FUNCTION_WORDS for word in words) / len(words) > 0.18


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
    runs: list[list[str]] = []
    for sentence in sentences(text) if isinstance(text, str) else text:
        for part in _PARTS.split(sentence):
            run: list[str] = []
            for word in [*part.split(), ""]:
                bare = word.strip("'’-–.")
                content = len(bare) > 1 and bare.lower() not in FUNCTION_WORDS and bare.lower() not in BASE_FORM
                if bare.istitle() and bare.lower() in CONNECTIVES:
                    content = False
                if content and not run and bare.lower().endswith(("ing", "ed")):
                    continue
                if (
                    bare.lower() in ADVERBS
                    or (bare.isupper() and bare.lower() in SECTION_LABELS)
                    or (run and bare.lower().endswith("ed"))
                ):
                    content = False
                if content and not bare.isdigit() and not bare.lower().endswith("ly"):
                    run.append(bare)
                elif run:
                    runs.append(run)
                    run = []
    frequency: Counter[str] = Counter()
    degree: dict[str, int] = defaultdict(int)
    for run in runs:
        for word in run:
            frequency[word.lower()] += 1
            degree[word.lower()] += min(len(run), longest)
    scored: dict[str, tuple[float, str]] = {}
    for run in runs:
        phrase = " ".join(run[-longest:])
        score = sum(degree[word.lower()] * (1 + 0.3 * frequency[word.lower()]) for word in run[-longest:])
        if any(character.isalpha() for character in phrase):
            scored.setdefault(phrase.lower(), (score * (0.6 if len(run) == 1 else 1.0), phrase))
    return [phrase for _, phrase in sorted(scored.values(), key=lambda item: -item[0])]
