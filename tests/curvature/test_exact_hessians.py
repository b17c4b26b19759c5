"""Both forms against full matrices and closed forms, in float64, layer by layer."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.functional import cross_entropy

from spectral_laws.curvature import measure_directional_curvature

N_CLASSES = 3
SAMPLES = 5


class Conv1dNet(nn.Module):
    """Padding modes, groups, stride and dilation in one dimension, smooth and pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.reflected = nn.Conv1d(2, 4, 3, padding="same", padding_mode="reflect")
        self.grouped = nn.Conv1d(4, 4, 3, stride=2, padding=1, groups=2, padding_mode="replicate")
        self.dilated = nn.Conv1d(4, 3, 2, dilation=2, padding=1, padding_mode="circular")
        self.depthwise = nn.Conv1d(3, 6, 2, groups=3, bias=False)
        self.head = nn.Linear(6, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.reflected(x))
        x = F.max_pool1d(torch.tanh(self.grouped(x)), 2, stride=1)
        x = F.silu(self.depthwise(torch.sigmoid(self.dilated(x))))
        return self.head(x.amax(2))


class Conv2dNet(nn.Module):
    """The same in two dimensions, with batch norm, max and average pools, and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.reflected = nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect")
        self.norm = nn.BatchNorm2d(4)
        self.grouped = nn.Conv2d(4, 4, (3, 2), stride=(2, 1), padding=1, groups=2)
        self.dilated = nn.Conv2d(4, 3, 2, dilation=(2, 1), padding=1, padding_mode="circular")
        self.depthwise = nn.Conv2d(3, 6, 2, groups=3, padding=1, padding_mode="replicate")
        self.pointwise = nn.Conv2d(6, 4, 1)
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm(self.reflected(x)), approximate="tanh")
        x = F.max_pool2d(F.mish(self.grouped(x)), 2, stride=1)
        x = F.avg_pool2d(F.elu(self.dilated(x)), 2, stride=1)
        x = self.depthwise(x)
        x = self.pointwise(x * torch.sigmoid(x))
        return self.head(F.softplus(x).mean((2, 3)))


class Normalised(nn.Module):
    """Layer norms with and without affine part, over one and two axes, and other norms."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 6)
        self.affine = nn.LayerNorm(6, eps=0.1)
        self.middle = nn.Linear(6, 6)
        self.bare = nn.LayerNorm((3, 6), elementwise_affine=False)
        self.grouped = nn.GroupNorm(3, 6)
        self.last = nn.Linear(6, 6)
        self.root = nn.RMSNorm(6)
        self.head = nn.Linear(6, N_CLASSES)
        for norm in (self.affine, self.grouped, self.root):
            nn.init.normal_(norm.weight)
        nn.init.normal_(self.affine.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bare(x.new_ones(3, 1) * self.middle(self.affine(self.up(x))))
        x = self.grouped(self.last(x + torch.tanh(x)).transpose(1, 2)).mean(2)
        return self.head(self.root(x).exp() / (2 + x.square()))


class FusedAttention(nn.Module):
    """Causal heads from one projection, with a residual perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.proj = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.up = nn.Linear(4, 5)
        self.down = nn.Linear(5, 4)
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 2)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).flatten(2))
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return self.head(x.mean(1))


class SeparateAttention(nn.Module):
    """Cross-attention written out, with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(4, 4)
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.tensor([False, False, True])
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 3**0.5
        weights = scores.masked_fill(mask, -torch.inf).softmax(-1)
        return self.head((weights @ self.v(x)).sum(1))


class MultiHead(nn.Module):
    """nn.MultiheadAttention, whose projections are bare parameters."""

    def __init__(self, *, key_size: int | None) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(
            4, 2, kdim=key_size, vdim=key_size, batch_first=True, add_bias_kv=key_size is None
        )
        self.key_size = key_size
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        other = x if self.key_size is None else x[..., : self.key_size] * 2
        return self.head(self.attention(x, other, other, need_weights=False)[0].mean(1))


class Encoder(nn.Module):
    """PyTorch's own layer, which has a fast path of its own in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 6, activation="gelu", batch_first=True)
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x).mean(1))


class InPlace(nn.Module):
    """Changes in place, of whole tensors and of slices."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x.mean(1))
        x[:, 1:3] *= x[:, 3:5].clone()
        y = self.second(x.sin()).exp_()
        y = y + x
        y[:, 0] = x[:, 0]
        return self.head(y.tanh_())


TOKENS = torch.linspace(-2, 2, SAMPLES * 3 * 4).sin().reshape(SAMPLES, 3, 4).double()
NETS = {
    "conv1d": (Conv1dNet, torch.randn, (SAMPLES, 2, 9), 5),
    "conv2d": (Conv2dNet, torch.randn, (SAMPLES, 2, 8, 7), 6),
    "norms": (Normalised, torch.randn, (SAMPLES, 3, 4), 4),
    "fused attention": (FusedAttention, torch.randn, (SAMPLES, 3, 4), 5),
    "separate attention": (SeparateAttention, torch.randn, (SAMPLES, 3, 4), 4),
    "multi-head": (lambda: MultiHead(key_size=None), torch.randn, (SAMPLES, 3, 4), 3),
    "multi-head of other size": (lambda: MultiHead(key_size=2), torch.randn, (SAMPLES, 3, 4), 5),
    "encoder": (Encoder, torch.randn, (SAMPLES, 3, 4), 5),
    "in place": (InPlace, torch.randn, (SAMPLES, 3, 4), 3),
}


def build(name: str) -> tuple[nn.Module, Tensor, Tensor, int]:
    make, draw, shape, n_layers = NETS[name]
    model = make().double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    return model, draw(shape).double(), torch.arange(SAMPLES) % N_CLASSES, n_layers


@pytest.mark.parametrize("name", NETS)
def test_curvatures_are_those_of_the_full_matrices(name, dense_curvature, caplog):
    model, x, y, n_layers = build(name)
    exact = measure_directional_curvature(model, x, y, chunk_size=2, method="exact")
    gauss_newton = measure_directional_curvature(model, x, y, chunk_size=2, method="gauss_newton")
    auto = measure_directional_curvature(model, x, y, chunk_size=2)
    assert len(exact) == n_layers
    curved = False
    for spectrum, form, chosen in zip(exact, gauss_newton, auto, strict=True):
        h, h_gn = dense_curvature(model, x, y, spectrum)
        size = np.abs(h).max()
        assert size > 0
        np.testing.assert_allclose(spectrum.directional_curvature, h, rtol=1e-8, atol=1e-12 * size)
        np.testing.assert_allclose(form.directional_curvature, h_gn, rtol=1e-10, atol=1e-14 * size)
        np.testing.assert_allclose(chosen.directional_curvature, h, rtol=1e-8, atol=1e-12 * size)
        curved |= bool(np.abs(h - h_gn).max() > 1e-3 * size)
    assert curved
    assert not caplog.records  # no fallback to double backpropagation, or to a loop


@pytest.mark.parametrize("name", ["fused attention", "norms", "conv2d"])
def test_no_formula_of_second_derivatives_is_trusted(name):
    """Central differences of the gradient share nothing with them."""
    model, x, y, _ = build(name)
    step = 1e-5
    for spectrum in measure_directional_curvature(model, x, y, method="exact", top_k=3):
        weight = model.get_parameter(f"{spectrum.layer}.weight")
        u, v = spectrum.left_singular_vectors, spectrum.right_singular_vectors
        for k, h in enumerate(spectrum.directional_curvature):
            d = torch.tensor(np.outer(u[:, k], v[:, k])).reshape(weight.shape)
            slopes = []
            for sign in (1, -1):
                with torch.no_grad():
                    weight += sign * step * d
                (gradient,) = torch.autograd.grad(cross_entropy(model(x), y), weight)
                slopes.append(float((gradient * d).sum()))
                with torch.no_grad():
                    weight -= sign * step * d
            assert (slopes[0] - slopes[1]) / (2 * step) == pytest.approx(h, rel=1e-5, abs=1e-8)


def test_logistic_regression_has_the_closed_form_hessian():
    """Logits (w x, -w x): H = (1/B) sum_i s_i (1 - s_i) 4 x_i x_i^T, s = sigmoid(2 w x)."""

    class Logistic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = nn.Linear(4, 1, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            z = self.score(x)
            return torch.cat([z, -z], dim=1)

    model = Logistic().double()
    x, y = torch.randn(9, 4).double(), torch.randint(0, 2, (9,))
    z = x.numpy()
    w = model.score.weight.detach().numpy()[0]
    s = 1 / (1 + np.exp(-2 * z @ w))
    gradient = z.T @ (2 * (s - (y.numpy() == 0))) / 9
    hessian = 4 * (z * (s * (1 - s))[:, None]).T @ z / 9
    direction = gradient / np.linalg.norm(gradient)
    for method in ("auto", "gauss_newton", "exact"):
        (spectrum,) = measure_directional_curvature(model, x, y, method=method)
        assert spectrum.kind == "linear"
        assert spectrum.singular_values == pytest.approx([np.linalg.norm(gradient)], rel=1e-10)
        assert spectrum.directional_curvature == pytest.approx(
            [direction @ hessian @ direction], rel=1e-10
        )


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_softmax_regression_with_label_smoothing_keeps_its_hessian(smoothing):
    """Smoothing moves G = (1/B) sum_i (p_i - q_i) x_i^T, and leaves diag p - p p^T alone."""
    model = nn.Sequential(nn.Linear(5, N_CLASSES)).double()
    x, y = torch.randn(8, 5).double(), torch.randint(0, N_CLASSES, (8,))
    p = torch.softmax(model(x), 1).detach().numpy()
    q = (1 - smoothing) * np.eye(N_CLASSES)[y] + smoothing / N_CLASSES
    z = x.numpy()
    values = np.linalg.svd((p - q).T @ z / 8, compute_uv=False)[: N_CLASSES - 1]
    for method in ("gauss_newton", "exact"):
        (spectrum,) = measure_directional_curvature(
            model, x, y, method=method, label_smoothing=smoothing
        )
        np.testing.assert_allclose(spectrum.singular_values, values, rtol=1e-10)
        assert spectrum.loss == pytest.approx(-(q * np.log(p)).sum(1).mean(), rel=1e-12)
        for k, h in enumerate(spectrum.directional_curvature):
            u, v = spectrum.left_singular_vectors[:, k], spectrum.right_singular_vectors[:, k]
            t = (z @ v)[:, None] * u
            expected = ((p * t**2).sum(1) - (p * t).sum(1) ** 2).mean()
            assert h == pytest.approx(expected, rel=1e-10)


def test_label_smoothing_of_a_curved_network(dense_curvature):
    model, x, y, _ = build("fused attention")
    plain = measure_directional_curvature(model, x, y, method="exact")
    smooth = measure_directional_curvature(model, x, y, method="exact", label_smoothing=0.2)
    for spectrum, other in zip(smooth, plain, strict=True):
        h, _ = dense_curvature(model, x, y, spectrum, label_smoothing=0.2)
        np.testing.assert_allclose(
            spectrum.directional_curvature, h, rtol=1e-8, atol=1e-12 * np.abs(h).max()
        )
        assert spectrum.loss != pytest.approx(other.loss, rel=1e-3)


@pytest.mark.parametrize("name", ["conv2d", "fused attention"])
def test_chunks_and_repeats_of_the_batch_change_nothing(name):
    model, x, y, _ = build(name)
    runs = [
        measure_directional_curvature(model, x, y, method="exact", chunk_size=size)
        for size in (1, 2, 5)
    ]
    doubled = measure_directional_curvature(
        model, torch.cat([x, x]), torch.cat([y, y]), method="exact", chunk_size=3
    )
    for run in (*runs[1:], doubled):
        for a, b in zip(run, runs[0], strict=True):
            scale = np.abs(b.directional_curvature).max()
            np.testing.assert_allclose(
                a.directional_curvature, b.directional_curvature, rtol=1e-8, atol=1e-11 * scale
            )


@pytest.mark.parametrize("name", ["conv1d", "fused attention"])
def test_a_summed_loss_has_as_many_times_the_curvature(name, dense_curvature):
    model, x, y, _ = build(name)
    for spectrum in measure_directional_curvature(model, x, y, method="exact", top_k=3):
        h, _ = dense_curvature(model, x, y, spectrum, reduction="sum")
        np.testing.assert_allclose(
            spectrum.directional_curvature * SAMPLES, h, rtol=1e-8, atol=1e-12 * np.abs(h).max()
        )
