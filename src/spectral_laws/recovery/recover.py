"""The layer-wise spectral algorithm along a grid of sample sizes, with all its measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from spectral_laws.device import find_device
from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.krylov import leading_eigenpairs
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.overlaps import (
    direction_cos2,
    feature_overlap,
    matched_overlap,
    n_recovered,
)
from spectral_laws.recovery.readout import ScalarReadout, normalised_mse, second_latent
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.recovery.theory import bulk_edges, tail_mse
from spectral_laws.rng import generator

SECOND_LAYERS = ("same_sample", "independent", "outliers")


@dataclass(frozen=True)
class Recovery:
    """What was recovered from ``sample_size`` samples.

    Attributes:
        sample_size: n.
        eigenvalues: the d1 eigenvalues theta_k of C of largest magnitude, in that order.
        directions: their eigenvectors U^T, d1 x D orthonormal rows.
        cos2: cos^2(theta_i) = ||U^T u_i||^2, per teacher direction.
        matched_overlap: |<uhat_k, u_k>|, per rank.
        feature_overlap: q_h on the test inputs.
        mse: test MSE / Var(y), per second layer (``same_sample``, ``independent``, ``outliers``).
        n_outliers: eigenvalues among the d1 outside the edges of the bulk.
        edges: left and right edge of the bulk, from the labels.
        tail_mse: theory, sum of lambda_i^2 over directions with D / lambda_i^2 > n.
        iterations: passes over the samples.
        residual: of the eigenvectors, relative to the largest |theta|.
    """

    sample_size: int
    eigenvalues: NDArray[np.float64]
    directions: NDArray[np.float64]
    cos2: NDArray[np.float64]
    matched_overlap: NDArray[np.float64]
    feature_overlap: float
    mse: Mapping[str, float]
    n_outliers: int
    edges: tuple[float, float]
    tail_mse: float
    iterations: int
    residual: float

    @property
    def n_recovered(self) -> int:
        """m(n): directions with cos^2 >= 1/2."""
        return n_recovered(self.cos2)


def recover_features(
    teacher: Teacher,
    sample_sizes: Sequence[int],
    *,
    seed: int = 0,
    replicate: int = 0,
    tolerance: float = 1e-4,
    max_iterations: int = 300,
    memory_mb: float = 1500.0,
    test_size: int = 20000,
    readout_size: int = 5000,
    readout_degree: int = 5,
    ridge: float = 1e-3,
    device: str = "cpu",
    dtype: Literal["float32", "float64"] = "float32",
) -> list[Recovery]:
    """Recover the teacher's directions from n samples, for each n of an increasing grid.

    The d1 leading eigenvectors of C = (1/n) sum (y - ybar)(F F^T - I) estimate the directions;
    hhat1 = U^T F, hhat2 = <A2, He_2(hhat1)> with three second layers A2, and a polynomial readout
    of hhat2 fitted on an independent sample (arXiv:2605.14567):

    - ``same_sample``: A2 = U^T C U = diag(theta), as published;
    - ``independent``: A2 from a second sample of the same size;
    - ``outliers``: the same sample, eigenvalues inside the bulk set to zero.

    Args:
        teacher: what is to be recovered.
        sample_sizes: increasing n; the samples of each are a prefix of the next one's.
        seed: root of the random streams.
        replicate: which of several independent sample streams under one seed.
        tolerance: stop, residual of the eigenvectors relative to the largest eigenvalue.
        max_iterations: passes over the samples per sample size; more is an error.
        memory_mb: inputs kept in memory; the rest is drawn again on every pass.
        test_size: test inputs.
        readout_size: samples of the scalar readout.
        readout_degree: Hermite polynomials of the scalar readout.
        ridge: its penalty.
        device: torch device of the bulk arithmetic.
        dtype: of the bulk arithmetic; sums are float64.

    Raises:
        ConfigError: if the grid is not increasing or starts below 2, or the device is missing.
        NumericalError: if the eigenvectors do not converge, or labels are NaN or infinite.
    """
    sizes = list(sample_sizes)
    if not sizes or sizes[0] < 2 or any(b <= a for a, b in pairwise(sizes)):
        raise ConfigError(f"sample sizes must be increasing and at least 2, got {sizes}")
    place, number = find_device(device), getattr(torch, dtype)
    key = (teacher.degree, teacher.dimension, replicate)

    def stream(name: str, megabytes: float) -> Samples:
        return Samples(
            teacher, name, *key, seed=seed, device=place, dtype=number, memory_mb=megabytes
        )

    train = stream("train", memory_mb)
    # The second sample is read once per sample size: it gets the memory that is left.
    second = stream("second", max(0.0, memory_mb - train.megabytes(sizes[-1])))
    evaluator = _Evaluator(
        teacher,
        test=(stream("test", np.inf), test_size),
        readout=(stream("readout", np.inf), readout_size),
        degree=readout_degree,
        ridge=ridge,
    )
    random = generator(seed, "start", *key)
    start = random.standard_normal((_block_width(teacher), teacher.feature_dimension))
    block = torch.from_numpy(start).to(place)
    results = []
    for n in track(sizes, total=len(sizes), label="sample sizes"):
        name = f"moment matrix of d = {teacher.dimension}, n = {n}"
        moment = MomentMatrix(train, n)
        pairs = leading_eigenpairs(
            moment.apply,
            block,
            teacher.n_directions,
            tolerance=tolerance,
            max_iterations=max_iterations,
            name=name,
        )
        block = pairs.block  # the next matrix is close: a warm start
        directions = pairs.vectors.cpu().numpy()
        edges = bulk_edges(train.labels(n), teacher.feature_dimension / n)
        results.append(
            evaluator.measure(
                n,
                pairs.values.cpu().numpy(),
                directions,
                independent=MomentMatrix(second, n).compress(directions),
                edges=edges,
                iterations=pairs.iterations,
                residual=pairs.residual,
            )
        )
    return results


def _block_width(teacher: Teacher) -> int:
    """Vectors per pass: d1 and at least 4 guards, in the multiples of 8 that suit a CPU."""
    return min(teacher.feature_dimension, 8 * -(-(teacher.n_directions + 4) // 8))


class _Evaluator:
    """Test and readout samples of one teacher, drawn and labelled once."""

    def __init__(
        self,
        teacher: Teacher,
        *,
        test: tuple[Samples, int],
        readout: tuple[Samples, int],
        degree: int,
        ridge: float,
    ) -> None:
        self.teacher = teacher
        self.test, self.readout = test, readout
        self.degree, self.ridge = degree, ridge
        self.test_labels = test[0].labels(test[1])
        self.readout_labels = readout[0].labels(readout[1])
        self.true_features = test[0].project(test[1], teacher.directions)

    def measure(
        self,
        sample_size: int,
        eigenvalues: NDArray[np.float64],
        directions: NDArray[np.float64],
        *,
        independent: NDArray[np.float64],
        edges: tuple[float, float],
        iterations: int,
        residual: float,
    ) -> Recovery:
        """All metrics of one estimate."""
        teacher = self.teacher
        test = self.test[0].project(self.test[1], directions)
        readout = self.readout[0].project(self.readout[1], directions)
        outside = (eigenvalues < edges[0]) | (eigenvalues > edges[1])
        layers = {
            "same_sample": np.diag(eigenvalues),
            "independent": independent,
            "outliers": np.diag(np.where(outside, eigenvalues, 0.0)),
        }
        return Recovery(
            sample_size=sample_size,
            eigenvalues=eigenvalues,
            directions=directions,
            cos2=direction_cos2(teacher.unit_directions, directions),
            matched_overlap=matched_overlap(teacher.unit_directions, directions),
            feature_overlap=feature_overlap(self.true_features, test),
            mse={name: self._mse(layers[name], readout, test) for name in SECOND_LAYERS},
            n_outliers=int(outside.sum()),
            edges=edges,
            tail_mse=float(tail_mse(sample_size, teacher.feature_dimension, teacher.weights)),
            iterations=iterations,
            residual=residual,
        )

    def _mse(
        self,
        second_layer: NDArray[np.float64],
        readout: NDArray[np.float64],
        test: NDArray[np.float64],
    ) -> float:
        fitted = ScalarReadout.fit(
            second_latent(second_layer, readout),
            self.readout_labels,
            degree=self.degree,
            ridge=self.ridge,
        )
        return normalised_mse(fitted.predict(second_latent(second_layer, test)), self.test_labels)
