"""Measurements of the claims on the moment matrix as a perturbed matrix, C = E C + Delta: A9, A11.

At degree 1 features are Gaussian; at degree 2 they are true Hermite features.
"""

import math

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import TEACHER, Resampling
from spectral_laws.claims.selections import CURVE, dimensions_text, left_out_text
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.slopes import Index, common_slope, log_of

_MATRIX = ["study", *TEACHER.columns]


def measure_expansion_order(
    tables: ClaimTables, resampling: Resampling, *, degree: int = 1
) -> Measurement:
    """A9: slope of log error of the first-order expansion on log ||Delta||.

    Every direction of every teacher has its own intercept. Only rows with ||Delta|| below half the
    eigenvalue's gap count: beyond it the expansion does not apply. Beside it stands by how much the
    Davis-Kahan bound exceeds the true angle, over all rows, and how that grows with k.
    """
    table = _of_degree(tables, degree)
    rows = table[table["resolved"].astype(bool)]
    rows = rows[rows.groupby(CURVE)["sample_size"].transform("size") >= 2].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(
            f"no direction of degree {degree} has two sample sizes at which the perturbation is "
            "below half the gap"
        )
    beside = _looseness(table, resampling)
    return resampling.measure(
        rows,
        common_slope(log_of(rows, "operator_norm"), log_of(rows, "expansion_error"), rows, CURVE),
        units="eigenvectors",
        cluster=TEACHER,
        scope=f"{dimensions_text(rows)}"
        f"{left_out_text(len(table) - len(rows), 'with larger perturbations')}",
        beside=beside,
    )


def _looseness(table: pd.DataFrame, resampling: Resampling) -> dict[str, Measurement]:
    """Davis-Kahan bound over the sine of the true angle, at the first and last k, and its growth.

    The former are geometric means over the teachers with the most directions.
    """
    rows = table.assign(ratio=table["davis_kahan"] / table["sin_theta"]).reset_index(drop=True)
    widest = rows[rows["n_directions"] == rows["n_directions"].max()]
    last = int(widest["direction"].max())
    found = {}
    for k in (1, last):
        ends = widest[widest["direction"] == k].reset_index(drop=True)
        log_ratio = log_of(ends, "ratio")

        def mean(index: Index, log_ratio: np.ndarray = log_ratio) -> float:
            return math.exp(float(log_ratio[index].mean()))

        found[f"Davis-Kahan bound over the true sine, k = {k}"] = resampling.beside(
            ends, mean, units="eigenvectors", cluster=TEACHER
        )
    if last > 1:
        growth = common_slope(
            log_of(rows, "direction"), log_of(rows, "ratio"), rows, [*_MATRIX, "sample_size"]
        )
        found["exponent in k of that ratio"] = resampling.beside(
            rows, growth, units="eigenvectors", cluster=TEACHER
        )
    return found


def measure_noise_exponent(
    tables: ClaimTables, resampling: Resampling, *, degree: int = 1
) -> Measurement:
    """A11: slope of log ||Delta|| on log(n/D), one intercept per teacher."""
    table = _of_degree(tables, degree)
    rows = table.drop_duplicates([*_MATRIX, "sample_size"]).reset_index(drop=True)
    log_ratio = log_of(rows, "sample_size") - log_of(rows, "feature_dimension")
    span = rows["sample_size"] / rows["feature_dimension"]
    return resampling.measure(
        rows,
        common_slope(log_ratio, log_of(rows, "operator_norm"), rows, _MATRIX),
        units="matrices",
        cluster=TEACHER,
        scope=f"{dimensions_text(rows)}, n/D = {span.min():.3g} to {span.max():.3g}",
    )


def _of_degree(tables: ClaimTables, degree: int) -> pd.DataFrame:
    table = tables.require("perturbation")
    rows = table[table["degree"] == degree].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(f"no perturbation study has degree {degree}")
    return rows
