"""Diverse queries and paraphrases for an English document.

Few patterns, each certain: claims to check, scenes of a story, noun phrases as they stand in the text, the connection
of the title with a name, and questions about the title where a sentence begins with it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from string import capwords
from typing import NamedTuple

from cdp.base.records import Document
from cdp.synthesis.templates.phrases import (
    DATA,
    FINITE_VERBS,
    FUNCTION_WORDS,
    PLAIN_VERBS,
    content,
    noun_phrases,
    plain,
    plain_title,
    read_sentences,
    word_list,
)

# Words of a text to ask for, to quote where there is no other, of a statement as it stands, of a title that is a name.
SHORTEST, LONGEST, LONGEST_QUOTED, LONGEST_STATEMENT, LONGEST_NAME = 5, 26, 40, 18, 6
# Points for a sentence, a format and words used before.
SAME_SOURCE, SAME_FORMAT, SAME_WORDS = 1.5, 1.0, 4.0
# Least specificity of a claim, and of a noun phrase that is no name; telling words of a scene.
SPECIFIC, ALONE, LEAST_EVENT = 1.5, 3.0, 3
# A story has no figures, few names, and a share of persons among its words: less under a title in small letters.
LEAST_PERSONS, LEAST_UNDER_SMALL, MOST_NAMES, SHORTEST_STORY = 0.03, 0.005, 0.08, 20

_ROLES, _THINGS, _GENERIC = word_list("roles"), word_list("things"), word_list("generic", "calendar")
_UNCLEAR = word_list("referring", "speakers")
_PRONOUNS = word_list("personal") | _UNCLEAR | {"his", "her", "its", "their"}
_AUXILIARIES = word_list("auxiliaries") | {"has", "have", "had", "does", "did"}
_ARTICLES = frozenset({"the", "a", "an"})
_RELATIVE = frozenset({"that", "which", "who", "he", "she", "they", "we", "i"})
_TYING = word_list("connectives")
_NOT_FIRST = _TYING | word_list("conjunctions", "pointing", "exclamations", "not_first") | PLAIN_VERBS | _AUXILIARIES
_NOT_LAST = word_list("not_last", "determiners", "prepositions", "conjunctions", "auxiliaries")
# "changes", "results" may be nouns.
_FINITE = _AUXILIARIES | (FINITE_VERBS - word_list("generic", "vague_heads", "nouns"))
_QUOTATIONS = ('Where can I read "{s}"?', 'Which text says "{s}"?')
# Written small before a name too, unlike "new" in "New Delhi".
_QUANTITIES = frozenset({"some", "many", "most", "all", "both", "each"})
_OPENERS = word_list("determiners", "prepositions", "pronouns") | _QUANTITIES | {"like"}
_PATTERNS = {name: re.compile("|".join(parts)) for name, parts in DATA["patterns"].items()}
# A heading in capitals, "However, ", "Historically, ".
_OPENING = re.compile(
    rf"^(?:[A-Z]{{4,}}:? (?=[A-Z\d])|(?i:{'|'.join(word_list('connectives'))}|\w+ly), |(?i:and|but|so|then|now|yet) )+"
)
_DEFINITE = re.compile(r"\bthe (\w+)(?! (?:of|in|for|that|which|who)\b)")
# A sentence about the title: what comes between (dates, other names), the verb and the rest.
_ABOUT = r"(?P<inner> \([^)]*\))?(?:, [^,]{2,60},)? (?P<verb>is|was|are|were) (?P<rest>(?P<article>an?|the|\w+) .+)$"


class Target(NamedTuple):
    """One thing to ask for in several wordings; ``source`` is the index of the sentence that answers it, a higher score
    reads better."""

    format: str
    score: float
    source: int
    texts: list[str]


class Material:
    """The parts of a document that queries are built from. ``name`` is its title, where that is no sentence or label;
    ``subject`` the same within a sentence; ``statements`` {index: text} are the sentences that stand alone, of a story
    its scenes, to stand behind "in which"."""

    def __init__(self, document: Document) -> None:
        self.title = title = plain_title(document)
        self.sentences = read_sentences(document)
        # Words as they are written within sentences, not behind headings: they tell a name from a first word.
        pairs = (pair for sentence in self.sentences for pair in pairwise(sentence.split()))
        self.inner = Counter(word for before, word in pairs if not (len(before) > 3 and before.strip(":").isupper()))
        self.is_small = document.text.islower()
        self.is_story = 0 < len(title.split()) < LONGEST and _is_story(document.text, title)
        first, *rest = title.split() or [""]
        names = sum(word[:1].isupper() or word[:1].isdigit() or word in FUNCTION_WORDS for word in rest)
        is_name = len(rest) < 3 or (len(rest) < LONGEST_NAME and 2 * names >= len(rest))
        # "Finance" and "Prevention of malaria in travelers" are no names.
        if self.is_story:
            self.name = capwords(title) if title.islower() else title
        else:
            self.name = title if is_name and not title.islower() and telling(title) else ""
        lowers = self.inner[first.lower()] > self.inner[first] and not any(word[:1].isupper() for word in rest)
        self.subject = self.name[:1].lower() + self.name[1:] if lowers else self.name
        if self.name and 2 * document.text.count(f"the {self.name}") > document.text.count(self.name):
            self.subject = f"the {self.name}"
        texts = map(self._scene, self.sentences) if self.is_story else map(self._statement, self._resolved())
        self.statements = {index: text for index, text in enumerate(texts) if text}

    def specificity(self, text: str) -> float:
        """Return how much a text tells its document from others: points for names, numbers, long words, the title."""
        known = [word for word in text.split()[1:] if word.lower().strip(",") not in _GENERIC]
        names = sum(word[:1].isupper() or (word[:1].isdigit() and word.isalnum()) for word in known)
        long = sum(len(word) >= 8 or "-" in word for word in telling(text))
        topical = len(telling(text) & content(self.title))
        return 0.6 * min(names, 3) + 0.5 * min(long, 4) + 0.8 * min(topical, 2) + 0.2 * min(len(telling(text)), 5)

    def within(self, text: str) -> str:
        """Return a statement as it reads behind other words; "" where it is not sure how its first word is written."""
        first, space, rest = text.partition(" ")
        small, following = first.lower(), rest.partition(" ")[0]
        if self.name and text.startswith(f"{self.name} "):
            return self.subject + text[len(self.name) :]
        is_small = self.inner[small] > self.inner[first] and not following[:1].isupper()
        if is_small or small in (_OPENERS if following[:1].isupper() else FUNCTION_WORDS):
            return small + space + rest
        if "-" in first and not self.inner[first]:  # "Three-dimensional"
            return ""
        verb = following in _FINITE and not first.endswith("s") and following[-2:] not in ("es", "ls", "ts")
        return text if self.inner[first] or not first.istitle() or following.istitle() or verb else ""

    def claim(self, text: str, said: str, wording: str) -> str:
        """Return a statement in words that ask for its truth, behind the title where it does not name it."""
        asked = wording.format(s=said)
        named = not self.name or text.startswith(self.name)
        named = named or ((self.name in text or content(self.name) <= content(text)) and not _definite(text))
        return asked if named else f"{self.name}: {asked if asked.startswith('I ') else asked[:1].lower() + asked[1:]}"

    def _resolved(self) -> Iterator[str]:
        """Yield the sentences; "He", "She", "It" become the title while each sentence so far is about it."""
        about = bool(self.name)
        for sentence in self.sentences:
            first, _, rest = sentence.partition(" ")
            whose = first in ("His", "Her", "Its")
            stands_for = about and (whose or first in ("He", "She", "It")) and not sentence.startswith(self.name)
            stands_for = stands_for and not _PATTERNS["expletive"].match(sentence)
            yield f"{self.name}{'’s' if whose else ''} {rest}" if stands_for else sentence
            about = stands_for or (about and sentence.removeprefix("The ").startswith(self.name))

    def _statement(self, sentence: str) -> str:
        """Return a sentence that stands alone, without its full stop, headings and asides; "" for any other."""
        if (
            not sentence.endswith((".", '."', ".”"))
            or _PATTERNS["speech"].search(sentence)
            or (sentence[0].islower() and not self.is_small)
        ):
            return ""
        text = _PATTERNS["reported"].sub("", _OPENING.sub("", plain(sentence).rstrip(" .")))
        ends = [text[: end.start()] for end in _PATTERNS["clause_end"].finditer(text, 40)]
        text = next((end for end in (text, *reversed(ends)) if len(end.split()) <= LONGEST), "")
        first, *others = text.lower().split() or [""]
        names = bool(self.name) and text.startswith(self.name)
        # "The agreement" and "a version" are known by a name or number that follows, or by words of the title.
        near = [word[0].isupper() or (word[0].isdigit() and bool(self.name)) for word in text.split()[1:7]]
        shared = not content(text).isdisjoint(content(self.title)) if self.name else " of " in text[:50]
        known = self.is_story or any(near) or shared or first not in _ARTICLES | _QUANTITIES
        starts = (names or first not in _NOT_FIRST) and known and (self.name or not _definite(text))
        whole = starts and not first.endswith(("ing", "ly", "ed")) and _has_verb(others)
        # "The National Archives are the national archives of Namibia."
        repeated = sum(text.lower().split().count(word) > 1 for word in content(self.name))
        whole = whole and (self.is_story or repeated < 2)
        stands = whole and _stands(text.replace(self.name, "X") if self.name else text)
        return text[:1].upper() + text[1:] if stands else ""

    def _scene(self, sentence: str) -> str:
        """Return what a sentence of a story tells, or the line that it says; "" where it can be neither."""
        told = "" if _PATTERNS["quoted"].search(sentence) else self.within(self._statement(sentence))
        if len(telling(told)) >= LEAST_EVENT:
            return told
        someone, line = _line(sentence)
        return f'{"someone" if someone else "it"} says "{line}"' if line else ""


def _is_story(text: str, title: str) -> bool:
    words = re.findall(r"[\w’']+", text)
    persons = sum(word.lower() in {"he", "she", "him", "her", "his", "i", "you", "my"} for word in words)
    names = len(re.findall(r"(?<=[a-z,] )[A-Z]\w", text))
    few = names < MOST_NAMES * len(words) and not any(map(str.isdigit, text))
    least = LEAST_UNDER_SMALL if title.islower() and " " in title else LEAST_PERSONS  # "chats" is a label
    return few and len(words) >= SHORTEST_STORY and persons > least * len(words)


def telling(text: str) -> frozenset[str]:
    """Return the content words of a text that are no number, month or word of any document, such as "similar"."""
    return frozenset(word for word in content(text) if word not in _GENERIC and not word.isdigit())


def _has_verb(words: list[str]) -> bool:
    """Return True if one of these words is a verb with a subject: "cells divide", "the king called", "it is"."""
    after = [*words[1:], ""]
    return any(
        word in _FINITE or (len(word) > 3 and "-" not in word and word.endswith("ed") and before not in _ARTICLES)
        for before, word, behind in zip(["", *words], words, after, strict=False)
        # "indexes calculated on a monthly basis"
        if before not in _RELATIVE and (word in _FINITE or (behind not in ("by", "on", "as") and before[-1:] != ","))
    )


def _definite(text: str) -> bool:
    """Return True for "the ship", "the company": a thing or person that another sentence names."""
    return any(found[1] in _THINGS | _ROLES for found in _DEFINITE.finditer(text.lower()))


def _stands(text: str) -> bool:
    """Return True if a text has a query's length, no debris, a whole end, and no reference to another sentence. A
    pronoun behind the first words means something in the text."""
    text = re.sub(r"\b([A-Z]\w+) I\b", r"\1 1", text)  # "World War I"
    words = [word.strip(",'’") for word in text.lower().split()] or [""]
    clear = _UNCLEAR.isdisjoint(words) and _PRONOUNS.isdisjoint(words[:4])
    cut = words[-1] in _NOT_LAST or (words[-1].endswith("ed") and words[-2:-1] in (["a"], ["an"], ["the"]))
    return SHORTEST <= len(words) <= LONGEST and clear and not cut and not _PATTERNS["debris"].search(text)


def _line(sentence: str) -> tuple[bool, str]:
    """Return (whether somebody says it, a line to quote of a sentence, "" where none can be quoted)."""
    found = _PATTERNS["line"].search(sentence)
    line = _OPENING.sub("", " ".join(found[2].split())).rstrip(" ,-–—") if found else ""
    line = line[:1].upper() + line[1:]
    fits = SHORTEST < len(line.split()) <= LONGEST and len(telling(line)) >= LEAST_EVENT
    fits = fits and line.split()[0].lower().strip(",") not in _TYING
    whole = (
        line.rpartition(" ")[2].lower() not in _NOT_LAST
        and (line.count(",") < 3 or _has_verb(line.lower().split()))  # no list of names
        and not re.search(r"\b[A-Z]{2,}\b", line)
        and not _PATTERNS["debris"].search(line)
        and not _PATTERNS["quoted"].search(line)
    )
    return bool(found and found[1]), line if fits and whole else ""


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield a query on each target, in several formats, on sentences and in words little used so far; then others."""
    material = Material(document)
    left, asked = list(_targets(material, rng)), list[Target]()
    spent: Counter[str | int] = Counter()
    used: set[str] = set()

    def worth(target: Target) -> float:
        said = content(target.texts[0]) - content(material.name)
        repeated = SAME_WORDS * len(said & used) / max(1, len(said))
        return target.score - SAME_SOURCE * spent[target.source] - SAME_FORMAT * spent[target.format] - repeated

    while left:
        best = max(left, key=worth)
        left.remove(best)
        asked.append(best)
        spent.update((best.source, best.format))
        used |= content(best.texts[0])
        yield best.texts[0]
    for texts in zip_longest(*(target.texts[1:] for target in asked), fillvalue=""):
        yield from texts
    if not asked:
        yield from _little(material)


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield all wordings that ask for one thing of the document, then for the next."""
    material = Material(document)
    best_first = sorted(_targets(material, rng), key=lambda target: 0.05 * min(target.source, 10) - target.score)
    for target in sorted(best_first, key=lambda target: len(target.texts) == 1):
        yield from target.texts
    if not best_first:
        yield from _little(material)


def _targets(material: Material, rng: random.Random) -> Iterator[Target]:
    """Yield all that can be asked for, each in its wordings in another order."""
    if not material.name and not material.title.islower() and 0 < len(material.title.split()) <= LONGEST:
        yield Target("keyword", 2, -1, [material.title])  # of a paper
    for index, text in material.statements.items():
        if material.is_story:
            vague = len(_PRONOUNS & {*text.lower().split()}) + 2 * (" says " in text)
            texts = [wording.format(s=text, n=material.name) for wording in DATA["stories"]]
            yield Target("story", 2 + 0.15 * len(telling(text)) - 0.5 * vague, index, rng.sample(texts, len(texts)))
            continue
        said = material.within(text)
        texts = [material.claim(text, said, wording) for wording in DATA["confirmations"] if said]
        texts = texts or [f"{text}: true or false?", *(wording.format(s=text) for wording in _QUOTATIONS)]
        texts = rng.sample(texts, len(texts))
        texts.sort(key=lambda asked: "s it true" not in asked)  # what people ask most
        if len(text.split()) <= LONGEST_STATEMENT and (material.name in text or text.split()[1][:1].isupper()):
            texts.insert(rng.randint(0, 1), text)
        if (specificity := material.specificity(text)) >= SPECIFIC:
            yield Target("verify", 1.5 + 0.5 * specificity - 0.03 * len(text.split()), index, texts)
    for score, index, keyword, topic in _topics(material):
        texts = [wording.format(t=topic) for wording in DATA["inquiries"] if topic]
        texts = rng.sample(texts, len(texts))
        texts.insert(rng.randint(0, 1), keyword)
        yield Target("keyword", score, index, texts)
    yield from _about_title(material)


def _topics(material: Material) -> Iterator[tuple[float, int, str, str]]:
    """Yield (points, index of its sentence, noun phrase as a keyword query, what is asked for about it or "")."""
    named, name, seen = content(material.name), material.name, set[str]()
    for index, sentence in enumerate(map(plain, material.sentences)):
        for phrase in noun_phrases(sentence):
            text, said, score = phrase.text, telling(phrase.text), 0.6 * material.specificity(phrase.text)
            # "A member of the team" is anyone, "relative obscurity" anything.
            vague = phrase.article in ("a", "an") or " in the " in text or len(said) < 2
            vague |= len(text.split()) > LONGEST_NAME + 2 or not _PRONOUNS.isdisjoint(text.lower().split())
            if vague or not text[0].isalpha() or text in seen or _PATTERNS["debris"].search(text):
                continue
            seen.add(text)
            topic, chain = f"{phrase.article} {text}".strip(), phrase.article and (" of " in text or " in " in text)
            is_name = _is_name(text, sentence)
            if said & named or not named:
                about = not (named or is_name) and said.isdisjoint(content(material.title))
                if len(said - named) > 1 and score >= 0.6 * ALONE and (chain or is_name) and not about:
                    yield score, index, text, topic
            elif is_name and not material.is_story:
                whole = not material.subject[0].islower() or material.subject.startswith("the ")
                asked = f"the connection between {material.subject} and {topic}" if whole else ""
                yield score + 0.6, index, f"{name} and {topic}", asked


def _is_name(text: str, sentence: str) -> bool:
    """Return True for a name of several words that is whole in its sentence."""
    words = text.split()
    small = all(word[:1].isupper() or word in ("of", "the", "for", "and", "de") for word in words)
    before, behind = r"[A-Z][\w’'-]* (?:of|for|and|in|on|&) (?:the )?", r" (?:and |& |(?:for|of) (?:the )?)?[A-Z]"
    part = rf"{before}{re.escape(text)}|{re.escape(text)}{behind}"
    return small and sum(word[:1].isupper() for word in words) > 1 and not re.search(part, sentence)


def _about_title(material: Material) -> Iterator[Target]:
    """Yield the questions that a sentence answers which begins with the title."""
    subject = material.subject
    for index, sentence in enumerate(material.sentences if subject else ()):
        about = re.match(re.escape(material.name) + _ABOUT, plain(sentence, asides=True))
        if about is None:
            continue
        verb, rest, inner = about["verb"], plain(about["rest"]).rstrip(" ."), about["inner"] or ""
        described = _PATTERNS["head_end"].split(rest)[0].partition(" ")[2]
        is_noun, kind = about["article"] in ("a", "an", "the"), described.rpartition(" ")[2].lower()
        is_person = is_noun and (kind in _ROLES or "born" in inner)
        if is_person or (is_noun and kind in _THINGS):
            yield Target("what", 3.2, index, [f"{'Who' if is_person else 'What'} {verb} {subject}?"])
        if is_noun and " " in described and kind in _ROLES | _THINGS:
            yield Target("keyword", 2.5, index, [f"{material.name} {described}"])
        if is_person and _PATTERNS["born"].search(inner):
            yield Target("when", 3.5, index, [f"When was {subject} born?"])
        if is_person and _PATTERNS["died"].search(inner):
            yield Target("when", 3.5, index, [f"When did {subject} die?"])
        if (made := _PATTERNS["made_by"].match(rest)) and made["done"] in DATA["agents"]:
            yield Target("what", 3.8, index, [f"Who {DATA['agents'][made['done']]} {subject}?"])


def _little(material: Material) -> Iterator[str]:
    """Yield the few queries for a document without any target, such as a dialogue or a list."""
    texts = [text for text in material.sentences if text[-1:] == "."]
    texts = [text for text in texts if not (material.is_story and _PATTERNS["quoted"].search(text))]
    texts = [_OPENING.sub("", plain(text)).rstrip(" .") for text in texts]
    lines = {text[:1].upper() + text[1:] for text in texts if SHORTEST <= len(text.split()) <= LONGEST_QUOTED}
    lines = {line for line in lines if not _PATTERNS["debris"].search(line) and _has_verb(line.lower().split())}
    lines = {line for line in lines if len(telling(line)) >= LEAST_EVENT and line.split()[0].lower() not in _TYING}
    if material.is_story:
        lines |= {line for text in material.sentences if (line := _line(text)[1])}
    else:
        named = {line for line in lines if _PRONOUNS.isdisjoint(line.lower().split()[:4])}
        clear = {line for line in named if line.split()[0].lower() not in _NOT_FIRST and not _definite(line)}
        lines = clear or named or (set() if material.name else lines)
    for line in sorted(lines, key=lambda line: (len(line.split()) > LONGEST, -material.specificity(line), line))[:6]:
        yield from (material.claim(line, line, wording) for wording in _QUOTATIONS)
    if not lines:
        title = material.name or (material.title if " " in material.title else "")
        texts = [text for text in material.sentences if "=" not in text] or material.sentences  # headings
        whole = [text for text in texts if len(text.split()) >= SHORTEST] or [" ".join(texts)]
        quoted = " ".join(min(whole, key=len).rstrip(" .").split()[:LONGEST])
        yield from ([title] if title else (wording.format(s=quoted) for wording in _QUOTATIONS))
