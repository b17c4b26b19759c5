"""Language modelling: logits and targets at every position, tied weights, coupling."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from spectral_laws.curvature import gauss_newton_obstacles, measure_directional_curvature
from spectral_laws.curvature.models.gpt2 import GPT2

VOCABULARY, CONTEXT = 5, 4


def tokens(n: int = 6) -> tuple[Tensor, Tensor]:
    text = torch.randint(0, VOCABULARY, (n, CONTEXT + 1))
    return text[:, :-1], text[:, 1:]


def small_gpt2() -> nn.Module:
    model = GPT2(n_tokens=VOCABULARY, context=CONTEXT, width=4, depth=1, heads=2).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


class Tied(nn.Module):
    """The head shares the embedding's weight, as GPT-2's does."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, 4)
        self.hidden = nn.Linear(4, 4)
        self.lm_head = nn.Linear(4, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.lm_head(gelu(self.hidden(self.wte(x)).cumsum(1)))


def test_a_language_model_has_the_hessian_of_its_mean_over_positions(dense_curvature):
    model = small_gpt2()
    x, y = tokens()
    loss = cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    for method in ("auto", "exact", "gauss_newton"):
        spectra = measure_directional_curvature(model, x, y, method=method, chunk_size=2)
        assert [s.layer.split(".")[-1] for s in spectra] == [
            "c_attn",
            "c_proj",
            "c_fc",
            "c_proj",
            "lm_head",
        ]
        assert [s.kind for s in spectra] == ["linear"] * 4 + ["head"]
        if method == "auto":
            assert [s.method for s in spectra] == ["exact"] * 4 + ["gauss_newton"]
        for spectrum in spectra:
            assert spectrum.loss == pytest.approx(loss, rel=1e-12)
            assert spectrum.n_samples == 6
            exact, gauss_newton = dense_curvature(model, x, y, spectrum)
            expected = gauss_newton if method == "gauss_newton" else exact
            np.testing.assert_allclose(
                spectrum.directional_curvature,
                expected,
                rtol=1e-8,
                atol=1e-12 * np.abs(expected).max(),
            )


def test_gradients_are_those_of_the_mean_over_positions():
    model = small_gpt2()
    x, y = tokens()
    cross_entropy(model(x).flatten(0, 1), y.flatten(), label_smoothing=0.1).backward()
    for spectrum in measure_directional_curvature(
        model, x, y, label_smoothing=0.1, top_k=100, chunk_size=4
    ):
        gradient = model.get_parameter(f"{spectrum.layer}.weight").grad.numpy()
        rebuilt = (
            spectrum.left_singular_vectors
            * spectrum.singular_values
            @ spectrum.right_singular_vectors.T
        )
        np.testing.assert_allclose(rebuilt, gradient, atol=1e-12 * np.abs(gradient).max())


def test_a_head_has_its_closed_form_on_every_part_of_a_batch():
    """Of a weight with a single column: t = u (v a), h = mean of sum p t^2 - (sum p t)^2."""
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, 3), nn.Linear(3, 1), nn.Tanh(), nn.Linear(1, VOCABULARY)
    ).double()
    x, y = tokens(8)
    h = []
    for part in (slice(0, 3), slice(3, 8), slice(0, 8)):
        layer = measure_directional_curvature(model, x[part], y[part], layers=["3"])[0]
        u, v = layer.left_singular_vectors[:, 0], layer.right_singular_vectors[:, 0]
        p = torch.softmax(model(x[part]), -1).detach().numpy().reshape(-1, VOCABULARY)
        a = model[:3](x[part]).detach().numpy().reshape(-1, 1)
        t = a * v * u
        expected = ((p * t**2).sum(1) - (p * t).sum(1) ** 2).mean()
        assert layer.directional_curvature == pytest.approx([expected], rel=1e-10)
        h.append(layer.directional_curvature[0])
    assert len(set(h)) == 3


def test_a_head_tied_to_the_embedding_has_the_curvature_of_both_uses(dense_curvature):
    model = Tied().double()
    x, y = tokens()
    assert "used 2 times" in gauss_newton_obstacles(model, x)["lm_head"]
    for method in ("auto", "gauss_newton"):
        spectra = measure_directional_curvature(model, x, y, method=method)
        assert [s.layer for s in spectra] == ["hidden", "lm_head"]
        for spectrum in spectra:
            exact, gauss_newton = dense_curvature(model, x, y, spectrum)
            assert np.abs(exact - gauss_newton).max() > 1e-4 * np.abs(exact).max()
            expected = exact if method == "auto" else gauss_newton
            np.testing.assert_allclose(
                spectrum.directional_curvature,
                expected,
                rtol=1e-8,
                atol=1e-12 * np.abs(expected).max(),
            )


class Coupled(nn.Module):
    """Subtracts the mean over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 4)
        self.head = nn.Linear(4, VOCABULARY)

    def forward(self, x: Tensor) -> Tensor:
        z = self.head(self.embedding(x))
        return z - z.mean(0)


@pytest.mark.parametrize("alike", [False, True])
def test_coupled_sequences_are_refused(alike):
    x, y = tokens()
    x[0] = torch.tensor([0, 1, 2, 3])
    if alike:
        x[1] = x[0]
    with pytest.raises(ValueError, match="depend on another sample"):
        measure_directional_curvature(Coupled().double(), x, y)


def test_targets_of_another_shape_are_refused():
    model = small_gpt2()
    x, y = tokens()
    for wrong in (y[:, 0], y[:, 1:]):
        with pytest.raises(ValueError, match=r"the logits need \(6, 4\): one class"):
            measure_directional_curvature(model, x, wrong)


def test_float32_agrees_with_float64():
    model = small_gpt2()
    x, y = tokens(16)
    double = measure_directional_curvature(model, x, y, top_k=3)
    single = measure_directional_curvature(model.float(), x, y, top_k=3)
    for a, b in zip(single, double, strict=True):
        scale = np.abs(b.directional_curvature).max()
        np.testing.assert_allclose(
            a.directional_curvature, b.directional_curvature, rtol=1e-3, atol=1e-4 * scale
        )
