"""One training: its steps, what it reports, and what is kept of it."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from spectral_laws import rng
from spectral_laws.artifacts import read_table
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training import state as training_state
from spectral_laws.curvature.training.checkpoints import model_arrays
from spectral_laws.curvature.training.train import evaluate, train_model
from spectral_laws.errors import DataError
from spectral_laws.optimizers import runs
from spectral_laws.optimizers.methods import ScheduledOptimizer
from spectral_laws.optimizers.runs import Choice, run_training, split_samples
from spectral_laws.settings.curvature import Training

METHODS = ["sgd", "adamw", "muon", "soap", "spectral_newton"]


@pytest.fixture
def network(images, mlp):
    """The MLP with the same initial weights at every call."""

    def make(seed=1, settings=mlp, samples=images):
        return build_model(settings, samples, seed=seed)

    return make


@pytest.fixture
def tested(images, make_training):
    return split_samples(images, make_training())[0]


def tensors(inputs, targets):
    return torch.from_numpy(inputs), torch.from_numpy(targets)


class Recorder(nn.Module):
    """A linear network on images that notes the samples it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 4)
        self.batches: list[np.ndarray] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.batches.append(x.numpy().copy())
        return self.linear(x.flatten(1))


def test_the_parts_are_disjoint_and_cover_the_training_samples(images, make_training):
    training = make_training(train_size=30, validation_size=18)
    tested, validated = split_samples(images, training)
    for part in (tested, validated):
        np.testing.assert_array_equal(part.train_inputs, images.train_inputs[:30])
        np.testing.assert_array_equal(part.train_targets, images.train_targets[:30])
        assert part.n_classes == 4
    np.testing.assert_array_equal(tested.test_inputs, images.test_inputs)
    np.testing.assert_array_equal(tested.test_targets, images.test_targets)
    np.testing.assert_array_equal(validated.test_inputs, images.train_inputs[30:])
    np.testing.assert_array_equal(validated.test_targets, images.train_targets[30:])
    with pytest.raises(DataError, match="train_size 30 and validation_size 19 need 49 training "):
        split_samples(images, make_training(train_size=30, validation_size=19))


def test_language_keeps_its_vocabulary(language, make_training):
    for part in split_samples(language, make_training()):
        assert (part.n_tokens, part.task) == (7, "language_modelling")


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_a_training_has_the_bits_of_the_other_rooms_training(
    network, tested, make_method, make_training, name
):
    # curvature.training is compared with torch's schedule and optimizers in its own tests.
    training = make_training(epochs=3, train_size=33)
    choice = Choice(make_method(name, momentum=0.8), 0.03, 5e-3)
    other, ours = network(), network()
    history, kept = run_training(ours, tested, training, choice, seed=4)
    settings = Training(
        optimizer=name, max_epochs=3, batch_size=12, learning_rate=0.03, momentum=0.8,
        weight_decay=5e-3, label_smoothing=0.0, target_loss=0.0,
    )  # fmt: skip
    expected = train_model(other, tested, settings, seed=4).history
    assert expected["train_loss"].iloc[-1] < expected["train_loss"].iloc[0]
    for key, array in model_arrays(other).items():
        np.testing.assert_array_equal(model_arrays(ours)[key], array, err_msg=key)
    columns = ["epoch", "train_loss", "test_loss", "test_accuracy"]
    pd.testing.assert_frame_equal(history[columns], expected[columns])
    assert list(history) == [*columns, "diverged", "seconds"]
    assert not history["diverged"].any()
    assert (history["seconds"] > 0).all()
    assert kept is None


def test_all_methods_see_the_same_samples_in_the_same_order(tested, make_method, make_training):
    def order(name, seed=4):
        model = Recorder()
        choice = Choice(make_method(name), 0.01, 0.0)
        run_training(model, tested, make_training(), choice, seed=seed)
        return model.batches

    reference = order("sgd")
    assert [len(batch) for batch in reference] == [11] * 6
    every = np.concatenate(reference[:3]).reshape(33, -1)
    images_ = tested.train_inputs.reshape(33, -1)
    np.testing.assert_array_equal(np.sort(every, axis=0), np.sort(images_, axis=0))
    assert not np.array_equal(reference[0], reference[3])  # another order in every epoch
    for name in METHODS[1:]:
        np.testing.assert_array_equal(np.stack(order(name)), np.stack(reference))
    assert not np.array_equal(np.stack(order("sgd", seed=5)), np.stack(reference))


def test_the_learning_rate_is_one_cycle_up_to_the_peak(
    network, tested, make_method, make_training, monkeypatch
):
    seen = []
    step = ScheduledOptimizer.step

    def note(self, learning_rate):
        seen.append(learning_rate)
        step(self, learning_rate)

    monkeypatch.setattr(ScheduledOptimizer, "step", note)
    training = make_training(epochs=37)
    run_training(network(), tested, training, Choice(make_method("muon"), 0.5, 0.0), seed=1)
    assert len(seen) == 37 * 3  # 110 steps between the first and the last, the peak at the 33rd
    assert seen[0] == pytest.approx(0.5 / 25)
    assert seen[33] == pytest.approx(0.5)
    assert seen[-1] == pytest.approx(0.5 / 25e4)
    assert (np.diff(seen[:34]) > 0).all()
    assert (np.diff(seen[33:]) < 0).all()
    # Half cosines: half way in time is half way in rate.
    assert seen[33 + 77 // 2] + seen[33 + 77 // 2 + 1] == pytest.approx(0.5 + 0.5 / 25e4)


def test_one_step_alone_is_at_the_starting_rate(network, tested, make_method, make_training):
    training = make_training(epochs=1, batch_size=33)
    model, other = network(), network()
    run_training(model, tested, training, Choice(make_method("sgd"), 0.5, 0.0), seed=1)
    inputs, targets = tensors(tested.train_inputs, tested.train_targets)
    nn.functional.cross_entropy(other(inputs), targets).backward()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        expected = theirs.detach() - 0.5 / 25 * theirs.grad
        torch.testing.assert_close(ours.detach(), expected, rtol=0, atol=1e-6)


def test_what_is_tested_is_the_test_part_in_eval_mode(images, make_method, make_training):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 4))
    for part in split_samples(images, make_training()):
        history, _ = run_training(
            model, part, make_training(), Choice(make_method("adamw"), 0.01, 0.0), seed=1
        )
        model.eval()
        inputs, targets = tensors(part.test_inputs, part.test_targets)
        logits = model(inputs)
        assert history["test_loss"].iloc[-1] == pytest.approx(
            nn.functional.cross_entropy(logits, targets).item(), rel=1e-6
        )
        hits = (logits.argmax(1) == targets).double().mean().item()
        assert history["test_accuracy"].iloc[-1] == hits


@pytest.mark.parametrize("rate", [1e6, 1e12, 1e30])
@pytest.mark.parametrize("name", METHODS)
def test_a_diverging_learning_rate_is_reported(
    network, tested, make_method, make_training, name, rate
):
    training = make_training(epochs=4)
    model = network()
    history, _ = run_training(model, tested, training, Choice(make_method(name), rate, 0.0), seed=1)
    assert history["epoch"].tolist() == [1, 2, 3, 4]
    ended = history["diverged"]
    assert ended.is_monotonic_increasing
    if rate == 1e30:
        assert ended.all()
    assert history.loc[ended, ["train_loss", "test_loss"]].isna().all(axis=None)
    assert history.loc[~ended, ["train_loss", "test_loss"]].notna().all(axis=None)
    assert history["test_accuracy"].between(0, 1).all()
    assert len(set(history.loc[ended, "test_accuracy"])) <= 1


def test_gradients_whose_squares_overflow_are_no_crash(make_method, make_training, images):
    huge = images.train_inputs * np.float32(1e25)
    samples = Samples(huge, images.train_targets, images.test_inputs, images.test_targets, 4)
    for name in METHODS:
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        choice = Choice(make_method(name), 0.01, 0.0)
        history, _ = run_training(model, samples, make_training(), choice, seed=1)
        assert history["test_loss"].isna().equals(history["diverged"])
        assert name != "soap" or history["diverged"].all()  # its matrices have no eigenvectors


@pytest.mark.parametrize("name", METHODS)
def test_gradients_that_are_not_finite_end_a_training(make_method, make_training, tested, name):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
    model[1].weight.register_hook(lambda gradient: gradient * float("inf"))
    choice = Choice(make_method(name), 0.01, 0.0)
    history, _ = run_training(model, tested, make_training(), choice, seed=1)
    assert history["diverged"].all()


class Breaks(nn.Module):
    """A linear network whose outputs are NaN from the fifth training batch on."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += self.training
        logits = self.linear(x.flatten(1))
        return logits * float("nan") if self.training and self.calls >= 5 else logits


def test_a_training_that_diverges_later_is_trained_no_further(tested, make_method, make_training):
    model = Breaks()
    choice = Choice(make_method("adamw"), 0.01, 0.0)
    history, _ = run_training(model, tested, make_training(epochs=4), choice, seed=1)
    assert history["diverged"].tolist() == [False, True, True, True]
    assert history["train_loss"].notna().tolist() == [True, False, False, False]
    assert history["test_loss"].notna().tolist() == [True, False, False, False]
    assert model.calls == 5
    inputs, targets = tensors(tested.test_inputs, tested.test_targets)
    assert set(history["test_accuracy"].iloc[1:]) == {evaluate(model, inputs, targets)[1]}


@pytest.fixture
def kept_run(network, tested, make_method, make_training, tmp_path):
    """A training with a scratch folder; keyword arguments change what it depends on."""

    def run(**changes):
        values = {
            "model": network(),
            "samples": tested,
            "training": make_training(),
            "choice": Choice(make_method("adamw"), 0.01, 0.1),
            "seed": 1,
        }
        model, samples, training, choice, seed = (values | changes).values()
        return run_training(model, samples, training, choice, seed=seed, scratch=tmp_path)

    return run


def test_a_finished_training_is_read_and_not_trained_again(kept_run, tmp_path, monkeypatch):
    first, path = kept_run()
    assert [*tmp_path.iterdir()] == [path]

    def fail(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr(runs, "_train", fail)
    again, same = kept_run()
    assert same == path
    pd.testing.assert_frame_equal(again, first)  # its seconds too


def test_a_diverged_training_is_kept_as_well(kept_run, make_method, monkeypatch):
    choice = Choice(make_method("sgd"), 1e30, 0.0)
    first, _ = kept_run(choice=choice)
    assert first["diverged"].all()
    monkeypatch.setattr(runs, "_train", None)
    pd.testing.assert_frame_equal(kept_run(choice=choice)[0], first)


@pytest.mark.parametrize("damage", [b"", b"PAR1 nothing", None])
def test_a_damaged_file_is_trained_again(kept_run, damage):
    first, path = kept_run()
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] if damage is None else damage)
    again, same = kept_run()
    assert same == path
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), first.drop(columns="seconds"))
    pd.testing.assert_frame_equal(read_table(path), again)


def test_another_training_does_not_use_the_file(
    kept_run, network, tested, mlp, make_method, make_training
):
    _, path = kept_run()
    adamw, spectral = make_method("adamw"), make_method("spectral_newton", alpha="measured")
    changed = tested.train_inputs.copy()
    changed[0, 0, 0, 0] += 1
    relabelled = tested.test_targets[::-1].copy()
    parts = (tested.train_inputs, tested.train_targets, tested.test_inputs, tested.test_targets)
    others = [
        {"model": network(seed=2)},
        {"model": network(settings=mlp.model_copy(update={"width": 7}))},
        {"samples": Samples(changed, *parts[1:], 4)},
        {"samples": Samples(*parts[:3], relabelled, 4)},
        {"training": make_training(epochs=3)},
        {"training": make_training(batch_size=11)},
        {"choice": Choice(make_method("muon"), 0.01, 0.1)},
        {"choice": Choice(make_method("adamw", momentum=0.8), 0.01, 0.1)},
        {"choice": Choice(adamw, 0.02, 0.1)},
        {"choice": Choice(adamw, 0.01, 0.2)},
        {"choice": Choice(adamw, 0.01, 0.1, layer_rates={"head": 2.0})},
        {"choice": Choice(adamw, 0.01, 0.1, layer_rates={"head": 3.0})},
        {"choice": Choice(spectral, 0.01, 0.1, {"head": 1.0})},
        {"choice": Choice(spectral, 0.01, 0.1, {"head": 1.5})},
        {"seed": 2},
    ]
    paths = [path, *(kept_run(**other)[1] for other in others)]
    assert len(set(paths)) == len(others) + 1
    assert kept_run()[1] == path


@pytest.mark.parametrize("changes", [{"heads": 4}, {"skip_scale": 0.5}])
def test_networks_of_the_same_weights_are_told_apart(
    kept_run, language, gpt2, make_training, changes
):
    samples = split_samples(language, make_training())[0]
    models = [build_model(gpt2.model_copy(update=c), samples, seed=1) for c in ({}, changes)]
    models[1].load_state_dict(models[0].state_dict())
    paths = [kept_run(model=model, samples=samples)[1] for model in models]
    assert paths[0] != paths[1]


def test_other_code_does_not_use_the_file(kept_run, tmp_path_factory, monkeypatch):
    _, path = kept_run()
    file = tmp_path_factory.mktemp("code") / "extra.py"
    file.write_text("x = 1")
    module = ModuleType("spectral_laws.extra")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    paths = [path, kept_run()[1]]
    file.write_text("x = 2")
    paths.append(kept_run()[1])
    assert len(set(paths)) == 3


@pytest.mark.parametrize("package", ["torch", "pytorch-optimizer"])
def test_other_versions_do_not_use_the_file(kept_run, monkeypatch, package):
    _, path = kept_run()
    known = runs.version
    for module in (runs, training_state):
        monkeypatch.setattr(module, "version", lambda name: "0" if name == package else known(name))
    assert kept_run()[1] != path


def test_a_file_removed_by_another_job_is_no_error(kept_run, monkeypatch):
    _, path = kept_run()

    def vanish(found):
        found.unlink()
        raise DataError("gone")

    monkeypatch.setattr(runs, "read_table", vanish)
    assert kept_run()[1] == path
    assert path.exists()


def test_the_order_is_that_of_the_named_stream(tested, make_method, make_training):
    model = Recorder()
    run_training(model, tested, make_training(), Choice(make_method("sgd"), 0.01, 0.0), seed=9)
    order = rng.generator(9, "visiting order", 1).permutation(33)
    np.testing.assert_array_equal(model.batches[0], tested.train_inputs[order[:11]])
