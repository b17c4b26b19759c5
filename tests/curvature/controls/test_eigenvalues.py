"""Lanczos against dense Hessians, and against the directional curvatures they bound."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from spectral_laws.curvature.controls.eigenvalues import layer_eigenvalues
from spectral_laws.curvature.derivatives.directional import measure_directional_curvature
from spectral_laws.errors import NumericalError


def network() -> nn.Module:
    """Smooth and curved, so that its Hessian blocks have eigenvalues of both signs."""
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, groups=2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(4 * 9, 6),
        nn.GELU(),
        nn.Linear(6, 3),
    )
    return model.double()


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(10, 2, 3, 3).double(), torch.arange(10) % 3


def dense_hessian(model: nn.Module, name: str, x: Tensor, y: Tensor, **loss: float) -> Tensor:
    weight = model.get_parameter(name).detach()

    def value(w: Tensor) -> Tensor:
        return cross_entropy(functional_call(model, {name: w}, (x,)), y, **loss)

    return torch.func.hessian(value)(weight).detach().reshape(weight.numel(), -1)


@pytest.mark.parametrize("chunk_size", [10, 4])
def test_leading_eigenpairs_are_those_of_the_dense_hessian(chunk_size):
    model, (x, y) = network(), batch()
    found = layer_eigenvalues(
        model, x, y, n_eigenvalues=4, seed=1, chunk_size=chunk_size, label_smoothing=0.2
    )
    # 36, 216 and 18 weights: ARPACK, ARPACK, and the dense way.
    assert [result.layer for result in found] == ["0", "3", "5"]
    for result in found:
        hessian = dense_hessian(model, f"{result.layer}.weight", x, y, label_smoothing=0.2)
        values, vectors = torch.linalg.eigh(hessian)
        assert values[0] < 0
        leading = values.flip(0)[:4].numpy()
        np.testing.assert_allclose(result.eigenvalues, leading, rtol=1e-8)
        cosines = np.abs(vectors.flip(1)[:, :4].numpy().T @ result.eigenvectors)
        np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-8)
        assert result.residuals.max() < 1e-9 * leading[0]
        assert result.eigenvectors.shape == (hessian.shape[0], 4)


def test_the_largest_eigenvalue_bounds_every_directional_curvature():
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 16, 10),
    ).eval()
    x, y = torch.randn(40, 1, 8, 8), torch.randint(0, 10, (40,))
    spectra = measure_directional_curvature(model, x, y)
    found = layer_eigenvalues(model, x, y, n_eigenvalues=2, seed=0, chunk_size=40)
    for result, spectrum in zip(found, spectra, strict=True):
        h = spectrum.directional_curvature
        assert result.layer == spectrum.layer
        assert 0 < h.max() <= result.eigenvalues[0] * (1 + 1e-5)
        # h_k is the mean of the eigenvalues, weighed by the squared cosines.
        overlaps = result.overlaps(spectrum)
        assert overlaps.shape == (2, len(h))
        assert (overlaps.sum(axis=0) <= 1 + 1e-6).all()
        assert (result.eigenvalues @ overlaps <= h * (1 + 1e-4) + 1e-7 * h.max()).all()


def test_overlaps_with_all_eigenvectors_rebuild_the_directional_curvatures():
    model, (x, y) = network(), batch()
    (spectrum,) = measure_directional_curvature(model, x, y, layers=["5"])
    (result,) = layer_eigenvalues(model, x, y, layers=["5"], n_eigenvalues=18, seed=0)
    np.testing.assert_allclose(
        result.eigenvalues @ result.overlaps(spectrum), spectrum.directional_curvature, rtol=1e-10
    )
    with pytest.raises(ValueError, match="layer '5', the spectrum of '3'"):
        result.overlaps(measure_directional_curvature(model, x, y, layers=["3"])[0])


class Attending(nn.Module):
    """Projections in a bare parameter, and a fused kernel that has no second derivative."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x, need_weights=False)[0])


def test_attention_and_language_loss():
    model, x = Attending().double().eval(), torch.randn(4, 5, 4).double()
    y = torch.randint(0, 3, (4, 5))
    name = "attention.in_proj_weight"
    (found,) = layer_eigenvalues(model, x, y, layers=[name], n_eigenvalues=2, seed=0, chunk_size=3)
    weight = model.get_parameter(name).detach()

    def loss(w: Tensor) -> Tensor:
        return cross_entropy(functional_call(model, {name: w}, (x,)).flatten(0, 1), y.flatten())

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        hessian = torch.autograd.functional.hessian(loss, weight).reshape(48, 48)
    expected = np.linalg.eigvalsh(hessian.numpy())[::-1][:2]
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-8)


def test_a_seed_repeats_every_digit_and_another_agrees():
    model, (x, y) = network(), batch()
    one, two, other = (
        layer_eigenvalues(model, x, y, layers=["3"], n_eigenvalues=2, seed=seed)[0]
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.eigenvectors, two.eigenvectors)
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=1e-10)
    assert not np.array_equal(one.eigenvectors, other.eigenvectors)


def test_model_is_left_as_found_and_mistakes_are_named():
    model, (x, y) = network(), batch()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    layer_eigenvalues(model, x, y, n_eigenvalues=1, seed=0)
    with pytest.raises(NumericalError, match="logits of the first samples"):
        layer_eigenvalues(model, x * torch.nan, y, n_eigenvalues=1, seed=0)
    with pytest.raises(ValueError, match="must be positive"):
        layer_eigenvalues(model, x, y, n_eigenvalues=0, seed=0)
    with pytest.raises(ValueError, match="train mode"):
        layer_eigenvalues(
            nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)),
            torch.randn(5, 4),
            torch.zeros(5, dtype=torch.int64),
            n_eigenvalues=1,
            seed=0,
        )
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
