"""Kernel ridge regression, the baseline without feature learning.

It sees the same training and test samples as the spectral method, with the polynomial kernel of
degree 2q, its best case: the labels are a polynomial of degree 2q (before the readout g).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.config import Evaluation, KernelRidge, TeacherFamily
from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.readout import normalised_mse
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher, tabulate

_TEST_ROWS = 2048


def polynomial_kernel(
    left: NDArray[np.float64], right: NDArray[np.float64], *, power: int
) -> NDArray[np.float64]:
    """(1 + <x, x'> / d)^power for inputs n x d and m x d, n x m."""
    return np.asarray((1.0 + left @ right.T / left.shape[1]) ** power)


@dataclass(frozen=True)
class KernelRidgeFit:
    """A fitted kernel ridge regression.

    Attributes:
        inputs: training inputs, n x d.
        power: of the kernel.
        dual: dual coefficients, n numbers.
        label_mean: of the training labels, added to every prediction.
        ridge: the chosen penalty.
        loo_error: its mean squared leave-one-out error.
    """

    inputs: NDArray[np.float64]
    power: int
    dual: NDArray[np.float64]
    label_mean: float
    ridge: float
    loo_error: float

    def predict(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions for inputs m x d, m numbers."""
        parts = [
            polynomial_kernel(inputs[low : low + _TEST_ROWS], self.inputs, power=self.power)
            @ self.dual
            for low in range(0, len(inputs), _TEST_ROWS)
        ]
        return np.concatenate(parts) + self.label_mean


def fit_kernel_ridge(
    inputs: NDArray[np.float64],
    labels: NDArray[np.float64],
    *,
    power: int,
    ridges: Sequence[float],
) -> KernelRidgeFit:
    """Fit dual coefficients (K + ridge I)^-1 (y - ybar), the ridge chosen by leave-one-out.

    Args:
        inputs: n x d.
        labels: n numbers.
        power: of the kernel, 2q.
        ridges: candidates; the first of those with the smallest error is taken.

    Raises:
        ValueError: if there are no candidates, or one is not positive.
        NumericalError: if an error is NaN or infinite.
    """
    if len(ridges) == 0 or min(ridges) <= 0:
        raise ValueError(f"ridges must be positive numbers, got {list(ridges)}")
    mean = float(labels.mean())
    kernel = polynomial_kernel(inputs, inputs, power=power)
    values, vectors = scipy.linalg.eigh(kernel, driver="evd", overwrite_a=True)
    candidates = [leave_one_out(values, vectors, labels - mean, ridge) for ridge in ridges]
    errors = [float(np.mean(residuals**2)) for residuals, _ in candidates]
    check_finite("leave-one-out errors of kernel ridge regression", errors)
    best = int(np.argmin(errors))
    dual = candidates[best][1]
    return KernelRidgeFit(inputs, power, dual, mean, ridges[best], errors[best])


def leave_one_out(
    eigenvalues: NDArray[np.float64],
    eigenvectors: NDArray[np.float64],
    centred_labels: NDArray[np.float64],
    ridge: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Leave-one-out residuals alpha_i / (G^-1)_ii and dual coefficients alpha = G^-1 y.

    G = K + ridge I, K = Q diag(eigenvalues) Q^T. The labels' mean is kept fixed: it is not
    recomputed without the left-out label.
    """
    inverse = 1.0 / (np.maximum(eigenvalues, 0.0) + ridge)
    dual = eigenvectors @ (inverse * (eigenvectors.T @ centred_labels))
    diagonal = np.square(eigenvectors) @ inverse
    return dual / diagonal, dual


def tabulate_kernel_ridge(
    study_name: str,
    family: TeacherFamily,
    evaluation: Evaluation,
    kernel: KernelRidge,
    *,
    dimension: int,
    replicate: int,
    seed: int,
) -> pd.DataFrame:
    """Kernel ridge regression at every sample size of the grid up to ``max_sample_size``.

    Columns after those of :mod:`.study`: sample_size, ridge, loo_error, mse (test MSE / Var(y)).

    Raises:
        ConfigError: if every sample size of the grid is above ``max_sample_size``.
    """
    teacher = draw_teacher(family, dimension=dimension, replicate=replicate, seed=seed)
    grid = family.sample_exponents.sample_sizes(dimension)
    sizes = [n for n in grid if 2 <= n <= kernel.max_sample_size]
    if not sizes:
        raise ConfigError(
            f"kernel.max_sample_size {kernel.max_sample_size} is below every sample size of "
            f"{study_name} at d = {dimension}, the smallest is {grid[0]}"
        )
    key = (teacher.degree, teacher.dimension, replicate)
    train = Samples(teacher, "train", *key, seed=seed)
    test = Samples(teacher, "test", *key, seed=seed)
    test_inputs, test_labels = test.inputs(evaluation.test_size), test.labels(evaluation.test_size)
    rows: list[dict[str, object]] = []
    for n in track(sizes, total=len(sizes), label="kernel sample sizes"):
        fit = fit_kernel_ridge(
            train.inputs(n), train.labels(n), power=2 * teacher.degree, ridges=kernel.ridges
        )
        error = normalised_mse(fit.predict(test_inputs), test_labels)
        rows.append(
            {"sample_size": n, "ridge": fit.ridge, "loo_error": fit.loo_error, "mse": error}
        )
    return tabulate(
        rows, study_name=study_name, family=family, teacher=teacher, replicate=replicate
    )
