"""A weighted regression whose observations come in few clusters: queries of datasets, datasets of families, conditions
measured on the same dataset.

Errors are cluster-robust with the small-sample correction CR2 (Bell & McCaffrey 2002, Survey Methodology 28, 169–181)
and Satterthwaite's degrees of freedom for each coefficient (Pustejovsky & Tipton 2018, J. Bus. Econ. Stat. 36, 672–683,
https://arxiv.org/abs/1601.01981): with eight or ten clusters the plain sandwich is far too sure. How well the intervals
cover is simulated in ``tests/base/test_cluster_regression.py``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.numbers import counted
from cdp.base.statistics.distributions import stdtr, stdtrit

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One coefficient: estimate, 95% interval, two-sided p, standard error and degrees of freedom.

    Below about four degrees of freedom the interval is only a rough one, whatever the number of observations.
    """

    name: str
    value: float
    low: float
    high: float
    p: float
    error: float
    degrees: float


def cluster_regression(
    y: ArrayLike,
    columns: dict[str, ArrayLike],
    clusters: Sequence[Hashable],
    weights: ArrayLike | None = None,
    *,
    level: float = 0.95,
    extra: dict[str, tuple[float, float]] | None = None,
) -> list[Coefficient]:
    """The coefficients of ``columns`` {name: (n,)}; a constant is one of them where it is wanted (ones).

    ``extra`` {name: (variance, its degrees of freedom)} adds what all clusters share, such as the training seeds, to
    the variance of a coefficient. InputError for fewer than three clusters, as many columns as clusters, or dependent
    columns.
    """
    if not columns:
        raise InputError("No covariate varies, so there is nothing to explain with.")
    values = np.asarray(y, np.float64)
    x = np.column_stack([np.asarray(column, np.float64) for column in columns.values()])
    w = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    names = list(dict.fromkeys(clusters))
    if x.shape[0] != len(values) or len(clusters) != len(values) or w.shape != values.shape:
        raise InputError("A regression needs as many rows of every column as values.")
    if len(names) < 3 or x.shape[1] >= len(names):
        raise InputError(
            f"{counted(len(names), 'independent group')} {'is' if len(names) == 1 else 'are'} too few for "
            f"{counted(x.shape[1], 'coefficient')}."
        )
    if np.linalg.matrix_rank(x) < x.shape[1]:
        raise InputError("The covariates are not independent of each other.")
    root = np.sqrt(w)
    x, values = x * root[:, None], values * root
    bread = np.linalg.inv(x.T @ x)
    estimate = bread @ (x.T @ values)
    residual = values - x @ estimate
    rows_of: dict[Hashable, list[int]] = {name: [] for name in names}
    for row, name in enumerate(clusters):
        rows_of[name].append(row)
    adjusted = [_adjusted(x[rows], bread) for rows in rows_of.values()]  # A_c X_c, (n_c, p) each
    scores = np.array([a.T @ residual[rows] for a, rows in zip(adjusted, rows_of.values(), strict=True)])
    variance = bread @ (scores.T @ scores) @ bread
    found = []
    for number, name in enumerate(columns):
        contrast = bread[number]
        # g_c = (I - H)' e_c A_c X_c M l; their products give the moments of the variance under equal errors.
        parts = [a @ contrast for a in adjusted]
        sums = np.array([x[rows].T @ part for part, rows in zip(parts, rows_of.values(), strict=True)])
        products = np.diag([float(part @ part) for part in parts]) - sums @ bread @ sums.T
        degrees = float(np.trace(products) ** 2 / np.sum(products**2))
        spread = float(variance[number, number])
        if extra and name in extra and extra[name][0] > 0:
            shared, free = extra[name]
            degrees = (spread + shared) ** 2 / (spread**2 / degrees + shared**2 / free)
            spread += shared
        found.append(_coefficient(name, float(estimate[number]), spread**0.5, degrees, level))
    return found


def _adjusted(x: NDArray[Any], bread: NDArray[Any]) -> Floats:
    """(I - X_c M X_c')^(-1/2) X_c, through a decomposition no larger than the number of columns."""
    q, r = np.linalg.qr(x)
    eigenvalues, vectors = np.linalg.eigh(np.eye(r.shape[0]) - r @ bread @ r.T)
    # A cluster that alone decides a coefficient leaves no error of its own: it gets no weight in the variance.
    power = np.where(eigenvalues > 1e-10, 1 / np.sqrt(np.maximum(eigenvalues, 1e-10)), 0.0)
    inverse_root = (vectors * power) @ vectors.T
    return np.asarray(x + q @ ((inverse_root - np.eye(r.shape[0])) @ (q.T @ x)))


def _coefficient(name: str, value: float, error: float, degrees: float, level: float) -> Coefficient:
    if error <= 1e-12 * max(1.0, abs(value)):
        return Coefficient(name, value, value, value, float(abs(value) < 1e-12), 0.0, degrees)
    reach = float(stdtrit(degrees, 0.5 + level / 2)) * error
    p = float(2 * stdtr(degrees, -abs(value) / error))
    return Coefficient(name, value, value - reach, value + reach, p, error, degrees)
