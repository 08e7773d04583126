"""Texts to embeddings, sorted by length: shards kept so that nothing is computed twice, precision, cache key.

A set of embeddings lies in ``embeddings/<key>/``: ``manifest.json`` and one ``.npy`` file per 16,384 texts, in the
order of the texts. The key is a hash of everything that determines the numbers, so benchmarks with the same texts share
them, and an interrupted run continues with the first shard that is missing.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from cdp.base.errors import ModelError
from cdp.base.records import fields, whole
from cdp.base.text import PhaseProgress, silent
from cdp.base.worker import Stopped
from cdp.base.workspace import Workspace, now, sha256_text, write_bytes, write_json
from cdp.benchmarks.benchmark import texts_hash
from cdp.retrievers.late_interaction import TokenVectors
from cdp.retrievers.presets import DENSE, MULTI_VECTOR, SPARSE

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SHARD_TEXTS = 16384
# Token vectors of a text take about a hundred times as much.
SHARD_TEXTS_OF_TOKENS = 1024
_MANIFEST = fields({"shard_texts": Annotated[int, Field(gt=0)]})
# What a result in half precision says of it.
HALF_PRECISION = (
    "Embeddings are kept in fp16. Measured with all-MiniLM-L6-v2 on SciFact (300 queries), those of fp32 rounded: "
    "99.9% of the first ten documents are the same, in 3 queries their order or choice differs, NDCG@10 is equal to "
    "within 0.01 points."
)

# Texts that a sparse model encodes at once: it has a number for each word of its vocabulary at each token, 500 MB.
SPARSE_AT_ONCE = 16

# Batches between two looks at the clock and at the request to stop.
BATCHES_PER_CALL = 8

Loader = Callable[[], "SentenceTransformer"]

__all__ = ["Embedded", "EmbeddingStore", "Encoding", "PoolEncoder", "cast", "encode", "npy", "precision_for"]


@dataclass(frozen=True)
class Encoding:
    """Everything besides the texts that determines an embedding.

    ``model_hash`` covers weights, pooling and vocabulary; ``max_length`` is in tokens, None as the model says;
    ``precision`` is that of the computation and of the shards: fp32, fp16 or bf16 (kept as fp32). Of the ``kind``
    multi-vector a text has a vector for each token, kept as float16 for documents; of the kind sparse a row (word,
    weight) for each word with a weight, kept as float32.
    """

    model_hash: str
    role: str
    prompt: str = ""
    normalise: bool = True
    max_length: int | None = None
    precision: str = "fp32"
    kind: str = DENSE

    def key(self, hash_of_texts: str) -> str:
        """The name of the folder for texts of that hash: 24 hex digits."""
        values = asdict(self)
        if self.kind == DENSE:
            del values["kind"]  # as keys were made before there were others
        return sha256_text(*(f"{name}={value}" for name, value in values.items()), hash_of_texts)[:24]

    @property
    def dtype(self) -> type[np.floating[Any]]:
        halved = self.kind == MULTI_VECTOR and self.role == "document"
        half = halved or (self.precision == "fp16" and self.kind != SPARSE)
        return np.float16 if half else np.float32


def precision_for(model: SentenceTransformer, wanted: str = "auto", *, on_gpu: bool | None = None) -> str:
    """The precision ``wanted``. auto: fp32 on a CPU; on a GPU bf16 for a model stored so, else fp16. ``on_gpu`` None:
    by the model's device."""
    import torch

    if wanted != "auto":
        return wanted
    parameter = next(model.parameters(), None)
    if parameter is None or not (model.device.type == "cuda" if on_gpu is None else on_gpu):
        return "fp32"
    return "bf16" if parameter.dtype == torch.bfloat16 else "fp16"


def cast(model: SentenceTransformer, precision: str) -> SentenceTransformer:
    """The model with its weights in that precision, for a model that is only used and never trained."""
    import torch

    return model.to({"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32))


def encode(
    model: SentenceTransformer,
    texts: Sequence[str],
    encoding: Encoding,
    *,
    batch_size: int = 128,
    progress: PhaseProgress = silent,
) -> np.ndarray:
    """Embeddings of ``texts``, (n, dim), float16 for precision fp16, else float32. In memory, nothing is kept.

    Longest texts first, so that a batch that does not fit in memory fails at once. ModelError if the model gives values
    that are not finite.
    """
    order = np.argsort([-len(text) for text in texts], kind="stable")
    dim = model.get_embedding_dimension()

    result = np.empty((len(texts), dim or 0), encoding.dtype)
    step = batch_size * BATCHES_PER_CALL
    for start in range(0, len(order), step):
        progress(start, len(order))
        part = order[start : start + step]
        vectors = np.asarray(_made(model, [texts[i] for i in part], encoding, batch_size), np.float32)
        vectors = unit_length(vectors) if encoding.normalise else vectors
        _check_finite(vectors)
        if start == 0 and vectors.shape[1] != result.shape[1]:
            result = np.empty((len(texts), vectors.shape[1]), encoding.dtype)
        result[part] = vectors

    return result


def embed(
    model: SentenceTransformer,
    texts: Sequence[str],
    encoding: Encoding,
    *,
    batch_size: int = 128,
    progress: PhaseProgress = silent,
) -> Embedded:
    """Return what a model of any kind makes of ``texts``, in memory; as ``encode`` in all else."""
    if encoding.kind == DENSE:
        return Embedded([encode(model, texts, encoding, batch_size=batch_size, progress=progress)])

    order = np.argsort([-len(text) for text in texts], kind="stable")
    sparse = encoding.kind == SPARSE
    batch_size = min(batch_size, SPARSE_AT_ONCE) if sparse else batch_size
    dim = 2 if sparse else model.get_embedding_dimension() or 0
    tokens = [np.empty((0, dim), encoding.dtype)] * len(texts)
    step = batch_size * BATCHES_PER_CALL

    for start in range(0, len(order), step):
        progress(start, len(order))
        part = order[start : start + step]
        found = _made(model, [texts[i] for i in part], encoding, batch_size)

        for i, vectors in zip(part.tolist(), found, strict=True):
            tokens[i] = _weighted(vectors, encoding) if sparse else vectors.astype(encoding.dtype)
            _check_finite(tokens[i])

    return Embedded([np.concatenate(tokens)] if tokens else [], lengths=np.array([*map(len, tokens)], np.int64))


def _weighted(vector: Any, encoding: Encoding) -> np.ndarray:
    """Return the weights of a text's words, (vocabulary,), as rows (word, weight) of those that are not 0."""
    weights = vector if isinstance(vector, np.ndarray) else vector.float().numpy()
    words = np.flatnonzero(weights)
    weights = weights[words] / (np.linalg.norm(weights) if encoding.normalise and len(words) else 1.0)

    return np.stack([words, weights], 1).astype(encoding.dtype)


def _check_finite(vectors: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise ModelError(
            "The model gave an embedding that is not a finite number.",
            hint="Its weights are damaged, or its numbers do not fit half precision: evaluate in fp32.",
        )


def _made(model: SentenceTransformer, texts: list[str], encoding: Encoding, batch_size: int) -> Any:
    """What the model itself gives for texts: an array, or one for each; of a sparse one tensors."""
    made_by = model.encode_query if encoding.role == "query" else model.encode_document
    options: dict[str, Any] = {"convert_to_numpy": True}
    if encoding.kind == SPARSE:
        options = {"convert_to_sparse_tensor": False, "save_to_cpu": True}
    # Of a model in training whose lower layers are frozen: what these give for a text is kept.
    lower = getattr(model, "lower_layers", None)

    with _explained(), _autocast(model, encoding.precision):
        if lower is not None:
            return lower.embed(texts, encoding.prompt, batch_size, encoding.role)
        return made_by(texts, prompt=encoding.prompt, batch_size=batch_size, show_progress_bar=False, **options)


@contextmanager
def _explained() -> Iterator[None]:
    """Raise ModelError where a model cannot read what its own tokenizer gives, or has no modules for a role."""
    try:
        yield
    except (IndexError, ValueError) as error:
        raise ModelError(
            f"The model cannot embed these texts: {error}.",
            hint="Its tokenizer may be of another model, or its router name other roles than query and document.",
        ) from error


def _autocast(model: SentenceTransformer, precision: str) -> AbstractContextManager[Any]:
    """Half precision for a model whose weights are float32 (one in training); nothing to do for any other."""
    import torch

    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision)
    if half is None:  # asked first: to look for a parameter takes as long as the table of a static model
        return nullcontext()
    parameter = next(model.parameters(), None)
    if parameter is None or parameter.dtype != torch.float32:
        return nullcontext()
    return torch.autocast(model.device.type, dtype=half)


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1; a row of zeros (an empty text) stays zero, so its cosine with anything is 0."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


@dataclass(frozen=True)
class PoolEncoder:
    """Other processes that encode the missing shards: each loads the retriever of this name and length itself."""

    map_missing: Callable[..., Iterator[Path]]
    retriever: str
    max_length: int | None = None
    should_stop: Callable[[], bool] = bool

    def encode(
        self, shards: Iterable[tuple[Path, list[str]]], encoding: Encoding, batch_size: int
    ) -> Generator[Path, None, None]:
        files = ((path, (self.retriever, self.max_length, encoding, batch_size, texts)) for path, texts in shards)
        yield from self.map_missing(_make_shard, files, self.should_stop)


def _make_shard(
    path: Path, retriever: str, max_length: int | None, encoding: Encoding, batch_size: int, texts: list[str]
) -> None:
    model = _loaded(retriever, max_length, encoding.precision)
    write_bytes(path, _shard(embed(model, texts, encoding, batch_size=batch_size)))


@lru_cache(1)
def _loaded(retriever: str, max_length: int | None, precision: str) -> SentenceTransformer:
    from cdp.retrievers.load import load
    from cdp.retrievers.resolve import resolve

    return cast(load(resolve(retriever, Workspace.default()), None, max_length), precision)


@dataclass(frozen=True)
class Embedded:
    """Embeddings that lie in memory or in shards: ``parts`` follow each other. ``reused`` counts texts not computed.

    Of multi-vector models the parts hold token vectors, of sparse ones rows (word, weight), and ``lengths`` (n_texts,)
    says how many each text has.
    """

    parts: list[np.ndarray]
    reused: int = 0
    lengths: np.ndarray | None = None

    def __len__(self) -> int:
        return sum(map(len, self.parts)) if self.lengths is None else len(self.lengths)

    @property
    def tokens(self) -> TokenVectors:
        return TokenVectors(self.parts, self.lengths)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)


class EmbeddingStore:
    """The embeddings of a workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        shard_texts: int | None = None,
        pool: PoolEncoder | None = None,
    ) -> None:
        self.root = workspace.embeddings
        self.shard_texts = shard_texts
        self.pool = pool

    def missing(self, encoding: Encoding, hash_of_texts: str, n_texts: int) -> int:
        """How many of the texts have no embedding yet. Only looks; 0 where ``get`` would compute nothing."""
        folder = self.root / encoding.key(hash_of_texts)
        size = _begun_with(folder)
        if not size:
            return n_texts
        rows = [min(size, n_texts - start) for start in range(0, n_texts, size)]
        return sum(n for i, n in enumerate(rows) if _open(folder / f"shard-{i:05d}.npy", n, encoding.kind) is None)

    def get(
        self,
        load: Loader,
        texts: Sequence[str],
        encoding: Encoding,
        *,
        hash_of_texts: str = "",
        batch_size: int = 128,
        progress: PhaseProgress = silent,
        redo: bool = False,
    ) -> Embedded:
        """The embeddings of ``texts`` as memory maps, computing the shards that are not there yet.

        With ``redo`` also those in which a text has a row of zeros: an endpoint gave no vector for it.

        ``load`` gives the model, and is called only if something has to be computed. Raises what ``progress`` raises,
        and Stopped where the pool was stopped.
        """
        hash_of_texts = hash_of_texts or texts_hash(texts)
        folder = self.root / encoding.key(hash_of_texts)
        size = self._shard_size(folder, encoding, hash_of_texts, len(texts))
        starts = range(0, len(texts), size)
        paths = [folder / f"shard-{i:05d}.npy" for i in range(len(starts))]
        wanted = [min(size, len(texts) - start) for start in starts]
        shards = [_open(path, rows, encoding.kind) for path, rows in zip(paths, wanted, strict=True)]
        there = [
            shard is not None and not (redo and _gaps(shard.parts[0], texts[start : start + rows]))
            for shard, start, rows in zip(shards, starts, wanted, strict=True)
        ]

        missing = [i for i in range(len(starts)) if not there[i]]
        done = len(texts) - sum(wanted[i] for i in missing)

        if self.pool is not None and missing:
            tasks = ((paths[i], list(texts[starts[i] : starts[i] + wanted[i]])) for i in missing)
            rows = dict(zip(paths, wanted, strict=True))
            with closing(self.pool.encode(tasks, encoding, batch_size)) as made:
                for path in made:
                    done += rows[path]
                    progress(done, len(texts))
            if not all(paths[i].exists() for i in missing):
                raise Stopped

        for i in missing if self.pool is None else ():
            part = texts[starts[i] : starts[i] + wanted[i]]
            shifted = _shifted(progress, done, len(texts))
            write_bytes(paths[i], _shard(embed(load(), part, encoding, batch_size=batch_size, progress=shifted)))
            done += wanted[i]

        opened = [_open(path, rows, encoding.kind) for path, rows in zip(paths, wanted, strict=True)]
        kept = [shard for shard in opened if shard is not None]
        reused = sum(rows for rows, was in zip(wanted, there, strict=True) if was)
        progress(len(texts), len(texts))
        lengths = [shard.lengths for shard in kept if shard.lengths is not None]

        return Embedded([shard.parts[0] for shard in kept], reused, np.concatenate(lengths) if lengths else None)

    def _shard_size(self, folder: Path, encoding: Encoding, hash_of_texts: str, n_texts: int) -> int:
        """The shard size that the folder was begun with; begins it if it is new."""
        if size := _begun_with(folder):
            return size

        size = self.shard_texts or (SHARD_TEXTS if encoding.kind == DENSE else SHARD_TEXTS_OF_TOKENS)
        write_json(
            folder / "manifest.json",
            {
                "schema": 1,
                **asdict(encoding),
                "texts_hash": hash_of_texts,
                "n_texts": n_texts,
                "shard_texts": size,
                "created": now(),
            },
        )

        return size


def _begun_with(folder: Path) -> int:
    """Return the texts of a shard by the folder's manifest; 0 if there is none, or it is damaged."""
    manifest = whole(_MANIFEST, folder / "manifest.json")
    return manifest["shard_texts"] if manifest else 0


def _shifted(progress: PhaseProgress, start: int, total: int) -> PhaseProgress:
    return lambda done, _: progress(start + done, total)


def npy(values: np.ndarray) -> bytes:
    """Return an array as the content of a ``.npy`` file."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def _shard(embedded: Embedded) -> bytes:
    """Return the content of a shard: one array; for token vectors, those of all texts after the texts' lengths."""
    values = embedded.parts[0]
    return npy(values) if embedded.lengths is None else npy(embedded.lengths) + npy(values)


def _gaps(shard: np.ndarray, texts: Sequence[str]) -> bool:
    """Return True if a text that is not blank has a row of zeros."""
    zero = np.flatnonzero(~shard.any(axis=1)).tolist()
    return any(texts[row].strip() for row in zero)


def _open(path: Path, rows: int, kind: str) -> Embedded | None:
    """A shard as a memory map; None if it is not there, or is not a whole shard of so many texts."""
    try:
        if kind != DENSE:
            return _open_tokens(path, rows)
        shard = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return Embedded([shard]) if shard.ndim == 2 and len(shard) == rows else None


def _open_tokens(path: Path, rows: int) -> Embedded | None:
    """The same of token vectors. ValueError or OSError for a file that was cut off."""
    with path.open("rb") as file:
        lengths = np.load(file, allow_pickle=False)
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        values = np.memmap(path, dtype, "r", file.tell(), shape) if math.prod(shape) else np.empty(shape, dtype)

    fits = lengths.shape == (rows,) and len(shape) == 2 and lengths.sum() == shape[0]
    return Embedded([values], lengths=lengths) if fits else None
