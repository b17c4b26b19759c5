"""Ridge regression on random ReLU features, the baseline with an untrained first layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_laws.recovery.ridge import RidgeFit, fit_dual, fit_primal
from spectral_laws.rng import StreamName, generator

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class RandomFeatures:
    """phi_j(x) = relu(<w_j, x> / sqrt d + b_j) / sqrt N, w_j ~ N(0, I_d), b_j ~ N(0, 1).

    The expectation of <phi(x), phi(x')> is :func:`.kernels.arc_cosine_kernel`, and it is reached
    as N grows.

    Attributes:
        weights: w, N x d.
        biases: b, N numbers.
    """

    weights: Matrix
    biases: Matrix

    @classmethod
    def draw(
        cls, dimension: int, count: int, *stream: StreamName, seed: int = 0
    ) -> "RandomFeatures":
        """Draw N = ``count`` features of inputs in R^d from the named stream."""
        if dimension < 1 or count < 1:
            raise ValueError(f"need dimension and count of at least 1, got {dimension}, {count}")
        random = generator(seed, "random_features", *stream)
        return cls(random.standard_normal((count, dimension)), random.standard_normal(count))

    def __call__(self, inputs: Matrix) -> Matrix:
        """Phi, n x N, of inputs n x d."""
        features = inputs @ (self.weights.T / math.sqrt(inputs.shape[1]))
        features += self.biases
        np.maximum(features, 0.0, out=features)
        features /= math.sqrt(len(self.biases))
        return np.asarray(features)


def fit_random_features(
    features: Matrix,
    labels: Matrix,
    sample_sizes: Sequence[int],
    *,
    ridges: Sequence[float],
    name: str = "random features",
) -> list[RidgeFit]:
    """Ridge regression on the first n rows of the features, for each sample size.

    In dual form up to n = N, all sample sizes at once, and in primal form beyond. Coefficients are
    primal: predictions are Phi(x) w + ybar. ``features`` is Phi, n x N, for the largest n or more.

    Raises:
        ValueError: if a ridge or a sample size is out of range.
        NumericalError: if a system is not positive definite, or an error is NaN or infinite.
    """
    sizes = list(sample_sizes)
    if not sizes or sizes[0] < 1 or sizes != sorted(set(sizes)) or sizes[-1] > len(features):
        raise ValueError(f"sample sizes must increase, up to {len(features)}, got {sizes}")
    count = features.shape[1]
    small = [n for n in sample_sizes if n <= count]
    fits: list[RidgeFit] = []
    if small:
        rows = features[: small[-1]]
        fits = [
            RidgeFit(fit.ridge, fit.loo_error, fit.coefficients @ rows[:n], fit.label_mean)
            for n, fit in zip(
                small, fit_dual(rows @ rows.T, labels, small, ridges=ridges, name=name), strict=True
            )
        ]
    for n in sample_sizes[len(small) :]:
        fits.append(fit_primal(features[:n], labels[:n], ridges=ridges, name=name))
    return fits
