"""Exact MaxSim (late interaction, ColBERT) over token vectors: best of all documents, or of candidates; matched tokens.

The score of a document is the sum, over the query's token vectors, of the largest dot product with a token vector of
the document (Khattab and Zaharia 2020), computed exactly and rounded to float32. As in ``exact_search``, products are
float32, their rounding error has a bound, and what the bound cannot tell apart is computed again in float64. Documents
of equal score stand in ascending order of their index. Documents are read a few at a time, as float16 or float32, so
memory does not grow with them.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cdp.base.errors import ConfigError, InputError
from cdp.base.text import PhaseProgress, silent
from cdp.retrievers.exact_search import (
    LARGEST_SQUARE,
    SINGLE_THREADED,
    Best,
    Rows,
    blas_threads,
    one_blas_thread,
    squares,
    thread_pool,
)

# Token vectors of documents per product, and of queries: the product (2 MB) is looked at in the cache.
DOCUMENT_TOKENS, QUERY_TOKENS = 1024, 512

# Below so many token vectors of queries each document is multiplied alone, and first: a thin product is as fast so, and
# still in the cache when its highest values are looked for.
FEW_TOKENS = 128

# Token vectors that are widened and multiplied at once for candidates of one query: they stay in the nearest caches.
GATHERED = 240

# Numbers that torch converts without waking its other threads, which would wait for each other.
ONE_THREAD = 1 << 15

# Documents between two looks at the floors.
DOCUMENTS_AT_ONCE = 256

# Queries whose candidates are kept together: a candidate's query is sorted as 16 bits.
QUERIES_AT_ONCE = 1024


class TokenVectors:
    """The token vectors of texts: those of one text follow each other, the texts too.

    ``values`` (n_tokens, dim) float16 or float32, one array, a memory map or a sequence of them; ``lengths`` (n_texts,)
    says how many token vectors each text has. InputError where they do not fit.
    """

    def __init__(self, values: Any, lengths: Any) -> None:
        self.rows = Rows(values)
        self.starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])
        self.longest: float | None = None  # the highest norm of a token vector, where it was looked for
        self._longest_of: np.ndarray | None = None
        self._tensors: list[Any] | None = None

        if (np.diff(self.starts) < 0).any() or self.starts[-1] != len(self.rows):
            raise InputError(f"{len(self.rows)} token vectors do not fit lengths that add up to {self.starts[-1]}.")

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def dim(self) -> int:
        return self.rows.dim

    def of(self, start: int, stop: int) -> np.ndarray:
        """The token vectors of the texts ``start`` … stop-1, float32."""
        place = slice(int(self.starts[start]), int(self.starts[stop]))
        if self.longest is not None:
            return np.asarray(self.rows.parts[0][place])

        return widened(self.rows.slice(place.start, place.stop))

    def at(self, chosen: np.ndarray) -> np.ndarray:
        """The token vectors of the texts ``chosen``, which ascend, float32."""
        first, last = int(chosen[0]), int(chosen[-1])
        if last - first == len(chosen) - 1:
            return self.of(first, last + 1)

        places = zip(self.starts[chosen].tolist(), self.starts[chosen + 1].tolist(), strict=True)
        if len(self.rows.parts) == 1:
            values = self.rows.parts[0]
            return widened(np.concatenate([values[start:stop] for start, stop in places]))

        return widened(np.concatenate([self.rows.slice(start, stop) for start, stop in places]))

    def pieces(self, chosen: np.ndarray) -> list[Any]:
        """The token vectors of each of these texts as they are kept: tensors, views where a text lies in one array."""
        import torch

        if self._tensors is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a memory map is not writable, and nothing writes to it
                self._tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in self.rows.parts]

        starts, stops = self.starts[chosen], self.starts[chosen + 1]
        inside = np.searchsorted(self.rows.starts, starts, "right") - 1
        first = self.rows.starts[inside]
        whole = stops <= self.rows.starts[inside + 1]
        places = zip(whole.tolist(), inside.tolist(), starts.tolist(), stops.tolist(), first.tolist(), strict=True)

        return [
            self._tensors[part][start - before : stop - before]
            if alone
            else torch.from_numpy(self.rows.slice(start, stop))
            for alone, part, start, stop, before in places
        ]

    @property
    def longest_of(self) -> np.ndarray:
        """The highest norm of a token vector of each text, (n_texts,) float32: NaN where it was not looked for yet."""
        if self._longest_of is None:
            self._longest_of = np.full(len(self), np.nan, np.float32)

        return self._longest_of

    def held(self) -> TokenVectors:
        """The same as float32 in memory, checked once, for texts that are scored often. May raise InputError."""
        held = TokenVectors(self.of(0, len(self)), np.diff(self.starts))
        held.longest = _longest(held.rows.parts[0], 0) if len(held.rows) else 0.0

        return held


def widened(values: np.ndarray) -> np.ndarray:
    """Return float16 as float32. torch does it about five times as fast as NumPy."""
    if values.dtype != np.float16:
        return values

    import torch

    wide = np.empty(values.shape, np.float32)
    source, target = torch.from_numpy(np.ascontiguousarray(values)).view(-1), torch.from_numpy(wide).view(-1)
    for at in range(0, len(target), ONE_THREAD):
        target[at : at + ONE_THREAD].copy_(source[at : at + ONE_THREAD])

    return wide


def search_tokens(
    queries: Sequence[np.ndarray],
    documents: TokenVectors,
    k: int,
    *,
    progress: PhaseProgress = silent,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best documents of each query by MaxSim, best first: (scores, indices).

    Both have the shape (n_queries, k), float32 and int64. ``queries``: an array (n_tokens, dim) for each. A text
    without token vectors is not found and finds nothing; where a query has fewer than k documents, the last places hold
    -inf and -1. ``progress`` is called with the documents searched so far and their number, and may raise to end it.
    Raises InputError for shapes that do not fit and for values that are not finite.
    """
    questions = _checked(queries, documents, k)
    scores = np.full((len(questions), k), -np.inf, np.float32)
    indices = np.full((len(questions), k), -1, np.int64)

    asked = [i for i, question in enumerate(questions) if len(question)]
    if not asked or not len(documents.rows):
        return scores, indices

    groups = [asked[at : at + QUERIES_AT_ONCE] for at in range(0, len(asked), QUERIES_AT_ONCE)]
    blocks = [_TokenBlock([questions[i] for i in group], k, documents) for group in groups]
    steps = [
        range(at, min(at + DOCUMENTS_AT_ONCE, len(documents))) for at in range(0, len(documents), DOCUMENTS_AT_ONCE)
    ]

    def look(step: range) -> int:
        for block in blocks:
            block.look(step)
        return len(step)

    work = sum(map(len, questions)) * len(documents.rows) * documents.dim

    threads = blas_threads() if work > SINGLE_THREADED else 1
    seen = 0
    with one_blas_thread(), thread_pool(threads) as run:
        # The first documents are looked at alone: they set the floors that spare the others most of their work.
        for done in itertools.chain([look(steps[0])], run(look, steps[1:])):
            seen += done
            progress(seen, len(documents))

        for group, block in zip(groups, blocks, strict=True):
            block.prune()
            for i, (found, exact) in zip(group, run(block.best, range(block.n)), strict=True):
                scores[i, : len(found)], indices[i, : len(found)] = exact, found

    return scores, indices


def rerank_tokens(
    query: np.ndarray, documents: TokenVectors, candidates: Sequence[int], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best of the candidates by MaxSim, best first: (scores, indices), as long as there are candidates.

    ``query`` (n_tokens, dim); ``candidates`` are indices of documents, in any order, each once. A document without
    token vectors is left out. The order is that of ``search_tokens``; scores are float32 products where no other one
    comes near. Raises InputError as it does.
    """
    question = _checked([query], documents, k)[0]
    chosen = np.unique(np.asarray(candidates, np.int64))
    if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < len(documents):
        raise InputError(f"A candidate is not among the {len(documents)} documents.")

    lengths = documents.starts[chosen + 1] - documents.starts[chosen]
    chosen = chosen[lengths > 0]
    if not len(chosen) or not len(question):
        return np.empty(0, np.float32), np.empty(0, np.int64)

    block = _TokenBlock([question], k, documents)
    with one_blas_thread():
        scores = block.scores(chosen)[0]
        error = float(block.error()[0])

        # Where two neighbours lie within the error, and may be among the best, both are scored again.
        order = np.argsort(-scores, kind="stable")
        close = -np.diff(scores[order]) <= 2 * error
        doubtful = np.append(close, False) | np.append(False, close)
        doubtful &= scores[order] >= scores[order[min(k, len(order)) - 1]] - 2 * error

        again = np.sort(order[doubtful])
        scores[again] = block.exact(0, chosen[again])

    order = np.argsort(-scores, kind="stable")[:k]
    return scores[order], chosen[order]


def matches(query: np.ndarray, document: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which token vector of the document each one of the query matched, and how well: (positions, similarities).

    ``query`` (n_query_tokens, dim) and ``document`` (n_document_tokens, dim), the latter not empty; both results have
    the shape (n_query_tokens,). The similarities add up to the score.
    """
    products = widened(query) @ widened(document).T
    positions = products.argmax(axis=1)

    return positions, products[np.arange(len(products)), positions]


class _TokenBlock(Best):
    """The best documents of up to ``QUERIES_AT_ONCE`` queries by MaxSim."""

    def __init__(self, queries: Sequence[np.ndarray], wanted: int, documents: TokenVectors) -> None:
        super().__init__(len(queries), wanted)
        self.documents = documents
        self.tokens = np.concatenate(queries)
        self._operand = np.ascontiguousarray(self.tokens.T)
        self.starts = np.concatenate([[0], np.cumsum([len(query) for query in queries])])
        self._norms = np.add.reduceat(np.sqrt(squares(self.tokens).astype(np.float64)), self.starts[:-1])
        self._longest = 0.0

    def look(self, step: range) -> None:
        """Take in those of these documents that may be among the best."""
        lengths = np.diff(self.documents.starts[step.start : step.stop + 1])
        self.look_at(step.start + np.flatnonzero(lengths))

    def look_at(self, chosen: np.ndarray) -> None:
        """Take in those of the documents ``chosen`` (ascending, none without token vectors)."""
        if not len(chosen):
            return

        scores = self.scores(chosen)
        with self._lock:
            floor = self.floor()

        query, place = np.nonzero(scores >= floor[:, None])
        self.take((chosen[place], query, scores[query, place]))

    def scores(self, chosen: np.ndarray) -> np.ndarray:
        """The float32 scores of the documents ``chosen`` (ascending, none without token vectors): (n, n_chosen)."""
        scores = np.empty((self.n, len(chosen)), np.float32)
        longest = self.documents.longest or 0.0

        if len(self.tokens) < FEW_TOKENS and self.documents.longest is not None:
            self._score_each([self.documents.of(i, i + 1) for i in chosen.tolist()], scores)
            chosen = chosen[:0]
        elif len(self.tokens) < FEW_TOKENS and len(chosen) <= DOCUMENTS_AT_ONCE:
            longest = self._score_gathered(chosen, scores)
            chosen = chosen[:0]

        for low, high in _runs(self.documents.starts, chosen):
            values = self.documents.at(chosen[low:high])
            if self.documents.longest is None:
                longest = max(longest, _longest(values, chosen[low]))
            self._score(values, self._bounds(chosen[low:high]), scores[:, low:high])

        with self._lock:
            self._longest = max(self._longest, longest)

        return scores

    def _bounds(self, chosen: np.ndarray) -> np.ndarray:
        """Where the token vectors of each of these documents begin, among theirs."""
        lengths = self.documents.starts[chosen + 1] - self.documents.starts[chosen]
        return np.asarray(np.cumsum(lengths) - lengths)

    def _score(self, values: np.ndarray, bounds: np.ndarray, out: np.ndarray) -> None:
        """Write the MaxSim of every query with these documents into ``out`` (n_queries, n_documents)."""
        if len(self.tokens) < FEW_TOKENS:
            self._score_each(np.split(values, bounds[1:]), out)
            return

        pieces = (self.tokens[at : at + QUERY_TOKENS] for at in range(0, len(self.tokens), QUERY_TOKENS))
        best = np.concatenate([np.maximum.reduceat(piece @ values.T, bounds, axis=1) for piece in pieces])
        np.add.reduceat(best, self.starts[:-1], axis=0, out=out)

    def _score_each(self, texts: Sequence[np.ndarray], out: np.ndarray) -> None:
        best = np.empty((len(texts), len(self.tokens)), np.float32)
        for place, values in enumerate(texts):
            np.maximum.reduce(values @ self._operand, out=best[place])

        np.add.reduceat(best.T, self.starts[:-1], axis=0, out=out)

    def _score_gathered(self, chosen: np.ndarray, out: np.ndarray) -> float:
        """Write the MaxSim of every query with these documents, which lie apart, into ``out``, (n_queries, n_chosen).

        Returns the highest norm of their token vectors. They are widened a few at a time into one piece of memory.
        """
        import torch

        documents, known = self.documents, self.documents.longest_of
        lengths = documents.starts[chosen + 1] - documents.starts[chosen]
        ends, sizes = np.cumsum(lengths), lengths.tolist()
        runs = itertools.pairwise([0, *(np.flatnonzero(np.diff(ends // GATHERED)) + 1).tolist(), len(chosen)])

        room = GATHERED + int(lengths.max())
        values, products = (np.empty((room, width), np.float32) for width in (documents.dim, len(self.tokens)))
        best = np.empty((len(chosen), len(self.tokens)), np.float32)
        wide, pieces = torch.from_numpy(values), documents.pieces(chosen)
        unknown = bool(np.isnan(known[chosen]).any())

        for low, high in runs:
            stop = 0
            for place in range(low, high):
                start, stop = stop, stop + sizes[place]
                wide[start:stop].copy_(pieces[place])  # torch widens about five times as fast as NumPy

            if unknown:
                known[chosen[low:high]] = _longest(values[:stop], chosen[low])

            np.matmul(values[:stop], self._operand, out=products[:stop])
            stop = 0
            for place in range(low, high):
                start, stop = stop, stop + sizes[place]
                np.maximum.reduce(products[start:stop], out=best[place])

        np.add.reduceat(best.T, self.starts[:-1], axis=0, out=out)
        return float(known[chosen].max())

    def error(self) -> np.ndarray:
        # A product is off by at most (dim + 2)·u·|q||d| with u = 2⁻²⁴, so the largest one is too; adding up the n of a
        # query adds at most n·u times the sum of their sizes (Higham 2002, section 3.1). Twice that is allowed.
        lengths = np.diff(self.starts)
        dim = self.tokens.shape[1]

        return self._norms * self._longest * 2 * (dim + 2 + lengths) * 2.0**-24 + lengths * (dim + 1) * 2.0**-100

    def exact(self, query: int, documents: np.ndarray) -> np.ndarray:
        question = self.tokens[self.starts[query] : self.starts[query + 1]].astype(np.float64)
        exact = np.empty(len(documents), np.float32)

        for low, high in _runs(self.documents.starts, documents):
            values = self.documents.at(documents[low:high]).astype(np.float64)
            best = np.maximum.reduceat(question @ values.T, self._bounds(documents[low:high]), axis=1)
            exact[low:high] = best.sum(axis=0)

        return exact


def _checked(queries: Sequence[np.ndarray], documents: TokenVectors, k: int) -> list[np.ndarray]:
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")

    questions = [np.ascontiguousarray(query, np.float32) for query in queries]
    for number, question in enumerate(questions):
        if question.ndim != 2 or (len(question) and len(documents.rows) and question.shape[1] != documents.dim):
            raise InputError(f"Query {number} of shape {question.shape} does not fit {documents.dim} dimensions.")
        if not (squares(question) < LARGEST_SQUARE).all():
            raise InputError(f"Query {number} holds a token vector that is not finite, or too large.")

    return questions


def _runs(starts: np.ndarray, chosen: np.ndarray) -> list[tuple[int, int]]:
    """Divide the documents ``chosen`` into runs of about ``DOCUMENT_TOKENS`` token vectors."""
    ends = np.cumsum(starts[chosen + 1] - starts[chosen])
    runs, low = [], 0

    while low < len(chosen):
        before = ends[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + DOCUMENT_TOKENS, "right")))
        runs.append((low, high))
        low = high

    return runs


def _longest(values: np.ndarray, first: int) -> float:
    """The highest norm of these token vectors. InputError where one is not finite."""
    longest = float(squares(values).max()) ** 0.5
    if not np.isfinite(longest):
        raise InputError(f"A token vector of document {first} or of one after it is not finite, or too large.")

    return longest
