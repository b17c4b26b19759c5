"""What every measurement shares: the bootstrap and the unit that is resampled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.bootstrap import cluster_bootstrap_interval
from spectral_laws.fitting.slopes import Index


@dataclass(frozen=True)
class Cluster:
    """Rows that depend on each other, and are resampled together.

    Attributes:
        name: what one is, in the plural.
        columns: the columns that tell one from another.
    """

    name: str
    columns: tuple[str, ...]

    def of(self, rows: pd.DataFrame) -> Index:
        """Number of each row's cluster, from 0."""
        return np.asarray(rows.groupby(list(self.columns)).ngroup(), dtype=np.intp)

    def count(self, rows: pd.DataFrame) -> int:
        """Number of clusters."""
        return len(rows.drop_duplicates(list(self.columns)))

    def fewest(self, rows: pd.DataFrame, strata: Sequence[str]) -> int | None:
        """Number of clusters in the smallest stratum; None without strata."""
        if not strata:
            return None
        clusters = rows.drop_duplicates(list({*self.columns, *strata}))
        return int(clusters.groupby(list(strata)).size().min())


TEACHER = Cluster("teachers", ("degree", "dimension", "seed"))
"""One draw of teacher and inputs: studies that differ in readout or gamma share it, so it is the
unit that is resampled."""

TRAINING = Cluster("trainings", ("model", "seed"))
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

    def measure(
        self,
        rows: pd.DataFrame,
        statistic: Callable[[Index], float],
        *,
        units: str,
        cluster: Cluster,
        strata: Sequence[str] = (),
        scope: str = "",
        judged: bool = True,
        beside: Mapping[str, Measurement] | None = None,
    ) -> Measurement:
        """The statistic of all rows with its cluster bootstrap interval.

        Args:
            rows: the entries.
            statistic: function of row numbers, NaN where it has no value.
            units: what a row is, in the plural.
            cluster: the independent unit a row belongs to.
            strata: columns within which the number of clusters is kept.
            scope: of the :class:`.Measurement`, as the next two.
            judged: whether the claim speaks of the quantity.
            beside: other quantities of the same rows.

        Raises:
            NoFitError: if the statistic has no value, or there are too few clusters.
        """
        value = float(statistic(np.arange(len(rows))))
        if np.isnan(value):
            raise NoFitError(f"no value from {len(rows)} {units}")
        interval = cluster_bootstrap_interval(
            cluster.of(rows),
            statistic,
            confidence=self.confidence,
            resamples=self.resamples,
            generator=self.generator,
            strata=rows.groupby(list(strata)).ngroup().to_numpy() if strata else None,
        )
        return Measurement(
            value, interval.low, interval.high, len(rows), units, cluster.count(rows), cluster.name,
            scope, judged, beside or {}, cluster.fewest(rows, strata),
        )  # fmt: skip

    def beside(
        self,
        rows: pd.DataFrame,
        statistic: Callable[[Index], float],
        *,
        units: str,
        cluster: Cluster,
        strata: Sequence[str] = (),
        scope: str = "",
    ) -> Measurement:
        """A quantity that is not judged, without an interval where clusters are too few.

        Raises:
            NoFitError: if the statistic has no value.
        """
        try:
            return self.measure(
                rows, statistic, units=units, cluster=cluster, strata=strata, scope=scope,
                judged=False,
            )  # fmt: skip
        except NoFitError:
            return number(float(statistic(np.arange(len(rows)))), rows, units, cluster, scope)


def number(
    value: float, rows: pd.DataFrame, units: str, cluster: Cluster, scope: str = ""
) -> Measurement:
    """A quantity of ``rows`` that is neither judged nor given an interval.

    Raises:
        NoFitError: if it is not finite.
    """
    if not np.isfinite(value):
        raise NoFitError(f"no value from {len(rows)} {units}")
    return Measurement(
        value, None, None, len(rows), units, cluster.count(rows), cluster.name, scope, judged=False
    )
