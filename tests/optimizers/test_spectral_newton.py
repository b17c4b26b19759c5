"""Spectral Newton as an optimizer: its formula, torch's contract, and what it is for."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from spectral_laws.errors import NumericalError
from spectral_laws.optimizers.parameter_groups import parameter_groups
from spectral_laws.optimizers.spectral_newton import SpectralNewton
from spectral_laws.optimizers.spectral_update import spectral_update

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
)


def network(dtype=torch.float32, device="cpu"):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 4)
    )
    return model.to(device=device, dtype=dtype)


def batch(seed=0, dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(16, 1, 6, 6, generator=generator).to(device=device, dtype=dtype)
    return inputs, torch.randint(0, 4, (16,), generator=generator).to(device)


def loss_of(model, seed=0, scale=1.0):
    parameter = next(model.parameters())
    inputs, targets = batch(seed, parameter.dtype, parameter.device)
    return scale * cross_entropy(model(inputs).float(), targets)


def take_steps(model, optimizer, seeds, scale=1.0):
    for seed in seeds:
        optimizer.zero_grad()
        loss_of(model, seed, scale).backward()
        optimizer.step()


@pytest.mark.parametrize("adjust", ["original", "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [True, False])
def test_two_steps_by_the_formula(nesterov, adjust):
    weight = nn.Parameter(torch.randn(4, 2, 3, 3, dtype=torch.float64))
    optimizer = SpectralNewton(
        [weight], 0.1, alpha=1.5, damping=0.2, momentum=0.8, nesterov=nesterov, weight_decay=0.3,
        adjust_lr_fn=adjust,
    )  # fmt: skip
    expected = weight.detach().clone()
    average = torch.zeros(4, 18, dtype=torch.float64)
    factor = 0.2 * math.sqrt(18) if adjust == "match_rms_adamw" else 1.0
    for _ in range(2):
        weight.grad = torch.randn_like(weight)
        gradient = weight.grad.reshape(4, 18)
        average = 0.8 * average + 0.2 * gradient
        seen = 0.2 * gradient + 0.8 * average if nesterov else average
        u, sigma, vt = torch.linalg.svd(seen, full_matrices=False)
        sigma = sigma / sigma[0]
        update = (u * (sigma / (sigma**1.5 + 0.2))) @ vt
        expected = (1 - 0.1 * 0.3) * expected - 0.1 * factor * update.view_as(expected)
        optimizer.step()
        torch.testing.assert_close(weight.detach(), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("shape", "factor"), [((8, 2), 2.0), ((2, 8), 1.0)])
def test_the_original_factor_is_muons(shape, factor):
    weight = nn.Parameter(torch.zeros(shape))
    weight.grad = torch.randn(shape)
    SpectralNewton([weight], 1.0, momentum=0.0, adjust_lr_fn="original").step()
    torch.testing.assert_close(-weight.detach(), factor * spectral_update(weight.grad))


def test_vectors_and_marked_groups_are_adamws():
    shapes = [(3,), (2, 5), ()]
    mine = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = [nn.Parameter(parameter.detach().clone()) for parameter in mine]
    options = {"lr": 0.01, "weight_decay": 0.1}
    optimizer = SpectralNewton(mine, **options, adamw=True, adamw_betas=(0.8, 0.99), adamw_eps=1e-6)
    reference = torch.optim.AdamW(theirs, **options, betas=(0.8, 0.99), eps=1e-6)
    for _ in range(4):
        for a, b in zip(mine, theirs, strict=True):
            a.grad = torch.randn_like(a)
            b.grad = a.grad.clone()
        optimizer.step()
        reference.step()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


def test_matrices_and_vectors_in_one_group():
    model = network()
    vector = model[4].bias.detach().clone()
    optimizer = SpectralNewton(model.parameters(), 0.01)
    take_steps(model, optimizer, [0])
    assert set(optimizer.state[model[4].weight]) == {"momentum_buffer"}
    assert set(optimizer.state[model[4].bias]) == {"step", "exp_avg", "exp_avg_sq"}
    # AdamW's first step moves every entry by the learning rate.
    torch.testing.assert_close(
        (model[4].bias.detach() - vector).abs(), torch.full((4,), 0.01), rtol=1e-3, atol=0
    )


def test_parameters_without_a_gradient_stay():
    model = network()
    model[0].weight.requires_grad_(False)
    kept = model[0].weight.clone()
    take_steps(model, SpectralNewton(model.parameters(), 0.1, weight_decay=0.1), [0])
    assert torch.equal(model[0].weight, kept)


def test_alpha_per_group():
    weights = [nn.Parameter(torch.zeros(3, 4)) for _ in range(2)]
    gradient = torch.randn(3, 4)
    for weight in weights:
        weight.grad = gradient.clone()
    groups = [{"params": [weights[0]], "alpha": 1.0}, {"params": [weights[1]]}]
    SpectralNewton(groups, 1.0, momentum=0.0, adjust_lr_fn="original").step()
    for weight, alpha in zip(weights, (1.0, 2.0), strict=True):
        torch.testing.assert_close(-weight.detach(), spectral_update(gradient, alpha=alpha))


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_trains(dtype, device):
    model = network(dtype, device)
    first = loss_of(model).item()
    take_steps(model, SpectralNewton(parameter_groups(model), 0.02), [0] * 20)
    assert loss_of(model).item() < 0.2 * first
    assert all(parameter.dtype == dtype for parameter in model.parameters())


def test_a_stored_state_continues_in_the_same_bits():
    model = network()
    optimizer = SpectralNewton(parameter_groups(model, alpha=1.3), 0.02, weight_decay=0.1)
    take_steps(model, optimizer, range(3))
    other = copy.deepcopy(model)
    resumed = SpectralNewton(parameter_groups(other), 0.5)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    take_steps(model, optimizer, range(3, 6))
    take_steps(other, resumed, range(3, 6))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_closure_is_called_with_gradients():
    model = network()
    optimizer = SpectralNewton(model.parameters(), 0.01)
    before = loss_of(model).item()

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == pytest.approx(before)
    assert loss_of(model).item() < before


def test_schedulers_set_learning_rate_and_momentum():
    model = network()
    optimizer = SpectralNewton(parameter_groups(model), 0.01)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10)
    seen = []
    for seed in range(9):
        take_steps(model, optimizer, [seed])
        cycle.step()
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
    rates, momenta = zip(*seen, strict=True)
    assert max(rates) == pytest.approx(0.1, rel=0.1)
    assert min(momenta) == pytest.approx(0.85, abs=0.02)


def test_the_scale_of_the_loss_is_irrelevant_with_relative_damping():
    """Vectors aside, whose AdamW has an epsilon: they are frozen."""
    paths = []
    for scale in (1.0, 2.0**-20, 2.0**20):
        model = network(torch.float64)
        for parameter in model.parameters():
            parameter.requires_grad_(parameter.ndim >= 2)
        optimizer = SpectralNewton(parameter_groups(model), 0.02)
        take_steps(model, optimizer, range(5), scale)
        paths.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(paths[1], paths[0], rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(paths[2], paths[0], rtol=1e-9, atol=1e-11)


def test_the_scale_of_the_loss_matters_with_absolute_damping():
    paths = []
    for scale in (1.0, 2.0**-20):
        model = network(torch.float64)
        optimizer = SpectralNewton(parameter_groups(model), 0.02, relative=False)
        take_steps(model, optimizer, range(5), scale)
        paths.append(model[4].weight.detach().clone())
    assert (paths[0] - paths[1]).norm() > 0.01 * paths[0].norm()


def steps_needed(exponent, alpha, lr, *, most=5):
    """Steps until W minimises sum_k h_k (u_k^T W v_k - t_k)^2 / 2 to 5 %, h_k = sigma_k^exponent.

    sigma_k = h_k |t_k| is the singular value of the gradient at W = 0, so the error along a
    direction is t_k = sigma_k^(1 - exponent), and a step that is proportional to it is Newton's.
    """
    generator = torch.Generator().manual_seed(1)
    u, _ = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))
    v, _ = torch.linalg.qr(torch.randn(12, 8, generator=generator, dtype=torch.float64))
    sigma = 10.0 ** -torch.linspace(0, 1.5, 8, dtype=torch.float64)
    curvature, target = sigma**exponent, sigma ** (1 - exponent)
    weight = nn.Parameter(torch.zeros(8, 12, dtype=torch.float64))
    optimizer = SpectralNewton(
        [weight], lr, alpha=alpha, damping=1e-5, momentum=0.0, adjust_lr_fn="original"
    )
    for step in range(most):
        apart = torch.einsum("ik,ij,jk->k", u, weight, v) - target
        if float((apart.detach() / target).norm()) < 0.05 * math.sqrt(8):
            return step
        optimizer.zero_grad()
        (curvature * apart**2 / 2).sum().backward()
        optimizer.step()
    return most


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
def test_the_matched_alpha_comes_close_first(exponent):
    """Each alpha at its own best learning rate; the first step of the matched one is Newton's.

    Later steps are not: the curvature stays, while sigma falls with the error, and relative steps
    do not shrink. So this says who comes within 5 % first, not who converges.
    """
    rates = [10 ** (k / 4) for k in range(-6, 6)]
    needed = {
        alpha: min(steps_needed(exponent, alpha, lr) for lr in rates)
        for alpha in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    }
    matched = needed.pop(exponent)
    assert matched == 1
    assert min(needed.values()) >= 5, needed


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_names_its_parameter(value):
    model = network()
    optimizer = SpectralNewton(parameter_groups(model), 0.01)
    take_steps(model, optimizer, [0])
    loss_of(model).backward()
    model[4].weight.grad[1, 2] = value
    before = copy.deepcopy(model.state_dict())
    state = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(NumericalError, match=r"parameter '4\.weight' has a gradient that is not"):
        optimizer.step()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    for key, values in optimizer.state_dict()["state"].items():
        for name, tensor in values.items():
            assert torch.equal(tensor, state["state"][key][name])


def test_a_parameter_without_a_name_is_told_by_its_place():
    weights = [nn.Parameter(torch.zeros(2, 3)) for _ in range(2)]
    for weight in weights:
        weight.grad = torch.ones(2, 3)
    weights[1].grad[0, 0] = math.nan
    with pytest.raises(NumericalError, match=r"parameter 1 of group 0, \(2, 3\), has a gradient"):
        SpectralNewton(weights, 0.1).step()


def test_sparse_gradients_are_refused():
    embedding = nn.Embedding(5, 3, sparse=True)
    embedding(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(ValueError, match="has a sparse gradient"):
        SpectralNewton(embedding.parameters(), 0.1).step()


def test_complex_parameters_are_refused():
    with pytest.raises(ValueError, match="only real numbers"):
        SpectralNewton([nn.Parameter(torch.zeros(2, 2, dtype=torch.complex64))], 0.1)
    optimizer = SpectralNewton([nn.Parameter(torch.zeros(2, 2))], 0.1)
    with pytest.raises(ValueError, match="only real numbers"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2, 2) + 1j)]})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_whose_gradient_dies_stays_finite(dtype):
    weight = nn.Parameter(torch.zeros(5, 7, dtype=dtype))
    optimizer = SpectralNewton([weight], 1e-3)
    weight.grad = torch.randn(5, 7).to(dtype)
    optimizer.step()
    weight.grad = torch.zeros_like(weight)
    for _ in range(2500):
        optimizer.step()
    assert torch.isfinite(weight).all()


def test_matrices_without_entries_are_left_alone():
    weights = [nn.Parameter(torch.zeros(shape)) for shape in ((0, 5), (3, 0, 2), (2, 2))]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    SpectralNewton(weights, 0.1).step()
    assert weights[2].abs().sum() > 0


def test_autocast_does_not_reach_the_step():
    updates = []
    for enabled in (False, True):
        weight = nn.Parameter(torch.zeros(150, 200))
        weight.grad = torch.randn(150, 200, generator=torch.Generator().manual_seed(0))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            SpectralNewton([weight], 0.1).step()
        updates.append(weight.detach())
    assert torch.equal(*updates)


def test_a_stored_state_fits_other_exponents():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    optimizers = [
        SpectralNewton(parameter_groups(model, alpha=alpha), 0.1)
        for alpha in ({"0": 1.0, "1": 2.0, "2": 1.0}, {"0": 1.0, "1": 1.0, "2": 2.0})
    ]
    model(torch.randn(3, 4)).sum().backward()
    optimizers[0].step()
    optimizers[1].load_state_dict(optimizers[0].state_dict())
    for parameter in model.parameters():
        for name, value in optimizers[0].state[parameter].items():
            assert torch.equal(optimizers[1].state[parameter][name], value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, "lr must be"),
        ({"lr": math.nan}, "lr must be"),
        ({"alpha": -0.5}, "alpha must be"),
        ({"alpha": math.inf}, "alpha must be"),
        ({"alpha": None}, "alpha must be a number"),
        ({"adamw_betas": (0.9, 0.99, 0.5)}, "adamw_betas must lie"),
        ({"damping": 0.0}, "damping must be"),
        ({"momentum": 1.0}, "momentum must lie"),
        ({"weight_decay": -0.1}, "weight_decay must be"),
        ({"adamw_betas": (0.9, 1.0)}, "adamw_betas must lie"),
        ({"adamw_eps": -1.0}, "adamw_eps must be"),
        ({"adjust_lr_fn": "muon"}, "adjust_lr_fn is none of"),
    ],
)
def test_options_out_of_range(options, message):
    weight = nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=message):
        SpectralNewton([weight], **options)
    with pytest.raises(ValueError, match=message):
        SpectralNewton([{"params": [weight], **options}])
