"""What would give wrong numbers is refused by every function that measures; what would not, is not.

Reference: the curvatures and eigenvalues of a dense Hessian in float64, by autograd alone.
"""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy, dropout, scaled_dot_product_attention

from spectral_laws.curvature.controls.eigenvalues import layer_eigenvalues
from spectral_laws.curvature.controls.finite_differences import finite_difference_curvatures
from spectral_laws.curvature.derivatives.directional import measure_directional_curvature
from spectral_laws.curvature.introspection.structure import gauss_newton_obstacles
from spectral_laws.curvature.kronecker.ladder import measure_ladder
from spectral_laws.curvature.kronecker.network_factors import kronecker_factors
from spectral_laws.errors import NumericalError

CLASSES = 3


class Body(nn.Module):
    """Two linear layers with something between them."""

    def __init__(self, between):
        super().__init__()
        self.first, self.head, self.between = nn.Linear(5, 4), nn.Linear(4, CLASSES), between

    def forward(self, x):
        return self.head(self.between(self.first(x)))


def network(between=torch.tanh, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return Body(between).to(dtype)


def batch(n=12, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n, 5, generator=generator, dtype=torch.float64).to(dtype)
    return x, torch.randint(CLASSES, (n,), generator=generator)


def attention(rate):
    """Attention over the four hidden units as tokens, with dropout that no module shows."""

    def attend(hidden):
        tokens = hidden.unsqueeze(-1)
        mixed = scaled_dot_product_attention(tokens, tokens, tokens, dropout_p=rate)
        return mixed.squeeze(-1)

    return attend


def differences(model, x, y):
    spectra = measure_directional_curvature(network(), *batch(), top_k=2)
    return finite_difference_curvatures(model, x, y, spectra, step=1e-3)


def ladder(model, x, y):
    spectra = measure_directional_curvature(network(), *batch(), top_k=2)
    return measure_ladder(model, x, y, spectra)


MEASURES = {
    "directional": measure_directional_curvature,
    "directional, exact": lambda *a: measure_directional_curvature(*a, method="exact"),
    "eigenvalues": lambda *a: layer_eigenvalues(*a, n_eigenvalues=1, seed=0),
    "factors": kronecker_factors,
    "differences": differences,
    "ladder": ladder,
}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


def dense_hessian(model, name, x, y):
    weight = model.get_parameter(name).detach()

    def loss(flat):
        return cross_entropy(functional_call(model, {name: flat.view_as(weight)}, (x.clone(),)), y)

    return torch.autograd.functional.hessian(loss, weight.flatten())


def assert_exact(model, x, y, spectra, rtol=1e-9):
    for spectrum in spectra:
        hessian = dense_hessian(model, f"{spectrum.layer}.weight", x, y).numpy()
        u, v = spectrum.left_singular_vectors, spectrum.right_singular_vectors
        d = np.einsum("ik,jk->kij", u, v).reshape(u.shape[1], -1)
        expected = np.einsum("ki,ij,kj->k", d, hessian, d)
        np.testing.assert_allclose(spectrum.directional_curvature, expected, rtol=rtol)


@every_measure
@pytest.mark.parametrize(
    "between",
    [
        lambda x: dropout(x, 0.5),
        lambda x: dropout(x, 1e-3),  # most of the passes over few samples are equal
        attention(0.1),
        lambda x: x + 1e-8 * torch.randn_like(x),
    ],
    ids=["dropout", "rare dropout", "attention dropout", "noise"],
)
def test_randomness_that_no_module_shows_is_refused(measure, between):
    x, y = batch(600)
    torch.manual_seed(3)
    with pytest.raises(NumericalError, match="the model is random"):
        measure(network(between), x, y)


@every_measure
def test_a_model_that_is_the_same_each_time_is_measured(measure):
    assert len(measure(network(), *batch())) == 2


@pytest.mark.parametrize("name", ["directional", "directional, exact", "eigenvalues", "factors"])
def test_attention_without_dropout_is_measured(name):
    assert len(MEASURES[name](network(attention(0.0)), *batch())) == 2


def test_the_structure_of_a_random_model_is_refused_by_its_reason():
    with pytest.raises(NumericalError, match="the model is random"):
        gauss_newton_obstacles(network(lambda x: dropout(x, 0.5)), batch()[0])


@every_measure
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_inside_the_forward_pass_is_refused(measure, dtype):
    model, (x, y) = network(dtype=torch.float32), batch(dtype=torch.float32)
    forward = copy.copy(model.forward)

    def cast(x):
        with torch.autocast("cpu", dtype):
            return forward(x).float()

    model.forward = cast
    with pytest.raises(ValueError, match="computes in half precision"):
        measure(model, x, y)


@every_measure
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: torch.where(y == 0, -100, y), "targets must lie in 0..2"),
        (lambda y: y + 1, "targets must lie in 0..2"),
        (lambda y: y[:0], "do not match"),
        (lambda y: y.double(), "int64"),
    ],
    ids=["ignored", "too large", "none", "numbers"],
)
def test_targets_that_are_no_classes_are_refused(measure, change, message):
    x, y = batch()
    with pytest.raises(ValueError, match=message):
        measure(network(), x[: len(change(y))] if not len(change(y)) else x, change(y))


@every_measure
def test_half_precision_weights_and_outer_autocast_are_refused(measure):
    x, y = batch(dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"weights of dtype torch\.bfloat16"):
        measure(network(dtype=torch.bfloat16), x, y)
    with torch.autocast("cpu"), pytest.raises(ValueError, match="autocast is active"):
        measure(network(dtype=torch.float32), *batch(dtype=torch.float32))


def test_equal_eigenvalues_are_all_returned():
    """A head of zero weights: p = 1 / c, so that H = (I - 11^T / c) / c times the second moment."""
    torch.manual_seed(0)
    head = nn.Linear(30, 10, bias=False).double()
    nn.init.zeros_(head.weight)
    x, y = torch.randn(50, 30, dtype=torch.float64), torch.randint(10, (50,))
    expected = np.linalg.eigvalsh(dense_hessian(head, "weight", x, y).numpy())[::-1]
    assert np.ptp(expected[:9]) < 1e-12 < expected[8] - expected[9]
    for n in (1, 4, 9, 12):
        (found,) = layer_eigenvalues(head, x, y, n_eigenvalues=n, seed=0)
        np.testing.assert_allclose(found.eigenvalues, expected[:n], rtol=1e-9)
        gram = found.eigenvectors.T @ found.eigenvectors
        np.testing.assert_allclose(gram, np.eye(n), atol=1e-9)


class Experts(nn.Module):
    """One of two experts by the sign of the first input, and a layer that nothing uses."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(5, 4) for _ in range(3))
        self.unused, self.head = nn.Linear(6, 7), nn.Linear(4, CLASSES)  # beyond a dense matrix

    def forward(self, x):
        chosen = (x[:, 0] > 0).long()
        hidden = x.new_zeros(len(x), 4)
        for i, expert in enumerate(self.experts[:2]):
            rows = (chosen == i).nonzero()[:, 0]
            if len(rows):
                hidden = hidden.index_add(0, rows, expert(x[rows]))
        return self.head(torch.tanh(hidden))


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("chunk_size", [1, 3, 12])
def test_an_expert_that_few_samples_reach_and_an_unused_layer(caplog, chunk_size, method):
    torch.manual_seed(0)
    model, (x, y) = Experts().double(), batch()
    x[:, 0] = x[:, 0].abs()
    x[5, 0] = -1.0  # the only sample of the first expert, in a chunk of its own if chunks are small
    spectra = measure_directional_curvature(model, x, y, chunk_size=chunk_size, method=method)
    by_name = {spectrum.layer: spectrum for spectrum in spectra}
    assert [*by_name] == ["experts.0", "experts.1", "experts.2", "unused", "head"]
    for name in ("experts.2", "unused"):
        assert by_name[name].rank == 0
        assert by_name[name].directional_curvature.shape == (0,)
        assert f"layer {name} does not influence the logits" in caplog.text
    assert by_name["experts.0"].rank == 1
    assert_exact(model, x, y, [spectrum for spectrum in spectra if spectrum.rank])


def test_eigenvalues_and_the_ladder_of_an_unused_layer():
    torch.manual_seed(0)
    model, (x, y) = Experts().double(), batch()
    values = {
        found.layer: found.eigenvalues
        for found in layer_eigenvalues(model, x, y, n_eigenvalues=2, seed=0, chunk_size=3)
    }
    np.testing.assert_array_equal(values["unused"], 0.0)
    for name in ("experts.0", "head"):
        hessian = dense_hessian(model, f"{name}.weight", x, y).numpy()
        expected = np.linalg.eigvalsh(hessian)[:-3:-1]
        np.testing.assert_allclose(values[name], expected, rtol=1e-9)
    spectra = measure_directional_curvature(model, x, y)
    rungs = {found.layer: found for found in measure_ladder(model, x, y, spectra)}
    assert rungs["unused"].reason
    assert rungs["head"].reason == ""


@pytest.mark.parametrize("first", [nn.ReLU(inplace=True), nn.Hardtanh(inplace=True)])
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_a_model_that_changes_its_input_in_place(first, method):
    torch.manual_seed(0)
    model = nn.Sequential(first, nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, CLASSES)).double()
    x, y = batch()
    before = x.clone()
    assert_exact(model, x, y, measure_directional_curvature(model, x, y, method=method))
    assert torch.equal(x, before)


class Halves(nn.Module):
    """Halves its input in place: a second pass over the same memory would see a quarter."""

    def forward(self, x):
        return x.mul_(0.5)


def test_every_pass_sees_the_input_as_it_was_given():
    torch.manual_seed(0)
    model = nn.Sequential(Halves(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, CLASSES)).double()
    plain, (x, y) = model[1:], batch()
    for found, expected in zip(
        measure_directional_curvature(model, x, y),
        measure_directional_curvature(plain, x / 2, y),
        strict=True,
    ):
        np.testing.assert_allclose(
            found.directional_curvature, expected.directional_curvature, rtol=1e-12
        )


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_hardsigmoid_is_piecewise_linear(method):
    model, (x, y) = network(nn.Hardsigmoid()), batch()
    spectra = measure_directional_curvature(model, x, y, method=method)
    assert {spectrum.method for spectrum in spectra} == {
        "gauss_newton" if method == "auto" else "exact"
    }
    clamped = network(lambda h: (h + 3).clamp(0, 6) / 6)
    assert_exact(clamped, x, y, spectra, rtol=1e-6)  # torch's own 1/6 has the digits of float32


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_an_operation_without_a_second_derivative_is_named(method):
    def distances(h):
        return torch.cdist(h, torch.eye(4, dtype=h.dtype), p=3.0)

    model, (x, y) = network(distances), batch()
    for measure in (
        lambda: measure_directional_curvature(model, x, y, method=method),
        lambda: layer_eigenvalues(model, x, y, n_eigenvalues=1, seed=0, layers=["first"]),
    ):
        with pytest.raises(ValueError, match="torch has no second derivative of cdist"):
            measure()
    head = measure_directional_curvature(model, x, y, method=method, layers=["head"])
    assert_exact(model, x, y, head)
