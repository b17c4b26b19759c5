"""The update against its definition by a singular value decomposition in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import ArpackNoConvergence

from spectral_laws.optimizers.spectral_update import spectral_update

SHAPES = [(64, 576), (576, 64), (40, 40), (200, 300), (5, 1), (1, 7), (1, 1)]
ALPHAS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.7]


def matrix(shape, decay, *, size=1.0, dtype=torch.float64, seed=0):
    """Random singular vectors, singular values size k^-decay."""
    generator = torch.Generator().manual_seed(seed)
    rank = min(shape)
    left, _ = torch.linalg.qr(torch.randn(shape[0], rank, generator=generator, dtype=torch.float64))
    right, _ = torch.linalg.qr(
        torch.randn(shape[1], rank, generator=generator, dtype=torch.float64)
    )
    sigma = size * torch.arange(1, rank + 1, dtype=torch.float64) ** -decay
    return ((left * sigma) @ right.T).to(dtype)


def by_definition(gradient, alpha, damping, relative):
    u, sigma, vt = torch.linalg.svd(gradient.double(), full_matrices=False)
    if relative:
        sigma = sigma / sigma[0]
    return (u * (sigma / (sigma**alpha + damping))) @ vt


def error(update, expected):
    return float((update.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.5, 3.0])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_float32_agrees_with_the_definition_to_1e_5(shape, alpha, decay):
    gradient = matrix(shape, decay, size=1e-3, dtype=torch.float32)
    update = spectral_update(gradient, alpha=alpha, damping=0.1)
    assert update.dtype == torch.float32
    assert update.shape == gradient.shape
    assert error(update, by_definition(gradient, alpha, 0.1, True)) < 1e-5


@pytest.mark.parametrize("decay", [0.0, 1.5, 3.0])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_float64_agrees_with_the_definition_to_1e_10(shape, alpha, decay):
    gradient = matrix(shape, decay, size=1e-3)
    update = spectral_update(gradient, alpha=alpha, damping=0.1)
    bar = 1e-10 if alpha == 0 or alpha >= 0.75 else 1e-6
    assert error(update, by_definition(gradient, alpha, 0.1, True)) < bar


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("damping", [0.03, 0.02, 1e-2, 1e-3, 1e-4, 1e-6])
def test_small_damping_is_resolved_in_float32(alpha, damping):
    gradient = matrix((60, 90), 1.5, dtype=torch.float32)
    update = spectral_update(gradient, alpha=alpha, damping=damping)
    assert error(update, by_definition(gradient, alpha, damping, True)) < 1e-5


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_absolute_damping(size, alpha):
    gradient = matrix((30, 50), 1.0, size=size, dtype=torch.float32)
    update = spectral_update(gradient, alpha=alpha, damping=0.1, relative=False)
    assert error(update, by_definition(gradient, alpha, 0.1, False)) < 1e-5


def test_absolute_damping_of_small_gradients_is_gradient_descent():
    gradient = matrix((30, 50), 1.0, size=1e-4)
    update = spectral_update(gradient, alpha=2.0, damping=0.1, relative=False)
    assert error(update, gradient / 0.1) < 1e-6  # sigma_1^2 / damping is 1e-7


@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("scale", [1e-36, 1e-25, 1e25, 1e36])
def test_relative_damping_knows_no_scale(scale, alpha):
    gradient = matrix((20, 30), 1.0, dtype=torch.float32)
    expected = spectral_update(gradient, alpha=alpha)
    torch.testing.assert_close(
        spectral_update(scale * gradient, alpha=alpha), expected, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("damping", [0.1, 0.03, 1e-3])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_rank_one(alpha, damping):
    gradient = torch.outer(torch.linspace(1, 2, 80), torch.linspace(-1, 3, 120))
    update = spectral_update(gradient, alpha=alpha, damping=damping)
    assert error(update, by_definition(gradient, alpha, damping, True)) < 1e-5


@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        (3e-39, torch.float32),
        (1e-44, torch.float32),
        (1e-39, torch.bfloat16),
        (1e-310, torch.float64),
    ],
)
def test_gradients_below_all_normal_numbers_are_finite(size, dtype, alpha):
    gradient = (size * matrix((20, 30), 0.5)).to(dtype)
    for relative in (True, False):
        assert torch.isfinite(spectral_update(gradient, alpha=alpha, relative=relative)).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_gradients_are_computed_in_float32(dtype):
    gradient = matrix((20, 30), 1.0, dtype=dtype)
    update = spectral_update(gradient)
    assert update.dtype == dtype
    assert torch.equal(update, spectral_update(gradient.float()).to(dtype))


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("relative", [True, False])
def test_a_zero_gradient_gives_a_zero_update(alpha, relative):
    update = spectral_update(torch.zeros(4, 6), alpha=alpha, relative=relative)
    assert torch.equal(update, torch.zeros(4, 6))


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_a_matrix_without_full_rank(alpha):
    gradient = torch.outer(torch.arange(1.0, 9), torch.arange(1.0, 5))
    update = spectral_update(gradient, alpha=alpha, damping=0.1)
    expected = gradient / gradient.norm() / 1.1
    torch.testing.assert_close(update, expected, rtol=1e-4, atol=1e-5)


def test_a_failed_factorisation_falls_back_to_the_eigendecomposition(monkeypatch):
    gradient = matrix((20, 30), 1.0)
    expected = spectral_update(gradient)

    def failing(gram):
        return torch.full_like(gram, torch.nan), torch.tensor(1)

    monkeypatch.setattr(torch.linalg, "cholesky_ex", failing)
    torch.testing.assert_close(spectral_update(gradient), expected, rtol=1e-10, atol=1e-12)


def test_the_largest_eigenvalue_without_convergence(monkeypatch):
    gradient = matrix((200, 300), 0.0)
    expected = spectral_update(gradient)

    def stuck(*_, **__):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr("scipy.sparse.linalg.eigsh", stuck)
    torch.testing.assert_close(spectral_update(gradient), expected, rtol=1e-10, atol=1e-12)


def test_the_largest_eigenvalue_of_separate_blocks():
    """A start vector inside one block would never see the other, larger one."""
    gradient = torch.zeros(200, 200, dtype=torch.float64)
    gradient[:100, :100] = matrix((100, 100), 0.5)
    gradient[100:, 100:] = matrix((100, 100), 0.5, size=1.5, seed=1)
    update = spectral_update(gradient)
    assert error(update, by_definition(gradient, 2.0, 0.1, True)) < 1e-10


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 3), st.floats(1e-4, 10))
def test_the_update_keeps_the_directions_and_transposes(rows, columns, alpha, damping):
    gradient = matrix((rows, columns), 0.7)
    update = spectral_update(gradient, alpha=alpha, damping=damping)
    transposed = spectral_update(gradient.T, alpha=alpha, damping=damping)
    torch.testing.assert_close(transposed, update.T, rtol=1e-8, atol=1e-10)
    assert torch.sum(update * gradient) > 0


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_only_matrices(shape):
    with pytest.raises(ValueError, match="a matrix is needed, got shape"):
        spectral_update(torch.ones(shape))
