"""The search engine: models, indexes and documents in memory, its limit, when indexing takes a job, matching words.

Indexes are stored in ``embeddings/`` of the workspace under a hash of their inputs and shared with evaluations of the
same texts. Importing this loads no torch.
"""

from __future__ import annotations

import os
import re
import threading
import time
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from cdp.base.errors import CdpError, InputError, ModelError, WorkspaceError
from cdp.base.machine import memory_bytes, return_freed_memory
from cdp.base.records import Document
from cdp.base.text import Progress, silent
from cdp.base.workspace import Workspace
from cdp.benchmarks.benchmark import texts_hash
from cdp.complexity import content_words, language_of
from cdp.corpus import CorpusManifest, load_manifest, open_corpus
from cdp.corpus.documents import ROW_GROUP_ROWS, SCHEMA, to_documents
from cdp.evaluation.combined import MAXSIM_DEPTH, reranked_parts, reranked_title
from cdp.evaluation.evaluate import Protocol, length_of, protocol_for
from cdp.retrievers import MULTI_VECTOR, SPARSE, bm25, load, model_hash
from cdp.retrievers.api import ApiModel, Payer, failed_texts
from cdp.retrievers.encode import Embedded, EmbeddingStore, Encoding, PoolEncoder, cast, embed, encode, precision_for
from cdp.retrievers.exact_search import Prepared, search
from cdp.retrievers.inverted_lists import inverted_lists, search_words
from cdp.retrievers.late_interaction import matches, rerank_tokens, search_tokens
from cdp.retrievers.load import kind_of
from cdp.retrievers.resolve import ResolvedRetriever, resolve

T = TypeVar("T")
# Scores and document numbers, best first.
Ranked = tuple[list[float], list[int]]

DEFAULT_K, MAX_K = 10, 100
LONGEST_QUERY = 10_000  # characters: encoders cut a text at a few hundred tokens anyway
SHOWN_CHARACTERS = 20_000  # of a document's text in an answer; the whole text is on the Documents page
MATCHED_CHARACTERS = 6000  # of a document in which matching words are looked for; a snippet is far shorter
BATCH = 64  # texts encoded at once
# Documents indexed while a person waits, in about 15 seconds; more are indexed by a job, with progress on screen.
LEXICAL_AT_ONCE, STATIC_AT_ONCE, ENCODED_AT_ONCE = 50_000, 20_000, 500
MODEL_OVERHEAD = 64 << 20  # bytes of a loaded model beside its weights: tokenizer, buffers
SHARE, AT_MOST_GB = 0.25, 8.0  # of the machine's memory: a training may run beside it
IDLE_S = 600.0  # long enough to read a document and come back, short enough to free the memory over lunch

_WORD = re.compile(r"\w+")


class Documents:
    """The documents of a corpus in memory, in order, as an Arrow table."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self.table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
        self.hash = texts_hash(self.contents())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)

    def contents(self) -> Iterator[str]:
        """Yield the text that is encoded for each document."""
        for batch in self.table.to_batches(max_chunksize=ROW_GROUP_ROWS):
            for document in to_documents(pa.table(batch)):
                yield document.content

    def take(self, numbers: Sequence[int]) -> list[Document]:
        """Return the documents at these positions, in the order given."""
        return [document for number in numbers for document in to_documents(self.table.slice(number, 1))]


def open_documents(workspace: Workspace, corpus: CorpusManifest) -> Documents:
    """Read all documents. WorkspaceError if they cannot be read."""
    try:
        return Documents(list(open_corpus(workspace, corpus.id).batches()))
    except (pa.ArrowException, OSError) as error:
        raise WorkspaceError(
            f"The documents of {corpus.name} cannot be read: {str(error).splitlines()[0]}.",
            hint="Add the corpus again.",
        ) from error


class NotPreparedError(CdpError):
    """The documents are not indexed yet, and indexing takes longer than a person waits."""

    kind = "configuration"


def memory_limit() -> int:
    """Return the bytes that an engine may hold."""
    return int(min(AT_MOST_GB * 2**30, SHARE * memory_bytes()))


def checked_query(query: str) -> str:
    """Return the query stripped, without NUL and lone surrogates. InputError if it is empty or too long."""
    text = query.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not text:
        raise InputError("The query is empty.", hint="Type a few words or a question.")
    if len(text) > LONGEST_QUERY:
        raise InputError(
            f"The query has {len(text):,} characters; the limit is {LONGEST_QUERY:,}.",
            hint="Shorten it: an encoder reads a few hundred words.",
        )
    return text


@dataclass(frozen=True)
class Encoder:
    """A loaded ``SentenceTransformer`` with prompts and length as in an evaluation (protocol ``published``)."""

    model: Any
    identity: str
    protocol: Protocol
    max_tokens: int | None
    lock: threading.Lock

    @property
    def nbytes(self) -> int:
        return sum(int(t.nbytes) for t in self.model.state_dict().values()) + MODEL_OVERHEAD

    def encoding(self, role: str, precision: str) -> Encoding:
        prompt = self.protocol.query_prompt if role == "query" else self.protocol.document_prompt
        kind = kind_of(self.model)
        return Encoding(self.identity, role, prompt, self.protocol.normalise, self.max_tokens, precision, kind)


def load_encoder(resolved: ResolvedRetriever, device: str | None = "cpu", payer: Payer | None = None) -> Encoder:
    """Load a model; ``device`` None takes a GPU if there is one. ModelError if it cannot be loaded."""
    model = load(resolved, device, payer=payer)
    identity = model_hash(model)
    model = cast(model, precision_for(model))
    return Encoder(model, identity, protocol_for(model), length_of(model), threading.Lock())


class DenseIndex:
    """Embeddings of all documents: in memory if ``held``, else mapped from disk at each search."""

    def __init__(self, encoder: Encoder, parts: Sequence[np.ndarray], *, held: bool) -> None:
        self.encoder = encoder
        prepared = Prepared(list(parts)) if held else None
        self.vectors: Any = prepared or list(parts)
        self.nbytes = 0 if prepared is None else prepared.nbytes

    def rank(self, queries: Sequence[str], k: int) -> list[Ranked]:
        """Return the best ``k`` documents of each query by dot product (exact)."""
        with self.encoder.lock:  # tokenizers do not take calls of two threads at once
            vectors = encode(
                self.encoder.model, queries, self.encoder.encoding("query", "fp32"), batch_size=len(queries)
            )
        failed = failed_texts(self.encoder.model)
        for query in queries:
            if query in failed:  # a vector of zeros would find any document
                raise failed[query]
        return _ranked(*search(vectors, self.vectors, k))


class TokenIndex:
    """Token vectors of all documents: in memory if ``held``, else mapped from disk at each search."""

    def __init__(self, encoder: Encoder, embedded: Embedded, *, held: bool) -> None:
        self.encoder = encoder
        self.tokens = embedded.tokens.held() if held else embedded.tokens
        self.nbytes = embedded.nbytes if held else 0

    def rank(self, queries: Sequence[str], k: int) -> list[Ranked]:
        """Return the best ``k`` documents of each query by MaxSim (exact)."""
        asked = [self.vectors_of(query) for query in queries]
        return _ranked(*search_tokens(asked, self.tokens, k))

    def vectors_of(self, query: str) -> np.ndarray:
        """Return the token vectors of a query, (tokens, dim)."""
        with self.encoder.lock:
            embedded = embed(self.encoder.model, [query], self.encoder.encoding("query", "fp32"))
        return embedded.parts[0]

    def matching_words(self, query: str, number: int, content: str, language: str) -> dict[str, float] | None:
        """Return the words of a document, in lower case, whose tokens the query's content words matched best, each with
        the share of the score that these matches are; None where tokens cannot be told from the text, as with a list of
        skipped ones."""
        of_query, of_document = self._spans("query", query), self._spans("document", content)
        vectors, tokens = self.vectors_of(query), self.tokens.of(number, number + 1)
        if len(of_query) != len(vectors) or len(of_document) != len(tokens):
            return None

        wanted = content_words(query, language)
        positions, similarities = matches(vectors, tokens)
        score = float(similarities.sum()) or 1.0
        shares: dict[str, float] = defaultdict(float)

        for asked, at, similarity in zip(of_query, positions.tolist(), similarities.tolist(), strict=True):
            word = of_document[at].lower()
            # A letter alone, as in "it's", would be marked wherever it stands.
            if asked.lower() in wanted and word and (len(word) > 1 or not word.isascii()):
                shares[word] += similarity / score

        return dict(sorted(shares.items()))

    def _spans(self, role: str, text: str) -> list[str]:
        """The word of ``text`` that each token is of, "" for those of the prompt and special ones."""
        encoding = self.encoder.encoding(role, "fp32")
        with self.encoder.lock:
            read = self.encoder.model.tokenizer(
                encoding.prompt + text, truncation=True, max_length=encoding.max_length, return_offsets_mapping=True,
            )  # fmt: skip
        words = [match.span() for match in _WORD.finditer(text)]
        starts = [start for start, _ in words]

        found = []
        for start, stop in read["offset_mapping"]:
            place = bisect_right(starts, start - len(encoding.prompt)) - 1
            inside = stop > start and place >= 0 and start - len(encoding.prompt) < words[place][1]
            found.append(text[slice(*words[place])] if inside else "")
        return found


class WordIndex:
    """Inverted lists of the weights of words that a sparse retriever gives the documents, in memory."""

    def __init__(self, encoder: Encoder, embedded: Embedded) -> None:
        self.encoder = encoder
        self.lists = list(inverted_lists(embedded.tokens))
        self.nbytes = sum(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes for block in self.lists)

    def rank(self, queries: Sequence[str], k: int) -> list[Ranked]:
        """Return the best ``k`` documents of each query by dot product (exact), fewer where fewer share a word."""
        with self.encoder.lock:
            asked = embed(self.encoder.model, queries, self.encoder.encoding("query", "fp32"))
        return _ranked(*search_words(asked.tokens, self.lists, k))


class LexicalIndex:
    """BM25 in the words of one language."""

    encoder = None

    def __init__(self, index: Any, language: str) -> None:
        self.index, self.language = index, language
        self.nbytes = bm25.index_size(index)

    def rank(self, queries: Sequence[str], k: int) -> list[Ranked]:
        """Return the best ``k`` documents of each query, fewer where fewer share a word with it."""
        return _ranked(*bm25.rank(self.index, queries, k, language=self.language))


class CandidateIndex:
    """The first ``MAXSIM_DEPTH`` documents of another index, in the order of late interaction."""

    def __init__(self, first: DenseIndex | WordIndex | LexicalIndex, tokens: TokenIndex) -> None:
        self.first, self.tokens, self.encoder = first, tokens, tokens.encoder

    def rank(self, queries: Sequence[str], k: int) -> list[Ranked]:
        """Return the best ``k`` of the candidates of each query by MaxSim (exact)."""
        found = []
        for query, (_, candidates) in zip(queries, self.first.rank(queries, max(k, MAXSIM_DEPTH)), strict=True):
            scores, numbers = rerank_tokens(self.tokens.vectors_of(query), self.tokens.tokens, candidates, k)
            found.append((scores.tolist(), numbers.tolist()))

        return found


Index = DenseIndex | TokenIndex | WordIndex | LexicalIndex | CandidateIndex


def _ranked(scores: np.ndarray, numbers: np.ndarray) -> list[Ranked]:
    # -1 marks documents that were not retrieved.
    rows = zip(scores, numbers, numbers >= 0, strict=True)
    return [([float(s) for s in score[there]], [int(n) for n in number[there]]) for score, number, there in rows]


class Cache:
    """LRU cache of values by key, each with the state that it was made from, within ``limit`` bytes.

    Each value is made once, also if several threads ask for it. The newest stays, however large it is.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._items: OrderedDict[Hashable, tuple[Any, Hashable, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, state: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the cached value if it was made from this ``state``, else call ``make``."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())

        with making:
            with self._lock:
                item = self._items.get(key)
                if item is not None and item[1] == state:
                    self._items.move_to_end(key)
                    cached: T = item[0]
                    return cached
                self._items.pop(key, None)

            value = make()
            with self._lock:
                self._items[key] = (value, state, size(value))
                before = len(self._items)
                while len(self._items) > 1 and self._size() > self.limit:
                    self._items.popitem(last=False)
                evicted = len(self._items) < before

            if evicted:
                return_freed_memory()

            return value

    def _size(self) -> int:
        return sum(size for _, _, size in self._items.values())

    @property
    def nbytes(self) -> int:
        with self._lock:
            return self._size()

    def keys(self) -> list[Hashable]:
        """Return the keys, the least recently used first."""
        with self._lock:
            return list(self._items)

    def drop(self, which: Callable[[Hashable], bool]) -> None:
        """Remove all entries whose key satisfies ``which``."""
        with self._lock:
            for key in [key for key in self._items if which(key)]:
                del self._items[key]


@dataclass(frozen=True)
class Opened:
    """A retriever ready to search a corpus."""

    title: str
    corpus: CorpusManifest
    documents: Documents
    index: Index


class SearchEngine:
    """The retrievers and corpora in use, held within ``limit`` bytes. Takes calls of several threads at once.

    With ``interactive``, indexing that takes long raises NotPreparedError, and so does any by a retriever behind an
    API: what that costs is shown before. ``download`` allows models of the hub that are not on this machine; ``pool``
    encodes documents in other processes; ``payer`` pays for a retriever behind an API.
    """

    def __init__(
        self,
        workspace: Workspace,
        limit: float,
        *,
        interactive: bool = False,
        device: str | None = "cpu",
        download: bool = False,
        progress: Progress = silent,
        pool: PoolEncoder | None = None,
        payer: Payer | None = None,
    ) -> None:
        self.workspace, self.interactive = workspace, interactive
        self.device, self.download, self.pool, self.payer = device, download, pool, payer
        self.progress = progress
        self.cache = Cache(limit)

    def search(self, retriever: str, corpus: str, query: str, k: int) -> dict[str, Any]:
        """Return the ``k`` best documents as ``hits`` (id, title, text, score, matching words and, of late interaction,
        their shares of the score), the retriever's ``title``, and the ``seconds`` of searching. Raises CdpError."""
        opened = self.open(retriever, corpus)
        began = time.perf_counter()
        scores, numbers = opened.index.rank([query], k)[0]
        seconds = time.perf_counter() - began
        documents = opened.documents.take(numbers)
        hits = []
        for number, document, score in zip(numbers, documents, scores, strict=True):
            words, shares = _words(opened, query, number, document.content)
            hit = {**asdict(document), "text": document.text[:SHOWN_CHARACTERS], "score": score}
            hits.append({**hit, "words": words, "shares": shares})

        return {"title": opened.title, "hits": hits, "seconds": seconds}

    def open(self, retriever: str, corpus: str) -> Opened:
        """Load the documents of a corpus (its id), the model and the index unless in memory. Raises CdpError."""
        try:
            searched = load_manifest(self.workspace, corpus)
        except CdpError:  # it was deleted: drop its index and documents
            self.cache.drop(lambda key: isinstance(key, tuple) and corpus in key)
            raise

        documents = self.cache.get(
            ("documents", searched.id),
            searched.content_hash,
            lambda: open_documents(self.workspace, searched),
            lambda documents: documents.nbytes,
        )

        if (parts := reranked_parts(retriever)) is not None:
            return self._reranked(*parts, corpus)

        language = bm25.language_in(retriever)
        key = ("index", retriever, searched.id)

        if language is not None:
            words = language or searched.counted_language
            bm25.check_language(words)
            lexical = self.cache.get(
                key, documents.hash, lambda: _warm(self._lexical(searched, documents, words)), lambda i: i.nbytes
            )
            return Opened(bm25.title_in(words), searched, documents, lexical)

        resolved = self.resolve(retriever)
        encoder = self.encoder(resolved, retriever)

        def make() -> DenseIndex | TokenIndex | WordIndex:
            embedded = self._embeddings(encoder, searched, documents, resolved.title)
            room = self.cache.limit / 2
            kind = kind_of(encoder.model)
            if kind == MULTI_VECTOR:
                return _warm(TokenIndex(encoder, embedded, held=embedded.nbytes <= room))
            if kind == SPARSE:
                return _warm(WordIndex(encoder, embedded))

            as_float32 = 4 * sum(part.size for part in embedded.parts)
            return _warm(DenseIndex(encoder, embedded.parts, held=as_float32 <= room))

        dense = self.cache.get(key, (encoder.identity, documents.hash), make, lambda i: i.nbytes)
        return Opened(resolved.title, searched, documents, dense)

    def _reranked(self, first: str, second: str, corpus: str) -> Opened:
        """Open two retrievers, the second of which scores what the first finds."""
        if reranked_parts(first) is not None:
            raise InputError(f"{first} reranks already.", hint=f"Name one retriever before {second}.")
        self.resolve(second).require([MULTI_VECTOR], "reranking by token vectors")

        try:
            candidates = self.open(first, corpus)
        except NotPreparedError as error:
            raise ModelError(
                error.message, hint=f"Search with {first} alone, and index the documents there."
            ) from error
        if not isinstance(candidates.index, DenseIndex | WordIndex | LexicalIndex):
            raise ModelError(f"{candidates.title} compares tokens itself.", hint="Name bm25, a dense or a sparse one.")

        tokens = self.open(second, corpus)
        assert isinstance(tokens.index, TokenIndex)
        title = reranked_title(candidates.title, tokens.title)

        return Opened(title, tokens.corpus, tokens.documents, CandidateIndex(candidates.index, tokens.index))

    def resolve(self, retriever: str) -> ResolvedRetriever:
        """Return the retriever. NotFoundError if there is none, ModelError if it would have to be downloaded."""
        return resolve(retriever, self.workspace) if self.download else available(self.workspace, retriever)

    def encoder(self, resolved: ResolvedRetriever, retriever: str) -> Encoder:
        """Return the loaded model of a retriever."""
        return self.cache.get(
            ("model", retriever),
            _state(resolved),
            lambda: load_encoder(resolved, self.device, self.payer),
            lambda encoder: encoder.nbytes,
        )

    def _check_length(self, name: str, corpus: CorpusManifest, missing: int, at_once: int) -> None:
        """Raise NotPreparedError if a person waits and more than ``at_once`` documents are missing."""
        if self.interactive and missing > at_once:
            message = f"{name} has not indexed {missing:,} documents of {corpus.name} yet."
            raise NotPreparedError(message, hint="Index them first, as a job.")

    def _embeddings(self, encoder: Encoder, corpus: CorpusManifest, documents: Documents, title: str) -> Embedded:
        """Return the embeddings of all documents in order, computing and keeping those that are missing."""
        from cdp.retrievers.static import is_static

        store = EmbeddingStore(self.workspace, pool=self.pool)
        # An evaluation may have kept them in another precision, for example on a GPU.
        precisions = dict.fromkeys((precision_for(encoder.model), "fp32", "fp16", "bf16"))
        ways = [encoder.encoding("document", precision) for precision in precisions]

        missing = [store.missing(way, documents.hash, len(documents)) for way in ways]
        complete = 0 in missing
        encoding = ways[missing.index(0)] if complete else ways[0]

        with encoder.lock:
            if not complete:
                paid = isinstance(encoder.model, ApiModel)
                at_once = 0 if paid else STATIC_AT_ONCE if is_static(encoder.model) else ENCODED_AT_ONCE
                self._check_length(title, corpus, missing[0], at_once)

            # Of a complete store only the number of texts is looked at.
            texts = [""] * len(documents) if complete else list(documents.contents())
            report = silent if complete else partial(self.progress, "encoding documents")

            try:
                return store.get(
                    lambda: encoder.model,
                    texts,
                    encoding,
                    hash_of_texts=documents.hash,
                    batch_size=BATCH,
                    progress=report,
                )
            except WorkspaceError:  # a full or read-only disk: hold them in memory only
                texts = list(documents.contents())
                return embed(encoder.model, texts, encoding, batch_size=BATCH, progress=report)

    def _lexical(self, corpus: CorpusManifest, documents: Documents, language: str) -> LexicalIndex:
        """Return the kept BM25 index, or make and keep it."""
        folder = self.workspace.embeddings / bm25.index_key(documents.hash, language)
        index = bm25.load_index(folder, len(documents))
        if index is None:
            self._check_length(bm25.TITLE, corpus, len(documents), LEXICAL_AT_ONCE)
            index = bm25.index(list(documents.contents()), language, watch=self.progress)
            with suppress(WorkspaceError):  # a full or read-only disk: hold it in memory only
                bm25.save_index(index, folder)
        return LexicalIndex(index, language)


_I = TypeVar("_I", DenseIndex, TokenIndex, WordIndex, LexicalIndex)


def _warm(index: _I) -> _I:
    # The first call loads libraries, which must not count as searching.
    index.rank(["a"], 1)
    return index


def available(workspace: Workspace, retriever: str) -> ResolvedRetriever:
    """Return the retriever if it is on this machine. ModelError, NotFoundError otherwise."""
    resolved = resolve(retriever, workspace, check_hub=False)
    if not resolved.local:
        raise ModelError(
            f"The model {resolved.name} is not on this machine yet.",
            hint="Index the documents with it as a job, or evaluate it once: either downloads it.",
        )
    return resolved


def _state(resolved: ResolvedRetriever) -> Hashable:
    # A resumed training writes another model under the same id: names, times and sizes of its files tell.
    folder = Path(resolved.source)
    if not folder.is_dir():
        return resolved.source
    files = sorted((e for e in os.scandir(folder) if e.is_file()), key=lambda e: e.name)
    return (str(folder), *((e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in files))


def _words(opened: Opened, query: str, number: int, content: str) -> tuple[list[str], dict[str, float]]:
    """Return the words of a retrieved document to mark, with the shares of those that late interaction matched."""
    language = opened.corpus.counted_language
    index = opened.index.tokens if isinstance(opened.index, CandidateIndex) else opened.index
    if isinstance(index, TokenIndex):
        matched = index.matching_words(query, number, content, language)
        if matched is not None:
            return list(matched), matched
    return matching_words(query, content, language), {}


def matching_words(query: str, text: str, language: str) -> list[str]:
    """Return the words of the text, in lower case, that match a content word of the query.

    English words match by their stem, as for BM25; words of other languages as they are.
    """
    wanted = content_words(query, language)
    beginning = text[:MATCHED_CHARACTERS]
    if language != "en":
        words = {word for words in language_of(language).words([beginning]) for word in words}
        return sorted(words & wanted)
    stems = {_stem(word) for word in wanted} - {""}
    return sorted({word for word in _WORD.findall(beginning.lower()) if _stem(word) in stems})


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    """Return the stem of an English word; empty for a stopword."""
    terms = next(iter(bm25.english_terms([word])))
    return terms[0] if terms else ""
