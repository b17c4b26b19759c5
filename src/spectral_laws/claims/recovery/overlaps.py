"""Measurements of the claims on overlaps along the sample sizes: A2, A4, A8, A12."""

import math

import numpy as np
import pandas as pd

from spectral_laws.claims.curves import TeacherCurves
from spectral_laws.claims.resampling import TEACHER, Resampling, number
from spectral_laws.claims.selections import (
    CURVE,
    Features,
    count_groups,
    dimensions_text,
    fixed_width_study,
    identity_readout,
    left_out_text,
    with_features,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.recovery_windows import FAR, HIDDEN, RECOVERED
from spectral_laws.fitting.slopes import Index, Vector, common_slope, log_of, slope

CHANCE = 0.02
"""Largest d1 / D, the overlap of a direction with d1 random ones, at which hidden means <= 0.1."""
LARGE = 20100
"""Feature dimension from which on the sharp formula, a limit of large D, is judged: d = 200."""


def measure_transition(
    tables: ClaimTables, resampling: Resampling, *, features: Features = "equivalent"
) -> Measurement:
    """A2: the smaller of the shares hidden at n <= n*/4 and recovered at n >= 4 n*.

    Studies whose chance overlap d1 / D is not small against 0.1 take no part. Where n* lies above
    the grid, all that is known is that it is above the largest sample size,
    and a quarter of that bounds the entries that count as well below; likewise at the other end.
    """
    rows = _with_half_recovery(tables, features)
    small = rows["n_directions"] <= CHANCE * rows["feature_dimension"]
    rows = rows[(rows["degree"] == 2) & small]
    below = rows["sample_size"] <= rows["at_least"] / FAR
    above = rows["sample_size"] >= rows["at_most"] * FAR
    rows = rows.assign(below=below, above=above)[below | above].reset_index(drop=True)
    cos2 = rows["cos2"].to_numpy(np.float64)
    is_below, is_above = rows["below"].to_numpy(bool), rows["above"].to_numpy(bool)
    if not is_below.any() or not is_above.any():
        raise NoFitError(
            f"{int(is_below.sum())} overlaps well below n*, {int(is_above.sum())} well above; "
            "both are needed"
        )

    def shares(index: Index) -> tuple[float, float]:
        hidden = cos2[index][is_below[index]] <= HIDDEN
        recovered = cos2[index][is_above[index]] >= RECOVERED
        if hidden.size == 0 or recovered.size == 0:
            return math.nan, math.nan
        return float(hidden.mean()), float(recovered.mean())

    hidden, recovered = shares(np.arange(len(rows)))
    return resampling.measure(
        rows,
        lambda index: min(shares(index)),
        units="overlaps",
        cluster=TEACHER,
        scope=dimensions_text(rows),
        beside={
            "share hidden well below n*": number(hidden, rows[is_below], "overlaps", TEACHER),
            "share recovered well above n*": number(recovered, rows[is_above], "overlaps", TEACHER),
        },
    )


def measure_angle_decay(
    tables: ClaimTables, resampling: Resampling, *, features: Features = "equivalent"
) -> Measurement:
    """A4: slope of log(1 - cos theta_k) on log n where n >= 4 n*_k.

    Every direction of every teacher has its own intercept; cos theta = sqrt(cos^2).
    """
    rows = _with_half_recovery(tables, features)
    rows = rows[rows["censored"].eq("no") & (rows["sample_size"] >= FAR * rows["at_most"])]
    rows = rows.assign(gap=1 - np.sqrt(rows["cos2"].to_numpy(np.float64)))
    positive = rows["gap"] > 0
    rows = rows[positive]
    rows = rows[rows.groupby(CURVE)["gap"].transform("size") >= 2].reset_index(drop=True)
    if rows.empty:
        raise NoFitError("no direction has two sample sizes beyond 4 times its half-recovery")
    return resampling.measure(
        rows,
        common_slope(log_of(rows, "sample_size"), log_of(rows, "gap"), rows, CURVE),
        units="overlaps",
        cluster=TEACHER,
        scope=f"{dimensions_text(rows)}, {count_groups(rows, CURVE)} directions"
        f"{left_out_text(int((~positive).sum()), 'overlaps of exactly 1')}",
    )


def measure_smoothing(
    tables: ClaimTables, resampling: Resampling, *, features: Features = "equivalent"
) -> Measurement:
    """A8: slope on log d of the width of direction 1's transition.

    The width is log n where cos^2, averaged over the teachers of a dimension, first reaches 0.9
    minus log n where it first reaches 0.1, in a study with as many directions at every dimension:
    of degree 1, whose features are Gaussian, or of true features of higher degree.
    """
    table = identity_readout(tables.require("directions"))
    gaussian = features == "equivalent"
    table = table[table["degree"] == 1] if gaussian else with_features(table, features)
    study = fixed_width_study(table)
    strongest = study[study["direction"] == 1]
    curves = TeacherCurves.of(strongest, "cos2", levels=[HIDDEN, RECOVERED])
    scope = f"study {study['study'].iloc[0]}, {curves.text()}"
    if len(curves.dimensions) < 3:
        raise NoFitError(
            f"mean cos^2 of direction 1 does not rise through {HIDDEN} and {RECOVERED} inside the "
            f"grid at three dimensions: {scope}"
        )
    log_d = np.log(np.array(curves.dimensions, dtype=np.float64))

    def widths(index: Index) -> Vector:
        return curves.log_crossings(index, RECOVERED) - curves.log_crossings(index, HIDDEN)

    rows = curves.rows
    found = zip(curves.dimensions, widths(np.arange(len(rows))), strict=True)
    return resampling.measure(
        rows,
        lambda index: slope(log_d, widths(index)),
        units="curves",
        cluster=TEACHER,
        strata=["degree", "dimension"],
        scope=scope,
        beside={
            f"width in log n at d = {d}": number(
                float(width), rows[rows["dimension"] == d], "curves", TEACHER
            )
            for d, width in found
        },
    )


def measure_sharp_error(
    tables: ClaimTables, resampling: Resampling, *, features: Features = "equivalent"
) -> Measurement:
    """A12: largest |predicted - measured| cos^2 of a teacher, median over teachers.

    Of directions where either is 1/2 or more. The prediction is a limit, so it is judged at
    D >= 20100 (d = 200 at degree 2), or else at the largest D there is. Beside it stand the least
    and the most of the teachers' errors (the most is the largest of all), the mean over
    directions, and the errors at the other dimensions.
    """
    table = with_features(identity_readout(tables.require("directions")), features)
    table = table[(table["cos2"] >= 0.5) | (table["predicted_cos2"] >= 0.5)]
    if table.empty:
        raise NoFitError("no direction is recovered")
    table = table.assign(error=(table["predicted_cos2"] - table["cos2"]).abs())
    judged = table["feature_dimension"] >= min(LARGE, int(table["feature_dimension"].max()))
    rows = table[judged]
    teachers = rows.groupby(list(TEACHER.columns))["error"].max().reset_index()
    error = teachers["error"].to_numpy(np.float64)
    beside = {
        "smallest of all teachers": number(float(error.min()), teachers, "teachers", TEACHER),
        "largest of all teachers": number(float(error.max()), teachers, "teachers", TEACHER),
        "mean over directions": number(float(rows["error"].mean()), rows, "overlaps", TEACHER),
    }
    for d, group in table[~judged].groupby("dimension"):
        for name, value in (("largest", group["error"].max()), ("mean", group["error"].mean())):
            beside[f"{name} at d = {d}"] = number(float(value), group, "overlaps", TEACHER)
    return resampling.measure(
        teachers,
        lambda index: float(np.median(error[index])),
        units="teachers",
        cluster=TEACHER,
        scope=f"{dimensions_text(rows)}, D = {rows['feature_dimension'].min()}",
        beside=beside,
    )


def _with_half_recovery(tables: ClaimTables, features: Features) -> pd.DataFrame:
    """Overlaps of identity studies with bounds ``at_least`` <= n* <= ``at_most`` per direction.

    Both are n* itself where it lies inside the grid; beyond the grid's end one is that end and the
    other infinite or 0.
    """
    overlaps = with_features(identity_readout(tables.require("directions")), features)
    thresholds = tables.require("thresholds")
    rows = overlaps.merge(
        thresholds[[*CURVE, "half_recovery", "censored"]], on=CURVE, validate="many_to_one"
    )
    grid = rows.groupby(CURVE)["sample_size"]
    above, below = rows["censored"].eq("above"), rows["censored"].eq("below")
    return rows.assign(
        at_least=rows["half_recovery"].mask(above, grid.transform("max")).mask(below, 0.0),
        at_most=rows["half_recovery"].mask(below, grid.transform("min")).mask(above, math.inf),
    )
