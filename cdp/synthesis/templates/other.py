"""Queries for documents that are not English: whole clauses and names of the document itself, without grammar rules.

A statement is a sentence, or its first clauses up to a comma, never cut within one. A name is a run of words beside
the title. Sentences that refer back to another come last, beside the title.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import zip_longest

from cdp.base.records import Document
from cdp.base.workspace import SHIPPED_DATA
from cdp.complexity import language_of, stopword_list
from cdp.corpus import languages
from cdp.synthesis.templates.phrases import balanced, plain, plain_title, read_sentences

_WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
_KANA = re.compile(r"[\u3041-\u309f]")
_CLAUSE_END = re.compile(r"[、，；;：:]|,(?=\s)|،|\s[—–-](?=\s)")
_END = " 。！？.!?؟۔।、，,،;:；：—–-"
# Characters of Chinese and Japanese, words of other languages, in a statement.
LONGEST_WIDE, SHORTEST_WIDE = 100, 6
LONGEST, SHORTEST = 30, 4
LONGEST_TITLE_WIDE, LONGEST_TITLE = 30, 8

_KANJI_RUN = re.compile(r"[\u4e00-\u9fff々〆ヶ]{2,8}|[\u30a0-\u30ffー・]{3,14}|[A-Za-z0-9][A-Za-z0-9.-]+")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_KOREAN_VERB_ENDINGS = ("다", "며", "고", "여", "서")

# First words of a sentence that refers to the one before, from ``data/words/pointing.txt``: a line per script.
_POINTING_LINES = (SHIPPED_DATA / "words" / "pointing.txt").read_text(encoding="utf-8").splitlines()
_POINTING, _POINTING_WIDE = frozenset(" ".join(_POINTING_LINES[:-1]).split()), tuple(_POINTING_LINES[-1].split())
_FUNCTION_WORDS = frozenset(
    word for group in languages.FUNCTION_WORDS.values() for words in group.values() for word in words
)


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield alternately a statement and a name of each sentence, sentence after sentence, then the rest of each."""
    title = plain_title(document)
    per_sentence = [_from_sentence(sentence, title) for sentence in _sentences(document)]
    for turn in range(max(map(len, per_sentence), default=0)):
        for index, options in enumerate(per_sentence):
            at = (turn + index) % 2 if turn < 2 and len(options) > 1 else turn
            if at < len(options):
                yield options[at]
    yield from _last_resort(document, title)


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield one sentence's content in several extracts: whole, its clauses beside the title, its names."""
    title = plain_title(document)
    # A sentence that names the title comes first.
    ordered = sorted(_sentences(document), key=lambda text: not title or title.casefold() not in text.casefold())
    for sentence in [*ordered[:1], *(text for text in _sentences(document) if text != ordered[0])]:
        names = _names(sentence, title)
        beside = [_beside(title, " ".join(names[at : at + 2])) for at in range(min(len(names), 3))]
        for part, name in zip_longest(_statements(sentence), beside):
            yield from (text for text in (part, _beside(title, part or ""), name) if text and text != title)
    yield from _last_resort(document, title)


def _sentences(document: Document) -> list[str]:
    """Return the sentences without markup; those that refer back, and overlong ones, come last."""
    clean = [text for sentence in read_sentences(document) if (text := plain(sentence).strip(_END))]
    return sorted(clean, key=lambda text: (_points_back(text), _size(text) > _longest(text)))


def _longest(text: str) -> int:
    return LONGEST_WIDE if _WIDE.search(text) else LONGEST


def _size(text: str) -> int:
    """Return the characters of Chinese and Japanese, the words of anything else."""
    return len(text) if _WIDE.search(text) else len(text.split())


def _points_back(sentence: str) -> bool:
    if _WIDE.search(sentence[:4]):
        return sentence.startswith(_POINTING_WIDE)
    first = sentence.split(None, 1)[0].casefold().strip(",،")
    return first in _POINTING or first.partition("'")[0] in ("c", "qu")


def _from_sentence(sentence: str, title: str) -> list[str]:
    """Return a statement, a name beside the title, further clauses and further names of one sentence."""
    statements = _statements(sentence)
    if _points_back(sentence) or _KANA.search(sentence):  # Japanese omits a known subject
        statements = [_beside(title, statement) for statement in statements]
    runs = _names(sentence, title)
    names = [_beside(title, " ".join(runs[at : at + 2])) for at in range(0, len(runs), 2)]
    return [*statements[:1], *names[:1], *statements[1:], *names[1:3]]


def _beside(title: str, text: str) -> str:
    """Return the text behind the title, unless it names the title already or the title is as long as a query."""
    longest = LONGEST_TITLE_WIDE if _WIDE.search(title) else LONGEST_TITLE
    if not text or not title or title.casefold() in text.casefold() or _size(title) > longest:
        return text
    return f"{title} {text}"


def _statements(sentence: str) -> list[str]:
    """Return the sentence, or its first clauses if it is too long for a query, then each further clause."""
    longest, shortest = (LONGEST_WIDE, SHORTEST_WIDE) if _WIDE.search(sentence) else (LONGEST, SHORTEST)
    marks = list(_CLAUSE_END.finditer(sentence))
    ends = [*(match.start() for match in marks), len(sentence)]
    fitting = [text for end in ends if shortest <= _size(text := sentence[:end]) <= longest and balanced(text)]
    clauses = [sentence[match.end() : end].strip() for match, end in zip(marks, ends[1:], strict=True)]
    further = [text for text in clauses if shortest + 2 <= _size(text) <= longest and _stands_alone(text)]
    return [text.strip(_END) for text in [*fitting[-1:], *further[:4]]]


def _stands_alone(clause: str) -> bool:
    """Return True if a further clause is balanced and begins with no word that ties it to the one before."""
    if _KANA.search(clause) or not balanced(clause):  # a Japanese clause within a sentence is incomplete
        return False
    return not _points_back(clause) and clause.split(None, 1)[0].casefold() not in _FUNCTION_WORDS


def _names(sentence: str, title: str, *, any_run: bool = False) -> list[str]:
    """Return the runs of words that the title does not hold, best first: names, then long ones."""
    if not _WIDE.search(sentence):
        runs = _spaced_runs(sentence)
    elif _KANA.search(sentence):
        runs = _KANJI_RUN.findall(sentence)
    else:
        stop = stopword_list("zh")
        runs = [word for word in next(language_of("zh").words([sentence])) if len(word) > 1 and word not in stop]
    folded_title = title.casefold()
    runs = [
        run
        for run in dict.fromkeys(runs)
        if any(c.isalpha() for c in run) and not any(word in folded_title for word in run.casefold().split())
    ]
    if not any_run and any(character.isupper() for character in sentence):  # a script with capitals: names have one
        runs = [run for run in runs if _capitals(run)]
    return sorted(runs, key=lambda run: (-_capitals(run), -min(len(run), 24)))


def _spaced_runs(sentence: str) -> list[str]:
    """Return runs of up to three words that are no function words and, in Korean, no verbs."""
    runs: list[list[str]] = [[]]
    for match in _WORD.finditer(sentence):
        word, end = re.sub(r"^\w{1,2}['’]", "", match[0]), sentence[match.end() : match.end() + 1]
        if word.casefold() in _FUNCTION_WORDS | _POINTING or len(word) < 2 or word.endswith(_KOREAN_VERB_ENDINGS):
            runs.append([])
            continue
        runs[-1].append(word)
        if end != " " or len(runs[-1]) == 3:
            runs.append([])
    texts = [" ".join(run) for run in runs]
    return [text for text in texts if len(text) > 3 and (" " in text or text[:1].isupper() or len(text) > 6)]


def _capitals(run: str) -> int:
    """Return 2 if every word begins with a capital letter, 1 if one does or holds a digit, else 0."""
    capitals = [word[:1].isupper() or word.startswith("ال") for word in run.split()]
    return 2 if all(capitals) else 1 if any(capitals) or any(c.isdigit() for c in run) else 0


def _last_resort(document: Document, title: str) -> Iterator[str]:
    """Yield the document's own words, cut between two of them; the bare title only if there is nothing else."""
    text = " ".join(map(plain, read_sentences(document))).strip(_END) or plain(document.text[:LONGEST_WIDE]).strip(_END)
    spaced = " ".join(text.split()[:LONGEST]).strip(_END)
    start = spaced if len(spaced) <= 200 else text[:LONGEST_WIDE].strip(_END)
    yield start
    yield _beside(title, start)
    parts = [part.strip(_END) for part in _CLAUSE_END.split(text)]
    yield from (_beside(title, " ".join(part.split()[:LONGEST])[:200]) for part in parts if len(part) > 3)
    for sentence in _sentences(document):
        runs = _names(sentence, title, any_run=True)
        yield from (_beside(title, run) for run in runs)
        yield from (" ".join(runs[at : at + 2]) for at in range(len(runs) - 1))
    if not start:
        yield title
