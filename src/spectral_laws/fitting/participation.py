"""How many directions carry a spectrum: the participation ratio and its power-law bound."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NoFitError


def participation_ratio(values: ArrayLike) -> float:
    """PR = (sum_k h_k)^2 / sum_k h_k^2: 1 for a single entry, n for n equal ones.

    Raises:
        NumericalError: if an entry is NaN or infinite.
        NoFitError: if there is no positive entry.
        ValueError: if an entry is negative; sums of mixed signs are no count of directions.

    Source: curvature paper, section on the intrinsic dimension.
    """
    array = np.asarray(values, dtype=np.float64)
    check_finite("values of a participation ratio", array)
    if (array < 0).any():
        raise ValueError("a participation ratio needs values that are not negative")
    largest = array.max(initial=0.0)
    if largest == 0:
        raise NoFitError(f"none of {array.size} values is positive; no participation ratio")
    scaled = array / largest  # keeps the squares of very small curvatures above underflow
    return float(scaled.sum() ** 2 / (scaled @ scaled))


def participation_ratio_bound(exponent: float, *, n_terms: int | None = None) -> float:
    """Participation ratio of h_k = k^-s, the value the paper uses as a bound.

    With all ranks it is zeta(s)^2 / zeta(2 s), zeta Riemann's function, and infinite for s <= 1.
    With ``n_terms`` = N it is (sum_{k<=N} k^-s)^2 / sum_{k<=N} k^-2s, which grows with N.

    Source: curvature paper, section on the intrinsic dimension.
    """
    if n_terms is not None:
        k = np.arange(1, n_terms + 1, dtype=np.float64)
        return float((k**-exponent).sum() ** 2 / (k ** (-2 * exponent)).sum())
    if exponent <= 1:
        return math.inf
    return float(zeta(exponent) ** 2 / zeta(2 * exponent))
