"""The measures of query sets: definition and range; the words of a query (tokens) as they count them.

Adding one is adding a file that declares a ``Measure``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cdp.base.errors import InputError
from cdp.base.registry import Registered, Registry
from cdp.complexity.languages import UNSPACED, combining_marks

# Queries as callers give them: of one document (texts) or of several (lists of texts).
Queries = Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Measure(Registered):
    """One measure of a query set; ``help`` is its definition.

    ``better`` is "higher" or "lower" (empty: neither), ``low`` and ``high`` its range. ``needs`` says what must be
    there besides the queries: "", "human queries", "a cross-encoder" …; ``model_based`` measures are computed by a job,
    the others at once.

    ``of_document`` gives the value of one document from its first M queries and its human ones (none where there are
    none), NaN where the measure is not defined. It is averaged over documents at each M, beside the quick measures. The
    built-in ones have none: they share their passes over tokens and embeddings.
    """

    better: str
    low: float
    high: float
    needs: str = ""
    model_based: bool = False
    of_document: Callable[[Sequence[str], Sequence[str]], float] | None = None


def by_document(queries: Queries) -> list[Sequence[str]]:
    """The queries of each document; InputError if texts and lists are mixed or a bare text is given."""
    if isinstance(queries, str):
        raise InputError("One text was given where the queries of a document are expected.", hint="Put it into a list.")

    texts: list[str] = []
    documents: list[Sequence[str]] = []
    for item in queries:
        if isinstance(item, str):
            texts.append(item)
        else:
            documents.append(item)

    if texts and documents:
        raise InputError(
            "Texts and lists of texts are mixed.", hint="Give the queries of one document, or one list per document."
        )
    return [texts] if texts else documents


def aligned(synthetic: Queries, human: Queries) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Synthetic and human queries of the same documents; a document without queries on either side is left out.

    InputError if the two sides do not hold the same number of documents, or no document has queries on both.
    """
    left, right = by_document(synthetic), by_document(human)
    if len(left) != len(right):
        raise InputError(f"There are synthetic queries for {len(left)} documents and human ones for {len(right)}.")
    pairs = [(s, h) for s, h in zip(left, right, strict=True) if len(s) and len(h)]
    if not pairs:
        raise InputError("No document has both synthetic and human queries, so there is nothing to compare.")
    return pairs


MEASURES: Registry[Measure] = Registry("measure", Measure, __name__)


_HAS_UNSPACED = re.compile(f"[{UNSPACED}]").search
_ASCII = re.compile(r"\w+|[^\w\s]").findall
_ALPHANUMERIC = re.compile(r"[^\W_]").search


@lru_cache(maxsize=2)
def _tokens(unspaced: bool) -> re.Pattern[str]:
    """Return what a token is; ``unspaced``: in a text that holds a script without spaces."""
    marks = combining_marks()
    words = rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\w{marks}])+" if unspaced else rf"[\w{marks}]+"
    return re.compile(rf"{words}|[^\w\s{marks}]")


def tokens(text: str) -> list[str]:
    """The tokens of a query: what Self-BLEU compares. Lower-cased words and punctuation marks; single characters in
    scripts written without spaces. The paper does not say how it cut; a hyphenated word is three."""
    if text.isascii():
        return _ASCII(text.lower())
    text = unicodedata.normalize("NFC", text).lower()
    return _tokens(_HAS_UNSPACED(text) is not None).findall(text)


def word_count(text: str) -> int:
    """How many words a query has: its tokens that are not punctuation. What Len-Sim compares."""
    return len(list(filter(_ALPHANUMERIC, tokens(text))))
