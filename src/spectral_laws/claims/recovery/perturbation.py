"""Measurements of the claims on the moment matrix as a perturbed matrix, C = E C + Delta: A9, A11.

At degree 1 features are Gaussian; at degree 2 they are true Hermite features.
"""

import math

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import TEACHER, Index, Resampling, common_slope, log_of
from spectral_laws.claims.selections import CURVE, count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

_MATRIX = ["study", *TEACHER]


def measure_expansion_order(
    tables: ClaimTables, resampling: Resampling, *, degree: int = 1
) -> Measurement:
    """A9: slope of log error of the first-order expansion on log ||Delta||.

    Every direction of every teacher has its own intercept. Only rows with ||Delta|| below half the
    eigenvalue's gap count: beyond it the expansion does not apply. The reason states by how much
    the Davis-Kahan bound exceeds the true angle, over all rows, and how that grows with k.

    Raises:
        NoFitError: if no direction has two sample sizes so large.
    """
    table = _of_degree(tables, degree)
    rows = table[table["resolved"].astype(bool)]
    rows = rows[rows.groupby(CURVE)["sample_size"].transform("size") >= 2].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(
            f"no direction of degree {degree} has two sample sizes at which the perturbation is "
            "below half the gap"
        )
    return resampling.measure(
        rows,
        common_slope(log_of(rows, "operator_norm"), log_of(rows, "expansion_error"), rows, CURVE),
        cluster=TEACHER,
        n=len(rows),
        reason=(
            f"{len(rows)} eigenvectors of {count_groups(rows, CURVE)} directions, "
            f"{count_groups(rows, TEACHER)} teachers, of {len(table)} with larger perturbations; "
            f"{_looseness(table, resampling)}"
        ),
    )


def _looseness(table: pd.DataFrame, resampling: Resampling) -> str:
    """Davis-Kahan bound over the sine of the true angle, by k."""
    rows = table.assign(ratio=table["davis_kahan"] / table["sin_theta"]).reset_index(drop=True)
    widest = rows[rows["n_directions"] == rows["n_directions"].max()]
    last = int(widest["direction"].max())
    means = []
    for k in (1, last):
        ends = widest[widest["direction"] == k].reset_index(drop=True)
        log_ratio = log_of(ends, "ratio")

        def mean(index: Index, log_ratio: np.ndarray = log_ratio) -> float:
            return math.exp(float(log_ratio[index].mean()))

        means.append(resampling.text(ends, mean, cluster=TEACHER))
    growth = common_slope(
        log_of(rows, "direction"), log_of(rows, "ratio"), rows, [*_MATRIX, "sample_size"]
    )
    exponent = resampling.text(rows, growth, cluster=TEACHER)
    return (
        f"the Davis-Kahan bound is {means[0]} times the true sine at k = 1 and {means[1]} at "
        f"k = {last} (geometric means over teachers of {last} directions); it grows as k^{exponent}"
    )


def measure_noise_exponent(
    tables: ClaimTables, resampling: Resampling, *, degree: int = 1
) -> Measurement:
    """A11: slope of log ||Delta|| on log(n/D), one intercept per teacher.

    Raises:
        NoFitError: without two sample sizes of a teacher.
    """
    table = _of_degree(tables, degree)
    rows = table.drop_duplicates([*_MATRIX, "sample_size"]).reset_index(drop=True)
    log_ratio = log_of(rows, "sample_size") - log_of(rows, "feature_dimension")
    span = rows["sample_size"] / rows["feature_dimension"]
    return resampling.measure(
        rows,
        common_slope(log_ratio, log_of(rows, "operator_norm"), rows, _MATRIX),
        cluster=TEACHER,
        n=len(rows),
        reason=(
            f"{len(rows)} matrices of {count_groups(rows, _MATRIX)} teachers, n/D = "
            f"{span.min():.3g} to {span.max():.3g}"
        ),
    )


def _of_degree(tables: ClaimTables, degree: int) -> pd.DataFrame:
    table = tables.require("perturbation")
    rows = table[table["degree"] == degree].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(f"no perturbation study has degree {degree}")
    return rows
