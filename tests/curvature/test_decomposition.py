"""Alignments and factor eigenvalues: their product, their ranks, what is known in closed form."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from spectral_laws.curvature.derivatives.directional import measure_directional_curvature
from spectral_laws.curvature.kronecker.factors import (
    LARGEST_FACTOR,
    aligned_eigenvalues,
    factor_spectrum,
)
from spectral_laws.curvature.kronecker.ladder import Ladder, measure_ladder
from spectral_laws.curvature.kronecker.network_factors import kronecker_factors
from spectral_laws.errors import NumericalError

EPS = float(np.finfo(np.float64).eps)


def second_moment(eigenvalues: np.ndarray, *, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix with these eigenvalues, and its eigenvectors in their order."""
    size = len(eigenvalues)
    vectors, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))
    return torch.from_numpy(vectors * eigenvalues @ vectors.T), torch.from_numpy(vectors)


def network(dtype: torch.dtype) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32, 5),
    )
    return model.to(dtype), torch.randn(40, 2, 6, 6, dtype=dtype), torch.arange(40) % 5


def ladders(dtype: torch.dtype, *, top_k: int = 20) -> list[Ladder]:
    model, x, y = network(dtype)
    return measure_ladder(model, x, y, measure_directional_curvature(model, x, y, top_k=top_k))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_kronecker_is_the_product_of_alignments_and_eigenvalues(dtype):
    """The left side is summed over positions as they stream by, the right side comes from the
    decomposed matrices; both are in float64 whatever the network's dtype."""
    for ladder in ladders(dtype):
        product = ladder.rho_delta * ladder.rho_a * ladder.lambda_delta * ladder.lambda_a
        kept = ~np.isnan(product)
        assert np.count_nonzero(kept) >= 4
        np.testing.assert_allclose(product[kept], ladder.kronecker[kept], rtol=1e-10)


def test_alignments_are_quadratic_forms_over_eigenvalues_of_the_factors():
    model, x, y = network(torch.float64)
    spectra = measure_directional_curvature(model, x, y)
    factors = kronecker_factors(model, x, y)
    for spectrum, ladder in zip(spectra, measure_ladder(model, x, y, spectra), strict=True):
        for factor, vectors, rho, eigenvalues in (
            ("delta", spectrum.left_singular_vectors, ladder.rho_delta, ladder.lambda_delta),
            ("a", spectrum.right_singular_vectors, ladder.rho_a, ladder.lambda_a),
        ):
            matrix = getattr(factors[ladder.layer], factor).numpy()
            values, basis = np.linalg.eigh(matrix)
            expected = values[::-1][: len(rho)]
            np.testing.assert_allclose(eigenvalues, expected, rtol=1e-9)
            # Through the eigenbasis: sum_j Lambda_j <q_j, w_k>^2 / Lambda_k.
            forms = values @ (basis.T @ vectors) ** 2
            np.testing.assert_allclose(rho, forms / expected, rtol=1e-9)
            spectrum_of_factor = getattr(ladder, factor)
            assert spectrum_of_factor.eigenvalues.sum() == pytest.approx(np.trace(matrix))


def test_eigenvectors_in_order_have_alignment_one_and_swapped_ones_have_ratios():
    factor, vectors = second_moment(np.array([8.0, 4.0, 1.0]))
    spectrum = factor_spectrum(factor, eps=EPS, name="test")
    rho, eigenvalues = aligned_eigenvalues(factor, vectors, spectrum)
    np.testing.assert_allclose(eigenvalues, [8, 4, 1])
    np.testing.assert_allclose(rho, 1)
    rho, _ = aligned_eigenvalues(factor, vectors[:, [2, 1, 0]], spectrum)
    np.testing.assert_allclose(rho, [1 / 8, 1, 8])


def test_effective_ranks_in_closed_form():
    flat = factor_spectrum(second_moment(np.full(7, 3.0))[0], eps=EPS, name="flat")
    assert (flat.size, flat.rank) == (7, 7)
    assert flat.participation_rank == pytest.approx(7)
    assert flat.entropy_rank == pytest.approx(7)
    one = factor_spectrum(second_moment(np.array([2.0, 0, 0, 0]))[0], eps=EPS, name="one")
    assert one.rank == 1
    assert one.participation_rank == pytest.approx(1)
    assert one.entropy_rank == pytest.approx(1, abs=1e-10)
    two = factor_spectrum(torch.diag(torch.tensor([1.0, 3.0])).double(), eps=EPS, name="two")
    np.testing.assert_array_equal(two.eigenvalues, [3, 1])
    assert two.participation_rank == pytest.approx(16 / 10)
    assert two.entropy_rank == pytest.approx(4 / 3**0.75)
    zero = factor_spectrum(torch.zeros(3, 3).double(), eps=EPS, name="zero")
    assert (zero.rank, zero.participation_rank, zero.entropy_rank) == (0, 0, 0)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12), st.integers(0, 99))
def test_effective_ranks_are_ordered(eigenvalues, seed):
    """1 <= participation <= entropy <= size, as Renyi entropies of orders 2, 1 and 0 are."""
    factor, _ = second_moment(np.array(eigenvalues), seed=seed)
    spectrum = factor_spectrum(factor, eps=EPS, name="drawn")
    np.testing.assert_allclose(spectrum.eigenvalues, sorted(eigenvalues, reverse=True), rtol=1e-6)
    assert spectrum.rank == len(eigenvalues)
    assert 1 - 1e-9 <= spectrum.participation_rank <= spectrum.entropy_rank * (1 + 1e-9)
    assert spectrum.entropy_rank <= len(eigenvalues) * (1 + 1e-9)


def test_directions_beyond_a_factors_rank_have_no_alignment():
    factor, vectors = second_moment(np.array([5.0, 2.0, 1.0, 0.0, 0.0]))
    spectrum = factor_spectrum(factor, eps=EPS, name="deficient")
    assert spectrum.rank == 3
    rho, eigenvalues = aligned_eigenvalues(factor, vectors, spectrum)
    np.testing.assert_array_equal(np.isnan(rho), [False, False, False, True, True])
    np.testing.assert_array_equal(np.isnan(eigenvalues), np.isnan(rho))


class TwoLayers(nn.Module):
    """Its first layer sees the inputs as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.first(x)))


def test_directions_without_alignment_are_counted():
    """Inputs of two kinds give C_A rank 2; the directions are those of inputs of six kinds."""
    model = TwoLayers().double()
    x, y = torch.eye(6).double()[torch.arange(30) % 6], torch.arange(30) % 5
    spectrum = measure_directional_curvature(model, x, y, layers=["first"])[0]
    assert len(spectrum.singular_values) > 4
    few = torch.eye(6).double()[torch.arange(30) % 2]
    moved = measure_directional_curvature(model, few, y, layers=["first"])[0]
    mixed = replace(
        moved,
        singular_values=spectrum.singular_values,
        left_singular_vectors=spectrum.left_singular_vectors,
        right_singular_vectors=spectrum.right_singular_vectors,
    )
    (ladder,) = measure_ladder(model, few, y, [mixed])
    assert ladder.a.rank == 2
    assert ladder.n_beyond_rank == len(spectrum.singular_values) - 2
    assert np.isnan(ladder.rho_a[2:]).all()
    assert np.isfinite(ladder.kronecker).all()


def test_a_softmax_heads_output_gradients_have_rank_below_the_number_of_classes():
    head = ladders(torch.float32)[-1]
    assert (head.delta.size, head.delta.rank) == (5, 4)


def test_a_factor_too_large_for_memory_is_left_out_with_a_reason():
    model = nn.Sequential(nn.Linear(LARGEST_FACTOR + 1, 3), nn.Tanh(), nn.Linear(3, 3))
    x, y = torch.randn(9, LARGEST_FACTOR + 1), torch.arange(9) % 3
    first, head = measure_ladder(model, x, y, measure_directional_curvature(model, x, y))
    assert first.factor_reason == "12001 rows are more than 12000"
    assert first.a is None
    assert first.rho_a is None
    assert first.n_beyond_rank == 0
    assert len(first.rho_delta) == len(first.kronecker) == 3
    assert (first.kronecker > 0).all()
    assert not head.factor_reason
    factors = kronecker_factors(model, x, y)
    assert factors["0"].a is None
    assert factors["0"].delta.shape == (3, 3)


def test_a_factor_with_infinities_is_named():
    with pytest.raises(NumericalError, match="factor C_a of layer 3"):
        factor_spectrum(torch.full((2, 2), torch.inf), eps=EPS, name="factor C_a of layer 3")
