"""Lines, correlations and intervals of few independent points.

A least-squares line and every interval that follows from it; Pearson's r and Spearman's ρ; the interval of a mean, and
of where several lines cross zero; a slope within clusters.

The points are datasets: each counts once, whatever the number of conditions measured on it, because trainings on the
same dataset are not independent of each other. All intervals are exact if the points scatter about the line with one
normal variance (which is what "between-dataset variance" means here), even with three or four points: they use
Student's t with n − 2 degrees of freedom. Formulas: Draper & Smith, *Applied Regression Analysis* (3rd ed., 1998),
sections 1.3 and 3.1 (confidence, prediction) and 3.2 (inverse regression, Fieller's interval).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.statistics.distributions import nctdtr, stdtr, stdtrit

Floats = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LineFit:
    """y = intercept + slope · x through ``n`` points.

    ``residual_sd`` is the scatter of single points about the line (n − 2 degrees of freedom), ``sxx`` Σ(x − x̄)².
    """

    n: int
    slope: float
    intercept: float
    residual_sd: float
    x_mean: float
    y_mean: float
    sxx: float

    @property
    def degrees(self) -> int:
        return self.n - 2

    @property
    def slope_error(self) -> float:
        """The standard error of the slope."""
        return self.residual_sd / self.sxx**0.5

    @property
    def p(self) -> float:
        """Two-sided p of "the slope is zero"; equal to Pearson's p of the same points."""
        if self.slope_error == 0:
            return 0.0 if self.slope else 1.0
        return float(2 * stdtr(self.degrees, -abs(self.slope / self.slope_error)))

    @property
    def crossing(self) -> float:
        """The x at which the line is zero; nan for a flat line."""
        return self.x_mean - self.y_mean / self.slope if self.slope else float("nan")

    def at(self, x: ArrayLike) -> Floats:
        """The line's value at each x."""
        return self.y_mean + self.slope * (np.asarray(x, np.float64) - self.x_mean)

    def slope_interval(self, *, level: float = 0.95) -> Range:
        half = _quantile(level, self.degrees) * self.slope_error
        return self.slope - half, self.slope + half

    def mean_interval(self, x: ArrayLike, *, level: float = 0.95) -> tuple[Floats, Floats]:
        """(low, high) of the line itself at each x: where the mean of many datasets of that x would lie."""
        half = _quantile(level, self.degrees) * self.residual_sd * np.sqrt(1 / self.n + self._leverage(x))
        return self.at(x) - half, self.at(x) + half

    def prediction_interval(self, x: ArrayLike, *, level: float = 0.95) -> tuple[Floats, Floats]:
        """(low, high) of one new point at each x: the scatter between points and the uncertainty of the line."""
        half = _quantile(level, self.degrees) * self._prediction_error(x)
        return self.at(x) - half, self.at(x) + half

    def probability_above(self, x: float, value: float = 0.0) -> float:
        """The predictive probability that one new point at x lies above ``value``.

        A distance from the line that counts as zero in floating point (points exactly on a line) gives 0, 0.5 or 1.
        """
        distance = float(self.at(x)) - value
        error = float(self._prediction_error(x))
        if error <= 1e-12 * max(1.0, abs(value), abs(distance)):
            return 0.5 if distance == 0 else float(distance > 0)
        return float(stdtr(self.degrees, distance / error))

    def crossing_interval(self, *, level: float = 0.95) -> Range | None:
        """Fieller's interval of the crossing: every x whose line value does not differ from zero at this level.

        None where that set has no bounds: the slope does not differ from zero at this level, so the data do not say
        where, or whether, the line crosses. Fieller 1954, J. R. Statist. Soc. B 16, 175–185.
        """
        # With u = x − x̄, {u: (ȳ + b·u)² ≤ t²s²(1/n + u²/Sxx)} lies between the roots of a·u² + 2·b·ȳ·u + c.
        scale = (_quantile(level, self.degrees) * self.residual_sd) ** 2
        a = self.slope**2 - scale / self.sxx
        if not a > 0:
            return None
        half_b = self.slope * self.y_mean
        c = self.y_mean**2 - scale / self.n
        root = max(0.0, half_b**2 - a * c) ** 0.5
        return self.x_mean + (-half_b - root) / a, self.x_mean + (-half_b + root) / a

    def _leverage(self, x: ArrayLike) -> Floats:
        return (np.asarray(x, np.float64) - self.x_mean) ** 2 / self.sxx

    def _prediction_error(self, x: ArrayLike) -> Floats:
        return self.residual_sd * np.sqrt(1 + 1 / self.n + self._leverage(x))


def fit_line(x: ArrayLike, y: ArrayLike) -> LineFit:
    """The least-squares line through points of shape (n,). InputError for fewer than three, or all at one x."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if xs.shape != ys.shape or xs.ndim != 1:
        raise InputError("A line needs as many x as y.")
    if len(xs) < 3 or np.ptp(xs) == 0:
        raise InputError("A line needs at least three points at different x.")
    dx = xs - xs.mean()
    sxx = float(dx @ dx)
    slope = float(dx @ (ys - ys.mean())) / sxx
    residual = ys - ys.mean() - slope * dx
    spread = float(np.sqrt(residual @ residual / (len(xs) - 2)))
    return LineFit(
        n=len(xs),
        slope=slope,
        intercept=float(ys.mean() - slope * xs.mean()),
        residual_sd=spread,
        x_mean=float(xs.mean()),
        y_mean=float(ys.mean()),
        sxx=sxx,
    )


def power_of_slope(x: ArrayLike, slope: float, sd: float, *, level: float = 0.95) -> float:
    """How often a line through points at these x finds a true ``slope``, points scattering about it by ``sd``.

    The two-sided test at 1 − level with n − 2 degrees of freedom, from the noncentral t distribution. InputError as
    ``fit_line``.
    """
    xs = np.asarray(x, np.float64)
    if len(xs) < 3 or np.ptp(xs) == 0:
        raise InputError("Power needs at least three points at different x.")
    if sd <= 0:
        return 1.0 if slope else 1 - level
    shift = abs(slope) * float(np.sqrt(((xs - xs.mean()) ** 2).sum())) / sd
    bound = _quantile(level, len(xs) - 2)
    power = float(1 - nctdtr(len(xs) - 2, shift, bound) + nctdtr(len(xs) - 2, shift, -bound))
    return power if power == power else 1.0  # the distribution function gives nan far out, where nothing is missed


def _quantile(level: float, degrees: int) -> float:
    """The two-sided quantile of Student's t."""
    return float(stdtrit(degrees, 0.5 + level / 2))


# Intervals of few independent values, such as one mean per dataset. With as many measurements in each cluster (each
# condition on each dataset) Student's t over the cluster means is the exact cluster-aware interval; cluster-robust
# "sandwich" errors are too small with so few clusters (Cameron & Miller 2015, J. Human Resources 50, 317–372).


def mean_interval(values: ArrayLike, *, level: float = 0.95) -> Range | None:
    """Student's t interval of the mean of independent values; None for fewer than two."""
    return _around(values, level, new=False)


def prediction_interval(values: ArrayLike, *, level: float = 0.95) -> Range | None:
    """Where one further value of the same population lies: mean ± t · sd · √(1 + 1/n); None for fewer than two."""
    return _around(values, level, new=True)


def _around(values: ArrayLike, level: float, *, new: bool) -> Range | None:
    data = np.asarray(values, np.float64)
    if len(data) < 2:
        return None
    reach = stdtrit(len(data) - 1, 0.5 + level / 2) * data.std(ddof=1) * np.sqrt(new + 1 / len(data))
    return float(data.mean() - reach), float(data.mean() + reach)


def crossing_of_lines(slopes: ArrayLike, intercepts: ArrayLike, *, level: float = 0.95) -> Range | None:
    """Fieller's interval of −(mean intercept)/(mean slope) over lines that were fitted one per condition, shape (n,).

    It says how far the crossing would move with other conditions on the *same* datasets, so it is no interval for new
    datasets. None for fewer than two lines, or where the mean slope does not differ from zero at this level.
    """
    b, a = np.asarray(slopes, np.float64), np.asarray(intercepts, np.float64)
    if len(b) < 2:
        return None
    n = len(b)
    scale = stdtrit(n - 1, 0.5 + level / 2) ** 2 / n
    cov = np.cov(b, a)
    # {x: (ā + b̄x)² ≤ t²·var(ā + b̄x)}, a quadratic in x.
    square = b.mean() ** 2 - scale * cov[0, 0]
    half = a.mean() * b.mean() - scale * cov[0, 1]
    free = a.mean() ** 2 - scale * cov[1, 1]
    if not square > 0:
        return None
    root = max(0.0, float(half**2 - square * free)) ** 0.5
    return float((-half - root) / square), float((-half + root) / square)


@dataclass(frozen=True, slots=True)
class Pearson:
    """r over ``n`` points, its two-sided p, and Fisher's 95% interval (None with three points: it needs four).

    R. A. Fisher 1921, Metron 1, 3–32. With four points it is wide and slightly conservative (covers 96%, see
    docs/METHODS.md); a bootstrap over four points covers far less than it says.
    """

    n: int
    r: float
    p: float
    interval: Range | None


def pearson(x: ArrayLike, y: ArrayLike) -> Pearson | None:
    """Pearson's correlation of points of shape (n,); None for fewer than three points or where one side is constant."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if xs.shape != ys.shape or xs.ndim != 1:
        raise InputError("A correlation needs as many x as y.")
    if len(xs) < 3 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return None
    from scipy import stats

    found = stats.pearsonr(xs, ys)
    low, high = found.confidence_interval()
    interval = (float(low), float(high)) if len(xs) > 3 else None
    return Pearson(len(xs), float(found.statistic), float(found.pvalue), interval)


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of each value, from 1; equal values share the mean of their ranks. Shape (n,)."""
    from scipy import stats

    return np.asarray(stats.rankdata(values), np.float64)


def spearman(x: ArrayLike, y: ArrayLike) -> Pearson | None:
    """Spearman's ρ: ``pearson`` of the ranks, whose p is the usual approximation."""
    return pearson(ranks(x), ranks(y))


def leave_one_out(x: ArrayLike, y: ArrayLike) -> Range | None:
    """The smallest and the largest r when each point in turn is left out; None with three points or fewer."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(xs) < 4:
        return None
    rest = [pearson(np.delete(xs, i), np.delete(ys, i)) for i in range(len(xs))]
    values = [each.r for each in rest if each is not None]
    return (min(values), max(values)) if values else None


# A slope within clusters, at the level of single observations. A random intercept for each cluster, with the cluster's
# mean as a second covariate (Mundlak 1978, Econometrica 46, 69–85), leaves for the slope within clusters the estimate
# of fixed effects. Its model-based error takes the clusters' slopes to be equal; here the interval is Student's t over
# the clusters' own slopes (Ibragimov & Müller 2010, J. Bus. Econ. Stat. 28, 453–468), which holds when they differ and
# with few clusters.


@dataclass(frozen=True, slots=True)
class WithinSlope:
    """``slope`` is the mean of the clusters' own slopes, with its 95% interval and two-sided p; ``pooled`` the slope of
    the model with a random intercept (Mundlak), in which large clusters count more."""

    slope: float
    low: float
    high: float
    p: float
    pooled: float
    n_clusters: int
    n: int


def within_slope(clusters: Sequence[tuple[ArrayLike, ArrayLike]], *, level: float = 0.95) -> WithinSlope | None:
    """The slope of y on x within clusters, each (x, y) of shape (n,).

    A cluster with fewer than three points or one x has no slope and is left out; None with fewer than two others.
    """
    slopes, products, squares, n = [], 0.0, 0.0, 0
    for xs, ys in clusters:
        x, y = np.asarray(xs, np.float64), np.asarray(ys, np.float64)
        if len(x) < 3 or np.ptp(x) == 0:
            continue
        dx = x - x.mean()
        product, square = float(dx @ (y - y.mean())), float(dx @ dx)
        slopes.append(product / square)
        products, squares, n = products + product, squares + square, n + len(x)
    if len(slopes) < 2:
        return None
    mean, error = float(np.mean(slopes)), float(np.std(slopes, ddof=1)) / len(slopes) ** 0.5
    free = len(slopes) - 1
    reach = float(stdtrit(free, 0.5 + level / 2)) * error
    p = float(2 * stdtr(free, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return WithinSlope(mean, mean - reach, mean + reach, p, products / squares, len(slopes), n)
