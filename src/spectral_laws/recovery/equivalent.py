"""The Gaussian-equivalent model, exact in law without ever drawing an n x D matrix.

Write F = (h, G): the d1 coordinates along the teacher, and n x (D - d1) Gaussians G independent of
h and of the labels. Let Q be orthonormal directions of feature space whose images X = F Q are
known (first the teacher's own), w = (y - ybar)/n, and P orthonormal directions of sample space
whose images G^T P are known. A residual of a Ritz vector needs G^T applied to a combination
of w * X, which is, given everything known so far, a fresh Gaussian outside P and outside Q:

    P' = the new combinations, orthonormalised against P;   G^T P' = (known) + Q' R,
    X' = F Q' = P' R^T + (I - P P^T - P' P'^T) W,

with Q' new directions that need no coordinates, R the triangular Bartlett factor of a Wishart
matrix with the remaining degrees of freedom, and W fresh standard normals (n x k). So a
block Krylov method runs on the Gram matrices X^T (w * X) = Q^T C Q and (w * X)^T (w * X) alone:
4 n c k multiplications and additions per step of k vectors on a basis of c, against n D k for the
direct form.

Source: this project (science.md, "Exact simulation in law at large D").
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NumericalError
from spectral_laws.recovery.teacher import Readout, check_target, respond
from spectral_laws.rng import StreamName, block_generator, generator

Matrix = NDArray[np.float64]
BLOCK = 4096
"""Samples of one generation block."""
_STILL = 1e-3
"""A Ritz value inside the edges that grew by less (relative to the largest) has settled there."""


@dataclass(frozen=True)
class EquivalentRecovery:
    """Leading eigenpairs of C in the Gaussian-equivalent model.

    Attributes:
        eigenvalues: the d1 of largest magnitude (Ritz values), by decreasing magnitude.
        overlaps: <u_i, uhat_k>, d1 x d1, row i the teacher's direction, column k the estimate.
        residuals: ||C uhat_k - theta_k uhat_k||, d1 numbers, the rms of what has not been drawn.
        localisation: largest share of one sample in sum_mu |w_mu| (uhat_k . F_mu)^2.
        iterations: block Krylov steps.
        basis: vectors of the Krylov basis at the end.
    """

    eigenvalues: Matrix
    overlaps: Matrix
    residuals: Matrix
    localisation: Matrix
    iterations: int
    basis: int


def simulate_equivalent(
    weights: ArrayLike,
    *,
    feature_dimension: int,
    sample_size: int,
    readout: Readout = "identity",
    noise: float = 0.0,
    edges: tuple[float, float] | None = None,
    tolerance: float = 1e-3,
    memory_mb: float = 4000.0,
    seed: int = 0,
    stream: tuple[StreamName, ...] = (),
    device: torch.device | str = "cpu",
) -> EquivalentRecovery:
    """Draw the d1 leading eigenpairs of C from their law, for F ~ N(0, I_D).

    ``weights`` are lambda, d1 numbers, of a teacher with orthonormal rows. Given the ``edges`` of
    the bulk, only eigenvectors outside them must converge (and those whose Ritz value still grows):
    in the bulk of a large matrix they would take as many steps as the bulk has eigenvalues. Left
    out, all d1 must converge, to a residual of ``tolerance`` times the largest |eigenvalue|.
    ``memory_mb`` is for the n x c basis images, in units of 2^20 bytes.

    Raises:
        ValueError: if a size is out of range, or as :func:`.teacher.check_target`.
        NumericalError: if the basis outgrows the memory before the residuals are small, or a
            number is NaN or infinite.
    """
    lambdas = np.asarray(weights, dtype=np.float64)
    check_target(lambdas, readout, noise)
    if len(lambdas) > feature_dimension:
        raise ValueError(f"need 1 <= d1 <= D, got {len(lambdas)} and {feature_dimension}")
    if sample_size < 2:
        raise ValueError(f"sample_size must be at least 2, got {sample_size}")
    images = _Images(
        lambdas,
        sample_size,
        readout=readout,
        noise=noise,
        capacity=int(memory_mb * 2**20 / (4 * sample_size)),
        seed=seed,
        stream=("equivalent", *stream),
        device=torch.device(device),
    )
    krylov = _Krylov(images, feature_dimension, generator(seed, "equivalent", *stream, "bartlett"))
    while True:
        values, vectors, missing = krylov.ritz()
        residuals = np.linalg.norm(missing, axis=0)
        chosen = np.flatnonzero(
            (residuals > tolerance * abs(values[0])) & krylov.unsettled(values, edges)
        )[: krylov.room]
        if chosen.size == 0:
            break
        krylov.grow(vectors[:, chosen])
    check_finite("eigenvalues of the equivalent model", values)
    return EquivalentRecovery(
        eigenvalues=values,
        overlaps=vectors[: len(lambdas)],
        residuals=residuals,
        localisation=images.localisation(vectors),
        iterations=krylov.iterations,
        basis=images.count,
    )


class _Krylov:
    """Coefficients of everything known: the projected matrix, and P as combinations of w * X."""

    def __init__(
        self, images: "_Images", feature_dimension: int, random: np.random.Generator
    ) -> None:
        self.images = images
        self.width = images.count
        self.free = feature_dimension - images.count  # directions of feature space not yet met
        self.random = random
        self.projected, self.gram = images.products(images.count)
        self.known = np.zeros((images.count, 0))  # P = (w * X) known
        self.iterations = 0
        self._last: Matrix | None = None

    @property
    def room(self) -> int:
        """Vectors that the next step may add."""
        return min(self.free, self.images.size - self.known.shape[1])

    def ritz(self) -> tuple[Matrix, Matrix, Matrix]:
        """Leading Ritz values, their coefficients (c x d1), and the residuals' factors.

        The norm of column k of the factors is the residual of pair k.
        """
        values, vectors = np.linalg.eigh(self.projected)
        order = np.argsort(-np.abs(values), kind="stable")[: self.width]
        values, vectors = values[order], vectors[:, order]
        fresh = self._outside(vectors)
        # With no direction or no sample left, the basis holds the whole of C.
        factor = _root(self.gram) @ fresh * np.sqrt(self.free if self.room else 0)
        return values, vectors, factor

    def unsettled(self, values: Matrix, edges: tuple[float, float] | None) -> NDArray[np.bool_]:
        """Pairs that must still converge: see ``edges`` of :func:`simulate_equivalent`."""
        if edges is None:
            return np.ones(len(values), dtype=np.bool_)
        rise = np.full(len(values), np.inf)
        if self._last is not None:
            rise = np.abs(values) - np.abs(self._last)
        self._last = values
        outside = (values < edges[0]) | (values > edges[1])
        return np.asarray(outside | (rise > _STILL * abs(values[0])))

    def grow(self, vectors: Matrix) -> None:
        """Apply C to the Ritz vectors of these coefficients (c x k): k new directions."""
        fresh = self._outside(vectors)
        basis = fresh @ np.linalg.inv(np.linalg.qr(_root(self.gram) @ fresh)[1])
        k = basis.shape[1]
        triangle = np.triu(self.random.standard_normal((k, k)), 1)
        degrees = self.free - np.arange(k)
        triangle[np.diag_indices(k)] = np.sqrt(self.random.chisquare(degrees))
        self.known = np.hstack([self.known, basis])
        self.iterations += 1
        overlap = self.images.draw(k, self.iterations)  # X^T (w * W)
        mixing = basis @ triangle.T - self.known @ (self.known.T @ overlap)
        projected, gram = self.images.products(k, mixing)
        self.projected = _border(self.projected, projected)
        self.gram = _border(self.gram, gram)
        self.known = np.vstack([self.known, np.zeros((k, self.known.shape[1]))])
        self.free -= k

    def _outside(self, vectors: Matrix) -> Matrix:
        """Combinations of w * X without their part in P, by two rounds of projection."""
        for _ in range(2):
            vectors = vectors - self.known @ (self.known.T @ (self.gram @ vectors))
        return vectors


def _root(gram: Matrix) -> Matrix:
    """R with R^T R = gram, for norms in the metric of the Gram matrix.

    Not by Cholesky: with more basis vectors than samples the Gram matrix is singular.
    """
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


def _border(matrix: Matrix, columns: Matrix) -> Matrix:
    """The symmetric matrix with new last columns (c + k x k)."""
    old = len(matrix)
    result = np.empty((len(columns), len(columns)))
    result[:old, :old] = matrix
    result[:, old:] = columns
    result[old:, :old] = columns[:old].T
    corner = columns[old:]
    result[old:, old:] = (corner + corner.T) / 2
    return result


class _Images:
    """X = F Q by blocks of samples (c x b), float32; the first d1 rows are the teacher's latents.

    Weights are kept as y - ybar, and 1/n is put in where float64 sums are formed.
    """

    def __init__(
        self,
        weights: Matrix,
        size: int,
        *,
        readout: Readout,
        noise: float,
        capacity: int,
        seed: int,
        stream: tuple[StreamName, ...],
        device: torch.device,
    ) -> None:
        self.size, self.count = size, len(weights)
        self.seed, self.stream, self.capacity = seed, stream, capacity
        self._check_memory(self.count)
        blocks = -(-size // BLOCK)
        # Rows that are not written yet take no memory: the system gives pages when touched.
        self._images = torch.empty(blocks, min(capacity, 4096), BLOCK, device=device)
        self._labels = torch.zeros(blocks, BLOCK, device=device)
        total = 0.0
        for b in range(blocks):
            latents = self._normals(self.count, 0, b)
            self._images[b, : self.count] = latents
            valid = min(BLOCK, size - b * BLOCK)
            h = latents[:, :valid].T.double().cpu().numpy()
            labels = respond(h, weights, readout)
            if noise > 0:
                random = block_generator(seed, *stream, "noise", block=b)
                labels = labels + noise * random.standard_normal(BLOCK)[:valid]
            check_finite("labels of the equivalent model", labels)
            total += float(labels.sum())
            self._labels[b, :valid] = torch.from_numpy(labels)
        self._labels -= total / size
        tail = size - (blocks - 1) * BLOCK
        self._labels[-1, tail:] = 0.0

    def draw(self, k: int, step: int) -> Matrix:
        """Put k rows of fresh normals W behind X; return X^T (w * W), c x k."""
        self._check_memory(self.count + k)
        result = torch.zeros(self.count, k, dtype=torch.float64, device=self._labels.device)
        for b, (images, labels) in enumerate(self._blocks(self.count)):
            normals = self._normals(k, step, b)
            self._images[b, self.count : self.count + k] = normals
            result += images @ (normals * labels).T
        return np.asarray(result.cpu().numpy()) / self.size

    def products(self, k: int, mixing: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """X^T (w * X) and (w * X)^T (w * X), last k columns (c x k), in one pass.

        With ``mixing``, the k drawn rows W behind X first become W + (w * X) mixing and are
        counted in.
        """
        old = self.count
        if mixing is not None:
            self.count += k
            rows = torch.from_numpy(mixing.T / self.size).to(self._images)
        first = torch.zeros(self.count, k, dtype=torch.float64, device=self._labels.device)
        second = torch.zeros_like(first)
        for images, labels in self._blocks(self.count):
            if mixing is not None:
                images[old:] += (rows @ images[:old]) * labels
            weighted = images[self.count - k :] * labels
            both = images @ torch.cat([weighted, weighted * labels]).T
            first += both[:, :k]
            second += both[:, k:]
        return (
            np.asarray(first.cpu().numpy()) / self.size,
            np.asarray(second.cpu().numpy()) / self.size**2,
        )

    def localisation(self, vectors: Matrix) -> Matrix:
        """Largest share of one sample in sum_mu |w_mu| (v . F_mu)^2, for coefficients c x k."""
        rows = torch.from_numpy(vectors.T).to(self._images)
        largest = torch.zeros(len(rows), device=rows.device)
        total = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        for images, labels in self._blocks(self.count):
            shares = (rows @ images).square_().mul_(labels.abs())
            largest = torch.maximum(largest, shares.amax(1))
            total += shares.sum(1)
        share = torch.where(total > 0, largest.double() / total, 0.0)
        return np.asarray(share.cpu().numpy())

    def _blocks(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(self._images[:, :count], self._labels, strict=True)

    def _normals(self, rows: int, step: int, block: int) -> Tensor:
        random = block_generator(self.seed, *self.stream, step, block=block)
        drawn = random.standard_normal((rows, BLOCK), dtype=np.float32)
        return torch.from_numpy(drawn).to(self._labels.device)

    def _check_memory(self, count: int) -> None:
        if count > min(self.capacity, 4096):
            raise NumericalError(
                f"equivalent model at n = {self.size}: {count} basis vectors do not fit the "
                f"memory, which holds {self.capacity}; the residuals are not small yet"
            )
