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

from spectral_laws.artifacts import Provenance, read_arrays, write_arrays
from spectral_laws.config import Model, Training
from spectral_laws.curvature import training
from spectral_laws.curvature.checkpoints import load_checkpoint, model_arrays
from spectral_laws.curvature.datasets import ImageData
from spectral_laws.curvature.models import build_model
from spectral_laws.curvature.networks import train_network
from spectral_laws.curvature.training import evaluate, one_cycle, train_classifier
from spectral_laws.errors import ConfigError, DataError, NumericalError

RESNET = Model(architecture="resnet18", width=2)


def settings(**changes) -> Training:
    values = {"max_epochs": 4, "batch_size": 16, "learning_rate": 0.05, "momentum": 0.9}
    return Training(**(values | {"weight_decay": 5e-4, "target_loss": 1e-9} | changes))


def toy_data(n_train: int = 65, n_test: int = 20) -> ImageData:
    """Classes told apart by the mean of a quadrant."""
    generator = np.random.default_rng(0)
    labels = np.arange(n_train + n_test) % 4
    images = generator.normal(size=(len(labels), 1, 8, 8)).astype(np.float32)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 2
    part = slice(n_train), slice(n_train, None)
    return ImageData(images[part[0]], labels[part[0]], images[part[1]], labels[part[1]], 4)


def network(seed: int = 1, settings_: Model = RESNET) -> torch.nn.Module:
    return build_model(settings_, in_channels=1, image_size=8, n_classes=4, seed=seed)


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
    result = train_classifier(model, toy_data(), settings(max_epochs=12), seed=1)
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
        model, torch.from_numpy(data.test_images), torch.from_numpy(data.test_labels)
    )
    assert (loss, accuracy) == tuple(history[["test_loss", "test_accuracy"]].iloc[-1])
    assert model.training
    assert result.state_file is None


def test_training_stops_at_the_target_loss():
    full = train_classifier(network(), toy_data(), settings(max_epochs=12), seed=1).history
    target = full["train_loss"].iloc[4]
    first = int(np.flatnonzero(full["train_loss"] <= target)[0]) + 1
    short = train_classifier(
        network(), toy_data(), settings(max_epochs=12, target_loss=float(target)), seed=1
    ).history
    assert len(short) == first < 12
    pd.testing.assert_frame_equal(short, full.iloc[:first])


def test_every_setting_changes_the_result():
    def weights(**changes) -> np.ndarray:
        model = network()
        seed = changes.pop("seed", 1)
        train_classifier(model, toy_data(), settings(max_epochs=2, **changes), seed=seed)
        return model_arrays(model)["conv1.weight"]

    base = weights()
    np.testing.assert_array_equal(base, weights())
    for changes in (
        {"batch_size": 8},
        {"learning_rate": 0.04},
        {"momentum": 0.8},
        {"weight_decay": 0.01},
        {"seed": 2},
    ):
        assert not np.array_equal(base, weights(**changes)), changes


def test_a_diverging_training_names_the_epoch():
    with pytest.raises(NumericalError, match="toy: the training loss of epoch 1 is nan"):
        train_classifier(
            network(settings_=Model(architecture="mlp", width=8, depth=2)),
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
        patch.setattr(training, "write_arrays", write_then_fail)
        with pytest.raises(KeyboardInterrupt):
            train_classifier(network(), toy_data(), settings(), seed=1, scratch=scratch)
    assert list(scratch.iterdir()) == [saved[0]]
    return saved[0]


def test_an_interrupted_training_ends_in_the_same_bits(tmp_path, monkeypatch, caplog):
    reference = network()
    history = train_classifier(reference, toy_data(), settings(), seed=1).history
    interrupted(tmp_path, monkeypatch, after=2)
    resumed = network()
    with caplog.at_level(logging.INFO):
        result = train_classifier(resumed, toy_data(), settings(), seed=1, scratch=tmp_path)
    assert "training goes on after epoch 2" in caplog.text
    assert_same(resumed, reference)
    pd.testing.assert_frame_equal(result.history, history)
    # The finished state serves a caller that was killed before it could write the results.
    once_more = network()
    again = train_classifier(once_more, toy_data(), settings(), seed=1, scratch=tmp_path)
    assert_same(once_more, reference)
    pd.testing.assert_frame_equal(again.history, history)
    again.discard_state()
    assert list(tmp_path.iterdir()) == []
    again.discard_state()


KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
import test_training as t
from pathlib import Path
from spectral_laws.curvature import training
saved = []
def write_then_die(arrays, path, provenance):
    t.write_arrays(arrays, path, provenance)
    saved.append(path)
    if len(saved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
training.write_arrays = write_then_die
t.train_classifier(t.network(), t.toy_data(), t.settings(), seed=1, scratch=Path({scratch!r}))
"""


def test_a_killed_training_ends_in_the_same_bits(tmp_path):
    code = KILLED.format(folder=str(Path(__file__).parent), scratch=str(tmp_path))
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    (state,) = tmp_path.iterdir()
    assert read_arrays(state)["history/epoch"].tolist() == [1, 2, 3]
    resumed, reference = network(), network()
    train_classifier(resumed, toy_data(), settings(), seed=1, scratch=tmp_path)
    train_classifier(reference, toy_data(), settings(), seed=1)
    assert_same(resumed, reference)


def test_another_training_does_not_use_the_state(tmp_path, monkeypatch):
    state = interrupted(tmp_path, monkeypatch, after=2)
    others = [
        (network(seed=2), toy_data(), settings(), 1),
        (network(), toy_data(n_train=64), settings(), 1),
        (network(), toy_data(), settings(momentum=0.5), 1),
        (network(), toy_data(), settings(), 2),
    ]
    for model, data, changed, seed in others:
        result = train_classifier(model, data, changed, seed=seed, scratch=tmp_path)
        assert result.state_file != state
        result.discard_state()
    assert list(tmp_path.iterdir()) == [state]


def change_arrays(path: Path, **changes) -> None:
    arrays = read_arrays(path) | changes
    kept = {name: array for name, array in arrays.items() if array is not None}
    write_arrays(kept, path, Provenance({}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-10]), "not a readable safetensors"),
        (lambda p: p.write_bytes(b""), "not a readable safetensors"),
        (lambda p: change_arrays(p, **{"model/fc.bias": None}), "fc.bias: missing"),
        (lambda p: change_arrays(p, **{"model/new": np.ones(2)}), "new: not in this model"),
        (lambda p: change_arrays(p, **{"momentum/fc.bias": np.ones(3)}), "momenta do not fit"),
        (lambda p: change_arrays(p, **{"history/epoch": np.array([1.0, 3.0])}), "wrong epochs"),
        (lambda p: change_arrays(p, **{"history/epoch": None}), "history is incomplete"),
    ],
)
def test_a_damaged_state_is_reported_and_not_used(tmp_path, monkeypatch, caplog, damage, message):
    damage(interrupted(tmp_path, monkeypatch, after=2))
    model, reference = network(), network()
    result = train_classifier(model, toy_data(), settings(), seed=1, scratch=tmp_path)
    assert "saved training state not used" in caplog.text
    assert message in caplog.text
    history = train_classifier(reference, toy_data(), settings(), seed=1).history
    assert_same(model, reference)
    pd.testing.assert_frame_equal(result.history, history)


def test_replicates_are_independent_and_reproducible():
    model = Model(architecture="mlp", width=6, depth=1)

    def train(replicate: int, name: str = "small"):
        return train_network(
            model, toy_data(), settings(max_epochs=1), name=name, replicate=replicate, seed=3
        )

    first, again, other = train(0), train(0, "renamed"), train(1)
    assert first.history[["model", "seed"]].values.tolist() == [["small", 0]]
    assert other.history[["model", "seed"]].values.tolist() == [["small", 1]]
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, again.arrays[name])
    assert not np.array_equal(first.arrays["head.weight"], other.arrays["head.weight"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_an_absent_gpu_says_what_to_change():
    with pytest.raises(ConfigError, match="set `device: cpu`"):
        train_network(RESNET, toy_data(), settings(), name="x", replicate=0, seed=1, device="cuda")


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    path = tmp_path / "weights.safetensors"
    trained = network()
    train_classifier(trained, toy_data(), settings(max_epochs=1), seed=1)
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
        model_arrays(network(settings_=Model(architecture="mlp", width=2, depth=1))),
        path,
        Provenance({}),
    )
    with pytest.raises(DataError, match=r"and [0-9]+ more") as caught:
        load_checkpoint(model, path)
    assert len(str(caught.value).splitlines()) < 16
