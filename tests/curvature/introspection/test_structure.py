"""Which identity holds, for which model; and that auto is exact whatever it chose."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from spectral_laws.curvature import gauss_newton_obstacles, measure_directional_curvature
from spectral_laws.curvature.models import MLP, ResNet18
from spectral_laws.errors import NumericalError

WIDTH = 4


class Wrapped(nn.Module):
    """A linear layer, the function under test, and a linear head."""

    def __init__(self, between: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.between = between
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.between(self.first(x)))


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x[:, None] * torch.ones(1, 3, 1)).chunk(3, dim=-1)
        return scaled_dot_product_attention(q, k, v).mean(1)


class MultiHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = torch.stack([x, x.flip(1), x * 2], dim=1)
        return self.attention(tokens, tokens, tokens)[0].mean(1)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.shared(self.shared(x).relu())


class TwiceInParallel(Twice):
    def forward(self, x: Tensor) -> Tensor:
        return self.shared(x) + self.shared(x.flip(1))


class Tied(nn.Module):
    """Two modules with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(WIDTH, WIDTH)
        self.two = nn.Linear(WIDTH, WIDTH)
        self.two.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x).relu())


class UsedByHand(nn.Module):
    """The weight is read once by the module and once outside it."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x).relu() @ self.one.weight


class Standardised(nn.Linear):
    """A subclass that does not use its weight linearly."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight / self.weight.norm(), self.bias)


class Folded(nn.Module):
    """Positions folded into the first axis, as (batch * positions, features)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.reshape(-1, 2)).reshape(x.shape)


class PositionFirst(nn.Module):
    """(positions, batch, features), with as many positions as the structure's probe has samples."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.reshape(-1, 2, 2).transpose(0, 1)).transpose(0, 1).reshape(x.shape)


LINEAR = {
    "relu": nn.ReLU(),
    "relu in place": nn.ReLU(inplace=True),
    "leaky relu": nn.LeakyReLU(0.1),
    "hardtanh": nn.Hardtanh(),
    "prelu": nn.PReLU(),
    "dropout": nn.Dropout(0.5),
    "residual": Function(lambda x: x + x.relu()),
    "constant gate": Function(lambda x: x * torch.arange(1.0, WIDTH + 1).double()),
    "division by constant": Function(lambda x: x / 3 - 1),
    "abs and max": Function(lambda x: torch.maximum(x.abs(), 2 * x)),
    "batch norm": nn.Sequential(nn.BatchNorm1d(WIDTH), nn.ReLU()),
    "pool": Function(lambda x: nn.functional.max_pool1d(x[:, None], 3, 1, 1)[:, 0]),
    "two linear layers": nn.Sequential(nn.Linear(WIDTH, 6), nn.ReLU(), nn.Linear(6, WIDTH)),
}
CURVED = {
    "gelu": nn.GELU(),
    "tanh": nn.Tanh(),
    "sigmoid": nn.Sigmoid(),
    "silu": nn.SiLU(),
    "hardswish": nn.Hardswish(),
    "layer norm": nn.LayerNorm(WIDTH),
    "instance norm": Function(lambda x: nn.functional.instance_norm(x[:, None])[:, 0]),
    "softmax": nn.Softmax(1),
    "square": Function(lambda x: x * x),
    "self gate": Function(lambda x: x * x.sigmoid()),
    "ratio": Function(lambda x: 1 / (2 + x.abs())),
    "product of parts": Function(lambda x: x * x.flip(1)),
    "outer product": Function(lambda x: (x[:, :, None] @ x[:, None, :]).sum(2)),
    "changed slice": Function(lambda x: x.clone().index_fill(1, torch.tensor([0]), 1.0).exp()),
    "attention": SelfAttention(),
    "multi-head attention": MultiHead(),
}


def probe(n: int = 6) -> tuple[Tensor, Tensor]:
    return torch.randn(n, WIDTH).double(), torch.arange(n) % 3


def assert_exact(model: nn.Module, naive_curvature, x: Tensor, y: Tensor) -> dict[str, str]:
    """Auto's curvatures equal those of the oracle; returns the methods chosen."""
    spectra = measure_directional_curvature(model, x, y, top_k=4, chunk_size=4)
    for spectrum in spectra:
        expected = np.array(naive_curvature(model, x, y, spectrum))
        scale = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(
            spectrum.directional_curvature, expected, rtol=1e-9, atol=1e-11 * scale
        )
    return {spectrum.layer: spectrum.method for spectrum in spectra}


@pytest.mark.parametrize("name", LINEAR)
def test_piecewise_linear_networks_take_the_fast_pass(name, naive_curvature):
    model = Wrapped(LINEAR[name]).double().eval()
    assert gauss_newton_obstacles(model, probe()[0]) == {}
    methods = assert_exact(model, naive_curvature, *probe())
    assert set(methods.values()) == {"gauss_newton"}


@pytest.mark.parametrize("name", CURVED)
def test_curved_networks_take_the_exact_pass(name, naive_curvature):
    model = Wrapped(CURVED[name]).double().eval()
    obstacles = gauss_newton_obstacles(model, probe()[0])
    assert "is not known to be piecewise linear" in obstacles["first"]
    assert "head" not in obstacles
    methods = assert_exact(model, naive_curvature, *probe())
    assert methods["first"] == "exact"
    assert methods["head"] == "gauss_newton"


IRREGULAR = [
    (Twice(), "shared", "used 2 times in 2 calls"),
    (TwiceInParallel(), "shared", "used 2 times in 2 calls"),
    (Tied(), "one", "used 2 times in 1 calls"),
    (UsedByHand(), "one", "used 2 times in 1 calls"),
    (Standardised(WIDTH, WIDTH), "", "Standardised has a forward pass of its own"),
    (Folded(), "inner", "first axis of its output is not the sample"),
    (PositionFirst(), "inner", "first axis of its output is not the sample"),
    (MultiHead(), "attention.out_proj", "used 1 times in 0 calls"),
    (MultiHead(), "attention.in_proj_weight", "a parameter that MultiheadAttention uses itself"),
]


@pytest.mark.parametrize(
    ("module", "layer", "reason"),
    IRREGULAR,
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_layers_outside_the_formula_are_exact(module, layer, reason, naive_curvature):
    model = Wrapped(module).double()
    name = f"between.{layer}".rstrip(".")
    x, y = probe()
    assert reason in gauss_newton_obstacles(model, x)[name]
    assert assert_exact(model, naive_curvature, x, y)[name] == "exact"


@pytest.mark.parametrize(
    ("module", "layer"),
    [case[:2] for case in IRREGULAR],
    ids=[f"{type(case[0]).__name__}.{case[1]}" for case in IRREGULAR],
)
def test_gauss_newton_takes_its_forward_pass_where_the_reverse_one_cannot(
    module, layer, dense_curvature
):
    model = Wrapped(module).double()
    name = f"between.{layer}".rstrip(".")
    x, y = probe()
    (spectrum,) = measure_directional_curvature(model, x, y, method="gauss_newton", layers=[name])
    exact, gauss_newton = dense_curvature(model, x, y, spectrum)
    np.testing.assert_allclose(
        spectrum.directional_curvature, gauss_newton, rtol=1e-10, atol=1e-14 * gauss_newton.max()
    )
    straight = layer in ("inner", "attention.out_proj") or isinstance(module, TwiceInParallel)
    assert straight != (np.abs(exact - gauss_newton).max() > 1e-6 * gauss_newton.max())


def test_a_hook_that_changes_the_output_is_exact(naive_curvature):
    model = Wrapped(nn.ReLU()).double()
    model.first.register_forward_hook(lambda module, args, output: output.sin())
    assert "forward hooks" in gauss_newton_obstacles(model, probe()[0])["first"]
    assert assert_exact(model, naive_curvature, *probe())["first"] == "exact"


def test_circular_padding_is_exact_whatever_is_chosen(naive_curvature):
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1, padding_mode="circular"),
        nn.ReLU(),
        nn.Conv2d(3, 4, 3, stride=2, padding=1, padding_mode="circular"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(36, 3),
    ).double()
    x, y = torch.randn(5, 1, 6, 6).double(), torch.arange(5) % 3
    methods = assert_exact(model, naive_curvature, x, y)
    assert methods["2"] == "gauss_newton"


def test_the_pipelines_networks_have_no_obstacle():
    resnet = ResNet18(in_channels=3, width=2, n_classes=4).eval()
    assert gauss_newton_obstacles(resnet, torch.randn(2, 3, 16, 16)) == {}
    mlp = MLP(in_features=12, width=5, depth=2, n_classes=4)
    assert gauss_newton_obstacles(mlp, torch.randn(2, 12)) == {}


STEPS = {
    "linear": lambda: nn.Linear(WIDTH, WIDTH),
    "relu": nn.ReLU,
    "hardtanh": nn.Hardtanh,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "norm": lambda: nn.LayerNorm(WIDTH),
    "batch norm": lambda: nn.BatchNorm1d(WIDTH),
    "skip": lambda: Residual(nn.Linear(WIDTH, WIDTH)),
    "gated": lambda: Gated(),
}


class Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value, self.gate = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x) * self.gate(x).relu()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5), seed=st.integers(0, 99)
)
def test_auto_is_exact_on_random_networks(naive_curvature, steps, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(WIDTH, WIDTH), *[STEPS[step]() for step in steps], nn.Linear(WIDTH, 3)
    )
    methods = assert_exact(model.double().eval(), naive_curvature, *probe())
    smooth = {"tanh", "gelu", "norm", "gated"} & set(steps)
    assert methods["0"] == ("exact" if smooth else "gauss_newton")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)),
            "1 .BatchNorm1d. is in train mode",
        ),
        (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 3)), "1 .Dropout. is active"),
        (
            Wrapped(nn.MultiheadAttention(4, 2, dropout=0.1)),
            "between .MultiheadAttention. is active",
        ),
        (
            nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, track_running_stats=False)).eval(),
            "no running statistics",
        ),
        (
            nn.Sequential(nn.Linear(4, 3), Function(lambda z: z - z.mean(0))),
            "depend on another sample",
        ),
        (nn.Sequential(nn.Linear(4, 3), Function(lambda z: z[0])), "must return logits"),
        (nn.Sequential(nn.ReLU()), "no Linear, Conv1d or Conv2d"),
        (nn.Sequential(nn.Linear(4, 3), Function(torch.ones_like)), "none of them influences"),
    ],
    ids=range(8),
)
def test_models_without_a_defined_curvature_are_refused(model, message):
    x, y = probe()
    with pytest.raises(ValueError, match=message):
        measure_directional_curvature(model.double(), x, y)


def test_a_train_mode_network_without_random_or_batch_layers_is_measured():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0), nn.ReLU(), nn.Linear(4, 3)).double()
    assert model.training
    assert len(measure_directional_curvature(model, *probe())) == 2
    assert model.training


def test_a_parametrized_weight_is_named():
    model = Wrapped(nn.ReLU()).double()
    nn.utils.parametrizations.weight_norm(model.first)
    with pytest.raises(ValueError, match="'first' is computed from other parameters"):
        measure_directional_curvature(model, *probe())


class FailsLater(nn.Module):
    """Raises on its n-th call."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def forward(self, x: Tensor) -> Tensor:
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("planted failure")
        return x


@pytest.mark.parametrize("method", ["gauss_newton", "exact"])
@pytest.mark.parametrize("fails_at", [None, 1, 2, 3])
def test_the_model_is_left_as_it_was(method, fails_at):
    model = Wrapped(FailsLater(fails_at or 0)).double()
    calls = []
    model.head.register_forward_pre_hook(lambda module, args: calls.append(module))
    model.first.bias.requires_grad_(False)
    model.head.weight.requires_grad_(False)
    model.first.weight.grad = torch.full_like(model.first.weight, 3.0)
    grads = {name: parameter.grad for name, parameter in model.named_parameters()}
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    arguments = {"method": method, "layers": ["first"], "chunk_size": 6}
    if fails_at is None:
        measure_directional_curvature(model, *probe(), **arguments)
    else:
        with pytest.raises(RuntimeError, match="planted failure"):
            measure_directional_curvature(model, *probe(), **arguments)
    for name, parameter in model.named_parameters():
        assert parameter.grad is grads[name]
        assert parameter.requires_grad == flags[name]
        torch.testing.assert_close(parameter, state[name], rtol=0, atol=0, check_stride=True)
    assert (model.first.weight.grad == 3.0).all()
    assert [len(m._forward_hooks) for m in model.modules()] == [0, 0, 0, 0]
    assert [len(m._forward_pre_hooks) for m in model.modules()] == [0, 0, 0, 1]
    if fails_at is not None:
        assert len(calls) == fails_at - 1


def test_measures_under_no_grad_and_on_a_frozen_model():
    model = Wrapped(nn.ReLU()).double().requires_grad_(False)
    with torch.no_grad():
        frozen = measure_directional_curvature(model, *(data := probe()))
        assert not torch.is_grad_enabled()
    free = measure_directional_curvature(model.requires_grad_(True), *data)
    for a, b in zip(frozen, free, strict=True):
        np.testing.assert_array_equal(a.directional_curvature, b.directional_curvature)


class Cubic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


@pytest.mark.parametrize("name", ["Relu", "Clamp", "Linear", "Hardtanh"])
def test_a_custom_function_is_not_trusted_by_its_name(name):
    function = type(name, (Cubic,), {})
    model = Wrapped(Function(function.apply)).double().eval()
    obstacles = gauss_newton_obstacles(model, torch.randn(5, WIDTH, dtype=torch.float64))
    assert list(obstacles) == ["first"]


def test_the_modulus_of_a_complex_number_is_curved():
    modulus = Function(lambda x: torch.complex(x, x.flip(1)).abs())
    model = Wrapped(modulus).double().eval()
    x = torch.randn(5, WIDTH, dtype=torch.float64)
    assert list(gauss_newton_obstacles(model, x)) == ["first"]
    assert gauss_newton_obstacles(Wrapped(Function(torch.abs)).double().eval(), x) == {}


def test_the_head_is_the_models_last_layer_whatever_is_measured():
    model = nn.Sequential(nn.Linear(WIDTH, 3), nn.ReLU(), nn.Linear(3, 3)).double().eval()
    x, y = torch.randn(6, WIDTH, dtype=torch.float64), torch.randint(3, (6,))
    for names in (["0"], ["0", "2"], ["2"]):
        found = measure_directional_curvature(model, x, y, layers=names)
        assert {s.layer: s.kind for s in found} == {
            name: {"0": "linear", "2": "head"}[name] for name in names
        }


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_refused(dtype):
    model, x = nn.Linear(WIDTH, 3).to(dtype).eval(), torch.randn(6, WIDTH, dtype=dtype)
    with pytest.raises(ValueError, match="float32 or float64"):
        measure_directional_curvature(model, x, torch.randint(3, (6,)))


def test_autocast_is_refused():
    model, x = nn.Linear(WIDTH, 3).eval(), torch.randn(6, WIDTH)
    with torch.autocast("cpu"), pytest.raises(ValueError, match="autocast is active"):
        measure_directional_curvature(model, x, torch.randint(3, (6,)))


def test_nan_weights_are_named_as_such():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3)).eval()
    with torch.no_grad():
        model[0].weight[0, 0] = float("nan")
    with pytest.raises(NumericalError, match="logits of the first samples"):
        measure_directional_curvature(model, torch.randn(6, WIDTH), torch.randint(3, (6,)))
