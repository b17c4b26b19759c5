"""Every method of the race against the optimizer it stands for."""

import copy
import math

import numpy as np
import pytest
import torch
from pytorch_optimizer import SOAP
from torch import nn

from spectral_laws.optimizers.methods import build_optimizer

RATES = [0.125, 0.5, 0.25, 0.0625] * 3  # more than SOAP's ten steps between two bases
VECTORS = ("conv.bias", "norm.weight", "norm.bias", "head.bias")


class Network(nn.Module):
    """A kernel, a matrix, an embedding and vectors; only its parameters matter."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.conv = nn.Conv2d(2, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(6, 3)


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return Network()


def train(model, step, rates=RATES, without=()):
    """Call ``step`` with every rate, each time with other gradients; the weights afterwards."""
    stream = torch.Generator().manual_seed(5)
    for rate in rates:
        for name, parameter in model.named_parameters():
            gradient = torch.randn(parameter.shape, generator=stream)
            parameter.grad = None if name in without else gradient
        step(rate)
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def reference(*optimizers):
    """One step of torch's own optimizers, all at the same rate."""

    def step(rate):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()

    return step


def parts(model):
    """Matrices (kernels and embeddings too) and vectors."""
    named = dict(model.named_parameters())
    vectors = [named.pop(name) for name in VECTORS]
    return [*named.values()], vectors


def decayed(model, weight_decay):
    matrices, vectors = parts(model)
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def assert_same(ours, theirs, names=None):
    for name in names or theirs:
        assert torch.equal(ours[name], theirs[name]), name


def test_sgd_is_torchs_with_a_penalty_on_everything(network, make_method):
    other = copy.deepcopy(network)
    method = make_method("sgd", momentum=0.8)
    theirs = torch.optim.SGD(other.parameters(), lr=1.0, momentum=0.8, weight_decay=0.01)
    expected = train(other, reference(theirs))
    ours = train(network, build_optimizer(network, method, weight_decay=0.01).step)
    assert_same(ours, expected)


def test_a_damping_divides_the_learning_rates_of_sgd(network, make_method):
    other = copy.deepcopy(network)
    method = make_method("sgd", damping=0.25)
    theirs = torch.optim.SGD(other.parameters(), lr=1.0, momentum=0.9, weight_decay=0.01)
    expected = train(other, lambda rate: reference(theirs)(rate / 0.25))
    ours = train(network, build_optimizer(network, method, weight_decay=0.01).step)
    assert_same(ours, expected)


def test_adamw_is_torchs_without_decay_of_vectors(network, make_method):
    other = copy.deepcopy(network)
    theirs = torch.optim.AdamW(decayed(other, 0.1), betas=(0.8, 0.999))
    expected = train(other, reference(theirs))
    method = make_method("adamw", momentum=0.8)
    ours = train(network, build_optimizer(network, method, weight_decay=0.1).step)
    assert_same(ours, expected)
    undecayed = copy.deepcopy(other)
    train(undecayed, build_optimizer(undecayed, method, weight_decay=0.0).step)
    assert not torch.equal(undecayed.head.weight, other.head.weight)


def test_soap_is_that_of_its_library_without_decay_of_vectors(network, make_method):
    other = copy.deepcopy(network)
    theirs = SOAP(decayed(other, 0.1), betas=(0.8, 0.95))
    expected = train(other, reference(theirs))
    method = make_method("soap", momentum=0.8)
    ours = train(network, build_optimizer(network, method, weight_decay=0.1).step)
    assert_same(ours, expected)


def test_muon_flattens_kernels_and_leaves_the_rest_to_adamw(network, make_method):
    other = copy.deepcopy(network)
    kernel = nn.Parameter(other.conv.weight.detach().clone().reshape(4, 18))
    muon = torch.optim.Muon(
        [kernel, other.head.weight],
        momentum=0.8,
        weight_decay=0.1,
        adjust_lr_fn="match_rms_adamw",
    )
    rest = [
        {"params": [other.embedding.weight], "weight_decay": 0.1},
        {"params": parts(other)[1], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(rest)

    def step(rate):
        kernel.grad = other.conv.weight.grad.reshape(4, 18)
        reference(muon, adamw)(rate)

    expected = train(other, step)
    expected["conv.weight"] = kernel.detach().reshape(4, 2, 3, 3)
    method = make_method("muon", momentum=0.8)
    ours = train(network, build_optimizer(network, method, weight_decay=0.1).step)
    assert_same(ours, expected)


def test_muon_and_spectral_newton_share_the_updates_of_everything_but_matrices(
    network, make_method
):
    results = []
    for method in (make_method("muon"), make_method("spectral_newton")):
        model = copy.deepcopy(network)
        results.append(train(model, build_optimizer(model, method, weight_decay=0.1).step))
    for name in ("embedding.weight", *VECTORS):
        torch.testing.assert_close(results[0][name], results[1][name], rtol=1e-6, atol=1e-6)
    assert not torch.allclose(results[0]["head.weight"], results[1]["head.weight"], atol=1e-2)


@pytest.mark.parametrize("name", ["muon", "spectral_newton"])
def test_a_matrix_without_a_gradient_stays_where_it_is(network, make_method, name):
    before = network.conv.weight.detach().clone()
    optimizer = build_optimizer(network, make_method(name), weight_decay=0.1)
    after = train(network, optimizer.step, without=("conv.weight",))
    assert torch.equal(after["conv.weight"], before)
    moved = train(network, optimizer.step, rates=[0.1])["conv.weight"]
    assert not torch.equal(moved, before)
    again = train(network, optimizer.step, rates=[0.1], without=("conv.weight",))["conv.weight"]
    assert torch.equal(again, moved)


def test_muon_refuses_kernels_that_it_would_have_to_copy(network, make_method):
    network.to(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="view"):
        build_optimizer(network, make_method("muon"), weight_decay=0.0)


@pytest.mark.parametrize("measured", [True, False])
def test_spectral_newton_gives_each_layer_its_own_exponent(network, make_method, measured):
    # Oracle: T of the singular values, in float64.
    alphas = {"conv": 1.25} if measured else None  # the head, not measured, has 2
    method = make_method("spectral_newton", alpha="measured" if measured else 0.5, damping=0.25)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    optimizer = build_optimizer(network, method, weight_decay=0.1, alphas=alphas)
    after = train(network, optimizer.step, rates=[0.5])
    for name, alpha in (("conv.weight", 1.25), ("head.weight", 2.0)):
        gradient = network.get_parameter(name).grad.flatten(1).double().numpy()
        u, sigma, vt = np.linalg.svd(gradient, full_matrices=False)
        s = sigma / sigma[0]
        update = (u * (s / (s ** (alpha if measured else 0.5) + 0.25))) @ vt
        factor = 0.2 * math.sqrt(max(gradient.shape))
        old = before[name].flatten(1).double().numpy()
        expected = old * (1 - 0.5 * 0.1) - 0.5 * factor * update
        np.testing.assert_allclose(after[name].flatten(1).numpy(), expected, atol=1e-5)


def test_what_a_method_needs_or_lacks_is_said(network, make_method):
    with pytest.raises(ValueError, match="needs damping, and alpha or measured exponents"):
        build_optimizer(network, make_method("spectral_newton", alpha="measured"), weight_decay=0.0)
    for name in ("muon", "soap", "spectral_newton"):
        with pytest.raises(ValueError, match=f"{name} has no learning rates per layer"):
            build_optimizer(network, make_method(name), weight_decay=0.0, layer_rates={"head": 2.0})
    with pytest.raises(ValueError, match="'norm' is no layer with a matrix of its own"):
        build_optimizer(
            network,
            make_method("spectral_newton", alpha="measured"),
            weight_decay=0.0,
            alphas={"norm": 1.0},
        )


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_factors_of_one_are_the_method_without_factors(network, make_method, name):
    results = []
    for rates in (None, {}, {"conv": 1.0, "head": 1.0}):
        model = copy.deepcopy(network)
        optimizer = build_optimizer(model, make_method(name), weight_decay=0.1, layer_rates=rates)
        results.append(train(model, optimizer.step))
    for other in results[1:]:
        assert_same(other, results[0])


@pytest.mark.parametrize(("name", "damping"), [("sgd", None), ("sgd", 0.5), ("adamw", None)])
def test_one_step_moves_a_layer_by_its_factor(network, make_method, name, damping):
    factors = {"conv": 3.0, "head": 0.25}
    before = {key: p.detach().clone() for key, p in network.named_parameters()}
    steps = []
    for rates in ({}, factors):
        model = copy.deepcopy(network)
        method = make_method(name, damping=damping)
        optimizer = build_optimizer(model, method, weight_decay=0.1, layer_rates=rates)
        after = train(model, optimizer.step, rates=[0.01])
        steps.append({key: after[key] - before[key] for key in before})
    for key, step in steps[0].items():
        factor = factors.get(key.split(".")[0], 1.0)
        assert step.abs().max() > 1e-4, key
        # Steps are differences of float32 weights of order 1.
        torch.testing.assert_close(steps[1][key], factor * step, rtol=0, atol=1e-6)


def test_a_weight_that_layers_share_has_one_factor(make_method):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(3, 2)
            self.head = nn.Linear(2, 3, bias=False)
            self.head.weight = self.embedding.weight

    def groups(rates):
        optimizer = build_optimizer(Tied(), make_method("sgd"), weight_decay=0.0, layer_rates=rates)
        return optimizer.optimizers[0].param_groups

    found = groups({"head": 2.0})
    assert [(group["rate_factor"], len(group["params"])) for group in found] == [(2.0, 1)]
    with pytest.raises(ValueError, match="'head' shares a weight that has another factor"):
        groups({"embedding": 1.0, "head": 2.0})


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"tail": 2.0}, "'tail' is no layer with parameters"),
        ({"": 2.0}, "'' is no layer with parameters"),
        ({"head": 0.0}, "of layer 'head' is 0.0, not positive"),
        ({"head": float("nan")}, "not positive"),
    ],
)
def test_wrong_factors_are_refused(network, make_method, rates, message):
    with pytest.raises(ValueError, match=message):
        build_optimizer(network, make_method("sgd"), weight_decay=0.0, layer_rates=rates)
