"""What the exact pass does with forward passes that it cannot take apart, or only slowly."""

import logging

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spectral_laws.curvature import measure_directional_curvature
from spectral_laws.curvature.derivatives.exact import double_backpropagation
from spectral_laws.curvature.derivatives.gauss_newton import (
    gauss_newton_curvatures,
    reverse_gauss_newton,
)
from spectral_laws.curvature.derivatives.gradients import batch_gradients, singular_directions
from spectral_laws.curvature.derivatives.linearisation import linearise
from spectral_laws.curvature.derivatives.problem import Batch, loss_gradient, summed_loss
from spectral_laws.curvature.derivatives.tangent import tangent_curvatures
from spectral_laws.curvature.derivatives.tape import record
from spectral_laws.curvature.introspection.layers import find_layers
from spectral_laws.curvature.models.resnet import ResNet18

WIDTH = 4


class Net(nn.Module):
    def __init__(self, between) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)
        self.between = between

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.between(self.first(x)))


def data(n: int = 6) -> tuple[Tensor, Tensor]:
    return torch.randn(n, WIDTH).double(), torch.arange(n) % 3


class OwnBackward(torch.autograd.Function):
    """Forward rounds, backward does not: what autograd calls the derivative is not that of x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round() + x.sin()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (1 + x.cos())


class ChangedConstant(nn.Module):
    """Overwrites a number between its uses."""

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.full((), 2.0, dtype=x.dtype)
        y = torch.tanh(x * scale.clone()) + scale
        scale += 1
        return y * scale


class Counting(nn.Module):
    """Adds up its inputs in a buffer, and is smooth."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        self.total += x.detach().sum()
        return torch.tanh(x)


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        (OwnBackward.apply, "differs from autograd's"),
        (ChangedConstant(), "changes a constant in place after its use"),
    ],
    ids=["own backward", "constant"],
)
def test_double_backpropagation_stands_in_with_a_warning(between, reason, caplog, naive_curvature):
    model = Net(between).double()
    x, y = data()
    with caplog.at_level(logging.WARNING):
        first, _ = measure_directional_curvature(model, x, y, method="exact")
    assert reason in caplog.text
    assert "double backpropagation" in caplog.text
    np.testing.assert_allclose(
        first.directional_curvature, naive_curvature(model, x, y, first), rtol=1e-9, atol=1e-15
    )


class StraightThrough(torch.autograd.Function):
    """Clamps, with the gradient of the identity: another function's wherever it clamps."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1.5, 1.5)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def clipped(x: Tensor) -> Tensor:
    with torch.no_grad():
        factor = (1.5 / x.norm(dim=1, keepdim=True)).clamp(max=1.0)
    return torch.tanh(x * factor)


@pytest.mark.parametrize("between", [StraightThrough.apply, clipped], ids=["clamp", "clip"])
def test_every_order_of_the_samples_gives_the_same_curvature(between, naive_curvature):
    """A departure from autograd that only some samples show must not go unseen."""
    model = Net(between).double()
    x, y = data(8)
    x *= torch.linspace(0.1, 3, 8)[:, None]
    for order in (torch.arange(8), torch.arange(8).flip(0)):
        found = measure_directional_curvature(
            model, x[order], y[order], method="exact", chunk_size=2
        )
        expected = np.array(naive_curvature(model, x[order], y[order], found[0]))
        np.testing.assert_allclose(found[0].directional_curvature, expected, rtol=1e-9, atol=1e-15)


class Squeezing(nn.Module):
    """Drops an axis of length one, and reads a number on the way."""

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(x)
        return x.unsqueeze(1).squeeze() * (1.0 if float(x.detach().abs().sum()) > 0 else 2.0)


def test_squeezed_axes_numbers_read_on_the_way_and_recurrent_layers(naive_curvature):
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRU(WIDTH, WIDTH, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.cell(x[:, None, :].expand(-1, 3, -1))[0][:, -1]

    x, y = data(6)
    for between in (Squeezing(), Recurrent()):
        model = Net(between).double()
        for spectrum in measure_directional_curvature(model, x, y, method="exact", chunk_size=3):
            expected = np.array(naive_curvature(model, x, y, spectrum))
            np.testing.assert_allclose(
                spectrum.directional_curvature,
                expected,
                rtol=1e-9,
                atol=1e-13 * np.abs(expected).max(),
            )


@pytest.mark.parametrize(
    "between", [Counting(), lambda x: x.sin() * x.detach(), nn.RMSNorm(WIDTH)], ids=range(3)
)
def test_buffers_detached_values_and_inner_changes_in_place_are_taken_apart(
    between, caplog, naive_curvature
):
    model = Net(between).double()
    x, y = data()
    for spectrum in measure_directional_curvature(model, x, y, method="exact"):
        expected = np.array(naive_curvature(model, x, y, spectrum))
        np.testing.assert_allclose(
            spectrum.directional_curvature,
            expected,
            rtol=1e-9,
            atol=1e-13 * np.abs(expected).max(),
        )
    assert not caplog.records


@torch.library.custom_op("spectral_laws_tests::cube", mutates_args=())
def cube(x: Tensor) -> Tensor:
    return x**3


@torch.library.custom_op("spectral_laws_tests::cube_backward", mutates_args=())
def cube_backward(gradient: Tensor, x: Tensor) -> Tensor:
    return 3 * x**2 * gradient


def _twice(ctx, upstream):
    gradient, x = ctx.saved_tensors
    # Reading a number is what vmap cannot do.
    factor = 3.0 if float(upstream.abs().sum()) >= 0 else 0.0
    return factor * x**2 * upstream, 2 * factor * x * gradient * upstream


cube.register_autograd(
    lambda ctx, g: cube_backward(g, ctx.saved_tensors[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
cube_backward.register_autograd(
    _twice, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


def test_an_operation_that_vmap_cannot_treat_is_looped_over_and_named(caplog, dense_curvature):
    model = Net(cube).double()
    x, y = data()
    with caplog.at_level(logging.WARNING):
        spectra = measure_directional_curvature(model, x, y, method="exact", chunk_size=2)
    found = [r.message for r in caplog.records if "direction by direction" in r.message]
    assert len(found) == 1
    assert "cube" in found[0]
    for spectrum in spectra:
        h, _ = dense_curvature(model, x, y, spectrum)
        np.testing.assert_allclose(
            spectrum.directional_curvature, h, rtol=1e-9, atol=1e-13 * np.abs(h).max()
        )


def test_other_errors_of_the_second_derivative_are_not_hidden():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("planted failure")

    model = Net(Broken.apply).double()
    with pytest.raises(RuntimeError, match="planted failure"):
        measure_directional_curvature(model, *data(), method="exact")


def directions_of(model: nn.Module, x: Tensor, y: Tensor, *, top_k: int = 3):
    layers = find_layers(model, None)
    gradients, _ = batch_gradients(Batch(model, x, y, 8), layers)
    return layers, [singular_directions(g, top_k=top_k, eps=1e-15) for g in gradients]


def test_the_tape_gives_autograds_gradients():
    model = Net(nn.Sequential(nn.GELU(), nn.LayerNorm(WIDTH), nn.Softmax(1))).double()
    x, y = data()
    weights = [model.first.weight, model.head.weight]
    tape = record(model, x, weights)
    assert torch.equal(tape.logits, model(x))
    found = linearise(tape, loss_gradient(tape.logits, y, label_smoothing=0.1)).gradients
    loss = summed_loss(model(x), y, label_smoothing=0.1)
    for weight, expected in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        torch.testing.assert_close(found[id(weight)], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 60])
def test_forward_and_reverse_gauss_newton_agree_and_the_cheaper_is_taken(n_classes, monkeypatch):
    model = ResNet18(in_channels=1, width=2, n_classes=n_classes).double().eval()
    x, y = torch.randn(5, 1, 8, 8).double(), torch.arange(5) % n_classes
    layers, directions = directions_of(model, x, y)
    arguments = (Batch(model, x, y, 2), layers, directions)
    forward = tangent_curvatures(*arguments, second_order=False)
    backward, loss = reverse_gauss_newton(*arguments)
    assert forward.exact == []
    assert forward.loss == pytest.approx(loss, rel=1e-12)
    for a, b in zip(forward.gauss_newton, backward, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14 * float(b.max()))
    taken = []
    module = "spectral_laws.curvature.derivatives.gauss_newton"
    monkeypatch.setattr(f"{module}.reverse_gauss_newton", lambda *a, **k: taken.append("reverse"))
    monkeypatch.setattr(
        f"{module}.tangent_curvatures",
        lambda *a, **k: taken.append("forward") or forward,
    )
    gauss_newton_curvatures(*arguments)
    # 21 layers and up to 3 directions: about 30 forward tangents, or C - 1 reverse passes.
    assert taken == ["reverse" if n_classes == 3 else "forward"]


def test_tangents_and_double_backpropagation_agree_through_a_residual_network():
    """ReLU, batch norm, skips and pools have no curvature of their own."""
    model = ResNet18(in_channels=1, width=2, n_classes=3).double().eval()
    x, y = torch.randn(4, 1, 8, 8).double(), torch.arange(4) % 3
    layers, directions = directions_of(model, x, y)
    found = tangent_curvatures(Batch(model, x, y, 3), layers, directions)
    expected, loss = double_backpropagation(Batch(model, x, y, 4), layers, directions)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    for a, b, h in zip(found.exact, found.gauss_newton, expected, strict=True):
        np.testing.assert_allclose(a, h, rtol=1e-9, atol=1e-13 * float(h.abs().max()))
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("form", ["exact", "gauss_newton"])
def test_a_batch_has_the_mean_curvature_of_its_parts(form):
    """Along the same directions, weighted by the samples of each part."""
    model = Net(nn.Sequential(nn.GELU(), nn.LayerNorm(WIDTH))).double()
    x, y = data(9)
    layers, directions = directions_of(model, x, y)

    def curvatures(part: slice) -> list[Tensor]:
        found = tangent_curvatures(Batch(model, x[part], y[part], 4), layers, directions)
        return getattr(found, form)

    whole = curvatures(slice(None))
    for cut in (2, 5):
        for h, a, b in zip(
            whole, curvatures(slice(0, cut)), curvatures(slice(cut, None)), strict=True
        ):
            torch.testing.assert_close((cut * a + (9 - cut) * b) / 9, h, rtol=1e-10, atol=1e-14)


def test_fewer_samples_at_a_time_where_tangents_are_large(monkeypatch):
    model = Net(nn.GELU()).double()
    x, y = data(8)
    layers, directions = directions_of(model, x, y)
    sizes = []
    module = "spectral_laws.curvature.derivatives.tangent"
    monkeypatch.setattr(
        f"{module}.record", lambda m, part, w: sizes.append(len(part)) or record(m, part, w)
    )
    batch = Batch(model, x, y, 5)
    plenty = tangent_curvatures(batch, layers, directions)
    assert sizes == [2, 5, 3]
    # Three directions of four numbers; the weight has 16, but none for each sample.
    sizes.clear()
    monkeypatch.setattr(f"{module}._ELEMENTS", 2 * 3 * WIDTH)
    scarce = tangent_curvatures(batch, layers, directions)
    assert sizes == [2, 2, 2, 2, 2]
    for a, b in zip(plenty.exact, scarce.exact, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    "coupling",
    [
        lambda x: x - x.detach().mean(0),
        lambda x: x + torch.roll(x, 1, 0),
        lambda x: x + torch.roll(x, -1, 0),
    ],
    ids=["mean", "previous", "next"],
)
def test_samples_that_see_each_other_are_refused(coupling):
    model = Net(lambda x: torch.tanh(coupling(x))).double()
    with pytest.raises(ValueError, match="depend on another sample"):
        measure_directional_curvature(model, *data(8))


def test_a_tensor_that_is_read_and_then_changed_in_place(caplog, naive_curvature):
    class Late(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            g = torch.relu(x)
            x.add_(1.0)
            return torch.tanh(g) + torch.sin(x)

    model = Net(Late()).double()
    x, y = data(8)
    for spectrum in measure_directional_curvature(model, x, y, method="exact"):
        expected = np.array(naive_curvature(model, x, y, spectrum))
        np.testing.assert_allclose(
            spectrum.directional_curvature,
            expected,
            rtol=1e-9,
            atol=1e-13 * np.abs(expected).max(),
        )
    assert not caplog.records
