"""Least-squares slopes that claims and figures read alike, as functions of resampled rows."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Index = NDArray[np.intp]
Vector = NDArray[np.float64]


def slope(x: Vector, y: Vector) -> float:
    """Least-squares slope of y on x; NaN where all x are equal."""
    if x.size < 2 or np.ptp(x) == 0:
        return float("nan")
    dx = x - x.mean()
    return float(dx @ y / (dx @ dx))


def common_slope(
    x: Vector, y: Vector, rows: pd.DataFrame, key: Sequence[str]
) -> Callable[[Index], float]:
    """Least-squares slope of y on x with an intercept for each combination of ``key``.

    Returns a function of row numbers. The means are taken once, over all rows, so a group must be
    resampled as a whole, or keep its composition.
    """
    groups = rows.groupby(list(key)).ngroup().to_numpy()
    dx, dy = (v - pd.Series(v).groupby(groups).transform("mean").to_numpy() for v in (x, y))

    def statistic(index: Index) -> float:
        square = float(dx[index] @ dx[index])
        return float(dx[index] @ dy[index]) / square if square > 0 else float("nan")

    return statistic


def joint_slopes(rows: pd.DataFrame, column: str) -> Callable[[Index], Vector]:
    """Slopes of log ``column`` on log(1/lambda^2) and on log D, fitted together.

    Returns a function of row numbers; NaN where the two cannot be told apart.
    """
    weakness = -2 * np.log(rows["weight"].abs().to_numpy(np.float64))
    design = np.column_stack([np.ones(len(rows)), weakness, log_of(rows, "feature_dimension")])
    log_n = log_of(rows, column)

    def slopes(index: Index) -> Vector:
        solution, _, rank, _ = np.linalg.lstsq(design[index], log_n[index], rcond=1e-10)
        return solution[1:] if rank == design.shape[1] else np.full(2, np.nan)

    return slopes


def log_of(rows: pd.DataFrame, column: str) -> Vector:
    """Natural logarithm of a column, float64."""
    return np.asarray(np.log(rows[column].to_numpy(np.float64)), dtype=np.float64)
