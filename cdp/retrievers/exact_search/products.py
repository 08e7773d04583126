"""Products of a block of documents with a block of queries, in the ways that a machine may be fast at.

Each says by how much it may be off, and finds its entries that reach a floor: one vectorised comparison, after which
almost nothing is left once some documents have been seen.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from cdp.retrievers.exact_search.blocks import Documents, checked, row_squares
from cdp.retrievers.exact_search.threads import Shared

RESIDUAL_FROM = 256
"""From so many queries on, a closer bound is worth measuring what the conversion to bfloat16 lost."""

PIECES_UP_TO = 128
"""For so many queries or fewer the norms are a part worth saving of what a block takes: they are taken piece by piece,
from the cache into which the product has just read the documents."""

PIECE_BYTES = (1 << 20, 4 << 20)
"""Of documents, at least and at most, between the two as many as make PIECE_WORK multiplications. Between two steps a
thread waits for the other's: with a fifth of a millisecond of work in each, two threads were no faster than one (one
query, two cores with AVX-512), with three times as much nearly twice as fast."""

PIECE_WORK = 1 << 24

SMALL = 1 << 19
"""Multiplications of a product that OpenBLAS does without first copying both sides (it does so up to a million). For
FEW_QUERIES or fewer that is up to 1.9 times as fast; for more it is not. NumPy takes many such products in one call,
so that threads need not wait for each other between them."""

FEW_QUERIES = 8

U32, U16 = 2.0**-24, 2.0**-8
"""Unit roundoff of float32 and bfloat16: how far, relatively, rounding to nearest can move a number."""

Hidden = tuple[np.ndarray, np.ndarray]
"""Documents and queries, numbered within their blocks, of pairs that must not be found."""

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Document, query and score of entries of a product."""


class Scores(Protocol):
    """The product of a block, (documents, queries)."""

    def best(self, k: int) -> np.ndarray:
        """The k highest scores of each query, or as many as there are, in no order: (queries, at most k)."""

    def above(self, floor: np.ndarray) -> Entries:
        """The entries that reach the floor of their query, (queries,) float32."""


class Product(Protocol):
    """A way to multiply with one block of queries."""

    relative: float
    """How far a score may be off in relation to itself, beside ``error``."""

    def of(self, documents: Documents, hidden: Hidden) -> Scores:
        """The scores, valid until this thread's next call; ``hidden`` pairs score -inf."""

    def error(self, documents: Documents) -> np.ndarray:
        """A bound, per query, on how far a score of any of the documents is from the exact one."""


class Buffers(threading.local):
    """What a thread multiplies into, again and again: fresh memory would be mapped page by page."""

    def __init__(self) -> None:
        self._scores, self._reached = np.empty(0, np.float32), np.empty(0, bool)

    def of(self, rows: int, queries: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """Room for scores of a type, at most four bytes each, and for whether each reaches its floor:
        (rows, queries)."""
        size = rows * queries
        if size > len(self._reached):
            self._scores, self._reached = np.empty(size, np.float32), np.empty(size, bool)
        scores: np.ndarray = self._scores.view(dtype)[:size].reshape(rows, queries)
        return scores, self._reached[:size].reshape(rows, queries)


def make(kind: str, queries: np.ndarray, device: str, buffers: Buffers) -> Product:
    """``kind``: numpy, torch or bfloat16 on the CPU, ``device`` on any other device that torch knows. ``buffers`` serve
    one product of each thread at a time."""
    if kind in ("numpy", "torch"):
        return _Float32(queries, kind, buffers)
    return _BFloat16(queries, buffers) if kind == "bfloat16" else _OnDevice(queries, device)


@Shared
@contextmanager
def full_float32() -> Iterator[None]:
    """float32 products in float32, whatever shortcut (TF32, bfloat16) the process has allowed elsewhere."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@functools.cache
def numpy_blas() -> Any:
    """threadpoolctl's control of the BLAS in NumPy; without a library where there is none that it can control."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@Shared
def one_blas_thread() -> AbstractContextManager[object]:
    """NumPy's products in the thread that asks for them: its BLAS has one setting for the whole process."""
    control = numpy_blas()
    return control.limit(limits=1) if control.lib_controllers else nullcontext()


def float32_error(norms: np.ndarray, documents: Documents, dim: int) -> np.ndarray:
    """Accumulating n products in float32, in any order, is off by at most (n+2)·u |q||d| with u = 2⁻²⁴, to first
    order; twice that is allowed. The last summand covers numbers below the normal range."""
    return norms * (documents.norm * 2 * (dim + 2) * U32) + (dim + 1) * 2.0**-100


class _Float32:
    """By NumPy's BLAS or torch's."""

    relative = 0.0

    def __init__(self, queries: np.ndarray, kind: str, buffers: Buffers) -> None:
        self.queries, self.kind = queries, kind
        self.operand = np.ascontiguousarray(queries.T)
        self.norms = np.linalg.norm(queries.astype(np.float64), axis=1)
        self.buffers = buffers

    def error(self, documents: Documents) -> np.ndarray:
        return float32_error(self.norms, documents, self.queries.shape[1])

    def of(self, documents: Documents, hidden: Hidden) -> _Float32Scores:
        scores, reached = self.buffers.of(len(documents.values), len(self.queries), np.float32)
        with_norms = documents.norms is None and len(self.queries) <= PIECES_UP_TO
        squares = np.empty(len(scores), np.float32)
        step = self._rows_at_once() if with_norms else max(1, len(scores))
        for start in range(0, len(scores), step):
            piece = documents.values[start : start + step]
            self._multiply(piece, scores[start : start + step])
            if with_norms:
                squares[start : start + step] = row_squares(piece)
        if with_norms:
            documents.norms = checked(np.sqrt(squares), documents.start)
        scores[hidden] = -np.inf
        return _Float32Scores(scores, reached)

    def _rows_at_once(self) -> int:
        n, dim = max(1, len(self.queries)), max(1, self.queries.shape[1])
        least, most = (max(1, size // (4 * dim)) for size in PIECE_BYTES)
        return max(least, min(most, PIECE_WORK // (n * dim)))

    def _multiply(self, values: np.ndarray, scores: np.ndarray) -> None:
        if self.kind == "numpy":
            with np.errstate(over="ignore", invalid="ignore"):  # documents that are refused for their norm
                n, dim = self.queries.shape
                each = max(1, SMALL // max(1, n * dim))
                whole = len(values) // each * each if n <= FEW_QUERIES else 0
                if whole:
                    np.matmul(
                        values[:whole].reshape(-1, each, dim), self.operand, out=scores[:whole].reshape(-1, each, n)
                    )
                np.matmul(values[whole:], self.operand, out=scores[whole:])
            return
        import torch

        torch.mm(torch.from_numpy(values), torch.from_numpy(self.operand), out=torch.from_numpy(scores))


class _Float32Scores:
    def __init__(self, scores: np.ndarray, reached: np.ndarray) -> None:
        self.scores, self.reached = scores, reached

    def best(self, k: int) -> np.ndarray:
        return _best(self.scores, k)

    def above(self, floor: np.ndarray) -> Entries:
        return _entries(np.greater_equal(self.scores, floor, out=self.reached), self.scores)


class _BFloat16:
    """In bfloat16 on a processor that adds such products up in float32. NumPy knows no such numbers: scores are the
    upper 16 bits of a float32, held in int16."""

    # Results are rounded once more, which is relative to the score.
    relative = U16 * 1.01

    def __init__(self, queries: np.ndarray, buffers: Buffers) -> None:
        import torch

        exact = torch.from_numpy(queries)
        self.operand = exact.bfloat16()
        self.norms = np.linalg.norm(queries.astype(np.float64), axis=1)
        self.lost = (exact.double() - self.operand.double()).norm(dim=1).numpy()
        self.dim = queries.shape[1]
        self.buffers = buffers

    def error(self, documents: Documents) -> np.ndarray:
        """With bfloat16 operands q̂ and d̂, |q·d - q̂·d̂| ≤ |q-q̂||d| + |q̂||d-d̂|; each distance is measured, or at most
        2⁻⁸ of the vector."""
        error = float32_error(self.norms, documents, self.dim)
        residual = documents.residual if len(self.norms) >= RESIDUAL_FROM else documents.norm * U16
        return error * 1.02 + (self.lost * documents.norm + self.norms * (1 + U16) * residual) * 1.001

    def of(self, documents: Documents, hidden: Hidden) -> _BFloat16Scores:
        import torch

        bits, reached = self.buffers.of(len(documents.values), len(self.norms), np.int16)
        torch.mm(documents.bfloat16, self.operand.T, out=torch.from_numpy(bits).view(torch.bfloat16))
        bits[hidden] = MINUS_INFINITY
        return _BFloat16Scores(bits, reached)


class _BFloat16Scores:
    def __init__(self, bits: np.ndarray, reached: np.ndarray) -> None:
        self.bits, self.reached = bits, reached

    def best(self, k: int) -> np.ndarray:
        return _best(widened(self.bits), k)

    def above(self, floor: np.ndarray) -> Entries:
        """Compared as integers: such bits are in the order of their numbers, negative ones backwards."""
        least = rounded_down(floor)
        bits = self.bits
        if (floor <= 0).any():  # else negative scores may stand in any order below it
            least, bits = least ^ (least >> 15 & 0x7FFF), bits ^ (bits >> 15 & 0x7FFF)
        return _entries(np.greater_equal(bits, least, out=self.reached), self.bits)


MINUS_INFINITY = np.int16(0xFF80 - 0x10000)


def widened(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bits (int16) as the float32 numbers that they are."""
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def rounded_down(numbers: np.ndarray) -> np.ndarray:
    """The bits (int16) of the largest bfloat16 that is not above each float32."""
    bits = numbers.view(np.uint32)
    # Cutting bits off brings a number nearer to zero: a negative one is moved away from it first.
    return ((bits + np.where(bits >> 31, np.uint32(0xFFFF), np.uint32(0))) >> 16).astype(np.uint16).view(np.int16)


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    k = min(k, len(scores))
    return np.partition(np.ascontiguousarray(scores.T), -k, axis=1)[:, -k:]


def _entries(reached: np.ndarray, scores: np.ndarray) -> Entries:
    entries = np.flatnonzero(reached)  # passes over stretches without any at the speed of memory
    values = scores.ravel()[entries]
    if values.dtype == np.int16:
        values = widened(values)
    entries, values = entries[values > -np.inf], values[values > -np.inf]
    document, query = np.divmod(entries, scores.shape[1])
    return document, query, values


class _OnDevice:
    """In float32 by torch, on a GPU. It may add up bfloat16 in bfloat16, for which no useful bound holds, and is fast
    enough without."""

    relative = 0.0

    def __init__(self, queries: np.ndarray, device: str) -> None:
        import torch

        self.operand = torch.from_numpy(queries).to(device)
        self.norms = np.linalg.norm(queries.astype(np.float64), axis=1)

    def error(self, documents: Documents) -> np.ndarray:
        return float32_error(self.norms, documents, self.operand.shape[1])

    def of(self, documents: Documents, hidden: Hidden) -> _DeviceScores:
        import torch

        with torch.inference_mode():
            scores = documents.tensor @ self.operand.T
            if len(hidden[0]):
                scores[torch.from_numpy(hidden[0]), torch.from_numpy(hidden[1])] = -torch.inf
        return _DeviceScores(scores)


class _DeviceScores:
    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def best(self, k: int) -> np.ndarray:
        best: np.ndarray = self.scores.topk(min(k, len(self.scores)), dim=0).values.T.cpu().numpy()
        return best

    def above(self, floor: np.ndarray) -> Entries:
        import torch

        with torch.inference_mode():
            least = torch.from_numpy(floor).to(self.scores.device)
            document, query = ((self.scores >= least) & (self.scores > -torch.inf)).nonzero(as_tuple=True)
            score = self.scores[document, query]
            return document.cpu().numpy(), query.cpu().numpy(), score.cpu().numpy()
