"""CW(q) = |{w in words(q): w no stopword, |w| > 1}| (eq:cw_method), content words; stopword lists, weights with κ.

English follows the paper to within 1.3% on each of 15 query sets (``tests/complexity/test_paper_english.py``); the
tokenizers and lists of the six other languages give the CW ranges that the paper prints for MIRACL's training queries.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import ConfigError, InputError
from cdp.base.statistics import bootstrap_interval
from cdp.base.text import shown
from cdp.base.workspace import SHIPPED_DATA
from cdp.complexity.languages import WITHOUT_LIST, language_of, language_written, normalise

# The language's list as it was published.
STANDARD = "standard"

# The list without its question words, so that *pourquoi* or 为什么 count as content words.
QUESTION_WORDS_KEPT = "question-words-kept"

# How the name of a file with a list of one's own ends.
OWN_LIST = ".txt"

SHIPPED = SHIPPED_DATA / "stopwords"


def content_words(text: str, language: str = "en", *, stopwords: str = STANDARD) -> set[str]:
    """The content words of one text, lower-cased.

    ``language`` is an ISO 639-1 code, and that of the others around: a text in another script counts as
    ``language_written`` says; ``stopwords`` is the name of a list (``standard``, ``question-words-kept``) or the path
    of a file of one's own, a word per line. ConfigError for a language or list that does not exist.
    """
    return next(_content_words([text], language, stopwords))


def count_content_words(texts: Iterable[str], language: str = "en", *, stopwords: str = STANDARD) -> NDArray[np.int64]:
    """CW of each text: int64, shape (n_texts,). Arguments and errors as in ``content_words``."""
    if isinstance(texts, str):
        raise InputError("One text was given where many are counted.", hint="Put it into a list.")
    return np.fromiter(map(len, _content_words(texts, language, stopwords)), dtype=np.int64)


def _content_words(texts: Iterable[str], language: str, stopwords: str) -> Iterator[set[str]]:
    code = language_of(language).code
    stopword_list(code, stopwords)  # refused also where no text is
    for written_in, group in itertools.groupby(texts, partial(language_written, code)):
        entry = language_of(written_in)
        kept = written_in == code or stopwords in stopword_variants(written_in)
        stop = stopword_list(written_in, stopwords if kept else STANDARD)
        for words in (entry.content or entry.words)(group):
            distinct = set(words).difference(stop)
            yield {word for word in distinct if len(word) > 1}


# Beside CW: the length of a query and the rarity of its words among the others. Whether a gain goes with content words
# or with length alone is asked by weighting, or laying the axis, by these.
def lengths(texts: Sequence[str], language: str = "en") -> NDArray[np.float64]:
    """The number of words of each text in its language, stopwords and repetitions among them: shape (n_texts,)."""
    counts: list[int] = []
    for written_in, group in itertools.groupby(texts, partial(language_written, language)):
        counts += map(len, language_of(written_in).words(group))
    return np.array(counts, dtype=np.float64)


def rarity(texts: Sequence[str], language: str = "en") -> NDArray[np.float64]:
    """The mean of log2(n / n_w) over the content words w of each text, in bits: shape (n_texts,).

    n_w of the n texts have w (inverse document frequency, Spärck Jones 1972). 0 for a text without content words. It
    is a mean, so that longer queries have no more of it.
    """
    words = list(_content_words(texts, language, STANDARD))
    having = Counter(itertools.chain.from_iterable(words))
    bits = {word: np.log2(len(words) / n) for word, n in having.items()}

    means = np.zeros(len(words))
    for i, of_text in enumerate(words):
        if of_text:
            means[i] = np.mean([bits[word] for word in of_text])

    return means


def cw_weights(cw: ArrayLike, kappa: float = 100.0) -> NDArray[np.float64]:
    """w = min(CW, κ) / Σ min(CW, κ) · n over one batch: float64, shape (n,), mean 1.

    A batch without any content word gets equal weights. InputError for negative or non-finite CW, κ not
    above 0, or a sum too large for a number.
    """
    values = _values(cw, least=0)
    if not kappa > 0:
        raise InputError(f"κ must be above 0, not {kappa}.")
    capped = np.minimum(values, kappa)
    with np.errstate(over="ignore"):
        total = capped.sum()
    if not np.isfinite(total):
        raise InputError("CW add up to more than a number can hold.", hint="Choose a smaller κ.")
    return capped / total * len(capped) if total > 0 else np.ones_like(capped)


def stopword_list(language: str, variant: str = STANDARD) -> frozenset[str]:
    """The stopwords of a language by its ISO 639-1 code, or those of a file; ConfigError if there is no such list."""
    words = _standard(language)
    if variant == STANDARD:
        return words
    if variant.endswith(OWN_LIST):
        return _own(Path(variant))

    if variant != QUESTION_WORDS_KEPT:
        raise ConfigError(
            f"No stopword list is called {variant!r}.",
            hint=f"Choose {STANDARD} or {QUESTION_WORDS_KEPT}, or name a file of your own ({OWN_LIST}).",
        )

    if language not in variants_with_question_words():
        raise ConfigError(
            f"The question words of {language!r} are not set apart.",
            hint=f"They are for: {', '.join(variants_with_question_words())}.",
        )

    return words - _read(SHIPPED / "question_words" / f"{language}.txt")


def _own(path: Path) -> frozenset[str]:
    """The words of a file, one per line, as texts are normalised; ConfigError where it cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The stopword list {path} cannot be read.", hint="Give a UTF-8 file, a word per line."
        ) from error
    return frozenset(normalise(line.strip()) for line in lines) - {""}


def stopword_variants(language: str) -> tuple[str, ...]:
    """The lists that can be chosen for a language, the standard one first."""
    if language in variants_with_question_words():
        return STANDARD, QUESTION_WORDS_KEPT
    return (STANDARD,)


@lru_cache(maxsize=1)
def variants_with_question_words() -> tuple[str, ...]:
    """The languages whose list exists with and without question words."""
    return tuple(sorted(path.stem for path in (SHIPPED / "question_words").glob("*.txt")))


@lru_cache(maxsize=1)
def _shipped() -> frozenset[str]:
    """The languages whose list comes with CDP Studio."""
    return frozenset(path.stem for path in SHIPPED.glob("*.txt"))


@lru_cache(maxsize=64)
def _standard(language: str) -> frozenset[str]:
    if language in _shipped():
        return _read(SHIPPED / f"{language}.txt")
    if language in WITHOUT_LIST:
        return frozenset()
    import stopwordsiso

    if not stopwordsiso.has_lang(language):
        raise ConfigError(
            f"There is no stopword list for the language {shown(language)}.",
            hint=f"There are lists for: {', '.join(sorted(stopwordsiso.langs()))}.",
        )
    return frozenset(normalise(word.strip()) for word in stopwordsiso.stopwords(language)) - {""}


def _read(path: Path) -> frozenset[str]:
    return frozenset(path.read_text(encoding="utf-8").split("\n")) - {""}


# Below it the paper advises against diverse queries (tab:cw_threshold).
LOW = 7
# Above it the paper recommends them; from LOW to HIGH, both included, it says: test.
HIGH = 10


@dataclass(frozen=True, slots=True)
class CwProfile:
    """The distribution of CW over ``n`` queries. ``histogram[i]`` counts the queries with CW = i.

    ``below``, ``between`` and ``above`` are shares in [0, 1]: CW < 7, 7 ≤ CW ≤ 10, CW > 10. ``sd`` is the sample's
    standard deviation (0 for one query).
    """

    n: int
    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    sd: float
    minimum: int
    maximum: int
    histogram: tuple[int, ...]
    below: float
    between: float
    above: float
    interval: tuple[float, float]


def profile(cw: ArrayLike) -> CwProfile:
    """The profile of CW values of shape (n,), with the 95% bootstrap interval of their mean. InputError if empty."""
    values = _values(cw).astype(np.int64)
    lower, median, upper = np.percentile(values, [25, 50, 75])

    return CwProfile(
        n=len(values),
        mean=float(values.mean()),
        median=float(median),
        lower_quartile=float(lower),
        upper_quartile=float(upper),
        sd=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        minimum=int(values.min()),
        maximum=int(values.max()),
        histogram=tuple(np.bincount(values).tolist()),
        below=float((values < LOW).mean()),
        between=float(((values >= LOW) & (values <= HIGH)).mean()),
        above=float((values > HIGH).mean()),
        interval=cw_interval(values),
    )


def cw_interval(cw: ArrayLike, *, seed: int = 0) -> tuple[float, float]:
    """Bootstrap percentile interval of the mean CW, seeded. InputError if there are no values."""
    return bootstrap_interval(_values(cw), seed=seed)


def _values(cw: ArrayLike, least: int = 1) -> NDArray[np.float64]:
    values = np.asarray(cw, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"CW must be one number per query, not an array of shape {values.shape}.")
    if len(values) < least:
        raise InputError("There are no queries to profile.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("CW must be finite and not negative.")
    return values
