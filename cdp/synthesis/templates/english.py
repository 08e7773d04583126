"""Queries by rule for English: claims, who and what questions, quotations, keywords; order and what is left out.

Few patterns, each certain: a sentence that begins with the title is a claim to check, and gives who and what to ask
for; any other whole sentence is looked for by its words, behind the title; the title stands beside a name of the text.
Of a paper, sentences and keywords are queries as they are. A document that gives little gets few, in several wordings.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, zip_longest
from string import capwords

from cdp.base.records import Document
from cdp.base.text import capital
from cdp.synthesis.sentences import (
    DATA,
    FINITE_VERBS,
    FUNCTION_WORDS,
    PLAIN_VERBS,
    content,
    plain,
    plain_title,
    read_sentences,
    word_list,
    words,
)

# Words of a query, of a claim or title, of a quotation, of a statement as it stands, of a title that is a name, of a
# noun phrase, of a document that is a query by itself; telling words.
SHORTEST, LONGEST, LONGEST_QUOTED, LONGEST_STATEMENT = 5, 28, 40, 18
LONGEST_NAME, LONGEST_PHRASE, MAX_WORDS, LEAST_TELLING = 6, 4, 8, 3
# A story has no figures, few names, and a share of persons among its words: less under a title in small letters.
LEAST_PERSONS, LEAST_UNDER_SMALL, MAX_NAMES, SHORTEST_STORY = 0.03, 0.005, 0.08, 20

_ROLES, _THINGS, _GENERIC = word_list("roles"), word_list("things"), word_list("generic", "calendar")
_UNCLEAR = word_list("referring", "speakers")
_PRONOUNS = word_list("personal") | _UNCLEAR | {"his", "her", "its", "their"}
_AUXILIARIES = word_list("auxiliaries") | {"has", "have", "had", "does", "did"}
_ARTICLES = frozenset({"the", "a", "an"})
_RELATIVE = frozenset({"that", "which", "who", "whom", "he", "she", "they", "we", "i"})
_NOT_FIRST = PLAIN_VERBS | _AUXILIARIES | word_list("connectives", "conjunctions", "pointing", "not_first")
_NOT_LAST = word_list("not_last", "determiners", "prepositions", "conjunctions", "auxiliaries")
# "changes", "results" may be nouns.
_FINITE = _AUXILIARIES | (FINITE_VERBS - word_list("generic", "nouns"))
# None of them is a word of a noun phrase.
_NO_NOUNS = FUNCTION_WORDS | _FINITE | PLAIN_VERBS | _GENERIC
_PATTERNS = {name: re.compile("|".join(parts)) for name, parts in DATA["patterns"].items()}
# A heading before a sentence, "However, ", "Historically, ".
_OPENING = re.compile(
    rf"^(?:{DATA['headings']}:? (?=[A-Z\d])|(?i:{'|'.join(word_list('connectives'))}|\w+ly), "
    r"|(?i:and|but|so|then|now|yet) )+"
)
_DEFINITE = re.compile(r"\bthe (\w+)(?:['’]s)?\b(?! (?:of|in|for|that|which|who)\b)")
# A sentence about the title: what comes between (dates, other names), the verb and the rest.
_ABOUT = (
    r"(?P<lead>(?:The|An?) )?(?i:{name})(?P<inner> \([^)]*\))?(?:, [^,]{{2,60}},)? (?P<verb>is|was|are|were) "
    r"(?P<rest>(?P<article>an?|the|\w+) .+)$"
)


class Material:
    """The parts of a document that queries are built from. ``name`` is its title, where that is no sentence or label;
    ``subject`` the same within a sentence; ``claims`` and ``quotations`` are its whole sentences, those about the title
    and others, the most telling ones first."""

    def __init__(self, document: Document) -> None:
        self.title = title = plain_title(document)
        # "Kiss (band)" is no answer to what Kiss is, and "Kiss" no query for it.
        self.is_ambiguous = "(" in document.title
        self.full_title = plain(document.title.translate(str.maketrans("()_", "   "))).strip(" .?!,;:")
        self.sentences = read_sentences(document)
        self.is_story = 0 < len(title.split()) < LONGEST and _is_story(document.text, title)
        # "finance" says what kind of text it is, "snail rose tree" has lost words.
        self.is_label = title.islower() and not self.is_story
        self.name = self._name_in(title)
        self.is_paper = not self.name and not self.is_story and _is_papers(title)
        self._inner = Counter(word for sentence in self.sentences for word in sentence.split()[1:])
        self.subject = self._subject_in(document.text)

        whole = list(filter(None, map(self._whole, self.sentences)))
        if not whole and self.name:  # behind the title "It was built by these" is of use
            whole = list(filter(None, (self._whole(sentence, strict=False) for sentence in self.sentences)))

        whole.sort(key=self._worth, reverse=True)
        self.claims: list[str] = []
        self.quotations: list[str] = []
        for text in whole:
            if self._is_claim(text):
                self.claims.append(text)
            else:
                self.quotations.append(text)

    def _name_in(self, title: str) -> str:
        """Return the title as a name; empty for one that is a sentence or a label."""
        _, *rest = title.split() or [""]
        if self.is_story:
            if title.islower() and len(rest) > 1 and FUNCTION_WORDS.isdisjoint(title.split()):
                return ""
            return capwords(title) if title.islower() else title

        if self.is_label or not telling(title) or _PATTERNS["no_name"].search(title):
            return ""

        names = sum(word[:1].isupper() or word[:1].isdigit() or word in FUNCTION_WORDS for word in rest)
        is_name = len(rest) < 3 or (len(rest) < LONGEST_NAME and 2 * names >= len(rest))
        return title if is_name else ""

    def _subject_in(self, text: str) -> str:
        """Return the name as it reads within a sentence."""
        if self.name and 2 * text.count(f"the {self.name}") > text.count(self.name):
            return f"the {self.name}"

        first, *rest = self.title.split() or [""]
        if self._lowers(first) and not any(word[:1].isupper() for word in rest):
            return self.name[:1].lower() + self.name[1:]
        return self.name

    def _worth(self, text: str) -> float:
        """Return how surely a text tells its document from others: by telling words, names and numbers."""
        known = sum(word[:1].isupper() or word.isdigit() for word in text.split()[1:])
        vague = len(_PRONOUNS & {*text.lower().split()}) + (len(text.split()) > LONGEST)
        return 0.2 * min(len(telling(text)), 10) + 0.3 * min(known, 3) - 0.5 * vague

    def _whole(self, sentence: str, strict: bool = True) -> str:
        """Return a sentence that stands alone or behind the title, without its full stop, headings and asides; of a
        story also a line that it says; "" for any other. ``strict``: it may not go on from another sentence."""
        if self.is_story and _PATTERNS["quoted"].search(sentence):
            return _line(sentence)
        if not sentence.endswith((".", '."', ".”")) or _PATTERNS["speech"].search(sentence):
            return ""

        text = _PATTERNS["reported"].sub("", _OPENING.sub("", plain(sentence).rstrip(" .")))
        lowered = [word.strip(",'’") for word in text.lower().split()] or [""]
        named = bool(self.name) and text.startswith(self.name)
        cut = lowered[-1] in _NOT_LAST or (lowered[-1].endswith("ed") and lowered[-2:-1] in (["a"], ["an"], ["the"]))
        fits = SHORTEST <= len(lowered) <= LONGEST_QUOTED and len(telling(text)) >= LEAST_TELLING and not cut
        # A pronoun behind the first words means something in the text, "the ship" behind a title.
        starts = named or (lowered[0] not in _NOT_FIRST and _PRONOUNS.isdisjoint(lowered[:4]))
        clear = self.is_story or (_UNCLEAR.isdisjoint(lowered) and bool(self.name or not _definite(text)))

        if self.is_label:  # a name or number tells it from others
            clear = clear and bool(re.search(r"\s[A-Z\d]", text))

        shown = re.sub(r"\b([A-Z]\w+) I\b", r"\1 1", text.replace(self.name or "\n", "X"))  # "World War I"

        fits = fits and _has_verb(lowered[1:], named) and not _PATTERNS["debris"].search(shown)
        if fits and ((starts and clear) or not strict):
            return capital(text)

        return _line(sentence) if self.is_story else ""

    def _is_claim(self, text: str) -> bool:
        """Return True for a sentence that begins with the title and names all that it is about."""
        # "The National Archives are the national archives of Namibia."
        repeated = sum(text.lower().split().count(word) > 1 for word in content(self.name))
        named = bool(self.said(text)) and len(text.split()) <= LONGEST
        return named and not self.is_story and repeated < 2 and not _definite(text)

    def said(self, text: str) -> str:
        """Return a sentence that begins with the title as it reads behind other words: "the Nile flows"; else ""."""
        if not self.name:
            return ""

        found = re.match(rf"((?:The|An?) )?{re.escape(self.name)}(?= )", text, re.IGNORECASE)
        if found is None:
            return ""

        lead = self.subject
        if article := found[1]:
            lead = article.lower() + found[0][len(article) :]
        return lead + text[found.end() :]

    def _lowers(self, word: str) -> bool:
        """Return True for a sentence's first word that has a small letter elsewhere in the text."""
        return self._inner[word.lower()] > self._inner[word]

    def asked(self, text: str, wording: str) -> str:
        """Return a sentence in a wording, or as it is where it is not certain how it begins within another."""
        first = text.split()[0]
        if first.lower() in FUNCTION_WORDS or self._lowers(first):
            return wording.format(s=text[:1].lower() + text[1:])
        if first[1:].islower():
            return text

        return wording.format(s=text)


def _is_papers(title: str) -> bool:
    """Return True for the title of a paper: a whole phrase that tells it from others."""
    phrase = title.replace(": ", " ")
    damaged = _PATTERNS["debris"].search(phrase) or len(phrase.split()) > LONGEST
    return title[:1].isupper() and not damaged and len(telling(phrase)) >= LEAST_TELLING


def _is_story(text: str, title: str) -> bool:
    said = re.findall(r"[\w’']+", text)
    persons = sum(word.lower() in {"he", "she", "him", "her", "his", "i", "you", "my"} for word in said)
    names = len(re.findall(r"(?<=[a-z,] )[A-Z]\w", text))
    few = names < MAX_NAMES * len(said) and not any(map(str.isdigit, text)) and not text.startswith(title)
    least = LEAST_UNDER_SMALL if title.islower() and " " in title else LEAST_PERSONS  # "chats" is a label
    return few and len(said) >= SHORTEST_STORY and persons > least * len(said)


def telling(text: str) -> frozenset[str]:
    """Return the content words of a text that are no number, month or word of any document, such as "similar"."""
    return frozenset(word for word in content(text) if word not in _GENERIC and not word.isdigit())


def _has_verb(lowered: list[str], named: bool) -> bool:
    """Return True if one of these words is a verb with a subject: "cells divide", "the king called", "it is".

    ``named``: a name stands before them, so a verb in "ed" is no participle."""
    for before, word, behind in zip(["", *lowered], lowered, [*lowered[1:], ""], strict=False):
        if before in _RELATIVE:
            continue
        if word in _FINITE:
            return True

        past = len(word) > 3 and "-" not in word and word.endswith("ed") and before not in _ARTICLES
        # "indexes calculated on a monthly basis", "payments related to acquisitions"
        participle = behind in ("by", "on", "as", "to", "with") or before.endswith(",")
        if past and (named or not participle):
            return True

    return False


def _definite(text: str) -> bool:
    """Return True for "the ship", "the company": a thing or person that another sentence names."""
    return not (_THINGS | _ROLES).isdisjoint(_DEFINITE.findall(text.lower()))


def _line(sentence: str) -> str:
    """Return the line to quote of a sentence in which somebody speaks; "" where none is whole."""
    found = _PATTERNS["line"].search(sentence)
    if found is None:
        return ""

    line = _OPENING.sub("", " ".join(found[2].split())).rstrip(" ,-–—")
    first, *others = line.lower().split() or [""]
    if not SHORTEST <= len(others) < LONGEST or len(telling(line)) < LEAST_TELLING:
        return ""

    cut = first.strip(",") in word_list("connectives") or others[-1] in _NOT_LAST
    names = line.count(",") >= 3 and not _has_verb([first, *others], False)
    debris = re.search(r"\b[A-Z]{2,}\b", line) or _PATTERNS["debris"].search(line) or _PATTERNS["quoted"].search(line)
    if cut or names or debris:
        return ""

    return capital(line)


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield one query for each claim, question and quotation in turn; then their other wordings, keywords early."""
    material = Material(document)
    if material.is_paper:
        yield from _of_paper(material, rng)

    about: _Asked = (([text], []) for text in _about_title(material))
    kinds = [_claims(material, rng), about, _quotations(material, rng)]
    asked = []
    for texts, keywords in chain.from_iterable(zip_longest(*kinds, fillvalue=([], []))):
        at = rng.randint(0, 1)
        asked.append([*texts[:at], *keywords, *texts[at:]])

    if not any(asked):
        asked = [_little(material)]
    yield from chain.from_iterable(zip_longest(*asked, fillvalue=""))


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield all wordings that ask for one sentence of the document, then for the next."""
    material = Material(document)
    asked = chain(_titles(material), _claims(material, rng), _quotations(material, rng))
    found = [*chain.from_iterable(texts + keywords for texts, keywords in asked), *_about_title(material)]
    yield from found or _little(material)


def _of_paper(material: Material, rng: random.Random) -> Iterator[str]:
    """Yield in turn a sentence of a paper, every second as a question, and keywords of two others; then the title.

    Short and of several kinds, as people search for papers; quotations have twenty words on average.
    """
    whole = sorted(material.quotations, key=lambda text: len(text.split()) > LONGEST_STATEMENT)
    told = [text[1:] for text in whole[:2]]
    others = [text for text in map(plain, material.sentences) if not any(part in text for part in told)]
    drawn = rng.sample(others, len(others))
    keywords = list(filter(None, map(_keywords_of, drawn)))
    # First those that share a word with the title.
    keywords.sort(key=lambda text: content(text).isdisjoint(content(material.title)))

    whole[1::2] = [material.asked(text, rng.choice(DATA["confirmations"])) for text in whole[1::2]]
    yield from chain.from_iterable(zip_longest(whole, keywords[::2], keywords[1::2], fillvalue=""))
    yield material.title


# Each query's wordings, and its keywords.
_Asked = Iterator[tuple[list[str], list[str]]]


def _claims(material: Material, rng: random.Random) -> _Asked:
    """Yield each claim: its wordings in a drawn order, and its keywords."""
    for text in material.claims:
        texts = [wording.format(s=material.said(text)) for wording in _drawn("confirmations", rng)]
        if len(text.split()) <= LONGEST_STATEMENT:
            texts.insert(rng.randint(0, 1), text)
        yield texts, _names(material, text)


def _titles(material: Material) -> _Asked:
    """Yield the title of a paper in its wordings."""
    if material.is_paper:
        yield [material.title, *(wording.format(s=material.title) for wording in DATA["titles"])], []


def _quotations(material: Material, rng: random.Random) -> _Asked:
    """Yield each quotation: its wordings in a drawn order, and its keywords."""
    name, kind = material.name, "quotations"
    if material.is_story:
        kind = "stories" if name else "stories_without_name"

    for text in material.quotations:
        texts = [wording.format(s=text, n=name) for wording in _drawn(kind, rng)]
        if name and not material.is_story and name not in text:
            texts = [f"{name}: {_small(asked)}" for asked in texts]
        yield texts, _names(material, text)


def _small(text: str) -> str:
    """Return a sentence as it reads behind a colon; "I am looking" keeps its capital."""
    if text.startswith("I "):
        return text
    return text[:1].lower() + text[1:]


def _drawn(kind: str, rng: random.Random) -> list[str]:
    return rng.sample(DATA[kind], len(DATA[kind]))


def _names(material: Material, text: str) -> list[str]:
    """Return the title beside a name of the text, as a keyword query; none where there is no such name."""
    name = material.name
    if material.is_story or "." in name or not 0 < len(name.split()) < LONGEST_NAME:
        return []

    for known in _PATTERNS["known"].findall(text):
        if content(known).isdisjoint(content(name)):
            return [f"{name} {known}"]

    return []


def _keywords_of(text: str) -> str:
    """Return the two longest noun phrases of a sentence in its order, as a keyword query; "" where it has no two."""
    phrases: list[list[str]] = [[]]
    text = _OPENING.sub("", text)
    for word in re.sub(r"[^\w'’–-]+(?= |$)|(?<= )[^\w ]+", " , ", text).split():
        if word.lower() in _NO_NOUNS or _PATTERNS["no_noun"].search(word):
            phrases.append([])
        else:
            phrases[-1].append(word)

    phrases = [phrase[-LONGEST_PHRASE:] for phrase in phrases if len(phrase) > 1]
    first, *others = sorted(phrases, key=len, reverse=True) or [[]]
    second = next((phrase for phrase in others if set(phrase).isdisjoint(first)), None)
    if second is None:
        return ""

    chosen = [phrase for phrase in phrases if phrase in (first, second)]
    return " ".join(chain.from_iterable(chosen))


def _about_title(material: Material) -> Iterator[str]:
    """Yield the questions that a sentence answers which begins with the title."""
    if not material.name or material.is_story or material.is_ambiguous:
        return

    for sentence in material.sentences:
        about = re.match(_ABOUT.format(name=re.escape(material.name)), plain(sentence, asides=True))
        if about is None:
            continue

        subject = material.subject
        if lead := about["lead"]:
            subject = lead.lower() + subject.removeprefix("the ")

        verb, rest, inner = about["verb"], plain(about["rest"]).rstrip(" ."), about["inner"] or ""
        described = _PATTERNS["head_end"].split(rest)[0].partition(" ")[2]
        is_noun, kind = about["article"] in ("a", "an", "the"), described.rpartition(" ")[2].lower()
        is_person = is_noun and (kind in _ROLES or "born" in inner)

        if (made := _PATTERNS["made_by"].match(rest)) and made["done"] in DATA["agents"]:
            yield f"Who {DATA['agents'][made['done']]} {subject}?"
        if is_person:
            yield f"Who {verb} {subject}?"
        elif is_noun and kind in _THINGS:
            yield f"What {verb} {subject}?"
        if is_person and _PATTERNS["born"].search(inner):
            yield f"When was {subject} born?"
        if is_person and _PATTERNS["died"].search(inner):
            yield f"When did {subject} die?"

        known = content(described) & content(subject)
        if is_noun and " " in described and kind in _ROLES | _THINGS and not known:
            yield f"{material.name} {described}"


def _little(material: Material) -> list[str]:
    """Return the title, or all words of a very short document, where there is no whole sentence."""
    title = material.full_title
    if material.is_label:
        title = ""
    if material.is_story:
        title = material.name

    few = words(" ".join(material.sentences))
    if not title and len(few) <= MAX_WORDS:
        return [" ".join(few)]
    return [title]
