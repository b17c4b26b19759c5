"""Kernel ridge regression, the baseline without feature learning.

Three kernels of inputs x in R^d, all invariant under rotations, and all scaled so that
k(x, x) = 1 at |x|^2 = d, the typical length of an input: a ridge of 0.01 is then one hundredth of
the kernel matrix's diagonal for each of them, whatever d and n.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spectral_laws.recovery.ridge import fit_dual

Matrix = NDArray[np.float64]
Kernel = Callable[[Matrix, Matrix], Matrix]

# Rows of a kernel matrix computed at a time: temporaries stay small beside the matrix itself.
_ROWS = 1024


def polynomial_kernel(left: Matrix, right: Matrix, *, power: int) -> Matrix:
    """((1 + <x, x'> / d) / 2)^power for inputs n x d and m x d, n x m.

    With ``power`` = 2q it is the best case for a teacher of degree q with the identity readout:
    the labels are a polynomial of degree 2q, so the kernel holds them exactly.
    """
    products = left @ right.T
    products /= left.shape[1]
    products += 1.0
    products /= 2.0
    result: Matrix = products**power
    return result


def arc_cosine_kernel(left: Matrix, right: Matrix) -> Matrix:
    """Arc-cosine kernel of degree 1 with a bias, for inputs n x d and m x d, n x m.

    k(x, x') = E[relu(<w, x> / sqrt d + b) relu(<w, x'> / sqrt d + b)] over w ~ N(0, I_d) and
    b ~ N(0, 1): infinitely many random ReLU features, only the readout trained. In closed form,
    with z = (x / sqrt d, 1) and the angle t between z and z',

        k = |z| |z'| (sin t + (pi - t) cos t) / (2 pi)

    (Cho and Saul, Kernel Methods for Deep Learning, NeurIPS 2009; theirs is 2 k).
    """
    d = left.shape[1]
    left_norms = np.sqrt((left**2).sum(axis=1) / d + 1.0)
    right_norms = np.sqrt((right**2).sum(axis=1) / d + 1.0)
    scale = left_norms[:, None] * right_norms
    cosine = left @ right.T
    cosine /= d
    cosine += 1.0
    cosine /= scale
    np.clip(cosine, -1.0, 1.0, out=cosine)
    angle = np.arccos(cosine)
    result: Matrix = np.sin(angle)
    result += (math.pi - angle) * cosine
    result *= scale
    result /= 2.0 * math.pi
    return result


def rbf_kernel(left: Matrix, right: Matrix) -> Matrix:
    """exp(-|x - x'|^2 / (2 d)) for inputs n x d and m x d, n x m: bandwidth sqrt d.

    Two independent inputs are at |x - x'|^2 close to 2 d, where the kernel is 1/e.
    """
    squares = left @ right.T
    squares *= -2.0
    squares += (left**2).sum(axis=1)[:, None]
    squares += (right**2).sum(axis=1)
    np.maximum(squares, 0.0, out=squares)
    squares /= -2.0 * left.shape[1]
    result: Matrix = np.exp(squares, out=squares)
    return result


def baseline_kernels(degree: int) -> dict[str, Kernel]:
    """The kernels of the baselines for a teacher of degree q, by name."""
    return {
        "polynomial": partial(polynomial_kernel, power=2 * degree),
        "arc_cosine": arc_cosine_kernel,
        "rbf": rbf_kernel,
    }


@dataclass(frozen=True)
class KernelRidgeFits:
    """Kernel ridge regressions on growing prefixes of one training sample.

    Attributes:
        sample_sizes: n of each.
        ridges: the chosen penalty of each.
        loo_errors: its mean squared leave-one-out error.
        inputs: training inputs of the largest, n x d.
        dual: dual coefficients, n x sizes, zero below a fit's own sample size.
        label_means: of the training labels, added to every prediction.
        kernel: of inputs m x d and n x d, m x n.
    """

    sample_sizes: tuple[int, ...]
    ridges: tuple[float, ...]
    loo_errors: tuple[float, ...]
    inputs: Matrix
    dual: Matrix
    label_means: Matrix
    kernel: Kernel

    def predict(self, inputs: Matrix) -> Matrix:
        """Predictions for inputs m x d, one column per sample size, m x sizes."""
        parts = [
            self.kernel(inputs[low : low + _ROWS], self.inputs) @ self.dual
            for low in range(0, len(inputs), _ROWS)
        ]
        return np.concatenate(parts) + self.label_means


def fit_kernel_ridge(
    inputs: Matrix,
    labels: Matrix,
    *,
    kernel: Kernel,
    ridges: Sequence[float],
    sample_sizes: Sequence[int] | None = None,
    name: str = "kernel ridge regression",
) -> KernelRidgeFits:
    """Fit (K_n + ridge I)^-1 (y - ybar) on the first n samples, for every n at once.

    The ridge of each n is chosen by leave-one-out; see :func:`.ridge.fit_dual` for how, and for the
    cost. ``inputs`` are n x d; ``sample_sizes`` increase, by default all inputs. ``name`` is what
    errors call it.

    Raises:
        ValueError: if a ridge or a sample size is out of range.
        NumericalError: if a system is not positive definite, or an error is NaN or infinite.
    """
    sizes = [len(inputs)] if sample_sizes is None else list(sample_sizes)
    # Column-major, as the factorisations want it.
    matrix = np.empty((len(inputs), len(inputs)), order="F")
    for low in range(0, len(inputs), _ROWS):
        matrix[low : low + _ROWS] = kernel(inputs[low : low + _ROWS], inputs)
    fits = fit_dual(matrix, labels, sizes, ridges=ridges, name=name)
    dual = np.zeros((sizes[-1], len(sizes)))
    for column, fit in enumerate(fits):
        dual[: len(fit.coefficients), column] = fit.coefficients
    return KernelRidgeFits(
        sample_sizes=tuple(sizes),
        ridges=tuple(fit.ridge for fit in fits),
        loo_errors=tuple(fit.loo_error for fit in fits),
        inputs=inputs[: sizes[-1]],
        dual=dual,
        label_means=np.array([fit.label_mean for fit in fits]),
        kernel=kernel,
    )
