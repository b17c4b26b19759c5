"""Measurement of the claim on the depth advantage, d^q samples against d^(2q): A7."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from spectral_laws.claims.curves import TeacherCurves
from spectral_laws.claims.resampling import (
    TEACHER,
    Index,
    Resampling,
    common_slope,
    log_of,
    slope,
)
from spectral_laws.claims.selections import (
    dimensions_text,
    fixed_width_study,
    identity_readout,
    uncensored,
    with_features,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

LEVEL = 0.5
"""cos^2 of direction 1, and share of the variance explained by the kernel."""
NEAR = 0.25
"""Exponents this near to q or 2q are said to agree."""
MINIMUM_DIMENSIONS = 3
"""Dimensions an exponent needs."""


def measure_kernel_gap(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A7: exponent in d of the kernel's n at MSE 1/2 minus that of the spectral n*_1, at degree 1.

    The kernel is the polynomial one of degree 2q, its best case. Both sizes are where the mean
    curve over teachers crosses 1/2; both studies have as many directions at every dimension, so
    that strengths do not change with d. The reason states the exponents of q = 1 and q = 2.

    Raises:
        NoFitError: if fewer than three dimensions have a crossing, for either method.
    """
    spectral = _spectral_curves(tables.require("directions"), degree=1)
    kernel = _kernel_curves(tables.require("baselines"), degree=1)
    for name, curves in (("spectral", spectral), ("kernel", kernel)):
        if len(curves.dimensions) < MINIMUM_DIMENSIONS:
            raise NoFitError(
                f"an exponent needs {MINIMUM_DIMENSIONS} dimensions; the {name} method's mean "
                f"curve crosses {LEVEL} at {curves.text()}"
            )
    # The two studies have teachers of their own, and as many of each as they please.
    rows = pd.concat(
        [kernel.rows.assign(method="kernel"), spectral.rows.assign(method="spectral")],
        ignore_index=True,
    )
    count = len(kernel.rows)
    of_kernel, of_spectral = _exponent(kernel), _exponent(spectral)
    return resampling.measure(
        rows,
        lambda index: of_kernel(index[index < count]) - of_spectral(index[index >= count] - count),
        cluster=["method", *TEACHER],
        strata=["method", "dimension"],
        n=len(rows),
        reason="; ".join(
            [
                _against(resampling, "spectral q = 1", spectral, expected=1),
                _against(resampling, "kernel q = 1", kernel, expected=2),
                _spectral_quadratic(tables, resampling),
                _kernel_quadratic(tables, resampling),
            ]
        ),
    )


def _spectral_curves(directions: pd.DataFrame, *, degree: int) -> TeacherCurves:
    table = identity_readout(directions[directions["degree"] == degree])
    study = fixed_width_study(table, minimum=MINIMUM_DIMENSIONS)
    return TeacherCurves.of(study[study["direction"] == 1], "cos2", levels=[LEVEL])


def _kernel_curves(baselines: pd.DataFrame, *, degree: int) -> TeacherCurves:
    table = identity_readout(baselines[baselines["degree"] == degree])
    table = table[table["method"] == "polynomial"]
    study = fixed_width_study(table, minimum=MINIMUM_DIMENSIONS)
    return TeacherCurves.of(study.assign(explained=1 - study["mse"]), "explained", levels=[LEVEL])


def _exponent(
    curves: TeacherCurves, scale: Callable[[int], float] = float
) -> Callable[[Index], float]:
    """Slope of log n at the crossing on log scale(d), as a function of row numbers."""
    log_d = np.array([math.log(scale(d)) for d in curves.dimensions])
    return lambda index: slope(log_d, curves.log_crossings(index, LEVEL))


def _spectral_quadratic(tables: ClaimTables, resampling: Resampling) -> str:
    """Exponent of n* at q = 2 in the Gaussian equivalent, one intercept per direction."""
    try:
        table = with_features(identity_readout(tables.require("thresholds")), "equivalent")
        study = fixed_width_study(table[table["degree"] == 2], minimum=2)
    except NoFitError as error:
        return f"spectral q = 2 not run ({error})"
    rows, left_out = uncensored(study)
    statistic = common_slope(
        log_of(rows, "dimension"), log_of(rows, "half_recovery"), rows, ["direction"]
    )
    text = _compare(resampling, rows, statistic, expected=2)
    return (
        f"spectral q = 2 {text}, Gaussian equivalent, study {study['study'].iloc[0]}, "
        f"{dimensions_text(study)}, {len(rows)} n*, {left_out} direction(s) left out"
    )


def _kernel_quadratic(tables: ClaimTables, resampling: Resampling) -> str:
    """Exponent of the kernel at q = 2, in d and in the number of polynomials it has to learn.

    The kernel's features are the C(d + 2q, 2q) polynomials of degree up to 2q. Their number grows
    as d^(2q) only at large d; the 2q-th root of it is the d of that law at the d measured.
    """
    try:
        curves = _kernel_curves(tables.require("baselines"), degree=2)
    except NoFitError as error:
        return f"kernel q = 2 not run ({error})"
    if len(curves.dimensions) < MINIMUM_DIMENSIONS:
        return f"kernel q = 2 not run (crossing at {curves.text()})"
    in_d = _against(resampling, "kernel q = 2", curves, expected=4)
    counted = _compare(
        resampling,
        curves.rows,
        _exponent(curves, lambda d: math.comb(d + 4, 4) ** 0.25),
        expected=4,
    )
    return f"{in_d}; in C(d + 4, 4)^(1/4) instead of d {counted}"


def _against(resampling: Resampling, name: str, curves: TeacherCurves, *, expected: float) -> str:
    text = _compare(resampling, curves.rows, _exponent(curves), expected=expected)
    return f"{name} {text}, {curves.text()}"


def _compare(
    resampling: Resampling,
    rows: pd.DataFrame,
    statistic: Callable[[Index], float],
    *,
    expected: float,
) -> str:
    value = statistic(np.arange(len(rows)))
    near = "yes" if abs(value - expected) <= NEAR else "no"
    text = resampling.text(rows, statistic, cluster=TEACHER, strata=["dimension"])
    return f"{text} against {expected:g} (within {NEAR:g}: {near})"
