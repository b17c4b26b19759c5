"""Where a measured curve first rises through a level."""

import numpy as np
from numpy.typing import ArrayLike

from spectral_laws.artifacts import check_finite


def first_crossing(sample_sizes: ArrayLike, values: ArrayLike, level: float) -> float | None:
    """Sample size at which ``values`` first rises from below ``level`` to it or above.

    Linear interpolation of the values in log n between the two neighbours. Sample sizes are
    positive and increase. None where the curve starts at or above the level, or never reaches it.

    Raises:
        NumericalError: if a value is NaN or infinite.
        ValueError: if there are none, or they are not positive and strictly increasing.
    """
    n, y = np.asarray(sample_sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if n.ndim != 1 or n.shape != y.shape:
        raise ValueError(f"one value per sample size is needed, got {n.shape} and {y.shape}")
    if n.size == 0:
        raise ValueError("at least one sample size is needed")
    if (n <= 0).any() or (np.diff(n) <= 0).any():
        raise ValueError("sample sizes must be positive and strictly increasing")
    check_finite("values of a crossing", y)
    reached = np.flatnonzero(y >= level)
    if reached.size == 0 or reached[0] == 0:
        return None
    j = int(reached[0])
    share = (level - y[j - 1]) / (y[j] - y[j - 1])
    return float(np.exp(np.log(n[j - 1]) + share * np.log(n[j] / n[j - 1])))
