from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from spectral_laws.curvature.directional import DirectionalSpectrum

Naive = Callable[[nn.Module, Tensor, Tensor, DirectionalSpectrum], list[float]]


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
        name = f"{spectrum.layer}.weight"
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
