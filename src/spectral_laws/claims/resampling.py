"""What every measurement shares: the bootstrap, the unit that is resampled, and slopes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.claims.selections import dimensions_text
from spectral_laws.claims.verdicts import Measurement, value_text
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.bootstrap import Interval, cluster_bootstrap_interval

Index = NDArray[np.intp]
Vector = NDArray[np.float64]

TEACHER = ["degree", "dimension", "seed"]
"""One draw of teacher and inputs: studies that differ in readout or gamma share it, so it is the
unit that is resampled."""

TRAINING = ["model", "seed"]
"""One training of one network; its layers depend on each other."""


@dataclass(frozen=True)
class Resampling:
    """How intervals are made.

    Attributes:
        confidence: level of the interval.
        resamples: number of bootstrap resamples.
        generator: source of the resampling.
    """

    confidence: float
    resamples: int
    generator: np.random.Generator

    def interval(
        self,
        rows: pd.DataFrame,
        statistic: Callable[[Index], float],
        *,
        cluster: Sequence[str],
        strata: Sequence[str] = (),
    ) -> Interval:
        """Cluster bootstrap interval of a statistic of row numbers of ``rows``.

        Args:
            rows: the entries.
            statistic: function of row numbers, NaN where it has no value.
            cluster: columns that name the independent unit a row belongs to.
            strata: columns within which the number of units is kept.

        Raises:
            NoFitError: if there are too few units.
        """
        return cluster_bootstrap_interval(
            rows.groupby(list(cluster)).ngroup().to_numpy(),
            statistic,
            confidence=self.confidence,
            resamples=self.resamples,
            generator=self.generator,
            strata=rows.groupby(list(strata)).ngroup().to_numpy() if strata else None,
        )

    def measure(
        self,
        rows: pd.DataFrame,
        statistic: Callable[[Index], float],
        *,
        cluster: Sequence[str],
        strata: Sequence[str] = (),
        n: int,
        reason: str,
        scope: str | None = None,
    ) -> Measurement:
        """The statistic of all rows with its interval.

        Arguments as in :meth:`interval`; those of the measurement are in :class:`Measurement`.
        Without ``scope`` it is the range of dimensions, where rows have one.

        Raises:
            NoFitError: if the statistic has no value, or there are too few units.
        """
        value = float(statistic(np.arange(len(rows))))
        if np.isnan(value):
            raise NoFitError(f"no value from {reason}")
        interval = self.interval(rows, statistic, cluster=cluster, strata=strata)
        if scope is None:
            scope = dimensions_text(rows) if "dimension" in rows.columns else ""
        return Measurement(value, interval.low, interval.high, n, reason, scope=scope)

    def text(
        self,
        rows: pd.DataFrame,
        statistic: Callable[[Index], float],
        *,
        cluster: Sequence[str],
        strata: Sequence[str] = (),
    ) -> str:
        """The statistic of all rows as '1.02 [0.97, 1.07]'; without interval if units are few."""
        value = float(statistic(np.arange(len(rows))))
        if np.isnan(value):
            return "no value"
        try:
            interval = self.interval(rows, statistic, cluster=cluster, strata=strata)
        except NoFitError:
            return value_text(value, None, None)
        return value_text(value, interval.low, interval.high)


def slope(x: Vector, y: Vector) -> float:
    """Least-squares slope of y on x; NaN where all x are equal."""
    if x.size < 2 or np.ptp(x) == 0:
        return float("nan")
    dx = x - x.mean()
    return float(dx @ y / (dx @ dx))


def common_slope(
    x: Vector, y: Vector, rows: pd.DataFrame, key: Sequence[str]
) -> Callable[[Index], float]:
    """Least-squares slope of y on x with an intercept for each combination of ``key``.

    Returns a function of row numbers. The means are taken once, over all rows, so a group must be
    resampled as a whole, or keep its composition.
    """
    groups = rows.groupby(list(key)).ngroup().to_numpy()
    dx, dy = (v - pd.Series(v).groupby(groups).transform("mean").to_numpy() for v in (x, y))

    def statistic(index: Index) -> float:
        square = float(dx[index] @ dx[index])
        return float(dx[index] @ dy[index]) / square if square > 0 else float("nan")

    return statistic


def log_of(rows: pd.DataFrame, column: str) -> Vector:
    """Natural logarithm of a column, float64."""
    return np.asarray(np.log(rows[column].to_numpy(np.float64)), dtype=np.float64)
