"""Which documents are taken where not all are: drawn at random by a seed, never the first ones of a sorted file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def permutation(n_documents: int, seed: int) -> NDArray[np.int64]:
    """The positions of all documents of a corpus in random order, the same everywhere.

    Fewer documents are the beginning of more; who needs others than those takes them from the end.
    """
    return np.random.default_rng([seed, n_documents]).permutation(n_documents)
