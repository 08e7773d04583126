"""Which terms stand in which documents, and what they weigh there: what a BM25 index is made of.

What a term weighs depends on all documents only through two numbers and one per term: how many documents there are, how
long they are on average, and in how many the term stands. So the postings of any part of a collection, weighed by the
whole's ``Statistics``, are that part of the whole's index, bit for bit.
"""

from __future__ import annotations

import io
import json
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cdp.base.workspace import write_bytes

if TYPE_CHECKING:
    from bm25s import BM25

AT_ONCE = 1_000_000
"""Postings that are weighed at once: their weights are worked out in float64."""


@dataclass(frozen=True)
class Postings:
    """Of documents in their order: ``lengths`` (n_documents,) in terms; the different terms of document i are
    ``ids[starts[i]:starts[i + 1]]``, by their place in ``terms``, and stand there ``counts`` times."""

    terms: Sequence[str]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def n_documents(self) -> int:
        return len(self.lengths)

    @property
    def document_frequencies(self) -> NDArray[np.int64]:
        """(n_terms,) in how many of these documents each term stands."""
        return np.bincount(self.ids, minlength=len(self.terms)).astype(np.int64)


@dataclass(frozen=True)
class Statistics:
    """How many documents a collection has, and how many terms all of them have together."""

    n_documents: int
    n_terms: int

    @property
    def mean_length(self) -> np.float64:
        return np.float64(self.n_terms) / self.n_documents


def count(documents: Iterable[Sequence[str]]) -> Postings:
    """The postings of documents whose terms come one after the other. Texts and terms are not kept."""
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    ids, counts, sizes, lengths = array("i"), array("i"), array("q", [0]), array("q")
    for terms in documents:
        tally = Counter(terms)
        ids.extend(map(vocabulary.__getitem__, tally))
        counts.extend(tally.values())
        sizes.append(len(tally))
        lengths.append(len(terms))
    return Postings(
        list(vocabulary),
        np.frombuffer(ids, np.int32) if ids else np.zeros(0, np.int32),
        np.frombuffer(counts, np.int32) if counts else np.zeros(0, np.int32),
        np.cumsum(np.frombuffer(sizes, np.int64)),
        np.frombuffer(lengths, np.int64) if lengths else np.zeros(0, np.int64),
    )


def weighed(postings: Postings, frequencies: NDArray[np.int64], whole: Statistics, *, k1: float, b: float) -> BM25:
    """The index of these documents by Lucene's formula (Kamphuis et al. 2020), in the form that bm25s asks.

    ``frequencies`` (n_terms,) say in how many documents of the whole collection each term stands.
    """
    from bm25s import BM25
    from scipy.sparse import csr_matrix

    different, of = np.unique(frequencies, return_inverse=True)
    n = whole.n_documents
    # By math.log: NumPy's differs between processors in the last bit.
    idf = np.array([math.log(1 + (n - df + 0.5) / (df + 0.5)) for df in different.tolist()], np.float32)[of]
    norms = k1 * ((1 - b) + b * postings.lengths / whole.mean_length)
    weights = np.empty(len(postings.ids), np.float32)
    for begin, end in _blocks(postings.starts):
        part = slice(postings.starts[begin], postings.starts[end])
        counts = postings.counts[part].astype(np.float32)
        norm = np.repeat(norms[begin:end], np.diff(postings.starts[begin : end + 1]))
        weights[part] = idf[postings.ids[part]] * (counts / (norm + counts))
    shape = (postings.n_documents, len(postings.terms))
    columns = csr_matrix((weights, postings.ids, postings.starts), shape=shape).tocsc()
    index = BM25(k1=k1, b=b, method="lucene")
    index.nonoccurrence_array = None
    index.vocab_dict = {term: number for number, term in enumerate(postings.terms)}
    index.unique_token_ids_set = set(index.vocab_dict.values())
    index.scores = {
        "data": columns.data,
        "indices": columns.indices,
        "indptr": columns.indptr,
        "num_docs": postings.n_documents,
    }
    return index


def _blocks(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """(first, end) of documents that follow each other, with some ``AT_ONCE`` postings."""
    begin, n = 0, len(starts) - 1
    while begin < n:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + AT_ONCE, side="right")) - 1)
        yield begin, end
        begin = end


def save(postings: Postings, path: Path) -> None:
    """Keep postings in a file, written in one step."""
    terms = np.frombuffer(json.dumps(postings.terms).encode("ascii"), np.uint8)
    content = io.BytesIO()
    np.savez(
        content, allow_pickle=False, terms=terms, ids=postings.ids, counts=postings.counts, starts=postings.starts,
        lengths=postings.lengths, frequencies=postings.document_frequencies,
    )  # fmt: skip
    write_bytes(path, content.getvalue())


def load(path: Path) -> Postings:
    with np.load(path, allow_pickle=False) as file:
        return Postings(
            json.loads(file["terms"].tobytes()), file["ids"], file["counts"], file["starts"], file["lengths"]
        )


def frequencies_of(path: Path) -> tuple[list[str], NDArray[np.int64], Statistics]:
    """Of a file of postings: its terms, in how many of its documents each stands, and how long they are together."""
    with np.load(path, allow_pickle=False) as file:
        lengths = file["lengths"]
        return json.loads(file["terms"].tobytes()), file["frequencies"], Statistics(len(lengths), int(lengths.sum()))
