"""Power laws by ordinary least squares on logarithms."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NoFitError

MINIMUM_POINTS = 5
"""Fewer usable entries than this are no fit (curvature paper, measurement protocol)."""


@dataclass(frozen=True)
class LogLogFit:
    """The line log y = intercept + slope log x, natural logarithms.

    Attributes:
        slope: the exponent.
        intercept: log y at x = 1.
        r2: share of the variance of log y on the line; 1 where y is constant.
        stderr: standard error of the slope, from n_used - 2 degrees of freedom.
        n_used: entries with x > 0 and y > 0.
        n_dropped: the other entries.
    """

    slope: float
    intercept: float
    r2: float
    stderr: float
    n_used: int
    n_dropped: int


def fit_loglog(x: ArrayLike, y: ArrayLike) -> LogLogFit:
    """Fit y = exp(intercept) x^slope by least squares of log y on log x.

    Only entries with x > 0 and y > 0 enter.

    Raises:
        NumericalError: if an entry is NaN or infinite.
        NoFitError: if fewer than 5 entries are positive in both, or all their x are equal.

    Source: curvature paper, measurement protocol (exponents alpha, gamma and s).
    """
    log_x, log_y, n_dropped = positive_logs(x, y)
    n = log_x.size
    dx, dy = log_x - log_x.mean(), log_y - log_y.mean()
    sxx, syy = float(dx @ dx), float(dy @ dy)
    slope = float(dx @ dy) / sxx
    residuals = dy - slope * dx
    rss = float(residuals @ residuals)
    return LogLogFit(
        slope=slope,
        intercept=float(log_y.mean() - slope * log_x.mean()),
        r2=1.0 - rss / syy if np.ptp(log_y) > 0 else 1.0,
        stderr=float(np.sqrt(rss / (n - 2) / sxx)),
        n_used=n,
        n_dropped=n_dropped,
    )


def positive_logs(
    x: ArrayLike, y: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Natural logarithms of x and y over the entries positive in both, and the number left out."""
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise ValueError(f"x and y must be vectors of one length, got {xs.shape} and {ys.shape}")
    check_finite("x of a log-log fit", xs)
    check_finite("y of a log-log fit", ys)
    used = (xs > 0) & (ys > 0)
    n_used = int(np.count_nonzero(used))
    if n_used < MINIMUM_POINTS:
        raise NoFitError(
            f"{n_used} of {xs.size} entries are positive in x and y; a fit needs {MINIMUM_POINTS}"
        )
    log_x, log_y = np.log(xs[used]), np.log(ys[used])
    if np.ptp(log_x) == 0:
        raise NoFitError(f"all {n_used} usable entries of {xs.size} have the same x")
    return log_x, log_y, xs.size - n_used
