"""The update of Spectral Newton: a function of the singular values of one matrix."""

import math

import numpy as np
import torch
from torch import Tensor

_FLOAT32_DAMPING = 0.03
_FLOAT32_ALPHA = 2.0
"""Smallest relative damping and exponent for which a float32 Gram matrix gives T to 1e-5."""

_DENSE = 128
"""Up to this size all eigenvalues together are found sooner than the largest one by Lanczos."""

_RANGE = (1e-24, 1e30)
"""Squared norms of matrices whose products stay inside float32's range."""


def spectral_update(
    gradient: Tensor, *, alpha: float = 2.0, damping: float = 0.1, relative: bool = True
) -> Tensor:
    r"""U diag(T(sigma)) V^T of a matrix U diag(sigma) V^T: its update by Spectral Newton.

    T = sigma / (sigma^alpha + damping). With ``relative`` every sigma is first divided by the
    largest, so that the result does not depend on the scale of the gradient. Without, a damping
    above all sigma^alpha leaves gradient / damping, plain gradient descent.

    It is the product with :func:`spectral_factor`, in the factor's precision. ``alpha`` is at least
    0: at 0 the update is the scaled gradient, at 1 nearly orthogonal, at 2 directions near
    sqrt(damping) sigma_1 move most. ``damping`` is above 0, in units of sigma_1^alpha if
    ``relative``. A zero gradient has a zero update.

    Source: curvature paper, Spectral Newton; the relative scale is ours.
    """
    factor: Tensor = spectral_factor(gradient, alpha=alpha, damping=damping, relative=relative)
    matrix = gradient.to(factor.dtype)
    update = matrix @ factor if gradient.shape[0] > gradient.shape[1] else factor @ matrix
    return update.to(gradient.dtype)


# Compiled, the scale, a Python number, is that of the first matrix (torch 2.13, inductor).
@torch.compiler.disable  # type: ignore[untyped-decorator]
def spectral_factor(
    gradient: Tensor, *, alpha: float = 2.0, damping: float = 0.1, relative: bool = True
) -> Tensor:
    r"""The symmetric matrix P with P G (G wide) or G P (G tall) the update of G.

    No singular value decomposition is needed. With S the smaller of G G^T and G^T G, for a wide G

        alpha = 2:  P = (S + damping I)^-1, by one Cholesky factorisation,
        else:       P = Q diag(1 / (w^(alpha / 2) + damping)) Q^T, with S = Q diag(w) Q^T,

    after S is divided by its largest eigenvalue if ``relative`` (and P by that one's root).

    The update agrees with its definition to 1e-5, and to 1e-10 for float64 gradients and alpha of
    0.75 and more (to 1e-6 below, where steep spectra end in the rounding of S). S is made in
    float64 where float32 would not do: for alpha below 2, damping below 0.03, or a damping that is
    not relative.

    Options and source: as :func:`spectral_update`.

    Returns:
        Square, of the smaller side, float32; float64 for float64 gradients, damping below 0.03, or
        one that is not relative. Zero for gradients so small that it would overflow.
    """
    if gradient.ndim != 2:
        raise ValueError(f"a matrix is needed, got shape {tuple(gradient.shape)}")
    damped = relative and damping >= _FLOAT32_DAMPING
    single = damped and gradient.dtype != torch.float64
    result = torch.float32 if single else torch.float64
    wide = gradient.T if gradient.shape[0] > gradient.shape[1] else gradient
    wide = wide.to(result if alpha >= _FLOAT32_ALPHA else torch.float64)
    size = 1.0
    gram = wide @ wide.T
    trace = gram.trace().item()
    if not _RANGE[0] < trace < _RANGE[1]:
        size = torch.linalg.vector_norm(wide, ord=math.inf).item()
        if size < torch.finfo(result).tiny / min(damping, 1):
            return torch.zeros_like(gram, dtype=result)
        gram = (wide / size) @ (wide / size).T
    # What sigma of the scaled gradient is measured in, and the update with it.
    unit = math.sqrt(_largest_eigenvalue(gram)) if relative else 1 / size
    inverse = _damped_inverse(gram.div_(unit).div_(unit), alpha=alpha, damping=damping)
    return inverse.mul_(1 / (unit * size) if relative else 1.0).to(result)


def _damped_inverse(gram: Tensor, *, alpha: float, damping: float) -> Tensor:
    """(S^(alpha / 2) + damping I)^-1 of a positive semi-definite S, which may be overwritten."""
    if alpha == 2:
        gram.diagonal().add_(damping)
        factor, failed = torch.linalg.cholesky_ex(gram)
        if not failed:
            inverse: Tensor = torch.cholesky_inverse(factor)
            return inverse
        gram.diagonal().sub_(damping)
    values, vectors = torch.linalg.eigh(gram)
    weights = 1 / (values.clamp_min(0) ** (alpha / 2) + damping)
    result: Tensor = (vectors * weights) @ vectors.T
    return result


def _largest_eigenvalue(gram: Tensor) -> float:
    """Largest eigenvalue of a positive semi-definite matrix, to its rounding."""
    size = len(gram)
    if gram.is_cuda or size <= _DENSE:
        return float(torch.linalg.eigvalsh(gram)[-1])
    # 0.3 s, which the start of a job whose matrices are all small need not take.
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    array = gram.detach().numpy()
    # The residual; the eigenvalue's error is of second order in it.
    tolerance = 1e-5 if gram.dtype == torch.float32 else 1e-9
    start = np.random.Generator(np.random.Philox(size)).standard_normal(size).astype(array.dtype)
    try:
        largest = eigsh(array, k=1, which="LA", return_eigenvectors=False, v0=start, tol=tolerance)
    except ArpackNoConvergence:
        return float(torch.linalg.eigvalsh(gram)[-1])
    return float(largest[0])
