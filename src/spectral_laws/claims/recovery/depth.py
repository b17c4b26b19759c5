"""Measurement of the claim on the depth advantage, d^q samples against d^(2q): A7."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from spectral_laws.claims.curves import TeacherCurves
from spectral_laws.claims.resampling import TEACHER, Cluster, Resampling
from spectral_laws.claims.selections import (
    dimensions_text,
    fixed_width_study,
    identity_readout,
    left_out_text,
    uncensored,
    with_features,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.slopes import Index, common_slope, log_of, slope

LEVEL = 0.5
"""cos^2 of direction 1, and share of the variance explained by the kernel."""
MINIMUM_DIMENSIONS = 3
"""Dimensions an exponent needs."""
_EITHER = Cluster("teachers", ("method", *TEACHER.columns))
"""The two studies have teachers of their own, and as many of each as they please."""


def measure_kernel_gap(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A7: exponent in d of the kernel's n at MSE 1/2 minus that of the spectral n*_1, at degree 1.

    The kernel is the polynomial one of degree 2q, its best case. Both sizes are where the mean
    curve over teachers crosses 1/2; both studies have as many directions at every dimension, so
    that strengths do not change with d. Beside it stand the exponents of q = 1 and q = 2.
    """
    spectral = _spectral_curves(tables.require("directions"), degree=1)
    kernel = _kernel_curves(tables.require("baselines"), degree=1)
    rows = pd.concat(
        [kernel.rows.assign(method="kernel"), spectral.rows.assign(method="spectral")],
        ignore_index=True,
    )
    count = len(kernel.rows)
    of_kernel, of_spectral = _exponent(kernel), _exponent(spectral)
    beside = {
        "exponent of the spectral method, q = 1": _beside(resampling, spectral, of_spectral),
        "exponent of the kernel, q = 1": _beside(resampling, kernel, of_kernel),
        **_spectral_quadratic(tables, resampling),
        **_kernel_quadratic(tables, resampling),
    }
    return resampling.measure(
        rows,
        lambda index: of_kernel(index[index < count]) - of_spectral(index[index >= count] - count),
        units="curves",
        cluster=_EITHER,
        strata=["method", "dimension"],
        scope=dimensions_text(rows),
        beside=beside,
    )


def _spectral_curves(directions: pd.DataFrame, *, degree: int) -> TeacherCurves:
    table = identity_readout(directions[directions["degree"] == degree])
    study = fixed_width_study(table, minimum=MINIMUM_DIMENSIONS)
    return _enough(TeacherCurves.of(study[study["direction"] == 1], "cos2", levels=[LEVEL]))


def _kernel_curves(baselines: pd.DataFrame, *, degree: int) -> TeacherCurves:
    table = identity_readout(baselines[baselines["degree"] == degree])
    table = table[table["method"] == "polynomial"]
    study = fixed_width_study(table, minimum=MINIMUM_DIMENSIONS)
    explained = study.assign(explained=1 - study["mse"])
    return _enough(TeacherCurves.of(explained, "explained", levels=[LEVEL]))


def _enough(curves: TeacherCurves) -> TeacherCurves:
    if len(curves.dimensions) < MINIMUM_DIMENSIONS:
        raise NoFitError(
            f"an exponent needs {MINIMUM_DIMENSIONS} dimensions whose mean curve crosses {LEVEL}: "
            f"{curves.text()}"
        )
    return curves


def _exponent(
    curves: TeacherCurves, scale: Callable[[int], float] = float
) -> Callable[[Index], float]:
    """Slope of log n at the crossing on log scale(d), as a function of row numbers."""
    log_d = np.array([math.log(scale(d)) for d in curves.dimensions])
    return lambda index: slope(log_d, curves.log_crossings(index, LEVEL))


def _beside(
    resampling: Resampling, curves: TeacherCurves, statistic: Callable[[Index], float]
) -> Measurement:
    return resampling.beside(
        curves.rows,
        statistic,
        units="curves",
        cluster=TEACHER,
        strata=["dimension"],
        scope=curves.text(),
    )


def _spectral_quadratic(tables: ClaimTables, resampling: Resampling) -> dict[str, Measurement]:
    """Exponent of n* at q = 2 in the Gaussian equivalent, one intercept per direction.

    Empty if it cannot be had.
    """
    try:
        table = with_features(identity_readout(tables.require("thresholds")), "equivalent")
        study = fixed_width_study(table[table["degree"] == 2], minimum=2)
        rows, left_out = uncensored(study)
        exponent = resampling.beside(
            rows,
            common_slope(
                log_of(rows, "dimension"), log_of(rows, "half_recovery"), rows, ["direction"]
            ),
            units="directions",
            cluster=TEACHER,
            strata=["dimension"],
            scope=f"Gaussian equivalent, study {study['study'].iloc[0]}, {dimensions_text(study)}"
            f"{left_out_text(left_out, 'directions off the grid')}",
        )
    except NoFitError:
        return {}
    return {"exponent of the spectral method, q = 2": exponent}


def _kernel_quadratic(tables: ClaimTables, resampling: Resampling) -> dict[str, Measurement]:
    """Exponent of the kernel at q = 2, in d and in the number of polynomials it has to learn.

    The kernel's features are the C(d + 2q, 2q) polynomials of degree up to 2q. Their number grows
    as d^(2q) only at large d; the 2q-th root of it is the d of that law at the d measured. Empty
    if the exponent cannot be had.
    """
    try:
        curves = _kernel_curves(tables.require("baselines"), degree=2)
    except NoFitError:
        return {}
    counted = _exponent(curves, lambda d: math.comb(d + 4, 4) ** 0.25)
    return {
        "exponent of the kernel, q = 2": _beside(resampling, curves, _exponent(curves)),
        "the same in C(d + 4, 4)^(1/4) instead of d": _beside(resampling, curves, counted),
    }
