"""The negative control agrees with exact curvatures where arithmetic allows it, and only there."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spectral_laws.curvature.controls.finite_differences import finite_difference_curvatures
from spectral_laws.curvature.derivatives.directional import (
    DirectionalSpectrum,
    measure_directional_curvature,
)
from spectral_laws.errors import NumericalError


def smooth_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(4 * 25, 5)
    )


def batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return torch.randn(12, 2, 5, 5, dtype=dtype), torch.arange(12) % 5


def test_they_converge_to_the_exact_curvatures_in_double_precision():
    model, (x, y) = smooth_network().double(), batch()
    spectra = measure_directional_curvature(model, x, y, top_k=6, label_smoothing=0.1)
    found = finite_difference_curvatures(
        model, x, y, spectra, step=1e-4, chunk_size=5, label_smoothing=0.1
    )
    assert [len(values) for values in found] == [len(s.singular_values) for s in spectra]
    for spectrum, values in zip(spectra, found, strict=True):
        h = spectrum.directional_curvature
        np.testing.assert_allclose(values, h, rtol=1e-5, atol=1e-5 * np.abs(h).max())


def test_the_error_of_central_differences_is_of_second_order():
    model, (x, y) = smooth_network().double(), batch()
    spectra = measure_directional_curvature(model, x, y, top_k=3, layers=["0"])
    h = spectra[0].directional_curvature
    errors = [
        np.abs(finite_difference_curvatures(model, x, y, spectra, step=step)[0] - h).max()
        for step in (4e-2, 2e-2)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_chunks_change_rounding_only():
    model, (x, y) = smooth_network().double(), batch()
    spectra = measure_directional_curvature(model, x, y, top_k=3)
    whole, parts = (
        finite_difference_curvatures(model, x, y, spectra, step=1e-3, chunk_size=size)
        for size in (12, 5)
    )
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * np.abs(one).max())


def trained(activation: nn.Module) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(50, 40), activation, nn.Linear(40, 10))
    x, y = torch.randn(64, 2, 5, 5), torch.randint(0, 10, (64,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, x, y


def median_error(
    model: nn.Module, x: Tensor, y: Tensor, spectrum: DirectionalSpectrum, step: float
) -> float:
    (found,) = finite_difference_curvatures(model, x, y, [spectrum], step=step)
    return float(np.median(np.abs(found / spectrum.directional_curvature - 1)))


def test_rounding_of_single_precision_is_divided_by_the_step():
    model, x, y = trained(nn.GELU())
    (spectrum,) = measure_directional_curvature(
        model.double(), x.double(), y, layers=["1"], method="exact"
    )
    double = [median_error(model, x.double(), y, spectrum, step) for step in (1e-3, 1e-4)]
    assert max(double) < 1e-5
    model = model.float()
    single = [median_error(model, x, y, spectrum, step) for step in (1e-3, 1e-4)]
    assert single[0] > 100 * double[0]
    assert single[1] > 3 * single[0]


def test_steps_across_the_kinks_of_relu_measure_something_else():
    """Training drives many inputs of a ReLU close to zero. Between them the network is smooth and
    its curvature is h; a step over them adds the jump of the gradient, in any precision."""
    model, x, y = trained(nn.ReLU())
    model, x = model.double(), x.double()
    (spectrum,) = measure_directional_curvature(model, x, y, layers=["1"], method="exact")
    assert median_error(model, x, y, spectrum, 1e-3) > 10
    assert median_error(model, x, y, spectrum, 1e-7) < 1e-4


def test_weights_flags_and_gradients_are_left_as_found():
    model, (x, y) = smooth_network(), batch(torch.float32)
    model[0].weight.requires_grad_(False)
    spectra = measure_directional_curvature(model, x, y, top_k=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    finite_difference_curvatures(model, x, y, spectra, step=0.5)
    with pytest.raises(NumericalError, match="finite differences of layer 0"):
        finite_difference_curvatures(model, x, y, spectra, step=torch.inf)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert not model[0].weight.requires_grad
    assert model[3].weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


def test_wrong_arguments_are_refused():
    model, (x, y) = smooth_network().double(), batch()
    spectra = measure_directional_curvature(model, x, y, top_k=2)
    with pytest.raises(ValueError, match="step must be positive"):
        finite_difference_curvatures(model, x, y, spectra, step=0.0)
    with pytest.raises(ValueError, match="chunk_size must be positive"):
        finite_difference_curvatures(model, x, y, spectra, step=1.0, chunk_size=-4)
    assert finite_difference_curvatures(model, x, y, [], step=1.0) == []
