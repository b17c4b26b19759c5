"""Measurements of the claims on the test error's exponent: A5, A6.

Both exponents, of the measured error and of the tail sum, are slopes over one window of sample
sizes, that of :mod:`spectral_laws.fitting.recovery_windows`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import TEACHER, Cluster, Resampling, number
from spectral_laws.claims.selections import Features, identity_readout, with_features
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.recovery_windows import (
    CRITICAL,
    MINIMUM_SIZES,
    WIDE,
    error_window,
    law_of_error,
    tail_law,
)
from spectral_laws.fitting.slopes import Index, Vector, slope

_DRAW = Cluster("draws of the signs", ("gamma", "n_directions", "seed"))


@dataclass(frozen=True)
class _Window:
    """Errors of one study and dimension at the sample sizes of its window."""

    name: str
    scope: str
    gamma: float
    log_n: Vector
    errors: Vector  # (seeds in increasing order, sample sizes)
    tail_exponent: float

    def exponent(self, seeds: Index) -> float:
        """Slope of the law of the mean error of ``seeds`` (row numbers); NaN where it has none."""
        values = law_of_error(self.errors[seeds].mean(axis=0), self.gamma)
        return slope(self.log_n, np.log(values)) if (values > 0).all() else math.nan


def measure_error_exponent(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    steep: bool,
    features: Features = "equivalent",
    second_layer: str = "independent",
) -> Measurement:
    """A5, A6: measured exponent minus that of the tail sum, where it is farthest from it.

    The exponent is that of the MSE for gamma > 1/2 (``steep``), of 1 - MSE for 0 < gamma < 1/2, of
    one study and dimension. Errors are averaged over seeds before the logarithm.
    """
    metrics = with_features(identity_readout(tables.require("metrics")), features)
    metrics = _of_side(metrics[metrics["second_layer"] == second_layer], steep)
    windows: list[_Window] = []
    curves: list[pd.DataFrame] = []
    for _, group in metrics.groupby(["study", "dimension"]):
        window = _window(group)
        if window is None:
            continue
        seeds = group[["study", *TEACHER.columns]].drop_duplicates().sort_values("seed")
        curves.append(seeds.reset_index(drop=True))
        windows.append(window)
    if not windows:
        raise NoFitError(
            "no study with the required gamma and features and identity readout has "
            f"{MINIMUM_SIZES} sample sizes inside the window of the law"
        )
    measured = [window.exponent(np.arange(len(window.errors))) for window in windows]
    gaps = np.array(measured) - [window.tail_exponent for window in windows]
    if np.isnan(gaps).all():
        raise NoFitError(f"no law has an exponent in any of {len(windows)} windows")
    judged = int(np.nanargmax(np.abs(gaps)))
    window = windows[judged]
    scope = f"{window.name}, {window.scope}"
    if lost := [w.name for w, gap in zip(windows, gaps, strict=True) if math.isnan(gap)]:
        scope += f", no exponent in {', '.join(lost)}"

    beside = {}
    for one, frame, ours in zip(windows, curves, measured, strict=True):
        for name, value in (("exponent", ours), ("exponent of the tail sum", one.tail_exponent)):
            if not math.isnan(value):
                beside[f"{name}, {one.name}"] = number(value, frame, "curves", TEACHER, one.scope)
    return resampling.measure(
        curves[judged],
        lambda seeds: window.exponent(seeds) - window.tail_exponent,
        units="curves",
        cluster=TEACHER,
        strata=["degree", "dimension"],
        scope=scope,
        beside=beside,
    )


def _of_side(table: pd.DataFrame, steep: bool) -> pd.DataFrame:
    """Rows with gamma above 1/2, or between 0 and 1/2."""
    gamma = table["gamma"]
    return table[gamma > CRITICAL if steep else gamma.between(0, CRITICAL, inclusive="neither")]


def _window(group: pd.DataFrame) -> _Window | None:
    """The window of one study and dimension; None if it is too narrow or has too few sizes."""
    head = group.iloc[0]
    width, gamma = int(head["n_directions"]), float(head["gamma"])
    ends = error_window(width, gamma, head["feature_dimension"])
    if ends is None:
        return None
    # pivot refuses two rows of one seed and sample size, pivot_table would average them
    errors = group.pivot(index="seed", columns="sample_size", values="mse")  # noqa: PD010
    sizes = errors.columns.to_numpy(np.float64)
    inside = (sizes >= ends[0]) & (sizes <= ends[1])
    if int(inside.sum()) < MINIMUM_SIZES:
        return None
    n = sizes[inside]
    return _Window(
        name=f"{head['study']} d = {head['dimension']}",
        scope=f"gamma {gamma:g}, d1 {width}, {n.size} sizes over a factor {n[-1] / n[0]:.2g}",
        gamma=gamma,
        log_n=np.log(n),
        errors=errors.to_numpy(np.float64)[:, inside],
        tail_exponent=slope(*tail_law(n[0], n[-1], head["feature_dimension"], width, gamma)),
    )


def measure_theory(tables: ClaimTables, resampling: Resampling, *, steep: bool) -> Measurement:
    """The same difference by the sharp theory, at the largest width and gamma's farthest.

    Beside it, of every gamma: the difference by width, and the exponents at the largest width, as
    extrapolated, and of the asymptotic law 1/(2 gamma) - 1. The theory has no sampling error that
    teachers could tell.
    """
    table = _of_side(tables.require("error_exponents"), steep)
    if table.empty:
        raise NoFitError("the sharp theory was computed for no such gamma")
    beside: dict[str, Measurement] = {}
    largest: dict[float, float] = {}
    for key, group in table.groupby("gamma"):
        gamma = float(str(key))
        means = group.groupby(["n_directions", "first", "last", "second_layer"])["exponent"].mean()
        wide = means.unstack("second_layer").reset_index()  # noqa: PD010
        wide = wide.sort_values("n_directions")
        gaps = wide["independent"] - wide["tail"]
        top = wide.iloc[-1]
        values = {
            f"minus the tail sum's, d1 = {width}": gap
            for width, gap in zip(wide["n_directions"], gaps, strict=True)
        }
        at = f"d1 = {top['n_directions']:.0f}"
        values |= {at: top["independent"], f"{at}, same sample": top["same_sample"]}
        laws = wide[wide["last"] >= WIDE * wide["first"]]
        if len(laws) > 1:
            # Linear in the share of the window that either end touches, to 0; windows too narrow
            # to show a law take no part.
            inverse = 1 / np.log(laws["last"] / laws["first"])
            values["extrapolated"] = np.polyfit(inverse, laws["independent"], 1)[1]
        values["asymptotic law"] = 1 / (2 * gamma) - 1
        beside |= {
            f"exponent at gamma {gamma:g}, {name}": number(float(value), group, "exponents", _DRAW)
            for name, value in values.items()
        }
        largest[gamma] = float(gaps.iloc[-1])
    farthest = max(largest, key=lambda gamma: abs(largest[gamma]))
    of = table[table["gamma"] == farthest]
    found = number(largest[farthest], of, "exponents", _DRAW, f"gamma {farthest:g}, largest d1")
    return replace(found, beside=beside)
