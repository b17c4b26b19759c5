"""Every rung against per-sample gradients, positions against loops, factors against curvlinops."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F  # noqa: N812
from torch.nn.functional import cross_entropy

from spectral_laws.curvature.derivatives.directional import (
    DirectionalSpectrum,
    measure_directional_curvature,
)
from spectral_laws.curvature.kronecker.ladder import RUNGS, Ladder, measure_ladder
from spectral_laws.curvature.kronecker.network_factors import kronecker_factors
from spectral_laws.errors import NumericalError

N_CLASSES = 4
SAMPLES = 6


class Convolutions(nn.Module):
    """Strides, dilations, paddings of every mode, a 1d convolution, a linear layer by position."""

    def __init__(self) -> None:
        super().__init__()
        self.reflected = nn.Conv2d(2, 5, (3, 2), padding="same", padding_mode="reflect")
        self.strided = nn.Conv2d(5, 4, 3, stride=(2, 1), padding=(2, 1), padding_mode="circular")
        self.dilated = nn.Conv2d(4, 6, (2, 3), dilation=(2, 1), padding=1, bias=False)
        self.by_position = nn.Linear(6, 5)
        self.line = nn.Conv1d(5, 4, 3, stride=2, dilation=2, padding=2, padding_mode="replicate")
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.reflected(x))
        x = F.relu(self.strided(x))
        x = F.gelu(self.dilated(x)).flatten(2).transpose(1, 2)
        x = F.gelu(self.by_position(x)).transpose(1, 2)
        return self.head(F.relu(self.line(x)).mean(2))


class GroupedConvolutions(nn.Module):
    """Groups, depth-wise and in pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.grouped = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
        self.depthwise = nn.Conv2d(6, 12, (2, 1), padding="same", groups=6)
        self.head = nn.Linear(12, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.depthwise(torch.tanh(self.grouped(x)))).mean((2, 3)))


class LanguageModel(nn.Module):
    """Logits at every position, mixed by a causal average."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_CLASSES, 5)
        self.up = nn.Linear(5, 7)
        self.down = nn.Linear(7, 5)
        self.lm_head = nn.Linear(5, N_CLASSES, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        x = x + self.down(F.gelu(self.up(x)))
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        return self.lm_head(x.cumsum(1) / counts)


def build(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    labels = torch.arange(SAMPLES) % N_CLASSES
    if name == "convolutions":
        return Convolutions().double(), torch.randn(SAMPLES, 2, 6, 5).double(), labels
    if name == "groups":
        return GroupedConvolutions().double(), torch.randn(SAMPLES, 4, 7, 6).double(), labels
    tokens = torch.randint(0, N_CLASSES, (SAMPLES, 5))
    return LanguageModel().double(), tokens, tokens.roll(-1, 1)


def measured(
    model: nn.Module, x: Tensor, y: Tensor, **options: float
) -> list[tuple[DirectionalSpectrum, Ladder]]:
    spectra = measure_directional_curvature(model, x, y, top_k=3, **options)
    return [*zip(spectra, measure_ladder(model, x, y, spectra, **options), strict=True)]


def directions(spectrum: DirectionalSpectrum) -> Iterator[Tensor]:
    for u, v in zip(
        spectrum.left_singular_vectors.T, spectrum.right_singular_vectors.T, strict=True
    ):
        yield torch.from_numpy(np.outer(u, v)).reshape(spectrum.weight_shape)


def sample_gradients(
    model: nn.Module, layer: str, x: Tensor, y: Tensor, **options: float
) -> Tensor:
    """Gradients of each sample's own loss in the weight, one sample at a time."""
    weight = model.get_submodule(layer).weight
    losses = [
        cross_entropy(
            model(x[i : i + 1]).flatten(0, -2), y[i : i + 1].flatten(), reduction="sum", **options
        )
        for i in range(len(x))
    ]
    return torch.stack([torch.autograd.grad(loss, weight)[0] for loss in losses])


@pytest.mark.parametrize("name", ["convolutions", "groups", "language"])
def test_fisher_is_the_mean_square_of_per_sample_gradients(name):
    model, x, y = build(name)
    for spectrum, ladder in measured(model, x, y, label_smoothing=0.1):
        gradients = sample_gradients(model, ladder.layer, x, y, label_smoothing=0.1)
        expected = [
            float(((gradients * d).flatten(1).sum(1) ** 2).sum() / y.numel())
            for d in directions(spectrum)
        ]
        np.testing.assert_allclose(ladder.fisher, expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["convolutions", "groups"])
def test_gauss_newton_is_the_true_fisher_by_expectation_over_classes(name):
    model, x, y = build(name)
    p = torch.softmax(model(x), 1).detach()
    for spectrum, ladder in measured(model, x, y):
        per_class = [
            sample_gradients(model, ladder.layer, x, torch.full_like(y, c))
            for c in range(N_CLASSES)
        ]
        expected = [
            float(
                sum(
                    (p[:, c] * ((gradients * d).flatten(1).sum(1) ** 2)).sum()
                    for c, gradients in enumerate(per_class)
                )
            )
            / SAMPLES
            for d in directions(spectrum)
        ]
        np.testing.assert_allclose(ladder.gauss_newton, expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["convolutions", "groups", "language"])
def test_gauss_newton_is_the_form_of_the_logits_jacobian(name):
    model, x, y = build(name)
    for spectrum, ladder in measured(model, x, y):
        weight = f"{ladder.layer}.weight"
        value = model.get_parameter(weight).detach()
        p = torch.softmax(model(x), -1).detach()
        for d, found in zip(directions(spectrum), ladder.gauss_newton, strict=True):
            t = torch.func.jvp(
                lambda w, weight=weight: functional_call(model, {weight: w}, (x,)), (value,), (d,)
            )[1].detach()
            form = (p * t**2).sum(-1) - (p * t).sum(-1) ** 2
            assert found == pytest.approx(float(form.mean()), rel=1e-10)


@pytest.mark.parametrize("name", ["convolutions", "language"])
def test_a_spectrum_measured_by_gauss_newton_has_the_same_numbers(name):
    model, x, y = build(name)
    spectra = measure_directional_curvature(model, x, y, top_k=3, method="gauss_newton")
    for spectrum, ladder in zip(spectra, measure_ladder(model, x, y, spectra), strict=True):
        np.testing.assert_allclose(ladder.gauss_newton, spectrum.directional_curvature, rtol=1e-10)


def unfolded(module: nn.Module, x: Tensor) -> Tensor:
    """(B, positions, groups, columns) patches, by padding as torch does and F.unfold."""
    if isinstance(module, nn.Linear):
        return x.reshape(len(x), -1, 1, x.shape[-1])
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    padded = F.pad(x, module._reversed_padding_repeated_twice, mode=mode)
    kernel, stride, dilation = module.kernel_size, module.stride, module.dilation
    if isinstance(module, nn.Conv1d):
        padded, kernel = padded.unsqueeze(2), (1, *kernel)
        stride, dilation = (1, *stride), (1, *dilation)
    columns = F.unfold(padded, kernel, dilation, 0, stride)
    return columns.reshape(len(x), module.groups, -1, columns.shape[2]).permute(0, 3, 1, 2)


def output_gradients(
    model: nn.Module, name: str, x: Tensor, loss_of: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Patches and output gradients of loss_of(logits), (B, positions, groups, columns or rows)."""
    module = model.get_submodule(name)
    kept: list[tuple[Tensor, Tensor]] = []
    handle = module.register_forward_hook(lambda m, args, out: kept.append((args[0], out)))
    loss = loss_of(model(x))
    handle.remove()
    (delta,) = torch.autograd.grad(loss, kept[0][1])
    if isinstance(module, nn.Linear):
        delta = delta.reshape(len(x), -1, 1, delta.shape[-1])
    else:
        rows = module.out_channels // module.groups
        delta = delta.reshape(len(x), module.groups, rows, -1).permute(0, 3, 1, 2)
    return unfolded(module, kept[0][0]).detach(), delta


def rungs_by_loops(
    a: Tensor, delta: Tensor, u: Tensor, v: Tensor, n_terms: int
) -> tuple[float, float]:
    """positions_k and kronecker_k, position by position."""
    samples, positions, groups, rows = delta.shape
    total, c_delta = 0.0, torch.zeros(groups * rows, groups * rows).double()
    c_a = torch.zeros(a.shape[3], a.shape[3]).double()
    for i in range(samples):
        for t in range(positions):
            product = 0.0
            for g in range(groups):
                product += float(u[g * rows : (g + 1) * rows] @ delta[i, t, g]) * float(
                    v @ a[i, t, g]
                )
                c_a += torch.outer(a[i, t, g], a[i, t, g]) / (samples * positions * groups)
            total += product**2
            c_delta += torch.outer(delta[i, t].flatten(), delta[i, t].flatten())
    return total / n_terms, float((u @ c_delta @ u) / n_terms * (v @ c_a @ v))


@pytest.mark.parametrize("name", ["convolutions", "groups", "language"])
def test_positions_and_kronecker_are_sums_over_positions_of_given_labels(name):
    model, x, y = build(name)

    def loss(logits: Tensor) -> Tensor:
        return cross_entropy(logits.flatten(0, -2), y.flatten(), reduction="sum")

    for spectrum, ladder in measured(model, x, y):
        a, delta = output_gradients(model, ladder.layer, x, loss)
        for k in range(len(spectrum.singular_values)):
            u = torch.tensor(spectrum.left_singular_vectors[:, k])
            v = torch.tensor(spectrum.right_singular_vectors[:, k])
            positions, kronecker = rungs_by_loops(a, delta, u, v, y.numel())
            assert ladder.positions[k] == pytest.approx(positions, rel=1e-10)
            assert ladder.kronecker[k] == pytest.approx(kronecker, rel=1e-10)
        if name == "language":
            assert ladder.positions_true is None
            assert ladder.kronecker_true is None


@pytest.mark.parametrize("name", ["convolutions", "groups"])
def test_true_positions_and_kronecker_are_expectations_over_classes(name):
    model, x, y = build(name)
    for spectrum, ladder in measured(model, x, y, label_smoothing=0.3):
        u = torch.tensor(spectrum.left_singular_vectors[:, 1])
        v = torch.tensor(spectrum.right_singular_vectors[:, 1])
        positions = kronecker = 0.0
        for c in range(N_CLASSES):

            def loss(logits: Tensor, c: int = c) -> Tensor:
                each = cross_entropy(logits, torch.full_like(y, c), reduction="none")
                # delta of sample i times sqrt p_ic, whose square is weighed by p_ic.
                return (torch.softmax(logits, 1)[:, c].detach().sqrt() * each).sum()

            a, delta = output_gradients(model, ladder.layer, x, loss)
            found = rungs_by_loops(a, delta, u, v, SAMPLES)
            positions, kronecker = positions + found[0], kronecker + found[1]
        assert ladder.positions_true[1] == pytest.approx(positions, rel=1e-10)
        assert ladder.kronecker_true[1] == pytest.approx(kronecker, rel=1e-10)


def test_one_position_leaves_nothing_between_fisher_and_positions():
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, N_CLASSES)).double()
    x, y = torch.randn(8, 6).double(), torch.arange(8) % N_CLASSES
    for _, ladder in measured(model, x, y):
        np.testing.assert_allclose(ladder.fisher, ladder.positions, rtol=1e-12)
        np.testing.assert_allclose(ladder.gauss_newton, ladder.positions_true, rtol=1e-12)
        assert (np.abs(ladder.positions / ladder.kronecker - 1) > 1e-6).all()


def test_inputs_of_one_size_leave_nothing_between_positions_and_kronecker():
    """E[delta^2 a^2] = E[delta^2] E[a^2] where a^2 is constant."""
    model = nn.Sequential(nn.Conv1d(1, 3, 1), nn.Tanh(), nn.Flatten(), nn.Linear(12, N_CLASSES))
    model = model.double()
    x = torch.randint(0, 2, (8, 1, 4)).double() * 2 - 1
    _, ladder = measured(model, x, torch.arange(8) % N_CLASSES)[0]
    np.testing.assert_allclose(ladder.positions, ladder.kronecker, rtol=1e-12)
    np.testing.assert_allclose(ladder.positions_true, ladder.kronecker_true, rtol=1e-12)


def same_rungs(one: Ladder, other: Ladder, *, rtol: float) -> None:
    for rung in RUNGS:
        np.testing.assert_allclose(getattr(one, rung), getattr(other, rung), rtol=rtol)
    for factor in ("delta", "a"):
        found, expected = getattr(one, factor), getattr(other, factor)
        np.testing.assert_allclose(
            found.eigenvalues, expected.eigenvalues, atol=rtol * found.eigenvalues[0]
        )


@pytest.mark.parametrize("name", ["convolutions", "groups", "language"])
def test_repeated_permuted_and_split_batches_change_nothing(name):
    """Gradients of a mean loss would carry 1/B: every rung below Gauss-Newton would fall fourfold
    when the batch is repeated twice, and change with the size of the chunks."""
    model, x, y = build(name)
    spectra = measure_directional_curvature(model, x, y, top_k=3)
    rungs = [rung for rung in RUNGS if name != "language" or not rung.endswith("true")]
    reference = measure_ladder(model, x, y, spectra)
    order = torch.randperm(SAMPLES)
    for batch, chunk_size in (
        ((x, y), 1),
        ((x, y), 4),
        ((torch.cat([x, x]), torch.cat([y, y])), 5),
        ((x[order], y[order]), 4),
    ):
        for one, other in zip(
            measure_ladder(model, *batch, spectra, chunk_size=chunk_size), reference, strict=True
        ):
            for rung in rungs:
                np.testing.assert_allclose(
                    getattr(one, rung), getattr(other, rung), rtol=1e-10, err_msg=rung
                )
            for factor in (one.delta, other.delta), (one.a, other.a):
                np.testing.assert_allclose(
                    factor[0].eigenvalues,
                    factor[1].eigenvalues,
                    atol=1e-12 * factor[1].eigenvalues[0],
                )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_reduction_of_the_loss_does_not_matter_once_gradients_are_per_sample(reduction):
    """A mean-reduced loss hands every layer delta / B: a rung formed from it lacks B^2."""
    model, x, y = build("convolutions")
    scale = SAMPLES if reduction == "mean" else 1
    spectrum, ladder = measured(model, x, y)[2]
    a, delta = output_gradients(
        model, ladder.layer, x, lambda logits: cross_entropy(logits, y, reduction=reduction)
    )
    u = torch.tensor(spectrum.left_singular_vectors[:, 0])
    v = torch.tensor(spectrum.right_singular_vectors[:, 0])
    positions, kronecker = rungs_by_loops(a, delta, u, v, SAMPLES)
    assert ladder.positions[0] == pytest.approx(scale**2 * positions, rel=1e-10)
    assert ladder.kronecker[0] == pytest.approx(scale**2 * kronecker, rel=1e-10)


def test_rungs_of_a_batch_are_means_of_those_of_its_halves():
    model, x, y = build("convolutions")
    spectra = measure_directional_curvature(model, x, y, top_k=3)
    whole = kronecker_factors(model, x, y)
    halves = [kronecker_factors(model, x[part], y[part]) for part in (slice(3), slice(3, 6))]
    for name, factors in whole.items():
        for attribute in ("delta", "a", "delta_true"):
            mean = sum(getattr(half[name], attribute) for half in halves) / 2
            torch.testing.assert_close(getattr(factors, attribute), mean, rtol=1e-10, atol=1e-14)
    assert {*whole} == {spectrum.layer for spectrum in spectra}


class Repeat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.repeat(1, 3, 1, 1)


def test_groups_that_see_the_same_input_are_the_ungrouped_convolution():
    first, rest = nn.Conv2d(2, 6, 3, padding=1), [nn.Tanh(), nn.Flatten(), nn.Linear(96, N_CLASSES)]
    dense = nn.Sequential(nn.Identity(), first, *rest).double()
    grouped = nn.Sequential(Repeat(), nn.Conv2d(6, 6, 3, padding=1, groups=3), *rest).double()
    grouped[1].load_state_dict(first.state_dict())
    x, y = torch.randn(SAMPLES, 2, 4, 4).double(), torch.arange(SAMPLES) % N_CLASSES
    torch.testing.assert_close(dense(x), grouped(x))
    for (_, one), (_, other) in zip(measured(dense, x, y), measured(grouped, x, y), strict=True):
        same_rungs(one, other, rtol=1e-10)


def test_kronecker_factors_equal_those_of_curvlinops():
    curvlinops = pytest.importorskip("curvlinops", reason="the oracle of the Kronecker factors")
    model = nn.Sequential(
        nn.Conv2d(2, 5, (3, 2), stride=(2, 1), padding=1),
        nn.ReLU(),
        nn.Conv2d(5, 4, 2, dilation=2, bias=False),
        nn.Flatten(2),
        nn.Linear(5, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(12, N_CLASSES),
    ).double()
    x, y = torch.randn(7, 2, 6, 6).double(), torch.arange(7) % N_CLASSES
    found = kronecker_factors(model, x, y, chunk_size=3)
    for fisher_type, attribute in (("empirical", "delta"), ("type-2", "delta_true")):
        for reduction in ("mean", "sum"):
            operator = curvlinops.KFACLinearOperator(
                model,
                nn.CrossEntropyLoss(reduction=reduction),
                [module.weight for module in model if hasattr(module, "weight")],
                [(x[:4], y[:4]), (x[4:], y[4:])],
                fisher_type=fisher_type,
                kfac_approx="expand",
                check_deterministic=False,
            )
            operator.compute_kronecker_factors()
            assert {*operator._input_covariances} == {"0", "2", "4", "7"} == {*found}
            for name, factors in found.items():
                # A sum is N times a mean; curvlinops puts that factor into the gradients.
                scale = 1 if reduction == "mean" else 1 / len(x)
                expected = operator._gradient_covariances[name] * scale
                torch.testing.assert_close(
                    getattr(factors, attribute), expected, rtol=1e-8, atol=1e-12
                )
                torch.testing.assert_close(
                    factors.a, operator._input_covariances[name], rtol=1e-8, atol=1e-12
                )


def test_float32_agrees_with_float64():
    model, x, y = build("convolutions")
    spectra = measure_directional_curvature(model, x, y, top_k=3)
    double = measure_ladder(model, x, y, spectra)
    single = measure_ladder(model.float(), x.float(), y, spectra)
    for one, other in zip(single, double, strict=True):
        for rung in RUNGS:
            np.testing.assert_allclose(getattr(one, rung), getattr(other, rung), rtol=1e-3)


class Tied(nn.Module):
    """One weight, used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(5, 5)
        self.head = nn.Linear(5, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.twice(torch.tanh(self.twice(x)))))


def test_a_weight_used_twice_has_a_reason_and_no_number():
    model, x, y = Tied().double(), torch.randn(SAMPLES, 5).double(), torch.arange(SAMPLES) % 4
    (_, twice), (_, head) = measured(model, x, y)
    assert "used 2 times" in twice.reason
    assert all(getattr(twice, rung) is None for rung in RUNGS)
    assert twice.delta is None
    assert twice.rho_a is None
    assert twice.n_beyond_rank == 0
    assert not head.reason
    assert len(head.fisher) == 3
    assert {*kronecker_factors(model, x, y)} == {"head"}
    with pytest.raises(ValueError, match="'twice' has no Kronecker factors"):
        kronecker_factors(model, x, y, layers=["twice"])


class Attending(nn.Module):
    """Its projections of queries, keys and values are a bare parameter, without a call."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x, need_weights=False)[0].mean(1))


def test_projections_without_a_call_have_a_reason_and_no_number():
    model, x, y = Attending().double().eval(), torch.randn(SAMPLES, 3, 4).double(), torch.arange(6)
    found = {spectrum.layer: ladder for spectrum, ladder in measured(model, x, y % N_CLASSES)}
    assert found["attention.in_proj_weight"].reason
    assert found["attention.in_proj_weight"].fisher is None
    assert not found["head"].reason


def test_spectra_of_something_else_are_refused():
    model, x, y = build("convolutions")
    spectra = measure_directional_curvature(model, x, y, top_k=2)
    with pytest.raises(ValueError, match="another model, batch or loss"):
        measure_ladder(model, x, y.roll(1), spectra)
    with pytest.raises(ValueError, match="another model, batch or loss"):
        measure_ladder(model, x, y, spectra, label_smoothing=0.3)
    other = Convolutions().double()
    other.head = nn.Linear(4, N_CLASSES + 1).double()
    with pytest.raises(ValueError, match="layer 'head' has shape"):
        measure_ladder(other, x, y, spectra)
    assert measure_ladder(model, x, y, []) == []


def test_model_is_left_as_found_and_mistakes_are_named():
    model, x, y = build("convolutions")
    model.strided.weight.requires_grad_(False)
    spectra = measure_directional_curvature(model, x, y, top_k=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    measure_ladder(model, x, y, spectra, progress=True)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not model.strided.weight.requires_grad
    assert not model.head._forward_hooks
    bad = x.clone()
    bad[-1, 0, 0, 0] = math.nan
    with pytest.raises(NumericalError, match="loss on the measurement batch"):
        measure_ladder(model, bad, y, spectra)
    with pytest.raises(ValueError, match="chunk_size must be positive"):
        measure_ladder(model, x, y, spectra, chunk_size=-1)
