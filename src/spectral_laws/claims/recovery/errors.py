"""Measurements of the claims on the test error's exponent: A5, A6.

Both exponents, of the measured error and of the tail sum, are slopes over one window of sample
sizes, which the weights alone fix: from n = D / lambda_3^2 to D / lambda_h^2 with h = d1/2 rounded
down. It starts at the third direction because the first ones are strong enough to make the labels
heavy-tailed, which moves their thresholds by a factor of up to 4; it ends at half of the directions
because the tail sum of few remaining ones is no power law and falls to zero. Teachers of fewer than
18 directions (h below 9) have no window in which a law could show.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import TEACHER, Index, Resampling, Vector, slope
from spectral_laws.claims.selections import (
    Features,
    count_groups,
    identity_readout,
    with_features,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

FIRST = 3
"""Direction whose threshold starts the window."""
WIDE = 3
"""A window runs at least from direction k to direction 3 k."""
MINIMUM_SIZES = 3
"""Sample sizes an exponent needs inside its window."""
_TAIL_POINTS = 400  # the tail sum is a staircase; its slope is taken over many points

Law = Callable[[Vector], Vector]


@dataclass(frozen=True)
class _Window:
    """Errors of one study and dimension at the sample sizes of its window."""

    label: str
    log_n: Vector
    errors: Vector  # (seeds in increasing order, sample sizes)
    tail_exponent: float


def measure_steep_exponent(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    features: Features = "equivalent",
    second_layer: str = "independent",
) -> Measurement:
    """A5: exponent of the MSE minus that of the tail sum, gamma > 1/2.

    Raises:
        NoFitError: if no study has three sample sizes inside the window.
    """
    metrics = with_features(identity_readout(tables.require("metrics")), features)
    metrics = metrics[(metrics["gamma"] > 0.5) & (metrics["second_layer"] == second_layer)]
    return _exponent_gap(metrics, resampling, lambda mse: mse, _theory(tables, steep=True))


def measure_flat_exponent(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    features: Features = "equivalent",
    second_layer: str = "independent",
) -> Measurement:
    """A6: exponent of 1 - MSE minus that of 1 - tail sum, 0 < gamma < 1/2.

    Raises:
        NoFitError: if no study has three sample sizes inside the window.
    """
    metrics = with_features(identity_readout(tables.require("metrics")), features)
    metrics = metrics[metrics["gamma"].between(0, 0.5, inclusive="neither")]
    metrics = metrics[metrics["second_layer"] == second_layer]
    return _exponent_gap(metrics, resampling, lambda mse: 1 - mse, _theory(tables, steep=False))


def _exponent_gap(
    metrics: pd.DataFrame, resampling: Resampling, law: Law, theory: str
) -> Measurement:
    """Measured exponent minus the tail sum's, of the study and dimension where it is largest.

    Errors are averaged over seeds before the logarithm.
    """
    windows: list[_Window] = []
    labels: list[pd.DataFrame] = []
    for _, group in metrics.groupby(["study", "dimension"]):
        window = _window(group, law)
        if window is None:
            continue
        seeds = group[["study", *TEACHER]].drop_duplicates().sort_values("seed")
        labels.append(seeds.assign(window=len(windows), row=np.arange(len(seeds))))
        windows.append(window)
    if not windows:
        raise NoFitError(
            "no study with the required gamma and features and identity readout has "
            f"{MINIMUM_SIZES} sample sizes from D / lambda_{FIRST}^2 to D / lambda_h^2, "
            f"h = d1/2 >= {WIDE * FIRST}"
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
    judged = int(np.argmax(np.abs(np.array(measured) - tails)))
    listing = ", ".join(
        f"{window.label}: {ours:.3g} against {window.tail_exponent:.3g}"
        for window, ours in zip(windows, measured, strict=True)
    )
    return resampling.measure(
        rows,
        lambda index: exponents(index)[judged] - tails[judged],
        cluster=TEACHER,
        strata=["degree", "dimension"],
        n=len(rows),
        reason=(
            f"{count_groups(rows, TEACHER)} teachers; measured against tail sum in the same "
            f"window: {listing}{theory}"
        ),
    )


def _exponent(window: _Window, seeds: Index, law: Law) -> float:
    """Slope of the law of the mean error of ``seeds`` (row numbers) in logarithms."""
    if seeds.size == 0:
        return math.nan
    values = law(window.errors[seeds].mean(axis=0))
    return slope(window.log_n, np.log(values)) if (values > 0).all() else math.nan


def _window(group: pd.DataFrame, law: Law) -> _Window | None:
    """The window of one study and dimension; None if it is too narrow or has too few sizes."""
    head = group.iloc[0]
    width, gamma, features = (head[c] for c in ("n_directions", "gamma", "feature_dimension"))
    last = int(width) // 2
    if last < WIDE * FIRST:
        return None
    squares = weight_squares(int(width), float(gamma))
    ends = features / squares[[FIRST - 1, last - 1]]
    # pivot refuses two rows of one seed and sample size, pivot_table would average them
    errors = group.pivot(index="seed", columns="sample_size", values="mse")  # noqa: PD010
    sizes = errors.columns.to_numpy(np.float64)
    inside = (sizes >= ends[0]) & (sizes <= ends[1])
    if int(inside.sum()) < MINIMUM_SIZES:
        return None
    n = sizes[inside]
    grid = np.geomspace(n[0], n[-1], _TAIL_POINTS)
    return _Window(
        label=(
            f"{head['study']} d={head['dimension']} (gamma {gamma:g}, d1 {width}, {n.size} sizes "
            f"over a factor {n[-1] / n[0]:.2g})"
        ),
        log_n=np.log(n),
        errors=errors.to_numpy(np.float64)[:, inside],
        tail_exponent=slope(np.log(grid), np.log(law(tail_sum(grid, features, squares)))),
    )


def weight_squares(n_directions: int, gamma: float) -> Vector:
    """lambda_i^2 = i^(-2 gamma) / sum_j j^(-2 gamma), i from 1."""
    squares = np.arange(1.0, n_directions + 1) ** (-2 * gamma)
    return np.asarray(squares / squares.sum())


def tail_sum(sample_size: Vector, feature_dimension: float, squares: Vector) -> Vector:
    """Sum of lambda_i^2 over the directions with n < D / lambda_i^2."""
    hidden = sample_size[:, None] < feature_dimension / squares
    return np.asarray((hidden * squares).sum(axis=1))


def _theory(tables: ClaimTables, *, steep: bool) -> str:
    """What the sharp theory says of widths no simulation reaches; empty without its table."""
    table = tables.error_exponents
    if table is None:
        return ""
    table = table[table["gamma"] > 0.5 if steep else table["gamma"].between(0, 0.5, "neither")]
    parts = [_theory_of(group, float(str(gamma))) for gamma, group in table.groupby("gamma")]
    return "".join(f"; {part}" for part in parts)


def _theory_of(table: pd.DataFrame, gamma: float) -> str:
    """One gamma: independent minus tail sum by width, and the exponent at ever wider windows.

    The extrapolation is linear in 1/log(last/first), the share of the window that either end
    touches, to 0; windows too narrow to show a law take no part.
    """
    means = table.groupby(["n_directions", "first", "last", "second_layer"])["exponent"].mean()
    wide = means.unstack("second_layer").reset_index().sort_values("n_directions")  # noqa: PD010
    gaps = wide["independent"] - wide["tail"]
    widths = ", ".join(str(width) for width in wide["n_directions"])
    largest = wide.iloc[-1]
    text = (
        f"sharp theory at gamma {gamma:g}: independent minus tail sum "
        f"{', '.join(f'{gap:.3f}' for gap in gaps)} at d1 = {widths}; exponent "
        f"{largest['independent']:.3f} at d1 = {largest['n_directions']:.0f} "
        f"(same sample {largest['same_sample']:.3f})"
    )
    laws = wide[wide["last"] >= WIDE * wide["first"]]
    if len(laws) > 1:
        inverse = 1 / np.log(laws["last"] / laws["first"])
        text += f", extrapolated {np.polyfit(inverse, laws['independent'], 1)[1]:.3f}"
    return f"{text}, asymptotically {1 / (2 * gamma) - 1:.3f}"
