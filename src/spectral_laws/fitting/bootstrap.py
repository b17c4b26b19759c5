"""Bootstrap intervals, of independent entries and of whole groups of entries.

Intervals are percentile intervals with levels expanded for small samples: the tails are
Phi(-sqrt(n/(n-1)) t), t the Student quantile of n - 1 degrees of freedom, n the number of
independent units (Hesterberg 2015, "What teachers should know about the bootstrap", section 3.5.2).
They never leave the range of the statistic. Of few units even that range is too narrow: from
three groups an interval can hold the truth no more than three times in four (:func:`coverage`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.loglog import positive_logs

MAXIMUM_DEGENERATE = 0.05
"""Largest share of resamples without a value; above it there is no interval."""

MINIMUM_CLUSTERS = 3
"""Fewer groups than this, in any stratum, give no interval."""

NOMINAL_CLUSTERS = 10
"""Fewer groups than this give an interval whose level is nominal."""

_COVERAGE = {
    1: ((64, 75), (76, 87), (81, 92), (83, 93), (84, 93), (84, 94), (85, 94)),
    2: ((77, 88), (83, 92), (83, 93), (84, 93), (85, 94), (86, 94), (87, 94)),
    5: ((82, 91), (85, 92), (86, 92), (87, 93), (88, 93), (88, 94), (89, 94)),
}
"""In per cent, of so many strata, each of 3, 4 ... 9 clusters: see :func:`coverage`."""


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval, both ends included."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"an interval needs low <= high, got {self.low} and {self.high}")


def bootstrap_slope_interval(
    x: ArrayLike, y: ArrayLike, *, confidence: float, resamples: int, generator: np.random.Generator
) -> Interval:
    """Interval of the slope of :func:`fit_loglog`, resampling pairs (x, y) with replacement.

    Only pairs positive in both enter, as in the fit. A resample whose x are all equal has no
    slope; it is left out, and if more than 5 % of them are such there is no interval.

    Raises:
        NumericalError: if an entry is NaN or infinite.
        NoFitError: if there is no fit, or too many resamples have no slope.
    """
    log_x, log_y, _ = positive_logs(x, y)
    n = log_x.size
    slopes = np.empty(resamples)
    step = max(1, 4_000_000 // n)  # bounds the memory of the index arrays
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        index = generator.integers(0, n, size=(stop - start, n))
        slopes[start:stop] = _row_slopes(log_x[index], log_y[index])
    return _percentiles(slopes, _tail(confidence, n))


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[..., Any],
    *,
    confidence: float,
    resamples: int,
    generator: np.random.Generator,
) -> Interval:
    """Interval of a statistic of independent values.

    ``statistic`` is a function of an array and a keyword ``axis``, e.g. ``np.median``.

    Raises:
        NumericalError: if a value is NaN or infinite.
        NoFitError: if there are fewer than two values.
    """
    array = np.asarray(values, dtype=np.float64)
    check_finite("values of a bootstrap interval", array)
    if array.size < 2:
        raise NoFitError(f"{array.size} value(s) are too few for an interval, it needs 2")
    from scipy import stats  # a second, which jobs that only fit or draw need not spend

    result = stats.bootstrap(
        (array,),
        statistic,
        vectorized=True,
        method="percentile",
        confidence_level=1 - 2 * _tail(confidence, array.size),
        n_resamples=resamples,
        random_state=generator,
    ).confidence_interval
    return Interval(float(result.low), float(result.high))


def cluster_bootstrap_interval(
    clusters: ArrayLike,
    statistic: Callable[[NDArray[np.intp]], float],
    *,
    confidence: float,
    resamples: int,
    generator: np.random.Generator,
    strata: ArrayLike | None = None,
) -> Interval:
    """Interval of a statistic of dependent rows, resampling whole clusters.

    Rows of one cluster (a teacher, a seed, a training) depend on each other; clusters do not. A
    resample draws as many clusters as there are, with replacement, and takes all their rows. With
    ``strata`` the number of clusters of every stratum (say, of every dimension) is kept. Both are
    labels of rows, (n,). ``statistic`` is a function of the row numbers of one resample, in which
    rows repeat; NaN where it has no value (say, a slope over equal x).

    Raises:
        NoFitError: if there are fewer than 3 clusters (in any stratum), or more than 5 % of the
            resamples have no value.
        ValueError: if a cluster lies in two strata.
    """
    labels, cluster_of_row = np.unique(np.asarray(clusters), return_inverse=True)
    rows = [np.flatnonzero(cluster_of_row == c) for c in range(labels.size)]
    members = _strata_members(rows, strata)
    smallest = min((m.size for m in members), default=0)
    if smallest < MINIMUM_CLUSTERS:
        where = "" if strata is None else " of a kind"
        raise NoFitError(
            f"{smallest} independent repetition(s){where}; an interval needs at least "
            f"{MINIMUM_CLUSTERS}"
        )
    values = np.empty(resamples)
    for r in range(resamples):
        drawn = [m[generator.integers(0, m.size, size=m.size)] for m in members]
        values[r] = statistic(np.concatenate([rows[c] for c in np.concatenate(drawn)]))
    units = labels.size - len(members) + 1  # as many degrees of freedom less as there are strata
    return _percentiles(values, _tail(confidence, units))


def coverage(n_clusters: int, n_stratum: int | None = None) -> tuple[float, float] | None:
    """How often a nominal 95 % interval of :func:`cluster_bootstrap_interval` holds the truth.

    Simulated for the mean of independent clusters, lognormal ones exp(z) and Gaussian ones z with
    z ~ N(0, 1), 20,000 times with 1,000 resamples each, in one, two and five equal strata; standard
    errors are below 0.004. Small strata cost coverage however many they are: within one of m
    clusters the bootstrap's variance is too small by (m - 1)/m, which the expansion, made for all
    clusters less one per stratum, does not make good.

    Args:
        n_clusters: number of clusters, at least 3.
        n_stratum: number in the smallest stratum; None without strata.

    Returns:
        Coverage for lognormal and for Gaussian clusters; None if the smallest stratum holds
        :data:`NOMINAL_CLUSTERS` or more.
    """
    size = n_stratum or n_clusters
    if size >= NOMINAL_CLUSTERS:
        return None
    strata = max(simulated for simulated in _COVERAGE if simulated * size <= n_clusters)
    skewed, gaussian = _COVERAGE[strata][size - MINIMUM_CLUSTERS]
    return skewed / 100, gaussian / 100


def _strata_members(
    rows: list[NDArray[np.intp]], strata: ArrayLike | None
) -> list[NDArray[np.intp]]:
    """Cluster numbers of each stratum."""
    if strata is None:
        return [np.arange(len(rows))]
    stratum_of_row = np.unique(np.asarray(strata), return_inverse=True)[1]
    if any(np.ptp(stratum_of_row[r]) > 0 for r in rows):
        raise ValueError("a cluster lies in more than one stratum")
    stratum_of_cluster = np.array([stratum_of_row[r[0]] for r in rows])
    return [np.flatnonzero(stratum_of_cluster == s) for s in np.unique(stratum_of_cluster)]


def _row_slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least-squares slope of every row; NaN where a row's x are all equal."""
    dx = x - x.mean(axis=1, keepdims=True)
    sxx = np.einsum("ij,ij->i", dx, dx)
    sxy = np.einsum("ij,ij->i", dx, y)
    varied = np.ptp(x, axis=1) > 0
    slopes = np.full(sxx.shape, np.nan)
    np.divide(sxy, sxx, out=slopes, where=varied)
    return slopes


def _tail(confidence: float, units: int) -> float:
    """Level of each tail of the expanded percentile interval of so many independent units."""
    t = -stdtrit(units - 1, (1 - confidence) / 2)
    return float(ndtr(-np.sqrt(units / (units - 1)) * t))


def _percentiles(values: NDArray[np.float64], tail: float) -> Interval:
    kept = values[~np.isnan(values)]
    if kept.size < (1 - MAXIMUM_DEGENERATE) * values.size:
        raise NoFitError(
            f"{values.size - kept.size} of {values.size} resamples have no value; no interval"
        )
    check_finite("bootstrap resamples", kept)
    low, high = np.quantile(kept, [tail, 1 - tail])
    return Interval(float(low), float(high))
