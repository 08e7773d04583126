"""Queries for documents that are not English: whole clauses and names of the document itself, no rule of grammar.

Honest extracts: a sentence as it stands, or its first clauses up to a comma, never cut within one; and a name or noun
phrase of a sentence beside the title. A sentence that begins by pointing back comes last, beside the title.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import zip_longest

from cdp.base.records import Document
from cdp.complexity import language_of, stopword_list
from cdp.corpus import languages
from cdp.synthesis.templates.clauses import MOST_CHARACTERS
from cdp.synthesis.templates.phrases import balanced, plain, sentences

_WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
_KANA = re.compile(r"[\u3041-\u309f]")
_CLAUSE_END = re.compile(r"[、，；;：:]|,(?=\s)|،|\s[—–-](?=\s)")
_END = " 。！？.!?؟۔।、，,،;:；：—–-"
LONGEST_WIDE, SHORTEST_WIDE = 100, 6
# Characters of Chinese and Japanese, words of other languages, that a statement has.
LONGEST, SHORTEST = 30, 4

_KANJI_RUN = re.compile(r"[\u4e00-\u9fff々〆ヶ]{2,8}|[\u30a0-\u30ffー・]{3,14}|[A-Za-z0-9][A-Za-z0-9.-]+")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")

# First words of a sentence that only the one before explains.
POINTING = {
    "fr": "il elle ils elles ce cet cette ces cela ceci celui celle son sa ses leur leurs on nous je ainsi mais et or "
    "donc car puis cependant toutefois enfin ensuite alors y en lui",
    "ru": "он она оно они это этот эта эти его её ее их такой также однако но и а там тогда затем поэтому кроме при",
    "ar": "هو هي هم هذا هذه ذلك تلك كما وقد لكن ولكن ثم وهو وهي وكان وكانت",
    "ko": "그는 그녀는 그들은 이는 이것은 그것은 그러나 하지만 그리고 또한 이 그 이후 따라서 당시",
    "wide": "また この その これ それ しかし そして さらに なお ただし 彼 他 她 "
    "它 这 這 此 该 該 其 但 而 同 因此 所以 然而 また、",
}
_POINTING = frozenset(word for words in POINTING.values() for word in words.split())
_POINTING_WIDE = tuple(POINTING["wide"].split())
_FUNCTION_WORDS = frozenset(
    word for group in languages.FUNCTION_WORDS.values() for words in group.values() for word in words
)


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """By turns a statement and a name of each sentence, sentence after sentence, then what is left of each."""
    title = _title(document)
    per_sentence = [_from_sentence(sentence, title) for sentence in _sentences(document)]
    for turn in range(max(map(len, per_sentence), default=0)):
        for index, options in enumerate(per_sentence):
            at = (turn + index) % 2 if turn < 2 and len(options) > 1 else turn
            if at < len(options):
                yield options[at]
    yield from _last_resort(document, title)


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """What one sentence says, in several extracts: whole, its first clause beside the title, its names."""
    title = _title(document)
    split = _sentences(document)
    main = next((sentence for sentence in split if title and title.casefold() in sentence.casefold()), None)
    ordered = [main, *(sentence for sentence in split if sentence != main)] if main else split
    for sentence in ordered:
        parts = _statements(sentence)
        names = _names(sentence, title)
        for part, name in zip_longest(
            parts, [_beside(title, " ".join(names[at : at + 2])) for at in range(min(len(names), 3))]
        ):
            yield from (text for text in (part, _beside(title, part or ""), name) if text and text != title)
    yield from _last_resort(document, title)


def _title(document: Document) -> str:
    return plain(document.title[:MOST_CHARACTERS].replace("_", " ")).strip(_END)


def _sentences(document: Document) -> list[str]:
    """The sentences without markup; those that point back to another come last."""
    split = sentences(document.text[:MOST_CHARACTERS])
    if len(document.text) > MOST_CHARACTERS and len(split) > 1:
        split.pop()  # cut somewhere
    clean = [text for sentence in split if (text := plain(sentence).strip(_END))]
    return sorted(clean, key=lambda text: (_points_back(text), _size(text) > _longest(text)))


def _longest(text: str) -> int:
    return LONGEST_WIDE if _WIDE.search(text) else LONGEST


def _points_back(sentence: str) -> bool:
    if _WIDE.search(sentence[:4]):
        return sentence.startswith(_POINTING_WIDE)
    first = sentence.split(None, 1)[0].casefold().strip(",،")
    return first in _POINTING or first.partition("'")[0] in ("c", "qu")


def _from_sentence(sentence: str, title: str) -> list[str]:
    """A statement, then names beside the title, then further clauses, from one sentence."""
    statements = _statements(sentence)
    if _points_back(sentence) or _KANA.search(sentence):  # Japanese leaves out a subject that is known
        statements = [_beside(title, statement) for statement in statements]
    runs = _names(sentence, title)
    names = [_beside(title, " ".join(runs[at : at + 2])) for at in range(0, len(runs), 2)]
    return [*statements[:1], *names[:1], *statements[1:], *names[1:3]]


def _beside(title: str, text: str) -> str:
    """The text behind the title, unless it names it already or is a whole query's length without it."""
    if (
        not text
        or not title
        or title.casefold() in text.casefold()
        or _size(title) > (30 if _WIDE.search(title) else 8)
    ):
        return text
    return f"{title} {text}"


def _statements(sentence: str) -> list[str]:
    """The sentence if it is no longer than a query, else its first clauses; then each further clause of some length."""
    longest, shortest = (LONGEST_WIDE, SHORTEST_WIDE) if _WIDE.search(sentence) else (LONGEST, SHORTEST)
    ends = [match.start() for match in _CLAUSE_END.finditer(sentence)]
    whole = [sentence[:end] for end in [*ends, len(sentence)]]
    fitting = [text for text in whole if shortest <= _size(text) <= longest and balanced(text)]
    starts = [0, *(match.end() for match in _CLAUSE_END.finditer(sentence))]
    clauses = [sentence[start:end].strip() for start, end in zip(starts, [*ends, len(sentence)], strict=True)]
    further = [text for text in clauses[1:] if shortest + 2 <= _size(text) <= longest and _stands(text)]
    return [text.strip(_END) for text in [*fitting[-1:], *further[:4]]]


def _stands(clause: str) -> bool:
    """Whether a further clause is balanced and begins with no word that ties it to the one before."""
    if _KANA.search(clause) or not balanced(clause):  # a Japanese clause within a sentence ends in mid-air
        return False
    return not _points_back(clause) and clause.split(None, 1)[0].casefold() not in _FUNCTION_WORDS


def _size(text: str) -> int:
    """Characters of Chinese and Japanese, words of anything else."""
    return len(text) if _WIDE.search(text) else len(text.split())


def _names(sentence: str, title: str, *, any_run: bool = False) -> list[str]:
    """The most telling runs of words, best first: names, then long ones; none that the title holds already."""
    if _WIDE.search(sentence):
        runs = _KANJI_RUN.findall(sentence) if _KANA.search(sentence) else _chinese_words(sentence)
    else:
        runs = _spaced_runs(sentence)
    folded_title = title.casefold()
    runs = [
        run
        for run in dict.fromkeys(runs)
        if any(c.isalpha() for c in run) and not any(word in folded_title for word in run.casefold().split())
    ]
    if not any_run and any(character.isupper() for character in sentence):  # a script with capitals: names have one
        runs = [run for run in runs if _is_name(run)]
    return sorted(runs, key=lambda run: (-_is_name(run), -min(len(run), 24)))


def _chinese_words(sentence: str) -> list[str]:
    """Words of two characters or more that are no stopwords, by jieba."""
    stop = stopword_list("zh")
    return [word for word in next(language_of("zh").words([sentence])) if len(word) > 1 and word not in stop]


def _spaced_runs(sentence: str) -> list[str]:
    """Runs of up to three words that are no function words and, in Korean, no verbs."""
    runs: list[list[str]] = [[]]
    for match in _WORD.finditer(sentence):
        word, end = re.sub(r"^\w{1,2}['’]", "", match[0]), sentence[match.end() : match.end() + 1]
        if (
            word.casefold() in _FUNCTION_WORDS | _POINTING
            or len(word) < 2
            or word.endswith(("다", "며", "고", "여", "서"))
        ):
            runs.append([])
            continue
        runs[-1].append(word)
        if end != " " or len(runs[-1]) == 3:
            runs.append([])
    return [
        text for run in runs if len(text := " ".join(run)) > 3 and (len(run) > 1 or text[:1].isupper() or len(text) > 6)
    ]


def _is_name(run: str) -> int:
    """2 where each word begins with a capital letter, 1 where one does or a figure stands in it, else 0."""
    capitals = [word[:1].isupper() or word.startswith("ال") for word in run.split()]
    return 2 if all(capitals) else 1 if any(capitals) or any(c.isdigit() for c in run) else 0


def _last_resort(document: Document, title: str) -> Iterator[str]:
    """The document's own words, cut between two of them, for one that gives nothing better; the bare title, which the
    other passages of it would get too, only where there is nothing else."""
    text = plain(document.text[:MOST_CHARACTERS]).strip(_END)
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
