"""What every measurement shares: the bootstrap, the unit that is resampled, and selections."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.bootstrap import Interval, cluster_bootstrap_interval

Index = NDArray[np.intp]

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
    ) -> Measurement:
        """The statistic of all rows with its interval; arguments as in :meth:`interval`.

        Raises:
            NoFitError: if the statistic has no value, or there are too few units.
        """
        value = float(statistic(np.arange(len(rows))))
        if np.isnan(value):
            raise NoFitError(f"no value from {reason}")
        interval = self.interval(rows, statistic, cluster=cluster, strata=strata)
        return Measurement(value, interval.low, interval.high, n, reason)


def count_groups(rows: pd.DataFrame, columns: Sequence[str]) -> int:
    """Number of distinct combinations of ``columns``."""
    return len(rows.drop_duplicates(list(columns)))


def identity_readout(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of studies whose readout is the identity."""
    return table[table["readout"] == "identity"]


def uncensored(thresholds: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Rows of directions whose n* lies inside the grid for every seed, and how many do not.

    A direction of a study and dimension is left out as a whole if one of its seeds is censored:
    keeping the other seeds would select those that were recovered early.
    """
    key = ["study", "dimension", "direction"]
    inside = thresholds["censored"].eq("no")
    whole = inside.groupby([thresholds[name] for name in key]).transform("all")
    left_out = count_groups(thresholds[~whole], key)
    return thresholds[whole].reset_index(drop=True), left_out


def largest_study(table: pd.DataFrame, *, degree: int, minimum: int) -> pd.DataFrame:
    """Rows of the identity-readout study of ``degree`` with the most dimensions.

    Of equals the one whose name comes first.

    Raises:
        NoFitError: if none has ``minimum`` dimensions.
    """
    rows = identity_readout(table[table["degree"] == degree])
    counts = rows.groupby("study")["dimension"].nunique()
    if counts.empty or counts.max() < minimum:
        found = 0 if counts.empty else int(counts.max())
        raise NoFitError(
            f"no study of degree {degree} with identity readout has {minimum} dimensions "
            f"(the largest has {found})"
        )
    return rows[rows["study"] == counts.idxmax()].reset_index(drop=True)


def slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Least-squares slope of y on x; NaN where all x are equal."""
    if x.size < 2 or np.ptp(x) == 0:
        return float("nan")
    dx = x - x.mean()
    return float(dx @ y / (dx @ dx))
