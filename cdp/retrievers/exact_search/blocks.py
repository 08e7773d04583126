"""Some documents on their way through the products, with what bounds the error of those; and who may not find whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cdp.base.errors import InputError

if TYPE_CHECKING:
    import torch


def row_norms(values: np.ndarray, start: int) -> np.ndarray:
    """Euclidean norms (n,) of float32 rows. InputError, counting from ``start``, for one that is not finite."""
    return checked(np.sqrt(row_squares(values)), start)


def row_squares(values: np.ndarray) -> np.ndarray:
    """The squares of the norms, perhaps not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares: np.ndarray = np.vecdot(values, values)
        return squares


def checked(norms: np.ndarray, start: int) -> np.ndarray:
    """``norms`` themselves if all are finite; InputError that names the first that is not."""
    if not np.isfinite(norms).all():
        row = start + int(np.flatnonzero(~np.isfinite(norms))[0])
        raise InputError(f"The embedding of document {row} holds a value that is not finite, or too large.")
    return norms


class Documents:
    """Rows ``start`` … of the documents, (rows, dim), as float32 on the device that multiplies them."""

    def __init__(self, values: np.ndarray, start: int, *, device: str = "cpu", norms: np.ndarray | None = None) -> None:
        self.start, self.device, self.norms = start, device, norms
        self.values = np.ascontiguousarray(values, np.float32) if device == "cpu" else values

    @cached_property
    def norm(self) -> float:
        """The highest norm of any, and a little more: squares below the normal range are lost."""
        norms = self.norms
        if norms is None:
            norms = row_norms(self.values, self.start) if self.device == "cpu" else self._norms_there()
        return float(norms.max()) + self.values.shape[1] ** 0.5 * 2.0**-74

    def _norms_there(self) -> np.ndarray:
        import torch

        norms: np.ndarray = torch.linalg.vector_norm(self.tensor, dim=1).cpu().numpy()
        return checked(norms, self.start)

    @cached_property
    def tensor(self) -> torch.Tensor:
        import torch

        # Half precision goes to a device as it is: the way there is the slowest part.
        return torch.from_numpy(self.values).to(self.device).float()

    @cached_property
    def bfloat16(self) -> torch.Tensor:
        return self.tensor.bfloat16()

    @cached_property
    def residual(self) -> float:
        """The largest distance between a document and its bfloat16 form."""
        largest = 0.0
        for start in range(0, len(self.values), 256):  # in pieces that stay in the processor's cache
            lost = self.bfloat16[start : start + 256].float().sub_(self.tensor[start : start + 256]).numpy()
            largest = max(largest, float(np.vecdot(lost, lost).max()))
        return float(np.sqrt(largest))


class Exclusions:
    """Forbidden (query, document) pairs, ordered by document so that a block finds its own at once."""

    def __init__(self, exclude: Sequence[Sequence[int]] | None, n_queries: int, n_documents: int) -> None:
        if exclude is not None and len(exclude) != n_queries:
            raise InputError(f"There are {len(exclude)} lists of excluded documents for {n_queries} queries.")
        pairs = [(d, q) for q, listed in enumerate(exclude or ()) for d in listed]
        table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        if len(table) and (table[0, 0] < 0 or table[-1, 0] >= n_documents):
            raise InputError(f"An excluded document is not among the {n_documents} documents.")
        self.documents, self.queries = table[:, 0], table[:, 1]

    def within(self, start: int, stop: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """(document - start, query - first) of the pairs inside a block of documents and one of queries."""
        low, high = np.searchsorted(self.documents, [start, stop])
        queries = self.queries[low:high]
        inside = (queries >= first) & (queries < last)
        return self.documents[low:high][inside] - start, queries[inside] - first
