"""Power laws in the dimension that figures draw beside their points, with bootstrap intervals."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spectral_laws.errors import NoFitError
from spectral_laws.fitting.bootstrap import cluster_bootstrap_interval
from spectral_laws.fitting.crossings import first_crossing
from spectral_laws.fitting.slopes import Index, Vector, slope
from spectral_laws.plotting.style import minus
from spectral_laws.plotting.tables import groups
from spectral_laws.rng import generator


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made: their level, and the number of resamples."""

    confidence: float
    resamples: int


@dataclass(frozen=True)
class PowerFit:
    """Values at each x, and the line log y = intercept + slope log x through them.

    Attributes:
        points: columns x, centre, low, high, seeds; low = high = centre where an interval needs
            more seeds.
        missing: the x without a (positive) value, which no line goes through.
        slope: NaN from fewer than two points.
        intercept: log y at x = 1.
        interval: of the slope; None where there is none.
    """

    points: pd.DataFrame
    missing: list[float]
    slope: float
    intercept: float
    interval: tuple[float, float] | None

    def line(self, x: ArrayLike) -> Vector:
        """Ordinates on the line."""
        return np.asarray(np.exp(self.intercept + self.slope * np.log(np.asarray(x))))

    def label(self) -> str:
        """The exponent in words: '1.02 [0.97, 1.08]'."""
        if math.isnan(self.slope):
            return "no fit"
        text = minus(f"{self.slope:.2f}")
        if self.interval is None:
            return f"{text} (no interval)"
        low, high = (minus(f"{end:.2f}") for end in self.interval)
        return f"{text} [{low}, {high}]"


def fit_power(
    x: ArrayLike,
    statistic: Callable[[Index], float],
    *,
    bootstrap: Bootstrap | None,
) -> PowerFit:
    """Least squares of log y on log x, y a statistic of the teachers drawn at each x.

    Intervals, of each y and of the slope, are bootstrap intervals that resample teachers within
    each x; they need three teachers at every x.

    Args:
        x: (n,) abscissa of each teacher.
        statistic: y of teachers (positions in ``x``, repeats allowed) of one x; NaN for no value.
        bootstrap: of the intervals; None for no intervals.
    """
    places = np.asarray(x, dtype=np.float64)
    members = {float(v): np.flatnonzero(places == v) for v in np.unique(places)}
    values = {v: statistic(index) for v, index in members.items()}
    used = [v for v, value in values.items() if value > 0]

    def exponent(index: Index) -> float:
        drawn = np.array([statistic(index[places[index] == v]) for v in used])
        return _line(np.array(used), drawn)[0]

    slope_value, intercept = _line(np.array(used), np.array([values[v] for v in used]))
    interval = None
    if len(used) >= 2:
        kept = np.flatnonzero(np.isin(places, used))
        interval = _interval(kept, exponent, strata=places[kept], bootstrap=bootstrap)
    rows = []
    for v in used:
        ends = _interval(members[v], statistic, bootstrap=bootstrap)
        low, high = ends or (values[v], values[v])
        rows.append((v, values[v], low, high, members[v].size))
    points = pd.DataFrame(rows, columns=["x", "centre", "low", "high", "seeds"])
    missing = [v for v in values if v not in used]
    return PowerFit(points, missing, slope_value, intercept, interval)


def mean_fit(
    rows: pd.DataFrame, value: str, *, bootstrap: Bootstrap | None, x: str = "dimension"
) -> PowerFit:
    """:func:`fit_power` of the mean over seeds; ``rows`` has one row per x and seed."""
    numbers = rows[value].to_numpy(dtype=np.float64)
    return fit_power(
        rows[x].to_numpy(dtype=np.float64),
        lambda index: float(numbers[index].mean()),
        bootstrap=bootstrap,
    )


def crossing_fit(
    rows: pd.DataFrame,
    value: str,
    *,
    level: float,
    over: float | None = None,
    bootstrap: Bootstrap | None,
) -> PowerFit:
    """:func:`fit_power`, over d, of the n at which the mean over seeds of ``value`` crosses.

    ``rows`` has one row per dimension, seed and sample size; ``value`` rises with n through
    ``level``. Divided by the n at which the same mean crosses a lower level ``over`` it is the
    transition's width, whose logarithm then has the slope on log d.
    """
    dimensions: list[int] = []
    curves: list[tuple[Vector, Vector]] = []
    for (dimension, _), curve in groups(rows, "dimension", "seed"):
        ordered = curve.sort_values("sample_size")
        dimensions.append(int(dimension))
        sizes = ordered["sample_size"].to_numpy(dtype=np.float64)
        curves.append((sizes, ordered[value].to_numpy(dtype=np.float64)))

    levels = [level] if over is None else [level, over]

    def crossing(index: Index) -> float:
        mean = np.mean([curves[i][1] for i in index], axis=0)
        ends = [first_crossing(curves[index[0]][0], mean, one) for one in levels]
        n, *lower = [math.nan if end is None else end for end in ends]
        return n / lower[0] if lower else n

    return fit_power(dimensions, crossing, bootstrap=bootstrap)


def seed_slope(
    rows: pd.DataFrame, value: str, *, bootstrap: Bootstrap | None
) -> tuple[float, tuple[float, float] | None]:
    """Slope of log of the mean over seeds of ``value`` on log n; its interval resamples seeds.

    ``rows`` has one row per seed and sample size, of one study and dimension. The slope is NaN
    where a mean is not positive, the interval None from fewer than three seeds.
    """
    # pivot refuses two rows of one seed and sample size, pivot_table would average them
    table = rows.pivot(index="sample_size", columns="seed", values=value)  # noqa: PD010
    sizes, values = table.index.to_numpy(np.float64), table.to_numpy(np.float64)

    def exponent(seeds: Index) -> float:
        return _line(sizes, values[:, seeds].mean(axis=1))[0]

    seeds = np.arange(values.shape[1])
    return exponent(seeds), _interval(seeds, exponent, bootstrap=bootstrap)


def _line(x: Vector, y: Vector) -> tuple[float, float]:
    if x.size < 2 or not (y > 0).all():
        return math.nan, math.nan
    log_x, log_y = np.log(x), np.log(y)
    exponent = slope(log_x, log_y)
    return exponent, float(log_y.mean() - exponent * log_x.mean())


def _interval(
    members: Index,
    statistic: Callable[[Index], float],
    *,
    bootstrap: Bootstrap | None,
    strata: Vector | None = None,
) -> tuple[float, float] | None:
    if bootstrap is None:
        return None
    try:
        interval = cluster_bootstrap_interval(
            members,
            lambda rows: statistic(members[rows]),
            confidence=bootstrap.confidence,
            resamples=bootstrap.resamples,
            generator=generator(0, "intervals of a figure"),
            strata=strata,
        )
    except NoFitError:  # too few teachers: the point or the exponent stands without an interval
        return None
    return interval.low, interval.high
