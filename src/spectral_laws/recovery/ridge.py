"""Ridge regression with the penalty chosen by exact leave-one-out, in dual and in primal form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NumericalError

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class RidgeFit:
    """One ridge regression."""

    ridge: float  # the chosen penalty
    loo_error: float  # its mean squared leave-one-out error
    coefficients: Matrix  # dual (one per sample) or primal (one per feature)
    label_mean: float  # of the training labels; the regression is of y - ybar


def fit_dual(
    kernel: Matrix,
    labels: Matrix,
    sample_sizes: Sequence[int],
    *,
    ridges: Sequence[float],
    name: str,
) -> list[RidgeFit]:
    """Dual ridge regression on the first n samples, for every n at once.

    alpha = G^-1 (y - ybar) with G = K_n + ridge I, K_n the leading n x n block of K.

    Leave-one-out residuals are alpha_i / (G^-1)_ii. The labels' mean is kept fixed: it is not
    recomputed without the left-out label.

    With G = L L^T, the factor of the first n samples is the leading block of L, and its inverse the
    leading block of R = L^-1. So one factorisation and one triangular inverse per ridge, (2/3) n^3
    operations at the largest n, serve every sample size: alpha = R_n^T R_n (y - ybar) and (G^-1)_ii
    = sum_{i <= j < n} R_ji^2, a running sum down column i. ``kernel`` is K for the largest n or
    more. Of the ``ridges`` the first of those with the smallest error is taken.
    """
    _check_ridges(ridges)
    sizes = list(sample_sizes)
    if not sizes or sizes[0] < 1 or any(b <= a for a, b in pairwise(sizes)):
        raise ValueError(f"sample sizes must be increasing and at least 1, got {sizes}")
    if sizes[-1] > min(len(kernel), len(labels)):
        raise ValueError(f"sample size {sizes[-1]} is above the {len(labels)} labels")
    largest = sizes[-1]
    best: list[RidgeFit | None] = [None] * len(sizes)
    for ridge in ridges:
        inverse = _inverse_factor(kernel[:largest, :largest], ridge, name)
        for k, fit in enumerate(_prefix_fits(inverse, labels, sizes, ridge, name)):
            known = best[k]
            if known is None or fit.loo_error < known.loo_error:
                best[k] = fit
    return [fit for fit in best if fit is not None]


def fit_primal(features: Matrix, labels: Matrix, *, ridges: Sequence[float], name: str) -> RidgeFit:
    """Primal ridge regression, the cheaper form for more samples than features.

    w = (Phi^T Phi + ridge I)^-1 Phi^T (y - ybar).

    It equals :func:`fit_dual` with K = Phi Phi^T. Leave-one-out residuals are e_i / (1 - H_ii), e
    the training residuals and H = Phi (Phi^T Phi + ridge I)^-1 Phi^T, for all ridges from one
    eigendecomposition.
    """
    _check_ridges(ridges)
    mean = float(labels.mean())
    centred = labels - mean
    values, vectors = eigh(features.T @ features, driver="evd", overwrite_a=True)
    rotated = features @ vectors
    squares, target = rotated**2, rotated.T @ centred
    best: RidgeFit | None = None
    for ridge in ridges:
        shrunk = 1.0 / (np.maximum(values, 0.0) + ridge)
        residuals = (centred - rotated @ (shrunk * target)) / (1.0 - squares @ shrunk)
        error = float(np.mean(residuals**2))
        check_finite(f"leave-one-out error of {name} with ridge {ridge:g}", error)
        if best is None or error < best.loo_error:
            best = RidgeFit(ridge, error, np.asarray(vectors @ (shrunk * target)), mean)
    assert best is not None
    return best


def _inverse_factor(kernel: Matrix, ridge: float, name: str) -> Matrix:
    """R = L^-1, lower triangular and zero above, with L L^T = K + ridge I."""
    system = np.array(kernel, order="F")
    system[np.diag_indices_from(system)] += ridge
    factor, failed = lapack.dpotrf(system, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise NumericalError(
            f"{name}: the matrix of {len(kernel)} samples plus ridge {ridge:g} is not positive "
            "definite to rounding; leave out the smallest ridges"
        )
    inverse, failed = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    if failed:
        raise NumericalError(f"{name}: the factor of {len(kernel)} samples is singular")
    return np.asarray(inverse)


def _prefix_fits(
    inverse: Matrix, labels: Matrix, sizes: Sequence[int], ridge: float, name: str
) -> Iterator[RidgeFit]:
    whitened = inverse @ np.stack([labels[: sizes[-1]], np.ones(sizes[-1])], axis=1)
    diagonal = np.zeros(sizes[-1])
    for low, n in pairwise([0, *sizes]):
        rows = inverse[low:n, :n]
        diagonal[:n] += np.einsum("ij,ij->j", rows, rows)
        mean = float(labels[:n].mean())
        dual = (whitened[:n, 0] - mean * whitened[:n, 1]) @ inverse[:n, :n]
        error = float(np.mean((dual / diagonal[:n]) ** 2))
        check_finite(f"leave-one-out error of {name} with n = {n}, ridge {ridge:g}", error)
        yield RidgeFit(ridge, error, dual, mean)


def _check_ridges(ridges: Sequence[float]) -> None:
    if len(ridges) == 0 or min(ridges) <= 0:
        raise ValueError(f"ridges must be positive numbers, got {list(ridges)}")
