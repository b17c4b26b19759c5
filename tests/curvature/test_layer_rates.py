"""Learning rates per layer: what they do to a step, to a state, and the control's table."""

import logging

import numpy as np
import pandas as pd
import pytest
import torch

from spectral_laws.artifacts import write_arrays
from spectral_laws.curvature import training, training_state
from spectral_laws.curvature.checkpoints import model_arrays
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.layer_rates import (
    decays_of,
    rate_variants,
    scaled_rates,
    train_layer_rates,
)
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.networks import train_networks
from spectral_laws.curvature.training import make_optimizer, train_model
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.rng import generator, torch_seed
from spectral_laws.settings.curvature import Model, RateVariants, Training

PLACE = {"data": "toy", "training": "toy"}
RESNET = Model(architecture="resnet18", width=2, **PLACE)
GPT2 = Model(architecture="gpt2", width=8, depth=1, heads=2, **PLACE)
ADAMW = {"optimizer": "adamw", "learning_rate": 0.03}
DEEP = Model(architecture="mlp", width=6, depth=3, **PLACE)
LAYERS = ["layers.0", "layers.1", "layers.2", "head"]
VARIANTS = RateVariants(exponents=(0.5, 1.0, -1.0), random=True)


def settings(**changes) -> Training:
    values = {"optimizer": "sgd", "max_epochs": 4, "batch_size": 16, "learning_rate": 0.05}
    values |= {"momentum": 0.9, "weight_decay": 5e-4, "label_smoothing": 0.0, "target_loss": 1e-9}
    return Training(**(values | changes))


def toy_data(n_train: int = 65, n_test: int = 20) -> Samples:
    """Four classes told apart by the brightness of the image."""
    labels = np.arange(n_train + n_test) % 4
    images = np.random.default_rng(0).normal(size=(len(labels), 1, 8, 8)).astype(np.float32)
    images += labels[:, None, None, None].astype(np.float32)
    part = slice(n_train), slice(n_train, None)
    return Samples(images[part[0]], labels[part[0]], images[part[1]], labels[part[1]], 4)


def toy_language() -> Samples:
    """Sequences that count upwards from a random start."""
    tokens = (np.random.default_rng(0).integers(0, 7, 48)[:, None] + np.arange(9)) % 7
    first, rest = tokens[:32], tokens[32:]
    return Samples(first[:, :-1], first[:, 1:], rest[:, :-1], rest[:, 1:], 7, 7)


def network(settings_: Model = RESNET) -> torch.nn.Module:
    return build_model(settings_, toy_data(), seed=1)


def assert_same(a: torch.nn.Module, b: torch.nn.Module) -> None:
    for name, array in model_arrays(a).items():
        np.testing.assert_array_equal(array, model_arrays(b)[name], err_msg=name)


def exponents_table(replicates=(0, 1), name="small", **changes):
    """Final rows of DEEP's layers with s = 0.5, 1, 1.5, 2 (plus the replicate), and others."""
    rows = [
        {"model": model, "seed": replicate, "layer": layer, "epoch": epoch, "final": epoch == 4,
         "status": "fit", "s": 0.5 * (i + 1) + replicate + 10 * (epoch == 0) + 20 * (model != name)}
        for model in (name, "other") for replicate in replicates for epoch in (0, 4)
        for i, layer in enumerate(LAYERS)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**changes)


def plain_optimizer(model, chosen, *, layer_rates=None):
    """The optimizer of a training without layer rates, written out."""
    assert not layer_rates
    rate, decay = chosen.learning_rate, chosen.weight_decay
    if chosen.optimizer == "sgd":
        plain = torch.optim.SGD(
            model.parameters(), lr=rate, momentum=chosen.momentum, weight_decay=decay
        )
    else:
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() <= 1]
        plain = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=rate,
            betas=(chosen.momentum, 0.999),
        )
    return plain


def set_plain_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


@pytest.mark.parametrize("changes", [{}, ADAMW], ids=["sgd", "adamw"])
def test_without_rates_or_with_all_one_the_bits_are_those_of_a_plain_optimizer(
    monkeypatch, changes
):
    chosen, reference = settings(max_epochs=3, **changes), network()
    with monkeypatch.context() as patch:
        patch.setattr(training, "make_optimizer", plain_optimizer)
        patch.setattr(training, "set_rate", set_plain_rate)
        history = train_model(reference, toy_data(), chosen, seed=1).history
    for rates in (None, {}, {"conv1": 1.0, "fc": 1.0}):
        model = network()
        result = train_model(model, toy_data(), chosen, seed=1, layer_rates=rates)
        assert_same(model, reference)
        pd.testing.assert_frame_equal(result.history, history)


@pytest.mark.parametrize("changes", [{"momentum": 0.0}, ADAMW], ids=["sgd", "adamw"])
def test_one_step_moves_a_layer_by_its_factor(changes):
    data = toy_data(n_train=16)
    chosen = settings(max_epochs=1, **changes)  # one batch, one step

    def moved(rates):
        model = network(settings_=DEEP)
        before = model_arrays(model)
        train_model(model, data, chosen, seed=1, layer_rates=rates)
        after = model_arrays(model)
        return {name: after[name].astype(float) - before[name] for name in before}

    plain, scaled = moved(None), moved({"layers.1": 3.0, "head": 0.25})
    factors = {"layers.1": 3.0, "head": 0.25}
    assert {name.rpartition(".")[0] for name in plain} >= set(LAYERS)
    for name, step in plain.items():
        factor = factors.get(name.rpartition(".")[0], 1.0)
        assert np.abs(step).max() > 1e-5, name
        # Steps are differences of float32 weights of order 1.
        np.testing.assert_allclose(scaled[name], factor * step, atol=1e-6, err_msg=name)


def test_weights_that_others_share_have_one_factor():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(3, 2)
            self.head = torch.nn.Linear(2, 3, bias=False)
            self.head.weight = self.embedding.weight

    groups = make_optimizer(Tied(), settings(), layer_rates={"head": 2.0}).param_groups
    assert [(group["rate_factor"], len(group["params"])) for group in groups] == [(2.0, 1)]
    with pytest.raises(ValueError, match="'head' shares a weight that has another factor"):
        make_optimizer(Tied(), settings(), layer_rates={"embedding": 1.0, "head": 2.0})


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"layers.9": 2.0}, "'layers.9' is no layer with parameters"),
        ({"layers": 2.0}, "'layers' is no layer with parameters"),
        ({"head": 0.0}, "of layer 'head' is 0.0, not positive"),
        ({"head": float("nan")}, "not positive"),
    ],
)
def test_wrong_rates_are_refused(rates, message):
    with pytest.raises(ValueError, match=message):
        make_optimizer(network(settings_=DEEP), settings(), layer_rates=rates)


@pytest.mark.parametrize(
    ("model_settings", "samples", "changes", "rates"),
    [
        (RESNET, toy_data(), {}, {"conv1": 0.3, "layer2.0.conv1": 2.0}),
        (GPT2, toy_language(), ADAMW, {"transformer.h.0.mlp.c_fc": 0.3, "lm_head": 2.0}),
    ],
    ids=["sgd", "adamw"],
)
def test_an_interrupted_training_with_rates_ends_in_the_same_bits(
    tmp_path, monkeypatch, caplog, model_settings, samples, changes, rates
):
    def train(scratch=None, layer_rates=rates):
        model = build_model(model_settings, samples, seed=1)
        result = train_model(model, samples, settings(**changes), seed=1, scratch=scratch,
                             layer_rates=layer_rates)  # fmt: skip
        return model, result

    reference, full = train()
    saved = []

    def write_then_fail(arrays, path, provenance):
        if len(saved) == 2:
            raise KeyboardInterrupt
        write_arrays(arrays, path, provenance)
        saved.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(training_state, "write_arrays", write_then_fail)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path)
    # Other rates are another training.
    for others in (None, dict.fromkeys(rates, 1.0), rates | {next(iter(rates)): 0.31}):
        assert train(tmp_path, others)[1].state_file != saved[0]
    assert "training goes on after epoch 2" not in caplog.text
    with caplog.at_level(logging.INFO):
        resumed, again = train(tmp_path)
    assert "training goes on after epoch 2" in caplog.text
    assert_same(resumed, reference)
    pd.testing.assert_frame_equal(again.history, full.history)


def test_factors_are_powers_of_s_over_its_mean():
    rates = scaled_rates({"a": 1.0, "b": 3.0}, 0.5)
    assert rates == pytest.approx({"a": 0.5**0.5, "b": 1.5**0.5})
    assert scaled_rates({"a": 1.0, "b": 3.0}, -1.0) == pytest.approx({"a": 2.0, "b": 2 / 3})
    assert scaled_rates({"a": 0.7}, 2.0) == {"a": 1.0}
    assert scaled_rates({}, 1.0) == {}


def test_layers_without_a_fit_or_with_growing_curvature_are_left_alone():
    table = exponents_table()
    assert decays_of(table, "small", 1) == dict(zip(LAYERS, [1.5, 2.0, 2.5, 3.0], strict=True))
    mine = (table["model"] == "small") & (table["seed"] == 0) & table["final"]
    table.loc[mine & (table["layer"] == "layers.0"), ["status", "s"]] = ["no fit", np.nan]
    table.loc[mine & (table["layer"] == "layers.2"), "s"] = -0.2
    assert decays_of(table, "small", 0) == {"layers.1": 1.0, "head": 2.0}
    with pytest.raises(DataError, match="no trained layer of model 'small', seed 2"):
        decays_of(table, "small", 2)
    with pytest.raises(DataError, match="exponents table: no column final, s"):
        decays_of(table.drop(columns=["final", "s"]), "small", 0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_random_control_moves_every_s_to_another_layer(n):
    decays = {f"layer{i}": i + 1.0 for i in range(n)}
    straight = scaled_rates(decays, 1.0)
    seen = set()
    for seed in range(40):
        variants = rate_variants(decays, VARIANTS, generator(seed, "test"))
        assert [variant[:2] for variant in variants] == [
            ("none", 0.0), ("b = 0.5", 0.5), ("b = 1", 1.0), ("inverse", -1.0), ("random", None)
        ]  # fmt: skip
        assert variants[0][2] == {}
        assert variants[2][2] == straight
        control = variants[-1][2]
        assert sorted(control.values()) == pytest.approx(sorted(straight.values()))
        if n > 1:
            assert all(control[layer] != straight[layer] for layer in decays)
        seen.add(tuple(control.values()))
    assert len(seen) == 1 if n < 3 else len(seen) > 10
    without = RateVariants(exponents=(2.0,), random=False)
    names = [variant[0] for variant in rate_variants(decays, without, generator(0, "test"))]
    assert names == ["none", "b = 2"]


def test_variants_are_paired_and_the_first_is_the_ordinary_training(tmp_path):
    chosen = settings(max_epochs=3)
    trained = train_layer_rates(
        DEEP, toy_data(), chosen, exponents_table(), VARIANTS,
        name="small", replicates=[0, 1], seed=3, scratch=tmp_path,
    )  # fmt: skip
    table = trained.table
    assert list(table) == [
        "model", "seed", "variant", "exponent", "n_scaled", "epochs", "train_loss", "test_loss",
        "test_accuracy", "n_test",
    ]  # fmt: skip
    assert table["variant"].tolist() == ["none", "b = 0.5", "b = 1", "inverse", "random"] * 2
    assert table["exponent"].isna().tolist() == [False] * 4 + [True] + [False] * 4 + [True]
    assert table["n_scaled"].tolist() == [0, 4, 4, 4, 4] * 2
    assert set(table["n_test"]) == {20}
    assert len(set(table["test_loss"])) == 10
    ordinary = train_networks(DEEP, toy_data(), chosen, name="small", replicates=[0, 1], seed=3)
    last = ordinary.history.groupby("seed").last()
    columns = ["train_loss", "test_loss", "test_accuracy"]
    baseline = table[table["variant"] == "none"].set_index("seed")
    pd.testing.assert_frame_equal(baseline[columns], last[columns])
    # b = 1 of replicate 1, written out: s = 1.5, 2, 2.5, 3 around their mean 2.25.
    start = torch_seed(3, "network", 1)
    model = build_model(DEEP, toy_data(), seed=start)
    rates = dict(zip(LAYERS, [1.5 / 2.25, 2.0 / 2.25, 2.5 / 2.25, 3.0 / 2.25], strict=True))
    history = train_model(model, toy_data(), chosen, seed=start, layer_rates=rates).history
    ours = table[(table["seed"] == 1) & (table["variant"] == "b = 1")].iloc[0]
    assert ours["test_loss"] == history["test_loss"].iloc[-1]
    assert len(trained.state_files) == 10
    assert set(tmp_path.iterdir()) == set(trained.state_files)
    trained.discard_states()
    assert list(tmp_path.iterdir()) == []


def test_without_any_scaled_layer_all_variants_are_the_same_training():
    table = train_layer_rates(
        DEEP, toy_data(), settings(max_epochs=1), exponents_table(status="no fit"), VARIANTS,
        name="small", replicates=[0], seed=3,
    ).table  # fmt: skip
    assert set(table["n_scaled"]) == {0}
    assert len(table["test_loss"].unique()) == 1


def test_a_diverging_variant_is_named():
    with pytest.raises(NumericalError, match="small, replicate 0, layer rates none: the training"):
        train_layer_rates(
            DEEP, toy_data(), settings(learning_rate=1e12), exponents_table(), VARIANTS,
            name="small", replicates=[0], seed=3,
        )  # fmt: skip


def test_given_weights_are_refused():
    model = DEEP.model_copy(update={"weights": "x.safetensors"})
    with pytest.raises(DataError, match="small has weights"):
        train_layer_rates(
            model, toy_data(), settings(), exponents_table(), VARIANTS,
            name="small", replicates=[0], seed=3,
        )  # fmt: skip
