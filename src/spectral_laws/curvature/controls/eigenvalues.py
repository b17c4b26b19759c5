"""Leading eigenvalues of each layer's Hessian block: what directional curvatures are not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor, nn

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.derivatives.directional import DirectionalSpectrum
from spectral_laws.curvature.derivatives.problem import Batch, check_problem, second_derivatives
from spectral_laws.curvature.introspection.layers import (
    Layer,
    differentiable_attention,
    differentiable_weights,
)
from spectral_laws.errors import NumericalError
from spectral_laws.progress import track
from spectral_laws.rng import generator

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class LayerEigenvalues:
    """Leading eigenpairs of the Hessian block of one layer's weight.

    Attributes:
        layer: module name.
        weight_shape: of the weight.
        eigenvalues: (n,) the largest ones, decreasing, of any sign.
        eigenvectors: (n_weights, n) unit columns, in the order of the flattened weight.
        residuals: (n,) norms |H q - lambda q|; each bounds the distance of its lambda to an
            eigenvalue.
    """

    layer: str
    weight_shape: tuple[int, ...]
    eigenvalues: Vector
    eigenvectors: Vector
    residuals: Vector

    def overlaps(self, spectrum: DirectionalSpectrum) -> Vector:
        """(n, K) squared cosines between eigenvectors and directions vec(u_k v_k^T)."""
        if (self.layer, self.weight_shape) != (spectrum.layer, spectrum.weight_shape):
            raise ValueError(
                f"the eigenvalues are of layer {self.layer!r}, the spectrum of {spectrum.layer!r}"
            )
        matrices = self.eigenvectors.T.reshape(-1, *spectrum.matrix_shape)
        u, v = spectrum.left_singular_vectors, spectrum.right_singular_vectors
        return np.asarray(np.einsum("nij,ik,jk->nk", matrices, u, v, optimize=True) ** 2)


def layer_eigenvalues(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    n_eigenvalues: int,
    seed: int,
    layers: Sequence[str] | None = None,
    chunk_size: int = 32,
    label_smoothing: float = 0.0,
    progress: bool = False,
) -> list[LayerEigenvalues]:
    """Largest eigenvalues of d^2 L / dW^2, L the mean cross-entropy, for every layer's weight W.

    Lanczos iteration (ARPACK) on exact Hessian-vector products, each a double backward pass down to
    the layer's own weight. The largest eigenvalue is at least every directional curvature h_k of
    the layer, which is a quadratic form of the same matrix in a unit vector. If the whole batch is
    one chunk its graph is kept, which is about twice as fast; results do not depend on it.
    ``n_eigenvalues`` are found per layer (fewer if the weight has fewer entries), from start
    vectors drawn with ``seed``. Other arguments are those of ``measure_directional_curvature``.

    Raises:
        ValueError: as ``measure_directional_curvature``, and if a layer comes before an operation
            that torch can differentiate only once.
        NumericalError: if the model is random, a product is NaN or infinite, or the iteration does
            not converge.
    """
    if n_eigenvalues < 1:
        raise ValueError(f"n_eigenvalues must be positive, found {n_eigenvalues}")
    problem = check_problem(model, inputs, targets, layers, chunk_size, label_smoothing)
    batch, found = problem.batch, problem.layers
    steps = track(found, total=len(found), label="layer eigenvalues") if progress else found
    results = []
    for layer in steps:
        start = generator(seed, "layer eigenvalues", layer.name).standard_normal(
            layer.weight.numel()
        )
        # Fused attention has no second derivative.
        with (
            differentiable_weights(model, [layer]),
            differentiable_attention(),
            second_derivatives(),
        ):
            results.append(_leading(_HessianBlock(batch, layer), start, n_eigenvalues))
    return results


class _HessianBlock:
    """Products of one layer's Hessian block with vectors."""

    def __init__(self, batch: Batch, layer: Layer) -> None:
        self._batch, self.layer = batch, layer
        one_chunk = len(batch.targets) <= batch.chunk_size
        self._kept = [*self._new_gradients()] if one_chunk else None

    def _new_gradients(self) -> Iterator[Tensor]:
        """Gradients of the chunks' summed losses, with their graphs."""
        weight = self.layer.weight
        for x, y in self._batch.chunks():
            loss = self._batch.summed_loss(self._batch.logits(x), y)
            if not loss.requires_grad:  # none of these samples reaches the layer
                continue
            (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
            yield gradient

    def __call__(self, vector: Vector) -> Vector:
        """H v, in float64; the passes are in the model's dtype."""
        weight = self.layer.weight
        direction = torch.from_numpy(vector).to(weight).reshape(weight.shape)
        total = torch.zeros_like(weight, dtype=torch.float64)
        for gradient in self._kept or self._new_gradients():
            (product,) = torch.autograd.grad(
                gradient,
                weight,
                direction,
                retain_graph=self._kept is not None,
                materialize_grads=True,
            )
            total += product
        found: Vector = (total / self._batch.targets.numel()).flatten().cpu().numpy()
        check_finite(f"Hessian-vector product of layer {self.layer.name}", found)
        return found


def _lanczos(
    block: _HessianBlock,
    start: Vector,
    n_eigenvalues: int,
    *,
    tolerance: float,
    found: Vector | None = None,
    shift: float = 0.0,
) -> tuple[Vector, Vector]:
    """Largest eigenpairs of H by ARPACK, outside the columns Q of ``found``.

    They are those of P H P + shift (P - Q Q^T) - shift, P = 1 - Q Q^T; ``shift`` moves eigenvalues
    away from zero, in units of which ARPACK has its tolerance.
    """
    columns = np.zeros((len(start), 0)) if found is None else found

    def product(vector: Vector) -> Vector:
        inside = columns @ (columns.T @ vector)
        outside = vector - inside
        image = block(outside)
        return image - columns @ (columns.T @ image) + shift * (outside - inside)

    operator = LinearOperator((len(start), len(start)), matvec=product, dtype=np.float64)
    try:
        # Products are accurate to a small multiple of eps.
        values, vectors = eigsh(operator, n_eigenvalues, which="LA", v0=start, tol=tolerance)
        return values - shift, vectors
    except ArpackNoConvergence as error:
        raise NumericalError(
            f"eigenvalues of layer {block.layer.name}: {len(error.eigenvalues)} of "
            f"{n_eigenvalues} converged"
        ) from error


def _with_copies(
    block: _HessianBlock, start: Vector, values: Vector, vectors: Vector, *, tolerance: float
) -> tuple[Vector, Vector]:
    """The eigenpairs, and those that one Krylov space cannot see beside them.

    It holds one vector of every eigenspace: of equal eigenvalues (a head with zero weights has its
    largest c - 1 times) the others come in by rounding, or not at all. So the largest eigenvalue
    is sought again in the complement of what is known, until it is none of the ``len(values)``
    largest.
    """
    wanted, scale = len(values), float(np.abs(values).max())
    while vectors.shape[1] < len(start) - 1:
        pair = _lanczos(block, start, 1, tolerance=tolerance, found=vectors, shift=scale)
        if pair[0][0] <= np.sort(values)[-wanted] + tolerance * scale:
            break
        values, vectors = np.append(values, pair[0]), np.linalg.qr(np.hstack([vectors, pair[1]]))[0]
    return values, vectors


def _leading(block: _HessianBlock, start: Vector, n_eigenvalues: int) -> LayerEigenvalues:
    """The largest eigenvalues of ``block``, each with its residual checked."""
    n_weights = len(start)
    eps = float(torch.finfo(block.layer.weight.dtype).eps)
    if n_weights <= max(2 * n_eigenvalues + 1, 20):
        # ARPACK's basis would be the whole space.
        matrix = np.stack([block(column) for column in np.eye(n_weights)])
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    elif not block(start).any():  # no sample reaches the layer: H is zero, which is no start
        values, vectors = np.zeros(n_eigenvalues), np.eye(n_weights, n_eigenvalues)
    else:
        values, vectors = _lanczos(block, start, n_eigenvalues, tolerance=30 * eps)
        values, vectors = _with_copies(block, start, values, vectors, tolerance=30 * eps)
    order = np.argsort(values, kind="stable")[::-1][:n_eigenvalues]
    values, vectors = values[order], vectors[:, order]
    products = np.stack([block(np.ascontiguousarray(column)) for column in vectors.T], axis=1)
    residuals = np.linalg.norm(products - values * vectors, axis=0)
    largest = np.abs(values).max()
    if residuals.max() > np.sqrt(eps) * largest:
        raise NumericalError(
            f"eigenvalues of layer {block.layer.name}: residual {residuals.max():.3g} beside "
            f"eigenvalue {largest:.3g}"
        )
    return LayerEigenvalues(
        block.layer.name, tuple(block.layer.weight.shape), values, vectors, residuals
    )
