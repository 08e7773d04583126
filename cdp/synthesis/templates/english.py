"""Diverse queries and paraphrases for an English document.

Few patterns, each certain: noun phrases and embedded questions as they stand in the text, sentences that stand alone,
and questions about the title where a sentence begins with it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from cdp.base.records import Document
from cdp.synthesis.templates.phrases import (
    DATA,
    FINITE_VERBS,
    FUNCTION_WORDS,
    PLAIN_VERBS,
    Phrase,
    content,
    noun_phrases,
    plain,
    plain_title,
    read_sentences,
    word_list,
)

# Words of a statement, of a title that is a name and not a sentence, and of "Is X a …?" after its verb.
SHORTEST, LONGEST, LONGEST_NAME, LONGEST_PREDICATE = 5, 24, 6, 14
# Points: for a sentence or a format used before, for words used before, and by which formats differ between documents.
SAME_SOURCE, SAME_FORMAT, SAME_WORDS, TASTE = 1.5, 1.0, 4.0, 1.5
FORMATS = ("what", "how", "why", "when", "keyword", "statement", "verify", "comparison")
# Least specificity of a query; of a noun phrase that needs no other beside it, and of the other.
SPECIFIC, ALONE, WEAK = 1.5, 3.0, 0.7
INQUIRIES: list[str] = DATA["inquiries"]

_ASKED, _ROLES, _THINGS, _LABELS = map(word_list, ("asked", "roles", "things", "section_labels"))
_CONNECTIVES, _GENERIC = word_list("connectives"), word_list("generic", "calendar")
_UNCLEAR = word_list("referring", "speakers")
_PRONOUNS = word_list("personal") | _UNCLEAR | {"his", "her", "its", "their"}
_NOT_FIRST = word_list("connectives", "conjunctions", "pointing", "exclamations") | PLAIN_VERBS
_NOT_LAST = word_list("not_last", "determiners", "prepositions", "conjunctions", "auxiliaries")
_FINITE = word_list("auxiliaries") | {"has", "have", "had", "does", "did"} | FINITE_VERBS
_DEBRIS = re.compile(
    r"https?:|www\.|&\w+;|\w- \w|[\[\]{}()<>|\\=_^~*#/@:;?!•…]|\.\.|\s[,.]|^\W|^0|[–—-]{2}|\s[–—-]|\bet al\b"
    r"|\b201(?:[89]s|[34]\d{3}|c\w|d)\b"  # quotation marks of a damaged encoding
    r"|\b(?:table|fig|figure|pages?|notes?|item|section) \d|\b(\w+) \1\b|(?:\b\w ){4}|\bof and\b"
    r"|\b(?:that|it|he|she|there|what|who)['’]s\b",
    re.IGNORECASE,
)
_SPEECH = re.compile(r"[,.?!][\"”’']|[\"“‘]\w+ \w+ \w+ \w+|[\"”’'] ?(?:said|says)\b")
# Where a sentence that is too long for a query may end.
_CLAUSE_END = re.compile(
    r"; |, (?:which|whereas|while|but|although|thereby|thus|suggesting|indicating|including|resulting|leading|with"
    r"|where|and (?:the|a|an|its|their|in|that|this|these|has|have|is|are|was|were)) "
)
_CONNECTED = re.compile(
    r"^(?:in (?:addition|contrast|particular|fact|general|conclusion|summary|turn|short|comparison)|for example"
    r"|for instance|as (?:a result|such|well|expected|predicted)|by contrast|of note|to (?:date|our)|on the other)\b",
    re.IGNORECASE,
)
# "We show that …": what follows is a sentence.
_REPORTED = re.compile(
    r"^(?:[\w ]{2,30}, )?(?:here |together )?(?:we|our \w+|these \w+|this \w+|(?:the )?(?:results|data|findings)) "
    r"(?:\w+ly |also |thus |here )?(?:show|find|found|demonstrate|report|conclude|suggest|indicate|reveal|propose"
    r"|observe|confirm|establish|imply)(?:s|d|ed)? that (?:, )?",
    re.IGNORECASE,
)
_EMBEDDED = re.compile(r"\b(how|why) ((?:the|an?|to|[a-z-]{3,}s) [^,;:.?!]{12,90}?)(?=[.;?]|$)")
_BETWEEN = re.compile(
    r"\b((?:differences?|comparison|relationship|association|interactions?|correlation|link) between "
    r"[^,;:.?!]{4,50} and [^,;:.?!]{4,50}?)(?=[.;,]|$| (?:is|are|was|were|in|has|have|for|at|that|which)\b)"
)
# A sentence about the title: what comes between (dates, other names), the verb and the rest.
_ABOUT = r"(?P<inner> \([^)]*\))?(?:, [^,]{2,60},)? (?P<verb>is|was|are|were) (?P<rest>(?P<article>an?|the|\w+) .+)$"
_DATE = r"(?:\d{1,2} [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2}, \d{4})"
_BORN, _DIED = re.compile(rf"\((?:born |b\. )?{_DATE}"), re.compile(rf"{_DATE}\s?[–-]\s?{_DATE}")
_MADE_BY = re.compile(r"^(?:(?:an?|the) (?:[\w'’-]+ ){1,6}?)?(?P<done>\w+)(?: and \w+)? by (?:the )?[A-Z]")
_HEAD_END = re.compile(
    r",| (?:of|in|on|at|for|from|with|that|which|who|by|and|best|known|made|built|written|set|held|\w+ed)\b"
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w-]+(?: (?:(?:of|the|at|de|van|von) ){0,2}[A-Z][\w-]+)+\b(?! ?[^\x00-\x7f])")


class Option(NamedTuple):
    """One possible query; ``source`` is the index of the sentence that answers it, a higher score reads better."""

    format: str
    text: str
    source: int
    score: float


class Material:
    """The parts of a document that queries are built from. ``name`` is its title, where that is no sentence or label;
    ``statements`` {index: text} are the sentences that stand alone, ``phrases`` [(index, phrase)] the noun phrases."""

    def __init__(self, document: Document) -> None:
        self.title = plain_title(document)
        self.sentences = read_sentences(document)
        # Words as they are written within sentences: they tell a name from the beginning of a sentence.
        self.inner = Counter(word for sentence in self.sentences for word in sentence.split()[1:])
        # One word that the text never says is a label, such as "finance".
        label = self.title.islower() and " " not in self.title and not content(self.title) & content(document.text)
        self.name = "" if label or len(self.title.split()) > LONGEST_NAME else self.title
        first, *rest = self.name.split() or [""]
        lowers = self.inner[first.lower()] > self.inner[first] and not any(word[:1].isupper() for word in rest)
        self.subject = self.name[:1].lower() + self.name[1:] if lowers else self.name

        texts = ((index, self._statement(sentence)) for index, sentence in enumerate(self.sentences))
        self.statements = {index: text for index, text in texts if text}
        found: dict[str, tuple[int, Phrase]] = {}
        for index, sentence in enumerate(self.sentences):
            for phrase in noun_phrases(plain(sentence)):
                if not _DEBRIS.search(phrase.text) and _PRONOUNS.isdisjoint(phrase.text.lower().split()):
                    found.setdefault(phrase.text.lower(), (index, phrase))
        self.phrases = list(found.values())

    def specificity(self, text: str) -> float:
        """Return how much a text tells its document from others: points for names, numbers, long words, the title."""
        words = telling(text)
        known = [word for word in text.split()[1:] if word.lower().strip(",") not in _GENERIC]
        names = sum(word[:1].isupper() or (word[:1].isdigit() and word.isalnum()) for word in known)
        long = sum(len(word) >= 8 or "-" in word for word in words)
        topical = len(words & content(self.title))
        return 0.6 * min(names, 3) + 0.5 * min(long, 4) + 0.8 * min(topical, 2) + 0.2 * min(len(words), 5)

    def within(self, text: str) -> str:
        """Return a statement as it reads behind other words; "" where it is not sure how its first word is written."""
        first, space, rest = text.partition(" ")
        if self.name and text.startswith(f"{self.name}: "):
            return ""
        if self.name and text.startswith(f"{self.name} "):
            return self.subject + text[len(self.name) :]
        if first.lower() in FUNCTION_WORDS or self.inner[first.lower()] > self.inner[first]:
            return first.lower() + space + rest
        named = rest[:1].isupper() and rest[1:2].islower()
        return text if named or not first.istitle() or self.inner[first] else ""

    def _statement(self, sentence: str) -> str:
        """Return a sentence that stands alone, without its full stop, headings and asides; "" for any other."""
        if not sentence.endswith((".", '."', ".”")) or _SPEECH.search(sentence) or sentence[0].islower():
            return ""
        tokens = plain(sentence).rstrip(" .").split()
        while len(tokens) > 1 and (
            (tokens[0].lower().strip(":") in _LABELS and (tokens[0].isupper() or tokens[1] in ("The", "We", "In", "A")))
            or (tokens[0].endswith(",") and tokens[0][:-1].lower() in _CONNECTIVES)
        ):
            tokens = tokens[1:]
        text = _REPORTED.sub("", " ".join(tokens))
        if len(text.split()) > LONGEST and (end := _CLAUSE_END.search(text, 40)):
            text = text[: end.start()]
        first, *others = text.lower().split() or [""]
        about = bool(self.name) and text.startswith(f"{self.name} ")
        # "The album …" means the title's, and so needs it.
        vague = first in ("the", "each", "both") and not content(text) & content(self.title)
        lead = f"{self.name}: " if vague and self.name else ""
        alone = lead or not vague or any(word[:1].isupper() for word in text.split()[1:])
        whole = first not in _NOT_FIRST and not first.endswith(("ing", "ly")) and not _CONNECTED.match(text)
        fits = alone and whole and not _FINITE.isdisjoint(others) and _stands(text, pronouns=about)
        return lead + text[:1].upper() + text[1:] if fits else ""


def telling(text: str) -> frozenset[str]:
    """Return the content words of a text that are no number, month or word of any document, such as "similar"."""
    return frozenset(word for word in content(text) if word not in _GENERIC and not word.isdigit())


def _stands(text: str, *, pronouns: bool = False) -> bool:
    """Return True if a text has a query's length, no debris, a whole end, and no reference to another sentence."""
    words = [word.strip(",'’") for word in text.lower().split()]
    clear = (_UNCLEAR if pronouns else _PRONOUNS).isdisjoint(words)
    cut = words[-1] in _NOT_LAST or (words[-1].endswith("ed") and words[-2:-1] in (["a"], ["an"], ["the"]))
    return SHORTEST <= len(words) <= LONGEST and clear and not cut and not _DEBRIS.search(text)


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield queries in several formats, each on a sentence and in words little used so far."""
    material = Material(document)
    taste = {name: rng.uniform(0, TASTE) for name in FORMATS}
    options = [*_about_title(material), *_sentences(material), *_keywords(material)]
    sources: Counter[int] = Counter()
    formats: Counter[str] = Counter()
    used: set[str] = set()

    def worth(option: Option) -> float:
        said = content(option.text) - content(material.name)
        repeated = len(said & used) / max(1, len(said))
        spent = SAME_SOURCE * sources[option.source] + SAME_FORMAT * formats[option.format] + SAME_WORDS * repeated
        return option.score + taste[option.format] - spent

    while options:
        best = max(options, key=worth)
        options.remove(best)
        sources[best.source] += 1
        formats[best.format] += 1
        used |= content(best.text)
        yield best.text
    topics = [topic for *_, topic in _topics(material) if topic]
    yield from (wording.format(t=topic) for wording, topic in zip(rng.sample(INQUIRIES, 20), topics, strict=False))
    yield from paraphrases(document, rng)


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield twenty wordings that ask for one thing of the document, then for the next."""
    material = Material(document)
    inquiries, confirmations = rng.sample(INQUIRIES, 20), rng.sample(DATA["confirmations"], 20)
    topics = sorted(_topics(material), key=lambda found: 0.05 * min(found[1], 10) - found[0])
    for *_, topic in topics[:20]:
        yield from (wording.format(t=topic) for wording in inquiries if topic)
    for text in sorted(material.statements.values(), key=material.specificity, reverse=True):
        yield from (text, f"{text}, is that true?", f"{text}: true or false?")
        if said := material.within(text):
            yield from (wording.format(s=said) for wording in confirmations)
    # Of a dialogue or a list: its sentences beside the title, those with a pronoun last.
    sentences = sorted(material.sentences, key=lambda text: not _PRONOUNS.isdisjoint(text.lower().split()))
    texts = [" ".join(plain(text).rstrip(" .").split()[:LONGEST]) for text in sentences]
    texts = [text if content(text) & content(material.name) else f"{material.name}: {text}" for text in texts]
    texts = [text.strip(" :") for text in texts or [material.title]]
    yield from (*texts, *(f"{text}: true or false?" for text in texts if len(text.split()) >= SHORTEST))


def _topics(material: Material) -> Iterator[tuple[float, int, str, str]]:
    """Yield (points, index of its sentence, noun phrase as a keyword query or "", the same within a sentence or "").

    It stands beside the title, where that is a name, and one that tells little beside the next one."""
    named, name, subject = content(material.name), material.name, material.subject
    kept: list[tuple[float, int, Phrase]] = []
    for index, phrase in material.phrases:
        said, score = telling(phrase.text), material.specificity(phrase.text)
        single = " " not in phrase.text and phrase.text.islower()
        # One word behind no article may be an adjective; behind another it tells too little.
        bare = single and phrase.article != "the" and not phrase.text.endswith("s")
        # One that repeats the title must say two words more.
        repeats = said & named or (single and any(word[:4] == phrase.text[:4] for word in named))
        if not said or bare or (repeats and len(said - named) < 2):
            continue
        topic = f"{phrase.article} {phrase.text}".strip()
        if repeats:
            yield score, index, phrase.text, topic
        elif score >= ALONE:
            yield score + 0.5, index, f"{name} {phrase.text}".strip(), f"{subject} and {topic}" if named else topic
        elif named or (score >= WEAK and len(said) > 1):
            if kept and not telling(kept[0][2].text) & said:
                other, _, first = kept.pop()
                keyword, before = f"{first.text} and {phrase.text}", f"{first.article} {first.text}".strip()
                topic = f"{subject}, {before} and {topic}" if named else f"{before} and {topic}"
                yield 0.7 * (score + other) + 0.5 * bool(named), index, f"{name} {keyword}".strip(), topic
            elif not kept:
                kept = [(score, index, phrase)]
    for score, index, phrase in kept if named else ():
        # "Teacher emphasis" is no query, "Tell me about teacher and the emphasis" is.
        keyword = f"{name} {phrase.text}" if " " in phrase.text else ""
        topic = "" if phrase.article in ("a", "an") else f"{phrase.article} {phrase.text}".strip()
        yield score, index, keyword, topic and f"{subject} and {topic}"


def _keywords(material: Material) -> Iterator[Option]:
    """Yield noun phrases and names, beside the title where they do not name it, and questions for what some are."""
    for score, index, keyword, _ in _topics(material):
        if keyword:
            yield Option("keyword", keyword, index, 0.6 * score)
    for index, phrase in material.phrases:
        score = material.specificity(phrase.text)
        if phrase.article == "the" and phrase.head in _ASKED and " of " in phrase.text and score > 1.5:
            verb = "are" if phrase.head.endswith("s") and not phrase.head.endswith("sis") else "is"
            yield Option("what", f"What {verb} the {phrase.text}?", index, 1 + 0.6 * score)
    named = {
        name: index
        for index, sentence in enumerate(material.sentences if material.name else ())
        for name in _NAME.findall(plain(sentence))
        if telling(name)
        and name.split()[-1].lower() not in _NOT_LAST
        and not content(name) & content(material.name)
        and not _DEBRIS.search(name)
    }
    for one, two in zip_longest([*named][::2], [*named][1::2]):
        yield Option("keyword", f"{material.name} {one}{f' and {two}' if two else ''}", named[one], 1.5 + bool(two))


def _sentences(material: Material) -> Iterator[Option]:
    """Yield sentences that stand alone, also as questions; within others "how …", "why …", "difference between …"."""
    title = material.title
    if LONGEST_NAME < len(title.split()) <= LONGEST and not _DEBRIS.search(title.replace(":", "")):
        yield Option("statement", title, -1, 2)
    for index, text in material.statements.items():
        # A short statement leaves more to find out than a sentence word by word.
        if (specificity := material.specificity(text)) < SPECIFIC:
            continue
        score = 0.5 * specificity - 0.05 * len(text.split())
        yield Option("statement", text, index, 2 + score)
        if said := material.within(text):
            yield Option("verify", f"Is it true that {said}?", index, score)
    for index, sentence in enumerate(map(plain, material.sentences)):
        for match in (*_EMBEDDED.finditer(sentence), *_BETWEEN.finditer(sentence)):
            text, score = match[0], material.specificity(match[0])
            if _stands(text) and score >= SPECIFIC:
                kind = match[1] if match[1] in FORMATS else "comparison"
                yield Option(kind, text, index, 2 + 0.5 * score)


def _about_title(material: Material) -> Iterator[Option]:
    """Yield the questions that a sentence answers which begins with the title."""
    subject = material.subject
    for index, sentence in enumerate(material.sentences if subject else ()):
        about = re.match(re.escape(material.name) + _ABOUT, plain(sentence, asides=True))
        if about is None:
            continue
        verb, rest, inner = about["verb"], plain(about["rest"]).rstrip(" ."), about["inner"] or ""
        described = _HEAD_END.split(rest)[0].partition(" ")[2]
        is_noun, kind = about["article"] in ("a", "an", "the"), described.rpartition(" ")[2].lower()
        is_person = is_noun and (kind in _ROLES or "born" in inner)
        if is_person or (is_noun and kind in _THINGS):
            yield Option("what", f"{'Who' if is_person else 'What'} {verb} {subject}?", index, 3.2)
            if " " in described:
                yield Option("keyword", f"{material.name} {described}", index, 2.5)
        if is_person and _BORN.search(inner):
            yield Option("when", f"When was {subject} born?", index, 3.5)
        if is_person and _DIED.search(inner):
            yield Option("when", f"When did {subject} die?", index, 3.5)
        if (made := _MADE_BY.match(rest)) and made["done"] in DATA["agents"]:
            yield Option("what", f"Who {DATA['agents'][made['done']]} {subject}?", index, 3.8)
        if is_noun and len(rest.split()) <= LONGEST_PREDICATE and index in material.statements:
            yield Option("verify", f"{verb.capitalize()} {subject} {rest}?", index, 3)
