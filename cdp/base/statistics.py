"""Statistics that rooms share: 95% intervals, bootstrap, lines, regressions, correlations; paired, two-level, Holm.

Numbers in, numbers out. ``docs/METHODS.md`` says which statistic is used where, its source, and how well its interval
covers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.text import counted

Floats = NDArray[np.float64]
Range = tuple[float, float]

# Percent. Means over seeds that are closer are the same when printed: repetitions of one training, not a spread.
NO_SPREAD = 0.005
_RESAMPLES = 2000
# With fewer clusters no difference is called significant, and no answer settled.
FEWEST_CLUSTERS = 10
# From here on the bootstrap's normal limit is used: it is indistinguishable, and takes no time.
_MANY_VALUES = 5_000
# Resampled values held at once: blocks that fit in a processor's cache are several times as fast.
_BLOCK = 100_000


def stdtr(degrees: ArrayLike, t: ArrayLike) -> Any:
    """Return P(T ≤ t) of Student's t."""
    from scipy import special  # inside the functions: importing SciPy takes 0.4 CPU seconds

    return special.stdtr(degrees, t)


def stdtrit(degrees: ArrayLike, p: ArrayLike) -> Any:
    """Return the quantile ``p`` of Student's t."""
    from scipy import special

    return special.stdtrit(degrees, p)


# Lines, correlations and intervals of few points. The points are datasets: each counts once, however many
# conditions it has. Intervals are exact if the points scatter about the line with one normal variance, even
# with three: Student's t with n − 2 degrees of freedom (Draper & Smith, Applied Regression Analysis, 3rd ed. 1998,
# sections 1.3 and 3.1: confidence, prediction; 3.2: inverse regression, Fieller's interval).


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

    def slope_interval(self) -> Range:
        half = _t95(self.degrees) * self.slope_error
        return self.slope - half, self.slope + half

    def mean_interval(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """(low, high) of the line itself at each x: where the mean of many datasets of that x would lie."""
        leverage = (np.asarray(x, np.float64) - self.x_mean) ** 2 / self.sxx
        half = _t95(self.degrees) * self.residual_sd * np.sqrt(1 / self.n + leverage)
        return self.at(x) - half, self.at(x) + half

    def crossing_interval(self) -> Range | None:
        """Fieller's interval of the crossing: every x whose line value does not differ from zero at 95%.

        None where that set has no bounds: the slope does not differ from zero at 95%, so the data do not say
        where, or whether, the line crosses. Fieller 1954, J. R. Statist. Soc. B 16, 175–185.
        """
        # With u = x − x̄, {u: (ȳ + b·u)² ≤ t²s²(1/n + u²/Sxx)} lies between the roots of a·u² + 2·b·ȳ·u + c.
        scale = (_t95(self.degrees) * self.residual_sd) ** 2
        a = self.slope**2 - scale / self.sxx
        if not a > 0:
            return None
        half_b = self.slope * self.y_mean
        c = self.y_mean**2 - scale / self.n
        root = max(0.0, half_b**2 - a * c) ** 0.5
        return self.x_mean + (-half_b - root) / a, self.x_mean + (-half_b + root) / a


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


def _t95(degrees: float) -> float:
    """The two-sided 95% quantile of Student's t: every interval here has this level."""
    return float(stdtrit(degrees, 0.975))


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


@dataclass(frozen=True)
class PairedTest:
    """The difference of two retrievers on one dataset, in the unit of the scores, tested over ``n_clusters``.

    ``low`` and ``high`` bound the mean difference (95%). ``p_t`` is two-sided, None for a single query.
    """

    n: int
    n_clusters: int
    mean: float
    low: float
    high: float
    p_t: float | None
    wins: int
    losses: int
    ties: int


def paired_test(differences: ArrayLike, clusters: Sequence[int] = ()) -> PairedTest:
    """Test the differences of one dataset, shape (n,), in ``clusters`` as in ``cluster_numbers``: the paired t-test
    where each query stands alone. InputError for none, or values that are not finite."""
    deltas = np.asarray(differences, np.float64)
    if deltas.ndim != 1 or not len(deltas):
        raise InputError("There is no query to compare on.")
    if not np.isfinite(deltas).all():
        raise InputError("A difference is not a finite number.")

    mean = float(deltas.mean())
    tested = two_level_test([deltas], clusters=clusters) if len(deltas) > 1 else None

    return PairedTest(
        n=len(deltas),
        n_clusters=count_clusters(clusters, len(deltas)),
        mean=mean,
        low=tested.low if tested else mean,
        high=tested.high if tested else mean,
        p_t=tested.p if tested else None,
        wins=int((deltas > 0).sum()),
        losses=int((deltas < 0).sum()),
        ties=int((deltas == 0).sum()),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for multiple tests, in the given order (Holm 1979, Scand. J. Statist. 6, 65–70)."""
    corrected = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = running
    return corrected


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A mean, or a coefficient of a regression: 95% interval, two-sided p, standard error and degrees of freedom.

    ``degrees`` are Satterthwaite's. Below about four of them the interval is rough, even with many observations.
    """

    name: str
    value: float
    low: float
    high: float
    p: float
    error: float
    degrees: float


def count_clusters(clusters: Sequence[int], n: int) -> int:
    """Return how many clusters ``n`` queries are; as many as queries where ``clusters`` is empty."""
    return len(set(clusters)) or n


def cluster_numbers(clusters: Sequence[int], n: int) -> NDArray[np.int64]:
    """Return the cluster (n,) of each query, from 0. A single cluster has no variance: its queries then count one by
    one, and ``FEWEST_CLUSTERS`` keeps anything from being shown by them."""
    found = np.unique(np.asarray(clusters if len(clusters) else range(n)), return_inverse=True)[1]
    return found if found.max() > 0 else np.arange(n)


def cluster_influence(values: Floats, clusters: NDArray[np.int64]) -> Floats:
    """What each cluster (n,) that occurs adds to the error of the means of ``values`` (A, n), of shape (clusters, A).

    A cluster's sum of residuals, as large as it were had the mean been that of all others (CR3; Bell & McCaffrey 2002).
    """
    names, clusters = np.unique(clusters, return_inverse=True)
    n = values.shape[1]
    sums = np.zeros((len(names), len(values)))
    np.add.at(sums, clusters, (values - values.mean(axis=1, keepdims=True)).T)
    share = np.bincount(clusters)[:, None] / n
    return np.asarray(sums / np.maximum(1 - share, 1e-9) / n)


def two_level_test(
    first: Sequence[Floats], second: Sequence[Floats] = (), *, clusters: Sequence[int] = ()
) -> Coefficient:
    """The mean difference of ``first`` and ``second``, each the scores (n_queries,) of its runs over seeds.

    Queries, in ``clusters`` as in ``cluster_numbers``, and seeds are crossed, so Var = Var(mean per-query difference,
    the jackknife over G clusters) + Σ over both sides (Var(means over seeds)/k − Var(residual)): what varies with both
    is in the first two terms and counts once (Cameron, Gelbach & Miller 2011, J. Bus. Econ. Stat. 29, 238–249,
    Eq. 2.13), with G − 1, k − 1 and Satterthwaite's degrees of freedom (1946, Biometrics Bulletin 2, 110–114). A side
    with one run is taken as a fixed model; for differences that are paired by seed give these as ``first`` alone.
    InputError without scores.
    """
    sides = [np.asarray(side, np.float64) for side in (first, second) if len(side)]
    if not sides or any(side.ndim != 2 for side in sides) or len({side.shape[1] for side in sides}) > 1:
        raise InputError("A difference over seeds needs the scores of the same queries for every run.")

    n = sides[0].shape[1]
    if n < 2:
        raise InputError("A single query has no variance.")

    per_query = sides[0].mean(axis=0)
    if len(sides) > 1:
        per_query = per_query - sides[1].mean(axis=0)

    groups = cluster_numbers(clusters, n)
    influence = cluster_influence(per_query[None], groups)
    count = len(influence)
    # The jackknife: with each query on its own S²/n, and the test the paired t-test.
    parts, free = [float((influence**2).sum()) * (count - 1) / count], [count - 1]
    shared = 0.0
    for side in sides:
        if len(side) > 1:
            parts.append(float(side.mean(axis=1).var(ddof=1)) / len(side))
            free.append(len(side) - 1)
            shared += _residual_variance(side, groups)

    # Never below the larger of the two sources: a difference of estimates can be.
    mean, variance = float(per_query.mean()), max(*parts, sum(parts) - shared)
    if variance <= 1e-24 * max(1.0, mean * mean):
        return _coefficient("mean", mean, 0.0, float(count - 1))

    degrees = variance**2 / float(np.sum(np.square(parts) / free))
    return _coefficient("mean", mean, variance**0.5, degrees)


def _residual_variance(side: Floats, clusters: NDArray[np.int64]) -> float:
    """What neither a run (row) nor a query (column) explains adds to the mean's variance; ``side`` (n_runs,
    n_queries)."""
    influence = cluster_influence(side - side.mean(axis=0), clusters)
    count, k = influence.shape
    return float((influence**2).sum()) * (count - 1) / count / (k * (k - 1))


def correction_rate(people: Floats, judged: Floats, units: NDArray[np.int64]) -> Floats:
    """λ for each labelled query (n,): how much people's differences (A, n) follow the judge's in all *other* clusters.

    The λ that makes the differences of all options least variable, summed over pairs; fitted to the query that it
    corrects it would bias the estimate and shrink its residuals.
    """
    h, m = (values - values.mean(axis=0) for values in (people, judged))
    _, units = np.unique(units, return_inverse=True)

    def without(values: Floats) -> Floats:
        of_cluster = np.array([np.bincount(units, row) for row in np.atleast_2d(values)])
        return of_cluster.sum(axis=1, keepdims=True) - of_cluster

    n = without(np.ones(h.shape[1]))
    covariance = (without(h * m) - without(h) * without(m) / n).sum(axis=0)
    variance = (without(m * m) - without(m) ** 2 / n).sum(axis=0)
    useful = variance > 1e-12
    rate = np.where(useful, covariance / np.where(useful, variance, 1.0), 0.0)
    return np.asarray(rate[units])


def seed_spread(means: Sequence[float]) -> float | None:
    """Return the standard deviation of several seeds' means in percent; None unless they gave different results."""
    if len(means) < 2:
        return None
    deviation = float(np.std(means, ddof=1))
    return deviation if deviation >= NO_SPREAD else None


def bootstrap_interval(values: ArrayLike, *, seed: int = 0) -> Range:
    """Return the 95% percentile interval (Efron 1979) of the mean of ``values``, shape (n,), over 2,000 resamples."""
    data = np.asarray(values, dtype=np.float64)
    if len(data) == 0:
        raise InputError("There are no values, so there is no interval.")

    if len(data) > _MANY_VALUES:
        reach = _t95(len(data) - 1) * float(data.std()) / len(data) ** 0.5
        return float(data.mean() - reach), float(data.mean() + reach)

    rng = np.random.default_rng(seed)
    step = max(1, _BLOCK // len(data))
    parts = [
        data[rng.integers(0, len(data), size=(min(step, _RESAMPLES - start), len(data)))].mean(axis=1)
        for start in range(0, _RESAMPLES, step)
    ]

    low, high = np.percentile(np.concatenate(parts), [2.5, 97.5])
    return float(low), float(high)


# A weighted regression whose observations come in few clusters. Errors are cluster-robust with the small-sample
# correction CR2 (Bell & McCaffrey 2002, Survey Methodology 28, 169–181) and Satterthwaite's degrees of freedom for each
# coefficient (Pustejovsky & Tipton 2018, J. Bus. Econ. Stat. 36, 672–683, https://arxiv.org/abs/1601.01981): with eight
# clusters the plain sandwich is far too sure. tests/base/test_cluster_regression.py simulates the coverage.


def cluster_regression(
    y: ArrayLike,
    columns: dict[str, ArrayLike],
    clusters: Sequence[Hashable],
    weights: ArrayLike | None = None,
    *,
    extra: dict[str, tuple[float, float]] | None = None,
    crossed: Sequence[Hashable] = (),
) -> list[Coefficient]:
    """The coefficients of ``columns`` {name: (n,)}; a constant is one of them where it is wanted (ones).

    ``crossed`` names a second clustering of the observations, such as training corpora beside judged families: errors
    are then robust for both, V = V₁ + V₂ − V₁₂ (Cameron, Gelbach & Miller 2011, J. Bus. Econ. Stat. 29, 238–249,
    Eq. 2.11), never below either one, with the fewer degrees of freedom of the two. With fewer than three values it
    is left out: two corpora do not tell how corpora differ.

    ``extra`` {name: (variance, its degrees of freedom)} adds what all clusters share, such as the training seeds, to
    the variance of a coefficient, and lengthens its interval. InputError for fewer than three clusters, as many columns
    as clusters, or dependent columns.
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
    ways = [clusters]

    if len(set(crossed)) >= 3:
        ways += [crossed, list(zip(clusters, crossed, strict=True))]

    robust = [_robust(x, residual, bread, way) for way in ways]
    found = []
    for number, name in enumerate(columns):
        spreads = [float(variance[number, number]) for variance, _ in robust]
        spread, degrees = spreads[0], robust[0][1][number]

        if len(ways) > 1:
            spread = max(spreads[0], spreads[1], spreads[0] + spreads[1] - spreads[2])
            degrees = min(degrees, robust[1][1][number])

        if extra and name in extra and extra[name][0] > 0:
            shared, free = extra[name]
            # More variance never shortens an interval: the sum keeps at most the clusters' degrees of freedom.
            degrees = min(degrees, (spread + shared) ** 2 / (spread**2 / degrees + shared**2 / free))
            spread += shared

        found.append(_coefficient(name, float(estimate[number]), spread**0.5, degrees))

    return found


def _robust(
    x: Floats, residual: Floats, bread: NDArray[Any], clusters: Sequence[Hashable]
) -> tuple[Floats, list[float]]:
    """(CR2 covariance of the coefficients, the degrees of freedom of each) for one clustering of the observations."""
    rows_of: dict[Hashable, list[int]] = {name: [] for name in clusters}
    for row, name in enumerate(clusters):
        rows_of[name].append(row)

    adjusted = [_adjusted(x[rows], bread) for rows in rows_of.values()]  # A_c X_c, (n_c, p) each
    scores = np.array([a.T @ residual[rows] for a, rows in zip(adjusted, rows_of.values(), strict=True)])
    degrees = []
    for contrast in bread:
        # g_c = (I - H)' e_c A_c X_c M l; their products give the moments of the variance under equal errors.
        parts = [a @ contrast for a in adjusted]
        sums = np.array([x[rows].T @ part for part, rows in zip(parts, rows_of.values(), strict=True)])
        products = np.diag([float(part @ part) for part in parts]) - sums @ bread @ sums.T
        degrees.append(float(np.trace(products) ** 2 / np.sum(products**2)))

    return np.asarray(bread @ (scores.T @ scores) @ bread), degrees


def _adjusted(x: NDArray[Any], bread: NDArray[Any]) -> Floats:
    """(I - X_c M X_c')^(-1/2) X_c, through a decomposition no larger than the number of columns."""
    q, r = np.linalg.qr(x)
    eigenvalues, vectors = np.linalg.eigh(np.eye(r.shape[0]) - r @ bread @ r.T)
    # A cluster that alone decides a coefficient leaves no error of its own: it gets no weight in the variance.
    power = np.where(eigenvalues > 1e-10, 1 / np.sqrt(np.maximum(eigenvalues, 1e-10)), 0.0)
    inverse_root = (vectors * power) @ vectors.T
    return np.asarray(x + q @ ((inverse_root - np.eye(r.shape[0])) @ (q.T @ x)))


def _coefficient(name: str, value: float, error: float, degrees: float) -> Coefficient:
    if error <= 1e-12 * max(1.0, abs(value)):
        return Coefficient(name, value, value, value, float(abs(value) < 1e-12), 0.0, degrees)
    reach = _t95(degrees) * error
    p = float(2 * stdtr(degrees, -abs(value) / error))
    return Coefficient(name, value, value - reach, value + reach, p, error, degrees)
