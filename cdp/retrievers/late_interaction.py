"""Exact MaxSim (late interaction, ColBERT) over token vectors: best of all documents, or of candidates; matched tokens.

The score of a document is the sum, over the query's token vectors, of the largest dot product with a token vector of
the document (Khattab and Zaharia 2020), computed exactly and rounded to float32. As in ``exact_search``, products are
float32, their rounding error has a bound, and what the bound cannot tell apart is computed again in float64. Documents
of equal score stand in ascending order of their index. Documents are read a few at a time, as float16 or float32, so
memory does not grow with them.
"""

from __future__ import annotations

import itertools
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
    one_torch_thread,
    squares,
    thread_pool,
)

# Token vectors of documents per product, and of queries: the product (1.5 MB) is looked at in the cache.
DOCUMENT_TOKENS, QUERY_TOKENS = 768, 512

# Below so many token vectors of queries a product is thin: torch is faster at it, and the highest values are found in
# groups of so many rows. Longer groups repeat more rows, shorter ones leave more to do.
FEW_TOKENS, GROUP = 256, 8

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
        self.longest = np.full(len(self), np.nan, np.float32)  # the highest norm in each text, NaN until it was seen

        if (np.diff(self.starts) < 0).any() or self.starts[-1] != len(self.rows):
            raise InputError(f"{len(self.rows)} token vectors do not fit lengths that add up to {self.starts[-1]}.")

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def dim(self) -> int:
        return self.rows.dim

    def of(self, start: int, stop: int) -> np.ndarray:
        """The token vectors of the texts ``start`` … stop-1, float32."""
        return widened(self.rows.slice(int(self.starts[start]), int(self.starts[stop])))

    def places(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the texts ``chosen`` (ascending, none without token vectors), and where each text begins.

        Both are positions: in ``rows``, and among the rows returned.
        """
        starts = self.starts[chosen]
        lengths = self.starts[chosen + 1] - starts
        firsts = np.cumsum(lengths) - lengths

        rows = np.arange(lengths.sum())
        rows += np.repeat(starts - firsts, lengths)

        return rows, firsts

    def held(self) -> TokenVectors:
        """The same in memory, for texts that are scored often."""
        return TokenVectors(self.rows.slice(0, len(self.rows)), np.diff(self.starts))

    def check(self, chosen: np.ndarray, squared: np.ndarray, firsts: np.ndarray) -> None:
        """Note the highest norms of the texts ``chosen``. InputError where one is not finite.

        ``squared`` (n_rows,) are the squared norms of their token vectors, those of each text from ``firsts`` on.
        """
        longest = np.sqrt(np.maximum.reduceat(squared, firsts))
        if not np.isfinite(longest).all():
            first = chosen[~np.isfinite(longest)][0]
            raise InputError(f"Document {first} holds a token vector that is not finite, or too large.")

        self.longest[chosen] = longest


def widened(values: np.ndarray) -> np.ndarray:
    """Return float16 as float32. torch does it about five times as fast as NumPy."""
    if values.dtype != np.float16:
        return values

    import torch

    with one_torch_thread():
        wide: np.ndarray = torch.from_numpy(np.ascontiguousarray(values)).float().numpy()

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
        documents.rows.forget()  # candidates, which the next query may have too, stay mapped

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
                documents.rows.forget()

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
    chosen = np.sort(np.asarray(candidates, np.int64))
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
        ranked = scores[order]
        close = ranked[:-1] - ranked[1:] <= 2 * error
        doubtful = np.zeros(len(order), bool)
        doubtful[:-1] |= close
        doubtful[1:] |= close
        doubtful &= ranked >= ranked[:k][-1] - 2 * error

        if doubtful.any():
            again = np.sort(order[doubtful])
            scores[again] = block.exact(0, chosen[again])
            order = np.argsort(-scores, kind="stable")

    best = order[:k]
    return scores[best], chosen[best]


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
        self.starts = np.concatenate([[0], np.cumsum([len(query) for query in queries])])
        self._longest = 0.0

        # A product is off by at most (dim + 2)·u·|q||d| with u = 2⁻²⁴, so the largest one is too; adding up the n of a
        # query adds at most n·u times the sum of their sizes (Higham 2002, section 3.1). A hundredth more is for the
        # rounding of the norms, and for the terms of order u².
        norms = np.add.reduceat(np.sqrt(squares(self.tokens).astype(np.float64)), self.starts[:-1])
        lengths, dim = np.diff(self.starts), documents.dim
        self._error = norms * 1.01 * (dim + 2 + lengths) * 2.0**-24
        self._least_error = lengths * (dim + 1) * 2.0**-100

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
        best_of, runs = self._best_of_few, [(0, len(chosen))]
        if len(self.tokens) >= FEW_TOKENS:
            best_of, runs = self._best_of_many, _runs(self.documents.starts, chosen)

        scores = np.empty((self.n, len(chosen)), np.float32)
        for low, high in runs:
            np.add.reduceat(best_of(chosen[low:high]), self.starts[:-1], axis=0, out=scores[:, low:high])

        with self._lock:
            self._longest = max(self._longest, float(self.documents.longest[chosen].max()))

        return scores

    def _best_of_many(self, chosen: np.ndarray) -> np.ndarray:
        """The highest product of each token vector of a query with those of each document: (n_tokens, n_chosen)."""
        rows, firsts = self.documents.places(chosen)
        values = widened(self.documents.rows.take(rows))
        if np.isnan(self.documents.longest[chosen]).any():
            self.documents.check(chosen, squares(values), firsts)

        pieces = (self.tokens[at : at + QUERY_TOKENS] for at in range(0, len(self.tokens), QUERY_TOKENS))
        return np.concatenate([np.maximum.reduceat(piece @ values.T, firsts, axis=1) for piece in pieces])

    def _best_of_few(self, chosen: np.ndarray) -> np.ndarray:
        """The same for few token vectors of queries: half the time goes into copying, widening and looking.

        Each document is cut into ``GROUP`` parts of equal length, and a group has one row of each part: the rows of a
        part stand side by side, so they are read in one go, and the parts' products are compared as a whole.
        """
        import torch

        documents, width = self.documents, len(self.tokens)
        starts, stops = documents.starts[chosen], documents.starts[chosen + 1]

        # Blocks of one size share their memory, which stays in the cache: the last document fills the last of them.
        lengths = (stops - starts + GROUP - 1) // GROUP
        n_blocks = -(-GROUP * int(lengths.sum()) // DOCUMENT_TOKENS)
        lengths[-1] += -lengths.sum() % n_blocks
        firsts = np.cumsum(lengths) - lengths
        texts = np.repeat(np.arange(len(chosen)), lengths)
        n = len(texts) // n_blocks

        # The row of each part (second axis) in each group (third axis): the document's last where a part has none.
        first, length, last = (
            np.repeat(values, lengths).reshape(n_blocks, 1, n) for values in (starts - firsts, lengths, stops - 1)
        )
        first += np.arange(len(texts)).reshape(first.shape)
        blocks = np.minimum(first + length * np.arange(GROUP)[:, None], last).reshape(n_blocks, GROUP * n)

        stored = np.empty((GROUP * n, documents.dim), documents.rows.dtype)
        narrow, operand = torch.from_numpy(stored), torch.from_numpy(np.ascontiguousarray(self.tokens.T))
        wide = narrow if narrow.dtype == torch.float32 else torch.empty(GROUP * n, documents.dim)
        products, best = torch.empty(GROUP * n, width), np.empty((n_blocks, n * width), np.float32)
        parts = products.numpy().reshape(GROUP, n * width)
        squared = np.empty((n_blocks, n), np.float32) if np.isnan(documents.longest[chosen]).any() else None

        with one_torch_thread():
            for number, block in enumerate(blocks):
                documents.rows.take(block, stored)
                if wide is not narrow:
                    wide.copy_(narrow)
                if squared is not None:
                    squared[number] = squares(wide.numpy()).reshape(GROUP, n).max(axis=0)

                torch.mm(wide, operand, out=products)
                np.maximum.reduce(parts, axis=0, out=best[number])

            if squared is not None:
                documents.check(chosen, squared.ravel(), firsts)

            # NumPy's reduceat looks at one column after the other, in four times the time.
            of_groups = torch.from_numpy(best.reshape(-1, width))
            index = torch.from_numpy(texts).unsqueeze(1).expand(-1, width)
            of_texts = torch.empty(len(chosen), width).scatter_reduce_(0, index, of_groups, "amax", include_self=False)

        return of_texts.numpy().T

    def error(self) -> np.ndarray:
        return self._longest * self._error + self._least_error

    def exact(self, query: int, documents: np.ndarray) -> np.ndarray:
        import torch

        question = torch.from_numpy(self.tokens[self.starts[query] : self.starts[query + 1]]).double().T
        exact = np.empty(len(documents), np.float32)

        with one_torch_thread():
            for low, high in _runs(self.documents.starts, documents):
                rows, firsts = self.documents.places(documents[low:high])
                products = torch.from_numpy(self.documents.rows.take(rows)).double() @ question
                exact[low:high] = np.maximum.reduceat(products.numpy(), firsts, axis=0).sum(axis=1)

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
