"""Eigenpairs of largest magnitude of a symmetric matrix that is known by its products alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spectral_laws.errors import NumericalError

Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Eigenpairs:
    """Leading eigenpairs, by decreasing magnitude.

    Attributes:
        values: k eigenvalues (Ritz values), float64.
        vectors: k x D, orthonormal rows.
        residual: max_k ||C u_k - theta_k u_k|| / max |theta|.
        iterations: products with a block of vectors that were taken.
        block: the leading Ritz vectors of the whole block, a start for a nearby matrix.
    """

    values: Tensor
    vectors: Tensor
    residual: float
    iterations: int
    block: Tensor


def leading_eigenpairs(
    product: Product,
    start: Tensor,
    count: int,
    *,
    tolerance: float,
    max_iterations: int,
    name: str,
    max_basis: int | None = None,
) -> Eigenpairs:
    """Find the ``count`` eigenpairs of largest |eigenvalue| by a block Krylov method.

    Thick-restart block Lanczos that keeps the basis V and its products V C: each step adds the
    residuals of the leading Ritz vectors to the basis, orthogonalised in float64 against all of it,
    until max_k ||C u_k - theta_k u_k|| <= tolerance * max |theta|. Residuals that are already that
    small are left out of the step. A basis that reaches D vectors is the whole space and its Ritz
    pairs are exact.

    ``product`` maps V (k x D) to V C in float64, C symmetric. Rows of ``start`` should be random or
    a nearby solution: a block that spans an invariant space of C other than the wanted one cannot
    be left. ``max_basis`` vectors, at least 4 blocks and by default 16, are kept before a restart;
    memory is 16 D bytes each. ``name`` is what errors call C.

    Raises:
        ValueError: if the block is smaller than ``count`` or larger than D.
        NumericalError: if the products are not finite, or the residual is still too large.
    """
    width, size = start.shape
    if not count <= width <= size:
        raise ValueError(f"need count <= block <= D, got {count}, {width}, {size}")
    limit = min(size, max(max_basis or 16 * width, 4 * width))
    basis = torch.empty(limit, size, dtype=torch.float64, device=start.device)
    images = torch.empty_like(basis)
    projected = torch.zeros(limit, limit, dtype=torch.float64)  # basis C basis^T
    fresh = _orthonormalise(start.double(), basis[:0])
    filled = 0
    residual = np.inf
    for iteration in range(1, max_iterations + 1):
        grown = filled + len(fresh)
        basis[filled:grown] = fresh
        images[filled:grown] = product(fresh)
        corner = (fresh @ images[:grown].T).cpu()
        projected[filled:grown, :grown] = corner
        projected[:grown, filled:grown] = corner.T
        filled = grown
        values, mixing = _ritz(projected[:filled, :filled], name)
        values, mixing = values.to(basis.device), mixing.to(basis.device)
        ritz = mixing[:width] @ basis[:filled]
        errors = mixing[:width] @ images[:filled] - values[:width, None] * ritz
        norms = torch.linalg.vector_norm(errors, dim=1)
        scale = float(values[0].abs())
        residual = float(norms[:count].max()) / scale if scale > 0 else 0.0
        if filled == size or residual <= tolerance:
            return Eigenpairs(values[:count], ritz[:count], residual, iteration, ritz)
        rows = errors[norms > tolerance * scale][: size - filled]
        if filled + len(rows) > limit:
            kept = max(limit // 2, width)
            basis[:kept] = mixing[:kept] @ basis[:filled]
            images[:kept] = mixing[:kept] @ images[:filled]
            filled = kept
            projected[:kept, :kept] = torch.diag(values[:kept].cpu())
        fresh = _orthonormalise(rows, basis[:filled])
    raise NumericalError(
        f"{name}: eigenvectors not found in {max_iterations} iterations, residual {residual:.2e} "
        f"is above the tolerance {tolerance:.2e}"
    )


def _ritz(projected: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Ritz values by decreasing magnitude, and the rows that mix the basis into Ritz vectors."""
    if not torch.isfinite(projected).all():
        raise NumericalError(f"{name}: the products with C are NaN or infinite")
    values, columns = torch.linalg.eigh((projected + projected.T) / 2)
    order = torch.argsort(values.abs(), descending=True, stable=True)
    return values[order], columns.T[order]


def _orthonormalise(rows: Tensor, basis: Tensor) -> Tensor:
    """Orthonormal rows that span ``rows`` without their part in the (orthonormal) ``basis``.

    Three rounds: a row that lies in the span of the others comes out of the first QR as rounding
    noise, which the next rounds turn into a clean direction of its own.
    """
    rows = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-300)
    for _ in range(3):
        rows = rows - (rows @ basis.T) @ basis
        rows = torch.linalg.qr(rows.T)[0].T.contiguous()
    return rows
