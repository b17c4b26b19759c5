"""Under torch.compile the update and the step are those of plain Python."""

import shutil

import pytest
import torch
from torch import nn

from spectral_laws.optimizers.spectral_newton import SpectralNewton
from spectral_laws.optimizers.spectral_update import spectral_update

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler"),
    # torch's own, of its profiler and of deprecated functions.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
]
SHAPES = [(20, 30), (40, 10), (64, 64), (30, 20)]


@pytest.mark.parametrize("dynamic", [True, False, None])
@pytest.mark.parametrize("alpha", [2.0, 1.5])
def test_updates_of_any_shape(dynamic, alpha):
    torch._dynamo.reset()
    compiled = torch.compile(spectral_update, dynamic=dynamic)
    generator = torch.Generator().manual_seed(0)
    for i, shape in enumerate(SHAPES):
        gradient = 10.0**i * torch.randn(*shape, generator=generator)
        expected = spectral_update(gradient, alpha=alpha)
        torch.testing.assert_close(compiled(gradient, alpha=alpha), expected, rtol=1e-6, atol=1e-7)


def train(*, compiled, alpha):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
    optimizer = SpectralNewton(model.parameters(), lr=1e-2, alpha=alpha)
    step = torch.compile(optimizer.step) if compiled else optimizer.step
    x = torch.randn(64, 20)
    for _ in range(4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        step()
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.parametrize("alpha", [2.0, 1.5])
def test_steps(alpha):
    torch._dynamo.reset()
    for found, expected in zip(
        train(compiled=True, alpha=alpha), train(compiled=False, alpha=alpha), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
