"""Which decay in rank describes singular values best: power law, exponential or log-normal."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.loglog import MINIMUM_POINTS


@dataclass(frozen=True)
class RankModels:
    """Bayesian information criteria of three models of singular values against rank.

    Attributes:
        best: name of the model with the smallest BIC; of equals, the one listed first in ``bic``.
        bic: BIC by name: ``power_law``, ``exponential``, ``lognormal``.
    """

    best: str
    bic: Mapping[str, float]


def compare_rank_models(singular_values: ArrayLike) -> RankModels:
    """Compare three laws of log sigma_k by BIC = n ln(RSS/n) + p ln n.

    The laws are linear least squares on log sigma, with k = 1, 2, ... the rank: ``power_law``
    linear in log k (p = 2), ``exponential`` linear in k (p = 2), ``lognormal`` quadratic in log k
    (p = 3). A residual sum below the rounding error of the logarithms counts as that rounding
    error, so that of two exact models the smaller one wins. Entries that are not positive are left
    out, and the others keep their rank.

    Raises:
        NumericalError: if an entry is NaN or infinite.
        NoFitError: if fewer than 5 entries are positive.

    Source: curvature paper, experiment 6.
    """
    sigma = np.asarray(singular_values, dtype=np.float64)
    check_finite("singular values of the rank models", sigma)
    used = sigma > 0
    n = int(np.count_nonzero(used))
    if n < MINIMUM_POINTS:
        raise NoFitError(
            f"{n} of {sigma.size} singular values are positive; a rank model needs {MINIMUM_POINTS}"
        )
    k = np.arange(1, sigma.size + 1, dtype=np.float64)[used]
    log_k, log_sigma = np.log(k), np.log(sigma[used])
    one = np.ones(n)
    designs = {
        "power_law": np.column_stack([one, log_k]),
        "exponential": np.column_stack([one, k]),
        "lognormal": np.column_stack([one, log_k, log_k**2]),
    }
    bic = {name: _bic(design, log_sigma) for name, design in designs.items()}
    return RankModels(best=min(bic, key=bic.__getitem__), bic=bic)


def _bic(design: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    n, p = design.shape
    coefficients = np.linalg.lstsq(design, target, rcond=None)[0]
    residuals = target - design @ coefficients
    rounding = 16 * np.finfo(np.float64).eps * max(1.0, float(np.abs(target).max()))
    rss = max(float(residuals @ residuals), n * rounding**2)
    return float(n * np.log(rss / n) + p * np.log(n))
