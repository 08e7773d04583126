"""Distribution functions, from ``scipy.special``, which is loaded by the first that is called.

To import it takes 0.4 CPU seconds, and every command and page imports this room.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike


def stdtr(degrees: ArrayLike, t: ArrayLike) -> Any:
    """P(T ≤ t) of Student's t with so many degrees of freedom."""
    from scipy import special

    return special.stdtr(degrees, t)


def stdtrit(degrees: ArrayLike, p: ArrayLike) -> Any:
    """The quantile of Student's t: the value below which it lies with probability ``p``."""
    from scipy import special

    return special.stdtrit(degrees, p)


def nctdtr(degrees: ArrayLike, shift: ArrayLike, t: ArrayLike) -> Any:
    """P(T ≤ t) of the noncentral t with that noncentrality."""
    from scipy import special

    return special.nctdtr(degrees, shift, t)
