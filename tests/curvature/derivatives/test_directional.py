"""Curvatures against oracles that share no code with the measurement."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from spectral_laws.curvature import measure_directional_curvature
from spectral_laws.curvature.models import MLP, ResNet18
from spectral_laws.errors import NumericalError

N_CLASSES = 5


def randomise_batch_norm(model: nn.Module) -> nn.Module:
    """Statistics and scales far from the initial 0 and 1, as after a training."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean = torch.randn_like(module.running_mean) / 3
            module.running_var = torch.rand_like(module.running_var) + 0.5
            nn.init.normal_(module.weight, 1.0, 0.3)
            nn.init.normal_(module.bias, 0.0, 0.3)
    return model


class ConvolutionZoo(nn.Module):
    """Groups, strides, dilations, every padding mode, biases, pools, in-place activations."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 6, 3, padding="same", padding_mode="reflect")
        self.grouped = nn.Conv2d(
            6, 8, (3, 2), stride=(2, 1), padding=1, groups=2, padding_mode="replicate"
        )
        self.dilated = nn.Conv2d(8, 8, 3, dilation=2, padding=(2, 1), groups=4, bias=False)
        self.depthwise = nn.Conv2d(8, 16, 3, padding=1, groups=8)
        self.pointwise = nn.Conv2d(16, 6, 1)
        self.strided = nn.Conv2d(6, 4, 2, stride=2, padding=1)
        self.prelu = nn.PReLU(8)
        self.head = nn.Linear(4 + 6, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.relu_(self.conv(x))
        x = nn.functional.leaky_relu(self.grouped(x), 0.2)
        x = nn.functional.max_pool2d(self.prelu(self.dilated(x)), 2, stride=1)
        x = nn.functional.avg_pool2d(nn.functional.relu6(self.depthwise(x)), 2, stride=1)
        x = nn.functional.hardtanh(self.pointwise(x))
        y = self.strided(x).clamp(min=-0.3)
        return self.head(torch.cat([y.mean((2, 3)), x.amax((2, 3))], dim=1) / 2.0)


def build(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    targets = torch.arange(6) % N_CLASSES
    if name == "resnet":
        model = randomise_batch_norm(ResNet18(in_channels=1, width=3, n_classes=N_CLASSES))
        return model.double().eval(), torch.randn(6, 1, 16, 16).double(), targets
    if name == "mlp":
        model = MLP(in_features=12, width=9, depth=3, n_classes=N_CLASSES)
        return model.double(), torch.randn(6, 3, 2, 2).double(), targets
    return ConvolutionZoo().double().eval(), torch.randn(6, 2, 9, 8).double(), targets


@pytest.mark.parametrize("name", ["resnet", "mlp", "zoo"])
@pytest.mark.parametrize("method", ["gauss_newton", "exact"])
def test_every_curvature_is_that_of_an_independent_hessian_vector_product(
    name, method, naive_curvature
):
    model, x, y = build(name)
    spectra = measure_directional_curvature(model, x, y, top_k=4, method=method, chunk_size=4)
    assert len(spectra) == {"resnet": 21, "mlp": 4, "zoo": 7}[name]
    for spectrum in spectra:
        assert spectrum.method == method
        assert len(spectrum.singular_values) >= 2
        expected = np.array(naive_curvature(model, x, y, spectrum))
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(
            spectrum.directional_curvature,
            expected,
            rtol=1e-10,
            atol=1e-14 * np.abs(expected).max(),
        )


@pytest.mark.parametrize("name", ["resnet", "mlp", "zoo"])
def test_singular_triples_are_those_of_the_autograd_gradient(name):
    model, x, y = build(name)
    spectra = measure_directional_curvature(model, x, y, top_k=10**6, chunk_size=4)
    loss = cross_entropy(model(x), y)
    for spectrum in spectra:
        weight = model.get_parameter(f"{spectrum.layer}.weight")
        gradient = torch.autograd.grad(loss, weight, retain_graph=True)[0].flatten(1).numpy()
        u, v = spectrum.left_singular_vectors, spectrum.right_singular_vectors
        rebuilt = u * spectrum.singular_values @ v.T
        np.testing.assert_allclose(rebuilt, gradient, atol=1e-12 * np.abs(gradient).max())
        np.testing.assert_allclose(u.T @ u, np.eye(spectrum.rank), atol=1e-12)
        assert (np.diff(spectrum.singular_values) <= 0).all()
        assert spectrum.matrix_shape == gradient.shape
        assert spectrum.weight_shape == tuple(weight.shape)
        assert spectrum.loss == pytest.approx(loss.item(), rel=1e-12)
        assert spectrum.n_samples == 6


def test_softmax_regression_has_the_closed_form_hessian():
    """H = (1/B) sum_i (diag p_i - p_i p_i^T) kron x_i x_i^T for logits W x."""
    model = nn.Sequential(nn.Linear(7, N_CLASSES)).double()
    x, y = torch.randn(11, 7).double(), torch.randint(0, N_CLASSES, (11,))
    p = torch.softmax(model(x), 1).detach().numpy()
    z = x.numpy()
    hessian = sum(
        np.kron(np.diag(p[i]) - np.outer(p[i], p[i]), np.outer(z[i], z[i])) for i in range(11)
    )
    for method in ("gauss_newton", "exact"):
        (spectrum,) = measure_directional_curvature(model, x, y, method=method)
        # The gradient's rows sum to zero, so one of the five singular values is zero.
        assert spectrum.kind == "head"
        assert spectrum.rank == N_CLASSES - 1
        assert spectrum.n_below_rank == 1
        for k, h in enumerate(spectrum.directional_curvature):
            u, v = spectrum.left_singular_vectors[:, k], spectrum.right_singular_vectors[:, k]
            d = np.outer(u, v).ravel()
            assert h == pytest.approx(d @ hessian @ d / 11, rel=1e-10)


def test_full_hessian_of_a_smooth_network():
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
    model = model.double()
    x, y = torch.randn(8, 3).double(), torch.randint(0, 3, (8,))
    signs = set()
    for spectrum in measure_directional_curvature(model, x, y, chunk_size=3):
        name = f"{spectrum.layer}.weight"
        weight = model.get_parameter(name).detach()
        hessian = torch.func.hessian(
            lambda w, name=name: cross_entropy(functional_call(model, {name: w}, (x,)), y)
        )(weight)
        hessian = hessian.detach().reshape(weight.numel(), weight.numel()).numpy()
        for k, h in enumerate(spectrum.directional_curvature):
            u, v = spectrum.left_singular_vectors[:, k], spectrum.right_singular_vectors[:, k]
            d = np.outer(u, v).ravel()
            assert h == pytest.approx(d @ hessian @ d, rel=1e-10, abs=1e-13)
            signs.add(np.sign(h))
    assert signs == {-1.0, 1.0}  # curvatures below zero stay in the result


class Tokens(nn.Module):
    """Linear layers on (batch, positions, features)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 6)
        self.second = nn.Linear(6, 5, bias=False)
        self.head = nn.Linear(5, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.first(x).relu()).relu().flatten(1, -2).mean(1))


@pytest.mark.parametrize("shape", [(6, 4, 3), (6, 1, 3), (6, 2, 4, 3)])
def test_linear_layers_sum_over_positions(shape, naive_curvature):
    model = Tokens().double()
    x, y = torch.randn(shape).double(), torch.arange(6) % N_CLASSES
    for spectrum in measure_directional_curvature(model, x, y, top_k=3):
        assert spectrum.method == "gauss_newton"
        expected = naive_curvature(model, x, y, spectrum)
        np.testing.assert_allclose(spectrum.directional_curvature, expected, rtol=1e-10)


@pytest.mark.parametrize("method", ["gauss_newton", "exact"])
def test_results_do_not_depend_on_the_chunk_size(method):
    model, x, y = build("zoo")
    x, y = torch.cat([x, x.flip(2) * 1.3, -x]), torch.cat([y, y.flip(0), y])
    runs = [
        measure_directional_curvature(model, x, y, top_k=3, chunk_size=size, method=method)
        for size in (1, 7, 32, len(y))
    ]
    for run in runs[1:]:
        for ours, reference in zip(run, runs[0], strict=True):
            np.testing.assert_allclose(
                ours.directional_curvature, reference.directional_curvature, rtol=1e-9
            )
            np.testing.assert_allclose(ours.singular_values, reference.singular_values, rtol=1e-9)


@pytest.mark.parametrize("method", ["gauss_newton", "exact"])
def test_the_loss_is_a_mean_so_a_doubled_batch_changes_nothing(method):
    model, x, y = build("resnet")
    layers = ["conv1", "layer2.0.downsample.0", "fc"]
    single = measure_directional_curvature(model, x, y, top_k=3, method=method, layers=layers)
    double = measure_directional_curvature(
        model, torch.cat([x, x]), torch.cat([y, y]), top_k=3, method=method, layers=layers
    )
    assert [s.layer for s in single] == layers
    assert [s.kind for s in single] == ["conv", "conv", "head"]
    for a, b in zip(single, double, strict=True):
        np.testing.assert_allclose(a.directional_curvature, b.directional_curvature, rtol=1e-10)
        np.testing.assert_allclose(a.singular_values, b.singular_values, rtol=1e-10)


def test_float32_agrees_with_float64():
    model = randomise_batch_norm(ResNet18(in_channels=1, width=4, n_classes=10)).eval()
    x, y = torch.randn(32, 1, 16, 16), torch.arange(32) % 10
    single = measure_directional_curvature(model, x, y, top_k=5)
    double = measure_directional_curvature(model.double(), x.double(), y, top_k=5)
    for a, b in zip(single, double, strict=True):
        assert len(a.singular_values) == len(b.singular_values)
        np.testing.assert_allclose(a.directional_curvature, b.directional_curvature, rtol=1e-2)


def test_a_confident_network_keeps_its_small_curvatures_in_float32():
    """All p_y within 1e-6 of one, where p (1 - p) would cancel in float32."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x = torch.randn(9, 6)
    y = model(x).argmax(1)
    with torch.no_grad():
        margin = model(x).sort(1).values.diff(dim=1)[:, -1].min()
        model[2].weight *= 16 / margin
        model[2].bias *= 16 / margin
    single = measure_directional_curvature(model, x, y, top_k=2)
    double = measure_directional_curvature(model.double(), x.double(), y, top_k=2)
    assert 0 < single[0].loss < 1e-5
    for a, b in zip(single, double, strict=True):
        np.testing.assert_allclose(a.directional_curvature, b.directional_curvature, rtol=1e-2)


def test_memory_format_changes_nothing():
    model, x, y = build("resnet")
    plain = measure_directional_curvature(model, x, y, top_k=3)
    last = measure_directional_curvature(model, x.to(memory_format=torch.channels_last), y, top_k=3)
    for a, b in zip(plain, last, strict=True):
        assert b.method == "gauss_newton"
        np.testing.assert_allclose(a.directional_curvature, b.directional_curvature, rtol=1e-9)


def test_a_dead_layer_has_no_directions():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    nn.init.constant_(model[0].bias, -100.0)
    for method in ("auto", "exact"):
        dead, head = measure_directional_curvature(
            model, torch.randn(5, 4).double(), torch.tensor([0, 1, 2, 0, 1]), method=method
        )
        assert (dead.rank, dead.n_below_rank, len(dead.directional_curvature)) == (0, 4, 0)
        # Nothing but the bias reaches the head: its input is zero.
        assert head.rank == 0


def test_nan_stops_with_the_name_of_what_was_computed():
    model, x, y = build("mlp")
    x[2, 0, 0, 0] = float("nan")
    with pytest.raises(NumericalError, match="loss on the measurement batch"):
        measure_directional_curvature(model, x, y)


def test_hooks_that_may_change_gradients_are_refused():
    model, x, y = build("mlp")
    handle = model.layers[0].weight.register_hook(lambda gradient: 2 * gradient)
    with pytest.raises(ValueError, match=r"weight of 'layers.0' has a hook"):
        measure_directional_curvature(model, x, y)
    handle.remove()
    handle = model.layers[0].register_full_backward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"layers.0 .Linear. has a backward hook"):
        measure_directional_curvature(model, x, y)
    handle.remove()
    assert len(measure_directional_curvature(model, x, y)) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top_k": 0}, "top_k must be positive"),
        ({"chunk_size": 0}, "chunk_size must be positive"),
        ({"method": "fast"}, "method must be auto"),
        ({"layers": ["layers.9"]}, "'layers.9' is no module"),
        ({"layers": [""]}, "'' is a MLP, expected a Linear, Conv1d or Conv2d"),
        ({"targets": torch.zeros(5, dtype=torch.int64)}, "do not match"),
        ({"targets": torch.zeros(6)}, "int64"),
        ({"targets": torch.zeros(6, 2, dtype=torch.int64)}, "the logits need .6,.: one class"),
        ({"label_smoothing": 1.0}, "label_smoothing must lie in"),
        ({"targets": torch.tensor([0, 1, 2, 3, 4, 5])}, "targets must lie in 0..4"),
        ({"targets": torch.full((6,), -100)}, "targets must lie in 0..4"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    model, x, y = build("mlp")
    arguments = {"model": model, "inputs": x, "targets": y} | changes
    with pytest.raises(ValueError, match=message):
        measure_directional_curvature(**arguments)
