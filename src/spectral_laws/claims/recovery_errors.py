"""Measurements of the claims on the test error's exponent: A5, A6."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.claims.resampling import (
    TEACHER,
    Index,
    Resampling,
    count_groups,
    identity_readout,
    slope,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

Vector = NDArray[np.float64]
_ROUNDING = 1e-9
MINIMUM_SIZES = 3
"""Sample sizes an exponent needs inside its window."""


@dataclass(frozen=True)
class _Window:
    """Errors of one study and dimension while 1 to d1 - 1 directions are recovered."""

    log_n: Vector
    errors: Vector  # (seeds in increasing order, sample sizes)
    tail_exponent: float


def measure_steep_exponent(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A5: exponent of the MSE minus that of the tail sum, gamma > 1/2.

    Raises:
        NoFitError: if no study has three sample sizes inside the window.
    """
    metrics = tables.require("metrics")
    return _exponent_gap(metrics[metrics["gamma"] > 0.5], resampling, lambda mse: mse)


def measure_flat_exponent(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A6: exponent of 1 - MSE minus that of 1 - tail sum, gamma < 1/2.

    Raises:
        NoFitError: if no study has three sample sizes inside the window.
    """
    metrics = tables.require("metrics")
    return _exponent_gap(metrics[metrics["gamma"] < 0.5], resampling, lambda mse: 1 - mse)


def _exponent_gap(
    metrics: pd.DataFrame, resampling: Resampling, law: Callable[[Vector], Vector]
) -> Measurement:
    """Mean over studies and dimensions of the measured exponent minus the tail sum's.

    Both are least-squares slopes in logarithms over the sample sizes at which 1 to d1 - 1
    directions are recovered: on average over seeds for the measurement, by theory for the tail
    sum (where it lies strictly between 0 and 1). A constant factor in n, which the claim leaves
    open, changes neither. Errors are averaged over seeds before the logarithm.
    """
    table = identity_readout(metrics[metrics["second_layer"] == "independent"])
    windows: list[_Window] = []
    labels: list[pd.DataFrame] = []
    for _, group in table.groupby(["study", "dimension"]):
        window = _window(group, law)
        if window is None:
            continue
        seeds = group[["study", *TEACHER]].drop_duplicates().sort_values("seed")
        labels.append(seeds.assign(window=len(windows), row=np.arange(len(seeds))))
        windows.append(window)
    if not windows:
        raise NoFitError(
            f"no study with the required gamma and identity readout has {MINIMUM_SIZES} sample "
            "sizes at which 1 to d1 - 1 directions are recovered"
        )
    rows = pd.concat(labels, ignore_index=True)
    which, row = rows["window"].to_numpy(), rows["row"].to_numpy()

    def exponents(index: Index) -> list[float]:
        """Measured exponent of every window; NaN where it has no seed or no positive value."""
        return [
            _exponent(window, row[index][which[index] == w], law)
            for w, window in enumerate(windows)
        ]

    tails = [window.tail_exponent for window in windows]
    measured = exponents(np.arange(len(rows)))
    listing = ", ".join(
        f"{label['study'].iloc[0]} d={label['dimension'].iloc[0]}: {ours:.3g} against {tail:.3g}"
        for label, ours, tail in zip(labels, measured, tails, strict=True)
    )
    return resampling.measure(
        rows,
        lambda index: float(np.mean(exponents(index)) - np.mean(tails)),
        cluster=TEACHER,
        strata=["degree", "dimension"],
        n=len(rows),
        reason=f"{count_groups(rows, TEACHER)} teachers; measured against tail sum: {listing}",
    )


def _exponent(window: _Window, seeds: Index, law: Callable[[Vector], Vector]) -> float:
    """Slope of the law of the mean error of ``seeds`` (row numbers) in logarithms."""
    if seeds.size == 0:
        return math.nan
    values = law(window.errors[seeds].mean(axis=0))
    return slope(window.log_n, np.log(values)) if (values > 0).all() else math.nan


def _window(group: pd.DataFrame, law: Callable[[Vector], Vector]) -> _Window | None:
    """The window of one study and dimension; None if it has too few sample sizes."""
    # pivot refuses two rows of one seed and sample size, pivot_table would average them
    errors = group.pivot(index="seed", columns="sample_size", values="mse")  # noqa: PD010
    by_size = group.groupby("sample_size")
    recovered = by_size["n_recovered"].mean()
    inside = (recovered >= 1) & (recovered <= int(group["n_directions"].iloc[0]) - 1)
    tail = by_size["tail_mse"].first()
    # The whole weight sums to 1 only up to rounding, and log(1 - tail) would be taken of that.
    tail = tail[(tail > _ROUNDING) & (tail < 1 - _ROUNDING)]
    if int(inside.sum()) < MINIMUM_SIZES or len(tail) < MINIMUM_SIZES:
        return None
    sizes = recovered.index[inside]
    return _Window(
        log_n=np.log(sizes.to_numpy(np.float64)),
        errors=errors[sizes].to_numpy(np.float64),
        tail_exponent=slope(
            np.log(tail.index.to_numpy(np.float64)), np.log(law(tail.to_numpy(np.float64)))
        ),
    )
