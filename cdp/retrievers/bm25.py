"""BM25 by the library bm25s, the lexical baseline: k1, b, stems, words per language, kept index.

Lucene's variant (Robertson et al. 1994; Kamphuis et al. 2020) with k1 = 0.9 and b = 0.4, the values of BEIR's and
Anserini's tables, over title and text. English words are lower-cased, freed of 33 stopwords and cut to their Snowball
stem; other languages use the words by which content words are counted (``cdp.complexity``), unstemmed, African
languages without their tone marks. As a retriever it is called ``bm25``, which takes the words of the benchmark's own
language, or ``bm25:<language>``.
"""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.base.errors import InputError, WorkspaceError
from cdp.base.locks import staging
from cdp.base.text import Progress, silent
from cdp.base.workspace import sha256_text
from cdp.complexity import content_words, language_of
from cdp.complexity.languages import WITHOUT_SPACES

if TYPE_CHECKING:
    from bm25s import BM25

NAME = "bm25"
TITLE = "BM25"

K1, B = 0.9, 0.4

_LEFT_OUT = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
# The 33 words that Lucene leaves out of English texts.
STOPWORDS = frozenset(_LEFT_OUT.split())

# Of how texts become terms: an index kept under another version is not used.
VERSION = "3"

_WORD = re.compile(r"\w+")


DOCUMENTS_A_LOOK, QUERIES_A_LOOK = 1000, 10


def title_in(language: str) -> str:
    """Return ``BM25``, ``BM25 (fr)`` in the words of another language than English."""
    return TITLE if language in ("", "en") else f"{TITLE} ({language})"


def language_in(retriever: str) -> str | None:
    """The language of ``bm25:<language>``, empty for ``bm25`` (the benchmark's own); None for any other retriever."""
    name, _, language = retriever.strip().partition(":")
    return language.strip().lower() if name.lower() == NAME else None


def english_terms(texts: Iterable[str]) -> Iterable[list[str]]:
    """Stems of the words of each text, stopwords left out, repeated as in the text."""
    try:
        Path.home()
    except RuntimeError:  # as in a container; nltk ends at import where it has no folder for its downloads
        os.environ.setdefault("NLTK_DATA", tempfile.gettempdir())
    from nltk.stem.snowball import SnowballStemmer

    stem = SnowballStemmer("english").stem
    stems: dict[str, str] = {}
    for text in texts:
        terms = []
        for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
            if word in STOPWORDS:
                continue
            stemmed = stems.get(word)
            if stemmed is None:
                stemmed = stems[word] = stem(word)
            terms.append(stemmed)
        yield terms


def check_language(language: str) -> None:
    """Raise ConfigError for a language without a word counter; empty (the benchmark's own) is valid."""
    if language:
        content_words("", language)


# Written with tone marks and dots below in books, and often without them in queries and on the web.
# Of 2,050 Yoruba news articles (MasakhaNEWS) their headlines find 86.2 NDCG@10 so, and 45.6 by plain words.
TONE_MARKED = frozenset(("bm", "ee", "ff", "ha", "ig", "lg", "ln", "tw", "wo", "yo"))
_MARKS = re.compile("[\u0300-\u036f]+")
# Characters of a term in languages without spaces between words.
GRAM = 3


def terms_of(texts: Iterable[str], language: str = "en") -> Iterable[list[str]]:
    """The terms of each text: words, and overlapping trigrams of characters where words have no spaces between them."""
    if language == "en":
        return english_terms(texts)
    if language in TONE_MARKED:
        texts = (_MARKS.sub("", unicodedata.normalize("NFD", text)) for text in texts)
    words = language_of(language).words(texts)
    return map(_grams, words) if language in WITHOUT_SPACES else words


def _grams(words: Sequence[str]) -> list[str]:
    return [word[i : i + GRAM] for word in words for i in range(max(1, len(word) - GRAM + 1))]


def _watched(items: Sequence[str], phase: str, interval: int, watch: Progress) -> Iterator[str]:
    """The items, with a call of ``watch`` before every so many."""
    for number, item in enumerate(items):
        if number % interval == 0:
            watch(phase, number, len(items))
        yield item


def index(documents: Sequence[str], language: str = "en", *, watch: Progress = silent) -> BM25:
    """Return a BM25 index of the documents, in their order. Raises InputError if none of them has a word."""
    from bm25s import BM25

    # Ids in place of words: the lists of a large corpus then share one integer per word.
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    terms = terms_of(_watched(documents, "indexing", DOCUMENTS_A_LOOK, watch), language)
    ids = [[numbers[term] for term in found] for found in terms]
    if not numbers:
        raise InputError("No document has a word that BM25 counts.", hint="Is the language that of the documents?")

    made = BM25(k1=K1, b=B, method="lucene")
    made.index((ids, dict(numbers)), show_progress=False)
    return made


def index_key(hash_of_texts: str, language: str) -> str:
    """The name under which the index of texts of that hash is kept: it covers all that determines the scores."""
    return f"{NAME}-{sha256_text(str(K1), str(B), language, VERSION, hash_of_texts)[:24]}"


def save_index(bm25: BM25, folder: Path) -> None:
    """Keep an index, whole or not at all. WorkspaceError where the disk refuses."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with staging(folder.parent) as staged:
            bm25.save(str(staged / folder.name), show_progress=False)
            (staged / folder.name).rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another process was faster, with the same index
            raise WorkspaceError.refused(folder, "written", error) from error


def load_index(folder: Path, n_documents: int) -> BM25 | None:
    """An index of so many documents that was kept; None if there is none, or it is damaged."""
    from bm25s import BM25

    if not folder.is_dir():
        return None
    try:
        # The settings are ours, not the folder's, which may come from elsewhere. Pickled arrays are refused by default.
        kept = BM25.load(
            str(folder), show_progress=False, k1=K1, b=B, method="lucene", backend="numpy", dtype="float32",
            int_dtype="int32",
        )  # fmt: skip
        return kept if _is_sound(kept, n_documents) else None
    except Exception:  # numpy raises almost anything for a damaged file, a MemoryError for a size that it only claims
        return None


def _is_sound(bm25: BM25, n_documents: int) -> bool:
    """Return True if each term leads to documents that there are: a matrix of columns of (document, score)."""
    data, documents, starts = (bm25.scores[name] for name in ("data", "indices", "indptr"))
    if data.dtype.kind != "f" or documents.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        return False
    flat = data.ndim == documents.ndim == starts.ndim == 1 and len(data) == len(documents)
    n = bm25.scores["num_docs"]
    if not flat or type(n) is not int or n != n_documents or not bm25.vocab_dict:
        return False

    columns = len(starts) - 1
    ends_meet = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(data) and (np.diff(starts) >= 0).all()
    in_range = not len(documents) or (documents.min() >= 0 and documents.max() < n_documents)
    # The library adds an empty term, which has no column and which no text has.
    numbers = [number for term, number in bm25.vocab_dict.items() if term]
    known = all(isinstance(number, int) and 0 <= number < columns for number in numbers)
    return bool(ends_meet and in_range and known)


def index_size(bm25: BM25) -> int:
    """The bytes that an index takes in memory, its vocabulary by estimate."""
    arrays = sum(bm25.scores[name].nbytes for name in ("data", "indices", "indptr"))
    return int(arrays) + 150 * len(bm25.vocab_dict)


def rank(
    bm25: Any,
    queries: Sequence[str],
    top_k: int,
    *,
    language: str = "en",
    exclude: Sequence[Sequence[int]] | None = None,
    watch: Progress = silent,
) -> tuple[np.ndarray, np.ndarray]:
    """(scores float32, document numbers int64), both (n_queries, top_k), best first, the lower number among equals.

    A document that shares no term with the query is not retrieved: such places hold -inf and -1.
    """
    scores = np.full((len(queries), top_k), -np.inf, np.float32)
    documents = np.full((len(queries), top_k), -1, np.int64)
    terms = terms_of(_watched(queries, "searching", QUERIES_A_LOOK, watch), language)
    for row, of_query in enumerate(terms):
        known_terms = [term for term in of_query if term in bm25.vocab_dict]
        if not known_terms:
            continue

        values = bm25.get_scores(known_terms)

        if exclude is not None:
            values[list(exclude[row])] = 0.0

        matched = np.flatnonzero(values > 0)
        if len(matched) > top_k:
            bar = np.partition(values[matched], len(matched) - top_k)[len(matched) - top_k]
            matched = matched[values[matched] >= bar]

        best = matched[np.argsort(-values[matched], kind="stable")][:top_k]
        scores[row, : len(best)], documents[row, : len(best)] = values[best], best

    return scores, documents
