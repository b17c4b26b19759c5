import logging
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from spectral_laws.artifacts import read_arrays, write_arrays
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training import state as training_state
from spectral_laws.curvature.training import train as training
from spectral_laws.curvature.training.checkpoints import (
    last_epochs,
    load_checkpoint,
    model_arrays,
    pack_networks,
    read_networks,
)
from spectral_laws.curvature.training.networks import train_networks
from spectral_laws.curvature.training.train import evaluate, one_cycle, train_model
from spectral_laws.errors import ConfigError, DataError, NumericalError
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Model, Training

PLACE = {"data": "toy", "training": "toy"}
RESNET = Model(architecture="resnet18", width=2, **PLACE)
MLP = Model(architecture="mlp", width=6, depth=1, **PLACE)
GPT2 = Model(architecture="gpt2", width=8, depth=1, heads=2, **PLACE)
ADAMW = {"optimizer": "adamw", "learning_rate": 0.03}


def settings(**changes) -> Training:
    values = {"optimizer": "sgd", "max_epochs": 4, "batch_size": 16, "learning_rate": 0.05}
    values |= {"momentum": 0.9, "weight_decay": 5e-4, "label_smoothing": 0.0, "target_loss": 1e-9}
    return Training(**(values | changes))


def toy_data(n_train: int = 65, n_test: int = 20) -> Samples:
    """Classes told apart by the mean of a quadrant."""
    generator = np.random.default_rng(0)
    labels = np.arange(n_train + n_test) % 4
    images = generator.normal(size=(len(labels), 1, 8, 8)).astype(np.float32)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 2
    part = slice(n_train), slice(n_train, None)
    return Samples(images[part[0]], labels[part[0]], images[part[1]], labels[part[1]], 4)


def toy_language(n: int = 48) -> Samples:
    """Sequences that count upwards from a random start."""
    starts = np.random.default_rng(0).integers(0, 7, n)
    tokens = (starts[:, None] + np.arange(9)) % 7
    parts = tokens[:32], tokens[32:]
    return Samples(parts[0][:, :-1], parts[0][:, 1:], parts[1][:, :-1], parts[1][:, 1:], 7, 7)


def network(seed: int = 1, settings_: Model = RESNET) -> torch.nn.Module:
    return build_model(settings_, toy_data(), seed=seed)


def assert_same(a: torch.nn.Module, b: torch.nn.Module) -> None:
    for name, array in model_arrays(a).items():
        np.testing.assert_array_equal(array, model_arrays(b)[name], err_msg=name)


def test_the_schedule_is_torchs_one_cycle():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    n = 20_000
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=n, cycle_momentum=False
    )
    rates = []
    for _ in range(n):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(rates) < n:
            schedule.step()
    ours = [one_cycle(step / (n - 1)) for step in range(n)]
    # torch turns one step before 30 %, so the two differ by at most one step's change.
    np.testing.assert_allclose(ours, rates, atol=2 * np.pi / (0.3 * n))
    assert one_cycle(0.3) == 1
    assert one_cycle(0) == pytest.approx(0.04)
    assert one_cycle(1) == pytest.approx(4e-6)


def test_training_learns_and_records_every_epoch():
    model = network()
    result = train_model(model, toy_data(), settings(max_epochs=12), seed=1)
    history = result.history
    assert list(history) == [
        "epoch",
        "learning_rate",
        "train_loss",
        "train_accuracy",
        "test_loss",
        "test_accuracy",
    ]
    assert history["epoch"].tolist() == list(range(1, 13))
    assert history["train_loss"].iloc[-1] < 0.3 * history["train_loss"].iloc[0]
    assert history["test_accuracy"].iloc[-1] > 0.7
    assert history["learning_rate"].max() <= 0.05
    assert history["learning_rate"].iloc[-1] == pytest.approx(0.05 / 25e4)
    data = toy_data()
    loss, accuracy = evaluate(
        model, torch.from_numpy(data.test_inputs), torch.from_numpy(data.test_targets)
    )
    assert (loss, accuracy) == tuple(history[["test_loss", "test_accuracy"]].iloc[-1])
    assert model.training
    assert result.state_file is None


def test_training_stops_at_the_target_loss():
    full = train_model(network(), toy_data(), settings(max_epochs=12), seed=1).history
    target = full["train_loss"].iloc[4]
    first = int(np.flatnonzero(full["train_loss"] <= target)[0]) + 1
    short = train_model(
        network(), toy_data(), settings(max_epochs=12, target_loss=float(target)), seed=1
    ).history
    assert len(short) == first < 12
    pd.testing.assert_frame_equal(short, full.iloc[:first])


@pytest.mark.slow
def test_every_setting_changes_the_result():
    def weights(**changes) -> np.ndarray:
        model = network()
        seed = changes.pop("seed", 1)
        train_model(model, toy_data(), settings(max_epochs=2, **changes), seed=seed)
        return model_arrays(model)["conv1.weight"]

    base = weights()
    np.testing.assert_array_equal(base, weights())
    for changes in (
        {"batch_size": 8},
        {"learning_rate": 0.04},
        {"momentum": 0.8},
        {"weight_decay": 0.01},
        {"label_smoothing": 0.1},
        {"optimizer": "adamw"},
        {"seed": 2},
    ):
        assert not np.array_equal(base, weights(**changes)), changes


def test_a_diverging_training_names_the_epoch():
    with pytest.raises(NumericalError, match="toy: the training loss of epoch 1 is nan"):
        train_model(
            network(settings_=MLP),
            toy_data(),
            settings(learning_rate=1e12),
            seed=1,
            label="toy",
        )


def interrupted(scratch: Path, monkeypatch: pytest.MonkeyPatch, *, after: int) -> Path:
    """A training that fails once ``after`` epochs are saved; returns the state file."""
    saved = []

    def write_then_fail(arrays, path, provenance):
        if len(saved) == after:
            raise KeyboardInterrupt
        write_arrays(arrays, path, provenance)
        saved.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(training_state, "write_arrays", write_then_fail)
        with pytest.raises(KeyboardInterrupt):
            train_model(network(), toy_data(), settings(), seed=1, scratch=scratch)
    assert list(scratch.iterdir()) == [saved[0]]
    return saved[0]


def test_an_interrupted_training_ends_in_the_same_bits(tmp_path, monkeypatch, caplog):
    reference = network()
    history = train_model(reference, toy_data(), settings(), seed=1).history
    interrupted(tmp_path, monkeypatch, after=2)
    resumed = network()
    with caplog.at_level(logging.INFO):
        result = train_model(resumed, toy_data(), settings(), seed=1, scratch=tmp_path)
    assert "training goes on after epoch 2" in caplog.text
    assert_same(resumed, reference)
    pd.testing.assert_frame_equal(result.history, history)
    # The finished state serves a caller that was killed before it could write the results.
    once_more = network()
    again = train_model(once_more, toy_data(), settings(), seed=1, scratch=tmp_path)
    assert_same(once_more, reference)
    pd.testing.assert_frame_equal(again.history, history)
    again.discard_state()
    assert list(tmp_path.iterdir()) == []
    again.discard_state()


KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
import test_train as t
from pathlib import Path
from spectral_laws.curvature.training import state as training_state
saved = []
def write_then_die(arrays, path, provenance):
    t.write_arrays(arrays, path, provenance)
    saved.append(path)
    if len(saved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
training_state.write_arrays = write_then_die
t.train_model(t.network(), t.toy_data(), t.settings(), seed=1, scratch=Path({scratch!r}))
"""


@pytest.mark.slow
def test_a_killed_training_ends_in_the_same_bits(tmp_path):
    code = KILLED.format(folder=str(Path(__file__).parent), scratch=str(tmp_path))
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    (state,) = tmp_path.iterdir()
    assert read_arrays(state)["history/epoch"].tolist() == [1, 2, 3]
    resumed, reference = network(), network()
    train_model(resumed, toy_data(), settings(), seed=1, scratch=tmp_path)
    train_model(reference, toy_data(), settings(), seed=1)
    assert_same(resumed, reference)


@pytest.mark.slow
def test_another_training_does_not_use_the_state(tmp_path, monkeypatch):
    state = interrupted(tmp_path, monkeypatch, after=2)
    others = [
        (network(seed=2), toy_data(), settings(), 1),
        (network(), toy_data(n_train=64), settings(), 1),
        (network(), toy_data(), settings(momentum=0.5), 1),
        (network(), toy_data(), settings(), 2),
    ]
    for model, data, changed, seed in others:
        result = train_model(model, data, changed, seed=seed, scratch=tmp_path)
        assert result.state_file != state
        result.discard_state()
    assert list(tmp_path.iterdir()) == [state]


def change_arrays(path: Path, **changes) -> None:
    arrays = read_arrays(path) | changes
    kept = {name: array for name, array in arrays.items() if array is not None}
    write_arrays(kept, path, Provenance({}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-10]), "not a readable safetensors"),
        (lambda p: p.write_bytes(b""), "not a readable safetensors"),
        (lambda p: change_arrays(p, **{"model/fc.bias": None}), "fc.bias: missing"),
        (lambda p: change_arrays(p, **{"model/new": np.ones(2)}), "new: not in this model"),
        (
            lambda p: change_arrays(p, **{"optimizer/momentum_buffer/fc.bias": np.ones(3)}),
            "does not fit the model",
        ),
        (lambda p: change_arrays(p, **{"history/epoch": np.array([1.0, 3.0])}), "wrong epochs"),
        (lambda p: change_arrays(p, **{"history/epoch": None}), "history is incomplete"),
    ],
)
def test_a_damaged_state_is_reported_and_not_used(tmp_path, monkeypatch, caplog, damage, message):
    damage(interrupted(tmp_path, monkeypatch, after=2))
    model, reference = network(), network()
    result = train_model(model, toy_data(), settings(), seed=1, scratch=tmp_path)
    assert "saved training state not used" in caplog.text
    assert message in caplog.text
    history = train_model(reference, toy_data(), settings(), seed=1).history
    assert_same(model, reference)
    pd.testing.assert_frame_equal(result.history, history)


def test_adamw_learns_a_language_and_resumes_in_the_same_bits(tmp_path, monkeypatch):
    samples, chosen = toy_language(), settings(max_epochs=25, **ADAMW)

    def train(scratch=None, **changes):
        model = build_model(GPT2, samples, seed=1)
        options = {"seed": 1, "scratch": scratch, "snapshots": [0, 1]} | changes
        return model, train_model(model, samples, chosen, **options)

    reference, full = train()
    history = full.history
    assert history["train_loss"].iloc[0] > 1.5 > 0.3 > history["train_loss"].iloc[-1]
    assert history["test_accuracy"].iloc[-1] > 0.95
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
    resumed, again = train(tmp_path)
    assert_same(resumed, reference)
    pd.testing.assert_frame_equal(again.history, history)
    assert sorted(again.snapshots) == sorted(full.snapshots) == [0, 1, 25]
    for epoch, arrays in full.snapshots.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, again.snapshots[epoch][name])


def test_adamw_decays_matrices_alone():
    model = network(settings_=MLP)
    groups = training.make_optimizer(model, settings(**ADAMW, momentum=0.8)).param_groups
    assert [group["weight_decay"] for group in groups] == [5e-4, 0]
    assert {p.dim() for p in groups[0]["params"]} == {2}
    assert {p.dim() for p in groups[1]["params"]} == {1}
    assert sum(len(group["params"]) for group in groups) == len([*model.parameters()])
    assert {group["betas"] for group in groups} == {(0.8, 0.999)}


def test_snapshots_are_the_weights_after_their_epochs():
    start = model_arrays(network())
    long = train_model(network(), toy_data(), settings(), seed=1, snapshots=[0, 2, 9])
    assert sorted(long.snapshots) == [0, 2, 4]
    for name, array in start.items():
        np.testing.assert_array_equal(long.snapshots[0][name], array)
    assert not np.array_equal(long.snapshots[2]["fc.weight"], long.snapshots[4]["fc.weight"])
    # The schedule depends on max_epochs, the first epoch alone does not tell: stop by the loss.
    loss = float(long.history["train_loss"].iloc[1])
    short = train_model(network(), toy_data(), settings(target_loss=loss), seed=1)
    assert sorted(short.snapshots) == [2]
    for name, array in short.snapshots[2].items():
        np.testing.assert_array_equal(array, long.snapshots[2][name])


def test_replicates_are_independent_and_reproducible(tmp_path):
    model = MLP.model_copy(update={"checkpoints": (0,)})

    def train(replicates, name: str = "small"):
        return train_networks(
            model, toy_data(), settings(max_epochs=1), name=name, replicates=replicates, seed=3
        )

    both, again = train([0, 1]), train([1], "renamed")
    assert both.history[["model", "seed"]].values.tolist() == [["small", 0], ["small", 1]]
    assert [*both.networks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for name, array in both.networks[1, 1].items():
        np.testing.assert_array_equal(array, again.networks[1, 1][name])
    for epoch in (0, 1):
        first, other = (both.networks[replicate, epoch]["head.weight"] for replicate in (0, 1))
        assert not np.array_equal(first, other)
    path = tmp_path / "networks.safetensors"
    write_arrays(pack_networks(both.networks), path, Provenance({}))
    back = read_networks(path)
    assert last_epochs(back) == {0: 1, 1: 1}
    for key, arrays in both.networks.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, back[key][name])
    write_arrays({"head.weight": np.ones(2)}, path, Provenance({}))
    with pytest.raises(DataError, match=r"'head.weight' is not of the form replicate/epoch/name"):
        read_networks(path)


def test_given_weights_are_measured_as_they_are(tmp_path):
    path = tmp_path / "weights.safetensors"
    given = network(seed=8)
    write_arrays(model_arrays(given), path, Provenance({}))
    model = RESNET.model_copy(update={"weights": str(path)})
    loaded = train_networks(model, toy_data(), settings(), name="x", replicates=[0], seed=1)
    assert [*loaded.networks] == [(0, 0)]
    assert loaded.trainings == ()
    for name, array in model_arrays(given).items():
        np.testing.assert_array_equal(loaded.networks[0, 0][name], array)
    data = toy_data()
    loss, _ = evaluate(
        given, torch.from_numpy(data.train_inputs), torch.from_numpy(data.train_targets)
    )
    assert loaded.history[["epoch", "train_loss"]].values.tolist() == [[0, loss]]
    missing = model.model_copy(update={"weights": str(tmp_path / "absent.safetensors")})
    with pytest.raises(DataError, match=r"absent\.safetensors"):
        train_networks(missing, toy_data(), settings(), name="x", replicates=[0], seed=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_an_absent_gpu_says_what_to_change():
    with pytest.raises(ConfigError, match="set `device: cpu`"):
        train_networks(
            RESNET, toy_data(), settings(), name="x", replicates=[0], seed=1, device="cuda"
        )


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    path = tmp_path / "weights.safetensors"
    trained = network()
    train_model(trained, toy_data(), settings(max_epochs=1), seed=1)
    write_arrays(model_arrays(trained), path, Provenance({}))
    loaded = network(seed=9)
    load_checkpoint(loaded, path)
    assert_same(loaded, trained)
    assert model_arrays(loaded)["bn1.num_batches_tracked"] == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fc.bias": None}, "fc.bias: missing"),
        ({"extra": np.zeros(3, np.float32)}, "extra: not in this model"),
        ({"fc.bias": np.zeros(5, np.float32)}, r"fc.bias: float32 \(5,\), expected float32 \(4,\)"),
        ({"fc.bias": np.zeros(4)}, r"fc.bias: float64 \(4,\), expected float32 \(4,\)"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_named(tmp_path, changes, message):
    path = tmp_path / "weights.safetensors"
    write_arrays(model_arrays(network()), path, Provenance({}))
    change_arrays(path, **changes)
    model = network(seed=5)
    before = model_arrays(model)
    with pytest.raises(DataError, match=message) as caught:
        load_checkpoint(model, path)
    assert str(path) in str(caught.value)
    for name, array in model_arrays(model).items():
        np.testing.assert_array_equal(array, before[name])
    write_arrays(
        model_arrays(network(settings_=MLP)),
        path,
        Provenance({}),
    )
    with pytest.raises(DataError, match=r"and [0-9]+ more") as caught:
        load_checkpoint(model, path)
    assert len(str(caught.value).splitlines()) < 16
