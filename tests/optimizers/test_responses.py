"""Update spectra against their closed forms."""

import math

import numpy as np
import pytest
import torch

from spectral_laws import rng
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.errors import DataError
from spectral_laws.optimizers.responses import measure_responses
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Responses, ResponseSettings

STEPS = 20
LAYERS = ("layers.0", "layers.1")
SHAPES = {"layers.0": (12, 64), "layers.1": (12, 12)}
WIDE = Model(architecture="mlp", width=12, depth=2, data="toy", training="toy")


@pytest.fixture
def respond(make_task, exponents):
    """Table of the update spectra of named methods."""

    def measure(methods, *, layers=LAYERS, steps=STEPS, samples=33, measured=exponents, **changes):
        given = Responses(race="toy", samples=samples, steps=steps, layers=layers)
        settings = ResponseSettings(methods=methods, responses=given)
        return measure_responses(make_task(model=WIDE, **changes), measured, settings)

    return measure


def layers_of(table, method):
    rows = table[table["method"] == method]
    assert set(rows["layer"]) == set(SHAPES)
    return rows.groupby("layer")


@pytest.mark.parametrize("samples", [33, 20])
def test_the_gradient_is_that_of_the_first_training_samples(respond, make_method, images, samples):
    table = respond({"a": make_method("sgd"), "b": make_method("muon")}, samples=samples)
    assert list(table) == [
        "race", "method", "layer", "k", "sigma", "response", "diagonal_share"
    ]  # fmt: skip
    assert set(table["race"]) == {"toy"}
    model = build_model(WIDE, images, seed=rng.torch_seed(3, "race", 0))
    inputs = torch.from_numpy(images.train_inputs[:samples])
    loss = torch.nn.functional.cross_entropy(
        model(inputs), torch.from_numpy(images.train_targets[:samples])
    )
    loss.backward()
    for layer in LAYERS:
        gradient = model.get_parameter(f"{layer}.weight").grad
        sigma = torch.linalg.svdvals(gradient.double()).numpy()
        for method in ("a", "b"):
            rows = layers_of(table, method).get_group(layer)
            assert rows["k"].tolist() == [*range(1, len(rows) + 1)]
            np.testing.assert_allclose(rows["sigma"], sigma[: len(rows)], rtol=1e-3)
            np.testing.assert_allclose(rows["sigma"].iloc[0], sigma[0], rtol=1e-6)


def test_sgd_is_proportional_to_sigma(respond, make_method):
    momentum = 0.75
    damped = make_method("sgd", momentum=0.0, damping=0.25)
    table = respond({"sgd": make_method("sgd", momentum=momentum), "damped": damped})
    for method, slope in (("sgd", (1 - momentum**STEPS) / (1 - momentum)), ("damped", 4.0)):
        for _, rows in layers_of(table, method):
            size = slope * rows["sigma"].iloc[0]
            np.testing.assert_allclose(
                rows["response"], slope * rows["sigma"], rtol=0, atol=1e-6 * size
            )
            np.testing.assert_allclose(rows["diagonal_share"], 1, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.7, 2.0, "measured"])
def test_spectral_newton_is_the_damped_power(respond, make_method, alpha):
    methods = {
        "newton": make_method("spectral_newton", alpha=alpha, damping=0.1),
        "sgd": make_method("sgd"),
    }
    table = respond(methods)
    measured = {"layers.0": 1.0, "layers.1": 1.5}
    for layer, rows in layers_of(table, "newton"):
        s = rows["sigma"] / rows["sigma"].iloc[0]
        own = measured[layer] if alpha == "measured" else alpha
        expected = 0.2 * math.sqrt(max(SHAPES[layer])) * s / (s**own + 0.1)
        np.testing.assert_allclose(rows["response"], expected, rtol=0, atol=1e-4 * expected.max())
        np.testing.assert_allclose(rows["diagonal_share"], 1, atol=1e-6)


def test_muon_is_nearly_flat(respond, make_method):
    table = respond({"muon": make_method("muon"), "sgd": make_method("sgd")})
    for layer, rows in layers_of(table, "muon"):
        flat = rows["response"] / (0.2 * math.sqrt(max(SHAPES[layer])))
        # Five iterations lift what is above a hundredth of the norm.
        resolved = rows["sigma"] > 0.02 * np.linalg.norm(rows["sigma"])
        assert resolved.sum() >= 3
        assert flat[resolved].between(0.6, 1.3).all()


def test_adamw_acts_on_entries(respond, make_method, images):
    table = respond({"adamw": make_method("adamw"), "sgd": make_method("sgd")})
    model = build_model(WIDE, images, seed=rng.torch_seed(3, "race", 0))
    inputs, targets = images.train_inputs[:33], images.train_targets[:33]
    logits = model(torch.from_numpy(inputs))
    torch.nn.functional.cross_entropy(logits, torch.from_numpy(targets)).backward()
    for layer, rows in layers_of(table, "adamw"):
        assert (rows["diagonal_share"] < 0.95).all()
        assert len(set(rows["diagonal_share"])) == 1
        # Of a gradient that stays the same both averages are exact.
        gradient = model.get_parameter(f"{layer}.weight").grad.double().numpy()
        update = gradient / (np.abs(gradient) + 1e-8)
        u, _, vt = np.linalg.svd(gradient, full_matrices=False)
        expected = np.einsum("ik,ij,kj->k", u, update, vt)[: len(rows)]
        apart = rows["sigma"].to_numpy() > 1e-2 * rows["sigma"].iloc[0]
        np.testing.assert_allclose(
            rows["response"].to_numpy()[apart], expected[apart], atol=1e-3 * expected.max()
        )
        share = (np.einsum("ik,ij,kj->k", u, update, vt) ** 2).sum() / (update**2).sum()
        assert rows["diagonal_share"].iloc[0] == pytest.approx(share, abs=1e-3)


def test_responses_do_not_depend_on_the_size_of_the_weights(respond, make_method, monkeypatch):
    from spectral_laws.optimizers import responses

    methods = {"soap": make_method("soap"), "sgd": make_method("sgd")}
    plain = respond(methods)
    gradients = responses._gradients

    def and_enlarge(model, samples, size):
        found = gradients(model, samples, size)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1e3)
        return found

    monkeypatch.setattr(responses, "_gradients", and_enlarge)
    np.testing.assert_array_equal(respond(methods)["response"], plain["response"])
    assert np.isfinite(plain["response"]).all()


def test_kernels_are_flattened(make_task, make_method):
    settings = ResponseSettings(
        methods={"newton": make_method("spectral_newton", alpha=1.0), "sgd": make_method("sgd")},
        responses=Responses(race="toy", samples=33, steps=3, layers=("layer1.0.conv1", "fc")),
    )
    network = Model(architecture="resnet18", width=4, data="toy", training="toy")
    table = measure_responses(make_task(model=network), None, settings)
    rows = table[(table["method"] == "newton") & (table["layer"] == "layer1.0.conv1")]
    s = rows["sigma"] / rows["sigma"].iloc[0]
    assert len(rows) == 4  # (4, 4 * 9)
    np.testing.assert_allclose(rows["response"], 0.2 * 6 * s / (s + 0.1), atol=1e-4)


@pytest.mark.parametrize("layer", ["layers.7", "layers", ""])
def test_a_layer_that_is_not_there_is_named(respond, make_method, layer):
    methods = {"a": make_method("sgd"), "b": make_method("muon")}
    with pytest.raises(DataError, match=f"responses.layers: the network has no layer '{layer}'"):
        respond(methods, layers=(layer,))


def test_a_layer_without_a_gradient_is_named(respond, make_method, monkeypatch):
    from spectral_laws.optimizers import race

    def dead(*arguments, **options):
        model = build_model(*arguments, **options)
        with torch.no_grad():
            model.layers[0].bias.fill_(-1e3)
        return model

    monkeypatch.setattr(race, "build_model", dead)
    methods = {"a": make_method("sgd"), "b": make_method("muon")}
    with pytest.raises(DataError, match=r"the gradient of layer 'layers\.0' is zero"):
        respond(methods)


def test_measured_exponents_need_a_table(respond, make_method):
    methods = {"a": make_method("sgd"), "b": make_method("spectral_newton", alpha="measured")}
    with pytest.raises(DataError, match="alpha is measured, and there is no table"):
        respond(methods, measured=None)
