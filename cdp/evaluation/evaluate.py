"""Encode, search, measure: similarity by protocol, order of ties, best passage of a file, unjudged, dev score."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.machine import machine_name
from cdp.base.records import place_of
from cdp.base.text import PhaseProgress, Progress, silent
from cdp.base.worker import Job, Stopped
from cdp.benchmarks import Benchmark, load_benchmark, resolve_benchmark
from cdp.evaluation import measures
from cdp.evaluation.measures import from_ranking
from cdp.retrievers import DENSE, MULTI_VECTOR, PROTOCOLS, bm25
from cdp.retrievers.api import ApiModel, failed_texts, record_failed
from cdp.retrievers.encode import Embedded, EmbeddingStore, Encoding, embed, precision_for
from cdp.retrievers.exact_search import search
from cdp.retrievers.inverted_lists import inverted_lists, search_words
from cdp.retrievers.late_interaction import search_tokens
from cdp.retrievers.load import kind_of
from cdp.retrievers.presets import TRAINED

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class Protocol:
    """How texts become vectors and vectors become scores. ``similarity`` is cosine, dot (also of words' weights) or
    maxsim (of token vectors)."""

    name: str
    similarity: str
    query_prompt: str = ""
    document_prompt: str = ""

    @property
    def normalise(self) -> bool:
        """Whether embeddings are scaled to length 1 before the dot product."""
        return self.similarity == "cosine"


def protocol_for(model: SentenceTransformer, name: str = "published") -> Protocol:
    """The protocol of that name for a loaded model. ConfigError for an unknown one, or one that the model lacks."""
    if name not in PROTOCOLS:
        raise ConfigError(f"{name!r} is not a protocol.", hint=f"There is: {', '.join(PROTOCOLS)}.")
    kind = kind_of(model)
    similarity = TRAINED[kind][name] if name == "paper" else str(model.similarity_fn_name)
    if kind == MULTI_VECTOR:
        similarity = "maxsim"  # MeanMaxSim divides a query's scores by one number, and ranks alike
    elif similarity not in ("cosine", "dot"):
        raise ConfigError(
            f"The model is published with {similarity} similarity, which is not searched exactly here.",
            hint="Use the protocol paper, which takes cosine for every model.",
        )
    return Protocol(name, similarity, *(model.prompts.get(role) or "" for role in ("query", "document")))


@dataclass(frozen=True)
class Ranking:
    """What was retrieved. ``documents`` (n_queries, k) int64 holds document numbers, -1 where there is none;
    ``scores`` (n_queries, k) float32. Rows are in trec_eval's order: score, then document id, both descending."""

    documents: np.ndarray
    scores: np.ndarray


def in_trec_order(benchmark: Benchmark, documents: np.ndarray, scores: np.ndarray) -> Ranking:
    """Documents of equal score by descending id, as trec_eval reads a run, so that ranks mean what it computes."""
    documents, scores = documents.copy(), scores.copy()
    tied = (scores[:, 1:] == scores[:, :-1]) & (documents[:, 1:] >= 0)
    for row in np.flatnonzero(tied.any(axis=1)):
        ids = benchmark.document_ids
        order = sorted(
            range(documents.shape[1]),
            key=lambda j: (scores[row, j], ids[documents[row, j]] if documents[row, j] >= 0 else ""),
            reverse=True,
        )
        documents[row], scores[row] = documents[row, order], scores[row, order]
    return Ranking(documents, scores)


def judge(benchmark: Benchmark, ranking: Ranking) -> tuple[dict[str, float], dict[str, np.ndarray], int]:
    """(mean of each measure, {measure: value per query}, judged queries for which nothing was retrieved).

    NDCG takes every grade above 0 as a gain; the other measures count those from the benchmark's ``relevant_from`` on.
    Where documents are passages of files, ``ndcg@10_of_files`` is NDCG@10 of the files, each by its best passage
    (MaxP, Dai and Callan 2019).
    """
    needed = set(chain.from_iterable(benchmark.qrels.values()))
    numbers = {document: i for i, document in enumerate(benchmark.document_ids) if document in needed}
    pairs: list[tuple[int, int, int]] = []
    for row, query_id in enumerate(benchmark.query_ids):
        grades = benchmark.qrels[query_id]
        pairs += [(row, numbers.get(document, -2), grade) for document, grade in grades.items() if grade > 0]

    query, document, grade = np.array(pairs, np.int64).reshape(-1, 3).T
    ranks = from_ranking(ranking.documents, benchmark.query_ids, query, document, grade)
    names = measures.within(ranking.documents.shape[1])
    per_query = measures.compute(ranks, names)

    if benchmark.relevant_from > 1:
        enough = grade >= benchmark.relevant_from
        strict = from_ranking(ranking.documents, benchmark.query_ids, query[enough], document[enough], grade[enough])
        per_query |= measures.compute(strict, [name for name in names if measures.parse(name)[0] != "ndcg"])

    if benchmark.passages and (files := _files(benchmark.document_ids)) is not None:
        per_query[OF_FILES] = _of_files(benchmark, ranking, files, query, document, grade)

    return {name: float(values.mean()) for name, values in per_query.items()}, per_query, ranks.absent


OF_FILES = "ndcg@10_of_files"
# The documents' vectors of a dev evaluation that are kept for the test: 260,000 documents of minilm.
MAX_VECTOR_BYTES = 400 << 20


def _files(ids: Sequence[str]) -> np.ndarray | None:
    """Per document the number of the first one of its file: int64, shape (n,); None where no file has two passages."""
    first: dict[str, int] = {}
    numbers = np.fromiter((first.setdefault(place_of(name)[0], i) for i, name in enumerate(ids)), np.int64, len(ids))
    return numbers if len(first) < len(numbers) else None


def _of_files(
    benchmark: Benchmark, ranking: Ranking, files: np.ndarray, query: np.ndarray, document: np.ndarray,
    grade: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """NDCG@10 per query of files by their best passage; a file's grade is the highest of its passages."""
    retrieved = np.full_like(ranking.documents, -1)
    for row, found in enumerate(ranking.documents):
        best = list(dict.fromkeys(files[found[found >= 0]].tolist()))
        retrieved[row, : len(best)] = best
    grades: dict[tuple[int, int], int] = {}
    for q, d, g in zip(query.tolist(), np.where(document >= 0, files[document], document).tolist(), grade, strict=True):
        grades[q, d] = max(int(g), grades.get((q, d), 0))
    columns = np.array([(q, d, g) for (q, d), g in grades.items()], np.int64).reshape(-1, 3).T
    return measures.compute(from_ranking(retrieved, benchmark.query_ids, *columns), ["ndcg@10"])["ndcg@10"]


def first_ten(benchmark: Benchmark, ranking: Ranking) -> list[list[str]]:
    """Return the ids of the first ten documents of each query, fewer where fewer were retrieved."""
    ids = benchmark.document_ids
    return [[ids[number] for number in row if number >= 0] for row in ranking.documents[:, :10].tolist()]


def unjudged(benchmark: Benchmark, ranking: Ranking) -> int:
    """Return how many documents among the first ten of all queries have no judgment."""
    retrieved = zip(benchmark.query_ids, first_ten(benchmark, ranking), strict=True)
    return sum(document not in benchmark.qrels[query] for query, row in retrieved for document in row)


@dataclass(frozen=True)
class Evaluation:
    """The result of one model on one benchmark. ``measures`` are means in [0, 1], ``per_query`` {measure: array} in
    the order of the benchmark's queries; ``counts`` says what is behind them, ``seconds`` where the time went, and
    ``settings`` what else determined the result (``max_tokens``: where texts were cut, None if nowhere)."""

    measures: dict[str, float]
    per_query: dict[str, np.ndarray]
    ranking: Ranking
    protocol: Protocol
    counts: dict[str, float]
    seconds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)


def evaluate_model(
    model: SentenceTransformer,
    benchmark: Benchmark,
    *,
    protocol: str = "published",
    top_k: int = 100,
    batch_size: int = 128,
    precision: str = "auto",
    store: EmbeddingStore | None = None,
    model_hash: str = "",
    watch: Progress = silent,
    vectors: Vectors | None = None,
) -> Evaluation:
    """Evaluate a loaded model on one split of a benchmark: encode queries and documents, search, and measure.

    With a ``store`` and the model's ``model_hash``, embeddings are kept there and taken from there; without (while
    training, when the model is another one each time) they stay in memory. ``precision`` is auto, fp32, fp16 or bf16.
    The documents' are taken from ``vectors`` or put there; they must be of this very model.
    """
    chosen = protocol_for(model, protocol)
    precision = precision_for(model, precision)
    encoded = encode_both(
        model, benchmark.queries, benchmark.documents, chosen, precision, store=store, model_hash=model_hash,
        documents_hash=benchmark.documents_hash, batch_size=batch_size, watch=watch, vectors=vectors,
    )  # fmt: skip
    scores, numbers, seconds, reused = retrieve(
        model, encoded, benchmark.queries, benchmark.documents, top_k, exclude=benchmark.excluded_numbers(), watch=watch
    )

    ranking = in_trec_order(benchmark, numbers, scores)
    settings = {
        "similarity": chosen.similarity,
        "query_prompt": chosen.query_prompt,
        "document_prompt": chosen.document_prompt,
        "max_tokens": length_of(model),
        "precision": precision,
        "top_k": top_k,
    }

    return _evaluation(benchmark, ranking, chosen, reused, seconds, settings)


def evaluate_bm25(
    benchmark: Benchmark, *, language: str = "", top_k: int = 100, watch: Progress = silent
) -> Evaluation:
    """Evaluate BM25 on one split of a benchmark, as ``evaluate_model`` does a model.

    ``language`` is the benchmark's own if empty. Raises ConfigError for a language without a word counter.
    """
    language = language or benchmark.counted_language
    bm25.check_language(language)
    began = time.perf_counter()
    made = bm25.index(benchmark.documents, language, watch=watch)
    ready = time.perf_counter()
    scores, documents = bm25.rank(
        made, benchmark.queries, top_k, language=language, exclude=benchmark.excluded_numbers(), watch=watch
    )
    ranking = in_trec_order(benchmark, documents, scores)
    seconds = {"indexing": ready - began, "searching": time.perf_counter() - ready}
    settings = {"similarity": "bm25", "k1": bm25.K1, "b": bm25.B, "language": language, "top_k": top_k}
    counts = {INDEX_BYTES: bm25.index_size(made)}

    return _evaluation(benchmark, ranking, Protocol("published", "bm25"), counts, seconds, settings)


# What a kind of retriever costs: bytes of its index, and milliseconds of searching per query, all queries together and
# without their encoding. ``settings`` name the machine.
INDEX_BYTES, QUERY_MS, MACHINE = "index_bytes", "query_ms", "machine"


def _evaluation(
    benchmark: Benchmark, ranking: Ranking, protocol: Protocol, counts: Mapping[str, float],
    seconds: Mapping[str, float], settings: dict[str, Any],
) -> Evaluation:  # fmt: skip
    """Judge a ranking and put the result together; ``counts`` are those beside the queries' and exclusions'."""
    cost = {QUERY_MS: round(1000 * seconds["searching"] / max(1, benchmark.n_queries), 3)}
    means, per_query, absent = judge(benchmark, ranking)

    return Evaluation(
        measures=means,
        per_query=per_query,
        ranking=ranking,
        protocol=protocol,
        counts={
            "judged_queries": benchmark.n_queries,
            "judged_without_results": absent,
            "excluded_pairs": sum(map(len, benchmark.excluded.values())),
            **counts,
            **cost,
        },
        seconds={name: round(value, 3) for name, value in seconds.items()},
        settings={**settings, MACHINE: machine_name()},
    )


@dataclass(frozen=True)
class Encoded:
    """What a model makes of queries and of documents, and the seconds of each."""

    queries: Embedded
    documents: Embedded
    seconds: Mapping[str, float]


def encode_both(
    model: SentenceTransformer, queries: Sequence[str], documents: Sequence[str], protocol: Protocol, precision: str, *,
    store: EmbeddingStore | None = None, model_hash: str = "", documents_hash: str = "", batch_size: int = 128,
    watch: Progress = silent, vectors: Vectors | None = None,
) -> Encoded:  # fmt: skip
    """Encode queries and documents. Embeddings are kept in the ``store`` and taken from there, if there is one and the
    ``model_hash`` is known."""
    seconds: dict[str, float] = {}
    found: list[Embedded] = []
    kind = kind_of(model)
    prompts = {"query": protocol.query_prompt, "document": protocol.document_prompt}
    was_training = model.training
    model.eval()

    try:
        for role, plural, texts, known in (
            ("query", "queries", queries, ""), ("document", "documents", documents, documents_hash),
        ):  # fmt: skip
            began, phase = time.perf_counter(), f"encoding {plural}"
            encoding = Encoding(model_hash, role, prompts[role], protocol.normalise, length_of(model), precision, kind)
            options: dict[str, Any] = {"batch_size": batch_size, "progress": partial(watch, phase)}

            if store is not None and model_hash:
                options["redo"] = isinstance(model, ApiModel)  # asks again for texts that it could not embed
                found.append(store.get(lambda: model, texts, encoding, hash_of_texts=known, **options))
            elif vectors is not None and known:
                found.append(vectors.get(encoding, known, partial(embed, model, texts, encoding, **options)))
            else:
                found.append(embed(model, texts, encoding, **options))

            seconds[phase] = time.perf_counter() - began
    finally:
        model.train(was_training)

    return Encoded(found[0], found[1], seconds)


def retrieve(
    model: SentenceTransformer, encoded: Encoded, queries: Sequence[str], documents: Sequence[str], k: int, *,
    exclude: Sequence[Sequence[int]] | None = None, watch: Progress = silent,
) -> tuple[np.ndarray, np.ndarray, dict[str, float], dict[str, int]]:  # fmt: skip
    """Return scores and document numbers, each (n_queries, k), seconds by phase, and the counts of reused embeddings.

    ``encoded`` is what ``encode_both`` gives for the queries and the documents.
    """
    kind = kind_of(model)
    of_queries, of_documents, seconds = encoded.queries, encoded.documents, dict(encoded.seconds)

    report = partial(watch, "searching")
    began = time.perf_counter()
    report(0, len(documents))
    device = model.device.type if model.device.type == "cuda" else "cpu"
    failed = failed_texts(model)

    absent = [number for number, text in enumerate(documents) if text in failed]
    if absent:  # a document without a vector is in no ranking, also where all other scores are lower
        exclude = [sorted({*listed, *absent}) for listed in exclude or [()] * len(queries)]

    if kind == DENSE:
        scores, numbers = search(
            np.concatenate(of_queries.parts), of_documents.parts, k, exclude=exclude, device=device, progress=report
        )
    else:
        found_by = _by_tokens if kind == MULTI_VECTOR else _by_words
        find = partial(found_by, of_queries, of_documents, report)
        scores, numbers = _without(exclude or [()] * len(queries), k, find)

    unasked = [number for number, text in enumerate(queries) if text in failed]
    scores[unasked], numbers[unasked] = -np.inf, -1
    seconds["searching"] = time.perf_counter() - began
    counts = {
        "embeddings_reused": of_documents.reused,
        "query_embeddings_reused": of_queries.reused,
        INDEX_BYTES: of_documents.nbytes,
    }
    if failed:
        counts |= {"documents_without_vector": len(absent), "queries_without_vector": len(unasked)}

    return scores, numbers, seconds, counts


Found = tuple[np.ndarray, np.ndarray]


def _by_tokens(queries: Embedded, documents: Embedded, progress: PhaseProgress, k: int) -> Found:
    """Search by MaxSim as ``search`` does by dot products: (scores, numbers), each (n_queries, k)."""
    tokens = queries.tokens
    return search_tokens([tokens.of(i, i + 1) for i in range(len(queries))], documents.tokens, k, progress=progress)


def _by_words(queries: Embedded, documents: Embedded, progress: PhaseProgress, k: int) -> Found:
    """Search by the weights of words, as ``_by_tokens``."""
    lists = inverted_lists(documents.tokens)
    return search_words(queries.tokens, lists, k, progress=progress, total=len(documents))


def _without(exclude: Sequence[Sequence[int]], k: int, find: Callable[[int], Found]) -> Found:
    """Return the first k that ``find`` gives for each query without those to ``exclude``: it is asked for more."""
    depth = k + max(map(len, exclude), default=0)
    scores, numbers = find(depth)

    for row, never in enumerate(exclude):
        out = np.isin(numbers[row], np.asarray(never, np.int64))
        order = np.argsort(out, kind="stable")
        scores[row], numbers[row] = np.where(out, -np.inf, scores[row])[order], np.where(out, -1, numbers[row])[order]

    return scores[:, :k], numbers[:, :k]


def record_unembedded(job: Job, model: SentenceTransformer, benchmark: Benchmark) -> None:
    """List the texts of a benchmark that a retriever behind an API could not embed among the job's failed items."""
    documents = zip(benchmark.document_ids, benchmark.documents, strict=True)
    record_failed(job, model, documents, zip(benchmark.query_ids, benchmark.queries, strict=True))


# Transformers writes 1e30 for a tokenizer of which no length is known.
UNLIMITED = 10**9


def length_of(model: SentenceTransformer) -> int | None:
    """The longest text in tokens that the model reads; None if it cuts nothing."""
    length = model.max_seq_length
    if kind_of(model) == MULTI_VECTOR:  # late interaction may read longer documents than queries
        length = model[0].document_length or length
    if isinstance(length, int):
        return length if length < UNLIMITED else None
    truncation = getattr(getattr(model[0], "tokenizer", None), "truncation", None)
    return int(truncation["max_length"]) if isinstance(truncation, dict) else None


def dev_evaluation(config: TrainingConfig, job: Job) -> Callable[[SentenceTransformer], float | None] | None:
    """The judge on the dev benchmark of a training; None without one.

    The benchmark is read now, so that a wrong one fails before the first step.
    """
    if not config.dev.benchmark:
        return None
    benchmark = load_benchmark(resolve_benchmark(config.dev.benchmark, job.workspace), config.dev.split)

    def watch(phase: str, done: int, total: int) -> None:
        job.advance("evaluating", done, total, message=f"{phase} of {benchmark.name}")

    return DevJudge(benchmark, watch)


class Vectors:
    """The documents' vectors of one state of a model, by what determined them. Half precision is not kept: a model in
    training and the same cast to half give other numbers."""

    def __init__(self) -> None:
        self._kept: dict[str, Embedded] = {}

    def get(self, encoding: Encoding, documents_hash: str, compute: Callable[[], Embedded]) -> Embedded:
        """Return the vectors of documents with this hash, computed at the first call."""
        key = encoding.key(documents_hash)
        if key in self._kept:
            return self._kept[key]
        values = compute()
        if encoding.precision == "fp32" and values.nbytes <= MAX_VECTOR_BYTES:
            self._kept[key] = replace(values, reused=len(values))
        return values


class DevJudge:
    """Judges a model in training by its NDCG@10 on a benchmark; cosine, as it is trained.

    ``vectors`` are the documents' of the state that scored ``best``, the first one where several did.
    """

    def __init__(self, benchmark: Benchmark, watch: Progress) -> None:
        self.benchmark, self.watch = benchmark, watch
        self.best: float | None = None
        self.vectors = Vectors()

    def __call__(self, model: SentenceTransformer) -> float | None:
        """Return the mean NDCG@10 in [0, 1]; None where it was stopped midway."""
        vectors = Vectors()
        try:
            judged = evaluate_model(model, self.benchmark, protocol="paper", watch=self.watch, vectors=vectors)
        except Stopped:
            return None
        score = judged.measures["ndcg@10"]
        if self.best is None or score > self.best:
            self.best, self.vectors = score, vectors
        return score
