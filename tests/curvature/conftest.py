from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from spectral_laws.curvature.derivatives.directional import DirectionalSpectrum

Naive = Callable[[nn.Module, Tensor, Tensor, DirectionalSpectrum], list[float]]


def weight_name(model: nn.Module, spectrum: DirectionalSpectrum) -> str:
    """Parameter that a spectrum was measured in: the layer's weight, or the layer itself."""
    bare = spectrum.layer in dict(model.named_parameters())
    return spectrum.layer if bare else f"{spectrum.layer}.weight"


@pytest.fixture(autouse=True)
def fixed_seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        yield


@pytest.fixture(scope="session")
def naive_curvature() -> Naive:
    """vec(d)^T H vec(d) by torch's own Hessian-vector product over the whole batch."""

    def compute(
        model: nn.Module, x: Tensor, y: Tensor, spectrum: DirectionalSpectrum
    ) -> list[float]:
        name = weight_name(model, spectrum)
        weight = model.get_parameter(name).detach()

        def loss(value: Tensor) -> Tensor:
            return cross_entropy(functional_call(model, {name: value}, (x,)), y)

        curvatures = []
        for u, v in zip(
            spectrum.left_singular_vectors.T, spectrum.right_singular_vectors.T, strict=True
        ):
            direction = torch.outer(torch.from_numpy(u.copy()), torch.from_numpy(v.copy()))
            direction = direction.reshape(weight.shape).to(weight)
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                _, product = torch.autograd.functional.hvp(loss, weight, direction)
            curvatures.append(float((product * direction).sum()))
        return curvatures

    return compute


Dense = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]


@pytest.fixture(scope="session")
def dense_curvature() -> Dense:
    """(K,) exact and Gauss-Newton quadratic forms of the full matrices of one weight.

    The Hessian is torch's own, by two reverse passes through the whole batch; the Gauss-Newton
    matrix is J^T H J with the Jacobian of all logits and the cross-entropy's Hessian by position.
    """

    def compute(
        model: nn.Module, x: Tensor, y: Tensor, spectrum: DirectionalSpectrum, **loss_options: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        name = weight_name(model, spectrum)
        weight = model.get_parameter(name).detach()

        def logits(value: Tensor) -> Tensor:
            return functional_call(model, {name: value}, (x,)).flatten(0, -2)

        def loss(value: Tensor) -> Tensor:
            return cross_entropy(logits(value), y.flatten(), **loss_options)

        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            hessian = torch.autograd.functional.hessian(loss, weight)
            jacobian = torch.autograd.functional.jacobian(logits, weight).flatten(2)
        hessian = hessian.reshape(weight.numel(), -1).numpy()
        p = torch.softmax(logits(weight), 1).detach()
        outer = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
        gauss_newton = torch.einsum("nia,nij,njb->ab", jacobian, outer, jacobian).numpy() / len(p)
        u, v = spectrum.left_singular_vectors, spectrum.right_singular_vectors
        d = np.einsum("mk,nk->kmn", u, v).reshape(u.shape[1], -1)
        return (
            np.einsum("ka,ab,kb->k", d, hessian, d),
            np.einsum("ka,ab,kb->k", d, gauss_newton, d),
        )

    return compute
