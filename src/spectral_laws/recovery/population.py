"""The moment matrix at infinitely many samples, and what the algorithm recovers from it.

E C = E[(y - E y) F F^T] is known in closed form for the identity readout. With features of degree
1 it is the low-rank matrix sqrt(2) sum_i lambda_i A_i A_i^T that the Gaussian picture has in any
degree. With true Hermite features of degree 2 there is a part beyond it, which no number of samples
removes. It turns every direction a little, and at small dimension it hides weak directions for
good, most of all those whose sign is opposite to that of sum_i lambda_i.
"""

import math

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.hermite import index_pairs
from spectral_laws.recovery.krylov import leading_eigenpairs
from spectral_laws.recovery.overlaps import direction_cos2
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.rng import generator
from spectral_laws.settings.recovery import Population

# Up to this many features the dense eigenproblem is faster than the Krylov method.
DENSE_LIMIT = 500
_TOLERANCE = 1e-4
_EXTRA_ROWS = 8
_MAX_ITERATIONS = 1000


class PopulationMoment:
    """E C of a teacher, D x D, applied without being formed.

    Degree 1: E C = sqrt(2) sum_i lambda_i A_i A_i^T.

    Degree 2: write a feature vector v as the symmetric matrix M with M_ii = v_ii and
    M_ij = v_ij / sqrt 2, so that <F, v> = (x^T M x - tr M) / sqrt 2 and <v, w> = tr(M N). For four
    such forms the fourth joint moment is the sum over pairings of their covariances, plus their
    fourth cumulant; for A_i, A_i, M, M the cumulant is
    (8/4) (4 tr(A_i^2 M^2) + 2 tr(A_i M A_i M)), from the six cyclic orders of the four matrices. So

        <M, E C M> = (1/sqrt 2) sum_i lambda_i
                     [2 tr(A_i M)^2 + 8 tr(A_i^2 M^2) + 4 tr(A_i M A_i M)],
        (E C) M = sqrt(2) sum_i lambda_i tr(A_i M) A_i
                  + sqrt(8) (S M + M S + sum_i lambda_i A_i M A_i),   S = sum_i lambda_i A_i^2.

    Rows A_i need not be orthonormal, and label noise changes nothing. The sample matrix C is
    centred by the sample mean of y: its expectation is (1 - 1/n) E C.

    Raises:
        ConfigError: if the readout is another or the degree is above 2.
    """

    def __init__(self, teacher: Teacher, *, device: torch.device | str = "cpu") -> None:
        if teacher.readout != "identity" or teacher.degree > 2:
            raise ConfigError(
                "the population moment matrix is known for readout identity and degree 1 or 2, got "
                f"readout {teacher.readout} and degree {teacher.degree}"
            )
        self.teacher = teacher
        self.size = teacher.feature_dimension
        self._directions = torch.from_numpy(teacher.directions).to(device)
        self._weights = torch.from_numpy(teacher.weights).to(device)
        if teacher.degree == 2:
            self._prepare_quadratic()

    def apply(self, vectors: Tensor) -> Tensor:
        """V (E C) for rows V (k x D, float64).

        Degree 2 takes 4 d1 d^3 floating-point operations a row.
        """
        overlaps = vectors @ self._directions.T
        result = math.sqrt(2.0) * (overlaps * self._weights) @ self._directions
        return result + self.beyond_low_rank(vectors) if self.teacher.degree == 2 else result

    def beyond_low_rank(self, vectors: Tensor) -> Tensor:
        """V (E C - sqrt(2) sum_i lambda_i A_i A_i^T) for rows V (k x D); zero at degree 1."""
        if self.teacher.degree == 1:
            return torch.zeros_like(vectors)
        d = self.teacher.dimension
        result = torch.empty_like(vectors)
        for row, matrix in enumerate(self._matrices(vectors)):
            product = self._second @ matrix
            half = (self._rows.view(-1, d) @ matrix).view_as(self._rows)  # A_i M
            image = torch.addbmm(product + product.T, half, self._weighted_rows)
            result[row] = image.view(d * d)[self._flat] * self._scale
        return math.sqrt(8.0) * result

    def signals(self) -> NDArray[np.float64]:
        """u_i^T (E C) u_i of each teacher direction; sqrt(2) lambda_i at degree 1."""
        units = torch.from_numpy(self.teacher.unit_directions).to(self._directions.device)
        return np.asarray((self.apply(units) * units).sum(1).cpu().numpy())

    def bulk_scale(self) -> float:
        """4 sqrt(2) ||S||, the norm of M -> sqrt(8) (S M + M S); zero at degree 1.

        It is the size of the eigenvalues beyond the low-rank part: a direction whose signal
        (:meth:`signals`) is smaller is hidden among them.
        """
        if self.teacher.degree == 1:
            return 0.0
        return float(4.0 * math.sqrt(2.0) * torch.linalg.matrix_norm(self._second, 2))

    def _prepare_quadratic(self) -> None:
        d, device = self.teacher.dimension, self._directions.device
        first, second = index_pairs(d)
        self._flat = torch.from_numpy(first * d + second).to(device)
        self._mirror = torch.from_numpy(second * d + first).to(device)
        scale = np.where(first == second, 1.0, math.sqrt(2.0))
        self._scale = torch.from_numpy(scale).to(device)
        self._rows = self._matrices(self._directions)
        self._weighted_rows = self._weights[:, None, None] * self._rows
        self._second = torch.einsum("iab,ibc->ac", self._weighted_rows, self._rows)

    def _matrices(self, vectors: Tensor) -> Tensor:
        """The symmetric matrices (k x d x d) of feature vectors (k x D)."""
        d = self.teacher.dimension
        scaled = vectors / self._scale
        matrices = torch.empty(len(vectors), d * d, dtype=vectors.dtype, device=vectors.device)
        matrices[:, self._flat] = scaled
        matrices[:, self._mirror] = scaled
        return matrices.view(-1, d, d)


def population_moment(teacher: Teacher) -> NDArray[np.float64]:
    """E C, D x D in float64; see :class:`PopulationMoment`.

    Raises:
        ConfigError: if the readout is not identity or the degree is above 2.
    """
    moment = PopulationMoment(teacher)
    matrix = moment.apply(torch.eye(moment.size, dtype=torch.float64)).numpy()
    check_finite("population moment matrix", matrix)
    return np.asarray((matrix + matrix.T) / 2)


def population_tilt(weights: ArrayLike, dimension: int) -> NDArray[np.float64]:
    """1 - cos^2_i = 12 (1 + 2 lambda_i^2) / (d lambda_i)^2, at infinitely many samples, large d.

    For degree 2, identity readout, orthonormal random rows and 1/d << |lambda_i|. The part of E C
    beyond the low-rank one, B, turns u_i at first order by its image B u_i, outside u_i, over
    sqrt(2) lambda_i. Rows are asymptotically free semicircular matrices with tr A_i^2 = 1. The mean
    of S, a multiple of the identity, turns nothing; the rest of the terms j != i has

        ||S A_i + A_i S||^2 -> 2 (1 - lambda_i^2) / d^2,
        ||sum_j lambda_j A_j A_i A_j||^2 -> (1 - lambda_i^2) / d^2,

    orthogonal to each other; the term j = i is 3 lambda_i A_i^3, with ||A_i^3||^2 -> 1 / d^2
    outside A_i. So ||B u_i||^2 -> (8 (2 + 1) (1 - lambda_i^2) + 8 (9) lambda_i^2) / d^2.
    """
    values = np.asarray(weights, dtype=np.float64)
    if np.any(values == 0):
        raise ValueError("weights must not be zero")
    return np.asarray(12.0 * (1.0 + 2.0 * values**2) / (dimension * values) ** 2)


def leading_population_pairs(
    teacher: Teacher, count: int, *, dense_limit: int = DENSE_LIMIT
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ``count`` eigenpairs of largest |eigenvalue| of E C: values, and unit rows (count x D).

    Up to ``dense_limit`` features from the dense matrix; above by the block Krylov method, started
    from the teacher's rows and random ones. One pair more than asked for has to converge: from the
    teacher's rows alone a stop could miss an eigenvector of the bulk that outranks a direction.
    ``count`` is from d1 to D - 1.
    """
    moment = PopulationMoment(teacher)
    if not teacher.n_directions <= count < moment.size:
        raise ValueError(f"count must be in {teacher.n_directions}..{moment.size - 1}, got {count}")
    if moment.size <= dense_limit:
        values, columns = np.linalg.eigh(population_moment(teacher))
        order = np.argsort(-np.abs(values), kind="stable")[:count]
        return values[order], columns[:, order].T
    extra = min(count - teacher.n_directions + _EXTRA_ROWS, moment.size - teacher.n_directions)
    random = generator(0, "population start", teacher.dimension, teacher.degree)
    rows = random.standard_normal((extra, moment.size)) / math.sqrt(moment.size)
    pairs = leading_eigenpairs(
        moment.apply,
        torch.from_numpy(np.concatenate([teacher.directions, rows])),
        count + 1,
        tolerance=_TOLERANCE,
        max_iterations=_MAX_ITERATIONS,
        name=f"population moment matrix of d = {teacher.dimension}",
    )
    return pairs.values[:count].numpy(), pairs.vectors[:count].numpy()


def tabulate_population(population: Population, *, seed: int) -> pd.DataFrame:
    """What the algorithm recovers from infinitely many samples with true features of degree 2.

    One row per dimension, teacher and direction i: the estimate is spanned by the d1 eigenvectors
    of E C of largest |eigenvalue|, and ``cos2`` = ||U^T u_i||^2. Teachers are those of studies of
    degree 2 with the same width and gamma and orthonormal rows. With ``signal`` u_i^T (E C) u_i and
    ``bulk_scale`` 4 sqrt(2) ||S||, a direction is hidden, give or take, where |signal| <
    bulk_scale; ``tilt`` is 1 - cos2 by :func:`population_tilt`.
    """
    places = [(d, r) for d in population.dimensions for r in range(population.seeds)]
    tables = [
        _population_rows(population, dimension=dimension, replicate=replicate, seed=seed)
        for dimension, replicate in track(places, total=len(places), label="population")
    ]
    return pd.concat(tables, ignore_index=True)


def _population_rows(
    population: Population, *, dimension: int, replicate: int, seed: int
) -> pd.DataFrame:
    width = math.floor(math.pow(dimension, population.width_exponent) + 1e-9)
    teacher = Teacher.draw(
        dimension=dimension,
        n_directions=width,
        gamma=population.gamma,
        degree=2,
        rows="orthonormal",
        seed=seed,
        replicate=replicate,
    )
    moment = PopulationMoment(teacher)
    values, rows = leading_population_pairs(teacher, width)
    return pd.DataFrame(
        {
            "dimension": dimension,
            "feature_dimension": teacher.feature_dimension,
            "n_directions": width,
            "gamma": population.gamma,
            "seed": replicate,
            "direction": np.arange(1, width + 1),
            "weight": teacher.weights,
            "cos2": direction_cos2(teacher.unit_directions, rows),
            "eigenvalue": values,
            "signal": moment.signals(),
            "bulk_scale": moment.bulk_scale(),
            "tilt": population_tilt(teacher.weights, dimension),
        }
    )
